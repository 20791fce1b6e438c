//! Dropping the asks and the logs of runs that are over.
//!
//! # What stays
//!
//! Of each dropped run we keep its row with the result, and one log entry. Both are small. Without them the run would
//! look like one that was never there: a snapshot of it that was kept elsewhere would park its asks anew, and calls
//! that ran years ago would run again.
//!
//! # What is not dropped
//!
//! A run with anything that may still happen: a pending ask, an approval that was not claimed, a claim. A call of
//! unknown end is dropped only with a run that has *ended*, since a worker may still settle it before that. Chats have
//! no end, and grants have logs of their own.
//!
//! The store compares the end of the log again when it removes. If a run got a new entry in between, it
//! stays, and the next call finds it again.

use std::time::Duration;

use serde_json::Value;

use super::audit::rows_of;
use crate::deferred::Answer;
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::{AskRecord, AskState};
use crate::ledger::error::LedgerError;
use crate::ledger::handle::{Ledger, millis};
use crate::ledger::logs::events::{CHECKPOINTS, KEY, PAGE, REKEYS, is_dropped};
use crate::ledger::logs::vouching;
use crate::ledger::rows::change::transact;
use crate::ledger::rows::codec;
use crate::ledger::rows::run_record;
use crate::ledger::rows::run_record::RunRecord;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Dropped, Entry, Found, RowKind};

/// Drops runs that are over. See [`Ledger::prune`].
pub(in crate::ledger) async fn prune(
    ledger: &Ledger,
    older_than: Duration,
) -> Result<u64, LedgerError> {
    let before = ledger.now().await?.saturating_sub(millis(older_than));
    let (mut count, mut after) = (0, String::new());
    loop {
        let page = ledger.opened().await?.heads(&after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(count) };
        after.clone_from(&last.run);
        for end in page.into_iter().filter(|end| is_older(end, before)) {
            count += u64::from(drop_run(ledger, end).await?);
        }
    }
}

/// Drops a run if it is over and its log still ends with this entry. Returns whether it was dropped.
async fn drop_run(ledger: &Ledger, end: Entry) -> Result<bool, LedgerError> {
    let rows = rows_of(ledger, &end.run).await?;
    vouching::vouch(ledger, std::slice::from_ref(&end.run)).await?;
    let finished = finished(&end.run, &rows, &ledger.linker);
    let Some((record, asks)) = finished else { return Ok(false) };
    // The store writes nothing if the log has a newer entry by then.
    transact(ledger, &[], |writing, _| {
        run_record::note_dropped(writing, &end.run, record.clone(), ledger.worker_name())?;
        let last = (end.seq, end.hash.clone());
        writing.remove(Dropped { run: end.run.clone(), end: last, rows: asks.clone() });
        Ok(())
    })
    .await?;
    Ok(ledger.opened().await?.log(&end.run, 0, 1).await?.iter().all(|first| first.seq > end.seq))
}

/// Returns `true` if the last entry of a log is old enough, and does not say that the run was dropped before.
fn is_older(end: &Entry, before: Millis) -> bool {
    let body: Value = serde_json::from_str(&end.body).unwrap_or_default();
    let at = body.get("at").and_then(Value::as_i64);
    let is_own = [CHECKPOINTS, KEY, REKEYS].contains(&&*end.run);
    !is_own && !is_dropped(&body) && at.is_some_and(|at| at <= before)
}

/// The record of a run that is over, if there is one, and the ids of the run's asks. `None` when the run is not over,
/// or has a row that is refused.
fn finished(run: &str, rows: &[Found], by: &Linker) -> Option<(Option<RunRecord>, Vec<String>)> {
    let (mut record, mut asks) = (None, Vec::new());
    for found in rows {
        match found.row.kind {
            RowKind::Run => {
                record = Some(run_record::read(found, by).ok().filter(|it| it.is_over_as(run))?)
            }
            // A grant or a counter is not of a run that is ever over.
            RowKind::Grant | RowKind::Counter | RowKind::Key => return None,
            RowKind::Ask => asks.push(codec::read(found, by).ok()?),
        }
    }
    let ended = record.is_some();
    let is_settled = |ask: &AskRecord| match (ask.state, &ask.decision) {
        (AskState::Pending | AskState::Claimed, _) => false,
        // The call may have run, and its worker may still settle it; once the run has ended, no one needs the outcome.
        (AskState::Unknown, _) => ended,
        (AskState::Decided, Some(decision)) => !matches!(decision.answer, Answer::Approve { .. }),
        (AskState::Decided, None) => false,
        _ => true,
    };
    let ids = asks.iter().map(|ask| ask.ask.id().to_owned()).collect();
    asks.iter().all(is_settled).then_some((record, ids))
}
