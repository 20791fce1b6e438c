//! Finds out whether git tracks a file, by the index file of its repository.
//!
//! Git itself is not run: its configuration may name programs that it starts. The index is read instead, in versions 2
//! to 4 and with hashes of 20 or 32 bytes, as `gitformat-index` describes it. Whatever is unknown, too long or damaged
//! counts as tracked, so that a person is asked.
//!
//! | found | answer |
//! |---|---|
//! | no `.git` above | nothing is tracked |
//! | a repository without an index, as after `git init` | nothing is tracked |
//! | an index that cannot be read, or is split over two files | everything is tracked |
//! | `.git` as a file, of a worktree or submodule | by the index of the folder that it names |

use std::fs;
use std::path::{Component, Path, PathBuf};

use super::files::{bounded, git_folder, may_be_repository};
use super::objects::HASH;

/// The longest index that is read. That of the Linux kernel has nine megabytes.
const MAX_INDEX: u64 = 64 << 20;

/// The modes of plain files, as the index and folders write them.
pub(super) const PLAIN_FILES: &[u32] = &[0o100_644, 0o100_755];

/// Returns `true` if git tracks a path, or anything below it.
pub(crate) fn is_tracked(path: &Path) -> bool {
    for at in path.ancestors() {
        let dot = at.join(".git");
        if fs::symlink_metadata(&dot).is_err() {
            continue;
        }
        let inner = path.strip_prefix(at).ok().and_then(plain);
        return inner.and_then(|inner| is_tracked_in(&dot, &inner)).unwrap_or(true);
    }
    false
}

/// Returns whether the repository of a `.git` tracks a path of its own. `None` if that cannot be known.
fn is_tracked_in(dot: &Path, inner: &str) -> Option<bool> {
    let folder = git_folder(dot).ok()?;
    // Without it, git does not take the folder for a repository.
    fs::symlink_metadata(folder.join("HEAD")).ok()?;
    match bounded(&folder.join("index"), MAX_INDEX).ok()? {
        None => Some(false),
        Some(index) => {
            let mut found = false;
            each(&index, |entry| found |= is_at(entry.name, inner.as_bytes()))?;
            Some(found)
        }
    }
}

/// The hash of a plain file in the index of a repository's folder. `None` if git does not track it, if it has several
/// versions to be merged, and if that cannot be known.
pub(super) fn hash_in_index(folder: &Path, inner: &str) -> Option<Vec<u8>> {
    let index = bounded(&folder.join("index"), MAX_INDEX).ok()??;
    let mut found = Vec::new();
    let mut wanted = |entry: &IndexEntry<'_>| {
        if entry.name == inner.as_bytes() {
            found.push((entry.mode, entry.is_merged, entry.hash.to_vec()));
        }
    };
    each_with(&index, HASH, &mut wanted)?;
    match found.as_slice() {
        [(mode, true, hash)] if PLAIN_FILES.contains(mode) => Some(hash.clone()),
        _ => None,
    }
}

/// The paths that the repository of a folder tracks. `None` if that cannot be known, and if a part of one of their names does not
/// pass.
pub(crate) fn tracked(folder: &Path, passes: impl Fn(&str) -> bool) -> Option<Vec<PathBuf>> {
    let top = folder.ancestors().find(|at| may_be_repository(at))?;
    let index = bounded(&git_folder(&top.join(".git")).ok()?.join("index"), MAX_INDEX).ok()??;
    let (mut found, mut all_pass) = (Vec::new(), true);
    each(&index, |entry| match std::str::from_utf8(entry.name) {
        // In a sparse index an entry may be a folder, whose files are not known.
        Ok(name) if !name.ends_with('/') && name.split('/').all(&passes) => {
            found.push(top.join(name))
        }
        _ => all_pass = false,
    })?;
    all_pass.then_some(found)
}

/// The links that the repository of a folder tracks, and those of the repositories within it. `None` for an index that cannot be
/// read, or is split over two files.
pub(super) fn tracked_links(folder: &Path) -> Option<Vec<PathBuf>> {
    let mut found = Vec::new();
    let top = folder.ancestors().find(|at| may_be_repository(at));
    let mut open: Vec<(PathBuf, usize)> = top.map(|top| (top.to_owned(), 0)).into_iter().collect();
    while let Some((top, depth)) = open.pop() {
        let Ok(git) = git_folder(&top.join(".git")) else { continue };
        let Some(index) = bounded(&git.join("index"), MAX_INDEX).ok()? else { continue };
        each(&index, |entry| {
            let Ok(name) = std::str::from_utf8(entry.name) else { return };
            match entry.mode & 0o170_000 {
                0o120_000 => found.push(top.join(name)),
                0o160_000 if depth < MAX_WITHIN => open.push((top.join(name), depth + 1)),
                _ => {}
            }
        })?;
    }
    Some(found)
}

