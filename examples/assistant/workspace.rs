//! The copy of the workspace that ships with the example.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copies the messy workspace to a new temporary directory, and beside it what its link points to.
pub(crate) fn copy() -> io::Result<PathBuf> {
    copy_into(&tempfile::Builder::new().prefix("countersign-").tempdir()?.keep())
}

/// The same, to a directory that is there and empty.
pub(crate) fn copy_into(place: &Path) -> io::Result<PathBuf> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/assistant");
    for part in ["outside", "workspace"] {
        copy_folder(&example.join(part), &place.join(part))?;
    }
    let workspace = place.join("workspace");
    // Made here and not shipped: not every checkout and archive keeps a link as it is.
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside", workspace.join("shared"))?;
    Ok(workspace)
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}
