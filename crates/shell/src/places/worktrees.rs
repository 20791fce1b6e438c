//! Working trees of the project's repository beside its first one, as `git worktree add` makes them.
//!
//! An agent that works on several things at once does so in several working trees of one repository: below the root, as
//! Claude Code makes them (`.claude/worktrees/NAME`), or beside it. A folder is one of them where both ends say so: its
//! `.git` is a file that leads to `ROOT/.git/worktrees/NAME`, and the `gitdir` there leads back. Neither may be a link, and
//! nothing counts that holds more than one project: a home, a temporary directory, or a folder above one.
//!
//! Only who may write `ROOT/.git` can make a folder one of these, and that place is protected.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{bounded_text, without_line_end};
use super::lexical::{inside, lexically_normal};
use countersign::ledger::Project;

/// How many working trees are looked at.
const MAX_WORKTREES: usize = 256;

/// The longest file that leads to a folder.
const MAX_POINTER: u64 = 4096;

/// The folder in which Claude Code makes working trees, below the root.
const OF_CLAUDE: &str = ".claude/worktrees";

/// The working trees of the repository in `root` beside the first one. None where the root itself is one of another
/// repository, or has none.
///
/// `home` is the user's home directory, which is no working tree whatever its files say.
///
/// ```
/// use std::path::Path;
/// use countersign_shell::worktrees;
///
/// assert!(worktrees(Path::new("/no such folder"), None).is_empty());
/// ```
#[must_use]
pub fn worktrees(root: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let folder = root.join(".git/worktrees");
    let is_folder =
        |path: &Path| fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_dir());
    // Most projects have none.
    let Ok(entries) = fs::read_dir(&folder) else { return Vec::new() };
    if !is_folder(&folder) || !is_folder(&root.join(".git")) {
        return Vec::new();
    }
    let names = entries.flatten().take(MAX_WORKTREES).map(|entry| entry.path());
    names.filter(|own| is_folder(own)).filter_map(|own| verified(&own, root, home)).collect()
}

/// The working tree that a folder `ROOT/.git/worktrees/NAME` is about, if that leads back to it.
fn verified(own: &Path, root: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let dot = pointer(&own.join("gitdir"), own, "")?;
    if dot.file_name()? != ".git" {
        return None;
    }
    let tree = dot.parent()?;
    let is_real = fs::canonicalize(tree).is_ok_and(|found| found == tree);
    let leads_back = pointer(&dot, tree, "gitdir: ").is_some_and(|found| found == own);
    let is_one = is_real && leads_back && !root.starts_with(tree) && !is_wide(tree, home);
    is_one.then(|| tree.to_owned())
}

/// The path that a regular file holds behind some words.
pub(super) fn pointer(file: &Path, folder: &Path, before: &str) -> Option<PathBuf> {
    if !fs::symlink_metadata(file).ok()?.file_type().is_file() {
        return None;
    }
    let text = bounded_text(file, MAX_POINTER).ok()??;
    let path = without_line_end(text.strip_prefix(before)?);
    (!path.is_empty() && !path.contains('\n')).then(|| lexically_normal(&folder.join(path)))
}

/// Returns `true` if a folder is a home or a temporary directory, or above one.
fn is_wide(tree: &Path, home: Option<&Path>) -> bool {
    let temporary = ["/tmp", "/var/tmp", "/dev/shm"].map(PathBuf::from);
    let mut shared = temporary.into_iter().chain([std::env::temp_dir()]);
    Project::too_wide(tree).is_some()
        || shared.any(|place| place.starts_with(tree))
        || home.is_some_and(|home| home.starts_with(tree))
}

/// Returns `true` if a path is one of Claude Code's own working trees, by its text, or below one. Only such paths are looked up,
/// of all that are below the root.
///
/// ```
/// use std::path::Path;
/// use countersign_shell::may_be_in_own_worktree;
///
/// let is_one = |path: &str| may_be_in_own_worktree(Path::new(path), Path::new("/w"));
/// assert!(is_one("/w/.claude/worktrees/fix-1/src/lib.rs"));
/// assert!(!is_one("/w/.claude/worktrees") && !is_one("/w/sub/.claude/worktrees/fix-1"));
/// ```
#[must_use]
pub fn may_be_in_own_worktree(path: &Path, root: &Path) -> bool {
    let inner = inside(path, root).and_then(|inner| inside(inner, Path::new(OF_CLAUDE)));
    inner.is_some_and(|inner| !inner.as_os_str().is_empty())
}

/// The innermost of these working trees that a path is in.
///
/// ```
/// use std::path::{Path, PathBuf};
/// use countersign_shell::worktree_of;
///
/// let all = [PathBuf::from("/w/a"), PathBuf::from("/w/a/b")];
/// assert_eq!(worktree_of(Path::new("/w/a/b/c"), &all), Some(Path::new("/w/a/b")));
/// assert_eq!(worktree_of(Path::new("/w/ab"), &all), None);
/// ```
#[must_use]
pub fn worktree_of<'t>(path: &Path, all: &'t [PathBuf]) -> Option<&'t Path> {
    let found = all.iter().map(PathBuf::as_path).filter(|tree| inside(path, tree).is_some());
    found.max_by_key(|tree| tree.as_os_str().len())
}
