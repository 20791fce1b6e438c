//! Files that only this user can change, or only this user can read.
//!
//! A file is as safe as every directory above it: a user who can rename a directory can put another one in its place.
//! So each directory up to the root has to belong to this user or to root, and others may not write it, unless its
//! sticky bit forbids them to rename the files of others (as in `/tmp`).

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use super::ConfigError;
pub(crate) use countersign_stores::create_private as create;

/// Creates a directory, with those above it, that only this user may enter; or checks the one that exists.
pub(crate) fn directory(path: &Path) -> Result<(), ConfigError> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| ConfigError::file(path, error))?;
    check_unchangeable(path)
}

/// Replaces a file of the user, with its directory, so that only this user can read or write it.
///
/// ```
/// # let home = tempfile::tempdir().unwrap();
/// # let home = home.path().canonicalize().unwrap();
/// let file = home.join("state/notes");
/// countersign_cli::config::write_private(&file, "mine")?;
/// assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
/// # Ok::<(), countersign_cli::config::ConfigError>(())
/// ```
///
/// # Errors
/// [`ConfigError`] when the file cannot be written, or others can change its directory.
pub fn write(path: &Path, text: &str) -> Result<(), ConfigError> {
    let error = |problem: io::Error| ConfigError::file(path, problem);
    if let Some(folder) = path.parent() {
        directory(folder)?;
    }
    let unfinished = path.with_extension(format!("{}.new", uuid::Uuid::now_v7()));
    let file = create(&unfinished).map_err(error)?;
    let mut file = file.ok_or_else(|| error(io::ErrorKind::AlreadyExists.into()))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&unfinished, path));
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(error)
}

/// Replaces a file in one step, and keeps its permissions. A link stays a link: the file that it leads to is replaced.
///
/// We write the new text beside the file and then rename it over the file. So a program that reads at that moment reads
/// one of the two, and a full disk leaves the old one.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// let file = folder.path().join("new folder/settings.json");
/// countersign_cli::config::replace_file(&file, "{}")?;
/// countersign_cli::config::replace_file(&file, "{\"a\": 1}")?;
/// assert_eq!(std::fs::read_to_string(&file)?, "{\"a\": 1}");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The error of the system. Then the file is as it was.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder)?;
    }
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unfinished = real.with_file_name(format!(".{name}.{}.new", uuid::Uuid::now_v7()));
    let written = fs::write(&unfinished, text).and_then(|()| {
        if let Ok(found) = fs::metadata(&real) {
            fs::set_permissions(&unfinished, found.permissions())?;
        }
        fs::rename(&unfinished, &real)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// An error when another user can change what is at this path.
///
/// We follow all links, and check the real path and each directory above it: `/srv/shared/ann/config.toml` is not safe
/// where everyone can rename `ann`.
#[cfg(unix)]
pub(crate) fn check_unchangeable(path: &Path) -> Result<(), ConfigError> {
    let real = path.canonicalize().map_err(|error| ConfigError::file(path, error))?;
    for (place, at) in real.ancestors().enumerate() {
        check_one(at, place > 0)?;
    }
    Ok(())
}

#[cfg(unix)]
fn check_one(path: &Path, is_above: bool) -> Result<(), ConfigError> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).map_err(|error| ConfigError::file(path, error))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own && found.uid() != 0 {
        let problem = format!("it belongs to another user (uid {})", found.uid());
        return Err(ConfigError::not_private(path, problem));
    }
    let sticky = is_above && found.mode() & 0o1000 != 0;
    // A group with the number of its user is, by the convention of most distributions, that user's own.
    let group = found.mode() & 0o020 != 0 && found.gid() != found.uid();
    let who = match found.mode() & 0o002 != 0 {
        true => "every user",
        false if group => "its group",
        false => return Ok(()),
    };
    if sticky {
        return Ok(());
    }
    let problem = format!("{who} can write it; run `chmod go-w {}`", path.display());
    Err(ConfigError::not_private(path, problem))
}

#[cfg(not(unix))]
pub(crate) fn check_unchangeable(path: &Path) -> Result<(), ConfigError> {
    // The directories of a user's profile are protected by the system's access lists.
    path.canonicalize().map(drop).map_err(|error| ConfigError::file(path, error))
}

/// The origin of the content of a file with a secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretOrigin {
    Generated,
    /// The user has written it.
    Written,
}

/// An error when another user can read or change this file.
pub(super) fn check_secret(path: &Path, origin: SecretOrigin) -> Result<(), ConfigError> {
    check_unchangeable(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let found = fs::metadata(path).map_err(|error| ConfigError::file(path, error))?;
        if found.mode() & 0o077 != 0 {
            let anew = match origin {
                SecretOrigin::Generated => "remove it, and a new one is generated, or ",
                SecretOrigin::Written => "",
            };
            let path_text = path.display();
            let problem = format!("others can read this secret: {anew}run `chmod 600 {path_text}`");
            return Err(ConfigError::not_private(path, problem));
        }
    }
    Ok(())
}
