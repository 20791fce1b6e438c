//! Deciding about an ask, where more than its fingerprint has to fit.

use std::time::Duration;

use super::ask::Millis;
use super::change::Change;
use super::names::Names;
use super::record::Record;
use super::results::Decided;
use super::rules::{self, Deciding};
use super::{Ledger, LedgerError, millis};
use crate::deferred::Answer;

impl Ledger {
    /// Decides about an ask that passes a check within the same transaction. `None` where there is no such ask.
    pub(crate) async fn decide_if<E: Send>(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
        check: impl Fn(&Record, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let deciding = Deciding { fingerprint: fingerprint.to_owned(), by: by.to_owned(), answer };
        let event = |result: &Result<Decided, E>| match result {
            Ok(Decided::Won { again: false }) => Some("decided"),
            Ok(Decided::Recorded { again: false, .. }) => Some("voted"),
            _ => None,
        };
        let decide = |record: &mut Record, now| {
            check(record, now).map(|()| rules::decide(record, &deciding, &self.names, now))
        };
        let made = self.change(id, Change::by(by), decide, event).await?;
        Ok(made.map(|(decided, _)| decided))
    }
}

impl Ledger {
    /// When two names are of one person, for quorums and for "not the requester" (rule L1): when this gives the same text
    /// for both. A name for which it gives an empty text cannot decide. Without this, names are compared without the
    /// space around them, and without differences of case or of Unicode composition.
    ///
    /// What is recorded is the name as it was said. All processes over one store need the same function.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// // User ids, in which case matters.
    /// let ledger = Ledger::new(MemoryStore::new()).canonical_names(|name| name.to_owned());
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn canonical_names(
        mut self,
        canonical: impl Fn(&str) -> String + Send + Sync + 'static,
    ) -> Self {
        self.names = Names::new(canonical);
        self
    }

    /// How long an approval holds, from its oldest vote to the claim, for asks that do not say so themselves
    /// ([`Ask::valid_for`](super::Ask::valid_for)); 24 hours by default, and `None` means for ever. An approval that is
    /// older is not used, also not to run an idempotent tool again: the call is asked about anew, and the other calls of
    /// its response run (rule A8). It is fixed when an ask is parked, and compared with the store's clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new()).approvals_valid_for(Duration::from_secs(15 * 60));
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn approvals_valid_for(mut self, time: impl Into<Option<Duration>>) -> Self {
        self.valid_for = time.into().map(millis);
        self
    }
}
