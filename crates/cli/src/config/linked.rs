//! The targets of links with a protected name, which are protected, too.
//!
//! The floor of the rules knows settings of shells, version control and agents by their names (rule R5). Many people
//! keep these files in a folder of their own, and links under the usual names: `~/.claude` leads to `~/dots/claude`, for
//! example. A tool that writes `~/dots/claude/settings.json` names nothing that the list knows, and writes the same
//! file.

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::path::{Path, PathBuf};

use countersign_shell::protected::is_protected;

/// The number of links and folders that are looked at. A home directory has a few hundred down to this depth.
const MAX_ENTRIES: usize = 65_536;

/// The levels of names that are looked at: `.config/opencode/opencode.json`.
const MAX_DEPTH: usize = 3;

/// The targets of links with a protected name in a home directory or a project (rule R5), also if nothing is there
/// yet. We look at names three levels deep, in folders with a dot in front or with a protected name. A folder that cannot be
/// read is among the results, and if there are too many links and folders to look at, the folder itself is, so that everything in
/// it is protected.
///
/// Give each to [`RulesBuilder::protect`](countersign_rules::RulesBuilder::protect). Those of the user are among the
/// [own places](super::Config::own_places).
///
/// ```
/// use countersign_cli::config::linked_places;
///
/// # #[cfg(unix)] {
/// # let home = tempfile::tempdir()?;
/// # let home = home.path().canonicalize()?;
/// std::fs::create_dir_all(home.join("dots/claude"))?;
/// std::os::unix::fs::symlink("dots/claude", home.join(".claude"))?;
/// std::os::unix::fs::symlink("dots", home.join("other"))?;
/// assert_eq!(linked_places(&home), [home.join("dots/claude")]);
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn linked_places(folder: &Path) -> Vec<PathBuf> {
    let is_kept = |path: &Path| path.strip_prefix(folder).is_ok_and(is_protected);
    // `.config` is no protected name, and has some in it.
    let is_entered = |path: &Path, depth: usize| {
        let name = path.file_name().and_then(|name| name.to_str());
        is_kept(path) || depth == 1 && name.is_some_and(|name| name.starts_with('.'))
    };
    links(folder, (MAX_DEPTH, MAX_ENTRIES), &is_kept, &is_entered)
}

/// The targets of the links in a folder of which every file is protected.
pub(super) fn all_of(folder: &Path) -> Vec<PathBuf> {
    links(folder, (1, MAX_ENTRIES), &|_| true, &|_, _| false)
}

/// Folders with a protected name come first, so that no tool hides one of them by filling others.
fn links(
    folder: &Path,
    (max_depth, max_entries): (usize, usize),
    is_kept: &dyn Fn(&Path) -> bool,
    is_entered: &dyn Fn(&Path, usize) -> bool,
) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), max_entries);
    let mut open = VecDeque::from([(folder.to_owned(), 1)]);
    while let Some((inner, depth)) = open.pop_front() {
        let entries = match fs::read_dir(&inner) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => continue,
            Err(_) => {
                found.push(inner);
                continue;
            }
        };
        for entry in entries {
            let Some((kind, path)) =
                entry.ok().and_then(|it| Some((it.file_type().ok()?, it.path())))
            else {
                found.push(inner.clone());
                continue;
            };
            if kind.is_file() {
                continue;
            }
            let Some(rest) = left.checked_sub(1) else { return vec![folder.to_owned()] };
            left = rest;
            if kind.is_symlink() && is_kept(&path) {
                found.extend(target(&path));
            } else if kind.is_dir()
                && depth < max_depth
                && is_entered(&path, depth)
                && !is_of_objects(&path)
            {
                match is_kept(&path) {
                    true => open.push_front((path, depth + 1)),
                    false => open.push_back((path, depth + 1)),
                }
            }
        }
    }
    found
}

/// The objects of git are named by what they hold: one that is changed is none. A repository may have a hundred thousand.
fn is_of_objects(folder: &Path) -> bool {
    folder.ends_with(".git/objects")
}

/// The file that a link leads to, or the place where it would be made.
fn target(link: &Path) -> Option<PathBuf> {
    if let Ok(real) = link.canonicalize() {
        return Some(real);
    }
    let named = link.parent()?.join(fs::read_link(link).ok()?);
    let folder = named.parent()?.canonicalize().ok()?;
    Some(folder.join(named.file_name()?))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A project whose hooks lie behind a link, with a folder of a tool beside it.
    fn project() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in [".git/objects/00", ".a", "hooks"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        symlink("../hooks", root.join(".git/hooks")).unwrap();
        (dir, root)
    }

    /// R5: links under protected names count, whatever else a project has.
    #[test]
    fn no_other_folder_hides_a_link_with_a_protected_name() {
        let (_dir, root) = project();
        for n in 0..9_000 {
            fs::create_dir(root.join(format!(".a/{n}"))).unwrap();
            fs::write(root.join(format!(".git/{n}")), "").unwrap();
        }
        assert_eq!(linked_places(&root), [root.join("hooks")]);
    }

    #[test]
    fn everything_is_protected_where_not_all_names_could_be_looked_at() {
        let (_dir, root) = project();
        let within = |entries| links(&root, (3, entries), &is_protected, &|_, _| true);
        // Three in the root, two in `.git`, none elsewhere.
        assert_eq!(within(5), [root.join("hooks")]);
        assert_eq!(within(4), std::slice::from_ref(&root));
    }
}
