//! Errors of configuration.

use std::path::{Path, PathBuf};

use countersign::error::BoxError;
use countersign::ledger::{LedgerError, StoreError};
use countersign_stores::StoreUrlError;

/// The error of a configuration that cannot be used, or of something that it names. Nothing was written.
///
/// ```
/// use countersign_cli::config::{ConfigError, StoreUrl};
/// let refused = "mysql://ann:secret@db/asks".parse::<StoreUrl>().map_err(ConfigError::from);
/// let Err(error @ ConfigError::Setting(_)) = refused else { panic!() };
/// assert!(error.to_string().contains("mysql://db/asks") && !error.to_string().contains("secret"));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file or directory cannot be read, written or understood.
    #[error("`{}`: {problem}", path.display())]
    File {
        /// The path of the file or directory.
        path: PathBuf,
        /// The problem, in words.
        problem: BoxError,
    },
    /// Another user of this machine can change a file that decides, or read a secret.
    #[error("`{}` is not safe to use: {problem}", path.display())]
    NotPrivate {
        /// The path of the file or directory, or of the directory above it that is open to others.
        path: PathBuf,
        /// The access that others have, and the command that closes it.
        problem: String,
    },
    /// A value of a setting cannot be used, such as an unknown kind of store.
    #[error("{0}")]
    Setting(String),
    /// The store cannot be opened, as its error says.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The store is not one for this process: it has another audit key, or is behind its anchor.
    #[error(transparent)]
    Refused(#[from] LedgerError),
    /// There is no store, for a command that does not create one.
    #[error(
        "there is no store at `{store}`: a hook or a guard creates it with its first ask (`countersign init` installs hooks). \
         Name another one with `--store`, or create it with `countersign asks init`"
    )]
    NoStore {
        /// The store, without a password.
        store: String,
    },
}

impl From<StoreUrlError> for ConfigError {
    fn from(error: StoreUrlError) -> Self {
        match error {
            StoreUrlError::Store(error) => Self::Store(error),
            StoreUrlError::NoStore { store } => Self::NoStore { store },
            other => Self::Setting(other.to_string()),
        }
    }
}

impl ConfigError {
    pub(super) fn file(path: &Path, problem: impl Into<BoxError>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into() }
    }

    pub(super) fn not_private(path: &Path, problem: impl Into<String>) -> Self {
        Self::NotPrivate { path: path.to_owned(), problem: problem.into() }
    }
}
