//! The root of the project, which paths in rules are relative to.

use std::path::{Path, PathBuf};

use countersign_cli::hook::Client;
use countersign_rules::Rules;
use countersign_shell::{worktree_of, worktrees};

/// The root, and why it may be another one.
pub(super) struct Root {
    pub(super) directory: PathBuf,
    pub(super) doubt: Option<String>,
}

/// The directory of the session, where a client runs its hooks in another one; otherwise the current directory.
///
/// Claude Code runs its hooks in the directory that a command has changed to. There, paths in rules would mean other files
/// after each `cd`, and a rule about `secrets/` could be left behind. Claude Code names the project in a variable, but a
/// file of the project can set that variable, too: `/` as a root would make every path one of the project. So the variable
/// counts only if the directory of the call lies within it, or in another working tree of its repository. And it must be
/// no place with more than one project: a home, or a folder above the repository of the call that is no repository.
pub(super) fn of(client: Client, call: Option<&Path>, home: &Path) -> Result<Root, String> {
    let current = std::env::current_dir().map_err(|error| error.to_string())?;
    // A client may name it through a link, and then writes its paths so.
    let named = call.filter(|call| call.is_absolute() && real(call) == current);
    let current = named.map_or(current, Path::to_owned);
    let Some(variable) = client.root_variable() else {
        return Ok(Root { directory: current, doubt: None });
    };
    let named = std::env::var_os(variable).map(PathBuf::from);
    let Some(named) = named.filter(|path| path.is_absolute()) else {
        return Ok(Root { directory: current, doubt: None });
    };
    let (project, within) = (real(&named), real(call.unwrap_or(&current)));
    let is_wide = project.parent().is_none() || has_home(&project, home);
    let own = repository(&within).filter(|own| *own != project && own.starts_with(&project));
    let own = own.filter(|_| !is_repository(&project));
    let is_within = || {
        let all = worktrees(&project, Some(home));
        within.starts_with(&project) || worktree_of(&within, &all).is_some()
    };
    if !is_wide && own.is_none() && is_within() {
        return Ok(Root { directory: named, doubt: None });
    }
    let doubt = (project != real(&current)).then(|| {
        format!(
            "`{variable}` is {}, which is not known to be the project of the call",
            named.display()
        )
    });
    Ok(Root { directory: own.filter(|_| !is_wide).map_or(current, Path::to_owned), doubt })
}

/// The remark that rules about a project say nothing here, as the root is wider than any project: `within = "."`
/// would be the whole disk, or all that the user has. `None` where no rule is about the root, and where a person has
/// given it.
pub(super) fn too_wide(
    rules: &Rules,
    (is_given, root): (bool, &Path),
    home: &Path,
) -> Option<String> {
    if is_given {
        return None;
    }
    let real_root = real(root);
    let why = match real_root.parent() {
        None => "it is the root of the file system",
        Some(_) if has_home(&real_root, home) => "it is a home directory, or above one",
        Some(_) => return None,
    };
    let about_root = rules.about_root();
    let first = about_root.first()?;
    let more = match about_root.len() {
        1 => " is".to_owned(),
        more => format!(" and {} more are", more - 1),
    };
    Some(format!(
        "{first}{more} about a project, and the session is in `{}`, which is none: {why}",
        root.display()
    ))
}

/// The repository that a directory is in.
fn repository(directory: &Path) -> Option<&Path> {
    directory.ancestors().find(|folder| is_repository(folder))
}

fn is_repository(directory: &Path) -> bool {
    directory.join(".git").symlink_metadata().is_ok()
}

/// Returns `true` if a directory is a home, or has one within it.
fn has_home(directory: &Path, home: &Path) -> bool {
    let is_one_of = |paths: &[&str], path: &Path| paths.iter().any(|it| path == Path::new(it));
    real(home).starts_with(directory)
        || is_one_of(&["/root", "/home", "/Users"], directory)
        || directory.parent().is_some_and(|parent| is_one_of(&["/home", "/Users"], parent))
}

/// A path without links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
