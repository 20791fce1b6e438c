//! Saving and ending suspended runs: stored until they are over, and resumed by one worker at a time (rule L5).
//!
//! | operation | without the token | with the latest token | with an old token |
//! |---|---|---|---|
//! | create | a new row; one that exists is left | – | – |
//! | save | – | saved | stale |
//! | save and release, end | – | saved, the lease is given up, asks are closed | stale, nothing is closed |
//! | renew | – | extended | stale |
//!
//! We close the asks in the transaction that saves the run, and only if the save has counted. A worker that has lost
//! its lease must not close asks that the new worker is about to answer (rule L5).

use std::time::Duration;

use serde_json::Value;

use crate::ledger::asks::ask::Millis;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::{Ledger, millis};
use crate::ledger::logs::events;
use crate::ledger::rows::change::{closed, transact};
use crate::ledger::rows::codec::{check_run, there};
use crate::ledger::rows::run_record::{RunRecord, note, read, row_id};
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::Found;

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

/// The id of the run that a chat is stored as.
pub(in crate::ledger) fn chat_key(chat: &str) -> String {
    format!("chat:{chat}")
}

/// The record of a run or a chat.
pub(in crate::ledger) async fn get(
    ledger: &Ledger,
    run: &str,
) -> Result<Option<RunRecord>, LedgerError> {
    let read = |found: &Found, by: &Linker| read(found, by).map(Some);
    ledger.one(&row_id(run), read).await
}

/// Extends the lease on a run or a chat, to this long from now.
pub(in crate::ledger) async fn renew(
    ledger: &Ledger,
    run: &str,
    token: u64,
    lease: Duration,
) -> Result<Saved, LedgerError> {
    let lease = millis(lease);
    on_run(ledger, run, None, |now, record| match record {
        Some(mut record) if record.token == token && !record.over => {
            let Some(claim) = &mut record.claim else { return (Saved::StaleToken, None) };
            claim.until = now.saturating_add(lease);
            (Saved::Saved, Some((record, None)))
        }
        _ => (Saved::StaleToken, None),
    })
    .await
}

/// Saves a run or a chat without giving up the lease.
pub(in crate::ledger) async fn keep(
    ledger: &Ledger,
    run: &str,
    token: u64,
    state: Value,
) -> Result<Saved, LedgerError> {
    on_run(ledger, run, None, |_, record| match record {
        Some(mut record) if record.token == token && !record.over => {
            (record.saved, record.state) = (record.saved + 1, state.clone());
            (Saved::Saved, Some((record, Some("run_saved"))))
        }
        _ => (Saved::StaleToken, None),
    })
    .await
}

/// Saves a run or a chat, and closes the asks of the calls that have their results now, in one transaction.
pub(in crate::ledger) async fn write(
    ledger: &Ledger,
    run: &str,
    write: RunWrite<'_>,
) -> Result<Saved, LedgerError> {
    let RunWrite { state, token, over, closes } = write;
    events::refuse_name(run, run)?;
    let event = if over { "run_ended" } else { "run_saved" };
    let closing = Closing {
        asks: closes,
        by: ledger.worker_name(),
        when: |made: &Saved| *made == Saved::Saved,
    };
    on_run(ledger, run, Some(closing), |now, record| {
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

/// A changed record, and the event that is logged with it, if any.
pub(in crate::ledger) type Changed = (RunRecord, Option<&'static str>);

/// Runs a change of the record of a run in a transaction, which logs it and closes asks.
pub(super) async fn on_run<T: Send>(
    ledger: &Ledger,
    run: &str,
    closing: Option<Closing<'_, T>>,
    mut change: impl FnMut(Millis, Option<RunRecord>) -> (T, Option<Changed>) + Send,
) -> Result<T, LedgerError> {
    let asks = closing.iter().flat_map(|closing| closing.asks).cloned();
    let ids: Vec<_> = std::iter::once(row_id(run)).chain(asks).collect();
    transact(ledger, &ids, |writing, rows| {
        let mut rows = rows.into_iter();
        let known = rows.next().map_or(Ok(None), there)?;
        let known = known.map(|found| read(&found, writing.linker())).transpose()?;
        let new = known.is_none();
        let held = known.as_ref().and_then(|record| record.claim.clone());
        let (made, written) = change(writing.now, known);
        if let Some(it) = closing.as_ref().filter(|it| (it.when)(&made)) {
            closed(writing, rows, it.by)?;
        }
        if let Some((record, event)) = written {
            if new {
                check_run(run)?;
            }
            let held = record.claim.clone().or(held);
            let by = held.as_ref().map_or(ledger.worker_name(), |claim| &claim.worker);
            note(writing, record, event, by)?;
        }
        Ok(made)
    })
    .await
}

/// A new state of a run: a snapshot, or its result where the run is over.
pub(in crate::ledger) struct RunWrite<'w> {
    pub(in crate::ledger) state: Value,
    /// The token of the claim; without one the run is only created, and an existing one is left unchanged.
    pub(in crate::ledger) token: Option<u64>,
    pub(in crate::ledger) over: bool,
    /// The asks of the calls that have their results now.
    pub(in crate::ledger) closes: &'w [String],
}

/// Asks that are closed in the transaction of a change, where its result says so.
pub(super) struct Closing<'c, T> {
    asks: &'c [String],
    by: &'c str,
    when: fn(&T) -> bool,
}
