//! What decides, beside its words, what a command of git does: the settings of the repository, and its hooks.
//!
//! `git push origin main` sends to the address that a setting gives to `origin`, and `git commit` runs a hook. They are read here
//! as texts, so that an approval is for the repository as it was. What stands in the user's own configuration is the user's choice.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{bounded_text, git_folder};
use super::registries::MAX_CONFIGURATION;
use super::repository::{Setting, common_folder, expanded, settings};

/// How many hooks are looked at, and how many files of remotes.
const MAX_ENTRIES: usize = 100;

/// How many files of settings may include each other.
const MAX_FILES: usize = 16;

/// Files that say what the hooks of packages do.
const OF_HOOKS: &[&str] = &[
    "package.json",
    "lint-staged.config.js",
    "lint-staged.config.mjs",
    "lint-staged.config.cjs",
    ".simple-git-hooks.json",
    ".simple-git-hooks.js",
    "simple-git-hooks.json",
];

/// The settings and the hooks of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSettings {
    /// A line for each setting, also of files that others include. A file of settings that cannot be read as git reads it is taken as it is.
    pub text: String,
    /// The hooks, and files that say what they do, and those in which older versions of git kept the addresses of remotes.
    pub files: Vec<PathBuf>,
    /// `true` if there are more of them than are looked at.
    pub has_more: bool,
}

/// The settings and the hooks of the repository that git finds in a folder: `None` where it finds none. `branches` are those of
/// branches as well, of which git writes some itself: `git push -u origin topic`.
pub(crate) fn git_settings(folder: &Path, branches: bool) -> Option<GitSettings> {
    let top = folder.ancestors().find(|at| fs::symlink_metadata(at.join(".git")).is_ok())?;
    let mut found = GitSettings::default();
    let Ok(own) = git_folder(&top.join(".git")) else { return Some(found) };
    let common = common_folder(&own).unwrap_or_else(|_| own.clone());
    let mut hooks = vec![common.join("hooks")];
    let mut open = vec![own.join("config.worktree"), own.join("config"), common.join("config")];
    let mut read = Vec::new();
    while let Some(file) = open.pop() {
        if read.contains(&file) {
            continue;
        }
        if read.len() >= MAX_FILES {
            found.has_more = true;
            break;
        }
        let text = match bounded_text(&file, MAX_CONFIGURATION) {
            Ok(text) => text.unwrap_or_default(),
            // It is known by its size and its time then.
            Err(_) => {
                found.files.push(file);
                continue;
            }
        };
        let Some(all) = settings(&text) else {
            found.text.push_str(&text);
            continue;
        };
        for it in all.iter().filter(|it| branches || it.section != "branch") {
            let Setting { section, of, key, value } = it;
            found.text.push_str(&format!("{section} {of:?} {key} = {value}\n"));
            match (section.as_str(), key.as_str()) {
                ("core", "hookspath") => hooks.push(expanded(value, top)),
                ("include" | "includeif", "path") => {
                    open.push(expanded(value, file.parent().unwrap_or(top)));
                }
                _ => {}
            }
        }
        read.push(file);
    }
    // The hooks in `.husky/_` run those in `.husky`.
    let above = hooks.iter().filter(|it| it.ends_with("_")).filter_map(|it| it.parent());
    let all: Vec<PathBuf> = hooks.iter().cloned().chain(above.map(Path::to_owned)).collect();
    found.add_files(&all, |file| file.extension().is_none_or(|it| it != "sample"));
    // Hooks of packages do what these say.
    let of_hooks = OF_HOOKS.iter().map(|name| top.join(name)).filter(|it| it.is_file());
    found.files.extend(of_hooks.filter(|_| !found.files.is_empty()).collect::<Vec<_>>());
    found.add_files(&["remotes", "branches"].map(|name| common.join(name)), |_| true);
    found.files.sort_unstable();
    Some(found)
}

/// Returns `true` if a password or a token stands in an address of the settings of the repository that git finds in a folder.
pub(crate) fn has_password(folder: &Path) -> bool {
    git_settings(folder, false).is_some_and(|it| it.text.lines().any(holds_password))
}

/// Returns `true` for the settings of a repository, if a password or a token stands in an address in them.
pub(crate) fn is_with_password(file: &Path) -> bool {
    let is_settings = file.ends_with(".git/config") || file.ends_with(".gitmodules");
    let text = || bounded_text(file, MAX_CONFIGURATION).ok().flatten();
    is_settings && text().is_some_and(|it| it.lines().any(holds_password))
}

/// Returns `true` if an address in a line has a password, or the name of a user that is as long as a token.
fn holds_password(line: &str) -> bool {
    const SHORTEST_TOKEN: usize = 30;
    line.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '"', ' ']).next().unwrap_or_default();
        let user = host.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || user.len() >= SHORTEST_TOKEN
    })
}

impl GitSettings {
    /// Adds the files of some folders of which a test is true.
    fn add_files(&mut self, folders: &[PathBuf], is_one: impl Fn(&Path) -> bool) {
        let entries = folders.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
        let mut paths: Vec<_> = entries.map(|it| it.path()).take(MAX_ENTRIES + 1).collect();
        self.has_more |= paths.len() > MAX_ENTRIES;
        paths.retain(|it| it.is_file() && is_one(it));
        self.files.extend(paths);
    }
}
