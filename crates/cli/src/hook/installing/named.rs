//! The files that a person has named for a hook (`install --file`), which no one would find again: a client may be told to
//! look anywhere.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::super::clients::Client;
use crate::config::{ConfigError, check_private, write_private};

/// The files other than those of the user, a project and the machine in which the hook of a client was installed. They are
/// kept in the state directory, so that a later command finds them.
///
/// ```
/// use std::path::{Path, PathBuf};
/// use countersign_cli::hook::{Client, HookFiles};
///
/// # let state = tempfile::tempdir().unwrap();
/// let files = HookFiles::of(Client::Claude, state.path());
/// files.add(Path::new("/etc/ci/claude.json"))?;
/// assert_eq!(files.read(), [PathBuf::from("/etc/ci/claude.json")]);
/// files.remove(Path::new("/etc/ci/claude.json"))?;
/// assert!(files.read().is_empty());
/// # Ok::<(), countersign_cli::config::ConfigError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HookFiles {
    list: PathBuf,
}

impl HookFiles {
    /// Those of this client, in this state directory.
    #[must_use]
    pub fn of(client: Client, state: &Path) -> Self {
        Self { list: state.join("hook-files").join(client.name()) }
    }

    /// The files. None where the list cannot be read, or others could have changed it.
    #[must_use]
    pub fn read(&self) -> Vec<PathBuf> {
        let text = || {
            check_private(&self.list).ok()?;
            fs::read_to_string(&self.list).ok()
        };
        text().unwrap_or_default().lines().map(PathBuf::from).collect()
    }

    /// Adds a file, unless it is there. A name that is no text, or has a line break, is not kept.
    ///
    /// # Errors
    /// [`ConfigError`] when the list cannot be written, or others could change it.
    pub fn add(&self, file: &Path) -> Result<(), ConfigError> {
        let mut files = self.read();
        let is_plain = file.to_str().is_some_and(|name| !name.contains(['\n', '\r']));
        if !is_plain || files.iter().any(|it| it == file) {
            return Ok(());
        }
        files.push(file.to_owned());
        self.write(&files)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn remove(&self, file: &Path) -> Result<(), ConfigError> {
        let mut files = self.read();
        let before = files.len();
        files.retain(|it| it != file);
        match files.len() == before {
            true => Ok(()),
            false => self.write(&files),
        }
    }

    fn write(&self, files: &[PathBuf]) -> Result<(), ConfigError> {
        if files.is_empty() {
            return match fs::remove_file(&self.list) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(ConfigError::File { path: self.list.clone(), problem: error.into() })
                }
                Ok(()) | Err(_) => Ok(()),
            };
        }
        let lines: String = files.iter().map(|file| format!("{}\n", file.display())).collect();
        write_private(&self.list, &lines)
    }
}
