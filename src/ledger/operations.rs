//! The operations of a ledger: on asks, on runs and chats, and on the logs as a whole.
//!
//! # Repeating an operation
//!
//! A response may get lost between the store and its caller, and the caller asks again. So you can repeat every
//! operation, and its result says that you did:
//!
//! | operation | a second time |
//! |---|---|
//! | [`park`](Ledger::park) | returns the ask as it is, whatever its state |
//! | [`decide`](Ledger::decide) by the same person, the same answer | `Won { again: true }` |
//! | [`decide`](Ledger::decide) by another person, or another answer | `Lost`, with the decision that counts |
//! | [`claim`](Ledger::claim) after the end | `Settled`, with the outcome |
//! | [`settle`](Ledger::settle) | `Settled { again: true }`, with the first outcome |
//! | [`cancel`](Ledger::cancel) | `Cancelled { again: true }` |
//! | [`close`](Ledger::close) | nothing |
//! | [`ran_unapproved`](Ledger::ran_unapproved) | `None`, as the ask says so already |

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::time::Duration;

use serde_json::Value;

use super::asks::ask::{Ask, Millis};
use super::asks::record::{AskRecord, AskState, RAN_UNAPPROVED};
use super::asks::results::{Cancelled, Claimed, Decided, Renewed, Settled};
use super::asks::transitions;
use super::asks::transitions::Deciding;
use super::error::LedgerError;
use super::grants::granting;
use super::handle::{Ledger, millis};
use super::logs::events;
use super::rerun::claim_again;
use super::rows::change::{Transition, change, closed, transact};
use super::rows::codec::{read, there};
use super::rows::listing::{Listed, RefusedRow};
use super::rows::predecessor::Predecessor;
use super::rows::run_record;
use super::rows::run_record::RunRecord;
use super::runs::acquisition;
use super::runs::lease::Acquired;
use super::runs::saving;
use super::runs::saving::{RunWrite, Saved};
use super::stores::linker::Linker;
use super::stores::store::{Entry, Filter, Found, RowKind};
use super::verifying::audit;
use super::verifying::audit::Verified;
use super::verifying::checkpoint;
use super::verifying::checkpoint::Checkpoint;
use super::verifying::retention;
use crate::deferred::Answer;
use crate::handler::POLICY;
use crate::telemetry;

/// The limit of one read of due asks, apart from those that stay due.
const AT_ONCE: u32 = 256;

/// The reason why the row with the id of an ask cannot be read as one.
const OF_A_RUN: &str = "the row with its id is the row of a run, not of an ask";

/// The result of [`Ledger::expire`].
#[derive(Debug, Default)]
#[must_use]
#[non_exhaustive]
pub struct Expired {
    /// The ids of the asks that are expired or unknown now.
    pub changed: Vec<String>,
    /// The asks whose time is over, but whose rows are refused (rule L8). They are unchanged.
    pub refused: Vec<RefusedRow>,
}

/// The rows that a claim reads besides the one of its ask, by why it reads them.
enum Elsewhere {
    /// The ask repeats these earlier ones.
    Repeats(Vec<String>),
    /// The ask was approved by this grant.
    Granted(String),
}

