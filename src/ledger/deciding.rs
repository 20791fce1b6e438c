//! Deciding about an ask, where more than its fingerprint has to fit.

use std::convert::Infallible;
use std::time::Duration;

use super::ask::Millis;
use super::change::Change;
use super::names::Names;
use super::record::{Record, Verdict};
use super::results::Decided;
use super::rules::{self, Deciding};
use super::{Ledger, LedgerError, millis};

impl Ledger {
    /// Decides about an ask that passes a check within the same transaction. `None` where there is no such ask.
    pub(crate) async fn decide_if<E: Send>(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        verdict: Verdict,
        check: impl Fn(&Record, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let (fingerprint, by) = (fingerprint.to_owned(), by.to_owned());
        let deciding = Deciding { fingerprint, by, verdict, is_policy: false };
        self.decide_as(id, deciding, check).await
    }

    /// Decides as a rule does, and no person: its name is the library's own, so that
    /// [`canonical_names`](Self::canonical_names) has no say about it.
    pub(crate) async fn decide_by_policy(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        verdict: Verdict,
    ) -> Result<Decided, LedgerError> {
        let (fingerprint, by) = (fingerprint.to_owned(), by.to_owned());
        let deciding = Deciding { fingerprint, by, verdict, is_policy: true };
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
    /// When two names are of one person, for quorums and for "not the requester" (rule L1): when this gives the same text
    /// for both. A name for which it gives an empty text cannot decide. Without this, names are compared without the
    /// space around them, and without differences of case or of Unicode composition.
    ///
    /// What is recorded is the name as it was said. All processes over one store need the same function. It is asked about
    /// people: not about the names under which the library decides by itself (`policy`), but about `unnamed`, where an
    /// answer does not say whose it is.
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

    /// The form of a name in which this ledger compares people: two names are of one person when their forms are equal
    /// ([`canonical_names`](Self::canonical_names), rule L1). What shows who has voted, or counts by requester, compares
    /// this, and not names as they are written.
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

    /// Whether this person may approve an ask: [`decide`](Self::decide) refuses an approval of anybody else with
    /// [`Decided::NotAllowed`], or [`Decided::BlankName`] (rule L1).
    #[must_use]
    pub fn may_approve(&self, record: &Record, who: &str) -> bool {
        let (ask, names) = (&record.ask, &self.names);
        !names.is_blank(who) && !ask.quorum.refuses(ask.get_principal(), who, names)
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
