//! The ask before a new one of equal calls: while it is open, no other one is parked beside it (rules D11 and M3).

use super::codec::{Writing, read, there};
use super::run_record;
use super::run_record::row_id;
use crate::deferred::Answer;
use crate::ledger::asks::ask::Ask;
use crate::ledger::asks::record::{AskRecord, AskState};
use crate::ledger::asks::transitions;
use crate::ledger::error::LedgerError;
use crate::ledger::stores::store::Lookup;

/// The ask before a new one of a series, and its run where that says whether the ask was used. The new one is parked only
/// if this one is not open, which the transaction that parks it looks at.
#[derive(Debug, Clone)]
pub(in crate::ledger) struct Predecessor {
    ask: String,
    run: Option<String>,
}

impl Predecessor {
    pub(in crate::ledger) fn new(ask: &Ask, has_run: bool) -> Self {
        let run = has_run.then(|| ask.run().to_owned());
        Self { ask: ask.id().to_owned(), run }
    }

    /// The ids of the rows to look up.
    pub(in crate::ledger) fn ids(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.ask.clone()).chain(self.run.as_deref().map(row_id))
    }

    /// The ask in these rows, if it holds the next one up. A deadline that is over is recorded, so that no other process, by its own
    /// clock, finds the ask open later.
    pub(in crate::ledger) fn open(
        writing: &mut Writing<'_>,
        rows: Vec<Lookup>,
    ) -> Result<Option<AskRecord>, LedgerError> {
        let mut rows = rows.into_iter();
        let mut next = || rows.next().map_or(Ok(None), there);
        let (Some(found), run) = (next()?, next()?) else { return Ok(None) };
        let mut record = read(&found, writing.linker())?;
        if let Some(event) = transitions::pass_time(&mut record, writing.now) {
            writing.note(&record, event, None)?;
        }
        let run = run.map(|run| run_record::read(&run, writing.linker())).transpose()?;
        let is_used = run.is_some_and(|run| run.over);
        Ok(holds_up(&record, is_used).then_some(record))
    }
}

/// Returns `true` if an ask is pending, or has an answer that no call has used.
pub(in crate::ledger) fn is_open(record: &AskRecord, is_used: bool) -> bool {
    match record.state {
        AskState::Pending => true,
        AskState::Decided => !is_used,
        _ => false,
    }
}

/// Returns `true` if no other ask may be parked beside this one: a person may still answer it, or a call may still
/// run by it. A no, or a result in place of a run, that was not told yet lets nothing run.
pub(in crate::ledger) fn holds_up(record: &AskRecord, is_used: bool) -> bool {
    let answer = record.decision.as_ref().map(|decision| &decision.answer);
    is_open(record, is_used) && matches!(answer, None | Some(Answer::Approve { .. }))
}
