//! The targets of links with a protected name, which are protected, too.
//!
//! The floor of the rules knows settings of shells, version control and agents by their names (rule R5). Many people
//! keep these files in a folder of their own, and links under the usual names: `~/.claude` leads to `~/dots/claude`, for
//! example. A tool that writes `~/dots/claude/settings.json` names nothing that the list knows, and writes the same
//! file.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use countersign_shell::protected::is_protected;

/// The number of entries that are looked at, the upper folders first. A home directory has a few hundred down to this
/// depth.
const MAX_ENTRIES: usize = 8_192;

/// The levels of names that are looked at: `.config/opencode/opencode.json`.
const MAX_DEPTH: usize = 3;

/// The targets of links with a protected name in a home directory or a project (rule R5), also if nothing is there
/// yet. We look at names three levels deep, in folders with a dot in front or with a protected name.
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
    links(folder, MAX_DEPTH, &is_kept, &is_entered)
}

/// The targets of the links in a folder of which every file is protected.
pub(super) fn all_of(folder: &Path) -> Vec<PathBuf> {
    links(folder, 1, &|_| true, &|_, _| false)
}

fn links(
    folder: &Path,
    max_depth: usize,
    is_kept: &dyn Fn(&Path) -> bool,
    is_entered: &dyn Fn(&Path, usize) -> bool,
) -> Vec<PathBuf> {
    let (mut found, mut left) = (Vec::new(), MAX_ENTRIES);
    let mut open = VecDeque::from([(folder.to_owned(), 1)]);
    while let Some((folder, depth)) = open.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten().take(left) {
            left -= 1;
            let (Ok(kind), path) = (entry.file_type(), entry.path()) else { continue };
            if kind.is_symlink() && is_kept(&path) {
                found.extend(target(&path));
            } else if kind.is_dir() && depth < max_depth && is_entered(&path, depth) {
                open.push_back((path, depth + 1));
            }
        }
    }
    found
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
