//! One state transition of one ask in one transaction: expiry is applied first, then the transition; row and log
//! entries are written together.

use super::ask::{Ask, Millis};
use super::codec::{Writing, check_run, read, there};
use super::record::Record;
use super::runs::row_id;
use super::store::{Lookup, RowKind, Writes};
use super::{Ledger, LedgerError, rules, runs};

/// The person or worker that a change is logged for, and the ask to create where there is none with this id.
#[derive(Default)]
pub(super) struct Change<'c> {
    pub(super) by: Option<&'c str>,
    pub(super) new: Option<Ask>,
}

impl<'c> Change<'c> {
    pub(super) fn by(by: &'c str) -> Self {
        Self { by: Some(by), new: None }
    }
}

impl Ledger {
    /// Runs one state transition on an ask in a store transaction. Expiry is applied first. Returns the transition's
    /// result and whether the ask had expired or lost its lease, or `None` if it does not exist. `event` names the log
    /// entry for the result; without an event, a changed record is written without an entry, as for a renewed lease.
    pub(super) async fn change<T: Send>(
        &self,
        id: &str,
        how: Change<'_>,
        mut change: impl FnMut(&mut Record, Millis) -> T + Send,
        event: impl Fn(&T) -> Option<&'static str> + Send + Sync,
    ) -> Result<Option<(T, bool)>, LedgerError> {
        let mut result = Ok(None);
        let mut ids = vec![id.to_owned()];
        ids.extend(how.new.as_ref().map(|ask| row_id(ask.run())));
        let mut work = |now: Millis, rows: Vec<Lookup>| {
            let made = found(rows, &how, self.valid_for, now).and_then(|found| {
                let Some((mut record, new)) = found else { return Ok((None, Writes::default())) };
                let mut writing = Writing::new(&self.linker, now);
                if new {
                    check_run(record.ask.run())?;
                    writing.note(&record, "parked", how.by)?;
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
                Ok((Some((made, time.is_some())), writing.finish()))
            });
            let (made, writes) = match made {
                Ok((made, writes)) => (Ok(made), writes),
                Err(error) => (Err(error), Writes::default()),
            };
            result = made;
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result
    }
}

/// The ask in the store, or a new one where there is none; the flag says whether it is new. A new ask of a dropped run
/// is refused, as its call may have run before.
fn found(
    rows: Vec<Lookup>,
    how: &Change<'_>,
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
        && runs::read(&run)?.is_dropped()
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
