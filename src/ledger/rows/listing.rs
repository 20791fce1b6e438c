//! Lists of asks and runs. A row that was changed outside of the ledger is refused, and the others are still listed
//! (rule L8).

use super::codec::DIFFERS;
use crate::ledger::error::LedgerError;
use crate::ledger::stores::store::Found;

/// A list of asks or runs, with the rows that were refused.
///
/// If one of a thousand asks cannot be read, the list is no error: an inbox that showed nothing would hide the
/// others from the people who have to answer them.
///
/// We do not leave such a row out silently either: a surface shows that there is one (rule L8).
#[derive(Debug)]
#[must_use]
pub struct Listed<T> {
    /// The asks or runs that can be read, newest first.
    pub records: Vec<T>,
    /// The rows that are refused: they were changed outside of the ledger, or another version wrote them. They count
    /// towards the limit of the list. Show them to people, as refused rows are not decided, executed or resumed.
    pub refused: Vec<RefusedRow>,
}

/// A refused row, with the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct RefusedRow {
    /// The id of the row: the id of an ask, or `run:` and the id of a run.
    pub id: String,
    /// The reason: [`LedgerError::Changed`] or [`LedgerError::Unreadable`].
    pub error: LedgerError,
}

impl RefusedRow {
    /// An ask whose column says that it is none.
    pub(in crate::ledger) fn of_another_kind(id: String) -> Self {
        let error = LedgerError::changed(&id, DIFFERS);
        Self { id, error }
    }
}

impl<T> Listed<T> {
    pub(in crate::ledger) fn of(
        rows: &[Found],
        read: impl Fn(&Found) -> Result<T, LedgerError>,
    ) -> Self {
        let (mut records, mut refused) = (Vec::new(), Vec::new());
        for found in rows {
            match read(found) {
                Ok(record) => records.push(record),
                Err(error) => refused.push(RefusedRow { id: found.row.id.clone(), error }),
            }
        }
        Self { records, refused }
    }
}
