//! The copy of the workspace that ships with the example.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Copies the messy workspace, and the folder that its link points to, to a new temporary directory.
pub(crate) fn copy() -> io::Result<PathBuf> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"));
    copy_into(example, &tempfile::Builder::new().prefix("countersign-").tempdir()?.keep())
}

/// As [`copy`], from the folder of the example to an existing, empty directory.
pub(crate) fn copy_into(example: &Path, place: &Path) -> io::Result<PathBuf> {
    for part in ["outside", "workspace"] {
        copy_folder(&example.join(part), &place.join(part))?;
    }
    let workspace = place.join("workspace");
    // The link is created here and not shipped, as not every checkout and archive preserves links.
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
