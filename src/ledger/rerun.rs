//! Running a call again whose execution has an unknown end, after a person has approved that (rule L2).
//!
//! The question whether to run a call again names the ask under which it was started (as a pin), so that the approval
//! is for this repetition and no other. Claiming it looks at the earlier asks in the same transaction:
//!
//! | the earlier ask is | the new claim |
//! |---|---|
//! | settled meanwhile (a slow worker came back) | gets that outcome; the new ask is closed |
//! | claimed again (the slow worker has renewed its lease) | is held by that worker |
//! | unknown | is granted, and the earlier token becomes stale |
//!
//! The last row keeps two executions from being recorded under one call: the earlier worker can settle no more.

use super::asks::ask::{Ask, Millis};
use super::asks::names::Names;
use super::asks::record::{AskRecord, AskState};
use super::asks::results::Claimed;
use super::asks::transitions;
use super::error::LedgerError;
use super::handle::Ledger;
use super::rows::change::{refuse_ahead, transact};
use super::rows::codec::{Writing, read, there};
use super::stores::store::Lookup;
use crate::call::repeated;

/// Claims an ask that repeats earlier asks of the same call. The claims of the earlier ones become stale in the same
/// transaction, so that none of them is settled later; if one has been settled meanwhile, its outcome is the call's.
pub(super) async fn claim_again(
    ledger: &Ledger,
    id: &str,
    earlier: Vec<String>,
    worker: &str,
    lease: Millis,
) -> Result<Claimed, LedgerError> {
    let ids: Vec<_> = std::iter::once(id.to_owned()).chain(earlier).collect();
    transact(ledger, &ids, |writing, rows| again(writing, rows, (worker, lease), &ledger.names))
        .await
}

impl Ask {
    /// The ids of the earlier asks of the same call whose executions have unknown ends, as named by the questions.
    pub(super) fn repeats(&self) -> Vec<String> {
        let mut asks: Vec<_> = repeated(&self.questions).map(str::to_owned).collect();
        asks.retain(|ask| ask != self.id());
        asks.sort_unstable();
        asks.dedup();
        asks
    }

    fn is_same_call(&self, other: &Self) -> bool {
        (&self.run, self.response, &self.path) == (&other.run, other.response, &other.path)
    }
}

/// Claims the first of these asks, which repeats the others, unless one of the others is settled or claimed again.
fn again(
    writing: &mut Writing<'_>,
    rows: Vec<Lookup>,
    (worker, lease): (&str, Millis),
    names: &Names,
) -> Result<Claimed, LedgerError> {
    if rows.first().is_none_or(|ask| *ask == Lookup::Nothing) {
        return Ok(Claimed::UnknownAsk);
    }
    let now = writing.now;
    let mut records = Vec::new();
    for lookup in rows {
        let Some(found) = there(lookup)? else { continue };
        let mut record = read(&found, writing.linker())?;
        if let Some(event) = transitions::pass_time(&mut record, now) {
            writing.note(&record, event, None)?;
        }
        records.push(record);
    }
    let mut records = records.into_iter();
    let Some(mut ask) = records.next() else { return Ok(Claimed::UnknownAsk) };
    let mut earlier: Vec<_> = records.filter(|it| it.ask.is_same_call(&ask.ask)).collect();
    let (mut tried, by) = (ask.clone(), Some(worker));
    refuse_ahead(&tried, now)?;
    let claimed = transitions::claim(&mut tried, (worker, lease), names, now);
    if !matches!(claimed, Claimed::Claimed { .. }) {
        if tried.state != ask.state {
            let left = matches!(claimed, Claimed::Outvoted { .. });
            writing.note(&tried, if left { "outvoted" } else { "aged" }, by)?;
        }
        return Ok(claimed);
    }
    if let Some(known) = earlier.iter().find_map(came_of) {
        if matches!(known, Claimed::Settled { .. }) && transitions::close(&mut ask, now) {
            writing.note(&ask, "closed", by)?;
        }
        return Ok(known);
    }
    for record in &mut earlier {
        if transitions::supersede(record, now) {
            writing.note(record, "superseded", by)?;
        }
    }
    let claimed = transitions::claim(&mut ask, (worker, lease), names, now);
    writing.note(&ask, "claimed", by)?;
    Ok(claimed)
}

/// The result of an earlier execution that was settled late, or whose worker has renewed its lease late.
fn came_of(record: &AskRecord) -> Option<Claimed> {
    match (record.state, &record.claim) {
        (AskState::Executed, _) => {
            let outcome = record.outcome.clone().unwrap_or_default();
            Some(Claimed::Settled { outcome })
        }
        // The worker was slow and not dead: it has renewed its lease.
        (AskState::Claimed, Some(claim)) => {
            Some(Claimed::Held { by: claim.worker.clone(), until: claim.until })
        }
        _ => None,
    }
}