/// How many levels of repositories within each other are looked at for links.
const MAX_WITHIN: usize = 4;

/// Returns whether a repository has others within its working tree, whose settings git reads, too. `None` if that
/// cannot be known.
pub(super) fn has_others_within(folder: &Path) -> Option<bool> {
    let Some(index) = bounded(&folder.join("index"), MAX_INDEX).ok()? else { return Some(false) };
    let mut found = false;
    each(&index, |entry| found |= entry.mode & 0o170_000 == 0o160_000)?;
    Some(found)
}

/// A path as the index writes it.
pub(super) fn plain(path: &Path) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    path.components().map(part).collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

/// What an index says about a file.
struct IndexEntry<'i> {
    name: &'i [u8],
    mode: u32,
    hash: &'i [u8],
    /// `false` for one of several versions of a file that are still to be merged.
    is_merged: bool,
}

/// Gives each entry of an index. `None` for what is no index.
fn each(index: &[u8], mut entry: impl FnMut(&IndexEntry<'_>)) -> Option<()> {
    // Which hashes a repository uses stands in its configuration. With the wrong length, nothing fits.
    each_with(index, HASH, &mut entry).or_else(|| each_with(index, 32, &mut entry))
}

fn each_with(index: &[u8], hash: usize, each: &mut impl FnMut(&IndexEntry<'_>)) -> Option<()> {
    let mut rest = index.get(..index.len().checked_sub(hash)?)?.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    for _ in 0..count {
        let (mode, hash, is_merged) = entry(&mut rest, version, hash, &mut name)?;
        each(&IndexEntry { name: &name, mode, hash, is_merged });
    }
    while !rest.is_empty() {
        let signature = take(&mut rest, 4)?;
        let length = number(&mut rest)?;
        take(&mut rest, usize::try_from(length).ok()?)?;
        // An extension in capitals may be passed over. `link` means that entries stand in another file.
        let optional = signature.first().is_some_and(u8::is_ascii_uppercase);
        if !optional && signature != b"sdir" {
            return None;
        }
    }
    Some(())
}

/// Reads one entry, and gives its mode, its hash and whether it is merged. `name` has the name of the entry before, and then
/// that of this one.
fn entry<'i>(
    rest: &mut &'i [u8],
    version: u32,
    hash: usize,
    name: &mut Vec<u8>,
) -> Option<(u32, &'i [u8], bool)> {
    let start = *rest;
    // Ten numbers about the file, of which the seventh is its mode, and its hash.
    take(rest, 24)?;
    let mode = number(rest)?;
    take(rest, 12)?;
    let hash = take(rest, hash)?;
    let flags = u16::from_be_bytes(take(rest, 2)?.try_into().ok()?);
    if flags & 0x4000 != 0 {
        if version < 3 {
            return None;
        }
        take(rest, 2)?;
    }
    match version {
        // Only the end that differs from the name before, without padding.
        4 => name.truncate(name.len().checked_sub(cut(rest)?)?),
        _ => name.clear(),
    }
    let end = rest.iter().position(|byte| *byte == 0)?;
    name.extend_from_slice(take(rest, end)?);
    let padding = match version {
        4 => 1,
        _ => 8 - (start.len() - rest.len()) % 8,
    };
    let length = usize::from(flags & 0x0fff);
    let fits = name.len() == length || length == 0x0fff && name.len() > length;
    let padded = take(rest, padding)?.iter().all(|byte| *byte == 0);
    (padded && fits && !name.is_empty()).then_some((mode, hash, flags & 0x3000 == 0))
}

/// Returns `true` if a path is the one of an entry, above or below it. Letters are compared without regard to their
/// case, since some file systems ignore it. In a sparse index an entry may be a folder.
fn is_at(entry: &[u8], path: &[u8]) -> bool {
    let entry = entry.strip_suffix(b"/").unwrap_or(entry);
    let (short, long) = if entry.len() < path.len() { (entry, path) } else { (path, entry) };
    let begins = long.get(..short.len()).is_some_and(|start| start.eq_ignore_ascii_case(short));
    begins && (short.is_empty() || matches!(long.get(short.len()), None | Some(b'/')))
}

/// The number of bytes to cut off, in the format of offsets in packs.
fn cut(rest: &mut &[u8]) -> Option<usize> {
    let mut byte = *take(rest, 1)?.first()?;
    let mut number = usize::from(byte & 127);
    while byte & 128 != 0 {
        byte = *take(rest, 1)?.first()?;
        number = number.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
    }
    Some(number)
}

fn number(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(take(rest, 4)?.try_into().ok()?))
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}
