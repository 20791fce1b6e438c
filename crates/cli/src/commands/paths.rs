//! Paths that name the same file from any directory.

use std::path::{Path, PathBuf};

use countersign::show;

use crate::Context;
use crate::output::CommandError;

/// A path for people: below the home directory with `~`.
pub(crate) fn shown(path: &Path, context: &Context) -> String {
    let text = match path.strip_prefix(context.directories.home()) {
        Ok(below) => Path::new("~").join(below).display().to_string(),
        Err(_) => path.display().to_string(),
    };
    show::escape(&text)
}

pub(crate) fn absolute(path: &Path) -> Result<String, CommandError> {
    let problem = |problem: String| CommandError::Usage(format!("`{}`: {problem}", path.display()));
    let absolute = std::path::absolute(path).map_err(|error| problem(error.to_string()))?;
    let absolute = absolute.into_os_string().into_string();
    absolute.map_err(|_| problem("the path is not UTF-8".to_owned()))
}

/// The URL of a store in this file. SQLite's own names are no paths, and `file:` URIs have a syntax of their own: both
/// stay as they are.
pub(crate) fn sqlite_url(path: &Path) -> Result<String, CommandError> {
    let text = path.to_string_lossy();
    match text.starts_with(':') || text.starts_with("file:") {
        true => Ok(format!("sqlite:{text}")),
        false => Ok(format!("sqlite:{}", absolute(path)?)),
    }
}

/// Tells which places lie in a project. A directory that has the home in it is none, and neither is the root of the disk.
pub(crate) fn in_project(project: &Path, home: &Path) -> impl Fn(&Path) -> bool {
    let project = without_links(project);
    let is_wide = project.parent().is_none() || without_links(home).starts_with(&project);
    move |place| !is_wide && without_links(place).starts_with(&project)
}

/// A path without links, as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = path.ancestors().find_map(|folder| {
        let rest = path.strip_prefix(folder).ok()?;
        Some(folder.canonicalize().ok()?.join(rest))
    });
    found.unwrap_or(path)
}
