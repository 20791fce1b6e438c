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
//! The work is a closure, and a store may call it several times: an optimistic store runs it on what it has read,
//! and again if another process was faster. So the closure must not have effects of its own, and only its last
//! result counts.
//!
//! Expiry comes first so that it does not depend on a timer. A decision that arrives one millisecond after the deadline
//! finds an expired ask whether a service has called [`Ledger::expire`] or not, by the clock of the store, within the
//! transaction.
//!
//! Where an operation has no event, we still write the row if it changed, without an entry. A lease, for example, is
//! renewed every few seconds without growing the log.

use std::time::Duration;

use super::codec::{Writing, check_run, read, there};
use super::predecessor::Predecessor;
use super::run_record::row_id;
use super::{key, run_record};
use crate::ledger::asks::ask::{Ask, Millis};
use crate::ledger::asks::metrics::EndedAsk;
use crate::ledger::asks::record::{AskRecord, AskState};
use crate::ledger::asks::transitions;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::vouching;
use crate::ledger::stores::store::{Lookup, RowKind, Writes};

/// The person or worker that a change is logged for, and the ask to create where there is none with this id.
#[derive(Default)]
pub(in crate::ledger) struct Transition<'c> {
    pub(in crate::ledger) by: Option<&'c str>,
    pub(in crate::ledger) new: Option<Ask>,
    /// `true` if the change depends on how old the ask or its approval is.
    pub(in crate::ledger) ages: bool,
    /// The ask before the new one, which is taken in its place while it is open.
    pub(in crate::ledger) behind: Option<Predecessor>,
}

impl<'c> Transition<'c> {
    pub(in crate::ledger) fn by(by: &'c str) -> Self {
        Self { by: Some(by), ..Self::default() }
    }

    pub(in crate::ledger) fn that_ages(self) -> Self {
        Self { ages: true, ..self }
    }
}

