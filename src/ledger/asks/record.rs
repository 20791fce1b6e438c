//! An ask in the ledger: its state, and the votes, decision and claim that led to it (rule L1).
//!
//! | state | the call | may still become |
//! |---|---|---|
//! | pending | waits | decided, expired, cancelled, closed |
//! | decided | may be claimed, or is denied | claimed, expired (too old), cancelled, closed |
//! | claimed | runs | executed, released, unknown |
//! | unknown | may have run | executed (settled late), claimed again (idempotent, or renewed) |
//! | executed, released, expired, cancelled, closed | is over | – |
//!
//! A closed ask whose call has run all the same, outside of the ledger, says so
//! ([`AskRecord::ran_unapproved`]).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::ask::{Ask, Millis, date_and_time};
use super::names::BY_GRANT;
use crate::args::Args;
use crate::deferred::Answer;
use crate::handler::is_policy;

/// The event in the log, and the field of the outcome, of a call that ran although no one had approved it.
pub(in crate::ledger) const RAN_UNAPPROVED: &str = "ran_unapproved";

/// The state of an ask, and the transitions between states.
///
/// ```text
///  pending ──► decided ──► claimed ──► executed
///     │  │        │  │        ├──────► unknown ──► claimed again, if the tool is idempotent
///     │  │        │  │        └──────► released     (the body has deferred: another ask follows)
///     │  └────────┴──┼─► cancelled, closed
///     └─► expired    └─► denied is a decision: nothing runs
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AskState {
    /// The ask has no decision yet.
    Pending,
    /// A decision is recorded. An approval can now be claimed.
    Decided,
    /// A worker has claimed the call and executes it.
    Claimed,
    /// The call has been executed, and its outcome is recorded.
    Executed,
    /// The call was started, and its end is unknown: the worker's lease ran out before it settled.
    Unknown,
    /// The tool body has deferred: it did not run to its end, and the call is asked about anew, as another ask.
    Released,
    /// No decision came in time, or the approval was too old when it was claimed. The call does not run.
    Expired,
    /// The ask was cancelled. The call does not run.
    Cancelled,
    /// The call got its result without running, or it ran [although no one had approved it](AskRecord::ran_unapproved).
    Closed,
}

impl AskState {
    /// The name of the state in rows, in the log and in JSON.
    ///
    /// ```
    /// use countersign::ledger::AskState;
    /// assert_eq!((AskState::Pending.as_str(), AskState::Executed.as_str()), ("pending", "executed"));
    /// ```
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Decided => "decided",
            Self::Claimed => "claimed",
            Self::Executed => "executed",
            Self::Unknown => "unknown",
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Closed => "closed",
        }
    }

    /// All states, in the order of their declaration.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Decided,
        Self::Claimed,
        Self::Executed,
        Self::Unknown,
        Self::Released,
        Self::Expired,
        Self::Cancelled,
        Self::Closed,
    ];
}

/// The decision on an ask: the answer, who gave it, and when.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, Ledger, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm")).await?;
/// ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
/// let decision = ledger.get(ask.ask.id()).await?.unwrap().decision.unwrap();
/// assert_eq!((decision.by_line().as_str(), decision.grant), ("ann", None));
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerDecision {
    /// The answer that is the decision.
    #[serde(rename = "verdict")]
    pub answer: Answer,
    /// The people who decided: several, where the quorum needs several.
    pub by: Vec<String>,
    /// The time when the decision was made, in milliseconds since 1970 by the store's clock.
    pub at: Millis,
    /// The grant that gave the answer in advance, if no person was asked; `by` are its makers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<GrantUse>,
}

impl LedgerDecision {
    /// The line that says who decided, as it is shown and logged: the names, or `by grant G of ann, 2026-11-20` for an answer
    /// in advance.
    ///
    /// A line that begins with `by grant ` is always about a grant, as no person can decide under a name that begins so
    /// ([`Decided::BlankName`](crate::ledger::Decided::BlankName), rule L1).
    #[must_use]
    pub fn by_line(&self) -> String {
        match &self.grant {
            None => self.by.join(", "),
            Some(grant) => {
                let made = date_and_time(grant.made_at);
                let made = made.map(|(date, _)| format!(", {date}")).unwrap_or_default();
                let makers = self.by.join(" and ");
                format!("{}{} of {makers}{made}", BY_GRANT, grant.id)
            }
        }
    }

