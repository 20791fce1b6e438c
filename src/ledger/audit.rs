//! Verifying the log against the rows, and exporting it.
//!
//! # What a verification compares
//!
//! 1. **Within a log**: each entry has the next place, the hash of the entry before it, and a hash that fits its
//!    content.
//! 2. **Against earlier ends**: the log contains every entry that a checkpoint, or the caller, has noted as its end
//!    before. A log that was cut and continued has other entries there.
//! 3. **Against the rows**: the last entry about each row has the digest of that row, no row is without an entry, and
//!    no entry about a row is without the row.
//!
//! # Reading while others write
//!
//! Rows and logs are not read in one snapshot, as a snapshot over a whole store would block a busy server. A mismatch
//! therefore counts only if neither side has changed since it was read; otherwise the run is read again, up to a
//! hundred times. A run that changes faster than that is reported as such, which is no statement about its log.
//!
//! # Pruned logs
//!
//! [`Ledger::prune`] leaves one entry of a run, whose `prev` is the hash of the last entry that was removed. An earlier
//! end directly before it can still be compared with that hash; ends further back cannot, as their entries are gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::broken::{Broken, check};
use super::checkpoint::checkpoints;
use super::codec;
use super::error::LedgerError;
use super::handle::Ledger;
use super::log::{PAGE, event, is_dropped};
use super::record::RAN_UNAPPROVED;
use super::run_record::{self, row_id};
use super::store::{Entry, Filter, Found, Linker, RowKind, StoreError};
use super::{counter, grant_record};

/// How often verification rereads a run that changes while it is read, before it gives up.
const RETRIES: usize = 100;

/// The problem of a log whose removed part was another one than a checkpoint, or an earlier check, has seen.
const ENDED_ELSEWHERE: &str =
    "the removed part of the log ended with another entry than was noted earlier";

/// The log of one run, read from its first entry to its last.
#[derive(Default)]
struct RunLog {
    /// The number of entries.
    entries: u64,
    /// The number of entries about calls that ran unapproved.
    ran_unapproved: u64,
    /// The place and the hash of the last entry.
    head: (i64, String),
    /// The body of the last entry about each row.
    about: BTreeMap<String, String>,
}

/// The result of a verification that found nothing wrong: every entry is linked to the one before it, and every ask and
/// run matches the last entry about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// The number of entries in all logs, without those that [`Ledger::prune`] has removed.
    pub entries: u64,
    /// The place and the hash of the last entry of each run's log. Keep them outside of the store and pass them to the
    /// next [`Ledger::verify`]: a log that was cut or rewritten does not contain them any more.
    pub heads: BTreeMap<String, (i64, String)>,
    /// The number of calls that ran although no one had approved them
    /// ([`Record::ran_unapproved`](super::Record::ran_unapproved)), without those that [`Ledger::prune`] has removed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ran_unapproved: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Verified {
    /// Whether the ledger has no entries. An emptied ledger looks like one that was never used; only the heads of an
    /// earlier verification, or a [`Checkpoint`](super::Checkpoint), that are kept outside of the store show the
    /// difference.
    ///
    /// ```
    /// # use countersign::ledger::{Ledger, MemoryStore};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let verified = Ledger::new(MemoryStore::new()).verify(&Default::default()).await?;
    /// assert!(verified.is_empty());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

/// Verifies all logs. See [`Ledger::verify`].
pub(super) async fn verify(
    ledger: &Ledger,
    earlier: &BTreeMap<String, (i64, String)>,
) -> Result<Result<Verified, Broken>, LedgerError> {
    // Read before the logs, so that each end that a checkpoint notes is in the log that is read after it.
    let mut ends = match checkpoints(ledger).await? {
        Ok(ends) => ends,
        Err(broken) => return Ok(Err(broken)),
    };
    for (run, head) in earlier {
        ends.entry(run.clone()).or_default().push(head.clone());
    }
    ends.values_mut().for_each(|ends| ends.sort_unstable());
    let mut verified = Verified::default();
    let mut after = String::new();
    loop {
        let runs = ledger.store.logs(&after, PAGE).await?;
        let Some(last) = runs.last() else { break };
        after.clone_from(last);
        for run in runs {
            match verify_run(ledger, &run, ends.get(&run).map_or(&[], Vec::as_slice)).await? {
                // A run that has rows and no log entries yet.
                Ok(log) if log.entries == 0 => {}
                Ok(log) => {
                    verified.entries += log.entries;
                    verified.ran_unapproved += log.ran_unapproved;
                    verified.heads.insert(run, log.head);
                }
                Err(broken) => return Ok(Err(broken)),
            }
        }
    }
    for (run, ends) in ends {
        if !verified.heads.contains_key(&run) {
            let problem = "the whole log is gone".to_owned();
            let seq = ends.last().map(|(seq, _)| *seq);
            return Ok(Err(Broken { run, seq, problem }));
        }
    }
    Ok(Ok(verified))
}

/// Verifies one run. Its rows and its log are not read in one snapshot, so a mismatch counts only if neither of
/// them has changed since; otherwise both are read again.
async fn verify_run(
    ledger: &Ledger,
    run: &str,
    earlier: &[(i64, String)],
) -> Result<Result<RunLog, Broken>, LedgerError> {
    for _ in 0..RETRIES {
        let rows = rows_of(ledger, run).await?;
        let mut log = match replay(ledger, run, earlier).await? {
            Ok(replayed) => replayed,
            Err(broken) => return Ok(Err(broken)),
        };
        let about = std::mem::take(&mut log.about);
        let Some(problem) = compare(&rows, about, &ledger.linker) else {
            return Ok(Ok(log));
        };
        let settled = rows_of(ledger, run).await? == rows;
        if settled && ledger.store.log(run, log.head.0, 1).await?.is_empty() {
            return Ok(Err(Broken { run: run.to_owned(), seq: None, problem }));
        }
    }
    let problem = "it changes faster than it can be read: verify it again".to_owned();
    Ok(Err(Broken { run: run.to_owned(), seq: None, problem }))
}

