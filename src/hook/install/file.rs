//! Replaces files of the user, with a copy of what was there.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{InstallError, Installed};

/// Replaces a file in one step, and keeps its permissions.
///
/// The new text is written beside the file and then renamed over it, so a client that reads at that moment reads one of
/// the two files, and a full disk leaves the old one. The copy is made before and is never removed.
pub(super) fn replace(path: &Path, text: &str) -> Result<Installed, InstallError> {
    let error = |error: io::Error| InstallError::new(path, error);
    // A link stays a link: the file that it leads to is replaced.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let before = match fs::read(&real) {
        Ok(before) => Some(before),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => None,
        Err(problem) => return Err(error(problem)),
    };
    if before.as_deref() == Some(text.as_bytes()) {
        return Ok(Installed { changed: false, backup: None, switched: false });
    }
    if let Some(folder) = real.parent() {
        fs::create_dir_all(folder).map_err(error)?;
    }
    let backup = before.map(|_| copy(&real)).transpose().map_err(error)?;
    let unfinished = beside(&real, "new");
    let written = fs::write(&unfinished, text).and_then(|()| {
        if let Ok(found) = fs::metadata(&real) {
            fs::set_permissions(&unfinished, found.permissions())?;
        }
        fs::rename(&unfinished, &real)
    });
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(error)?;
    Ok(Installed { changed: true, backup, switched: false })
}

/// Removes a file, after a copy was made.
pub(super) fn remove(path: &Path) -> Result<Installed, InstallError> {
    let error = |error: io::Error| InstallError::new(path, error);
    let backup = copy(path).map_err(error)?;
    fs::remove_file(path).map_err(error)?;
    Ok(Installed { changed: true, backup: Some(backup), switched: false })
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
