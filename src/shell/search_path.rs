//! Which file a program's name stands for.

use std::path::{Path, PathBuf};

use super::paths::{Workspace, normal};

/// The directories in which programs are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// `None` looks at no file.
    folders: Option<Vec<PathBuf>>,
}

impl SearchPath {
    /// The directories of the variable `PATH`.
    #[must_use]
    pub fn from_env() -> Self {
        let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect());
        Self { folders: Some(folders.unwrap_or_default()) }
    }

    /// A search path of these directories.
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { folders: Some(folders.into_iter().map(Into::into).collect()) }
    }

    /// Believes that every name stands for the program that is known by it. For tests, and for commands that will run
    /// on another machine.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { folders: None }
    }

    /// Why a name may stand for a file that tools can write, if it may.
    ///
    /// A program that is in none of the directories is no danger: nothing runs.
    pub(super) fn problem(&self, name: &str, workspace: &Workspace) -> Option<String> {
        let folders = self.folders.as_ref()?;
        for folder in folders {
            if !folder.is_absolute() || workspace.is_writable(&normal(folder)) {
                return Some(format!(
                    "`{}` is searched for programs, and tools may write there",
                    folder.display()
                ));
            }
            let file = folder.join(name);
            let Ok(found) = std::fs::canonicalize(&file) else { continue };
            if !found.is_file() {
                continue;
            }
            return workspace
                .is_writable(&found)
                .then(|| format!("`{name}` is `{}`, which tools may write", found.display()));
        }
        None
    }
}

/// The name of a program that was given with its path, if the path is one that programs are installed in.
pub(super) fn installed_name(path: &str) -> Option<&str> {
    let folders = [
        "/bin",
        "/usr/bin",
        "/usr/local/bin",
        "/sbin",
        "/usr/sbin",
        "/usr/local/sbin",
        "/opt/homebrew/bin",
    ];
    let (folder, name) = path.rsplit_once('/')?;
    (folders.contains(&folder) && Path::new(path) == normal(Path::new(path))).then_some(name)
}
