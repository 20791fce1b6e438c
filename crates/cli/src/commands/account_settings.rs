//! The settings of a program that a client starts. It takes them from its command line, from the files that the command
//! line names, and from the user database (rule P1).
//!
//! The environment of a hook or a guard is the client's, and a project can set it: Gemini CLI loads the `.env` of a
//! project, and Claude Code the `env` of its `.claude/settings.json`. So `install` and `guard init` write into the entry
//! what they have found, and the running program looks nowhere else. They write the path of the configuration file and
//! not what it says: a store may have a password, and you may change the file later.

use std::path::{Path, PathBuf};

use clap::Args;
use countersign_cli::config::{Config, ConfigError, Directories, StoreUrl};

use crate::Context;
use crate::output::CommandError;
use crate::paths::{absolute, sqlite_url};

/// The settings of a hook or a guard that are not about the call.
#[derive(Args, Clone, Default)]
pub(crate) struct AccountSettings {
    /// The user's home directory; by default that of the account. The environment does not count
    #[arg(long, value_name = "DIRECTORY")]
    home: Option<PathBuf>,
    /// The directory of configuration and rules; by default `.config/countersign` in the home directory
    #[arg(long, value_name = "DIRECTORY")]
    config_dir: Option<PathBuf>,
    /// The directory of the default store; by default `.local/state/countersign` in the home directory
    #[arg(long, value_name = "DIRECTORY")]
    state_dir: Option<PathBuf>,
    /// The person that the agent works for; by default that of the configuration, or the name of the account
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// The key of the store's log; by default that of the configuration
    #[arg(long, value_name = "FILE")]
    audit_key_file: Option<PathBuf>,
    /// The store of asks; by default that of the configuration
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

impl AccountSettings {
    /// The user's directories, by these options and the user database.
    pub(crate) fn directories(&self) -> Result<Directories, ConfigError> {
        let given = [&self.home, &self.config_dir, &self.state_dir];
        if let Some(relative) = given.into_iter().flatten().find(|path| path.is_relative()) {
            let problem = format!("`{}` is no absolute path", relative.display());
            return Err(ConfigError::Setting(problem));
        }
        let mut directories = match &self.home {
            Some(home) => Directories::below(home),
            None => Directories::of_account()?,
        };
        if let Some(config) = &self.config_dir {
            directories = directories.with_config(config);
        }
        if let Some(state) = &self.state_dir {
            directories = directories.with_state(state);
        }
        Ok(directories)
    }

    /// The home directory whose settings programs are expected to read. A person has written an entry that names none.
    /// For it we take `HOME`, if that lies outside of the project.
    pub(crate) fn expected_home(&self, directories: &Directories, root: &Path) -> PathBuf {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let own = directories.home().to_owned();
        match std::env::var_os("HOME").map(PathBuf::from) {
            Some(home)
                if self.home.is_none()
                    && home.is_absolute()
                    && !real(&home).starts_with(real(root)) =>
            {
                home
            }
            _ => own,
        }
    }

    /// The configuration of the file, with what these options replace.
    pub(crate) fn config(
        &self,
        directories: &Directories,
        file: Option<&Path>,
    ) -> Result<Config, ConfigError> {
        let mut config = Config::of_file(directories, file)?;
        if self.principal.is_some() {
            config.principal.clone_from(&self.principal);
        }
        if self.audit_key_file.is_some() {
            config.audit_key_file.clone_from(&self.audit_key_file);
        }
        Ok(config)
    }

    /// The store that these options name.
    pub(crate) fn store(&self) -> Result<Option<StoreUrl>, ConfigError> {
        Ok(self.store.as_deref().map(str::parse).transpose()?)
    }

    /// The settings of a program that a client starts: those of these options and of the user database.
    pub(crate) fn context(&self, file: Option<PathBuf>) -> Result<Context, CommandError> {
        let directories = self.directories()?;
        let config = self.config(&directories, file.as_deref())?;
        Ok(Context { directories, config, config_file: file })
    }

    /// The variables of the environment that are settings of other commands, and count for nothing here, each with the
    /// option that takes its place. `file` is the configuration file of the command line.
    pub(crate) fn without_effect(
        &self,
        directories: &Directories,
        file: Option<&Path>,
    ) -> Vec<(&'static str, &'static str)> {
        let config = directories.config().parent();
        let state = directories.state().parent();
        let named: [(_, _, bool, Option<&Path>); 7] = [
            ("COUNTERSIGN_STORE", "--store URL", self.store.is_some(), None),
            ("COUNTERSIGN_CONFIG", "--config FILE", file.is_some(), None),
            ("COUNTERSIGN_PRINCIPAL", "--principal NAME", self.principal.is_some(), None),
            (
                "COUNTERSIGN_AUDIT_KEY_FILE",
                "--audit-key-file FILE",
                self.audit_key_file.is_some(),
                None,
            ),
            ("XDG_CONFIG_HOME", "--config-dir DIRECTORY", self.config_dir.is_some(), config),
            ("XDG_STATE_HOME", "--state-dir DIRECTORY", self.state_dir.is_some(), state),
            ("HOME", "--home DIRECTORY", self.home.is_some(), Some(directories.home())),
        ];
        let set = named.into_iter().filter(|(name, _, is_given, usual)| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.is_some_and(|value| !is_given && Some(Path::new(&value)) != *usual)
        });
        set.map(|(name, option, _, _)| (name, option)).collect()
    }

