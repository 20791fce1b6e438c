//! Finds out whether a file is as it was committed: its bytes are those of the index and of `HEAD`.
//!
//! Dates, flags (`assume-unchanged`, `skip-worktree`) and filters say nothing here: the bytes of the file are compared with
//! those that the repository has. With a filter, or with other ends of lines than the repository's, they differ. Git is not
//! run, as its configuration may name programs.
//!
//! | found | answer |
//! |---|---|
//! | the file, or a folder above it, is a link; the file has a second name | no |
//! | git does not track it, or it is still to be merged | no |
//! | an object is missing, damaged, larger than four megabytes, or in a repository without SHA-1 | no |
//! | objects are replaced or grafted, or another repository has some of them | no |
//! | `HEAD` is in a table of references, or is no branch and no commit | no |
//! | the settings name another working tree, or an extension that is not known here | no |
//! | the repository's folder lies in the workspace under another name than `.git`, so that tools may write it | no |
//! | `.git` as a file, of a working tree | by the folders that it names |
//! | a system that does not number its files | no |

use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use super::files::{bounded_text, git_folder, opened, trimmed};
use super::index::{PLAIN_FILES, hash_in_index, plain};
use super::objects::{HASH, MAX_OBJECT, ObjectKind, Objects};
use super::paths::{PathClass, Workspace};
use super::registries::MAX_CONFIGURATION;
use super::repository::{Setting, common_folder, settings};

/// The longest list of packed references that is read.
const MAX_REFERENCES: u64 = 16 << 20;

/// The longest name of a reference, or hash.
const MAX_REFERENCE: u64 = 4096;

/// How many folders a file may be in, below the top of its repository. Each is an object that is read.
const MAX_FOLDERS: usize = 32;

/// Returns `true` if a file of the workspace is as it was committed. The path has to be one without links.
pub(crate) fn is_committed(path: &Path, workspace: &Workspace) -> bool {
    committed(path, workspace).unwrap_or(false)
}

fn committed(path: &Path, workspace: &Workspace) -> Option<bool> {
    let root = workspace.root_of(path);
    let top = root.ancestors().find(|at| fs::symlink_metadata(at.join(".git")).is_ok())?;
    let inner = path.strip_prefix(top).ok().and_then(plain)?;
    let dot = top.join(".git");
    if fs::symlink_metadata(&dot).ok()?.is_symlink() || inner.split('/').count() > MAX_FOLDERS {
        return None;
    }
    let own = git_folder(&dot).ok()?;
    let common = common_folder(&own).ok()?;
    // What tools may write proves nothing.
    let is_kept = |folder: &Path| {
        let found = fs::canonicalize(folder);
        found.is_ok_and(|found| workspace.place(&found) != PathClass::Inside)
    };
    let folders = [own.clone(), common.clone(), common.join("objects")];
    if !folders.iter().all(|folder| is_kept(folder))
        || !is_understood(&own, &common)?
        || has_other_objects(&common)?
    {
        return None;
    }
    let staged = hash_in_index(&own, &inner)?;
    let objects = Objects::new(&common);
    if in_commit(&objects, &head(&own, &common)?, &inner)? != staged {
        return None;
    }
    Some(objects.read(&staged, ObjectKind::Blob)? == content(path)?)
}

