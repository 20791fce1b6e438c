//! Files that only this user can read.
//!
//! We create files with mode 600 in folders of mode 700. If we changed the mode afterwards, another user could open a
//! file in between. To replace a file, we write a new one, flush it to the disk and rename it: a crash leaves the old
//! content or the new.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

/// For how many bytes there is a place before a file is read.
const MAX_RESERVED: usize = 1 << 20;

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Creates the folder of a file, for this user alone.
fn folder(path: &Path) -> io::Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else {
        return Ok(());
    };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Replaces a file as a whole: a reader sees the old content or the new one.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    folder(path)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let next = Path::new(&name);
    let _ = std::fs::remove_file(next);
    let mut file = options().write(true).create_new(true).open(next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(next, path)
}

/// Reads a file that only this user can read or write; `None` where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if !is_private(&metadata) || !belongs_to_user(&metadata) {
        return Err(io::Error::other(format!(
            "`{}` can be read or written by other users: make it your own, with mode 600",
            path.display()
        )));
    }
    // The size is known, and a whole file would ask for it again.
    let size = usize::try_from(metadata.len()).unwrap_or_default().min(MAX_RESERVED);
    let mut bytes = Vec::with_capacity(size + 1);
    file.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Opens a file to append to it. A file that others can read or write is refused.
pub(crate) fn append(path: &Path) -> io::Result<File> {
    folder(path)?;
    let file = options().append(true).create(true).open(path)?;
    if !is_private(&file.metadata()?) {
        return Err(io::Error::other(
            "other users can read or write the file: make it private (mode 600)",
        ));
    }
    Ok(file)
}

/// Returns `true` if a file is one of the machine, which this user cannot change: it and each folder above it belong
/// to root, and no one else may write them. Links are followed, and the folders of a link have to be the machine's,
/// too.
#[cfg(unix)]
pub(super) fn is_of_machine(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let own = std::fs::metadata("/proc/self").ok().map(|own| own.uid());
    let is_root = own.is_none_or(|uid| uid == 0);
    let is_fixed = |place: &Path| {
        let about = std::fs::symlink_metadata(place);
        about.is_ok_and(|it| it.uid() == 0 && it.mode() & 0o022 == 0)
    };
    let real = [Some(path), path.parent()].map(|it| std::fs::canonicalize(it?).ok());
    let is_whole = |it: &Option<_>| {
        it.as_ref().is_some_and(|it: &std::path::PathBuf| it.ancestors().all(is_fixed))
    };
    path.is_absolute() && !is_root && real.iter().all(is_whole)
}

#[cfg(not(unix))]
pub(super) fn is_of_machine(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn is_private(metadata: &Metadata) -> bool {
    std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 == 0
}

#[cfg(not(unix))]
fn is_private(_: &Metadata) -> bool {
    true
}

/// Returns `true` if a file belongs to the user that runs this process.
#[cfg(unix)]
pub(super) fn belongs_to_user(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // The owner of one's own process, or else of one's home directory.
    let own = std::fs::metadata("/proc/self")
        .ok()
        .or_else(|| std::fs::metadata(std::env::home_dir()?).ok());
    own.is_some_and(|own| own.uid() == metadata.uid())
}

#[cfg(not(unix))]
pub(super) fn belongs_to_user(_: &Metadata) -> bool {
    true
}
