//! The results of the ledger's operations: of a decision, a claim, a renewal, a settlement, and a cancellation.
//!
//! Each is an enum and not an error, as losing is an ordinary result that a surface has to show: who decided, what, and
//! when. They are serialised with a `result` tag, for APIs over a ledger.

use serde::Serialize;
use serde_json::Value;

use super::ask::Millis;
use super::record::{AskState, LedgerDecision};
use crate::deferred::{Answer, Unapprovable};

/// The decision that was recorded first, and that a later answer lost against.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let parked = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
/// let (id, shown) = (parked.ask.id(), &parked.fingerprint);
/// ledger.decide(id, shown, "ann", Answer::Deny { message: "keep it".into() }).await?;
/// let Decided::Lost(winner) = ledger.decide(id, shown, "bob", Answer::Approve { args: None }).await? else { panic!() };
/// assert_eq!(winner.by, ["ann"]);
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Winner {
    /// The people who decided: one, or several where the quorum needs several.
    pub by: Vec<String>,
    /// The answer that they gave.
    pub decision: Answer,
    /// The time when the decision was made, in milliseconds since 1970 by the store's clock.
    pub at: Millis,
}

impl Winner {
    pub(in crate::ledger) fn of(decision: &LedgerDecision) -> Self {
        Self { by: decision.by_lines(), decision: decision.answer.clone(), at: decision.at }
    }
}

/// The result of deciding an ask.
///
/// ```
/// use countersign::ledger::Decided;
/// use serde_json::json;
///
/// let recorded = Decided::Recorded { approvals: 1, needed: 2, again: false };
/// let stored = serde_json::to_value(&recorded).unwrap();
/// assert_eq!(stored, json!({"result": "recorded", "approvals": 1, "needed": 2, "again": false}));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decided {
    /// The answer is the decision on the ask.
    Won {
        /// `true` if the same person had given the same answer before.
        again: bool,
    },
    /// The approval is recorded as a vote; the quorum needs more of them.
    Recorded {
        /// The number of people who have approved the same arguments.
        approvals: u32,
        /// The number of people who must approve them.
        needed: u32,
        /// `true` if the same person had given the same answer before.
        again: bool,
    },
    /// Another decision was recorded first, and remains in force.
    Lost(Winner),
    /// The ask had expired before this answer came.
    Expired,
    /// The ask was cancelled, or was closed because its call has a result.
    Cancelled,
    /// The answer has another fingerprint than the ask: it was given for another call, other arguments or other
    /// questions.
    Mismatch {
        /// The fingerprint of the ask.
        fingerprint: String,
    },
    /// This person may not approve the call: it is for other [people](crate::decision::People), the name is not checked, or
    /// it is the requester ([`Quorum::not_the_requester`](crate::ledger::Quorum)). An ask without a
    /// requester's name can be approved by no one, as any approver might be the requester.
    NotAllowed,
    /// The decider is not named: the name is blank, or begins as the [line](LedgerDecision::by_line) about a grant. A
    /// decision is by a person who can be named.
    BlankName,
    /// This person may see the ask and not decide it ([`Approver::with_decides`](crate::ledger::Approver::with_decides)). Only a
    /// [`Surface`](crate::ledger::Surface) knows who may.
    OthersDecide,
    /// The approval does not count: the call is none that can be approved, or not all of it was shown, or the tool does not
    /// take the edited arguments. Nor does a result for a call that needs an approval. Only a [`Surface`](crate::ledger::Surface) checks this.
    Unapprovable(Unapprovable),
    /// There is no ask with this id, or none that this person may see.
    UnknownAsk,
}

/// The result of claiming the execution of an ask.
///
/// A worker does this with each:
///
/// | result | the worker |
/// |---|---|
/// | `Claimed` | executes, and settles with the token |
/// | `Settled` | takes the outcome for its own |
/// | `NotDecided` | waits |
/// | `Denied`, `Void`, `Aged`, `Outvoted` | tells the model; nothing runs |
/// | `Held` | waits, or leaves it to the other worker |
/// | `Unknown` | tells the model that it may have run |
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Claimed {
    /// The worker has the claim: it may execute the call, and settles it with this token.
    Claimed {
        /// The token of this claim, higher than those of all earlier claims of the ask.
        token: u64,
    },
    /// A worker has a claim on the ask whose lease is not over.
    Held {
        /// The name of that worker.
        by: String,
        /// The end of its lease unless it is renewed, in milliseconds since 1970 by the store's clock.
        until: Millis,
    },
    /// The call has been executed, or was answered with a result in place of an execution.
    Settled {
        /// The recorded outcome, or the result that was given as the answer.
        outcome: Value,
    },
    /// There is no decision on the ask yet.
    NotDecided,
    /// The call must not run.
    Denied {
        /// Why: denied by a person or a policy (`decided`), expired, cancelled, closed, or released, in which case
        /// another ask follows.
        state: AskState,
    },
    /// The approval was by a grant that was revoked or has expired since, or a file it is bound to has changed. The call
    /// is asked about anew.
    Void {
        /// The id of the grant.
        grant: String,
        /// `true` if an earlier execution of the call was started, so that it may have run.
        may_have_run: bool,
    },
    /// The approval is too old to execute the call now: the call has to be asked about again (rule A8).
    Aged {
        /// The time of the oldest vote for the approval, in milliseconds since 1970 by the store's clock.
        since: Millis,
        /// `true` if an earlier execution was started and its end is unknown.
        may_have_run: bool,
    },
    /// Those who approved the call may not approve it any more, or are too few: one has left a group. The call has to be
    /// asked about again (rule L1).
    Outvoted {
        /// `true` if an earlier execution was started and its end is unknown.
        may_have_run: bool,
    },
    /// An execution was started, its end is unknown, and the call may not be started again.
    #[serde(rename = "unknown_outcome")]
    Unknown,
    /// There is no ask with this id.
    UnknownAsk,
}

/// The result of renewing the lease of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Renewed {
    /// The lease has been extended.
    Renewed {
        /// The end of the lease from now on, in milliseconds since 1970 by the store's clock.
        until: Millis,
    },
    /// A later claim has superseded this one, or the ask is not being executed any more.
    StaleToken,
    /// There is no ask with this id.
    UnknownAsk,
}

/// The result of settling a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Settled {
    /// The outcome is recorded.
    Settled {
        /// The recorded outcome: the first one, where a claim is settled several times.
        outcome: Value,
        /// `true` if an outcome had been recorded before.
        again: bool,
    },
    /// A later claim has superseded this one.
    StaleToken,
    /// There is no ask with this id.
    UnknownAsk,
}

/// The result of cancelling an ask.
///
/// ```
/// use countersign::ledger::{Ask, Cancelled, Ledger, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let parked = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
/// assert_eq!(ledger.cancel(parked.ask.id(), "ann").await?, Cancelled::Cancelled { again: false });
/// assert_eq!(ledger.cancel(parked.ask.id(), "ann").await?, Cancelled::Cancelled { again: true });
/// assert_eq!(ledger.cancel("no-such-ask", "ann").await?, Cancelled::UnknownAsk);
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cancelled {
    /// The ask is cancelled, and its call will not run.
    Cancelled {
        /// `true` if the ask had been cancelled before.
        again: bool,
    },
    /// There is nothing to cancel: the call is in execution, has been executed, or will not run anyway.
    TooLate {
        /// The state that the ask is in.
        state: AskState,
    },
    /// There is no ask with this id.
    UnknownAsk,
}