    /// The lines that say who decided, for a list: each name, or the one [line](Self::by_line) of a grant.
    #[must_use]
    pub fn by_lines(&self) -> Vec<String> {
        match self.grant {
            None => self.by.clone(),
            Some(_) => vec![self.by_line()],
        }
    }
}

/// The grant that answered an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GrantUse {
    /// The id of the grant.
    pub id: String,
    /// The time when the grant was made, in milliseconds since 1970 by the store's clock.
    pub made_at: Millis,
}

/// One person's approval, or external result, which counts towards the quorum of an ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Vote {
    /// The name of the person, as it was given.
    pub by: String,
    /// The subject of the vote: the fingerprint of the call with the approved arguments, or a digest of the result. Only
    /// votes with equal fingerprints are counted together.
    pub fingerprint: String,
    /// The answer that this person gave.
    #[serde(rename = "verdict")]
    pub answer: Answer,
    /// The time when the vote was given, in milliseconds since 1970 by the store's clock.
    pub at: Millis,
}

/// The claim of one worker on an ask or a run, for as long as its lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClaimRecord {
    /// The name of the worker.
    pub worker: String,
    /// The time when the claim was made, by the store's clock; `None` in claims that earlier versions wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// The end of the lease unless it is renewed, in milliseconds since 1970 by the store's clock.
    pub until: Millis,
}

/// An ask as the ledger stores it: the parked call, its state, votes, decision, claim and outcome.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::Args;
/// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "pay").with_args(Args::new().with("euros", 500))).await?;
/// let edited = Answer::Approve { args: Some(Args::new().with("euros", 50)) };
/// ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", edited).await?;
///
/// let record = ledger.get(ask.ask.id()).await?.unwrap();
/// assert_eq!(record.state, AskState::Decided);
/// assert_eq!((&record.ask.args()["euros"], &record.args_to_run()["euros"]), (&500.into(), &50.into()));
/// assert_eq!(record.due_at(), None, "time alone changes nothing any more");
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AskRecord {
    /// The ask as it was parked.
    pub ask: Ask,
    /// The fingerprint of the ask: an answer with another one is refused (rule L0).
    pub fingerprint: String,
    /// The state of the ask.
    pub state: AskState,
    /// The time when the ask was parked, by the store's clock.
    pub parked_at: Millis,
    /// The time when a pending ask expires, by the store's clock; `None` means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
    /// The time for which an approval is valid, in milliseconds from its oldest vote to the claim (rule A8); `None`
    /// means for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<Millis>,
    /// The approvals and results so far, at most one for each person.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// The decision, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<LedgerDecision>,
    /// The person who cancelled the ask, if it was cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// The latest claim on the call; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim, 0 before the first. It is also raised when another ask of the same call is
    /// claimed, so that the latest claim of this one becomes stale.
    pub token: u64,
    /// The outcome of the execution, once it is settled; `Some(Value::Null)` is an outcome too. A closed ask has one only
    /// if its call [ran unapproved](Self::ran_unapproved).
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// The time when the record last changed, apart from renewed leases, by the store's clock. A record that time alone
    /// has changed ([`due_at`](Self::due_at)) is dated at that time.
    pub changed_at: Millis,
}

/// Reads a field that is present, so that `null` becomes `Some(Value::Null)` and only a missing field is `None`.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The largest distance between the clocks of processes that share a store, in milliseconds.
const MAX_SKEW: Millis = 60_000;

