//! Closing the asks of calls that have a result (rule L5).

use super::ask::Millis;
use super::store::{Lookup, RowKind, Writes};
use super::stored::{Writing, read, there};
use super::{Ledger, LedgerError, rules};

impl Ledger {
    /// Closes an ask whose call got its result without running. Only a pending or decided ask is closed; one in any
    /// other state, such as a claimed or executed one, is left unchanged.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn close(&self, id: &str) -> Result<(), LedgerError> {
        self.close_all(&[id.to_owned()]).await
    }

    /// Closes these asks in one transaction.
    pub(crate) async fn close_all(&self, asks: &[String]) -> Result<(), LedgerError> {
        let mut result = Ok(());
        let mut work = |now: Millis, rows: Vec<Lookup>| {
            let mut writing = Writing::new(&self.linker, now);
            let (made, writes) = match closed(&mut writing, rows, self.get_worker()) {
                Ok(()) => (Ok(()), writing.finish()),
                Err(error) => (Err(error), Writes::default()),
            };
            result = made;
            writes
        };
        self.store.transact(asks, &self.linker, &mut work).await?;
        result
    }
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
