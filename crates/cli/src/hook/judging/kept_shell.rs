//! The directory of a shell that a client keeps for all commands of a session.
//!
//! Some clients run the commands of a session in one shell ([`keeps_shell`](crate::hook::clients::spec::ToolForm)), and send the
//! directory of the session with each call. After `cd docs`, such a shell runs `cat notes` in `docs`, and the payload does not say
//! so. So the hook [notes](crate::hook::asking::kept_shell) where a command that may run leaves the shell, and judges each later
//! command in all these directories.
//!
//! | command, in `/w` | the shell may then be in `/w`, and |
//! |---|---|
//! | `cd docs && ls` | `/w/docs` |
//! | `(cd docs && ls)` | nowhere else |
//! | `cd "$x"` | anywhere: a later command is asked about, unless it begins with `cd /w &&` |

use std::path::{Path, PathBuf};

use super::shells;
use crate::hook::payload::HookCall;
use countersign_shell::{
    Classifier, Commands, Dialect, Join, Preset, SearchPath, Stage, Workspace,
};

/// A directory that the client's shell may be in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ShellDirectory {
    /// No command says which one it is.
    Unknown,
    Known(PathBuf),
}

impl ShellDirectory {
    /// The directory of a note. One that is no text, or was not read whole, is not known.
    pub(crate) fn of_text(text: &str) -> Self {
        if text.is_empty() { Self::Unknown } else { Self::Known(text.into()) }
    }

    /// The text of its note.
    pub(crate) fn text(&self) -> &str {
        self.known().and_then(Path::to_str).unwrap_or_default()
    }

    pub(crate) fn known(&self) -> Option<&Path> {
        match self {
            Self::Known(directory) => Some(directory),
            Self::Unknown => None,
        }
    }
}

/// Returns `true` if a command runs where it says, wherever it begins: `cd /w && make`. Where that `cd` fails, nothing runs.
pub(crate) fn says_where(command: &str) -> bool {
    let Ok(commands) = Commands::parse(command, Dialect::Bash) else { return false };
    let [first, others @ ..] = commands.pipelines() else { return true };
    let [Stage::Simple(first)] = first.stages() else { return false };
    let goes = matches!(first.argv().as_deref(), Some(["cd", path]) if path.starts_with('/'));
    let is_alone = first.redirections().is_empty() && first.assignments().is_empty();
    goes && is_alone && others.iter().all(|it| it.join() == Join::And)
}

/// The directories in which a command may leave the shell, but for that of the call and those that the shell may be in
/// already.
pub(crate) fn left_in(
    call: &HookCall,
    already: &[ShellDirectory],
    command: &str,
) -> Vec<ShellDirectory> {
    // Most commands stay where they are, and are not judged here.
    if !shells::changes_directory(command) {
        return Vec::new();
    }
    let starts = already.iter().filter_map(ShellDirectory::known).chain([call.directory.as_path()]);
    let mut found = Vec::new();
    for start in starts {
        let classifier = Classifier::new(Workspace::new(start), Preset::Developer)
            .with_search_path(SearchPath::unchecked());
        match classifier.judge(command, Dialect::Bash).directories_after() {
            Some(after) => {
                found.extend(
                    after.iter().map(|it| ShellDirectory::of_text(it.to_str().unwrap_or_default())),
                );
            }
            None => found.push(ShellDirectory::Unknown),
        }
    }
    found.sort();
    found.dedup();
    found.retain(|it| it.known() != Some(&*call.directory) && !already.contains(it));
    found
}
