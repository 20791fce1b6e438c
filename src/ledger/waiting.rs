//! Waiting for changes of the asks of a run.

use super::{Ledger, LedgerError};

impl Ledger {
    /// Waits until the log of this run has an entry behind the place `after`, and returns the place of its last entry.
    /// With `-1` it returns at once. Pass the returned place to the next call: a caller that reads the asks between two
    /// calls misses no change, also when the store was unreachable meanwhile.
    ///
    /// ```
    /// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore, Answer};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let ledger = Ledger::new(MemoryStore::new());
    /// # let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// # ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// let mut place = ledger.changed("run-1", -1).await?; // from the beginning
    /// while ledger.get(ask.ask.id()).await?.is_some_and(|record| record.state == AskState::Pending) {
    ///     place = ledger.changed("run-1", place).await?;
    /// }
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    pub async fn changed(&self, run: &str, after: i64) -> Result<i64, LedgerError> {
        Ok(self.store.changed(run, after).await?)
    }
}
