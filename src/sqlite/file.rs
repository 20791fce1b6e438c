//! Whether a path still is the file that was opened (rule L9). SQLite goes on with a file that was removed, so that two
//! processes at one path would each have a ledger of their own.

use std::io;
use std::path::{Path, PathBuf};

use crate::error::BoxError;

/// The file of a database, and the two beside it, as they were when it was opened.
#[derive(Debug)]
pub(super) struct File {
    parts: Vec<(PathBuf, Identity)>,
}

#[cfg(unix)]
type Identity = (u64, u64);

/// Elsewhere a file that is open is not removed or replaced.
#[cfg(not(unix))]
type Identity = ();

#[cfg(unix)]
fn identity(path: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::metadata(path)?;
    Ok((found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<Identity> {
    std::fs::metadata(path).map(drop)
}

impl File {
    /// The file that was just opened at this path. The files beside it are there once something was read.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        // As it is found from any folder that the process may go to.
        let path = std::path::absolute(path)?;
        let real = path.canonicalize()?;
        let beside = ["-wal", "-shm"].map(|end| {
            let mut name = real.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        });
        let mut parts = vec![(path.clone(), identity(&path)?)];
        // A file that is only read may have none beside it.
        let found = beside.into_iter().filter_map(|it| identity(&it).ok().map(|id| (it, id)));
        parts.extend(found);
        Ok(Self { parts })
    }

    /// Whether everything is where it was.
    pub(super) fn check(&self) -> Result<(), BoxError> {
        for (path, opened) in &self.parts {
            let what = match identity(path) {
                Ok(found) if found == *opened => continue,
                Ok(_) => "another file is in its place".to_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    "it was removed".to_owned()
                }
                Err(error) => error.to_string(),
            };
            return Err(format!(
                "`{}` is no longer the file that was opened: {what}. Nothing is read, decided or claimed here any more: \
                 open the store anew",
                path.display()
            )
            .into());
        }
        Ok(())
    }
}
