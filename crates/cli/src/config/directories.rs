//! The directories of a user: configuration, state and home.

use std::env;
use std::path::{Path, PathBuf};

use super::{ConfigError, account};

/// The user's directories for configuration and for state, by the XDG base directory specification. On Windows they are
/// below `%APPDATA%` and `%LOCALAPPDATA%`.
///
/// ```
/// use std::path::Path;
/// use countersign_cli::config::Directories;
///
/// let directories = Directories::below("/srv/agent");
/// assert_eq!(directories.config(), Path::new("/srv/agent/.config/countersign"));
/// assert_eq!(directories.state(), Path::new("/srv/agent/.local/state/countersign"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directories {
    config: PathBuf,
    state: PathBuf,
    home: PathBuf,
}

impl Directories {
    /// The directories of the user who runs this process: `countersign` below `$XDG_CONFIG_HOME` or `~/.config`, and
    /// below `$XDG_STATE_HOME` or `~/.local/state`. A variable with a relative path is ignored, as the specification
    /// demands.
    ///
    /// # Errors
    /// [`ConfigError::Setting`] when the user has no home directory.
    ///
    /// ```
    /// use countersign_cli::config::Directories;
    /// let directories = Directories::of_user()?;
    /// assert!(directories.config().ends_with("countersign") && directories.home().is_absolute());
    /// # Ok::<(), countersign_cli::config::ConfigError>(())
    /// ```
    pub fn of_user() -> Result<Self, ConfigError> {
        let home = env::home_dir().filter(|home| home.is_absolute()).ok_or_else(|| {
            ConfigError::Setting("the user has no home directory: set `HOME`".to_owned())
        })?;
        let mut this = Self::below(home);
        let base =
            |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let windows = |name: &str| cfg!(windows).then(|| base(name)).flatten();
        if let Some(config) = base("XDG_CONFIG_HOME").or_else(|| windows("APPDATA")) {
            this.config = config.join("countersign");
        }
        if let Some(state) = base("XDG_STATE_HOME").or_else(|| windows("LOCALAPPDATA")) {
            this.state = state.join("countersign");
        }
        Ok(this)
    }

    /// The directories below the home of this account in the user database, without a look at the environment. For
    /// programs that another one starts with an environment of its own, such as a hook.
    ///
    /// # Errors
    /// [`ConfigError::Setting`] when the account has no home directory.
    ///
    /// ```
    /// use countersign_cli::config::Directories;
    /// assert!(Directories::of_account().is_ok_and(|it| it.config().starts_with(it.home())));
    /// ```
    pub fn of_account() -> Result<Self, ConfigError> {
        account::home().map(Self::below).ok_or_else(|| {
            let problem =
                "this account has no home directory in the user database: name one with `--home`";
            ConfigError::Setting(problem.to_owned())
        })
    }

    /// The directories below another home directory, without a look at the environment.
    #[must_use]
    pub fn below(home: impl AsRef<Path>) -> Self {
        let home = home.as_ref();
        Self {
            config: home.join(".config").join("countersign"),
            state: home.join(".local").join("state").join("countersign"),
            home: home.to_owned(),
        }
    }

    /// Replaces the directory of configuration and rules.
    ///
    /// ```
    /// use countersign_cli::config::Directories;
    /// let directories = Directories::below("/u/ann").with_config("/srv/ann/rules").with_state("/var/ann");
    /// assert!(directories.config().ends_with("rules") && directories.state().ends_with("ann"));
    /// ```
    #[must_use]
    pub fn with_config(mut self, directory: impl Into<PathBuf>) -> Self {
        self.config = directory.into();
        self
    }

    /// Replaces the directory of the default store and the sealing key.
    #[must_use]
    pub fn with_state(mut self, directory: impl Into<PathBuf>) -> Self {
        self.state = directory.into();
        self
    }

    /// The directory of the user's configuration and rules.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// The directory of the default store and the sealing key.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The user's home directory, below which other programs keep their settings.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }
}
