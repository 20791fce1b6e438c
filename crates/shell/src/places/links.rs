//! Looks for links that lead out of the workspace.
//!
//! A folder of the workspace may hold a link to a file elsewhere. `cat LINK` is judged by where the link leads, and
//! `grep -R`, `rg -L` and `find … -exec cat {} +` find it by themselves. So where a program follows the links that it
//! finds, or hands their paths on to one that reads them, the folders are looked through first. Beyond 10 000 files for
//! one text, a person is asked. `xargs` splits the paths that it reads at blanks and quotes, so that the names are looked at for
//! these in the same way.

use std::cell::{Cell, OnceCell};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, DirEntry, FileType};
use std::path::{Path, PathBuf};

use super::files::bounded_text;
use super::index::{tracked, tracked_links};
use super::paths::{PathClass, Workspace};
use super::registries::{MAX_CONFIGURATION, lines_of_settings};
use crate::names::lists::is_named;

/// How many entries of folders are looked at for one text.
pub(crate) const MAX_ENTRIES: usize = 10_000;

/// Returns `true` if a link below these folders leads out of the workspace, or to a secret. Also if there are too
/// many files to tell.
pub(crate) fn lead_out(workspace: &Workspace, open: Vec<PathBuf>, left: &Cell<usize>) -> bool {
    any_below(workspace, open, left, |_| false)
}

/// Returns `true` if no name below these folders is split by `xargs` or may be an option, and no link leads out.
pub(crate) fn names_are_words(
    workspace: &Workspace,
    open: Vec<PathBuf>,
    left: &Cell<usize>,
) -> bool {
    !any_below(workspace, open, left, |name| !name.to_str().is_some_and(is_one_word))
}

/// How many entries of a folder are looked at for settings.
const MAX_SETTINGS: usize = 1000;

/// Programs that read `.npmrc`.
const NPM: &[&str] = &["bun", "bunx", "npm", "npx", "pnpm", "pnpx", "yarn"];

/// The first key of an `.npmrc` that may name another file. npm takes quotes off a key, and puts variables into it.
fn key_of_a_file(npmrc: &str) -> Option<&str> {
    let lines = lines_of_settings(npmrc).filter(|line| !line.is_empty());
    let mut keys = lines.map(|line| line.split('=').next().unwrap_or_default().trim());
    keys.find(|key| {
        let is_account = key.starts_with("//") && !key.contains(['$', '"', '\'']);
        let is_harmless = is_named("npm settings", key)
            || key.starts_with('@') && key.ends_with(":registry")
            || is_account && !key.ends_with("file");
        !is_harmless
    })
}

/// Endings of settings that programs find by their names, beside those that begin with a dot.
const SETTINGS: &[&str] = &[
    ".cfg",
    ".conf",
    ".config",
    ".ini",
    ".json",
    ".jsonc",
    ".properties",
    ".toml",
    ".yaml",
    ".yml",
    "ignore",
    "rc",
];

/// Returns `true` for a name by which programs find settings.
fn is_settings(name: &str) -> bool {
    name.starts_with(['.', '_']) || SETTINGS.iter().any(|it| name.ends_with(it))
}

/// Returns `true` if a link leads to something outside of the workspace, or to a secret.
fn leads_out(workspace: &Workspace, link: &Path) -> bool {
    let is_out =
        |found: PathBuf| matches!(workspace.place(&found), PathClass::Outside | PathClass::Secret);
    fs::canonicalize(link).is_ok_and(is_out)
}

/// Why to ask about a link of the workspace that git tracks and that leads outside, if a program may follow it without its words saying
/// so: in a folder that it goes through, or as its settings. Other people have put it there.
///
/// | program | may follow |
/// |---|---|
/// | `cat`, `grep`, `sed` (`programs without settings`) | none: what they do with links below a folder stands in the table |
/// | `rg`, `git` (`programs with settings`) | one that is called as settings are: `.ignore`, `_x`, `x.toml` |
/// | any other, such as a formatter | each |
pub(crate) fn tracked_link_out(
    workspace: &Workspace,
    program: &str,
    links: &OnceCell<Option<Vec<PathBuf>>>,
) -> Option<String> {
    let links = links.get_or_init(|| {
        let all = tracked_links(workspace.root())?.into_iter();
        Some(
            all.filter(|it| it.starts_with(workspace.root()) && leads_out(workspace, it)).collect(),
        )
    });
    let Some(links) = links else {
        return Some(format!(
            "the index of git cannot be read: a link that it tracks may lead outside, and `{program}` may follow it"
        ));
    };
    let only_settings = is_named("programs with settings", program);
    let is_one = |link: &&PathBuf| {
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        !only_settings || is_settings(&name)
    };
    let link = links.iter().find(is_one)?;
    let link = link.strip_prefix(workspace.root()).unwrap_or(link).display();
    Some(format!("`{link}` leads to a file outside, and `{program}` may follow it"))
}

