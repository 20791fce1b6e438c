//! The configuration of programs over a ledger: where a user's files are, which store is used, and a
//! check that other users of the machine can change neither.
//!
//! A setting comes from the command line, or else from the environment, or else from the user's configuration file, or
//! else from its default. A project has no configuration: a store, a key or a name that a repository could set would be
//! set by its author.
//!
//! ```
//! use countersign_cli::config::{Config, Directories, StoreUrl};
//!
//! # let home = tempfile::tempdir().unwrap();
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let directories = Directories::below(home.path());
//! let config = Config::load(&directories, None)?; // the file need not exist
//! let ledger = config.open_store(&directories, None).await?; // `.local/state/countersign/asks.db`
//! assert!(ledger.list(None, 10).await.unwrap().records.is_empty());
//!
//! let elsewhere: StoreUrl = "postgres://db.example.org/asks".parse()?;
//! assert!(matches!(elsewhere, StoreUrl::Postgres(_)));
//! # Ok::<(), countersign_cli::config::ConfigError>(()) }).unwrap();
//! ```

pub(crate) mod account;
mod directories;
mod error;
mod inbox;
mod journal;
mod key;
mod lasting;
mod linked;
pub(crate) mod private;
mod store;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use countersign::ledger::Ledger;
use countersign::seal::SealKeys;
use countersign_rules::RulesBuilder;

pub(crate) use private::check_unchangeable as check_private;
pub use private::{replace_file, write as write_private};

pub use countersign_stores::StoreUrl;
pub use directories::Directories;
pub use error::ConfigError;
pub use inbox::{InboxConfig, WebhookConfig, answering};
pub use journal::JournalConfig;
pub use key::audit_key;
pub use lasting::LastingProgram;
pub use linked::linked_places;
use store::Creating;

/// The settings of a configuration file. Every setting is optional.
///
/// ```toml
/// store = "sqlite:///srv/agents/asks.db"
/// principal = "ann"
/// audit_key_file = "/srv/agents/audit.key"
/// anchor_file = "/mnt/elsewhere/asks.checkpoint"
///
/// [inbox]
/// listen = "127.0.0.1:8788"
/// public_url = "https://inbox.example/"
///
/// [groups]
/// ops = ["ann", "bob"]
///
/// [journal]
/// enabled = true
/// keep_days = 30
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// The URL of the store; by default the file `asks.db` in the user's state directory.
    #[serde(default)]
    pub store: Option<StoreUrl>,
    /// The name under which this user decides; by default the name of the account.
    #[serde(default)]
    pub principal: Option<String>,
    /// A file whose bytes are the key of the ledger's log ([`Ledger::audit_key`]).
    #[serde(default)]
    pub audit_key_file: Option<PathBuf>,
    /// A file that keeps the last checkpoint of the store ([`Ledger::anchor`]).
    #[serde(default)]
    pub anchor_file: Option<PathBuf>,
    /// The settings of the inbox, a table of its own.
    #[serde(default)]
    pub inbox: InboxConfig,
    /// The groups that rules name as `group:NAME`, with the names of their members.
    #[serde(default)]
    pub groups: BTreeMap<String, Vec<String>>,
    /// The journal of decisions, a table of its own.
    #[serde(default)]
    pub journal: JournalConfig,
    /// The file that this was read from.
    #[serde(skip)]
    file: Option<PathBuf>,
}

impl Config {
    /// Reads a configuration file: the one at `path`, or else the one that `COUNTERSIGN_CONFIG` names, or else
    /// `config.toml` in the user's configuration directory, which need not exist. Then applies the environment:
    /// `COUNTERSIGN_STORE`, `COUNTERSIGN_PRINCIPAL` and `COUNTERSIGN_AUDIT_KEY_FILE` replace what the file says.
    ///
    /// # Errors
    /// [`ConfigError::File`] when the file cannot be read, is not TOML, or has an unknown key;
    /// [`ConfigError::NotPrivate`] when another user could change it; [`ConfigError::Setting`] when a variable of the
    /// environment cannot be used.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// let path = home.path().join("countersign.toml");
    /// std::fs::write(&path, "principal = \"ann\"\n[inbox]\nlisten = \"127.0.0.1:8788\"\n").unwrap();
    /// let config = Config::load(&directories, Some(&path))?;
    /// assert_eq!(config.inbox.listen.map(|address| address.port()), Some(8788));
    ///
    /// // A key that nothing reads is an error, with its line and without its text.
    /// std::fs::write(&path, "principle = \"ann\"\n").unwrap();
    /// assert!(Config::load(&directories, Some(&path)).is_err_and(|error| error.to_string().contains("line 1")));
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn load(directories: &Directories, path: Option<&Path>) -> Result<Self, ConfigError> {
        let named = path.map(Path::to_owned).or_else(Self::file_of_environment);
        let mut config = Self::of_file(directories, named.as_deref())?;
        if let Some(store) = variable("COUNTERSIGN_STORE") {
            config.store = Some(store.to_string_lossy().parse()?);
        }
        if let Some(name) = variable("COUNTERSIGN_PRINCIPAL") {
            config.principal = Some(name.to_string_lossy().into_owned());
        }
        if let Some(path) = variable("COUNTERSIGN_AUDIT_KEY_FILE") {
            config.audit_key_file = Some(path.into());
        }
        Ok(config)
    }

