//! Verifying the log against the rows, and exporting it.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::row_id;
use super::store::{Entry, Filter, Found, Linker, RowKind, StoreError};
use super::{Ledger, LedgerError, codec, runs};

/// How many entries, or runs, one read of the store returns at most.
pub(super) const PAGE: u32 = 512;

/// How often verification rereads a run that changes while it is read, before it gives up.
const RETRIES: usize = 100;

/// The problem of a log whose removed part was another one than a checkpoint, or an earlier check, has seen.
const ENDED_ELSEWHERE: &str = "the removed log before it ended elsewhere than was noted earlier";

/// The log of one run, read from its first entry to its last.
#[derive(Default)]
struct Replayed {
    /// The number of entries.
    entries: u64,
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

/// The first place where verification found that a log, or a row beside it, is not as the ledger wrote it.
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

impl Ledger {
    /// Replays all logs, and compares them with the asks, the runs and their leases, with the
    /// [checkpoints](Self::checkpoint), and with `earlier`, the [heads](Verified::heads) of an earlier verification.
    ///
    /// Changes that leave a consistent store pass: a store that was restored as a whole from an earlier copy, a run
    /// that was removed together with the checkpoints that note it, an emptied store ([`Verified::is_empty`]). Only
    /// values kept outside of the store show these: the heads of an earlier verification, or a
    /// [`Checkpoint`](super::Checkpoint). A service that wants to notice them copies a checkpoint to another machine
    /// from time to time, and verifies with it.
    ///
    /// Without an [audit key](Self::audit_key), any program that can write to the store can also write a log that
    /// verifies. Such a program can, for example, replace the entries of a run by one that says that the run was
    /// dropped ([`prune`](Self::prune)). Of the noted heads of this run, one directly before that entry is then still
    /// compared; those further back are of entries that are gone, and are skipped. With a key, only its holder can make
    /// such an entry.
    ///
    /// # Errors
    /// [`LedgerError::Broken`] with the first log or row that is wrong; the others when the store cannot be read.
    pub async fn verify(
        &self,
        earlier: &BTreeMap<String, (i64, String)>,
    ) -> Result<Verified, LedgerError> {
        // Read before the logs, so that each end that a checkpoint notes is in the log that is read after it.
        let mut ends = self.checkpoints().await?;
        for (run, head) in earlier {
            ends.entry(run.clone()).or_default().push(head.clone());
        }
        ends.values_mut().for_each(|ends| ends.sort_unstable());
        let mut verified = Verified::default();
        let mut after = String::new();
        loop {
            let runs = self.store.logs(&after, PAGE).await?;
            let Some(last) = runs.last() else { break };
            after.clone_from(last);
            for run in runs {
                let earlier = ends.get(&run).map(Vec::as_slice).unwrap_or_default();
                let (entries, head) = self.verify_run(&run, earlier).await?;
                // A run may have rows and no log entries yet.
                if entries > 0 {
                    verified.entries += entries;
                    verified.heads.insert(run, head);
                }
            }
        }
        for (run, ends) in ends {
            if !verified.heads.contains_key(&run) {
                let problem = "the whole log is gone".to_owned();
                let seq = ends.last().map(|(seq, _)| *seq);
                return Err(LedgerError::Broken(Broken { run, seq, problem }));
            }
        }
        Ok(verified)
    }

    /// Verifies one run. Its rows and its log are not read in one snapshot, so a mismatch counts only if neither of
    /// them has changed since; otherwise both are read again.
    async fn verify_run(
        &self,
        run: &str,
        earlier: &[(i64, String)],
    ) -> Result<(u64, (i64, String)), LedgerError> {
        for _ in 0..RETRIES {
            let rows = self.rows_of(run).await?;
            let Replayed { entries, head, about } = self.replay(run, earlier).await?;
            let Some(problem) = compare(&rows, about, &self.linker) else {
                return Ok((entries, head));
            };
            let settled = self.rows_of(run).await? == rows;
            if settled && self.store.log(run, head.0, 1).await?.is_empty() {
                return Err(LedgerError::broken(run, None, problem));
            }
        }
        let problem = "it changes faster than it can be read: verify it again".to_owned();
        Err(LedgerError::broken(run, None, problem))
    }

    pub(super) async fn rows_of(&self, run: &str) -> Result<Vec<Found>, StoreError> {
        self.store.list(&Filter { run: Some(run.to_owned()), ..Filter::default() }).await
    }

    /// Reads and checks a run's log. `earlier` are ends that the log had before, sorted by their places: the log must
    /// contain each of them.
    async fn replay(
        &self,
        run: &str,
        mut earlier: &[(i64, String)],
    ) -> Result<Replayed, LedgerError> {
        let broken = |seq: i64, problem: &str| Err(LedgerError::broken(run, Some(seq), problem));
        let mut read = Replayed::default();
        loop {
            let page = self.store.log(run, read.head.0, PAGE).await?;
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
                if let Err(problem) = self.check(&entry, run, &read.head) {
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
                read.head = (entry.seq, entry.hash);
            }
        }
        match earlier.last() {
            Some((seq, _)) => broken(*seq, "the end of the log is gone"),
            None => Ok(read),
        }
    }

    pub(super) fn check(
        &self,
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
        if entry.hash != self.linker.hash(run, entry.seq, &entry.prev, &entry.body) {
            return Err("it was changed");
        }
        Ok(())
    }

    /// Calls `entry` with each log entry, run by run and in order, and returns the number of entries. Entries contain
    /// digests of arguments, not their values.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read; `entry` may have been called with some of the entries before.
    pub async fn export(&self, mut entry: impl FnMut(Entry) + Send) -> Result<u64, LedgerError> {
        let (mut count, mut after) = (0, String::new());
        loop {
            let runs = self.store.logs(&after, PAGE).await?;
            let Some(last) = runs.last() else { return Ok(count) };
            after.clone_from(last);
            for run in runs {
                let mut seq = 0;
                loop {
                    let page = self.store.log(&run, seq, PAGE).await?;
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
}

/// The id of the row that an entry of a run's log is about.
fn about(run: &str, body: &Value) -> Option<String> {
    match body.get("ask").and_then(Value::as_str) {
        Some(ask) => Some(ask.to_owned()),
        None => event(body)?.starts_with("run_").then(|| row_id(run)),
    }
}

fn event(body: &Value) -> Option<&str> {
    body.get("event").and_then(Value::as_str)
}

/// Whether an entry says that the run's asks, and the entries before this one, were dropped.
pub(super) fn is_dropped(body: &Value) -> bool {
    event(body) == Some(DROPPED)
}

/// The event of the entry that remains of a run's log after its asks and earlier entries were dropped.
pub(super) const DROPPED: &str = "run_dropped";

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
            RowKind::Run => runs::read(found)
                .map(|it| codec::lease_fits(row, it.claim.as_ref(), it.token, linker)),
        };
        let said = logged.remove(&row.id);
        let begun = row.kind == RowKind::Run && entry.is_none() && fits.is_ok();
        if said.is_none() && !begun {
            return Some(format!("{name} is not in the log"));
        }
        if said != *entry || !fits.unwrap_or_default() {
            return Some(format!("{name} does not stand where the log says"));
        }
    }
    let gone = logged.keys().next()?;
    let kind = if gone.starts_with("run:") { "run" } else { "ask" };
    Some(format!("{} is gone", named(kind, gone)))
}
