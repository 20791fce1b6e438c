//! Lists of asks and runs. A row that was changed outside of the ledger is refused, and the others are still listed
//! (rule L8).

use super::codec::read;
use super::record::{AskState, Record};
use super::runs::{self, RunRecord};
use super::store::{Filter, Found, RowKind};
use super::{Ledger, LedgerError};

/// A list of asks or runs, with the rows that were refused.
#[derive(Debug)]
#[must_use]
pub struct Listed<T> {
    /// The asks or runs that can be read, newest first.
    pub records: Vec<T>,
    /// The rows that are refused: they were changed outside of the ledger, or another version wrote them. They count
    /// towards the limit of the list. Show them to people, as refused rows are not decided, executed or resumed.
    pub refused: Vec<RefusedRow>,
}

/// A row that is refused, and why.
#[derive(Debug)]
pub struct RefusedRow {
    /// The id of the row: the id of an ask, or `run:` and the id of a run.
    pub id: String,
    /// The reason: [`LedgerError::Changed`] or [`LedgerError::Unreadable`].
    pub error: LedgerError,
}

impl<T> Listed<T> {
    fn of(rows: &[Found], read: impl Fn(&Found) -> Result<T, LedgerError>) -> Self {
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

impl Ledger {
    /// Lists the asks in one state, or in all states, newest first.
    ///
    /// ```
    /// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// let pending = ledger.list(Some(AskState::Pending), 50).await?;
    /// assert_eq!(pending.records, [ask]);
    /// assert!(pending.refused.is_empty());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError::Store`]. A row that cannot be read is not an error of the list: it is among the refused ones.
    pub async fn list(
        &self,
        state: Option<AskState>,
        limit: u32,
    ) -> Result<Listed<Record>, LedgerError> {
        let states = state.map(|state| state.as_str().to_owned()).into_iter().collect();
        let filter = Filter { kind: Some(RowKind::Ask), states, run: None, limit: Some(limit) };
        Ok(Listed::of(&self.store.list(&filter).await?, read))
    }

    /// Lists the asks of a run, newest first.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn list_run(&self, run: &str, limit: u32) -> Result<Listed<Record>, LedgerError> {
        let (kind, run) = (Some(RowKind::Ask), Some(run.to_owned()));
        let filter = Filter { kind, run, limit: Some(limit), ..Filter::default() };
        Ok(Listed::of(&self.store.list(&filter).await?, read))
    }

    /// Lists the runs that are not over, newest first, without chats.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn waiting_runs(&self, limit: u32) -> Result<Listed<RunRecord>, LedgerError> {
        let states = vec!["waiting".to_owned()];
        let filter = Filter { kind: Some(RowKind::Run), states, run: None, limit: Some(limit) };
        Ok(Listed::of(&self.store.list(&filter).await?, runs::read))
    }
}