    /// These options, with what is found for the user who installs the hook, so that the hook finds the same. `file` is
    /// the configuration file that the hook is given.
    pub(crate) fn of_user(
        mut self,
        context: &Context,
        file: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let found = &context.directories;
        self.home.get_or_insert_with(|| found.home().to_owned());
        self.config_dir.get_or_insert_with(|| found.config().to_owned());
        self.state_dir.get_or_insert_with(|| found.state().to_owned());
        // The other settings come from the environment, which the hook does not look at.
        let written = Config::of_file(&self.directories()?, file)?;
        if written.principal.is_none() || written.principal != context.config.principal {
            self.principal.get_or_insert_with(|| context.config.principal());
        }
        if written.audit_key_file != context.config.audit_key_file {
            self.audit_key_file = self.audit_key_file.or(context.config.audit_key_file.clone());
        }
        if self.store.is_none()
            && written.store != context.config.store
            && let Some(store) = &context.config.store
        {
            self.store = Some(written_out(store)?);
        }
        Ok(self)
    }

    /// These options without those that are found for the user anyway: the directories, and the name if it is this one.
    pub(crate) fn without_places(self, found: &str) -> Self {
        let principal = self.principal.filter(|name| name != found);
        Self { home: None, config_dir: None, state_dir: None, principal, ..self }
    }

    /// The words of the command of a guard, with what is found for the user who writes it: none where that is what an
    /// account has anyway.
    pub(crate) fn for_guard(self, context: &Context) -> Result<Vec<String>, CommandError> {
        let file = context.config_file.as_deref();
        let mut words = self.of_user(context, file)?.without_defaults().into_words()?;
        if let Some(file) = file {
            words.extend(["--config".to_owned(), absolute(file)?]);
        }
        Ok(words)
    }

    /// These options without what an account has anyway, for a file that others may read as well.
    pub(crate) fn without_defaults(mut self) -> Self {
        let Ok(own) = Directories::of_account() else { return self };
        let usual = self.home.as_ref().map_or_else(|| own.clone(), Directories::below);
        self.home = self.home.filter(|home| home != own.home());
        self.config_dir = self.config_dir.filter(|config| config != usual.config());
        self.state_dir = self.state_dir.filter(|state| state != usual.state());
        self.principal = self.principal.filter(|name| *name != Config::default().principal());
        self
    }

    /// The options as words, with absolute paths.
    pub(crate) fn into_words(self) -> Result<Vec<String>, CommandError> {
        let mut words = Vec::new();
        let mut add = |option: &str, value: String| words.extend([option.to_owned(), value]);
        for (option, path) in [
            ("--home", self.home),
            ("--config-dir", self.config_dir),
            ("--state-dir", self.state_dir),
            ("--audit-key-file", self.audit_key_file),
        ] {
            if let Some(path) = path {
                add(option, absolute(&path)?);
            }
        }
        if let Some(name) = self.principal {
            add("--principal", name);
        }
        if let Some(store) = self.store {
            let store = match store.parse::<StoreUrl>()? {
                StoreUrl::Sqlite(path) if path.is_relative() => sqlite_url(&path)?,
                _ => store,
            };
            add("--store", store);
        }
        Ok(words)
    }
}

/// The URL of a store that the environment names, as the entry has it. It must have no password: others can read
/// the client's configuration, and the list of processes.
fn written_out(store: &StoreUrl) -> Result<String, CommandError> {
    match store {
        StoreUrl::Sqlite(path) => sqlite_url(path),
        StoreUrl::Postgres(url) if has_password(url) => Err(CommandError::Usage(
            "the store that `COUNTERSIGN_STORE` names has a password, which would stand in the client's configuration: \
             write `store` into the configuration file, and unset the variable"
                .to_owned(),
        )),
        StoreUrl::Postgres(url) => Ok(url.clone()),
        other => Ok(other.to_string()),
    }
}

fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = rest.split(['/', '?']).next().and_then(|host| host.rsplit_once('@'));
    user.is_some_and(|(user, _)| user.contains(':')) || rest.contains("password")
}
