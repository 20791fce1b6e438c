//! Checking the log, and handing it out.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::record::Record;
use super::store::{Entry, Filter, Row, RowKind, StoreError};
use super::stored::{read, row_of};
use super::{Ledger, LedgerError};

/// How many entries, or runs, are read at once.
pub(super) const PAGE: u32 = 512;

/// How often a run is read again that changes while it is read.
const RETRIES: usize = 100;

/// The last entry of a log, and digests of the asks as their last entries say.
type Replayed = ((i64, String), BTreeMap<String, String>);

/// The log is whole: every entry is linked to the one before it, and every ask stands where its last entry says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// How many entries there are.
    pub entries: u64,
    /// The last hash of each run's log, and its place. Keep them elsewhere: a log that was cut, or written anew, no
    /// longer goes through them.
    pub heads: BTreeMap<String, (i64, String)>,
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
    /// Replays the whole log, and compares it with the asks, with the [checkpoints](Self::checkpoint), and with heads
    /// that an earlier check gave.
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
                    Ok(head) => {
                        verified.entries += u64::try_from(head.0).unwrap_or_default();
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
    ) -> Result<Result<(i64, String), Broken>, LedgerError> {
        for _ in 0..RETRIES {
            let rows = self.asks_of(run).await?;
            let (head, asks) = match self.replay(run, earlier).await? {
                Ok(replayed) => replayed,
                Err(broken) => return Ok(Err(broken)),
            };
            let Some(problem) = compare(&rows, asks) else { return Ok(Ok(head)) };
            let settled = self.asks_of(run).await? == rows;
            if settled && self.store.log(run, head.0, 1).await?.is_empty() {
                return Ok(Err(Broken { run: run.to_owned(), seq: None, problem }));
            }
        }
        let problem = "it changes faster than it can be read: verify it again".to_owned();
        Ok(Err(Broken { run: run.to_owned(), seq: None, problem }))
    }

    async fn asks_of(&self, run: &str) -> Result<Vec<Row>, StoreError> {
        let (kind, run) = (Some(RowKind::Ask), Some(run.to_owned()));
        self.store.list(&Filter { kind, run, ..Filter::default() }).await
    }

    /// The last entry of a run's log, and where each ask stands by it. The log goes through these ends, which it had
    /// earlier, in the order of their places.
    async fn replay(
        &self,
        run: &str,
        mut earlier: &[(i64, String)],
    ) -> Result<Result<Replayed, Broken>, LedgerError> {
        let broken = |seq: i64, problem: &str| {
            Ok(Err(Broken { run: run.to_owned(), seq: Some(seq), problem: problem.to_owned() }))
        };
        let mut last = (0, String::new());
        let mut asks = BTreeMap::new();
        loop {
            let page = self.store.log(run, last.0, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for entry in page {
                if let Err(problem) = self.check(&entry, run, &last) {
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
                let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
                let said = |key| body.get(key).and_then(Value::as_str);
                if let (Some(ask), Some(record)) = (said("ask"), said("record")) {
                    asks.insert(ask.to_owned(), record.to_owned());
                }
                last = (entry.seq, entry.hash);
            }
        }
        match earlier.last() {
            Some((seq, _)) => broken(*seq, "the end of the log is gone"),
            None => Ok(Ok((last, asks))),
        }
    }

    pub(super) fn check(
        &self,
        entry: &Entry,
        run: &str,
        last: &(i64, String),
    ) -> Result<(), &'static str> {
        if entry.run != run || entry.seq != last.0 + 1 {
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

/// Where rows and log differ.
fn compare(rows: &[Row], mut asks: BTreeMap<String, String>) -> Option<String> {
    for row in rows {
        let id = row.id.escape_debug();
        let record = read(row).ok();
        // Lists go by what stands beside the document.
        let listed = |row: &Row| (row.run.clone(), row.state.clone(), row.created_at, row.due_at);
        let as_written = record.as_ref().is_some_and(|it| listed(&row_of(it)) == listed(row));
        let found = record.map(|record| digest_of(&record)).unwrap_or_default();
        match asks.remove(&row.id) {
            None => return Some(format!("ask `{id}` is not in the log")),
            Some(logged) if logged != found || !as_written => {
                return Some(format!("ask `{id}` does not stand where the log says"));
            }
            Some(_) => {}
        }
    }
    asks.into_keys().next().map(|ask| format!("ask `{}` is gone", ask.escape_debug()))
}

/// A digest of an ask: of everything but how long its lease is, which is no change of state.
pub(super) fn digest_of(record: &Record) -> String {
    let mut value = json!(record);
    if let Some(claim) = value.get_mut("claim").and_then(Value::as_object_mut) {
        claim.remove("until");
    }
    crate::args::digest(&value)
}
