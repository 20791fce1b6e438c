//! Reads the objects of a repository: its commits, folders and files, each by its name (its hash).
//!
//! Git itself is not run, as its configuration may name programs. An object lies in a file of its own, or in a pack with
//! an index beside it, where it may be the difference from another one (`gitformat-pack`). Both are read here, with hashes of
//! SHA-1. What is missing, too large, damaged or in another repository (`objects/info/alternates`) is not found, so that a
//! person is asked.
//!
//! An object is believed by its name and is not hashed again: who can write to `.git/objects` can write hooks as well, and
//! tools are asked about both.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::files::{bounded, opened};
use countersign::args::hex;

/// The largest object that is read, in bytes. One of these is compared with a script, and few scripts have a megabyte.
pub(super) const MAX_OBJECT: usize = 4 << 20;

/// The length of a hash of SHA-1, in bytes.
pub(super) const HASH: usize = 20;

/// How many packs are looked at. Git joins them from fifty on.
const MAX_PACKS: usize = 128;

/// How many differences may lie between an object and what it is told by. Git writes fifty.
const MAX_DELTAS: usize = 256;

/// How many bytes the differences of one object may have.
const MAX_DIFFERENCES: usize = 2 * MAX_OBJECT;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

/// The objects of a repository.
pub(super) struct Objects {
    folder: PathBuf,
}

impl Objects {
    /// Those in the common folder of a repository.
    pub(super) fn new(common: &Path) -> Self {
        Self { folder: common.join("objects") }
    }

    /// The content of an object of this kind.
    pub(super) fn read(&self, id: &[u8], kind: ObjectKind) -> Option<Vec<u8>> {
        let (found, content) = self.loose(id).or_else(|| self.packed(id))?;
        (found == kind).then_some(content)
    }

    /// An object in a file of its own: `KIND LENGTH`, NUL, and the content, compressed.
    fn loose(&self, id: &[u8]) -> Option<(ObjectKind, Vec<u8>)> {
        let name = hex(id);
        let (folder, file) = name.split_at_checked(2)?;
        let path = self.folder.join(folder).join(file);
        let stored = bounded(&path, most_compressed(MAX_OBJECT)?).ok()??;
        let whole = decompress_to_vec_zlib_with_limit(&stored, MAX_OBJECT + 64).ok()?;
        let end = whole.iter().position(|byte| *byte == 0)?;
        let (header, content) = (whole.get(..end)?, whole.get(end + 1..)?);
        let (kind, length) = std::str::from_utf8(header).ok()?.split_once(' ')?;
        let kind = match kind {
            "commit" => ObjectKind::Commit,
            "tree" => ObjectKind::Tree,
            "blob" => ObjectKind::Blob,
            _ => return None,
        };
        (length.parse() == Ok(content.len())).then(|| (kind, content.to_vec()))
    }

    fn packed(&self, id: &[u8]) -> Option<(ObjectKind, Vec<u8>)> {
        let entries = fs::read_dir(self.folder.join("pack")).ok()?;
        let files = entries.flatten().map(|entry| entry.path());
        let indexes = files.filter(|path| path.extension().is_some_and(|it| it == "idx"));
        indexes.take(MAX_PACKS).find_map(|index| in_pack(&index, id))
    }
}

/// An object in the pack of an index. What it differs from lies in the same pack.
fn in_pack(index: &Path, id: &[u8]) -> Option<(ObjectKind, Vec<u8>)> {
    let mut places = PackIndex::open(index)?;
    let mut offset = places.find(id)?;
    let mut pack = opened(&index.with_extension("pack")).ok()??;
    if !matches!(&bytes_at(&mut pack, 0, 8)?[..], [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3]) {
        return None;
    }
    let (mut deltas, mut length) = (Vec::new(), 0);
    let (kind, mut content) = loop {
        let (stored, content) = stored_at(&mut pack, offset)?;
        offset = match stored {
            PackedForm::Whole(kind) => break (kind, content),
            PackedForm::From(before) => before,
            PackedForm::FromNamed(base) => places.find(&base)?,
        };
        length += content.len();
        deltas.push(content);
        if deltas.len() > MAX_DELTAS || length > MAX_DIFFERENCES {
            return None;
        }
    };
    for delta in deltas.iter().rev() {
        content = applied(&content, delta)?;
    }
    Some((kind, content))
}

/// The index of a pack in version 2: how many names begin with each byte, the names in order, and where their objects are.
struct PackIndex {
    file: File,
    count: u64,
}

impl PackIndex {
    /// Where the names begin.
    const NAMES: u64 = 8 + 4 * 256;

    fn open(path: &Path) -> Option<Self> {
        let mut file = opened(path).ok()??;
        let known = bytes_at(&mut file, 0, 8)? == [0xff, b't', b'O', b'c', 0, 0, 0, 2];
        let count = number_at(&mut file, Self::NAMES - 4)?;
        known.then_some(Self { file, count })
    }

