//! Checking the entries of a log one by one, and the report of the first that is wrong.

use std::fmt;

use serde::Serialize;

use super::handle::Ledger;
use super::stores::ends::{LogEnd, LogEnds};
use super::stores::linker::{Linker, Unlinked, content};
use super::stores::store::Entry;

/// The first place where verification found that a log, or a row beside it, is not as the ledger wrote it.
///
/// ```
/// use countersign::ledger::{Ask, Ledger, LedgerError, MemoryStore};
/// use std::collections::BTreeMap;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
/// // The heads of an earlier verification, of which this store knows nothing:
/// let earlier = BTreeMap::from([("run-0".to_owned(), (7, "abc".to_owned()))]);
/// let Err(LedgerError::Broken(broken)) = ledger.verify(&earlier).await else { unreachable!() };
/// assert_eq!((broken.run.as_str(), broken.seq), ("run-0", Some(7)));
/// assert!(broken.to_string().contains("the whole log is gone"));
/// # Ok::<(), LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Broken {
    /// The run that the log belongs to.
    pub run: String,
    /// The place of the entry that is wrong; `None` when a row or a whole log is wrong.
    pub seq: Option<i64>,
    /// The fault, for people to read.
    pub problem: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log of run `{}` is broken", self.run.escape_debug())?;
        if let Some(seq) = self.seq {
            write!(f, " at entry {seq}")?;
        }
        write!(f, ": {}", self.problem)
    }
}

impl From<Unlinked> for Broken {
    fn from(unlinked: Unlinked) -> Self {
        let Unlinked { run, seq } = unlinked;
        let problem = "it was changed, or made without the audit key of this process: `countersign asks verify` says more";
        Self { run, seq: Some(seq), problem: problem.to_owned() }
    }
}

/// The problem of an entry that anyone could have made.
const KEYLESS: &str = "it was made without the audit key, by a process that had none or by another program: `countersign asks \
    rekey` shows such entries to a person, who can accept them under another key";

/// One log, read from its first entry to its last, each of which is checked against the one before it.
pub(super) struct LogChain<'l> {
    linker: &'l Linker,
    run: &'l str,
    /// The end of the log when the key was added: the entries up to here were made without it.
    older: Option<&'l LogEnd>,
    content: String,
    /// The place and the hash of the last entry.
    pub(super) last: (i64, String),
    /// The entries that are older than the key.
    entries: Vec<Entry>,
}

impl<'l> LogChain<'l> {
    pub(super) fn new(ledger: &'l Ledger, run: &'l str, ends: Option<&'l LogEnds>) -> Self {
        let older = ends.and_then(|ends| ends.get(run));
        let (linker, content) = (&ledger.linker, String::new());
        Self { linker, run, older, content, last: Default::default(), entries: Vec::new() }
    }

    /// Begins behind entries that were dropped.
    pub(super) fn begin_behind(&mut self, first: &Entry) {
        self.last = (first.seq.saturating_sub(1), first.prev.clone());
    }

    /// Checks the next entry.
    pub(super) fn next(&mut self, entry: &Entry) -> Result<(), &'static str> {
        if entry.run != self.run || Some(entry.seq) != self.last.0.checked_add(1) {
            return Err("an entry is missing before it");
        }
        if entry.prev != self.last.1 {
            return Err("it is not linked to the entry before it");
        }
        match self.older {
            Some(older) if entry.seq <= older.seq => self.next_older(entry, older)?,
            _ if self.linker.has_made(entry) || self.linker.takes(entry) => {}
            _ if self.linker.is_keyless(entry) => return Err(KEYLESS),
            _ => return Err("it was changed, or made without the audit key"),
        }
        self.last = (entry.seq, entry.hash.clone());
        Ok(())
    }

    /// Without the earlier key the hashes of these entries say nothing; the digest of all of them does.
    fn next_older(&mut self, entry: &Entry, older: &LogEnd) -> Result<(), &'static str> {
        self.content = content(&self.content, entry);
        self.entries.push(entry.clone());
        if entry.seq == older.seq {
            if (&entry.hash, &self.content) != (&older.hash, &older.content) {
                return Err("it, or an entry before it, is not what the audit key was added to");
            }
            self.linker.vouched().add(self.run, &self.entries);
        }
        Ok(())
    }
}
