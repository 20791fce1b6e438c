//! What a ledger answers.

use serde::Serialize;
use serde_json::Value;

use super::ask::Millis;
use super::record::{AskState, LedgerDecision};
use crate::deferred::Answer;

/// Whoever decided first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Winner {
    /// Who.
    pub by: Vec<String>,
    /// What.
    pub decision: Answer,
    /// When, by the store's clock.
    pub at: Millis,
}

impl Winner {
    pub(super) fn of(decision: &LedgerDecision) -> Self {
        let LedgerDecision { answer, by, at } = decision.clone();
        Self { by, decision: answer, at }
    }
}

/// What became of a decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Decided {
    /// It counts.
    Won {
        /// The same person had said the same before.
        again: bool,
    },
    /// It counts, and others have to agree.
    Recorded {
        /// How many have approved the same.
        approvals: u32,
        /// How many have to.
        needed: u32,
        /// The same person had said the same before.
        again: bool,
    },
    /// Somebody else was first.
    Lost(Winner),
    /// It came too late.
    Expired,
    /// The ask was withdrawn, or its call got its result otherwise.
    Cancelled,
    /// It was made for something else than what waits.
    Mismatch {
        /// What waits.
        fingerprint: String,
    },
    /// Whoever wants the call may not approve it; where nobody knows who that is, nobody may.
    NotAllowed,
    /// The name of the decider is blank: a decision is by a person who can be named.
    BlankName,
    /// There is no such ask.
    UnknownAsk,
}

/// What became of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Claimed {
    /// The worker may execute it, and settles it with this token.
    Claimed {
        /// Each claim of an ask has a higher one.
        token: u64,
    },
    /// Another worker executes it.
    Held {
        /// Which.
        by: String,
        /// Until when, unless it renews.
        until: Millis,
    },
    /// It was executed, and this came of it.
    Settled {
        /// The recorded outcome.
        outcome: Value,
    },
    /// Nobody has decided yet.
    NotDecided,
    /// It does not run.
    Denied {
        /// Denied by somebody (`decided`), expired, cancelled, closed, or released: another ask follows.
        state: AskState,
    },
    /// Its approval was given too long ago to run it now: it has to be asked about again (rule A8).
    Aged {
        /// Since when the oldest vote that counted was there.
        since: Millis,
        /// Whether it was started before, and its end was not seen.
        may_have_run: bool,
    },
    /// It was started, its end was not seen, and it may not be started again.
    #[serde(rename = "unknown_outcome")]
    Unknown,
    /// There is no such ask.
    UnknownAsk,
}

/// What became of a renewal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Renewed {
    /// The worker has it for longer.
    Renewed {
        /// Until when.
        until: Millis,
    },
    /// Another claim came after this one, or it is settled.
    StaleToken,
    /// There is no such ask.
    UnknownAsk,
}

/// What became of a settlement.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Settled {
    /// The outcome is recorded.
    Settled {
        /// The recorded one: the first, where several came.
        outcome: Value,
        /// It was recorded before.
        again: bool,
    },
    /// Another claim came after this one.
    StaleToken,
    /// There is no such ask.
    UnknownAsk,
}

/// What became of a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cancelled {
    /// Nothing will run.
    Cancelled {
        /// It was withdrawn before.
        again: bool,
    },
    /// It is executed, or was, or will not run anyway.
    TooLate {
        /// Where it stands.
        state: AskState,
    },
    /// There is no such ask.
    UnknownAsk,
}