    /// Where the object of a name begins in the pack.
    fn find(&mut self, id: &[u8]) -> Option<u64> {
        let first = u64::from(*id.first()?);
        let mut low = match first.checked_sub(1) {
            Some(before) => number_at(&mut self.file, 8 + 4 * before)?,
            None => 0,
        };
        let mut high = number_at(&mut self.file, 8 + 4 * first)?.min(self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            let name = bytes_at(&mut self.file, Self::NAMES + middle * HASH as u64, HASH)?;
            match name.as_slice().cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.offset(middle),
            }
        }
        None
    }

    fn offset(&mut self, number: u64) -> Option<u64> {
        // Behind the names stand the sums of their objects.
        let offsets = Self::NAMES + self.count * (HASH as u64 + 4);
        let offset = number_at(&mut self.file, offsets + number * 4)?;
        match offset & 0x8000_0000 {
            0 => Some(offset),
            _ => {
                let large = offsets + self.count * 4 + (offset & 0x7fff_ffff) * 8;
                let bytes = bytes_at(&mut self.file, large, 8)?;
                Some(u64::from_be_bytes(bytes.try_into().ok()?))
            }
        }
    }
}

/// The form in which an object is stored in a pack.
enum PackedForm {
    Whole(ObjectKind),
    /// As the difference from the object that begins there.
    From(u64),
    /// As the difference from the object of this name.
    FromNamed(Vec<u8>),
}

/// What is stored at a place of a pack.
fn stored_at(pack: &mut File, offset: u64) -> Option<(PackedForm, Vec<u8>)> {
    let mut header = Vec::new();
    pack.seek(SeekFrom::Start(offset)).ok()?;
    pack.by_ref().take(64).read_to_end(&mut header).ok()?;
    let mut rest = header.as_slice();
    let (first, after) = rest.split_first()?;
    rest = after;
    // Four bits of the length stand beside the kind, and seven in each byte behind it.
    let mut length = u64::from(first & 15);
    if first & 128 != 0 {
        length |= little(&mut rest)?.checked_mul(16)?;
    }
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_OBJECT)?;
    let stored = match (first >> 4) & 7 {
        1 => PackedForm::Whole(ObjectKind::Commit),
        2 => PackedForm::Whole(ObjectKind::Tree),
        3 => PackedForm::Whole(ObjectKind::Blob),
        6 => PackedForm::From(offset.checked_sub(distance(&mut rest)?).filter(|at| *at < offset)?),
        7 => {
            let (base, after) = rest.split_at_checked(HASH)?;
            rest = after;
            PackedForm::FromNamed(base.to_vec())
        }
        _ => return None,
    };
    let begins = offset.checked_add((header.len() - rest.len()) as u64)?;
    let mut compressed = Vec::new();
    pack.seek(SeekFrom::Start(begins)).ok()?;
    pack.by_ref().take(most_compressed(length)?).read_to_end(&mut compressed).ok()?;
    let content = decompress_to_vec_zlib_with_limit(&compressed, length + 1).ok()?;
    (content.len() == length).then_some((stored, content))
}

/// How many bytes an object of this length has at most where it is compressed.
fn most_compressed(length: usize) -> Option<u64> {
    u64::try_from(length + length / 64 + 1024).ok()
}

/// What a difference makes of an object: pieces of it, and new ones.
fn applied(base: &[u8], delta: &[u8]) -> Option<Vec<u8>> {
    let mut rest = delta;
    let from = little(&mut rest)?;
    let length = little(&mut rest).and_then(|it| usize::try_from(it).ok())?;
    if from != base.len() as u64 || length > MAX_OBJECT {
        return None;
    }
    let mut made = Vec::with_capacity(length);
    while let Some((operation, after)) = rest.split_first() {
        rest = after;
        let piece = match operation {
            0 => return None,
            1..=127 => {
                let (new, after) = rest.split_at_checked(usize::from(*operation))?;
                rest = after;
                new
            }
            copies => {
                let at = sparse(&mut rest, *copies, 4)?;
                let count = sparse(&mut rest, copies >> 4, 3)?;
                let count = if count == 0 { 0x1_0000 } else { count };
                base.get(at..at.checked_add(count)?)?
            }
        };
        made.extend_from_slice(piece);
        if made.len() > length {
            return None;
        }
    }
    (made.len() == length).then_some(made)
}

/// A number of which only the bytes that are not zero are written, the lowest first: each has a bit.
fn sparse(rest: &mut &[u8], bits: u8, count: u32) -> Option<usize> {
    let mut number = 0;
    for at in (0..count).filter(|at| bits & (1 << at) != 0) {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= usize::from(*byte) << (8 * at);
    }
    Some(number)
}

/// A number with seven bits in each byte, the lowest first.
fn little(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..8 {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 127) << (7 * at);
        if byte & 128 == 0 {
            return Some(number);
        }
    }
    None
}

/// How far in front of an object the one lies that it differs from: seven bits in each byte, the highest first, and one more
/// for each byte that follows.
fn distance(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        number = number.checked_mul(128)?.checked_add(u64::from(byte & 127))?;
        if byte & 128 == 0 {
            return Some(number);
        }
        number = number.checked_add(1)?;
    }
}

fn bytes_at(file: &mut File, offset: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    file.seek(SeekFrom::Start(offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}

fn number_at(file: &mut File, offset: u64) -> Option<u64> {
    let bytes = bytes_at(file, offset, 4)?;
    Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?)))
}
