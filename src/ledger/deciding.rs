//! Deciding asks: with a further check, by a policy, and which names count as one person.

use std::convert::Infallible;
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
    /// Decides an ask if `check` passes, which is called within the same transaction. `None` when there is no such ask.
    pub(crate) async fn decide_if<E: Send>(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
        check: impl Fn(&Record, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let (fingerprint, by) = (fingerprint.to_owned(), by.to_owned());
        let deciding = Deciding { fingerprint, by, answer, is_policy: false };
        self.decide_as(id, deciding, check).await
    }

    /// Decides for a policy of the library and not for a person. The name in `by` is the library's own, so the function
    /// of [`canonical_names`](Self::canonical_names), which is about people, cannot refuse it as blank.
    pub(crate) async fn decide_by_policy(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
    ) -> Result<Decided, LedgerError> {
        let (fingerprint, by) = (fingerprint.to_owned(), by.to_owned());
        let deciding = Deciding { fingerprint, by, answer, is_policy: true };
        let any = |_: &Record, _| Ok::<_, Infallible>(());
        Ok(match self.decide_as(id, deciding, any).await? {
            Some(Ok(decided)) => decided,
            None => Decided::UnknownAsk,
        })
    }

    async fn decide_as<E: Send>(
        &self,
        id: &str,
        deciding: Deciding,
        check: impl Fn(&Record, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let event = |result: &Result<Decided, E>| match result {
            Ok(Decided::Won { again: false }) => Some("decided"),
            Ok(Decided::Recorded { again: false, .. }) => Some("voted"),
            _ => None,
        };
        let decide = |record: &mut Record, now| {
            check(record, now).map(|()| rules::decide(record, &deciding, &self.names, now))
        };
        let made = self.change(id, Change::by(&deciding.by), decide, event).await?;
        Ok(made.map(|(decided, _)| decided))
    }
}

impl Ledger {
    /// Sets the function that gives the canonical form of a name. Two names with equal forms are of one person, for
    /// quorums and for [`Quorum::not_the_requester`](super::Quorum) (rule L1). A name with an empty form cannot decide.
    /// By default names are trimmed, and compared without differences of case or of Unicode composition.
    ///
    /// Names are recorded as they were given. All processes over one store need the same function. It is not called to
    /// accept or refuse the names under which the library itself decides (`policy`), but it is for `unnamed`, the name
    /// of an answer that does not say whose it is.
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

    /// The canonical form of a name: two names are of one person when their forms are equal
    /// ([`canonical_names`](Self::canonical_names), rule L1). A surface that shows who has voted, or counts by
    /// requester, has to compare these forms and not the names as they are written.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new());
    /// assert_eq!(ledger.canonical_name("ann"), ledger.canonical_name(" Ann "));
    /// assert_ne!(ledger.canonical_name("ann"), ledger.canonical_name("anna"));
    /// ```
    #[must_use]
    pub fn canonical_name(&self, name: &str) -> String {
        self.names.canonical(name)
    }

    /// Whether a person of this name may approve the ask. Where this is `false`, [`decide`](Self::decide) refuses their
    /// approval with [`Decided::NotAllowed`] or [`Decided::BlankName`] (rule L1).
    #[must_use]
    pub fn may_approve(&self, record: &Record, who: &str) -> bool {
        let (ask, names) = (&record.ask, &self.names);
        !names.is_blank(who) && !ask.quorum.refuses(ask.get_principal(), who, names)
    }

    /// Sets how long an approval is valid, from its oldest vote to the claim, for asks without an
    /// [`Ask::valid_for`](super::Ask::valid_for); 24 hours by default, and `None` means for ever. An older approval is
    /// not used, also not to run an idempotent tool again: the call is asked about anew, and the other calls of its
    /// response run (rule A8). The time is fixed when an ask is parked, and compared with the store's clock.
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