/// Runs a body in one store transaction: it gets the rows of these ids, and collects what is written. Nothing is written
/// where it returns an error. The store may run it several times.
///
/// The first writes of a store wait until it has said which audit key it has. What it says is read again in each
/// transaction, so that a process that was running when a key was added writes nothing more. A row or a log that ends with
/// an entry which is older than the key is read again, once the entries that the key was added to are known.
pub(in crate::ledger) async fn transact<T: Send>(
    ledger: &Ledger,
    ids: &[String],
    mut body: impl FnMut(&mut Writing<'_>, Vec<Lookup>) -> Result<T, LedgerError> + Send,
) -> Result<T, LedgerError> {
    let is_keyed = ledger.linker.key_id().is_some();
    let ids: Vec<_> = ids.iter().cloned().chain([key::ROW.to_owned()]).collect();
    loop {
        let store = ledger.opened().await?;
        let says = ledger.has_said();
        let (mut made, mut ended, mut runs, mut waits) = (None, Vec::new(), Vec::new(), false);
        let mut work = |now: Millis, mut rows: Vec<Lookup>| {
            let said = rows.pop().unwrap_or(Lookup::Nothing);
            if is_keyed {
                runs = rows.iter().filter_map(run_of).collect();
            }
            let mut writing = Writing::new(&ledger.linker, now);
            let result = ledger.still_says(says, said).and_then(|()| body(&mut writing, rows));
            let mut writes = if result.is_ok() { writing.finish() } else { Default::default() };
            made = Some(result);
            waits = !says && writes.0 != Writes::default();
            if waits {
                writes = Default::default();
            }
            ended = writes.1;
            writes.0
        };
        let written = store.transact(&ids, &ledger.linker, &mut work).await;
        if let Err(error) = written {
            match error.unlinked().cloned() {
                Some(unlinked)
                    if vouching::vouch(ledger, std::slice::from_ref(&unlinked.run)).await? =>
                {
                    continue;
                }
                Some(unlinked) => return Err(LedgerError::Broken(unlinked.into())),
                None => return Err(error.into()),
            }
        }
        if waits {
            ledger.say().await?;
            continue;
        }
        let is_refused =
            matches!(&made, Some(Err(error)) if !matches!(error, LedgerError::AuditKey { .. }));
        if is_refused && vouching::vouch(ledger, &runs).await? {
            continue;
        }
        ended.iter().for_each(EndedAsk::measure);
        let id = ids.first().map_or("", String::as_str);
        return made.unwrap_or_else(|| Err(LedgerError::unreadable(id, "it was not read")));
    }
}

/// The run of a row that was found.
fn run_of(lookup: &Lookup) -> Option<String> {
    match lookup {
        Lookup::Found(found) => Some(found.row.run.clone()),
        _ => None,
    }
}

/// Runs one state transition on an ask in a store transaction. Expiry is applied first. Returns the transition's
/// result and whether the ask had expired or lost its lease, or `None` if it does not exist. `event` names the log
/// entry for the result; without an event, a changed record is written without an entry, as for a renewed lease.
pub(in crate::ledger) async fn change<T: Send>(
    ledger: &Ledger,
    id: &str,
    how: Transition<'_>,
    mut change: impl FnMut(&mut AskRecord, Millis) -> T + Send,
    event: impl Fn(&T) -> Option<&'static str> + Send + Sync,
) -> Result<Option<(T, bool)>, LedgerError> {
    let mut ids = vec![id.to_owned()];
    ids.extend(how.new.as_ref().map(|ask| row_id(ask.run())));
    let own = ids.len();
    ids.extend(how.behind.iter().flat_map(Predecessor::ids));
    transact(ledger, &ids, |writing, mut rows| {
        let (now, before) = (writing.now, rows.split_off(own.min(rows.len())));
        let found = found(rows, &how, ledger, now)?;
        let Some((mut record, mut new)) = found else { return Ok(None) };
        if how.behind.is_some()
            && new
            && let Some(open) = Predecessor::open(writing, before)?
        {
            (record, new) = (open, false);
        }
        if new {
            check_run(record.ask.run())?;
            writing.note(&record, "parked", None)?;
        }
        let time = if new { None } else { transitions::pass_time(&mut record, now) };
        if let Some(event) = time {
            writing.note(&record, event, None)?;
        }
        if how.ages {
            refuse_ahead(&record, now)?;
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

/// The time by which an ask may be dated ahead of the clock. Clocks of machines that are set by a network differ by
/// less than a second; a clock that was set by hand may be an hour off.
const MAX_AHEAD: Millis = 3_600_000;

/// Refuses an ask that was changed at a time far ahead of this clock, and that a decision or a claim would take further
/// (rule L4).
///
/// Where a store has no clock of its own, as a file in SQLite, each process brings one. An approval that a clock ten days
/// ahead has dated would be valid for ten days longer than it may be.
pub(in crate::ledger) fn refuse_ahead(record: &AskRecord, now: Millis) -> Result<(), LedgerError> {
    let ahead = record.changed_at.saturating_sub(now);
    if ahead <= MAX_AHEAD || !matches!(record.state, AskState::Pending | AskState::Decided) {
        return Ok(());
    }
    let ahead = Duration::from_millis(ahead.unsigned_abs());
    Err(LedgerError::Ahead { id: record.ask.id().to_owned(), ahead })
}

/// The ask in the store, or a new one where there is none; the flag says whether it is new. A new ask of a dropped run
/// is refused, as its call may have run before.
///
/// We look up the row of the run beside the row of a new ask. After [`Ledger::prune`] the asks of a run are gone, and a
/// snapshot that was kept elsewhere would park its calls again. They may have run before, so we refuse them.
fn found(
    rows: Vec<Lookup>,
    how: &Transition<'_>,
    ledger: &Ledger,
    now: Millis,
) -> Result<Option<(AskRecord, bool)>, LedgerError> {
    let mut rows = rows.into_iter();
    let mut next = || rows.next().map_or(Ok(None), there);
    match next()? {
        Some(found) if RowKind::of_id(&found.row.id) == RowKind::Ask => {
            return Ok(Some((read(&found, &ledger.linker)?, false)));
        }
        Some(_) => return Ok(None),
        None => {}
    }
    let Some(ask) = how.new.clone() else { return Ok(None) };
    if let Some(run) = next()?
        && run_record::read(&run, &ledger.linker)?.is_dropped()
    {
        let problem =
            "its run was over long ago, and its asks were dropped: nothing of it runs any more";
        return Err(LedgerError::Unkeepable {
            id: ask.id().to_owned(),
            problem: problem.to_owned(),
        });
    }
    Ok(Some((AskRecord::new(ask, ledger.valid_for, now), true)))
}

/// Closes the asks among these rows, after expiry was applied to each.
pub(in crate::ledger) fn closed(
    writing: &mut Writing<'_>,
    rows: impl IntoIterator<Item = Lookup>,
    by: &str,
) -> Result<(), LedgerError> {
    for lookup in rows {
        let found = there(lookup)?;
        let found = found.filter(|found| RowKind::of_id(&found.row.id) == RowKind::Ask);
        let Some(found) = found else { continue };
        let mut record = read(&found, writing.linker())?;
        if let Some(event) = transitions::pass_time(&mut record, writing.now) {
            writing.note(&record, event, None)?;
        }
        if transitions::close(&mut record, writing.now) {
            writing.note(&record, "closed", Some(by))?;
        }
    }
    Ok(())
}