    /// Reads a configuration file as [`load`](Self::load) does, and takes nothing from the environment. For programs
    /// that another one starts with an environment of its own, such as a hook.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// assert_eq!(Config::of_file(&directories, None)?, Config::default());
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn of_file(directories: &Directories, path: Option<&Path>) -> Result<Self, ConfigError> {
        match path {
            Some(path) => {
                Self::read(path)?.ok_or_else(|| ConfigError::file(path, "there is no such file"))
            }
            None => Ok(Self::read(&directories.config().join("config.toml"))?.unwrap_or_default()),
        }
    }

    /// The configuration file that the environment names in `COUNTERSIGN_CONFIG`, if it does.
    #[must_use]
    pub fn file_of_environment() -> Option<PathBuf> {
        variable("COUNTERSIGN_CONFIG").map(PathBuf::from)
    }

    /// The file at a path; `None` when there is none.
    fn read(path: &Path) -> Result<Option<Self>, ConfigError> {
        match fs::metadata(path) {
            Ok(_) => private::check_unchangeable(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ConfigError::file(path, error)),
        }
        let text = fs::read_to_string(path).map_err(|error| ConfigError::file(path, error))?;
        let read = |config| Some(Self { file: Some(path.to_owned()), ..config });
        toml::from_str(&text).map(read).map_err(|error: toml::de::Error| {
            // The error's own text quotes the line, which may have a password in it.
            let start = error.span().map_or(0, |span| span.start);
            let line = text.bytes().take(start).filter(|byte| *byte == b'\n').count() + 1;
            ConfigError::file(path, format!("line {line}: {}", error.message()))
        })
    }

    /// Opens a store as a ledger: the one at `url`, or else the one of this configuration, or else the file `asks.db` in
    /// the user's state directory. A file that does not exist is created, so that only this user can read or write it.
    /// The log is chained with the key in `audit_key_file`, if there is one, and the store is compared with the checkpoint in
    /// `anchor_file`.
    ///
    /// # Errors
    /// [`ConfigError::Refused`] when the store has another audit key, or is behind that checkpoint;
    /// [`ConfigError::NotPrivate`] when others can change the default store; [`ConfigError::File`] when the key or the
    /// state directory cannot be used; [`ConfigError::Store`] when the store cannot be opened.
    pub async fn open_store(
        &self,
        directories: &Directories,
        url: Option<&StoreUrl>,
    ) -> Result<Ledger, ConfigError> {
        self.open_as(directories, url, Creating::Allowed).await
    }

    /// Opens a store as [`open_store`](Self::open_store) does, and creates none: for commands about what is in a store.
    ///
    /// ```
    /// use countersign_cli::config::{Config, ConfigError, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let directories = Directories::below(home.path());
    /// let missing = Config::default().open_existing_store(&directories, None).await;
    /// assert!(matches!(missing, Err(ConfigError::NoStore { .. })));
    /// Config::default().open_store(&directories, None).await?;
    /// Config::default().open_existing_store(&directories, None).await?;
    /// # Ok::<(), ConfigError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`open_store`](Self::open_store), and [`ConfigError::NoStore`].
    pub async fn open_existing_store(
        &self,
        directories: &Directories,
        url: Option<&StoreUrl>,
    ) -> Result<Ledger, ConfigError> {
        self.open_as(directories, url, Creating::No).await
    }

    /// As [`open_existing_store`](Self::open_existing_store), before anything is compared with the audit key: for a command
    /// that shows a person why the store cannot be opened.
    ///
    /// # Errors
    /// As [`open_existing_store`](Self::open_existing_store), but for [`ConfigError::Refused`].
    pub async fn unopened_existing_store(
        &self,
        directories: &Directories,
        url: Option<&StoreUrl>,
    ) -> Result<Ledger, ConfigError> {
        self.unopened(directories, url, Creating::No).await
    }