impl Ledger {
    /// Parks an ask: records it in the store, before any person is asked (rule L3). An ask that is parked already is
    /// returned as it is.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing has changed.
    ///
    /// ```
    /// use countersign::Args;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let first = ledger.park(Ask::new("run-1", "root/c1", "rm").with_args(Args::new().with("path", "a"))).await?;
    /// let again = ledger.park(Ask::new("run-1", "root/c1", "rm").with_args(Args::new().with("path", "b"))).await?;
    /// assert_eq!(again, first, "the ask that is there counts; compare the fingerprints to see that the call differs");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn park(&self, ask: Ask) -> Result<AskRecord, LedgerError> {
        self.park_behind(ask, None).await
    }

    /// Parks an ask, unless the one before it is open: that one is the result then.
    pub(super) async fn park_behind(
        &self,
        ask: Ask,
        behind: Option<Predecessor>,
    ) -> Result<AskRecord, LedgerError> {
        let id = ask.id().to_owned();
        events::refuse_name(ask.run(), &id)?;
        // Without a transaction, which would also read the row of the run: most asks that are parked again exist
        // already.
        if let Some(record) = self.load_current(&id).await? {
            return Ok(record);
        }
        let ask = ask.made_in(self.session.as_deref(), self.project.as_ref());
        let new = Transition { new: Some(ask), behind, ..Transition::default() };
        let parked = change(self, &id, new, |record, _| record.clone(), |_| None).await?;
        parked.map(|(record, _)| record).ok_or_else(|| LedgerError::unreadable(&id, OF_A_RUN))
    }

    /// Parks the ask of a call that the stack has allowed, and approves it in the name of the policy, in one
    /// transaction: no surface ever shows it as pending, so that no person decides about it. An ask that is parked
    /// already is approved if it is the same and has no decision.
    pub(crate) async fn park_allowed(&self, ask: Ask) -> Result<(AskRecord, Decided), LedgerError> {
        let id = ask.id().to_owned();
        events::refuse_name(ask.run(), &id)?;
        let deciding = Deciding {
            fingerprint: ask.fingerprint(),
            by: POLICY.to_owned(),
            answer: Answer::Approve { args: None },
            is_policy: true,
        };
        let ask = ask.made_in(self.session.as_deref(), self.project.as_ref());
        let new = Transition { new: Some(ask), ..Transition::by(POLICY) };
        let approve = |record: &mut AskRecord, now| {
            let decided = transitions::decide(record, &deciding, &self.names, now);
            (record.clone(), decided)
        };
        let event = |(_, decided): &(AskRecord, Decided)| {
            matches!(decided, Decided::Won { again: false }).then_some("decided")
        };
        let made = change(self, &id, new, approve, event).await?;
        made.map(|(made, _)| made).ok_or_else(|| LedgerError::unreadable(&id, OF_A_RUN))
    }

    /// Decides an ask. The fingerprint is the one of the ask that was shown to the person; an ask with another one is
    /// not decided. An edit is an approval with other arguments; a quorum has to agree on the same arguments.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    ///
    /// The caller vouches for the name: take it from a session or a certificate, never from what was posted.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// let no = || Answer::Deny { message: "keep it".into() };
    /// let stale = ledger.decide(ask.ask.id(), "what the page showed yesterday", "ann", no()).await?;
    /// assert!(matches!(stale, Decided::Mismatch { .. }));
    /// assert_eq!(ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", no()).await?, Decided::Won { again: false });
    /// assert_eq!(ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", no()).await?, Decided::Won { again: true });
    /// assert_eq!(ledger.decide("no such ask", &ask.fingerprint, "ann", no()).await?, Decided::UnknownAsk);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn decide(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
    ) -> Result<Decided, LedgerError> {
        let any = |_: &AskRecord, _| Ok::<_, Infallible>(());
        Ok(match self.decide_if(id, fingerprint, by, answer, any).await? {
            Some(Ok(decided)) => decided,
            None => Decided::UnknownAsk,
        })
    }

    /// Decides an ask, as [`decide`](Self::decide) does, if a check passes. The sync closure `(record, now)` sees the
    /// record and the store's time within the transaction that decides; its error leaves the ask unchanged. The store
    /// may call it several times. `None` when there is no such ask.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "deploy")).await?.ask;
    /// let (id, fingerprint, yes) = (ask.id(), ask.fingerprint(), Answer::Approve { args: None });
    ///
    /// let late = ledger.decide_if(id, &fingerprint, "ann", yes.clone(), |_, _| Err("too late")).await?;
    /// assert_eq!(late, Some(Err("too late")));
    /// let in_time = ledger.decide_if(id, &fingerprint, "ann", yes, |_, _| Ok::<_, String>(())).await?;
    /// assert_eq!(in_time, Some(Ok(Decided::Won { again: false })));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn decide_if<E: Send>(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
        check: impl Fn(&AskRecord, Millis) -> Result<(), E> + Send + Sync,
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
        let any = |_: &AskRecord, _| Ok::<_, Infallible>(());
        Ok(match self.decide_as(id, deciding, any).await? {
            Some(Ok(decided)) => decided,
            None => Decided::UnknownAsk,
        })
    }

    async fn decide_as<E: Send>(
        &self,
        id: &str,
        deciding: Deciding,
        check: impl Fn(&AskRecord, Millis) -> Result<(), E> + Send + Sync,
    ) -> Result<Option<Result<Decided, E>>, LedgerError> {
        let event = |result: &Result<Decided, E>| match result {
            Ok(Decided::Won { again: false }) => Some("decided"),
            Ok(Decided::Recorded { again: false, .. }) => Some("voted"),
            _ => None,
        };
        let decide = |record: &mut AskRecord, now| {
            check(record, now).map(|()| transitions::decide(record, &deciding, &self.names, now))
        };
        let made =
            change(self, id, Transition::by(&deciding.by).that_ages(), decide, event).await?;
        Ok(made.map(|(decided, _)| decided))
    }

    /// Cancels an ask that is pending, or approved and not claimed yet. Its call will not run.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Cancelled, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// assert_eq!(ledger.cancel(ask.ask.id(), "ann").await?, Cancelled::Cancelled { again: false });
    /// assert_eq!(ledger.cancel(ask.ask.id(), "bob").await?, Cancelled::Cancelled { again: true });
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn cancel(&self, id: &str, by: &str) -> Result<Cancelled, LedgerError> {
        let cancel = |record: &mut AskRecord, now| transitions::cancel(record, by, now);
        let event = |result: &Cancelled| {
            matches!(result, Cancelled::Cancelled { again: false }).then_some("cancelled")
        };
        let made = change(self, id, Transition::by(by), cancel, event).await?;
        Ok(made.map_or(Cancelled::UnknownAsk, |(cancelled, _)| cancelled))
    }

    /// The record of an ask as it is now; `None` when there is no ask with this id. A deadline or a lease that is over
    /// by the store's clock (rule L4) is applied to the returned record, as in every decision, and not written: the next
    /// operation that changes the ask records it, or [`expire`](Self::expire), after which lists show it, too.
    ///
    /// # Errors
    /// [`LedgerError`].
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = Ask::new("run-1", "root/c1", "delete_file");
    /// assert_eq!(ledger.get(ask.id()).await?, None);
    /// let parked = ledger.park(ask.clone()).await?;
    /// // The id follows from the run and the path, so a program can find an ask that it has parked before.
    /// assert_eq!(ledger.get(ask.id()).await?, Some(parked));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn get(&self, id: &str) -> Result<Option<AskRecord>, LedgerError> {
        match self.stored(id).await? {
            Some(record) if record.due_at().is_some() => {
                let ids = [id.to_owned()];
                transact(self, &ids, |writing, rows| {
                    let found = rows.into_iter().next().map_or(Ok(None), there)?;
                    let mut record = found.map(|found| read(&found, &self.linker)).transpose()?;
                    if let Some(record) = &mut record {
                        transitions::pass_time(record, writing.now);
                    }
                    Ok(record)
                })
                .await
            }
            found => Ok(found),
        }
    }

    /// The record of an ask as it is stored.
    async fn stored(&self, id: &str) -> Result<Option<AskRecord>, LedgerError> {
        let read = |found: &Found, by: &Linker| match RowKind::of_id(&found.row.id) {
            RowKind::Ask => read(found, by).map(Some),
            _ => Ok(None),
        };
        self.one(id, read).await
    }

    /// The stored record of an ask, after a deadline or lease that has passed was recorded.
    pub(crate) async fn load_current(&self, id: &str) -> Result<Option<AskRecord>, LedgerError> {
        match self.stored(id).await? {
            Some(record) if record.due_at().is_some() => {
                let look = |record: &mut AskRecord, _| record.clone();
                let looked = change(self, id, Transition::default(), look, |_| None).await?;
                Ok(looked.map(|(record, _)| record))
            }
            found => Ok(found),
        }
    }

    /// Claims the execution of an approved ask for `worker`. The claim lasts as long as its lease, which can be
    /// [renewed](Self::renew).
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Claimed, Ledger, MemoryStore, Settled};
    /// use serde_json::json;
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (ledger, lease) = (Ledger::new(MemoryStore::new()), Duration::from_secs(30));
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// let id = ask.ask.id();
    /// assert_eq!(ledger.claim(id, "worker-1", lease).await?, Claimed::NotDecided);
    ///
    /// ledger.decide(id, &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// let Claimed::Claimed { token } = ledger.claim(id, "worker-1", lease).await? else { panic!() };
    /// assert!(matches!(ledger.claim(id, "worker-2", lease).await?, Claimed::Held { by, .. } if by == "worker-1"));
    /// assert!(matches!(ledger.settle(id, token + 1, json!("?")).await?, Settled::StaleToken));
    /// assert!(matches!(ledger.settle(id, token, json!("deleted")).await?, Settled::Settled { again: false, .. }));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn claim(
        &self,
        id: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Claimed, LedgerError> {
        let lease = millis(lease);
        let event = |made: &Result<(Claimed, bool), Elsewhere>| match made {
            Ok((Claimed::Claimed { .. }, _)) => Some("claimed"),
            Ok((Claimed::Aged { .. }, true)) => Some("aged"),
            Ok((Claimed::Outvoted { .. }, true)) => Some("outvoted"),
            _ => None,
        };
        let claim = |record: &mut AskRecord, now| {
            let earlier = record.ask.repeats();
            if !earlier.is_empty() {
                return Err(Elsewhere::Repeats(earlier));
            }
            let grant = record.decision.as_ref().and_then(|decision| decision.grant.as_ref());
            if let Some(grant) = grant {
                return Err(Elsewhere::Granted(grant.id.clone()));
            }
            let before = record.state;
            let claimed = transitions::claim(record, (worker, lease), &self.names, now);
            Ok((claimed, record.state != before))
        };
        match change(self, id, Transition::by(worker).that_ages(), claim, event).await? {
            None => Ok(Claimed::UnknownAsk),
            Some((Ok((claimed, _)), _)) => Ok(claimed),
            Some((Err(Elsewhere::Repeats(earlier)), _)) => {
                claim_again(self, id, earlier, worker, lease).await
            }
            Some((Err(Elsewhere::Granted(grant)), _)) => {
                granting::claim(self, id, &grant, worker, lease).await
            }
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
        let renew = |record: &mut AskRecord, now| transitions::renew(record, token, lease, now);
        let event = |(_, lost): &(Renewed, bool)| lost.then_some("renewed");
        let made = change(self, id, Transition::default(), renew, event).await?;
        Ok(made.map_or(Renewed::UnknownAsk, |((renewed, _), _)| renewed))
    }

    /// Records the outcome of an execution. Of several settlements of one claim the first counts. A worker whose claim
    /// was superseded by a later one cannot settle any more (rule L2).
    ///
    /// # Errors
    /// [`LedgerError`]; the outcome is not recorded.
    ///
    /// A worker claims, executes, and settles. The token says which claim it is, so a worker that comes late cannot
    /// write over another one's outcome (rule L2).
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Claimed, Ledger, MemoryStore, Renewed, Settled};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let parked = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// let (id, lease) = (parked.ask.id(), Duration::from_secs(30));
    /// assert_eq!(ledger.claim(id, "w1", lease).await?, Claimed::NotDecided);
    /// ledger.decide(id, &parked.fingerprint, "ann", Answer::Approve { args: None }).await?;
    ///
    /// let Claimed::Claimed { token, .. } = ledger.claim(id, "w1", lease).await? else { panic!() };
    /// assert!(matches!(ledger.claim(id, "w2", lease).await?, Claimed::Held { by, .. } if by == "w1"));
    /// assert!(matches!(ledger.renew(id, token, lease).await?, Renewed::Renewed { .. }));
    /// assert_eq!(ledger.settle(id, token + 1, json!("no")).await?, Settled::StaleToken);
    /// let settled = ledger.settle(id, token, json!("gone")).await?;
    /// assert_eq!(settled, Settled::Settled { outcome: json!("gone"), again: false });
    /// // From now on every claim is told the outcome, and nothing runs again.
    /// assert_eq!(ledger.claim(id, "w2", lease).await?, Claimed::Settled { outcome: json!("gone") });
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
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
    ///
    /// Use it for a call that was claimed and deferred itself before it did anything. The call is asked about anew,
    /// and this ask is over.
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
        let settle = |record: &mut AskRecord, now| {
            transitions::settle(record, token, &outcome, released, now)
        };
        let made = change(self, id, Transition::default(), settle, event).await?;
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

    /// Records that a call ran although no one had approved it: its ask is closed, and its
    /// [outcome](AskRecord::ran_unapproved) says so. An ask that is not in the ledger yet is parked and closed in one
    /// transaction, so that no person is asked about it (rule L10). `by` is the program that has noticed it, for the log, and `about` what it knows.
    ///
    /// Only an ask that is pending, or decided and not claimed, is closed. `None` for one in any other state, which is
    /// left unchanged: a claimed call has run with its approval, and an ask that is over says how it ended.
    ///
    /// Such a report is no approval. A decision that comes later is refused, and an approval that was there and not
    /// claimed is never used.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, AskState, Decided, Ledger, MemoryStore};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    ///
    /// // The agent did not wait.
    /// let ran = ledger.ran_unapproved(ask.ask.clone(), "watcher", json!({"reported": true})).await?.unwrap();
    /// assert_eq!(ran.state, AskState::Closed);
    /// assert_eq!(ran.ran_unapproved(), Some(&json!({"reported": true})));
    ///
    /// let late = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// assert_eq!(late, Decided::Cancelled);
    /// assert_eq!(ledger.verify(&Default::default()).await?.ran_unapproved, 1);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; nothing is recorded.
    pub async fn ran_unapproved(
        &self,
        ask: Ask,
        by: &str,
        about: Value,
    ) -> Result<Option<AskRecord>, LedgerError> {
        let id = ask.id().to_owned();
        events::refuse_name(ask.run(), &id)?;
        let ask = ask.made_in(self.session.as_deref(), self.project.as_ref());
        let how = Transition { new: Some(ask), ..Transition::by(by) };
        let close = |record: &mut AskRecord, now| {
            transitions::ran_unapproved(record, &about, now).then(|| record.clone())
        };
        let event = |closed: &Option<AskRecord>| closed.as_ref().map(|_| RAN_UNAPPROVED);
        let made = change(self, &id, how, close, event).await?;
        Ok(made.and_then(|(record, _)| record))
    }

    /// Closes these asks in one transaction.
    pub(crate) async fn close_all(&self, asks: &[String]) -> Result<(), LedgerError> {
        transact(self, asks, |writing, rows| closed(writing, rows, self.worker_name())).await
    }

    /// Applies all deadlines and leases that are over: pending asks expire, and claimed asks become unknown. Deciding
    /// and claiming do this for their ask by themselves; a service calls this so that lists show it too. An ask that
    /// cannot be read does not keep others from expiring. With the feature `opentelemetry` it also reports how many asks
    /// are pending (`docs/telemetry.md`).
    ///
    /// # Errors
    /// [`LedgerError::Store`]; some asks may have changed before the error.
    ///
    /// The reads grow with the number of asks that stay due. A store lists the due asks in order of their deadline, and
    /// refused rows would otherwise fill every read: the asks behind them would never expire.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = Ask::new("run-1", "root/c1", "delete_file").with_expires_in(Duration::ZERO);
    /// let parked = ledger.park(ask).await?;
    /// assert_eq!(ledger.expire().await?.changed, [parked.ask.id()]);
    /// assert_eq!(ledger.get(parked.ask.id()).await?.map(|record| record.state), Some(AskState::Expired));
    /// assert!(ledger.expire().await?.changed.is_empty(), "each change is told once");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn expire(&self) -> Result<Expired, LedgerError> {
        let mut expired = Expired::default();
        // Asks that stay due, as their rows are refused, come first in each read: the reads grow so that others follow
        // them.
        let mut stays = HashSet::new();
        loop {
            let more = u32::try_from(stays.len()).unwrap_or(u32::MAX).saturating_mul(2);
            let due = self.opened().await?.due(AT_ONCE.saturating_add(more)).await?;
            let due: Vec<_> = due.into_iter().filter(|id| !stays.contains(id)).collect();
            if due.is_empty() {
                self.observe_pending().await;
                return Ok(expired);
            }
            for id in due {
                match change(self, &id, Transition::default(), |_, _| (), |()| None).await {
                    Ok(Some(((), true))) => expired.changed.push(id),
                    Ok(_) => _ = stays.insert(id),
                    Err(
                        error @ (LedgerError::Unreadable { .. }
                        | LedgerError::Changed { .. }
                        | LedgerError::Broken(_)),
                    ) => {
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
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// # let ledger = Ledger::new(MemoryStore::new());
    /// # let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// # ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    /// let mut place = ledger.wait_for_change("run-1", -1).await?; // from the beginning
    /// while ledger.get(ask.ask.id()).await?.is_some_and(|record| record.state == AskState::Pending) {
    ///     place = ledger.wait_for_change("run-1", place).await?;
    /// }
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read.
    pub async fn wait_for_change(&self, run: &str, after: i64) -> Result<i64, LedgerError> {
        Ok(self.opened().await?.wait_for_change(run, after).await?)
    }

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
    ) -> Result<Listed<AskRecord>, LedgerError> {
        let states = state.map(|state| state.as_str().to_owned()).into_iter().collect();
        let filter = Filter { kind: Some(RowKind::Ask), states, run: None, limit: Some(limit) };
        let mut listed = self.listed(&filter, read).await?;
        if state.is_none() {
            let hidden = self.opened().await?.hidden_asks(limit).await?;
            listed.refused.extend(hidden.into_iter().map(RefusedRow::of_another_kind));
        }
        Ok(listed)
    }

    /// Lists the asks of a run, newest first.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// ledger.park(Ask::new("run-2", "root/c1", "rm")).await?;
    /// assert_eq!(ledger.list_run("run-1", 50).await?.records.len(), 1);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn list_run(&self, run: &str, limit: u32) -> Result<Listed<AskRecord>, LedgerError> {
        // Of all kinds, so that an ask whose column says another kind is among them. One row is that of the run.
        let (run, most) = (Some(run.to_owned()), Some(limit.saturating_add(1)));
        let filter = Filter { run, limit: most, ..Filter::default() };
        let read = |found: &Found, by: &Linker| match RowKind::of_id(&found.row.id) {
            RowKind::Ask => read(found, by).map(Some),
            _ => Ok(None),
        };
        let Listed { records, refused } = self.listed(&filter, read).await?;
        Ok(Listed {
            records: records.into_iter().flatten().take(limit as usize).collect(),
            refused,
        })
    }

    /// Lists the runs that are not over, newest first, without chats.
    ///
    /// # Errors
    /// As [`list`](Self::list).
    pub async fn waiting_runs(&self, limit: u32) -> Result<Listed<RunRecord>, LedgerError> {
        let states = vec!["waiting".to_owned()];
        let filter = Filter { kind: Some(RowKind::Run), states, run: None, limit: Some(limit) };
        self.listed(&filter, run_record::read).await
    }

    /// Reports to the metrics how many asks are pending. What cannot be measured fails nothing.
    async fn observe_pending(&self) {
        if !telemetry::EXPORTS {
            return;
        }
        match self.unopened.requesters().await {
            Ok(counts) => {
                telemetry::observe_pending(counts.iter().map(|(_, count)| count).sum());
            }
            Err(error) => {
                tracing::warn!(target: "countersign::ledger", %error, "the pending asks could not be counted for the metrics");
            }
        }
    }

    /// Saves the snapshot of a suspended run, for the worker that resumes it. With the token of a claim the claim is
    /// given up as well. Without a token the run is only created: one that is in the ledger already is left unchanged.
    ///
    /// # Errors
    /// [`LedgerError`]; the run is unchanged.
    ///
    /// ```
    /// use countersign::ledger::{Acquired, Ledger, MemoryStore, Saved};
    /// use serde_json::json;
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.save_run("run-1", json!({"step": 1}), None).await?;
    /// ledger.save_run("run-1", json!({"step": 9}), None).await?; // created once: this changes nothing
    ///
    /// let lease = Duration::from_secs(30);
    /// let Acquired::Lease(run) = ledger.acquire_run_as("run-1", "worker-1", lease).await? else { panic!() };
    /// let token = run.keeper().token();
    /// assert_eq!(run.state()["step"], 1);
    /// assert_eq!(ledger.save_run("run-1", json!({"step": 2}), Some(token)).await?, Saved::Saved);
    /// assert_eq!(ledger.save_run("run-1", json!({"step": 3}), Some(token + 1)).await?, Saved::StaleToken);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn save_run(
        &self,
        run: &str,
        state: Value,
        token: Option<u64>,
    ) -> Result<Saved, LedgerError> {
        saving::write(self, run, RunWrite { state, token, over: false, closes: &[] }).await
    }

    /// Records the result of a run, which is over with it.
    ///
    /// # Errors
    /// [`LedgerError`]; the run is unchanged.
    pub async fn end_run(
        &self,
        run: &str,
        token: u64,
        result: Value,
    ) -> Result<Saved, LedgerError> {
        let state = result;
        saving::write(self, run, RunWrite { state, token: Some(token), over: true, closes: &[] })
            .await
    }

    /// Acquires the lease on a run for a worker of this name, to resume it. Of any number of workers one gets the lease;
    /// the others get [`Acquired::Held`] until the lease is over or the run is saved.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Acquired, Ledger, MemoryStore, Saved};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (ledger, lease) = (Ledger::new(MemoryStore::new()), Duration::from_secs(30));
    /// assert!(matches!(ledger.acquire_run_as("run-1", "w1", lease).await?, Acquired::UnknownRun));
    /// ledger.save_run("run-1", json!({"step": 1}), None).await?;
    ///
    /// let Acquired::Lease(run) = ledger.acquire_run_as("run-1", "w1", lease).await? else { panic!() };
    /// assert_eq!(run.state(), &json!({"step": 1}));
    /// let token = run.keeper().token();
    /// assert!(matches!(ledger.acquire_run_as("run-1", "w2", lease).await?, Acquired::Held { .. }));
    /// assert_eq!(ledger.renew_run("run-1", token, lease).await?, Saved::Saved);
    /// assert_eq!(ledger.end_run("run-1", token, json!("done")).await?, Saved::Saved);
    /// assert!(matches!(ledger.acquire_run_as("run-1", "w2", lease).await?, Acquired::Over { .. }));
    /// assert!(ledger.load_run("run-1").await?.is_some_and(|run| run.over));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; the lease is not acquired.
    pub async fn acquire_run_as(
        &self,
        run: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Acquired, LedgerError> {
        acquisition::acquire_run(self, run, worker, lease).await
    }

    /// Extends the lease on a run, to this long from now.
    ///
    /// # Errors
    /// [`LedgerError`]; the lease ends when it did before.
    pub async fn renew_run(
        &self,
        run: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Saved, LedgerError> {
        saving::renew(self, run, token, lease).await
    }

    /// The stored record of a run; `None` when there is no run with this id.
    ///
    /// # Errors
    /// [`LedgerError`], also when the row was changed outside of the ledger (rule L8).
    pub async fn load_run(&self, run: &str) -> Result<Option<RunRecord>, LedgerError> {
        saving::get(self, run).await
    }

    /// Acquires the lease on a run, to resume it: [`acquire_run_as`](Self::acquire_run_as) with this
    /// ledger's [worker](Self::worker) and [lease](Self::lease).
    ///
    /// # Errors
    /// [`LedgerError`]; the lease is not acquired.
    ///
    /// ```
    /// use countersign::ledger::{Acquired, Ledger, MemoryStore, Saved};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.save_run("run-1", json!({"step": 1}), None).await?;
    /// let Acquired::Lease(lease) = ledger.acquire_run("run-1").await? else { panic!() };
    /// assert_eq!(lease.state(), &json!({"step": 1}));
    /// assert!(!lease.keeper().is_lost());
    /// // The lease is renewed while this future runs.
    /// let next = lease.keeper().keep(async { json!({"step": 2}) }).await;
    /// assert_eq!(lease.save_and_release(next, &[]).await?, Saved::Saved);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn acquire_run(&self, run: &str) -> Result<Acquired, LedgerError> {
        acquisition::acquire_run(self, run, self.worker_name(), self.lease).await
    }

    /// Acquires the lease on a chat: a conversation that is stored as a whole, has no end, and is not among the
    /// [waiting runs](Self::waiting_runs). A chat that does not exist is created with the state `null`.
    ///
    /// ```
    /// use countersign::ledger::{Acquired, Ledger, MemoryStore};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let Acquired::Lease(lease) = ledger.acquire_chat("chat-1").await? else { panic!() };
    /// lease.save_and_release(json!(["Hello"]), &[]).await?;
    /// assert_eq!(ledger.load_chat("chat-1").await?, Some(json!(["Hello"])));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; the lease is not acquired.
    pub async fn acquire_chat(&self, chat: &str) -> Result<Acquired, LedgerError> {
        acquisition::acquire_chat(self, &saving::chat_key(chat)).await
    }

    /// The stored state of a chat; `None` when there is no chat with this id.
    ///
    /// # Errors
    /// [`LedgerError`], also when the row was changed outside of the ledger (rule L8).
    ///
    /// Chats and runs are kept apart: a chat's id is chosen by its client, and must not name a run.
    pub async fn load_chat(&self, chat: &str) -> Result<Option<Value>, LedgerError> {
        Ok(saving::get(self, &saving::chat_key(chat)).await?.map(|record| record.state))
    }

    /// Creates a run with its snapshot if the ledger does not have it, and closes asks in the same transaction.
    pub(crate) async fn create_run(
        &self,
        run: &str,
        state: Value,
        closes: &[String],
    ) -> Result<Saved, LedgerError> {
        saving::write(self, run, RunWrite { state, token: None, over: false, closes }).await
    }

    /// Drops the asks and the logs of runs that are over and whose last log entry is at least this old, and returns the
    /// number of these runs. The ledger drops nothing by itself; a service calls this from time to time, such as once a
    /// day.
    ///
    /// A run is over when it has ended ([`end_run`](Self::end_run), an agent's `take_up`). A run without a row, as of a
    /// turn that is used without an agent, is over when all of its asks are final. A run with an ask that is pending,
    /// approved and not claimed yet, or claimed is left out as a whole; so are chats.
    ///
    /// Two things stay of each run: its row with the result, and one log entry. So a call of the run that is parked
    /// again, from a snapshot kept elsewhere, is refused, and nothing runs twice. The log continues from that entry:
    /// [`verify`](Self::verify) and [`checkpoint`](Self::checkpoint) work as before, except that you cannot compare
    /// earlier heads any more. To keep the history, [`export`](Self::export) it first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// assert_eq!(ledger.prune(Duration::ZERO).await?, 0, "it is pending");
    /// ledger.cancel(ask.ask.id(), "ann").await?;
    /// assert_eq!(ledger.prune(Duration::ZERO).await?, 1);
    /// assert_eq!(ledger.get(ask.ask.id()).await?, None);
    /// ledger.verify(&Default::default()).await?;
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; runs that were dropped before the error stay dropped. A run with a row that cannot be read, or
    /// was changed outside of the ledger, is left out.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, LedgerError> {
        retention::prune(self, older_than).await
    }

    /// The time of the store's clock, in milliseconds since 1970. Deadlines, leases and the age of approvals are
    /// compared with this clock (rule L4), and a surface shows the time that is left by it, not by its own.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be reached.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// assert!(ledger.now().await? > 1_700_000_000_000, "milliseconds since 1970");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn now(&self) -> Result<Millis, LedgerError> {
        transact(self, &[], |writing, _| Ok(writing.now)).await
    }

    /// Notes the end of each run's log, in a log of its own that is chained and keyed like the others. From then on
    /// [`verify`](Self::verify) detects when one of these logs was cut, rewritten, or removed with all rows of its run.
    /// A program that can write to the store can remove the checkpoints as well, or rewrite them where the log has no
    /// key: keep [`Checkpoint::head`] outside of the store.
    ///
    /// A checkpoint blocks no other operation: it only reads, and appends to its own log. It reads the earlier
    /// checkpoints and the end of every log, and notes the end of each log with new entries since the previous
    /// checkpoint, up to 512 logs in one entry.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// let made = ledger.checkpoint().await?;
    /// assert_eq!((made.entries, made.changed), (1, 1));
    /// assert_eq!(ledger.verify(&made.to_heads()).await?.entries, 2);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; entries that were written before the error stay. [`LedgerError::Broken`] says what is wrong with
    /// the log of the checkpoints, for example that it was written with another key; nothing was written then.
    pub async fn checkpoint(&self) -> Result<Checkpoint, LedgerError> {
        checkpoint::checkpoint(self).await?.map_err(LedgerError::Broken)
    }

    /// Replays all logs, and compares them with the asks, the runs and their leases, with the
    /// [checkpoints](Self::checkpoint), and with `earlier`, the [heads](Verified::heads) of an earlier verification.
    ///
    /// Changes that leave a consistent store pass: a store that was restored as a whole from an earlier copy, a run
    /// that was removed together with the checkpoints that note it, an emptied store ([`Verified::is_empty`]). Only
    /// values kept outside of the store show these: the heads of an earlier verification, or a
    /// [`Checkpoint`](super::Checkpoint). A service that wants to notice them copies a checkpoint to another machine
    /// from time to time, and verifies with it.
    ///
    /// Without an [audit key](Self::audit_key), any program that can write to the store can also write a log that
    /// verifies. Such a program can, for example, replace the entries of a run by one that says that the run was
    /// dropped ([`prune`](Self::prune)). Of the noted heads of this run, one directly before that entry is then still
    /// compared; those further back are of entries that are gone, and are skipped. With a key, only its holder can make
    /// such an entry.
    ///
    /// # Errors
    /// [`LedgerError::Broken`] with the first log or row that is wrong; the others when the store cannot be read.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// assert!(ledger.verify(&Default::default()).await?.is_empty());
    /// ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// let first = ledger.verify(&Default::default()).await?;
    /// assert_eq!(first.entries, 1);
    /// // Later, the log has to go through the ends of before: one that was cut off and written anew does not.
    /// ledger.park(Ask::new("run-1", "root/c2", "delete_file")).await?;
    /// assert_eq!(ledger.verify(&first.heads).await?.entries, 2);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn verify(
        &self,
        earlier: &BTreeMap<String, (i64, String)>,
    ) -> Result<Verified, LedgerError> {
        audit::verify(self, earlier).await?.map_err(LedgerError::Broken)
    }

    /// Calls `entry` with each log entry, run by run and in order, and returns the number of entries. Entries contain
    /// digests of arguments, not their values.
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be read; `entry` may have been called with some of the entries before.
    ///
    /// ```
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
    /// ledger.cancel(ask.ask.id(), "ann").await?;
    /// let mut lines = Vec::new();
    /// let count = ledger.export(|entry| lines.push(serde_json::to_string(&entry).unwrap())).await?;
    /// assert_eq!((count, lines.len()), (2, 2));
    /// assert!(lines[1].contains("cancelled"));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub async fn export(&self, entry: impl FnMut(Entry) + Send) -> Result<u64, LedgerError> {
        audit::export(self, entry).await
    }
}
