//! The sealing key, the key of the log, and the secret of guards over HTTP.
//!
//! The key decides whose links and sessions are believed, so no one else may read it, and there must be one: two
//! processes that start at the same time and each make a key would refuse each other's tokens. A hard link to the final
//! name fails where the name exists, which makes one of them the winner; the other reads the winner's key. Renaming
//! would replace it. The same holds for the secret of guards, which clients are configured with once.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{ConfigError, Directories, private};
use crate::args::hex;
use crate::seal::SealKeys;

/// The length of a generated key in bytes.
const LENGTH: usize = 32;

/// The key in the state directory, generated when there is none.
pub(super) fn seal_keys(directories: &Directories) -> Result<SealKeys, ConfigError> {
    private::directory(directories.state())?;
    let path = directories.state().join("seal.key");
    let secret = secret(&path, |random| random.to_vec())?;
    SealKeys::new("local", secret).map_err(|error| ConfigError::file(&path, error))
}

/// The secret in this file, or else in the state directory, generated when there is none: a line of text.
pub(super) fn guard_token(
    directories: &Directories,
    file: Option<&Path>,
) -> Result<String, ConfigError> {
    let path = guard_token_file(directories, file);
    if file.is_none() {
        private::directory(directories.state())?;
    }
    let hexadecimal = |random: &[u8]| format!("{}\n", hex(random)).into_bytes();
    let text = String::from_utf8(secret(&path, hexadecimal)?);
    let text = text.map_err(|_| ConfigError::file(&path, "the secret in it is no text"))?;
    Ok(text.trim().to_owned())
}

/// The file of the secret of guards.
pub(super) fn guard_token_file(directories: &Directories, file: Option<&Path>) -> PathBuf {
    file.map_or_else(|| directories.state().join("guard.token"), Path::to_owned)
}

/// The content of a file that only this user can read. Where there is none, it is made of random bytes.
fn secret(path: &Path, content: impl Fn(&[u8]) -> Vec<u8>) -> Result<Vec<u8>, ConfigError> {
    if !path.exists() {
        generate(path, content)?;
    }
    private::check_secret(path)?;
    fs::read(path).map_err(|error| ConfigError::file(path, error))
}

/// Writes a key to a file of its own, and gives that the name at once, so that no other process reads half a key. Of two
/// processes that do this, one gives the name.
fn generate(path: &Path, content: impl Fn(&[u8]) -> Vec<u8>) -> Result<(), ConfigError> {
    let error = |error: io::Error| ConfigError::file(path, error);
    let mut secret = [0; LENGTH];
    getrandom::fill(&mut secret).map_err(|problem| ConfigError::file(path, problem))?;
    let unfinished = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let file = private::create(&unfinished).map_err(error)?;
    let mut file = file.ok_or_else(|| error(io::ErrorKind::AlreadyExists.into()))?;
    let written = file.write_all(&content(&secret)).and_then(|()| file.sync_all());
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
