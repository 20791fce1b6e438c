//! Suspended runs: stored until they are over, and resumed by one worker at a time (rule L5).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask::Millis;
use super::audit::DROPPED;
use super::codec::{
    DIFFERS, VERSION, Writing, as_logged, check_run, digest, document, keepable, there, value,
};
use super::record::ClaimRecord;
use super::store::{Found, Linker, Lookup, Row, RowKind, Writes};
use super::{Ledger, LedgerError, checkpoint, millis, operations};

#[cfg(feature = "ai-sdk")]
mod chats;

/// The JSON pointer to the claim in the document of a run.
const CLAIM: &str = "/claim";

/// A run as the ledger stores it: its snapshot or its result, and the claim of the worker that resumes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    version: u64,
    /// The id of the run.
    pub run: String,
    /// How often the run was saved.
    pub saved: u64,
    /// The snapshot of the run, a [`SuspendedRun`](crate::SuspendedRun) as JSON, or its result once it is over.
    pub state: Value,
    /// Whether the run has ended.
    pub over: bool,
    /// Whether the row is a chat: `waiting_runs` does not list it, and it is never dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    chat: bool,
    /// Whether the asks and the log of the run were dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dropped: bool,
    /// The claim of the worker that resumes the run, or did last; `None` when no worker has taken the run since its
    /// last save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim; 0 before the first.
    pub token: u64,
    /// When the run was first saved, by the store's clock.
    pub saved_at: Millis,
}

impl RunRecord {
    fn new(run: &str, chat: bool, now: Millis) -> Self {
        Self {
            version: VERSION,
            run: run.to_owned(),
            saved: 0,
            state: Value::Null,
            over: false,
            chat,
            dropped: false,
            claim: None,
            token: 0,
            saved_at: now,
        }
    }

    /// Whether the asks and the log of this run were dropped after it had ended.
    pub(super) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Whether the record is of this run, is no chat, and has ended.
    pub(super) fn is_over_as(&self, run: &str) -> bool {
        self.over && !self.chat && self.run == run
    }

    /// Claims the run for a worker, unless an earlier claim has a lease that is not over.
    fn take(&mut self, worker: &str, lease: Millis, now: Millis) -> Taken {
        if let Some(claim) = self.claim.as_ref().filter(|claim| now < claim.until) {
            let by = claim.worker.clone();
            return Taken::Held { by, since: claim.at, until: claim.until };
        }
        self.token += 1;
        let until = now.saturating_add(lease);
        self.claim = Some(ClaimRecord { worker: worker.to_owned(), at: Some(now), until });
        Taken::Taken { token: self.token, state: self.state.clone() }
    }
}

/// The result of taking a run to resume it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Taken {
    /// The worker has the lease on the run, and saves the run with this token.
    Taken {
        /// The token of this claim, higher than those of all earlier claims of the run.
        token: u64,
        /// The snapshot that was saved last.
        state: Value,
    },
    /// A worker has a lease on the run that is not over.
    Held {
        /// The name of that worker.
        by: String,
        /// When it took the run, by the store's clock; `None` in claims that earlier versions wrote.
        since: Option<Millis>,
        /// When its lease ends unless it is renewed, by the store's clock.
        until: Millis,
    },
    /// The run has ended.
    Over {
        /// The result that [`Ledger::end_run`] recorded.
        result: Value,
    },
    /// There is no run with this id.
    UnknownRun,
}

/// The result of saving, ending or renewing a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Saved {
    /// The change is recorded, or there was nothing to change.
    Saved,
    /// The token is not the one of the latest claim, as another worker has taken the run since, or the run has ended.
    /// Nothing was recorded.
    StaleToken,
}

impl Ledger {
    /// Saves the snapshot of a suspended run, for the worker that resumes it. With the token of a claim the claim is
    /// given up as well. Without a token the run is only created: one that is in the ledger already is left unchanged.
    ///
    /// # Errors
    /// [`LedgerError`]; the run is unchanged.
    pub async fn save_run(
        &self,
        run: &str,
        state: Value,
        token: Option<u64>,
    ) -> Result<Saved, LedgerError> {
        self.write_run(run, RunWrite { state, token, over: false, closes: &[] }).await
    }

