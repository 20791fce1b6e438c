//! Checks that a path still names the file that was opened (rule L9). SQLite keeps using a file that was removed, so
//! two processes that opened one path could each have a ledger of their own.
//!
//! For example, process A has opened `asks.db`, a script restores a backup by `mv backup.db asks.db`, and process B
//! opens `asks.db`. A continues with the removed file, and B with the new one. A never sees what a person approves in
//! B. A call may be claimed in both, and run twice. So each operation compares what is at the path with what was
//! opened.
//!
//! The identity is the device and the inode. If a file is copied back over the same inode (`cp backup.db asks.db`), we
//! do not notice it here. SQLite's checksums in the log file catch most of that, and the digests of rows in the log the
//! rest (rule L8).

use std::io;
use std::path::{Path, PathBuf};

use countersign::error::BoxError;

/// The paths of a database file and of the two files beside it, with their identities when the database was opened.
#[derive(Debug)]
pub(super) struct File {
    parts: Vec<(PathBuf, Identity)>,
}

#[cfg(unix)]
type Identity = (u64, u64);

/// On other systems only the existence of the file is checked.
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
    /// The file that was just opened at this path. SQLite creates the files beside it with the first read, so call this
    /// again after that.
    ///
    /// We check the path itself and not only its target, so we notice a symbolic link that is turned to another
    /// file. The files beside it are named after the target, as SQLite does.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        // Absolute, so that it stays valid when the process changes its working directory.
        let path = std::path::absolute(path)?;
        let real = path.canonicalize()?;
        let beside = ["-wal", "-shm"].map(|end| {
            let mut name = real.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        });
        let mut parts = vec![(path.clone(), identity(&path)?)];
        // The second and third file may not exist yet.
        let found = beside.into_iter().filter_map(|it| identity(&it).ok().map(|id| (it, id)));
        parts.extend(found);
        Ok(Self { parts })
    }

    /// An error if one of the files was removed or replaced since.
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