/// Why to ask about settings in one of these directories or above it in the workspace: they are a link to a file outside, or name one
/// for this program. Programs find them by their names, and show lines of them.
pub(crate) fn settings_outside(
    workspace: &Workspace,
    program: &str,
    here: &[PathBuf],
) -> Option<String> {
    let inside = |at: &&Path| at.starts_with(workspace.root());
    let mut folders = here.iter().flat_map(|at| at.ancestors().take_while(inside));
    folders.find_map(|folder| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_SETTINGS);
        let linked = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
        let names = linked.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut settings =
            names.filter(|name| is_settings(name) && leads_out(workspace, &folder.join(name)));
        let linked = settings.next().map(|found| {
            format!(
                "`{found}` leads to a file outside, which `{program}` may take for settings, and show"
            )
        });
        linked
            .or_else(|| NPM.contains(&program).then(|| npmrc_outside(folder)).flatten())
            .or_else(|| CTAGS.contains(&program).then(|| ctags_outside(folder)).flatten())
    })
}

/// Programs that read options from `.ctags.d`, of which `--exclude=@FILE` reads a file.
const CTAGS: &[&str] = &["ctags", "universal-ctags"];

/// Why to ask about options of `ctags` in a folder.
fn ctags_outside(folder: &Path) -> Option<String> {
    let found =
        [".ctags.d", "ctags.d", ".ctags"].into_iter().find(|it| folder.join(it).exists())?;
    Some(format!("`{found}` has options of `ctags`, which may name a file outside"))
}

/// Why to ask about the `.npmrc` of a folder, if it may name a file that npm reads.
fn npmrc_outside(folder: &Path) -> Option<String> {
    let Ok(text) = bounded_text(&folder.join(".npmrc"), MAX_CONFIGURATION) else {
        return Some("`.npmrc` cannot be read, and may name a file outside".to_owned());
    };
    let text = text?;
    let key = key_of_a_file(&text)?;
    Some(format!("`.npmrc` sets `{}`, which may name a file outside", key.escape_debug()))
}

/// The same for the names that git tracks in the repository of a folder, as far as these are there.
pub(crate) fn tracked_are_words(workspace: &Workspace, folder: &Path, left: &Cell<usize>) -> bool {
    let Some(paths) = tracked(folder, is_one_word) else { return false };
    let Some(rest) = left.get().checked_sub(paths.len()) else { return false };
    left.set(rest);
    let mut found = paths.iter().filter_map(|path| fs::canonicalize(path).ok());
    !found.any(|it| matches!(workspace.place(&it), PathClass::Outside | PathClass::Secret))
}

/// Returns `true` for `@x`, which many programs read as a file of options.
pub(crate) fn begins_with_at(path: &Path) -> bool {
    path.to_string_lossy().starts_with('@')
}

/// Returns `true` if `xargs` makes one operand of a path, and that is nothing but a path to any program: no option, file of
/// options, address, assignment or pattern.
pub(crate) fn is_one_word(path: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "._/-+@,~".contains(c);
    is_path_to_all(path) && path.chars().all(is_plain)
}

/// Returns `true` if no program takes a path, or one below it, for anything else: an option, a file of options, an address, an
/// assignment.
pub(crate) fn is_path_to_all(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or_default();
    !path.starts_with(['-', '+', '@', '~']) && !first.contains([':', '=', '@', '%'])
}

/// Returns `true` if one of these names is below the folders, or a link that leads out of the workspace, or to a secret. Also
/// if there are too many files to tell.
fn any_below(
    workspace: &Workspace,
    open: Vec<PathBuf>,
    left: &Cell<usize>,
    is_one: impl Fn(&OsStr) -> bool,
) -> bool {
    let mut linked = HashSet::new();
    any_entry(open, left, |entry, kind, open| {
        if is_one(&entry.file_name()) {
            return true;
        }
        // A link that leads nowhere has no content.
        let found = kind.is_symlink().then(|| fs::canonicalize(entry.path()).ok()).flatten();
        let Some(found) = found else { return false };
        let is_out = matches!(workspace.place(&found), PathClass::Outside | PathClass::Secret);
        if !is_out
            && found.starts_with(workspace.root())
            && found.is_dir()
            && linked.insert(found.clone())
        {
            open.push(found);
        }
        is_out
    })
}

/// Returns `true` if one of the files below some folders is such, by its path, and if there are too many to tell. Links are not
/// followed.
pub(crate) fn is_below(
    open: Vec<PathBuf>,
    left: &Cell<usize>,
    is_one: impl Fn(&Path) -> bool,
) -> bool {
    any_entry(open, left, |entry, kind, _| !kind.is_dir() && is_one(&entry.path()))
}

/// Returns `true` if one of the entries below some folders is such, which may name folders to look into as well. Also if there
/// are too many to tell.
fn any_entry(
    mut open: Vec<PathBuf>,
    left: &Cell<usize>,
    mut is_one: impl FnMut(&DirEntry, FileType, &mut Vec<PathBuf>) -> bool,
) -> bool {
    while let Some(folder) = open.pop() {
        // A file has no entries, and what this process cannot read its programs cannot read either.
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            match left.get().checked_sub(1) {
                Some(rest) => left.set(rest),
                None => return true,
            }
            let Ok(kind) = entry.file_type() else { return true };
            if is_one(&entry, kind, &mut open) {
                return true;
            }
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    false
}
