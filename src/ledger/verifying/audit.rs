//! Verifying the log against the rows, and exporting it.
//!
//! # What a verification compares
//!
//! 1. **Within a log**: each entry has the next place, the hash of the entry before it, and a hash that fits its
//!    content.
//! 2. **Against earlier ends**: the log contains every entry that a checkpoint, or the caller, has noted as its end
//!    before. A log that was cut and continued has other entries there.
//! 3. **Against the rules**: the log tells of transitions that a ledger makes ([`replay`](crate::ledger::logs::replay)).
//! 4. **Against the rows**: the last entry about each row has the digest of that row, no row is without an entry, and
//!    no entry about a row is without the row.
//!
//! # Reading while others write
//!
//! We do not read rows and logs in one snapshot, as a snapshot over a whole store would block a busy server. So a
//! mismatch counts only if neither side has changed since we read it. Otherwise we read the run again, up to a
//! hundred times. If a run changes faster than that, we report so, which is no statement about its log.
//!
//! # Pruned logs
//!
//! [`Ledger::prune`] leaves one entry of a run, whose `prev` is the hash of the last entry that was removed. An earlier
//! end directly before it can still be compared with that hash; ends further back cannot, as their entries are gone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoint::checkpoints;
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::{AskRecord, AskState, RAN_UNAPPROVED};
use crate::ledger::broken::{Broken, LogChain};
use crate::ledger::error::LedgerError;
use crate::ledger::grants::record;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::events::{KEY, PAGE, event, is_dropped};
use crate::ledger::logs::replay::Transitions;
use crate::ledger::logs::vouching;
use crate::ledger::rows::codec;
use crate::ledger::rows::run_record;
use crate::ledger::rows::{counter, key};
use crate::ledger::stores::ends::{LogEnd, LogEnds};
use crate::ledger::stores::entry::{ABOUT, about};
use crate::ledger::stores::linker::{Linker, content};
use crate::ledger::stores::store::{Entry, Filter, Found, RowKind};

/// The number of times that verification rereads a run that changes while it is read, before it gives up.
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
    /// A digest of all entries.
    content: String,
    /// `true` if it has an entry of a version that says which key the store has, before it writes anything else.
    follows_word: bool,
    /// The ids of its rows with a lease.
    leased: Vec<String>,
    /// The last entry about each row.
    about: BTreeMap<String, Entry>,
    replay: Transitions,
}

/// The result of a verification that found nothing wrong: every entry is linked to the one before it, and every ask and
/// run matches the last entry about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verified {
    /// The number of entries in all logs, without those that [`Ledger::prune`] has removed.
    pub entries: u64,
    /// The place and the hash of the last entry of each run's log. Keep them outside of the store and pass them to the
    /// next [`Ledger::verify`]: a log that was cut or rewritten does not contain them any more.
    pub heads: BTreeMap<String, (i64, String)>,
    /// The number of calls that ran although no one had approved them
    /// ([`AskRecord::ran_unapproved`](crate::ledger::AskRecord::ran_unapproved)), without those that [`Ledger::prune`] has removed.
    #[serde(default, skip_serializing_if = "is_none")]
    pub ran_unapproved: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(count: &u64) -> bool {
    *count == 0
}