    async fn open_as(
        &self,
        directories: &Directories,
        url: Option<&StoreUrl>,
        creating: Creating,
    ) -> Result<Ledger, ConfigError> {
        let ledger = self.unopened(directories, url, creating).await?;
        ledger.open().await?;
        Ok(ledger)
    }

    async fn unopened(
        &self,
        directories: &Directories,
        url: Option<&StoreUrl>,
        creating: Creating,
    ) -> Result<Ledger, ConfigError> {
        let key = self.audit_key_file.as_deref().map(audit_key).transpose()?;
        let mut ledger = match url.or(self.store.as_ref()) {
            Some(url) => store::open(url, creating).await?,
            None => store::open_default(directories, creating).await?,
        };
        if let Some(key) = key {
            ledger = ledger.audit_key(&key);
        }
        if let Some(path) = &self.anchor_file {
            ledger = ledger.anchor(path);
        }
        let config = self.clone();
        ledger = ledger.groups(move |name| config.members(name));
        Ok(ledger)
    }

    /// The members of a group, as the configuration file says at this moment; `None` where there is no such group, or the
    /// file cannot be read any more.
    fn members(&self, group: &str) -> Option<Vec<String>> {
        let Some(file) = &self.file else { return self.groups.get(group).cloned() };
        match Self::read(file) {
            Ok(config) => config?.groups.remove(group),
            Err(error) => {
                tracing::error!(%error, group, "the group has no members, as its file cannot be read");
                None
            }
        }
    }

    /// Tells whether other accounts write to the store, so that the name of a person is worth only what a login says.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// let directories = Directories::below("/users/ann");
    /// assert!(!Config::default().is_shared(&directories, None), "the file of one account");
    /// let server = "postgres://db.example/asks".parse()?;
    /// assert!(Config::default().is_shared(&directories, Some(&server)));
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    #[must_use]
    pub fn is_shared(&self, directories: &Directories, url: Option<&StoreUrl>) -> bool {
        self.store_url(directories, url).is_shared()
    }

    /// The settings of this configuration for rules: the groups, the journal, and whether the store belongs to the account
    /// that runs this program, which can then answer in any name.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    /// use countersign_rules::Rules;
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// let path = home.path().join("countersign.toml");
    /// std::fs::write(&path, "[groups]\nops = [\"ann\", \"bob\"]\n").unwrap();
    /// let config = Config::load(&directories, Some(&path))?;
    /// let rules = "version = 2\n[[rule]]\nid = 'a'\nask = 'deploy'\npeople = 2\napprovers = ['group:ops']";
    /// let rules = config.for_rules(Rules::builder().text("a.toml", rules), &directories, None).load();
    /// assert_eq!(rules.unwrap().of_people().len(), 1);
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn for_rules(
        &self,
        rules: RulesBuilder,
        directories: &Directories,
        url: Option<&StoreUrl>,
    ) -> RulesBuilder {
        let one_account = !self.is_shared(directories, url);
        let rules = rules.groups(self.groups.clone()).one_account(one_account);
        match self.journal.open(directories) {
            Some(journal) => rules.journal(journal),
            None => rules,
        }
    }

    /// The store that [`open_store`](Self::open_store) opens: the one at `url`, or else the one of this configuration, or
    /// else the file `asks.db` in the user's state directory. Name it where you tell a person about a store, as another
    /// environment may have another one.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// let directories = Directories::below("/users/ann");
    /// let store = Config::default().store_url(&directories, None);
    /// assert_eq!(store.to_string(), "sqlite:/users/ann/.local/state/countersign/asks.db");
    /// ```
    #[must_use]
    pub fn store_url(&self, directories: &Directories, url: Option<&StoreUrl>) -> StoreUrl {
        let named = url.or(self.store.as_ref()).cloned();
        named.unwrap_or_else(|| StoreUrl::Sqlite(store::default_file(directories)))
    }

