//! The order in which pending asks are listed, a page at a time: no requester's asks hidden behind another's, and equal
//! calls of one run as one entry (rule S6).
//!
//! # Fairness
//!
//! An agent that runs wild can make a thousand asks with the soonest deadline. Sorted by time alone, the one ask of
//! another person would be on page 21, and expire there. So we deal entries in rounds:
//!
//! ```text
//! by deadline:   A1 A2 A3 … A1000 B1        (A has made 1000, B one)
//! in rounds:     A1 … A10 B1 | A11 … A20 | A21 …
//! ```
//!
//! # Pages
//!
//! A place says where an entry stands (round, time, id), and the next page begins behind it. We do not count the
//! entries to skip: as soon as one of them is decided, the rest moves up, and the person never sees one entry.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

use super::board::BoardItem;
use countersign::ledger::Millis;

/// The number of entries of one requester in each round: the next ones come in the next round, after the entries of all
/// others.
///
/// A fifth of a page: enough that a person who has a batch can decide it without turning pages.
const SHARE: usize = 10;

/// The order of the entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sort {
    /// The soonest deadline, in rounds: ten entries of each requester before the eleventh of any other.
    #[default]
    Due,
    Oldest,
    Newest,
}

/// One ask, or several about equal calls of one run.
pub(super) struct ListEntry {
    pub(super) place: EntryPlace,
    /// The one that comes first.
    pub(super) item: Arc<BoardItem>,
    /// The others.
    pub(super) same: Vec<Arc<BoardItem>>,
}

/// The position of an entry in the order. Clients send it back to get the entries after it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryPlace {
    round: usize,
    /// The order of the run, where the entries of a run are kept together.
    lead: Millis,
    run: String,
    at: Millis,
    id: String,
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}.{}.{}", self.round, self.lead, self.at, self.id, self.run)
    }
}

impl FromStr for EntryPlace {
    /// The run comes last, as it may contain dots; `splitn` leaves them in it.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = "it is no position in the list";
        let mut parts = text.splitn(5, '.');
        let mut next = || parts.next().ok_or(wrong);
        let number = |text: &str| text.parse().map_err(|_| wrong);
        let round = next()?.parse().map_err(|_| wrong)?;
        let (lead, at) = (number(next()?)?, number(next()?)?);
        let (id, run) = (next()?.to_owned(), next()?.to_owned());
        Ok(Self { round, lead, run, at, id })
    }
}

/// All entries, in order.
pub(super) fn arranged(items: Vec<Arc<BoardItem>>, sort: Sort, by_run: bool) -> Vec<ListEntry> {
    let mut entries = grouped(items, sort);
    entries.sort_by(|a, b| a.place.cmp(&b.place));
    if by_run {
        lead(&mut entries);
        entries.sort_by(|a, b| a.place.cmp(&b.place));
    }
    if sort == Sort::Due {
        share(&mut entries, by_run);
        entries.sort_by(|a, b| a.place.cmp(&b.place));
    }
    entries
}

/// Moves the entries of a run to the position of the first of them.
fn lead(entries: &mut [ListEntry]) {
    let mut first: HashMap<String, Millis> = HashMap::new();
    for entry in entries {
        let run = entry.item.record.ask.run().to_owned();
        entry.place.lead = *first.entry(run.clone()).or_insert(entry.place.at);
        entry.place.run = run;
    }
}

/// Gives each requester a share of every round: of entries, or of runs where these are kept together.
fn share(entries: &mut [ListEntry], by_run: bool) {
    let mut of: HashMap<String, usize> = HashMap::new();
    let mut rounds: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        let run = entry.item.record.ask.run();
        if let Some(round) = rounds.get(run).filter(|_| by_run) {
            entry.place.round = *round;
            continue;
        }
        let before = of.entry(entry.item.requester.clone()).or_default();
        entry.place.round = *before / SHARE;
        *before += 1;
        if by_run {
            rounds.insert(run.to_owned(), entry.place.round);
        }
    }
}

/// A group stands where its first entry would stand: at its soonest deadline, for example.
fn grouped(items: Vec<Arc<BoardItem>>, sort: Sort) -> Vec<ListEntry> {
    let (mut entries, mut known): (Vec<ListEntry>, HashMap<String, usize>) = Default::default();
    for item in items {
        let place = place(&item, sort);
        match known.get(&item.key).and_then(|at| entries.get_mut(*at)) {
            Some(entry) if place < entry.place => {
                entry.place = place;
                entry.same.push(std::mem::replace(&mut entry.item, item));
            }
            Some(entry) => entry.same.push(item),
            None => {
                known.insert(item.key.clone(), entries.len());
                entries.push(ListEntry { place, item, same: Vec::new() });
            }
        }
    }
    entries
}

fn place(item: &BoardItem, sort: Sort) -> EntryPlace {
    let at = match sort {
        Sort::Due => item.due,
        Sort::Oldest => item.record.parked_at,
        Sort::Newest => item.record.parked_at.saturating_neg(),
    };
    EntryPlace { round: 0, lead: 0, run: String::new(), at, id: item.record.ask.id().to_owned() }
}
