//! Small files of a repository or of a configuration, read within bounds.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::{Path, PathBuf};

/// The longest file that points to the folder of a repository.
const MAX_POINTER: u64 = 4096;

/// The content of a regular file; `None` if there is none. An error if it is longer than `most`, is no regular file, or
/// cannot be read.
pub(super) fn bounded(path: &Path, most: u64) -> Result<Option<Vec<u8>>> {
    let Some(file) = opened(path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= most => Ok(Some(bytes)),
        _ => Err(ErrorKind::FileTooLarge.into()),
    }
}

/// Opens a regular file; `None` if there is none.
pub(crate) fn opened(path: &Path) -> Result<Option<File>> {
    // A pipe would be waited for, and so it is not opened.
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
        Ok(about) if !about.is_file() => Err(ErrorKind::InvalidData.into()),
        Ok(_) => File::open(path).map(Some),
    }
}

/// The text of a regular file, with the replacement character for what is not UTF-8; `None` if there is none.
///
/// A pipe or a device of this name is an error, and is not waited for.
///
/// # Errors
/// The file has more than `most` bytes, is no regular file, or cannot be read.
///
/// ```
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join(".gitignore");
/// assert_eq!(countersign_shell::bounded_text(&file, 100)?, None);
/// std::fs::write(&file, "target")?;
/// assert_eq!(countersign_shell::bounded_text(&file, 100)?.as_deref(), Some("target"));
/// assert!(countersign_shell::bounded_text(&file, 3).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn bounded_text(path: &Path, most: u64) -> Result<Option<String>> {
    Ok(bounded(path, most)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// The path in a file of git, which takes nothing but the end of the line away: a blank is a part of the path.
pub(super) fn without_line_end(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// A text without what git takes for blanks around it, which are fewer than those of Unicode.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// The folder of a repository, by its `.git`: that folder, or the one that a file of this name points to, as in a
/// working tree beside the first one and in a submodule.
pub(super) fn git_folder(dot: &Path) -> Result<PathBuf> {
    if std::fs::metadata(dot)?.is_dir() {
        return Ok(dot.to_owned());
    }
    let unknown = || Error::from(ErrorKind::InvalidData);
    let pointer = bounded_text(dot, MAX_POINTER)?.ok_or_else(unknown)?;
    let folder = without_line_end(pointer.strip_prefix("gitdir: ").ok_or_else(unknown)?);
    Ok(dot.parent().ok_or_else(unknown)?.join(folder))
}

/// Returns `true` if git may take a folder for a repository, or for one whose files are in a `.git` of it. `HEAD` may be a link
/// that leads nowhere, and `objects` and `refs` may lie in the folder that the file `commondir` names.
pub(super) fn may_be_repository(at: &Path) -> bool {
    [".git", "HEAD"].iter().any(|name| std::fs::symlink_metadata(at.join(name)).is_ok())
}