impl Verified {
    /// Returns `true` if the ledger has no entries. An emptied ledger looks like one that was never used; only the
    /// heads of an earlier verification, or a [`Checkpoint`](crate::ledger::Checkpoint), that are kept outside of the
    /// store show the difference.
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
pub(in crate::ledger) async fn verify(
    ledger: &Ledger,
    earlier: &BTreeMap<String, (i64, String)>,
) -> Result<Result<Verified, Broken>, LedgerError> {
    Ok(verified(ledger, earlier).await?.map(|whole| whole.verified))
}

/// A store that was verified.
#[derive(Default)]
pub(in crate::ledger) struct Whole {
    pub(in crate::ledger) verified: Verified,
    /// The end of each log.
    pub(in crate::ledger) ends: LogEnds,
    /// The ids of the rows with a lease.
    pub(in crate::ledger) leased: Vec<String>,
}

/// Verifies all logs, and gives the end of each.
pub(in crate::ledger) async fn verified(
    ledger: &Ledger,
    earlier: &BTreeMap<String, (i64, String)>,
) -> Result<Result<Whole, Broken>, LedgerError> {
    let store = ledger.opened().await?;
    let older = vouching::ends(ledger).await?;
    // Read before the logs, so that each end that a checkpoint notes is in the log that is read after it.
    let mut ends = match checkpoints(ledger).await? {
        Ok(ends) => ends,
        Err(broken) => return Ok(Err(broken)),
    };
    let of_key = older.into_iter().flatten().map(|(run, end)| (run, (end.seq, end.hash.clone())));
    for (run, head) in earlier.iter().map(|(run, head)| (run, head.clone())).chain(of_key) {
        ends.entry(run.clone()).or_default().push(head);
    }
    ends.values_mut().for_each(|ends| ends.sort_unstable());
    let Whole { mut verified, ends: mut found, mut leased } = Whole::default();
    let (mut after, mut says_key) = (String::new(), true);
    loop {
        let runs = store.logs(&after, PAGE).await?;
        let Some(last) = runs.last() else { break };
        after.clone_from(last);
        for run in runs {
            let earlier = ends.get(&run).map_or(&[][..], Vec::as_slice);
            match verify_run(ledger, &run, earlier, older).await? {
                // A run that has rows and no log entries yet.
                Ok(log) if log.entries == 0 => {}
                Ok(log) => {
                    says_key &= !log.follows_word;
                    leased.extend(log.leased);
                    let (seq, hash) = log.head.clone();
                    found.insert(run.clone(), LogEnd { seq, hash, content: log.content });
                    if run != KEY {
                        verified.entries += log.entries;
                        verified.ran_unapproved += log.ran_unapproved;
                        verified.heads.insert(run, log.head);
                    }
                }
                Err(broken) => return Ok(Err(broken)),
            }
        }
    }
    // The first entry of a store is written after its word about the key.
    if !says_key && !found.contains_key(KEY) && ledger.linker.key_id().is_some() {
        return Ok(Err(Broken { run: KEY.to_owned(), seq: None, problem: key::GONE.to_owned() }));
    }
    for (run, ends) in ends {
        if !found.contains_key(&run) {
            let problem = "the whole log is gone".to_owned();
            let seq = ends.last().map(|(seq, _)| *seq);
            return Ok(Err(Broken { run, seq, problem }));
        }
    }
    Ok(Ok(Whole { verified, ends: found, leased }))
}

/// Verifies one run. Its rows and its log are not read in one snapshot, so a mismatch counts only if neither of
/// them has changed since; otherwise both are read again.
async fn verify_run(
    ledger: &Ledger,
    run: &str,
    earlier: &[(i64, String)],
    older: Option<&LogEnds>,
) -> Result<Result<RunLog, Broken>, LedgerError> {
    for _ in 0..RETRIES {
        let rows = rows_of(ledger, run).await?;
        let mut log = match replay(ledger, run, earlier, older).await? {
            Ok(replayed) => replayed,
            Err(broken) => return Ok(Err(broken)),
        };
        let about = std::mem::take(&mut log.about);
        let Some(problem) = compare(&rows, about, &log.replay, &ledger.linker) else {
            let leased = rows.iter().filter(|it| open_lease(it, &ledger.linker).is_some());
            log.leased = leased.map(|it| it.row.id.clone()).collect();
            return Ok(Ok(log));
        };
        let settled = rows_of(ledger, run).await? == rows;
        if settled && ledger.opened().await?.log(run, log.head.0, 1).await?.is_empty() {
            return Ok(Err(Broken { run: run.to_owned(), seq: None, problem }));
        }
    }
    let problem = "it changes faster than it can be read: verify it again".to_owned();
    Ok(Err(Broken { run: run.to_owned(), seq: None, problem }))
}

pub(super) async fn rows_of(ledger: &Ledger, run: &str) -> Result<Vec<Found>, LedgerError> {
    let filter = Filter { run: Some(run.to_owned()), ..Filter::default() };
    Ok(ledger.opened().await?.list(&filter).await?)
}

/// Reads and checks a run's log. `earlier` are ends that the log had before, sorted by their places: the log must
/// contain each of them.
async fn replay(
    ledger: &Ledger,
    run: &str,
    mut earlier: &[(i64, String)],
    older: Option<&LogEnds>,
) -> Result<Result<RunLog, Broken>, LedgerError> {
    let broken = |seq: i64, problem: &str| {
        Ok(Err(Broken { run: run.to_owned(), seq: Some(seq), problem: problem.to_owned() }))
    };
    let (mut read, store) = (RunLog::default(), ledger.opened().await?);
    let mut chain = LogChain::new(ledger, run, older);
    loop {
        let page = store.log(run, chain.last.0, PAGE).await?;
        if page.is_empty() {
            break;
        }
        for entry in page {
            let body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
            if chain.last.0 == 0 && is_dropped(&body) {
                // The entries before this one were dropped with the run's asks. Only the hash of the last of them
                // is left, in `prev`, so ends further back cannot be compared.
                chain.begin_behind(&entry);
                while let [end, rest @ ..] = earlier
                    && end.0 < entry.seq
                {
                    if end.0 == chain.last.0 && *end != chain.last {
                        return broken(entry.seq, ENDED_ELSEWHERE);
                    }
                    earlier = rest;
                }
            }
            if let Err(problem) = chain.next(&entry) {
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
            read.content = content(&read.content, &entry);
            read.entries += 1;
            read.ran_unapproved += u64::from(event(&body) == Some(RAN_UNAPPROVED));
            read.follows_word |= body.get(ABOUT).is_some();
            if let Some(row) = about(run, &body) {
                if let Err(problem) = read.replay.next(&row, &body) {
                    return broken(entry.seq, problem);
                }
                read.about.insert(row, entry);
            }
        }
    }
    read.head = chain.last;
    match earlier.last() {
        Some((seq, _)) => broken(*seq, "the end of the log is gone"),
        None => Ok(Ok(read)),
    }
}

/// Passes on all entries. See [`Ledger::export`].
pub(in crate::ledger) async fn export(
    ledger: &Ledger,
    mut entry: impl FnMut(Entry) + Send,
) -> Result<u64, LedgerError> {
    let (mut count, mut after) = (0, String::new());
    let store = ledger.opened().await?;
    loop {
        let runs = store.logs(&after, PAGE).await?;
        let Some(last) = runs.last() else { return Ok(count) };
        after.clone_from(last);
        for run in runs.into_iter().filter(|run| run != KEY) {
            let mut seq = 0;
            loop {
                let page = store.log(&run, seq, PAGE).await?;
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

/// The end of the lease of an ask that is claimed, or of a run that is taken; `None` for every other row.
pub(super) fn open_lease(found: &Found, by: &Linker) -> Option<Millis> {
    match found.row.kind {
        RowKind::Ask => {
            let record = codec::read(found, by).ok().filter(|it| it.state == AskState::Claimed)?;
            Some(record.claim?.until)
        }
        RowKind::Run => {
            let record = run_record::read(found, by).ok().filter(|it| !it.over)?;
            Some(record.claim?.until)
        }
        _ => None,
    }
}

/// Returns `true` if a second decision on an ask is one that the rules know: a denial, where several have to agree.
fn is_veto(record: &AskRecord) -> bool {
    record.ask.quorum().has_veto() && record.is_denied()
}

/// The first difference between the rows of a run and the last entries about them.
fn compare(
    rows: &[Found],
    mut logged: BTreeMap<String, Entry>,
    replay: &Transitions,
    linker: &Linker,
) -> Option<String> {
    let named = |kind: &str, id: &str| format!("{kind} `{}`", id.escape_debug());
    for found in rows {
        let Found { row, entry } = found;
        let name = named(row.kind.as_str(), &row.id);
        let fits = match row.kind {
            RowKind::Ask => codec::read(found, linker).is_ok(),
            RowKind::Grant => record::read(found, linker).is_ok(),
            RowKind::Counter => counter::read(found, linker).is_ok(),
            RowKind::Key => key::read(found, linker).is_ok(),
            RowKind::Run => run_record::read(found, linker).is_ok(),
        };
        if let (RowKind::Ask, Ok(record)) = (row.kind, codec::read(found, linker)) {
            if replay.is_vetoed(&row.id) && !is_veto(&record) {
                return Some(format!("{name} was decided a second time, and that is no veto"));
            }
            if replay.state(&row.id) != Some(record.state) {
                return Some(format!("{name} is in another state than its log leads to"));
            }
        }
        let said = logged.remove(&row.id);
        let begun = row.kind == RowKind::Run && entry.is_none() && fits;
        if said.is_none() && !begun {
            return Some(format!("{name} is not in the log"));
        }
        if said != *entry || !fits {
            return Some(format!("{name} is not in the state that the log says"));
        }
    }
    let gone = logged.keys().next()?;
    let kind = match gone.split_once(':') {
        Some(("run", _)) => "run",
        Some(("grant", _)) => "grant",
        Some(("counter", _)) => "counter",
        None if gone == key::ROW => "key",
        _ => "ask",
    };
    Some(format!("{} is gone", named(kind, gone)))
}