pub(super) async fn rows_of(ledger: &Ledger, run: &str) -> Result<Vec<Found>, StoreError> {
    ledger.store.list(&Filter { run: Some(run.to_owned()), ..Filter::default() }).await
}

/// Reads and checks a run's log. `earlier` are ends that the log had before, sorted by their places: the log must
/// contain each of them.
async fn replay(
    ledger: &Ledger,
    run: &str,
    mut earlier: &[(i64, String)],
) -> Result<Result<RunLog, Broken>, LedgerError> {
    let broken = |seq: i64, problem: &str| {
        Ok(Err(Broken { run: run.to_owned(), seq: Some(seq), problem: problem.to_owned() }))
    };
    let mut read = RunLog::default();
    loop {
        let page = ledger.store.log(run, read.head.0, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for entry in page {
            let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
            if read.head.0 == 0 && is_dropped(&body) {
                // The entries before this one were dropped with the run's asks. Only the hash of the last of them
                // is left, in `prev`, so ends further back cannot be compared.
                read.head = (entry.seq.saturating_sub(1), entry.prev.clone());
                while let [end, rest @ ..] = earlier
                    && end.0 < entry.seq
                {
                    if end.0 == read.head.0 && *end != read.head {
                        return broken(entry.seq, ENDED_ELSEWHERE);
                    }
                    earlier = rest;
                }
            }
            if let Err(problem) = check(ledger, &entry, run, &read.head) {
                return broken(entry.seq, problem);
            }
            while let [(seq, hash), rest @ ..] = earlier
                && *seq <= entry.seq
            {
                if (*seq, hash) != (entry.seq, &entry.hash) {
                    return broken(entry.seq, "it is not the entry that was there before");
                }
                earlier = rest;
            }
            let row = about(run, &body);
            // An ask is parked once. A second `parked` entry means that its row was removed and created anew.
            let parked = event(&body) == Some("parked");
            if let Some(row) = row
                && read.about.insert(row, entry.body).is_some()
                && parked
            {
                return broken(entry.seq, "its ask was removed, and parked again");
            }
            read.entries += 1;
            read.ran_unapproved += u64::from(event(&body) == Some(RAN_UNAPPROVED));
            read.head = (entry.seq, entry.hash);
        }
    }
    match earlier.last() {
        Some((seq, _)) => broken(*seq, "the end of the log is gone"),
        None => Ok(Ok(read)),
    }
}

/// Passes on all entries. See [`Ledger::export`].
pub(super) async fn export(
    ledger: &Ledger,
    mut entry: impl FnMut(Entry) + Send,
) -> Result<u64, LedgerError> {
    let (mut count, mut after) = (0, String::new());
    loop {
        let runs = ledger.store.logs(&after, PAGE).await?;
        let Some(last) = runs.last() else { return Ok(count) };
        after.clone_from(last);
        for run in runs {
            let mut seq = 0;
            loop {
                let page = ledger.store.log(&run, seq, PAGE).await?;
                let Some(last) = page.last() else { break };
                seq = last.seq;
                for it in page {
                    count += 1;
                    entry(it);
                }
            }
        }
    }
}

/// The id of the row that an entry of a run's log is about.
///
/// An entry names its row by the id of an ask or a grant; an entry about a run needs no id, as the log is the run's.
fn about(run: &str, body: &Value) -> Option<String> {
    match body.get("ask").and_then(Value::as_str) {
        Some(ask) => Some(ask.to_owned()),
        None if event(body)?.starts_with("grant_") => {
            body.get("grant").and_then(Value::as_str).map(grant_record::row_id)
        }
        None if event(body)? == "call_counted" => {
            body.get("counter").and_then(Value::as_str).map(counter::row_id)
        }
        None => event(body)?.starts_with("run_").then(|| row_id(run)),
    }
}

/// The first difference between the rows of a run and the last entries about them.
fn compare(
    rows: &[Found],
    mut logged: BTreeMap<String, String>,
    linker: &Linker,
) -> Option<String> {
    let named = |kind: &str, id: &str| format!("{kind} `{}`", id.escape_debug());
    for found in rows {
        let Found { row, entry } = found;
        let name = named(row.kind.as_str(), &row.id);
        let fits = match row.kind {
            RowKind::Ask => codec::read(found)
                .map(|it| codec::lease_fits(row, it.claim.as_ref(), it.token, linker)),
            RowKind::Grant => grant_record::read(found).map(|_| true),
            RowKind::Counter => counter::read(found).map(|_| true),
            RowKind::Run => run_record::read(found)
                .map(|it| codec::lease_fits(row, it.claim.as_ref(), it.token, linker)),
        };
        let said = logged.remove(&row.id);
        let begun = row.kind == RowKind::Run && entry.is_none() && fits.is_ok();
        if said.is_none() && !begun {
            return Some(format!("{name} is not in the log"));
        }
        if said != *entry || !fits.unwrap_or_default() {
            return Some(format!("{name} is not in the state that the log says"));
        }
    }
    let gone = logged.keys().next()?;
    let kind = match gone.split_once(':') {
        Some(("run", _)) => "run",
        Some(("grant", _)) => "grant",
        Some(("counter", _)) => "counter",
        _ => "ask",
    };
    Some(format!("{} is gone", named(kind, gone)))
}
