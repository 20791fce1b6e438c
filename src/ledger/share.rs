//! The share of a requester: how many of their asks may be pending at a time (rule D11).
//!
//! Turns, hooks and served tools all count here, so that a requester has one share of a store, by whichever door the
//! calls come. The store counts; no ask is read.

use super::asks::ask::Ask;
use super::asks::record::AskRecord;
use super::error::LedgerError;
use super::handle::Ledger;
use super::rows::codec::counted;
use super::rows::predecessor::Predecessor;

impl Ledger {
    /// The number of asks of this requester that are pending and not expired, under every spelling of the name that is
    /// [one person](Ledger::canonical_names). The empty name stands for asks without a principal.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.park(Ask::new("run-1", "root/c1", "rm").with_principal("ann")).await?;
    /// ledger.park(Ask::new("run-2", "root/c1", "rm").with_principal("ANN ")).await?;
    /// ledger.park(Ask::new("run-3", "root/c1", "rm").with_principal("bob")).await?;
    /// assert_eq!(ledger.pending_of("ann").await?, 2);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    pub async fn pending_of(&self, requester: &str) -> Result<usize, LedgerError> {
        let requester = counted(Some(requester));
        let counts = self.opened().await?.requesters().await?;
        let own = counts.iter().filter(|(who, _)| self.names.are_one(who, requester));
        let count: u64 = own.map(|(_, count)| *count).sum();
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Parks an ask, unless `max_pending` asks of its requester are pending already: then nothing is parked, and the
    /// result is `None`. An ask that is in the ledger is not new, and is returned as [`park`](Self::park) does.
    ///
    /// The clones of this handle park one after the other, so their number is exact. Processes that park at the same
    /// moment may exceed it by one each.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = |run| Ask::new(run, "root/c1", "rm").with_principal("ann");
    /// assert!(ledger.park_within(ask("run-1"), 1).await?.is_some());
    /// assert!(ledger.park_within(ask("run-2"), 1).await?.is_none());
    /// assert!(ledger.park_within(ask("run-1"), 1).await?.is_some(), "it is pending already");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`park`](Self::park).
    pub async fn park_within(
        &self,
        ask: Ask,
        max_pending: u32,
    ) -> Result<Option<AskRecord>, LedgerError> {
        self.park_within_behind(ask, max_pending, None).await
    }

    /// Parks an ask as [`park_within`](Self::park_within) does, unless the one before it is open: that one is the result
    /// then.
    pub(super) async fn park_within_behind(
        &self,
        ask: Ask,
        max_pending: u32,
        behind: Option<Predecessor>,
    ) -> Result<Option<AskRecord>, LedgerError> {
        let _one_at_a_time = self.parking.lock().await;
        let pending = self.pending_of(ask.principal().unwrap_or_default()).await?;
        if is_over(self, &ask, pending, max_pending).await? {
            return Ok(None);
        }
        self.park_behind(ask, behind).await.map(Some)
    }
}

/// Returns whether this ask would be one more than its requester may have pending, of whom `pending` are. An ask that
/// was parked before is not new.
pub(super) async fn is_over(
    ledger: &Ledger,
    ask: &Ask,
    pending: usize,
    max_pending: u32,
) -> Result<bool, LedgerError> {
    Ok(pending >= max_pending as usize && ledger.get(ask.id()).await?.is_none())
}
