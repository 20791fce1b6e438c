//! An ask in the ledger: its state, and how it came to it (rule L1).

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::ask::{Ask, Millis};
use crate::args::Args;
use crate::deferred::Answer;

/// Where an ask stands.
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
    /// It waits for its decision.
    Pending,
    /// There is a decision about it.
    Decided,
    /// A worker executes it.
    Claimed,
    /// It was executed, and this is what came of it.
    Executed,
    /// It was started, and its end was not seen.
    Unknown,
    /// Its body has deferred: it did not run to its end, and is asked about anew.
    Released,
    /// No decision came in time, or its approval was too old when it was claimed. Nothing runs.
    Expired,
    /// It was withdrawn. Nothing runs.
    Cancelled,
    /// Its call got its result without running.
    Closed,
}

impl AskState {
    /// As it is written.
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

    /// All states of an ask.
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

/// What was decided, by whom, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerDecision {
    /// The answer that was decided.
    #[serde(rename = "verdict")]
    pub answer: Answer,
    /// Who; several, where several had to agree.
    pub by: Vec<String>,
    /// When, by the store's clock.
    pub at: Millis,
}

/// One approval of several that are needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Vote {
    /// Who.
    pub by: String,
    /// What would run: an edit is a proposal of its own.
    pub fingerprint: String,
    /// The answer that this person gave.
    #[serde(rename = "verdict")]
    pub answer: Answer,
    /// When.
    pub at: Millis,
}

/// Who executes an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimRecord {
    /// The worker.
    pub worker: String,
    /// Since when, by the store's clock; earlier versions did not write it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Millis>,
    /// Until when, unless it renews.
    pub until: Millis,
}

/// An ask, and what has become of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// The ask.
    pub ask: Ask,
    /// What answers are bound to.
    pub fingerprint: String,
    /// Where it stands.
    pub state: AskState,
    /// When it was parked.
    pub parked_at: Millis,
    /// When it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Millis>,
    /// How long an approval holds, from its oldest vote to the claim (rule A8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_for: Option<Millis>,
    /// The approvals so far, where several are needed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Vote>,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<LedgerDecision>,
    /// Who withdrew it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled_by: Option<String>,
    /// Who executes it, or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim; 0 when there was none.
    pub token: u64,
    /// What came of it; `null` is an outcome too.
    #[serde(default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Value>,
    /// When it came to where it stands.
    pub changed_at: Millis,
}

/// A value that is there, whatever it is.
fn there<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Record {
    pub(super) fn new(ask: Ask, valid_for: Option<Millis>, now: Millis) -> Self {
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

    /// The next time at which something becomes of it by itself.
    #[must_use]
    pub fn due_at(&self) -> Option<Millis> {
        match self.state {
            AskState::Pending => self.expires_at,
            AskState::Claimed => self.claim.as_ref().map(|claim| claim.until),
            _ => None,
        }
    }

    /// The votes that count towards a quorum at this time, by the store's clock ([`Ledger::now`](super::Ledger::now)):
    /// one that is too old does not (rule A8). What shows how far a quorum has come counts these, as
    /// [`votes`](Self::votes) keeps the others until the next person votes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore, Quorum, Answer};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new()).approvals_valid_for(Duration::from_secs(3600));
    /// let two = Quorum { approvals: 2, not_the_requester: false };
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "transfer").quorum(two)).await?;
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

    /// Whether what was said then has become too old (rule A8).
    pub(super) fn is_over(&self, at: Millis, now: Millis) -> bool {
        self.valid_for.is_some_and(|time| now >= at.saturating_add(time))
    }

    /// The arguments that run, as far as it is decided.
    #[must_use]
    pub fn args_to_run(&self) -> &Args {
        match self.decision.as_ref().map(|decision| &decision.answer) {
            Some(Answer::Approve { args: Some(args) }) => args,
            _ => self.ask.get_args(),
        }
    }
}
