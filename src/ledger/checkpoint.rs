//! Checkpoints: the ends of all logs at a point of time, noted in a log of their own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::audit::{Broken, PAGE};
use super::store::{Draft, Entry, Writes};
use super::{Ledger, LedgerError};

/// The name of the log of the checkpoints, which no run may have as its id.
pub(super) const CHECKPOINTS: &str = "countersign/checkpoints";

/// How many logs one entry notes the ends of, at most.
const AT_ONCE: usize = 512;

/// Earlier ends of logs, by run: the place and the hash of the entry that was the last one then.
pub(super) type Ends = BTreeMap<String, Vec<(i64, String)>>;

/// A checkpoint that [`Ledger::checkpoint`] has written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The place of the last entry in the log of the checkpoints.
    pub entries: i64,
    /// The hash of that entry. Kept outside of the store, it shows whether the log of the checkpoints was cut or
    /// rewritten.
    pub head: String,
    /// How many logs have new entries since the previous checkpoint.
    pub changed: u64,
}

impl Checkpoint {
    /// The checkpoint in the form that [`Ledger::verify`] takes: the log of the checkpoints must contain its entry.
    #[must_use]
    pub fn to_heads(&self) -> BTreeMap<String, (i64, String)> {
        BTreeMap::from([(CHECKPOINTS.to_owned(), (self.entries, self.head.clone()))])
    }
}

impl Ledger {
    /// Notes the end of each run's log, in a log of its own that is chained and keyed like the others. From then on
    /// [`verify`](Self::verify) detects when one of these logs was cut, rewritten, or removed with all rows of its run.
    /// A program that can write to the store can remove the checkpoints as well, or rewrite them where the log has no
    /// key: keep [`Checkpoint::head`] outside of the store.
    ///
    /// A checkpoint blocks no other operation: it only reads, and appends to its own log. It reads the earlier
    /// checkpoints and the end of every log, and notes the end of each log with new entries since the previous
    /// checkpoint, up to 512 logs in one entry.
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
    /// [`LedgerError`]; entries that were written before the error stay. The inner `Err` says what is wrong with the
    /// log of the checkpoints, for example that it was written with another key; nothing was written then.
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
        // An entry without ends is written too: it records that no log has changed.
        if !noted || !ends.is_empty() {
            self.note(&ends).await?;
        }
        let last = self.end_of_checkpoints().await?;
        Ok(Ok(Checkpoint { entries: last.0, head: last.1, changed }))
    }

    async fn note(&self, ends: &BTreeMap<String, (i64, String)>) -> Result<(), LedgerError> {
        let mut work = |now, _| {
            let (event, by) = ("checkpoint", self.worker_name());
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

    /// All ends that checkpoints have noted, in the order in which they were noted.
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

/// Refuses two ids of runs: the name of the log of the checkpoints, and the empty id, as paging through the logs begins
/// behind the empty id and would never list it.
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
