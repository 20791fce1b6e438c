//! Checkpoints: how far every log had come, in a log of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::{Broken, PAGE};
use super::store::{Draft, Entry, Writes};
use super::{Ledger, LedgerError};

/// The log of the checkpoints. No run is kept under this name.
pub(super) const CHECKPOINTS: &str = "countersign/checkpoints";

/// How many logs one entry is about, at most.
const AT_ONCE: usize = 512;

/// Ends that logs had come to: places, and the hashes that were there.
pub(super) type Ends = BTreeMap<String, Vec<(i64, String)>>;

/// A checkpoint that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The place of its last entry in the log of the checkpoints.
    pub entries: i64,
    /// The hash of that entry. Kept elsewhere, it shows when the log of the checkpoints is cut or written anew.
    pub head: String,
    /// How many logs had gone on since the checkpoint before.
    pub changed: u64,
}

impl Checkpoint {
    /// The checkpoint, as [`Ledger::verify`] takes it: the log of the checkpoints must go through it.
    #[must_use]
    pub fn to_heads(&self) -> BTreeMap<String, (i64, String)> {
        BTreeMap::from([(CHECKPOINTS.to_owned(), (self.entries, self.head.clone()))])
    }
}

impl Ledger {
    /// Notes how far the log of each run has come, in a log of its own that is chained and keyed like the others. From
    /// then on [`verify`](Self::verify) shows it when such a log was cut, written anew, or removed with everything about
    /// its run. Whoever can write the store can remove the checkpoints as well, or, where the log has no key, write them
    /// anew: keep [`Checkpoint::head`] elsewhere.
    ///
    /// Nobody waits for it: it reads, and appends to its own log. Of each log that has gone on since the checkpoint before
    /// it notes the last entry, up to 512 logs an entry; it reads the earlier checkpoints, and the end of every log.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// let made = ledger.checkpoint().await?.unwrap();
    /// assert_eq!((made.entries, made.changed), (1, 1));
    /// assert!(ledger.verify(&made.to_heads()).await?.is_ok());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; what was noted by then stays. The inner `Err` says what does not fit in the log of the
    /// checkpoints, as when it has another key: nothing was noted.
    pub async fn checkpoint(&self) -> Result<Result<Checkpoint, Broken>, LedgerError> {
        let known = match self.checkpoints().await? {
            Ok(known) => known,
            Err(broken) => return Ok(Err(broken)),
        };
        let is_known = |end: &Entry| {
            let last = known.get(&end.run).and_then(|ends| ends.last());
            last.is_some_and(|(seq, hash)| (*seq, hash) == (end.seq, &end.hash))
        };
        let (mut ends, mut after) = (BTreeMap::new(), String::new());
        let (mut changed, mut noted) = (0, false);
        loop {
            let page = self.store.heads(&after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after.clone_from(&last.run);
            for end in page.into_iter().filter(|end| end.run != CHECKPOINTS && !is_known(end)) {
                ends.insert(end.run, (end.seq, end.hash));
                changed += 1;
                if ends.len() == AT_ONCE {
                    self.note(&std::mem::take(&mut ends)).await?;
                    noted = true;
                }
            }
        }
        // One that notes nothing says that nothing has happened.
        if !noted || !ends.is_empty() {
            self.note(&ends).await?;
        }
        let last = self.end_of_checkpoints().await?;
        Ok(Ok(Checkpoint { entries: last.0, head: last.1, changed }))
    }

    async fn note(&self, ends: &BTreeMap<String, (i64, String)>) -> Result<(), LedgerError> {
        let mut work = |now, _| {
            let (event, by) = ("checkpoint", self.get_worker());
            let body = json!({"at": now, "by": by, "event": event, "heads": ends});
            let log = vec![Draft { run: CHECKPOINTS.to_owned(), row: None, body }];
            Writes { log, ..Writes::default() }
        };
        Ok(self.store.transact(&[], &self.linker, &mut work).await?)
    }

    async fn end_of_checkpoints(&self) -> Result<(i64, String), LedgerError> {
        let mut last = (0, String::new());
        while let Some(entry) = self.store.log(CHECKPOINTS, last.0, PAGE).await?.pop() {
            last = (entry.seq, entry.hash);
        }
        Ok(last)
    }

    /// All ends that were noted, in the order in which they were.
    pub(super) async fn checkpoints(&self) -> Result<Result<Ends, Broken>, LedgerError> {
        let (mut ends, mut last) = (Ends::new(), (0, String::new()));
        loop {
            let page = self.store.log(CHECKPOINTS, last.0, PAGE).await?;
            if page.is_empty() {
                return Ok(Ok(ends));
            }
            for entry in page {
                let read = match self.check(&entry, CHECKPOINTS, &last) {
                    Ok(()) => noted(&entry).ok_or("it is no checkpoint"),
                    Err(problem) => Err(problem),
                };
                match read {
                    Ok(noted) => {
                        for (run, end) in noted {
                            ends.entry(run).or_default().push(end);
                        }
                    }
                    Err(problem) => {
                        let (run, problem) = (CHECKPOINTS.to_owned(), problem.to_owned());
                        return Ok(Err(Broken { run, seq: Some(entry.seq), problem }));
                    }
                }
                last = (entry.seq, entry.hash);
            }
        }
    }
}

/// Refuses the name of the log of the checkpoints, and none: whoever goes through the logs begins behind it.
pub(super) fn refuse_name(run: &str, id: &str) -> Result<(), LedgerError> {
    let problem = match run {
        "" => "its run has no id: give it one".to_owned(),
        CHECKPOINTS => {
            format!("`{CHECKPOINTS}` is the log of the checkpoints: give its run another id")
        }
        _ => return Ok(()),
    };
    Err(LedgerError::Unkeepable { id: id.to_owned(), problem })
}

fn noted(entry: &Entry) -> Option<BTreeMap<String, (i64, String)>> {
    let mut body: Value = serde_json::from_str(&entry.body).ok()?;
    serde_json::from_value(body.get_mut("heads")?.take()).ok()
}
