//! One change of one ask, in one transaction: time first, then the change, the row and the log together.

use super::ask::{Ask, Millis};
use super::record::Record;
use super::store::{Row, RowKind, Writes};
use super::stored::{check_run, draft, keepable, read, row_of};
use super::{Ledger, LedgerError, rules};

/// Who changes, and what to begin with where there is nothing.
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
    /// Changes an ask, after the time that has passed has taken effect. Gives what the change gives, and whether time
    /// had an effect; `None` when there is no such ask.
    pub(super) async fn change<T: Send>(
        &self,
        id: &str,
        how: Change<'_>,
        mut change: impl FnMut(&mut Record, Millis) -> T + Send,
        event: impl Fn(&T) -> Option<&'static str> + Send + Sync,
    ) -> Result<Option<(T, bool)>, LedgerError> {
        let mut result = Ok(None);
        let ids = [id.to_owned()];
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let made = found(rows, &how, now).and_then(|found| {
                let Some((mut record, new)) = found else { return Ok((None, Writes::default())) };
                let (mut writes, before) = (Writes::default(), record.clone());
                if new {
                    check_run(record.ask.run())?;
                    writes.log.push(draft(&record, "parked", how.by, now));
                }
                let time = if new { None } else { rules::pass_time(&mut record, now) };
                if let Some(event) = time {
                    writes.log.push(draft(&record, event, None, now));
                }
                let made = change(&mut record, now);
                if let Some(event) = event(&made) {
                    // A token says whose claim it is.
                    let worker = record.claim.as_ref().map(|claim| &*claim.worker);
                    writes.log.push(draft(&record, event, how.by.or(worker), now));
                }
                if new || record != before {
                    writes.rows.push(keepable(row_of(&record))?);
                }
                Ok((Some((made, time.is_some())), writes))
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

/// The ask in the store, or a new one.
fn found(
    rows: Vec<Option<Row>>,
    how: &Change<'_>,
    now: Millis,
) -> Result<Option<(Record, bool)>, LedgerError> {
    match rows.into_iter().flatten().next() {
        Some(row) if row.kind == RowKind::Ask => Ok(Some((read(&row)?, false))),
        Some(_) => Ok(None),
        None => Ok(how.new.clone().map(|ask| (Record::new(ask, now), true))),
    }
}