    /// The places of this program that no tool may write unasked (rule R5): its directories, its configuration file and
    /// key where they are elsewhere, the file of the store, and the program itself; and where links lead that the user
    /// keeps under a protected name, such as `~/.claude` or `~/.bashrc`. Give each to
    /// [`RulesBuilder::protect`](countersign_rules::RulesBuilder::protect).
    ///
    /// `path` and `url` are the configuration file that was named, and the URL given to [`open_store`](Self::open_store).
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    /// use countersign::decision::ToolDecision;
    /// use countersign_rules::{RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let directories = Directories::below("/users/ann");
    /// let places = Config::default().own_places(&directories, None, Some(&"/src/asks.db".parse()?));
    /// let rules = Rules::builder().root("/src").text("a.toml", "version = 1\n[[rule]]\nid = 'a'\nallow = '*'\n");
    /// let rules = places.iter().fold(rules, |rules, place| rules.protect(place)).load()?;
    /// let args = json!({"path": "asks.db-wal"});
    /// let decided = rules.decide(&RuleCall::new("write", args.as_object().unwrap()));
    /// assert_eq!(decided.decision(), ToolDecision::Ask);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn own_places(
        &self,
        directories: &Directories,
        path: Option<&Path>,
        url: Option<&StoreUrl>,
    ) -> Vec<PathBuf> {
        let mut places = vec![directories.config().to_owned(), directories.state().to_owned()];
        places.extend(path.map(Path::to_owned));
        places.extend(self.audit_key_file.clone());
        places.extend(self.anchor_file.clone());
        places.extend(self.journal.file.clone());
        places.extend(self.inbox.proxy_secret_file.clone());
        if let StoreUrl::Sqlite(file) = self.store_url(directories, url) {
            // SQLite writes beside the file, and reads what is there.
            let named = |ending: &str| {
                let mut name = file.as_os_str().to_owned();
                name.push(ending);
                PathBuf::from(name)
            };
            places.extend(["", "-wal", "-shm", "-journal"].map(named));
        }
        places.extend(std::env::current_exe().ok());
        places.extend(linked::all_of(directories.config()));
        places.extend(linked::all_of(directories.state()));
        places.extend(linked_places(directories.home()));
        places
    }

    /// The keys that seal links and sessions for this user: 32 random bytes in the file `seal.key` of the state
    /// directory. We generate them at the first use.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change the file; [`ConfigError::File`] when it cannot be
    /// read or created, or when its content is no key.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let directories = Directories::below(home.path());
    /// let config = Config::default();
    /// config.seal_keys(&directories)?; // made
    /// config.seal_keys(&directories)?; // and read again
    /// assert_eq!(std::fs::metadata(directories.state().join("seal.key")).unwrap().len(), 32);
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn seal_keys(&self, directories: &Directories) -> Result<SealKeys, ConfigError> {
        key::seal_keys(directories)
    }

    /// The secret that clients of a guard over HTTP have to send: that in the file `path`, or else in `guard.token` in
    /// the state directory. It is 32 random bytes in hexadecimal where there is no such file yet.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change the file; [`ConfigError::File`] when it cannot be
    /// read or created, or is no text. No error repeats it.
    ///
    /// ```
    /// use countersign_cli::config::{Config, Directories};
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let (directories, config) = (Directories::below(home.path()), Config::default());
    /// let secret = config.guard_token(&directories, None)?; // made
    /// assert_eq!((secret.len(), config.guard_token(&directories, None)?), (64, secret)); // and read again
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn guard_token(
        &self,
        directories: &Directories,
        path: Option<&Path>,
    ) -> Result<String, ConfigError> {
        key::guard_token(directories, path)
    }

    /// The file that [`guard_token`](Self::guard_token) reads.
    #[must_use]
    pub fn guard_token_file(&self, directories: &Directories, path: Option<&Path>) -> PathBuf {
        key::guard_token_file(directories, path)
    }

    /// The headers in a file with secrets of other servers: one in each line, as HTTP writes it. Empty lines, and those
    /// that begin with `#`, are left out.
    ///
    /// # Errors
    /// [`ConfigError::NotPrivate`] when others can read or change the file; [`ConfigError::File`] when it cannot be
    /// read, or a line is no header. No error repeats the line.
    ///
    /// ```
    /// use countersign_cli::config::Config;
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// let file = home.path().join("headers");
    /// std::fs::write(&file, "# of the ticket server\nAuthorization: Bearer 5ecret\n").unwrap();
    /// # #[cfg(unix)]
    /// # std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    /// let headers = Config::default().headers(&file)?;
    /// assert_eq!(headers, [("Authorization".to_owned(), "Bearer 5ecret".to_owned())]);
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn headers(&self, file: &Path) -> Result<Vec<(String, String)>, ConfigError> {
        key::headers(file)
    }

    /// The name under which this user decides: that of this configuration, or else the name of the account in the user
    /// database, or else its number.
    ///
    /// Nothing proves the name. It is what the process says about its user, for a machine on which you
    /// trust the user.
    #[must_use]
    pub fn principal(&self) -> String {
        let named = self.principal.clone().filter(|name| !name.trim().is_empty());
        named.unwrap_or_else(account::name)
    }
}

/// A variable of the environment that is set and not empty.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
