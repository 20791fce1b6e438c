//! The project in which grants hold, and which rules are about.

use std::path::{Path, PathBuf};

use countersign::ledger::{Ledger, Project};
use countersign_rules::Rules;

use crate::Context;
use crate::output::CommandError;

/// The ledger in the project of a directory. A home directory or `/` is no project: then grants hold for the session only.
pub(crate) fn in_project(ledger: Ledger, directory: &Path) -> Ledger {
    match Project::here(directory) {
        Ok(project) => ledger.project(project),
        Err(_) => ledger,
    }
}

/// The directory that was given, or else the working directory. A client that starts programs without a shell passes on
/// a `~` as it is.
pub(crate) fn root(given: Option<&Path>, context: &Context) -> Result<PathBuf, CommandError> {
    let Some(path) = given else {
        return std::env::current_dir().map_err(|error| CommandError::Usage(error.to_string()));
    };
    let problem =
        |problem: &str| CommandError::Usage(format!("`--project {}`: {problem}", path.display()));
    let root = below_home(path, context);
    let root = std::path::absolute(root).map_err(|error| problem(&error.to_string()))?;
    match root.is_dir() {
        true => Ok(root),
        false => Err(problem("there is no such directory")),
    }
}

/// The path, where a `~` in front is the home directory.
pub(crate) fn below_home(path: &Path, context: &Context) -> PathBuf {
    match path.strip_prefix("~") {
        Ok(below) => context.directories.home().join(below).components().collect(),
        Err(_) => path.to_owned(),
    }
}

/// Refuses rules that mean another thing in each project, where no project was given and the working directory is none.
/// `why` says why it is none.
///
/// Clients start programs anywhere, some of them in `/`: there `within = "."` would be the whole disk.
pub(crate) fn check(rules: &Rules, root: &Path, why: &str) -> Result<(), CommandError> {
    let about_root = rules.about_root();
    let Some(first) = about_root.first() else { return Ok(()) };
    let more = match about_root.len() - 1 {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(CommandError::Usage(format!(
        "{first}{more}: is about a project, and the working directory `{}` is none: {why}. Give the project by \
         `--project DIRECTORY`",
        root.display()
    )))
}
