//! Checkpoints: the ends of all logs at a point of time, noted in a log of their own.
//!
//! A chain shows that an entry in the middle was changed. It does not show that its end is missing: a shorter chain is
//! a chain, and no chain at all is one, too. So we note the ends of all logs from time to time, in a log that is
//! chained itself. Its own end is the one value that you have to keep outside of the store.
//!
//! | attack on the store | found by the chain | by a checkpoint | by a checkpoint's head, kept elsewhere |
//! |---|---|---|---|
//! | an entry is changed | yes (with a key) | – | – |
//! | the last entries of a log are removed | no | yes | – |
//! | a run is removed with its rows | no | yes | – |
//! | the checkpoints are removed, too | no | no | yes |
//! | the whole store is replaced by an old copy | no | no | yes |
//!
//! An entry notes at most 512 logs, so that a checkpoint of a large store is many small transactions and blocks none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ledger::broken::{Broken, LogChain};
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::anchor;
use crate::ledger::logs::events::{CHECKPOINTS, KEY, PAGE};
use crate::ledger::logs::vouching;
use crate::ledger::rows::change::transact;
use crate::ledger::stores::store::Entry;

/// The number of logs whose ends one entry has, at most.
const AT_ONCE: usize = 512;

/// Earlier ends of logs, by run: the place and the hash of the entry that was the last one then.
pub(in crate::ledger) type Ends = BTreeMap<String, Vec<(i64, String)>>;

/// A checkpoint that [`Ledger::checkpoint`] has written.
///
/// ```
/// use countersign::ledger::{Ask, Ledger, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
/// let first = ledger.checkpoint().await?;
/// let second = ledger.checkpoint().await?;
/// assert_eq!((first.changed, second.changed), (1, 0), "an entry without ends says that nothing has changed");
/// assert!(ledger.verify(&second.to_heads()).await.is_ok());
/// assert!(Ledger::new(MemoryStore::new()).verify(&second.to_heads()).await.is_err(), "an emptied store");
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The place of the last entry in the log of the checkpoints.
    pub entries: i64,
    /// The hash of that entry. Kept outside of the store, it shows whether the log of the checkpoints was cut or
    /// rewritten.
    pub head: String,
    /// The number of logs with new entries since the previous checkpoint.
    pub changed: u64,
}

impl Checkpoint {
    /// The checkpoint in the form that [`Ledger::verify`] takes: the log of the checkpoints must contain its entry.
    #[must_use]
    pub fn to_heads(&self) -> BTreeMap<String, (i64, String)> {
        BTreeMap::from([(CHECKPOINTS.to_owned(), (self.entries, self.head.clone()))])
    }
}

/// Notes the ends of all logs. See [`Ledger::checkpoint`].
pub(in crate::ledger) async fn checkpoint(
    ledger: &Ledger,
) -> Result<Result<Checkpoint, Broken>, LedgerError> {
    if let Some(path) = &ledger.opening.anchor {
        anchor::check(ledger.opened().await?, path).await?;
    }
    let known = match checkpoints(ledger).await? {
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
        let page = ledger.opened().await?.heads(&after, PAGE).await?;
        let Some(last) = page.last() else { break };
        after.clone_from(&last.run);
        for end in page.into_iter().filter(|end| is_noted(&end.run) && !is_known(end)) {
            ends.insert(end.run, (end.seq, end.hash));
            changed += 1;
            if ends.len() == AT_ONCE {
                note(ledger, &std::mem::take(&mut ends)).await?;
                noted = true;
            }
        }
    }
    // An entry without ends is written too: it records that no log has changed.
    if !noted || !ends.is_empty() {
        note(ledger, &ends).await?;
    }
    let last = end_of_checkpoints(ledger).await?;
    let made = Checkpoint { entries: last.0, head: last.1, changed };
    if let Some(path) = &ledger.opening.anchor {
        anchor::keep(path, &json!(made))?;
    }
    Ok(Ok(made))
}

/// Returns `true` if checkpoints note the end of this log. What the store says about its key follows from the key.
fn is_noted(run: &str) -> bool {
    run != CHECKPOINTS && run != KEY
}

async fn note(ledger: &Ledger, ends: &BTreeMap<String, (i64, String)>) -> Result<(), LedgerError> {
    transact(ledger, &[], |writing, _| {
        let (event, by) = ("checkpoint", ledger.worker_name());
        writing.entry(
            CHECKPOINTS,
            json!({"at": writing.now, "by": by, "event": event, "heads": ends}),
        );
        Ok(())
    })
    .await
}

async fn end_of_checkpoints(ledger: &Ledger) -> Result<(i64, String), LedgerError> {
    let mut last = (0, String::new());
    while let Some(entry) = ledger.opened().await?.log(CHECKPOINTS, last.0, PAGE).await?.pop() {
        last = (entry.seq, entry.hash);
    }
    Ok(last)
}

/// All ends that checkpoints have noted, in the order in which they were noted.
pub(in crate::ledger) async fn checkpoints(
    ledger: &Ledger,
) -> Result<Result<Ends, Broken>, LedgerError> {
    let mut ends = Ends::new();
    let store = ledger.opened().await?;
    let mut chain = LogChain::new(ledger, CHECKPOINTS, vouching::ends(ledger).await?);
    loop {
        let page = store.log(CHECKPOINTS, chain.last.0, PAGE).await?;
        if page.is_empty() {
            return Ok(Ok(ends));
        }
        for entry in page {
            let read = match chain.next(&entry) {
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
        }
    }
}

fn noted(entry: &Entry) -> Option<BTreeMap<String, (i64, String)>> {
    let mut body: Value = serde_json::from_str(&entry.body).ok()?;
    serde_json::from_value(body.get_mut("heads")?.take()).ok()
}
