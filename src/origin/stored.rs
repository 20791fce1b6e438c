//! The stored form of the record of a run.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::record::{ReadEntry, ReadRecord, RecordState};
use super::spelling::Folders;
use super::text_source::TextSource;
use super::value_index::{ReadNumber, ValueIndex};
use crate::args::hex;

/// The record as it is stored: hashes in hexadecimal, one text for each read.
#[derive(Serialize, Deserialize)]
struct StoredReads {
    key: String,
    max: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    past_is_unknown: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    full: bool,
    reads: Vec<StoredRead>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    wrote: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    around: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
struct StoredRead {
    source: TextSource,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inside: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    tool: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    unknown: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    urls: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    values: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    alike: String,
}

/// The length of a hash in hexadecimal.
const HASH: usize = 16;

fn written(hash: u64) -> String {
    hex(&hash.to_be_bytes())
}

/// The hashes in a text; `None` where it has anything else.
fn hashes(text: &str) -> Option<Vec<u64>> {
    let parts = text.as_bytes().chunks(HASH);
    let read = |part: &[u8]| {
        let part = std::str::from_utf8(part).ok().filter(|part| part.len() == HASH)?;
        u64::from_str_radix(part, 16).ok()
    };
    parts.map(read).collect()
}

impl StoredReads {
    fn of(readings: &RecordState) -> Self {
        let read = |entry: &ReadEntry| StoredRead {
            source: entry.source.clone(),
            inside: entry.is_inside,
            tool: entry.tool.clone(),
            call: entry.call.clone(),
            place: entry.place.clone(),
            unknown: !entry.is_known,
            urls: entry.urls.iter().copied().map(written).collect(),
            values: String::new(),
            alike: String::new(),
        };
        let mut reads: Vec<_> = readings.entries.iter().map(read).collect();
        for (hash, read, alike) in readings.index.entries() {
            if let Some(read) = reads.get_mut(read as usize) {
                (if alike { &mut read.alike } else { &mut read.values }).push_str(&written(hash));
            }
        }
        let mut wrote: Vec<u64> = readings.index.wrote.iter().copied().collect();
        wrote.sort_unstable();
        Self {
            key: hex(&readings.index.key()),
            max: readings.index.max,
            base: readings.folders.base.clone(),
            home: readings.folders.home.clone(),
            past_is_unknown: readings.past_is_unknown,
            full: readings.index.is_full,
            reads,
            wrote: wrote.into_iter().map(written).collect(),
            around: readings
                .around
                .iter()
                .map(|(hash, text)| (written(*hash), text.clone()))
                .collect(),
        }
    }

    fn load(self) -> Option<RecordState> {
        let mut key = [0; 16];
        let halves = hashes(&self.key).filter(|it| it.len() == 2)?;
        let bytes = halves.iter().flat_map(|half| half.to_be_bytes());
        key.iter_mut().zip(bytes).for_each(|(to, from)| *to = from);
        let mut index = ValueIndex::new(key, self.max);
        let mut entries = Vec::new();
        for (number, read) in self.reads.into_iter().enumerate() {
            let number = ReadNumber::try_from(number).ok()?;
            let is_others = read.source.is_others();
            hashes(&read.values)?
                .into_iter()
                .for_each(|it| index.add(it, number, false, is_others));
            hashes(&read.alike)?.into_iter().for_each(|it| index.add(it, number, true, is_others));
            entries.push(ReadEntry {
                source: read.source,
                is_inside: read.inside,
                tool: read.tool,
                call: read.call,
                place: read.place,
                is_known: !read.unknown,
                urls: hashes(&read.urls)?,
            });
        }
        hashes(&self.wrote)?.into_iter().for_each(|hash| index.write(hash));
        index.is_full |= self.full;
        let around = self.around.into_iter();
        let around =
            around.filter_map(|(hash, text)| Some((*hashes(&hash)?.first()?, text))).collect();
        let folders = Folders { base: self.base, home: self.home };
        Some(RecordState { index, folders, entries, around, past_is_unknown: self.past_is_unknown })
    }
}

impl Serialize for ReadRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        StoredReads::of(&self.lock()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ReadRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredReads::deserialize(deserializer)?;
        let damaged = || serde::de::Error::custom("the record of what was read is damaged");
        stored.load().map(Self::of).ok_or_else(damaged)
    }
}

impl PartialEq for ReadRecord {
    /// Returns `true` if both have read the same in the same order.
    fn eq(&self, other: &Self) -> bool {
        let written = |it: &Self| serde_json::to_value(it).ok();
        written(self) == written(other)
    }
}
