//! The sealing key, the key of the log, and the secrets of guards over HTTP and of the inbox.
//!
//! The key decides whose links and sessions we believe, so no one else may read it. And there must be only one: two
//! processes that start at the same time and each make a key would refuse each other's tokens. So each makes a file,
//! and a hard link to it under the final name. The link fails where the name exists: one process wins, and the other
//! reads the winner's key. (Renaming would replace it.) The same holds for the secret of guards, which you give to
//! clients once.

use std::fs;
use std::io::{self, Write as _};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use super::{ConfigError, Directories, private};
use countersign::args::hex;
use countersign::seal::SealKeys;
use countersign_inbox::Inbox;

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
    text(&path)
}

/// A line of text that only this user can read; 32 random bytes in hexadecimal where there is no such file.
pub(super) fn text(path: &Path) -> Result<String, ConfigError> {
    let text = String::from_utf8(secret(path, hexadecimal)?);
    let text = text.map_err(|_| ConfigError::file(path, "the secret in it is no text"))?;
    Ok(text.trim().to_owned())
}

/// Puts another line of 32 random bytes in the place of one, or of none.
pub(super) fn replace(path: &Path) -> Result<String, ConfigError> {
    let mut secret = [0; LENGTH];
    getrandom::fill(&mut secret).map_err(|problem| ConfigError::file(path, problem))?;
    let line = hex(&secret);
    private::write(path, &format!("{line}\n"))?;
    Ok(line)
}

fn hexadecimal(random: &[u8]) -> Vec<u8> {
    format!("{}\n", hex(random)).into_bytes()
}

/// The file of the secret of guards.
pub(super) fn guard_token_file(directories: &Directories, file: Option<&Path>) -> PathBuf {
    file.map_or_else(|| directories.state().join("guard.token"), Path::to_owned)
}

/// The headers in a file that only this user can read: one in each line, as HTTP writes it.
pub(super) fn headers(path: &Path) -> Result<Vec<(String, String)>, ConfigError> {
    private::check_secret(path, private::SecretOrigin::Written)?;
    let text = fs::read_to_string(path).map_err(|error| ConfigError::file(path, error))?;
    let lines = text.lines().enumerate();
    let said = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    said.map(|(at, line)| {
        let header = line.split_once(':').filter(|(name, _)| !name.trim().is_empty());
        let (name, value) = header.ok_or_else(|| {
            let line = at.saturating_add(1);
            ConfigError::file(path, format!("line {line} is no header: write `Name: value`"))
        })?;
        Ok((name.trim().to_owned(), value.trim().to_owned()))
    })
    .collect()
}

/// A line of text that a person has written into a file that only this user can read.
pub(super) fn line(path: &Path) -> Result<String, ConfigError> {
    private::check_secret(path, private::SecretOrigin::Written)?;
    let text = fs::read_to_string(path).map_err(|error| ConfigError::file(path, error))?;
    Ok(text.trim().to_owned())
}

/// A line of text that only this user can read, which another program has, too.
pub(super) fn shared(path: &Path) -> Result<String, ConfigError> {
    let secret = line(path)?;
    let least = Inbox::SHORTEST_SECRET;
    if secret.len() < least {
        let problem = format!("the secret in it has fewer than {least} characters");
        return Err(ConfigError::file(path, problem));
    }
    Ok(secret)
}

/// The content of a file that only this user can read. Where there is none, it is made of random bytes.
fn secret(path: &Path, content: impl Fn(&[u8]) -> Vec<u8>) -> Result<Vec<u8>, ConfigError> {
    if !path.exists() {
        generate(path, content)?;
    }
    private::check_secret(path, private::SecretOrigin::Generated)?;
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

/// The fewest bytes of a key of the log, as a shorter one can be found out from the log, and the most.
const SIZES: RangeInclusive<u64> = 16..=64 << 10;

/// The bytes of a file that only this user can read, as the key of the log: 16 bytes to 64 KiB.
///
/// # Errors
/// The file is not there, is no plain file, is shorter or longer, or other users can read or change it.
pub fn audit_key(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let error = |error: io::Error| ConfigError::file(path, error);
    let found = fs::metadata(path).map_err(error)?;
    if !found.is_file() || !SIZES.contains(&found.len()) {
        let problem = "an audit key is a file of 16 bytes to 64 KiB: `umask 077; head -c 32 /dev/urandom > FILE` makes one";
        return Err(ConfigError::file(path, problem));
    }
    private::check_secret(path, private::SecretOrigin::Written)?;
    fs::read(path).map_err(error)
}