/// The content of a plain file with one name, which is opened without following a link.
fn content(path: &Path) -> Option<Vec<u8>> {
    let named = fs::symlink_metadata(path).ok()?;
    let file = opened(path).ok()??;
    if !named.is_file() || !is_only_name(&named, &file.metadata().ok()?) {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_OBJECT as u64 + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Returns `true` if what was named is what was opened, and has no other name by which it could be changed.
#[cfg(unix)]
fn is_only_name(named: &Metadata, opened: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (named.dev(), named.ino()) == (opened.dev(), opened.ino()) && opened.nlink() == 1
}

/// Never known where a file has no number.
#[cfg(not(unix))]
fn is_only_name(_: &Metadata, _: &Metadata) -> bool {
    false
}

/// Returns `true` if the settings of a repository say nothing by which its files or objects would have to be read in another
/// way than here.
fn is_understood(own: &Path, common: &Path) -> Option<bool> {
    for file in [common.join("config"), own.join("config.worktree")] {
        let Some(text) = bounded_text(&file, MAX_CONFIGURATION).ok()? else { continue };
        let is_other = |one: &Setting| match (one.section.as_str(), one.key.as_str()) {
            ("core", "worktree") => true,
            ("extensions", "objectformat") => one.value != "sha1",
            ("extensions", "refstorage") => one.value != "files",
            ("extensions", key) => {
                !["worktreeconfig", "relativeworktrees", "preciousobjects", "noop"].contains(&key)
            }
            _ => false,
        };
        if settings(&text)?.iter().any(is_other) {
            return Some(false);
        }
    }
    Some(true)
}

/// Returns `true` if git reads other objects, or another history, than a repository itself has under the names of its objects.
fn has_other_objects(common: &Path) -> Option<bool> {
    let exists = |name: &&str| fs::symlink_metadata(common.join(name)).is_ok();
    let elsewhere = ["objects/info/alternates", "objects/info/http-alternates", "info/grafts"];
    let is_replaced = match fs::read_dir(common.join("refs/replace")) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) => error.kind() != ErrorKind::NotFound,
    };
    let is_packed = packed_references(common)?.contains(" refs/replace/");
    Some(elsewhere.iter().any(exists) || is_replaced || is_packed)
}

/// The list of packed references; empty if there is none.
fn packed_references(common: &Path) -> Option<String> {
    let text = bounded_text(&common.join("packed-refs"), MAX_REFERENCES).ok()?;
    Some(text.unwrap_or_default())
}

/// The hash of the commit that is checked out.
fn head(own: &Path, common: &Path) -> Option<Vec<u8>> {
    let text = bounded_text(&own.join("HEAD"), MAX_REFERENCE).ok()??;
    let Some(name) = text.strip_prefix("ref:") else { return bytes(trimmed(&text)) };
    let name = trimmed(name);
    let branch = name.strip_prefix("refs/heads/")?;
    if branch.split('/').any(|part| part.is_empty() || part.starts_with('.')) {
        return None;
    }
    if let Some(text) = bounded_text(&common.join(name), MAX_REFERENCE).ok()? {
        return bytes(trimmed(&text));
    }
    let packed = packed_references(common)?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, known)| *known == name).and_then(|(id, _)| bytes(id))
}

/// The hash of a plain file in a commit.
fn in_commit(objects: &Objects, commit: &[u8], inner: &str) -> Option<Vec<u8>> {
    let text = objects.read(commit, ObjectKind::Commit)?;
    let line = text.strip_prefix(b"tree ")?.split(|byte| *byte == b'\n').next()?;
    let mut at = bytes(std::str::from_utf8(line).ok()?)?;
    let mut parts = inner.split('/').peekable();
    while let Some(part) = parts.next() {
        let tree = objects.read(&at, ObjectKind::Tree)?;
        let (mode, found) = in_tree(&tree, part.as_bytes())?;
        let known = match parts.peek() {
            Some(_) => mode == 0o040_000,
            None => PLAIN_FILES.contains(&mode),
        };
        at = known.then_some(found)?;
    }
    Some(at)
}

/// The mode and the hash of a name in a folder: `MODE NAME`, NUL, and the hash, one behind the other.
fn in_tree(tree: &[u8], wanted: &[u8]) -> Option<(u32, Vec<u8>)> {
    let mut rest = tree;
    loop {
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (entry, after) = (rest.get(..end)?, rest.get(end + 1..)?);
        let blank = entry.iter().position(|byte| *byte == b' ')?;
        let (mode, name) = (entry.get(..blank)?, entry.get(blank + 1..)?);
        let (id, next) = after.split_at_checked(HASH)?;
        if name == wanted {
            let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
            return Some((mode, id.to_vec()));
        }
        rest = next;
    }
}

/// A hash that is written in hexadecimal.
fn bytes(text: &str) -> Option<Vec<u8>> {
    let is_hash = text.len() == HASH * 2 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    is_hash.then(|| (0..text.len()).step_by(2).map(pair).collect::<Option<_>>())?
}
