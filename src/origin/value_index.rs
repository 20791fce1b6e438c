//! The index of the values that a run has read: short keyed hashes, each with the reads in which it stands.
//!
//! Eight bytes keep the index small. They are no secret: if you can read the key, you can try values. The key
//! belongs to the run, so the hashes of two runs cannot be compared.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::keyed_hash::KeyedHash;
use super::value_form::ValueForm;

/// The number of a read, in the order of the run.
pub(super) type ReadNumber = u32;

/// A hash of a value is a hash already.
#[derive(Default)]
pub(super) struct AsItIs(u64);

impl Hasher for AsItIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 << 8) | u64::from(*byte));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

type Hashed = BuildHasherDefault<AsItIs>;

/// One place of a value, and the place before it.
#[derive(Debug, Clone, Copy)]
struct ValueStanding {
    read: ReadNumber,
    alike: bool,
    before: u32,
}

/// No place before.
const NONE: u32 = u32::MAX;

#[derive(Clone)]
pub(super) struct ValueIndex {
    key: [u8; 16],
    hasher: KeyedHash,
    last: HashMap<u64, u32, Hashed>,
    standings: Vec<ValueStanding>,
    /// The values that the model has written in calls, and that did not stand in the owner's or the user's text before.
    pub(super) wrote: HashSet<u64, Hashed>,
    pub(super) max: usize,
    /// `true` if values were left out, as there are too many.
    pub(super) is_full: bool,
}

impl ValueIndex {
    pub(super) fn new(key: [u8; 16], max: usize) -> Self {
        Self {
            key,
            hasher: KeyedHash::new(key),
            last: HashMap::default(),
            standings: Vec::new(),
            wrote: HashSet::default(),
            max,
            is_full: false,
        }
    }

    pub(super) fn key(&self) -> [u8; 16] {
        self.key
    }

    pub(super) fn hash(&self, form: ValueForm, value: &str) -> u64 {
        self.hasher.of(form as u8, value)
    }

    pub(super) fn len(&self) -> usize {
        self.standings.len() + self.wrote.len()
    }

    /// Adds a value of a read. An eighth of the room is for the texts of the user and the owner, so that a long page
    /// cannot make them unknown.
    pub(super) fn add(&mut self, hash: u64, read: ReadNumber, alike: bool, is_others: bool) {
        let last = self.last.get(&hash).copied().unwrap_or(NONE);
        // A value that stands in a read as it is, and in another spelling, stands there as it is.
        if let Some(known) = self.standings.get_mut(last as usize).filter(|it| it.read == read) {
            known.alike &= alike;
            return;
        }
        let max = if is_others { self.max - self.max / 8 } else { self.max };
        if self.len() >= max {
            self.is_full = true;
            return;
        }
        let standing = u32::try_from(self.standings.len()).unwrap_or(NONE);
        self.standings.push(ValueStanding { read, alike, before: last });
        self.last.insert(hash, standing);
    }

    pub(super) fn write(&mut self, hash: u64) {
        if self.len() < self.max {
            self.wrote.insert(hash);
        } else {
            self.is_full = true;
        }
    }

    /// The reads before this one in which the value stands, the last one first.
    pub(super) fn reads(
        &self,
        hash: u64,
        before: ReadNumber,
        alike: bool,
    ) -> impl Iterator<Item = ReadNumber> {
        let mut next = self.last.get(&hash).copied().unwrap_or(NONE);
        let all = std::iter::from_fn(move || {
            let standing = self.standings.get(next as usize)?;
            next = standing.before;
            Some(*standing)
        });
        all.filter(move |it| it.read < before && (alike || !it.alike)).map(|it| it.read)
    }

    /// Every value with its reads, in the order in which they were added.
    pub(super) fn entries(&self) -> Vec<(u64, ReadNumber, bool)> {
        let mut hashes = vec![0; self.standings.len()];
        for (hash, last) in &self.last {
            let mut next = *last;
            while let Some(standing) = self.standings.get(next as usize) {
                if let Some(slot) = hashes.get_mut(next as usize) {
                    *slot = *hash;
                }
                next = standing.before;
            }
        }
        hashes
            .into_iter()
            .zip(&self.standings)
            .map(|(hash, it)| (hash, it.read, it.alike))
            .collect()
    }
}
