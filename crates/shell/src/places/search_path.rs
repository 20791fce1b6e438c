//! Resolves the name of a program to its file, and checks that tools cannot write the file.
//!
//! The table says what `ls` does; which file runs is another question. If any directory that is searched *before* the
//! program is found can be written by tools, a call could put another `ls` there first. So each directory up to the
//! found file has to be absolute and not writable by tools, with links resolved, and the file itself as well. A later
//! directory does not matter. A folder of `/proc` or `/dev` is another one for each process.
//!
//! A program that is not installed has no file and needs none: nothing would run.

use std::path::{Path, PathBuf};

use super::lexical::lexically_normal;
use super::paths::Workspace;
use super::shims::is_shim;

/// The directories in which programs are looked up.
///
/// ```
/// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
///
/// let classifier = Classifier::new(Workspace::lexical("/w"), Preset::Developer)
///     .with_search_path(SearchPath::new(["/w/bin", "/usr/bin"]));
/// let judgement = classifier.judge("ls", Dialect::Bash);
/// assert_eq!(judgement.to_string(), "ask: `/w/bin` is searched for programs, and tools may write there");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchPath {
    /// `None` checks no file at all.
    folders: Option<Vec<PathBuf>>,
}

impl SearchPath {
    /// The directories of the environment variable `PATH`, read now.
    #[must_use]
    pub fn from_env() -> Self {
        let folders = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect());
        Self { folders: Some(folders.unwrap_or_default()) }
    }

    /// The given directories, in this order.
    ///
    /// ```
    /// use countersign_shell::{Classifier, Dialect, Preset, SearchPath, Workspace};
    ///
    /// // Found in no folder: nothing would run, so the missing file raises no question.
    /// let nowhere = SearchPath::new(["/nonexistent"]);
    /// let reader = Classifier::new(Workspace::lexical("/w"), Preset::Reader).with_search_path(nowhere);
    /// assert!(reader.judge("ls", Dialect::Bash).decision() == countersign::decision::ToolDecision::Allow);
    /// ```
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = impl Into<PathBuf>>) -> Self {
        Self { folders: Some(folders.into_iter().map(Into::into).collect()) }
    }

    /// Trusts that every name stands for the program that is usually installed under it. For tests, and for commands
    /// that will run on another machine.
    #[must_use]
    pub fn unchecked() -> Self {
        Self { folders: None }
    }

    /// The folders in which tools may put a program of any name, each with the reason, if a folder that they cannot write is
    /// searched behind it. Each program there is asked about, as another one may be found before it.
    ///
    /// ```
    /// use std::path::PathBuf;
    ///
    /// use countersign_shell::{SearchPath, Workspace};
    ///
    /// let open = |folders: &[&str]| SearchPath::new(folders.iter().copied()).open_folders(&Workspace::lexical("/w"));
    /// assert_eq!(open(&["/w/bin", "/"]), [(PathBuf::from("/w/bin"), "tools may write there")]);
    /// assert!(open(&["/", "/w/bin"]).is_empty(), "no program is behind it");
    /// ```
    #[must_use]
    pub fn open_folders(&self, workspace: &Workspace) -> Vec<(PathBuf, &'static str)> {
        let folders = self.folders.iter().flatten();
        let mut judged: Vec<_> =
            folders.map(|folder| (folder, unsafe_folder(folder, workspace))).collect();
        let last = judged.iter().rposition(|(folder, why)| why.is_none() && folder.is_dir());
        judged.truncate(last.unwrap_or(0));
        judged.into_iter().filter_map(|(folder, why)| Some((folder.clone(), why?))).collect()
    }

    /// The first file of this name, also one that tools may write.
    pub(crate) fn first(&self, name: &str) -> Option<PathBuf> {
        let mut files = self.folders.iter().flatten().map(|folder| folder.join(name));
        files.find(|file| file.is_file())
    }

    /// Looks a program up.
    pub(crate) fn find(&self, name: &str, workspace: &Workspace) -> ProgramFile {
        let Some(folders) = &self.folders else { return ProgramFile::Nothing };
        for folder in folders {
            if let Some(why) = unsafe_folder(folder, workspace) {
                let folder = folder.display();
                return ProgramFile::Problem(format!(
                    "`{folder}` is searched for programs, and {why}"
                ));
            }
            let file = folder.join(name);
            // Most folders lack the file, which one system call tells. Resolving links takes one a part of the path.
            if std::fs::symlink_metadata(&file).is_err() {
                continue;
            }
            let Ok(found) = std::fs::canonicalize(&file) else { continue };
            if !found.is_file() {
                continue;
            }
            return match workspace.is_writable(&found) {
                true => ProgramFile::Problem(format!(
                    "`{name}` is `{}`, which tools may write",
                    found.display()
                )),
                false if is_shim(&file, &found) => ProgramFile::Shim(found),
                false => ProgramFile::File(found),
            };
        }
        ProgramFile::Nothing
    }
}

