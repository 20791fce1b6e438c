//! Commands that read the workspace's own repository may do more: run programs that its settings name, and print files outside of
//! it that its folder leads to.
//!
//! Git prints its own small files, or lines of them in errors: `git bisect log` the file `.git/BISECT_LOG`, `git status` a line of
//! `.git/packed-refs` that is no reference. Where one of them is a link, it prints what the link leads to. A clone has no such
//! link; an archive that was unpacked and a folder that several users share may have one.
//!
//! | found | answer |
//! |---|---|
//! | a link in the folder that leads to the workspace or to the repository | nothing is said |
//! | a link that leads elsewhere, or nowhere | its name |
//! | `.git` as a file, or `commondir`, that leads elsewhere | its name, but for a working tree that leads back |
//! | too many files to look at | the name of the next one |

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{git_folder, may_be_repository};
use super::paths::Workspace;
use super::repository::{common_folder, names_programs};
use super::worktrees::pointer;

/// The folders of a repository whose files git reads.
const READ: &[&str] = &[
    "info",
    "logs",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "sequencer",
    "worktrees",
];

/// Git runs the files of this folder, and prints none of them.
const HOOKS: &str = "hooks";

/// How many entries are looked at.
const MAX_ENTRIES: usize = 50_000;

/// The repository of the workspace.
#[derive(Debug, Default)]
pub(crate) struct OwnRepository {
    /// `true` if commands that only read may run programs that its settings name.
    pub(crate) runs_programs: bool,
    /// A name in its folder that leads out of the workspace.
    pub(crate) leads_out: Option<String>,
}

impl OwnRepository {
    /// Looks at the repository of the workspace. Nothing is known of it in a [`lexical`](Workspace::lexical) workspace.
    pub(crate) fn of(workspace: &Workspace) -> Self {
        // Git takes the first folder that is a repository, upwards: one with `.git`, or one that is the repository itself,
        // whose files may be those of a person's project.
        let mut above = workspace.start().ancestors();
        let Some(at) = above.find(|at| workspace.looks() && may_be_repository(at)) else {
            return Self::default();
        };
        let dot = at.join(".git");
        if fs::symlink_metadata(&dot).is_err() {
            return Self { runs_programs: true, leads_out: None };
        }
        Self {
            runs_programs: names_programs(&dot).unwrap_or(true),
            leads_out: leads_out(&dot, &[workspace.root(), at]),
        }
    }
}

/// The name of a file in the folder of a `.git` that leads out of these places and of the repository. `None` where the folder
/// cannot be read, which [`names_programs`] says.
fn leads_out(dot: &Path, places: &[&Path]) -> Option<String> {
    let own = git_folder(dot).ok()?;
    let common = common_folder(&own).ok()?;
    let [own, common] = [own, common].map(|it| fs::canonicalize(it).ok());
    let (own, common) = (own?, common?);
    let mut inside: Vec<PathBuf> =
        places.iter().filter_map(|it| fs::canonicalize(it).ok()).collect();
    if !is_in_any(&own, &inside) && !leads_back(&own, dot) {
        return Some(".git".to_owned());
    }
    if !is_in_any(&common, &inside)
        && own.parent() != Some(&*common.join("worktrees"))
        && own != common
    {
        return Some("commondir".to_owned());
    }
    let folders = if own == common { vec![own] } else { vec![own, common] };
    inside.extend_from_slice(&folders);
    let mut left = MAX_ENTRIES;
    folders.iter().find_map(|folder| link_out(folder, None, &inside, &mut left))
}

/// Returns `true` if the folder of a repository says that this `.git` is its own. That of a submodule names the working tree in its
/// settings, which count as those that name a program.
fn leads_back(own: &Path, dot: &Path) -> bool {
    let resolved = |path: &Path| fs::canonicalize(path).ok();
    pointer(&own.join("gitdir"), own, "")
        .and_then(|back| resolved(&back))
        .is_some_and(|back| resolved(dot) == Some(back))
}

/// The name of a link that leads out of these places, in a folder and in those below it that git reads. `within` is the name of the
/// folder, but for that of the repository itself.
fn link_out(
    folder: &Path,
    within: Option<&str>,
    inside: &[PathBuf],
    left: &mut usize,
) -> Option<String> {
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        *left = left.saturating_sub(1);
        if *left == 0 {
            return Some(name.into_owned());
        }
        let Ok(kind) = entry.file_type() else { continue };
        // Emacs marks a file that is being edited by a link to no file.
        let is_passed_over = name == HOOKS || name.starts_with(".#");
        let is_out = || !fs::canonicalize(&path).is_ok_and(|to| is_in_any(&to, inside));
        if kind.is_symlink() && !is_passed_over && is_out() {
            return Some(name.into_owned());
        }
        let is_read = match within {
            None => READ.contains(&&*name),
            // The others are of objects, which have hashes for names.
            Some("objects") => matches!(&*name, "info" | "pack"),
            Some(_) => true,
        };
        if kind.is_dir()
            && is_read
            && let Some(found) = link_out(&path, Some(&name), inside, left)
        {
            return Some(format!("{name}/{found}"));
        }
    }
    None
}

fn is_in_any(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}
