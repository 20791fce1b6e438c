//! The operations on single asks: deciding, claiming and settling, closing, expiring, and waiting for a change.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;

use super::ask::Millis;
use super::change::Change;
use super::codec::{Writing, read, there};
use super::listing::RefusedRow;
use super::names::Names;
use super::record::Record;
use super::results::{Claimed, Decided, Renewed, Settled};
use super::rules::{self, Deciding};
use super::store::{Lookup, RowKind, Writes};
use super::{Ledger, LedgerError, millis};
use crate::deferred::Answer;

/// The limit of one read of due asks, apart from those that stay due.
const AT_ONCE: u32 = 256;

/// The result of [`Ledger::expire`].
#[derive(Debug, Default)]
#[must_use]
pub struct Expired {
    /// The ids of the asks that are expired or unknown now.
    pub changed: Vec<String>,
    /// The asks whose time is over, but whose rows are refused (rule L8). They are unchanged.
    pub refused: Vec<RefusedRow>,
}

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
        !names.is_blank(who) && !ask.quorum.refuses(ask.principal(), who, names)
    }

    /// Sets how long an approval is valid, from its oldest vote to the claim, for asks without an
    /// [`Ask::with_valid_for`](super::Ask::with_valid_for); 24 hours by default, and `None` means for ever. An older approval is
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

    /// Claims the execution of an approved ask for `worker`. The claim lasts as long as its lease, which can be
    /// [renewed](Self::renew).
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn claim(
        &self,
        id: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Claimed, LedgerError> {
        let lease = millis(lease);
        let event = |made: &Result<(Claimed, bool), Vec<String>>| match made {
            Ok((Claimed::Claimed { .. }, _)) => Some("claimed"),
            Ok((Claimed::Aged { .. }, true)) => Some("aged"),
            _ => None,
        };
        let claim = |record: &mut Record, now| match record.ask.repeats() {
            earlier if earlier.is_empty() => {
                let before = record.state;
                let claimed = rules::claim(record, worker, lease, now);
                Ok((claimed, record.state != before))
            }
            earlier => Err(earlier),
        };
        match self.change(id, Change::by(worker), claim, event).await? {
            None => Ok(Claimed::UnknownAsk),
            Some((Ok((claimed, _)), _)) => Ok(claimed),
            Some((Err(earlier), _)) => self.claim_again(id, earlier, worker, lease).await,
        }
    }

    /// Extends the lease of a claim, to this long from now.
    ///
    /// # Errors
    /// [`LedgerError`]; the lease ends when it did before.
    pub async fn renew(
        &self,
        id: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Renewed, LedgerError> {
        let lease = millis(lease);
        let renew = |record: &mut Record, now| rules::renew(record, token, lease, now);
        let event = |(_, lost): &(Renewed, bool)| lost.then_some("renewed");
        let made = self.change(id, Change::default(), renew, event).await?;
        Ok(made.map_or(Renewed::UnknownAsk, |((renewed, _), _)| renewed))
    }

    /// Records the outcome of an execution. Of several settlements of one claim the first counts. A worker whose claim
    /// was superseded by a later one cannot settle any more (rule L2).
    ///
    /// # Errors
    /// [`LedgerError`]; the outcome is not recorded.
    pub async fn settle(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
    ) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, outcome, false).await
    }

    /// Records that the tool body has deferred: it did not run to its end, and the call is asked about anew, as another
    /// ask.
    ///
    /// # Errors
    /// [`LedgerError`]; the claim is unchanged.
    pub async fn release(&self, id: &str, token: u64) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, Value::Null, true).await
    }

    async fn settle_as(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
        released: bool,
    ) -> Result<Settled, LedgerError> {
        let event = |result: &Settled| match result {
            Settled::Settled { again: false, .. } if released => Some("released"),
            Settled::Settled { again: false, .. } => Some("settled"),
            _ => None,
        };
        let settle =
            |record: &mut Record, now| rules::settle(record, token, &outcome, released, now);
        let made = self.change(id, Change::default(), settle, event).await?;
        Ok(made.map_or(Settled::UnknownAsk, |(settled, _)| settled))
    }

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
            let (made, writes) = match closed(&mut writing, rows, self.worker_name()) {
                Ok(()) => (Ok(()), writing.finish()),
                Err(error) => (Err(error), Writes::default()),
            };
            result = made;
            writes
        };
        self.store.transact(asks, &self.linker, &mut work).await?;
        result
    }

    /// Applies all deadlines and leases that are over: pending asks expire, and claimed asks become unknown. Deciding
    /// and claiming do this for their ask by themselves; a service calls this so that lists show it too. An ask that
    /// cannot be read does not keep others from expiring.
    ///
    /// # Errors
    /// [`LedgerError::Store`]; some asks may have changed before the error.
    pub async fn expire(&self) -> Result<Expired, LedgerError> {
        let mut expired = Expired::default();
        // Asks that stay due, as their rows are refused, come first in each read: the reads grow so that others follow
        // them.
        let mut stays = HashSet::new();
        loop {
            let more = u32::try_from(stays.len()).unwrap_or(u32::MAX).saturating_mul(2);
            let due = self.store.due(AT_ONCE.saturating_add(more)).await?;
            let due: Vec<_> = due.into_iter().filter(|id| !stays.contains(id)).collect();
            if due.is_empty() {
                return Ok(expired);
            }
            for id in due {
                match self.change(&id, Change::default(), |_, _| (), |()| None).await {
                    Ok(Some(((), true))) => expired.changed.push(id),
                    Ok(_) => _ = stays.insert(id),
                    Err(error @ (LedgerError::Unreadable { .. } | LedgerError::Changed { .. })) => {
                        stays.insert(id.clone());
                        expired.refused.push(RefusedRow { id, error });
                    }
                    Err(error) => return Err(error),
                }
            }
        }
    }

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
