//! Waiting for what becomes of the asks of a run.

use super::{Ledger, LedgerError};

impl Ledger {
    /// Waits until something has happened to an ask of this run behind this place of its log, and gives the place of the
    /// last thing that has. Looking at the asks between two calls misses nothing, also when the store was away
    /// meanwhile.
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
    /// [`LedgerError`].
    pub async fn changed(&self, run: &str, after: i64) -> Result<i64, LedgerError> {
        Ok(self.store.changed(run, after).await?)
    }
}
