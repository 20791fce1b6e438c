//! Checking one entry of a log, and the report of the first that is wrong.

use std::fmt;

use serde::Serialize;

use super::handle::Ledger;
use super::store::Entry;

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
pub struct Broken {
    /// The run that the log belongs to.
    pub run: String,
    /// The place of the entry that is wrong; `None` when a row or a whole log is wrong.
    pub seq: Option<i64>,
    /// What is wrong there, for people to read.
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

/// Checks an entry against the place and the hash of the one before it.
pub(super) fn check(
    ledger: &Ledger,
    entry: &Entry,
    run: &str,
    last: &(i64, String),
) -> Result<(), &'static str> {
    if entry.run != run || Some(entry.seq) != last.0.checked_add(1) {
        return Err("an entry is missing before it");
    }
    if entry.prev != last.1 {
        return Err("it is not linked to the entry before it");
    }
    if entry.hash != ledger.linker.hash(run, entry.seq, &entry.prev, &entry.body) {
        return Err("it was changed");
    }
    Ok(())
}
