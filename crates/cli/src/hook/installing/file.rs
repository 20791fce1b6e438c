//! Reads and replaces files of the user, with a copy of what was there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Installed;
use crate::config::replace_file;
use crate::hook::clients::files::{InstallError, without_mark};

/// The text of a file of this user that we will write anew with a change; `None` where there is none. A file that is no
/// text is an error, as its content would be lost.
///
/// # Errors
/// [`InstallError`] when the file is no text in UTF-8, or cannot be read.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("settings.json");
/// assert_eq!(countersign_cli::hook::editable_text(&file)?, None);
/// std::fs::write(&file, "\u{feff}{}")?;
/// assert_eq!(countersign_cli::hook::editable_text(&file)?.as_deref(), Some("{}"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn editable_text(file: &Path) -> Result<Option<String>, InstallError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(without_mark(text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(InstallError::new(file, "it is no text in UTF-8: save it as such"))
        }
        Err(error) => Err(InstallError::new(file, error)),
    }
}

/// Replaces a file in one step. Makes a copy before, if the caller wants one, and never removes it.
pub(super) fn replace(path: &Path, text: &str, copies: bool) -> Result<Installed, InstallError> {
    let error = |error: io::Error| InstallError::new(path, error);
    let real = target(path);
    let before = match fs::read(&real) {
        Ok(before) => Some(before),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => None,
        Err(problem) => return Err(error(problem)),
    };
    if before.as_deref() == Some(text.as_bytes()) {
        return Ok(Installed { changed: false, backup: None, switched: false });
    }
    let backup = before.filter(|_| copies).map(|_| copy(&real)).transpose().map_err(error)?;
    replace_file(&real, text).map_err(error)?;
    Ok(Installed { changed: true, backup, switched: false })
}

/// The file that a path leads to, also by a link to a file that is not there: it is made where the link says.
fn target(path: &Path) -> PathBuf {
    let by_link = || Some(path.parent()?.join(fs::read_link(path).ok()?));
    path.canonicalize().ok().or_else(by_link).unwrap_or_else(|| path.to_owned())
}

/// Removes a file, after a copy was made. A link to it stays.
pub(super) fn remove(path: &Path) -> Result<Installed, InstallError> {
    let error = |error: io::Error| InstallError::new(path, error);
    let real = target(path);
    let backup = copy(&real).map_err(error)?;
    fs::remove_file(&real).map_err(error)?;
    Ok(Installed { changed: true, backup: Some(backup), switched: false })
}

/// Puts a copy back in the place of the file, in one step.
pub(super) fn restore(path: &Path, backup: &Path) -> Result<Installed, InstallError> {
    let real = target(path);
    fs::rename(backup, real).map_err(|error| InstallError::new(path, error))?;
    Ok(Installed { changed: true, backup: None, switched: false })
}

/// The copies that were made of a file, the newest first: their names have the time.
pub(super) fn backups(path: &Path) -> Result<Vec<PathBuf>, InstallError> {
    let real = target(path);
    let begins = format!(".{}.", real.file_name().unwrap_or_default().to_string_lossy());
    let is_backup = |it: &PathBuf| {
        let name = it.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.starts_with(&begins) && name.ends_with(".backup")
    };
    let Some(folder) = real.parent() else { return Ok(Vec::new()) };
    let entries = fs::read_dir(folder).map_err(|error| InstallError::new(path, error))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|it| it.path()).filter(is_backup).collect();
    found.sort();
    found.reverse();
    Ok(found)
}

fn copy(path: &Path) -> io::Result<PathBuf> {
    let backup = beside(path, "backup");
    fs::copy(path, &backup)?;
    Ok(backup)
}

/// A name beside a file that no other file has.
fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    path.with_file_name(format!(".{name}.{}.{what}", uuid::Uuid::now_v7()))
}