    /// Records the result of a run, which is over with it.
    ///
    /// # Errors
    /// [`LedgerError`]; the run is unchanged.
    pub async fn end_run(
        &self,
        run: &str,
        token: u64,
        result: Value,
    ) -> Result<Saved, LedgerError> {
        let state = result;
        self.write_run(run, RunWrite { state, token: Some(token), over: true, closes: &[] }).await
    }

    /// Takes a run to resume it. Of any number of workers one gets the lease; the others get [`Taken::Held`] until the
    /// lease is over or the run is saved.
    ///
    /// # Errors
    /// [`LedgerError`]; the run is not taken.
    pub async fn take_run(
        &self,
        run: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Taken, LedgerError> {
        let lease = millis(lease);
        self.on_run(run, None, |now, record| {
            let Some(mut record) = record else { return (Taken::UnknownRun, None) };
            if record.over {
                return (Taken::Over { result: record.state }, None);
            }
            match record.take(worker, lease, now) {
                taken @ Taken::Taken { .. } => (taken, Some((record, Some("run_taken")))),
                other => (other, None),
            }
        })
        .await
    }

    /// Extends the lease on a run, to this long from now.
    ///
    /// # Errors
    /// [`LedgerError`]; the lease ends when it did before.
    pub async fn renew_run(
        &self,
        run: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Saved, LedgerError> {
        let lease = millis(lease);
        self.on_run(run, None, |now, record| match record {
            Some(mut record) if record.token == token && !record.over => {
                let Some(claim) = &mut record.claim else { return (Saved::StaleToken, None) };
                claim.until = now.saturating_add(lease);
                (Saved::Saved, Some((record, None)))
            }
            _ => (Saved::StaleToken, None),
        })
        .await
    }

    /// The stored record of a run; `None` when there is no run with this id.
    ///
    /// # Errors
    /// [`LedgerError`], also when the row was changed outside of the ledger (rule L8).
    pub async fn load_run(&self, run: &str) -> Result<Option<RunRecord>, LedgerError> {
        let found = there(self.store.get(&row_id(run)).await?)?;
        let found = found.filter(|found| found.row.kind == RowKind::Run);
        found.map(|found| read(&found)).transpose()
    }

    /// Saves a run and closes the asks of the calls that have their results now, in one transaction.
    pub(crate) async fn write_run(
        &self,
        run: &str,
        write: RunWrite<'_>,
    ) -> Result<Saved, LedgerError> {
        let RunWrite { state, token, over, closes } = write;
        checkpoint::refuse_name(run, run)?;
        let event = if over { "run_ended" } else { "run_saved" };
        let closing = Closing { asks: closes, by: self.worker_name(), if_made: Saved::Saved };
        self.on_run(run, Some(closing), |now, record| {
            let mut record = match (record, token) {
                (None, None) => RunRecord::new(run, false, now),
                (Some(_), None) => return (Saved::Saved, None),
                (Some(record), Some(token)) if record.token == token && !record.over => record,
                (_, Some(_)) => return (Saved::StaleToken, None),
            };
            (record.saved, record.state, record.over) = (record.saved + 1, state.clone(), over);
            record.claim = None;
            (Saved::Saved, Some((record, Some(event))))
        })
        .await
    }

    async fn on_run<T: PartialEq + Send + Sync>(
        &self,
        run: &str,
        closing: Option<Closing<'_, T>>,
        mut change: impl FnMut(
            Millis,
            Option<RunRecord>,
        ) -> (T, Option<(RunRecord, Option<&'static str>)>)
        + Send,
    ) -> Result<T, LedgerError> {
        let mut result = None;
        let asks = closing.iter().flat_map(|closing| closing.asks).cloned();
        let ids: Vec<_> = std::iter::once(row_id(run)).chain(asks).collect();
        let mut work = |now: Millis, rows: Vec<Lookup>| {
            let mut rows = rows.into_iter();
            let known = rows.next().map_or(Ok(None), there);
            let known = known.and_then(|found| found.map(|found| read(&found)).transpose());
            let mut writing = Writing::new(&self.linker, now);
            let made = known.and_then(|known| {
                let new = known.is_none();
                let held = known.as_ref().and_then(|record| record.claim.clone());
                let (made, written) = change(now, known);
                if let Some(it) = closing.as_ref().filter(|it| it.if_made == made) {
                    operations::closed(&mut writing, rows, it.by)?;
                }
                if let Some((record, event)) = written {
                    if new {
                        check_run(run)?;
                    }
                    let held = record.claim.clone().or(held);
                    let by = held.as_ref().map_or(self.worker_name(), |claim| &claim.worker);
                    note(&mut writing, record, event, by)?;
                }
                Ok(made)
            });
            let writes = if made.is_ok() { writing.finish() } else { Writes::default() };
            result = Some(made);
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result.unwrap_or_else(|| Err(LedgerError::unreadable(&row_id(run), "it was not read")))
    }
}

/// A new state of a run: a snapshot, or its result where the run is over.
pub(crate) struct RunWrite<'w> {
    pub(crate) state: Value,
    /// The token of the claim; without one the run is only created, and an existing one is left unchanged.
    pub(crate) token: Option<u64>,
    pub(crate) over: bool,
    /// The asks of the calls that have their results now.
    pub(crate) closes: &'w [String],
}

/// Asks that are closed in the transaction of a change, if the change has the result `if_made`.
struct Closing<'c, T> {
    asks: &'c [String],
    by: &'c str,
    if_made: T,
}

pub(super) fn row_id(run: &str) -> String {
    format!("run:{run}")
}

/// The state column of a run's row, which lists filter by.
fn standing(record: &RunRecord) -> &'static str {
    match record {
        RunRecord { chat: true, .. } => "chat",
        RunRecord { over: true, .. } => "over",
        _ => "waiting",
    }
}

fn row_of(record: &RunRecord, linker: &Linker) -> Row {
    let id = row_id(&record.run);
    Row {
        kind: RowKind::Run,
        run: record.run.clone(),
        state: standing(record).to_owned(),
        created_at: record.saved_at,
        due_at: None,
        requester: String::new(),
        doc: document(json!(record), CLAIM, (&id, record.token), linker),
        id,
    }
}

/// Reads a run from its row, after the row was compared with the last log entry about it (rule L8).
pub(super) fn read(found: &Found) -> Result<RunRecord, LedgerError> {
    let row = &found.row;
    let earlier = as_logged(found)?;
    let record: RunRecord = serde_json::from_value(value(row, CLAIM)?)
        .map_err(|error| LedgerError::unreadable(&row.id, &error))?;
    if row_id(&record.run) != row.id || row.due_at.is_some() || !row.requester.is_empty() {
        return Err(LedgerError::changed(&row.id, "it holds another run"));
    }
    let Some(body) = earlier else { return Ok(record) };
    // The first version logged no digest of a chat that was created and not saved yet.
    let is_empty_chat = record.chat && record.saved == 0 && record.state.is_null();
    let beside = (&*row.run, &*row.state, row.created_at);
    let within = (&*record.run, standing(&record), record.saved_at);
    match body.get("state").and_then(Value::as_str) {
        None if is_empty_chat => Ok(record),
        None => Err(LedgerError::changed(&row.id, "it is not in the log")),
        Some(said)
            if said == crate::args::digest(&record.state)
                && body.get("saved").and_then(Value::as_u64) == Some(record.saved)
                && beside == within =>
        {
            Ok(record)
        }
        Some(_) => Err(LedgerError::changed(&row.id, DIFFERS)),
    }
}

/// Writes the row of a run, and a log entry for the event. A renewed lease has no event, and is written without an
/// entry.
fn note(
    writing: &mut Writing<'_>,
    mut record: RunRecord,
    event: Option<&str>,
    worker: &str,
) -> Result<(), LedgerError> {
    record.version = VERSION;
    let row = keepable(row_of(&record, writing.linker()))?;
    let Some(event) = event else {
        writing.replace(row);
        return Ok(());
    };
    let body = json!({
        "at": writing.now,
        "event": event,
        "row": digest(&row),
        "saved": record.saved,
        "token": record.token,
        "worker": worker,
    });
    writing.append(row, body);
    Ok(())
}

/// Marks a run as over and dropped: its row stays, and the entry of this event is the first of what is left of its log.
pub(super) fn note_dropped(
    writing: &mut Writing<'_>,
    run: &str,
    record: Option<RunRecord>,
    worker: &str,
) -> Result<(), LedgerError> {
    let mut record = record.unwrap_or_else(|| RunRecord::new(run, false, writing.now));
    (record.over, record.dropped) = (true, true);
    note(writing, record, Some(DROPPED), worker)
}
