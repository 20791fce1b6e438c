//! Closing the asks of calls that have got their results (rule L5).

use super::ask::Millis;
use super::store::{Row, RowKind, Writes};
use super::stored::{draft, keepable, read, row_of};
use super::{Ledger, LedgerError, rules};

impl Ledger {
    /// Notes that the call of an ask has got its result without running. An ask that is executed, or was, stands.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask stands as it was.
    pub async fn close(&self, id: &str) -> Result<(), LedgerError> {
        self.close_all(&[id.to_owned()]).await
    }

    /// Closes these asks, all or none.
    pub(crate) async fn close_all(&self, asks: &[String]) -> Result<(), LedgerError> {
        let mut result = Ok(());
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let closed = closed(rows, self.get_worker(), now);
            let (made, writes) = match closed {
                Ok(writes) => (Ok(()), writes),
                Err(error) => (Err(error), Writes::default()),
            };
            result = made;
            writes
        };
        self.store.transact(asks, &self.linker, &mut work).await?;
        result
    }
}

/// What closing these asks writes, after the time that has passed has taken effect.
pub(super) fn closed(
    rows: impl IntoIterator<Item = Option<Row>>,
    by: &str,
    now: Millis,
) -> Result<Writes, LedgerError> {
    let mut writes = Writes::default();
    for row in rows.into_iter().flatten().filter(|row| row.kind == RowKind::Ask) {
        let mut record = read(&row)?;
        let time = rules::pass_time(&mut record, now);
        writes.log.extend(time.map(|event| draft(&record, event, None, now)));
        let closed = rules::close(&mut record, now);
        writes.log.extend(closed.then(|| draft(&record, "closed", Some(by), now)));
        if closed || time.is_some() {
            writes.rows.push(keepable(row_of(&record))?);
        }
    }
    Ok(writes)
}
