//! Files of stores, which only their user can read.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Creates an empty file that only this user can read or write. `None` when there is a file already, which may be shared
/// with a group on purpose.
///
/// # Errors
/// The file cannot be created.
///
/// ```
/// use countersign_stores::create_private;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("asks.db");
/// assert!(create_private(&path)?.is_some());
/// assert!(create_private(&path)?.is_none(), "it is there");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn create_private(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// `:memory:` and `file:` URIs are SQLite's own names, and no paths.
#[cfg(feature = "sqlite")]
pub(super) fn is_name(path: &Path) -> bool {
    let text = path.to_string_lossy();
    text.starts_with(':') || text.starts_with("file:")
}
