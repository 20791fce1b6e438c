//! The sealing key, and the key of the log.
//!
//! The key decides whose links and sessions are believed, so no one else may read it, and there must be one: two
//! processes that start at the same time and each make a key would refuse each other's tokens. A hard link to the final
//! name fails where the name exists, which makes one of them the winner; the other reads the winner's key. Renaming
//! would replace it.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::{ConfigError, Directories, private};
use crate::seal::SealKeys;

/// The length of a generated key in bytes.
const LENGTH: usize = 32;

/// The key in the state directory, generated when there is none.
pub(super) fn seal_keys(directories: &Directories) -> Result<SealKeys, ConfigError> {
    private::directory(directories.state())?;
    let path = directories.state().join("seal.key");
    if !path.exists() {
        generate(&path)?;
    }
    private::check_secret(&path)?;
    let secret = fs::read(&path).map_err(|error| ConfigError::file(&path, error))?;
    SealKeys::new("local", secret).map_err(|error| ConfigError::file(&path, error))
}

/// Writes a key to a file of its own, and gives that the name at once, so that no other process reads half a key. Of two
/// processes that do this, one gives the name.
fn generate(path: &Path) -> Result<(), ConfigError> {
    let error = |error: io::Error| ConfigError::file(path, error);
    let mut secret = [0; LENGTH];
    getrandom::fill(&mut secret).map_err(|problem| ConfigError::file(path, problem))?;
    let unfinished = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let file = private::create(&unfinished).map_err(error)?;
    let mut file = file.ok_or_else(|| error(io::ErrorKind::AlreadyExists.into()))?;
    let written = file.write_all(&secret).and_then(|()| file.sync_all());
    let named = written.and_then(|()| fs::hard_link(&unfinished, path));
    let _ = fs::remove_file(&unfinished);
    match named {
        Err(problem) if problem.kind() != io::ErrorKind::AlreadyExists => Err(error(problem)),
        _ => Ok(()),
    }
}

/// The bytes of a file, as the key of the log.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    fs::read(path).map_err(|error| ConfigError::file(path, error))
}
