//! The order in which open asks are shown, a page at a time: the soonest due first, no requester's asks hidden behind
//! another's, and equal calls of one run as one entry.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use countersign::ledger::{Ledger, Millis, Record};
use serde_json::json;
use sha2::{Digest as _, Sha256};

/// How many entries of one requester come before the rest of theirs comes behind everybody else's, and so on.
const SHARE: usize = 10;
/// When an ask without a deadline counts as due: so long after it was made.
const DUE_AFTER: Millis = 24 * 60 * 60 * 1000;

/// One ask, or several about equal calls of one run.
pub(crate) struct Entry {
    /// The same for the same call, however many equal ones there are.
    pub(crate) key: String,
    pub(crate) place: Place,
    /// The one that is due first.
    pub(crate) record: Record,
    /// The others.
    pub(crate) same: Vec<Record>,
}

/// Where an entry stands in the order, as clients hand it back to get what follows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    round: usize,
    due: Millis,
    id: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.round, self.due, self.id)
    }
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.splitn(3, '.');
        let mut next = || parts.next().ok_or("it is no place in the list");
        let (round, due, id) = (next()?, next()?, next()?.to_owned());
        let number = |_| "it is no place in the list";
        Ok(Self { round: round.parse().map_err(number)?, due: due.parse().map_err(number)?, id })
    }
}

/// All entries, in order.
pub(crate) fn queue(ledger: &Ledger, records: Vec<Record>) -> Vec<Entry> {
    let mut entries = grouped(ledger, records);
    entries.sort_by(|a, b| a.place.cmp(&b.place));
    // However each name is written, one person has one share.
    let mut of: HashMap<String, usize> = HashMap::new();
    for entry in &mut entries {
        let requester = ledger.canonical_name(entry.record.ask.principal().unwrap_or_default());
        let before = of.entry(requester).or_default();
        entry.place.round = *before / SHARE;
        *before += 1;
    }
    entries.sort_by(|a, b| a.place.cmp(&b.place));
    entries
}

fn grouped(ledger: &Ledger, records: Vec<Record>) -> Vec<Entry> {
    let (mut entries, mut known): (Vec<Entry>, HashMap<String, usize>) = Default::default();
    for record in records {
        let (key, place) = (key(ledger, &record), place(&record));
        match known.get(&key).and_then(|at| entries.get_mut(*at)) {
            Some(entry) if place < entry.place => {
                entry.place = place;
                entry.same.push(std::mem::replace(&mut entry.record, record));
            }
            Some(entry) => entry.same.push(record),
            None => {
                known.insert(key.clone(), entries.len());
                entries.push(Entry { key, place, record, same: Vec::new() });
            }
        }
    }
    entries
}

fn place(record: &Record) -> Place {
    let due = record.expires_at.unwrap_or(record.parked_at.saturating_add(DUE_AFTER));
    Place { round: 0, due, id: record.ask.id().to_owned() }
}

/// Equal calls have equal keys: of the same run and person, in one group ([`DeferredToolRequests::group_key`]). Where
/// several people have to agree, each call is an entry of its own, as each has its own votes.
///
/// [`DeferredToolRequests::group_key`]: countersign::DeferredToolRequests::group_key
fn key(ledger: &Ledger, record: &Record) -> String {
    let ask = &record.ask;
    if ask.quorum().approvals > 1 {
        return ask.id().to_owned();
    }
    let requests = ask.requests();
    let group = requests.iter().next().and_then(|call| requests.group_key(call.id()));
    let wants_it = ask.principal().map(|name| ledger.canonical_name(name));
    let all = json!([ask.run(), group, wants_it, ask.quorum().not_the_requester]);
    let digest = Sha256::digest(all.to_string());
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
