//! What decides, beside its words, what a command of git does: the settings of the repository, and its hooks.
//!
//! `git push origin main` sends to the address that a setting gives to `origin`, and `git commit` runs a hook. They are read here
//! as texts, so that an approval is for the repository as it was. What stands in the user's own configuration is the user's choice.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{bounded_text, git_folder};
use super::registries::MAX_CONFIGURATION;
use super::repository::{Setting, common_folder, expanded, settings};

/// How many hooks are looked at.
const MAX_HOOKS: usize = 100;

/// The settings and the hooks of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSettings {
    /// A line for each setting. A file of settings that cannot be read as git reads it is taken as it is.
    pub text: String,
    /// The hooks, and the files of settings that others include.
    pub files: Vec<PathBuf>,
}

/// The settings and the hooks of the repository that git finds in a folder: `None` where it finds none. `branches` are those of
/// branches as well, of which git writes some itself: `git push -u origin topic`.
pub(crate) fn git_settings(folder: &Path, branches: bool) -> Option<GitSettings> {
    let top = folder.ancestors().find(|at| fs::symlink_metadata(at.join(".git")).is_ok())?;
    let mut found = GitSettings::default();
    let Ok(own) = git_folder(&top.join(".git")) else { return Some(found) };
    let common = common_folder(&own).unwrap_or_else(|_| own.clone());
    let mut hooks = vec![common.join("hooks")];
    let mut files = vec![common.join("config"), own.join("config"), own.join("config.worktree")];
    files.dedup();
    for file in files {
        let text = bounded_text(&file, MAX_CONFIGURATION).unwrap_or_else(|it| Some(it.to_string()));
        let text = text.unwrap_or_default();
        match settings(&text) {
            Some(all) => {
                for it in all.iter().filter(|it| branches || it.section != "branch") {
                    let Setting { section, of, key, value } = it;
                    found.text.push_str(&format!("{section} {of:?} {key} = {value}\n"));
                    match (section.as_str(), key.as_str()) {
                        ("core", "hookspath") => hooks.push(expanded(value, top)),
                        ("include" | "includeif", "path") => {
                            found.files.push(expanded(value, file.parent().unwrap_or(top)));
                        }
                        _ => {}
                    }
                }
            }
            None => found.text.push_str(&text),
        }
    }
    // The hooks in `.husky/_` run those in `.husky`.
    let above = hooks.iter().filter(|it| it.ends_with("_")).filter_map(|it| it.parent());
    let all: Vec<PathBuf> = hooks.iter().cloned().chain(above.map(Path::to_owned)).collect();
    let entries = all.iter().filter_map(|it| fs::read_dir(it).ok()).flatten().flatten();
    let paths = entries.map(|entry| entry.path()).take(MAX_HOOKS);
    found.files.extend(paths.filter(|it| it.extension().is_none_or(|it| it != "sample")));
    found.files.retain(|it| it.is_file());
    found.files.sort_unstable();
    Some(found)
}