impl AskRecord {
    /// Returns `true` if the call was denied, by a person or a policy.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        let answer = self.decision.as_ref().map(|decision| &decision.answer);
        matches!(answer, Some(Answer::Deny { .. }))
    }

    /// The report of a call that ran although no one had approved it, as [`Ledger::ran_unapproved`] has recorded it;
    /// `None` for every other ask.
    ///
    /// Such an ask is [closed](AskState::Closed), and its outcome is the object `{"ran_unapproved": …}`.
    ///
    /// [`Ledger::ran_unapproved`]: crate::ledger::Ledger::ran_unapproved
    #[must_use]
    pub fn ran_unapproved(&self) -> Option<&Value> {
        match self.state {
            AskState::Closed => self.outcome.as_ref()?.get(RAN_UNAPPROVED),
            _ => None,
        }
    }

    /// Returns `true` if a person has denied the call, and not a policy that has decided by itself
    /// ([`is_policy`](crate::handler::is_policy)).
    pub(in crate::ledger) fn is_denied_by_person(&self) -> bool {
        let by = self.decision.iter().flat_map(|decision| &decision.by);
        self.is_denied() && by.into_iter().any(|by| !is_policy(by))
    }

    pub(in crate::ledger) fn new(ask: Ask, valid_for: Option<Millis>, now: Millis) -> Self {
        let expires_at = ask.expires_in.map(|time| now.saturating_add(time));
        Self {
            fingerprint: ask.fingerprint(),
            state: AskState::Pending,
            parked_at: now,
            expires_at,
            valid_for: ask.valid_for.or(valid_for).filter(|time| *time < Millis::MAX),
            votes: Vec::new(),
            decision: None,
            cancelled_by: None,
            claim: None,
            token: 0,
            outcome: None,
            changed_at: now,
            ask,
        }
    }

    /// The time of the next change that time alone makes, by the store's clock: a pending ask expires, or the lease of a
    /// claim ends. `None` when neither can happen.
    #[must_use]
    pub fn due_at(&self) -> Option<Millis> {
        match self.state {
            AskState::Pending => self.expires_at,
            AskState::Claimed => self.claim.as_ref().map(|claim| claim.until),
            _ => None,
        }
    }

    /// Returns `true` if the ask is pending, and its caller does not wait for the answer any more
    /// ([`with_waits_for`](Ask::with_waits_for)) at the time `now` of the store's clock: an approval is for the next equal
    /// call then.
    #[must_use]
    pub fn has_no_caller(&self, now: Millis) -> bool {
        let until = self.ask.waits_for.map(|time| self.parked_at.saturating_add(time));
        self.state == AskState::Pending && until.is_some_and(|until| until <= now)
    }

    /// The votes that count towards the quorum at the time `now` of the store's clock
    /// ([`Ledger::now`](crate::ledger::Ledger::now)): those that are not too old (rule A8). A surface that shows the progress
    /// of a quorum has to count these, as [`votes`](Self::votes) contains the others until the next person votes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore, Quorum};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new()).approvals_valid_for(Duration::from_secs(3600));
    /// let two = Quorum { approvals: 2, not_the_requester: false };
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "transfer").with_quorum(two)).await?;
    /// ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
    ///
    /// let ask = ledger.get(ask.ask.id()).await?.unwrap();
    /// let now = ledger.now().await?;
    /// assert_eq!(ask.counting_votes(now).count(), 1);
    /// assert_eq!(ask.counting_votes(now + 3_600_000).count(), 0, "bob's yes alone is not enough then");
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    pub fn counting_votes(&self, now: Millis) -> impl Iterator<Item = &Vote> {
        self.votes.iter().filter(move |vote| !self.is_over(vote.at, now))
    }

    /// Returns `true` if a vote that was given at `at` does not count at `now`: it is too old, or from the future, where a
    /// clock was set forward and an approval would never grow old (rule A8).
    pub(in crate::ledger) fn is_over(&self, at: Millis, now: Millis) -> bool {
        Self::is_of_future(at, now)
            || self.valid_for.is_some_and(|time| now >= at.saturating_add(time))
    }

    /// Returns `true` if something is dated later than the clocks of one store can be apart.
    pub(in crate::ledger) fn is_of_future(at: Millis, now: Millis) -> bool {
        at > now.saturating_add(MAX_SKEW)
    }

    /// The arguments that the call runs with: the edited ones of the approval, or else those that were parked.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    /// use countersign::Args;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = Ask::new("run-1", "root/c1", "delete_file").with_args(Args::new().with("path", "a.log"));
    /// let parked = ledger.park(ask).await?;
    /// let edited = Answer::Approve { args: Some(Args::new().with("path", "b.log")) };
    /// ledger.decide(parked.ask.id(), &parked.fingerprint, "ann", edited).await?;
    /// let record = ledger.get(parked.ask.id()).await?.unwrap();
    /// assert_eq!((record.args_to_run().str("path"), record.ask.args().str("path")), (Some("b.log"), Some("a.log")));
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn args_to_run(&self) -> &Args {
        match self.decision.as_ref().map(|decision| &decision.answer) {
            Some(Answer::Approve { args: Some(args) }) => args,
            _ => self.ask.args(),
        }
    }
}
