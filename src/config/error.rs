//! Errors of configuration.

use std::path::{Path, PathBuf};

use crate::error::BoxError;
use crate::ledger::StoreError;

/// Why a configuration, or what it names, cannot be used. Nothing was written.
///
/// ```
/// use countersign::config::{ConfigError, StoreUrl};
/// let refused = "mysql://ann:secret@db/asks".parse::<StoreUrl>();
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
        /// What is wrong with it.
        problem: BoxError,
    },
    /// Another user of this machine can change a file that decides, or read a secret.
    #[error("`{}` is not safe to use: {problem}", path.display())]
    NotPrivate {
        /// The path of the file or directory, or of the directory above it that is open to others.
        path: PathBuf,
        /// Who can do what, and the command that closes it.
        problem: String,
    },
    /// A value of a setting cannot be used, such as an unknown kind of store.
    #[error("{0}")]
    Setting(String),
    /// The store cannot be opened, as its error says.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ConfigError {
    pub(super) fn file(path: &Path, problem: impl Into<BoxError>) -> Self {
        Self::File { path: path.to_owned(), problem: problem.into() }
    }

    pub(super) fn not_private(path: &Path, problem: impl Into<String>) -> Self {
        Self::NotPrivate { path: path.to_owned(), problem: problem.into() }
    }
}
