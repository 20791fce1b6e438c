//! The record of a run or a chat, and its row.
//!
//! A chat is a run with a flag. Both are one stored value with a lease, but a chat has no end, and is not listed among
//! the runs that a worker resumes. The rows of both have ids that no ask can have (`run:…`), as they share a table with
//! asks.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::codec::{
    DIFFERS, LEASE_DIFFERS, VERSION, Writing, as_logged, digest, document, keepable, lease_fits,
    value,
};
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::ClaimRecord;
use crate::ledger::error::LedgerError;
use crate::ledger::logs::events::DROPPED;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Found, Row, RowKind};

/// The JSON pointer to the claim in the document of a run.
const CLAIM: &str = "/claim";

/// A run as the ledger stores it: its snapshot or its result, and the claim of the worker that resumes it.
///
/// ```
/// use countersign::ledger::{Ledger, MemoryStore};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// ledger.save_run("run-1", json!({"step": 1}), None).await?;
/// let record = ledger.load_run("run-1").await?.unwrap();
/// assert_eq!((record.saved, record.over, record.claim), (1, false, None));
/// assert_eq!(ledger.waiting_runs(10).await?.records.len(), 1);
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    version: u64,
    /// The id of the run.
    pub run: String,
    /// The number of times the run was saved.
    pub saved: u64,
    /// The snapshot of the run, a [`SuspendedRun`](crate::SuspendedRun) as JSON, or its result once it is over.
    pub state: Value,
    /// `true` if the run has ended.
    pub over: bool,
    /// `true` if the row is a chat: `waiting_runs` does not list it, and it is never dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(in crate::ledger) chat: bool,
    /// `true` if the asks and the log of the run were dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    dropped: bool,
    /// The claim of the worker that resumes the run, or did last; `None` when no worker has taken the run since its
    /// last save.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim; 0 before the first.
    pub token: u64,
    /// The time when the run was first saved, by the store's clock.
    pub saved_at: Millis,
}

impl RunRecord {
    pub(in crate::ledger) fn new(run: &str, chat: bool, now: Millis) -> Self {
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

    /// Returns `true` if the asks and the log of this run were dropped after it had ended.
    pub(in crate::ledger) fn is_dropped(&self) -> bool {
        self.dropped
    }

    /// Returns `true` if the record is of this run, is no chat, and has ended.
    pub(in crate::ledger) fn is_over_as(&self, run: &str) -> bool {
        self.over && !self.chat && self.run == run
    }
}

/// The id of the row of a run.
pub(in crate::ledger) fn row_id(run: &str) -> String {
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
pub(in crate::ledger) fn read(found: &Found, by: &Linker) -> Result<RunRecord, LedgerError> {
    let row = &found.row;
    let earlier = as_logged(found, by)?;
    let record: RunRecord = serde_json::from_value(value(row, CLAIM)?)
        .map_err(|error| LedgerError::unreadable(&row.id, &error))?;
    if row_id(&record.run) != row.id || row.due_at.is_some() || !row.requester.is_empty() {
        return Err(LedgerError::changed(&row.id, "it holds another run"));
    }
    if !lease_fits(found, record.claim.as_ref(), (record.token, !record.over), by) {
        return Err(LedgerError::changed(&row.id, LEASE_DIFFERS));
    }
    let Some(body) = earlier else { return Ok(record) };
    // The first version logged no digest of a chat that was created and not saved yet.
    let is_empty_chat = record.chat && record.saved == 0 && record.state.is_null();
    let columns = (row.kind, &*row.run, &*row.state, row.created_at);
    let recorded = (RowKind::Run, &*record.run, standing(&record), record.saved_at);
    match body.get("state").and_then(Value::as_str) {
        None if is_empty_chat && row.kind == RowKind::Run => Ok(record),
        None => Err(LedgerError::changed(&row.id, "it is not in the log")),
        Some(said)
            if said == crate::args::digest(&record.state)
                && body.get("saved").and_then(Value::as_u64) == Some(record.saved)
                && columns == recorded =>
        {
            Ok(record)
        }
        Some(_) => Err(LedgerError::changed(&row.id, DIFFERS)),
    }
}

/// Writes the row of a run, and a log entry for the event. A renewed lease has no event, and is written without an
/// entry.
pub(in crate::ledger) fn note(
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
pub(in crate::ledger) fn note_dropped(
    writing: &mut Writing<'_>,
    run: &str,
    record: Option<RunRecord>,
    worker: &str,
) -> Result<(), LedgerError> {
    let mut record = record.unwrap_or_else(|| RunRecord::new(run, false, writing.now));
    (record.over, record.dropped) = (true, true);
    note(writing, record, Some(DROPPED), worker)
}
