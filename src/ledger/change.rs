//! Transactions of the ledger, and one state transition of one ask in a transaction: expiry is applied first, then the
//! transition; row and log entries are written together.
//!
//! Every operation on an ask has this shape, in one transaction:
//!
//! ```text
//!  look the row up ─► compare it with its last log entry (rule L8)
//!                  ─► pass the time: a deadline or a lease that is over changes the state first (rule L4)
//!                  ─► the transition, a pure function of `rules`
//!                  ─► write the row and the entries, or nothing
//! ```
//!
//! The work is a closure that a store may call several times: an optimistic store runs it on what it has read, and
//! again if another process was faster. So it must not have effects of its own, and only its last result counts.
//!
//! Expiry comes first so that it does not depend on a timer. A decision that arrives one millisecond after the deadline
//! finds an expired ask whether a service has called [`Ledger::expire`] or not, by the clock of the store, within the
//! transaction.
//!
//! Where an operation has no event, the row is still written if it changed, without an entry: that is how a lease is
//! renewed every few seconds without growing the log.

use super::ask::{Ask, Millis};
use super::codec::{Writing, check_run, read, there};
use super::error::LedgerError;
use super::handle::Ledger;
use super::metrics::EndedAsk;
use super::record::Record;
use super::run_record::row_id;
use super::store::{Lookup, RowKind};
use super::{rules, run_record};

/// The person or worker that a change is logged for, and the ask to create where there is none with this id.
#[derive(Default)]
pub(super) struct Transition<'c> {
    pub(super) by: Option<&'c str>,
    pub(super) new: Option<Ask>,
}

impl<'c> Transition<'c> {
    pub(super) fn by(by: &'c str) -> Self {
        Self { by: Some(by), new: None }
    }
}

/// Runs a body in one store transaction: it gets the rows of these ids, and collects what is written. Nothing is written
/// where it returns an error. The store may run it several times.
pub(super) async fn transact<T: Send>(
    ledger: &Ledger,
    ids: &[String],
    mut body: impl FnMut(&mut Writing<'_>, Vec<Lookup>) -> Result<T, LedgerError> + Send,
) -> Result<T, LedgerError> {
    let mut made = None;
    let mut ended = Vec::new();
    let mut work = |now: Millis, rows: Vec<Lookup>| {
        let mut writing = Writing::new(&ledger.linker, now);
        let result = body(&mut writing, rows);
        let writes = if result.is_ok() { writing.finish() } else { Default::default() };
        made = Some(result);
        ended = writes.1;
        writes.0
    };
    ledger.store.transact(ids, &ledger.linker, &mut work).await?;
    ended.iter().for_each(EndedAsk::measure);
    let id = ids.first().map_or("", String::as_str);
    made.unwrap_or_else(|| Err(LedgerError::unreadable(id, "it was not read")))
}

/// Runs one state transition on an ask in a store transaction. Expiry is applied first. Returns the transition's
/// result and whether the ask had expired or lost its lease, or `None` if it does not exist. `event` names the log
/// entry for the result; without an event, a changed record is written without an entry, as for a renewed lease.
pub(super) async fn change<T: Send>(
    ledger: &Ledger,
    id: &str,
    how: Transition<'_>,
    mut change: impl FnMut(&mut Record, Millis) -> T + Send,
    event: impl Fn(&T) -> Option<&'static str> + Send + Sync,
) -> Result<Option<(T, bool)>, LedgerError> {
    let mut ids = vec![id.to_owned()];
    ids.extend(how.new.as_ref().map(|ask| row_id(ask.run())));
    transact(ledger, &ids, |writing, rows| {
        let now = writing.now;
        let found = found(rows, &how, ledger.valid_for, now)?;
        let Some((mut record, new)) = found else { return Ok(None) };
        if new {
            check_run(record.ask.run())?;
            writing.note(&record, "parked", None)?;
        }
        let time = if new { None } else { rules::pass_time(&mut record, now) };
        if let Some(event) = time {
            writing.note(&record, event, None)?;
        }
        let before = record.clone();
        let made = change(&mut record, now);
        if let Some(event) = event(&made) {
            // Settling and renewing name no one: the token has shown that the worker of the claim does it.
            let worker = record.claim.as_ref().map(|claim| &*claim.worker);
            writing.note(&record, event, how.by.or(worker))?;
        } else if record != before {
            writing.renew(&record)?;
        }
        Ok(Some((made, time.is_some())))
    })
    .await
}

/// The ask in the store, or a new one where there is none; the flag says whether it is new. A new ask of a dropped run
/// is refused, as its call may have run before.
///
/// The row of the run is looked up beside the row of a new ask. After [`Ledger::prune`] the asks of a run are gone, and
/// a snapshot that was kept elsewhere would park its calls again: they may have run before, and are refused.
fn found(
    rows: Vec<Lookup>,
    how: &Transition<'_>,
    valid_for: Option<Millis>,
    now: Millis,
) -> Result<Option<(Record, bool)>, LedgerError> {
    let mut rows = rows.into_iter();
    let mut next = || rows.next().map_or(Ok(None), there);
    match next()? {
        Some(found) if found.row.kind == RowKind::Ask => return Ok(Some((read(&found)?, false))),
        Some(_) => return Ok(None),
        None => {}
    }
    let Some(ask) = how.new.clone() else { return Ok(None) };
    if let Some(run) = next()?
        && run_record::read(&run)?.is_dropped()
    {
        let problem =
            "its run was over long ago, and its asks were dropped: nothing of it runs any more";
        return Err(LedgerError::Unkeepable {
            id: ask.id().to_owned(),
            problem: problem.to_owned(),
        });
    }
    Ok(Some((Record::new(ask, valid_for, now), true)))
}

/// Closes the asks among these rows, after expiry was applied to each.
pub(super) fn closed(
    writing: &mut Writing<'_>,
    rows: impl IntoIterator<Item = Lookup>,
    by: &str,
) -> Result<(), LedgerError> {
    for lookup in rows {
        let found = there(lookup)?.filter(|found| found.row.kind == RowKind::Ask);
        let Some(found) = found else { continue };
        let mut record = read(&found)?;
        if let Some(event) = rules::pass_time(&mut record, writing.now) {
            writing.note(&record, event, None)?;
        }
        if rules::close(&mut record, writing.now) {
            writing.note(&record, "closed", Some(by))?;
        }
    }
    Ok(())
}
