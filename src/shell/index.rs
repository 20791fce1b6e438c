//! Whether git tracks a file, by the index file of its repository.
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

/// The longest index that is read. That of the Linux kernel has nine megabytes.
const MAX_INDEX: u64 = 64 << 20;

/// The longest `.git` file that is read.
const MAX_POINTER: u64 = 4096;

/// Whether git tracks a path, or anything below it.
pub(super) fn is_tracked(path: &Path) -> bool {
    for at in path.ancestors() {
        let dot = at.join(".git");
        if fs::symlink_metadata(&dot).is_err() {
            continue;
        }
        let inner = path.strip_prefix(at).ok().and_then(plain);
        return inner.and_then(|inner| is_tracked_in(at, dot, &inner)).unwrap_or(true);
    }
    false
}

/// Whether the repository of a `.git` tracks a path of its own. `None` if that cannot be known.
fn is_tracked_in(at: &Path, dot: PathBuf, inner: &str) -> Option<bool> {
    let folder = match fs::metadata(&dot).ok()?.is_dir() {
        true => dot,
        false => {
            let pointer = String::from_utf8(bounded(&dot, MAX_POINTER)?).ok()?;
            at.join(pointer.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
        }
    };
    // Without it, git does not take the folder for a repository.
    fs::symlink_metadata(folder.join("HEAD")).ok()?;
    let index = folder.join("index");
    match fs::symlink_metadata(&index) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(false),
        Err(_) => None,
        Ok(_) => names(&bounded(&index, MAX_INDEX)?, inner),
    }
}

/// The content of a regular file that is not longer than `most`.
fn bounded(path: &Path, most: u64) -> Option<Vec<u8>> {
    let about = fs::metadata(path).ok()?;
    (about.is_file() && about.len() <= most).then(|| fs::read(path).ok()).flatten()
}

/// A path as the index writes it.
fn plain(path: &Path) -> Option<String> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => name.to_str().map(str::to_owned),
        _ => None,
    };
    path.components().map(part).collect::<Option<Vec<_>>>().map(|parts| parts.join("/"))
}

/// Whether an index names a path or anything below it. `None` for what is no index.
fn names(index: &[u8], path: &str) -> Option<bool> {
    // Which hashes a repository uses stands in its configuration. With the wrong length, nothing fits.
    names_with(index, 20, path).or_else(|| names_with(index, 32, path))
}

fn names_with(index: &[u8], hash: usize, path: &str) -> Option<bool> {
    let mut rest = index.get(..index.len().checked_sub(hash)?)?.strip_prefix(b"DIRC")?;
    let version = number(&mut rest)?;
    let count = number(&mut rest)?;
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut name = Vec::new();
    let mut found = false;
    for _ in 0..count {
        entry(&mut rest, version, hash, &mut name)?;
        found |= is_at(&name, path.as_bytes());
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
    Some(found)
}

/// Reads one entry. `name` has the name of the entry before, and then that of this one.
fn entry(rest: &mut &[u8], version: u32, hash: usize, name: &mut Vec<u8>) -> Option<()> {
    let start = *rest;
    // Ten numbers about the file, and its hash.
    take(rest, 40 + hash)?;
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
    (padded && fits && !name.is_empty()).then_some(())
}

/// Whether a path is the one of an entry, above or below it. Letters are compared without regard to their case, since
/// some file systems ignore it. In a sparse index an entry may be a folder.
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
