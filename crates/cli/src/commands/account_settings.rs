//! Where a running hook has its settings from: its own command line, the files that this names, and the user database.
//!
//! The environment of a hook is the client's, and a project can set it: Gemini CLI loads the `.env` of a project, and
//! Claude Code the `env` of its `.claude/settings.json`. So `install` writes into the entry what it has found, and the
//! running hook looks nowhere else. What the configuration file says stays there, as the entry names the file: a store
//! may have a password, and the owner may change it.

use std::path::{Path, PathBuf};

use clap::Args;
use countersign_cli::config::{Config, ConfigError, Directories, StoreUrl};

use crate::Context;
use crate::output::CommandError;
use crate::paths::{absolute, sqlite_url};

/// The settings of a hook that are not about the call.
#[derive(Args, Clone, Default)]
pub(crate) struct HookSettings {
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
    store: Option<String>,
}

impl HookSettings {
    /// The user's directories, by these options and the user database.
    pub(super) fn directories(&self) -> Result<Directories, ConfigError> {
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

    /// The home directory whose settings programs are expected to read. An entry that names none was written by hand, and
    /// takes `HOME` where it lies outside of the project.
    pub(super) fn expected_home(&self, directories: &Directories, root: &Path) -> PathBuf {
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
    pub(super) fn config(
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
    pub(super) fn store(&self) -> Result<Option<StoreUrl>, ConfigError> {
        Ok(self.store.as_deref().map(str::parse).transpose()?)
    }

    /// These options, with what is found for the user who installs the hook, so that the hook finds the same. `file` is
    /// the configuration file that the hook is given.
    pub(super) fn of_user(
        mut self,
        context: &Context,
        file: Option<&Path>,
    ) -> Result<Self, CommandError> {
        let found = &context.directories;
        self.home.get_or_insert_with(|| found.home().to_owned());
        self.config_dir.get_or_insert_with(|| found.config().to_owned());
        self.state_dir.get_or_insert_with(|| found.state().to_owned());
        // Settings that are not in the file come from the environment, which the hook does not look at.
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

    /// These options without what an account has anyway, for a file that others may read as well.
    pub(super) fn without_defaults(mut self) -> Self {
        let Ok(usual) = Directories::of_account() else { return self };
        self.home = self.home.filter(|home| home != usual.home());
        self.config_dir = self.config_dir.filter(|config| config != usual.config());
        self.state_dir = self.state_dir.filter(|state| state != usual.state());
        self.principal = self.principal.filter(|name| *name != Config::default().principal());
        self
    }

    /// The options as words, with absolute paths.
    pub(super) fn into_words(self) -> Result<Vec<String>, CommandError> {
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

/// The URL of a store that the environment names, as the entry has it. A password has no place there: the client's
/// configuration, and the list of processes, are read by others.
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
