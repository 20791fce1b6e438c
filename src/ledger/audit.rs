//! Checking the log, and handing it out.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::row_id;
use super::store::{Entry, Filter, Found, Linker, RowKind, StoreError};
use super::{Ledger, LedgerError, runs, stored};

/// How many entries, or runs, are read at once.
pub(super) const PAGE: u32 = 512;

/// How often a run is read again that changes while it is read.
const RETRIES: usize = 100;

/// A log that was read.
#[derive(Default)]
struct Replayed {
    /// How many entries it has.
    entries: u64,
    /// Its last entry.
    head: (i64, String),
    /// The body of the last entry about each row.
    about: BTreeMap<String, String>,
}

/// The log is whole: every entry is linked to the one before it, and every ask stands where its last entry says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// How many entries there are, without those that [`Ledger::prune`] has removed.
    pub entries: u64,
    /// The last hash of each run's log, and its place. Keep them elsewhere: a log that was cut, or written anew, no
    /// longer goes through them.
    pub heads: BTreeMap<String, (i64, String)>,
}

impl Verified {
    /// Whether there was nothing to verify. A ledger that was emptied looks like one that was never used, unless an
    /// earlier check, or a [`Checkpoint`](super::Checkpoint), was kept elsewhere.
    ///
    /// ```
    /// # use countersign::ledger::{Ledger, MemoryStore};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let verified = Ledger::new(MemoryStore::new()).verify(&Default::default()).await?.unwrap();
    /// assert!(verified.is_empty());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }
}

/// Where the log and the asks do not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The run whose log it is.
    pub run: String,
    /// The place of the entry, if it is one.
    pub seq: Option<i64>,
    /// What does not fit.
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
    /// Replays the whole log, and compares it with the asks, the runs and their leases, with the
    /// [checkpoints](Self::checkpoint), and with heads that an earlier check gave.
    ///
    /// What is whole in itself passes: a store that was taken back to an earlier copy as a whole, a run that was removed
    /// with the checkpoints that note it, an emptied store ([`Verified::is_empty`]). These show only beside something kept
    /// elsewhere: the heads of an earlier check, or a [`Checkpoint`](super::Checkpoint). A service that wants to notice
    /// them writes a checkpoint to another machine from time to time, and verifies with it.
    ///
    /// Without an [audit key](Self::audit_key), what can write to the store can also write a log that verifies. So it can
    /// put an entry that says that a run was dropped ([`prune`](Self::prune)) in the place of the entries of its asks: the
    /// ends that were noted are then compared with it as far as one is right before it, and those further back are of
    /// entries that are gone. With a key, nobody else can make such an entry.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read. What does not fit is not an error of this method: it is the
    /// inner `Err`.
    pub async fn verify(
        &self,
        earlier: &BTreeMap<String, (i64, String)>,
    ) -> Result<Result<Verified, Broken>, LedgerError> {
        // Read first: what was noted by now is in the logs that are read from now on.
        let mut ends = match self.checkpoints().await? {
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
            let runs = self.store.logs(&after, PAGE).await?;
            let Some(last) = runs.last() else { break };
            after.clone_from(last);
            for run in runs {
                match self.verify_run(&run, ends.get(&run).map_or(&[], Vec::as_slice)).await? {
                    // A run may have rows that no log is about.
                    Ok((0, _)) => {}
                    Ok((entries, head)) => {
                        verified.entries += entries;
                        verified.heads.insert(run, head);
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

    /// Reads a run's log and its asks. They are not one snapshot: what looks broken while the log grows is looked at
    /// again.
    async fn verify_run(
        &self,
        run: &str,
        earlier: &[(i64, String)],
    ) -> Result<Result<(u64, (i64, String)), Broken>, LedgerError> {
        for _ in 0..RETRIES {
            let rows = self.rows_of(run).await?;
            let Replayed { entries, head, about } = match self.replay(run, earlier).await? {
                Ok(replayed) => replayed,
                Err(broken) => return Ok(Err(broken)),
            };
            let Some(problem) = compare(&rows, about, &self.linker) else {
                return Ok(Ok((entries, head)));
            };
            let settled = self.rows_of(run).await? == rows;
            if settled && self.store.log(run, head.0, 1).await?.is_empty() {
                return Ok(Err(Broken { run: run.to_owned(), seq: None, problem }));
            }
        }
        let problem = "it changes faster than it can be read: verify it again".to_owned();
        Ok(Err(Broken { run: run.to_owned(), seq: None, problem }))
    }

    pub(super) async fn rows_of(&self, run: &str) -> Result<Vec<Found>, StoreError> {
        self.store.list(&Filter { run: Some(run.to_owned()), ..Filter::default() }).await
    }

    /// Reads a run's log. It goes through these ends, which it had earlier, in the order of their places.
    async fn replay(
        &self,
        run: &str,
        mut earlier: &[(i64, String)],
    ) -> Result<Result<Replayed, Broken>, LedgerError> {
        let broken = |seq: i64, problem: &str| {
            Ok(Err(Broken { run: run.to_owned(), seq: Some(seq), problem: problem.to_owned() }))
        };
        let mut read = Replayed::default();
        loop {
            let page = self.store.log(run, read.head.0, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
                if read.head.0 == 0 && is_dropped(&body) {
                    // What came before it was removed with its asks, and its hash is all that is left to compare.
                    read.head = (entry.seq.saturating_sub(1), entry.prev.clone());
                    while let [end, rest @ ..] = earlier
                        && end.0 < entry.seq
                    {
                        if end.0 == read.head.0 && *end != read.head {
                            return broken(entry.seq, "it is not behind the entry that was there");
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
                // An ask is parked once: it is made anew only where its row was removed.
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
            None => Ok(Ok(read)),
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

    /// Hands the log out, run by run and in order. Entries hold digests of arguments, not their values.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read, after whatever was handed out.
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

/// The row that an entry of a run's log is about.
fn about(run: &str, body: &Value) -> Option<String> {
    match body.get("ask").and_then(Value::as_str) {
        Some(ask) => Some(ask.to_owned()),
        None => event(body)?.starts_with("run_").then(|| row_id(run)),
    }
}

fn event(body: &Value) -> Option<&str> {
    body.get("event").and_then(Value::as_str)
}

/// Whether an entry says that everything before it was removed.
pub(super) fn is_dropped(body: &Value) -> bool {
    event(body) == Some(DROPPED)
}

/// The event of an entry behind which a run's asks and the log before it are gone.
pub(super) const DROPPED: &str = "run_dropped";

/// Where rows and log differ.
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
            RowKind::Ask => stored::read(found)
                .map(|it| stored::lease_fits(row, it.claim.as_ref(), it.token, linker)),
            RowKind::Run => runs::read(found)
                .map(|it| stored::lease_fits(row, it.claim.as_ref(), it.token, linker)),
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