/// Why another file than the one that is found now may run. A folder is one that tools may write also where a link leads
/// to it.
fn unsafe_folder(folder: &Path, workspace: &Workspace) -> Option<&'static str> {
    let written = lexically_normal(folder);
    if !folder.is_absolute() || workspace.is_writable(&written) {
        return Some("tools may write there");
    }
    // `/proc/self/cwd` and `/dev/fd/3` are other folders in each process.
    if ["/proc", "/dev"].iter().any(|it| written.starts_with(it)) {
        return Some("it is another folder for each program");
    }
    let real = std::fs::canonicalize(folder).ok()?;
    (real != written && workspace.is_writable(&real)).then_some("it leads to where tools may write")
}

/// The result of the search for a program.
pub(crate) enum ProgramFile {
    /// The file, with links resolved.
    File(PathBuf),
    /// The file of a version manager, which starts the program that a file of the folder names.
    Shim(PathBuf),
    /// No such program, so that nothing runs; or no files are examined.
    Nothing,
    /// The name may stand for a file that tools can write.
    Problem(String),
}

/// The file name of a program that was given with its path, if the path is one that systems install programs in.
pub(crate) fn installed_name(path: &str) -> Option<&str> {
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
    (folders.contains(&folder) && Path::new(path) == lexically_normal(Path::new(path)))
        .then_some(name)
}

/// The name of a program, if it is one of these folders of programs: environments of the workspace that the commands have
/// activated. It is code of the workspace, also as `git` or `ls`.
pub(crate) fn activated_name<'n>(given: &'n str, activated: &[PathBuf]) -> Option<&'n str> {
    let has = |folder: &PathBuf| std::fs::symlink_metadata(folder.join(given)).is_ok();
    (!given.contains('/') && activated.iter().any(has)).then_some(given)
}

/// The same for a path that begins with a dot or at the root of the file system: `../gradlew`, `/srv/shop/.venv/bin/pytest`. It may
/// lead out of the workspace.
pub(crate) fn project_name_elsewhere(path: &str) -> Option<&str> {
    if !path.starts_with(['/', '.']) {
        return None;
    }
    path.match_indices('/').find_map(|(at, _)| project_name(path.get(at + 1..)?))
}

/// The name of a program of the project's own environment, which is given with its path: the wrapper of a build tool,
/// and what a package manager has installed in the workspace. Such a program is code of the workspace, so that it may
/// only do what a build does, however its entry describes it.
pub(crate) fn project_name(path: &str) -> Option<&str> {
    let path = path.strip_prefix("./").unwrap_or(path);
    match path {
        "gradlew" => return Some("gradle"),
        "mvnw" => return Some("mvn"),
        "bin/rails" | "bin/rake" | "bin/rspec" | "bin/rubocop" => return path.strip_prefix("bin/"),
        _ => {}
    }
    let folders = ["node_modules/.bin/", ".venv/bin/", "venv/bin/", "vendor/bin/"];
    let name = folders.iter().find_map(|folder| path.strip_prefix(folder))?;
    (!name.is_empty() && !name.contains('/') && path != name).then_some(name)
}
