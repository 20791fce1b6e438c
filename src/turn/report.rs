//! What a response came to.

use std::collections::BTreeSet;
use std::fmt;

use super::snapshot::SuspendedTurn;
use crate::args::Args;
use crate::call::{Execution, Said, SharedError, ToolCall};
use crate::decision::Question;
use crate::deferred::{Answered, DeferredToolRequests};
use crate::error::ErrorKind;
use crate::outcome::Outcome;

/// What one response came to: a report per call, in model order, and what still waits.
#[derive(Debug, Clone, Default)]
pub struct TurnReport {
    calls: Vec<CallReport>,
    suspended: Option<SuspendedTurn>,
    closed_asks: BTreeSet<String>,
}

/// What one call came to.
#[derive(Debug, Clone)]
pub struct CallReport {
    pub(super) call: ToolCall,
    pub(super) args: Args,
    pub(super) outcome: Outcome,
    pub(super) asked: Vec<Question>,
    pub(super) said: Vec<Said>,
    pub(super) answered: Option<Answered>,
    pub(super) execution: Execution,
    pub(super) denied_by: Option<String>,
    pub(super) error: Option<BodyError>,
    pub(super) settled_before: bool,
    pub(super) skipped: bool,
    pub(super) turns: Vec<TurnReport>,
}

/// The error of a tool body. `Debug` does not show it, as it may quote arguments (rule S2).
#[derive(Clone)]
pub(super) struct BodyError(pub(super) SharedError);

impl fmt::Debug for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyError")
    }
}

impl TurnReport {
    pub(super) fn new(
        calls: Vec<CallReport>,
        suspended: Option<SuspendedTurn>,
        closed_asks: BTreeSet<String>,
    ) -> Self {
        Self { calls, suspended, closed_asks }
    }

    /// The asks of calls that have got their results, which are closed with the state that has these (rule L5).
    pub(crate) fn closed_asks(&self) -> impl Iterator<Item = &String> {
        self.closed_asks.iter()
    }

    /// The same asks, for one who closes them now.
    pub(super) fn take_closed_asks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.closed_asks).into_iter().collect()
    }

    /// What each call came to, in model order.
    #[must_use]
    pub fn calls(&self) -> &[CallReport] {
        &self.calls
    }

    /// Replaces the outcomes for which the function gives another one.
    pub(crate) fn replace_outcomes(&mut self, other: impl Fn(&CallReport) -> Option<Outcome>) {
        for call in &mut self.calls {
            if let Some(outcome) = other(call) {
                call.outcome = outcome;
            }
        }
    }

    /// The calls that wait, as the batch to answer; `None` when every call is settled.
    #[must_use]
    pub fn deferred(&self) -> Option<DeferredToolRequests> {
        self.suspended.as_ref().map(SuspendedTurn::requests)
    }

    /// What still waits, as a value to store and [resume](crate::Turn::resume); `None` when every call is settled.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedTurn> {
        self.suspended.as_ref()
    }

    /// The state of the turn with its pending calls, by value; `None` when every call is settled.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedTurn> {
        self.suspended
    }
}

impl CallReport {
    /// The call as the model made it.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The final arguments: what ran, or what would run.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// What the model is told, or that the call waits.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// What was asked about the call, by which layers and why.
    #[must_use]
    pub fn asked(&self) -> &[Question] {
        &self.asked
    }

    /// What every layer said, in order, when the turn was asked to [explain](crate::Turn::explain).
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// How it was answered, if it waited and was answered.
    #[must_use]
    pub fn answered(&self) -> Option<&Answered> {
        self.answered.as_ref()
    }

    /// What is known about its execution.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    /// The error with which the body of its tool failed, where the model was told of it (its `Display`) and the run went
    /// on. It is not part of what is stored.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| &**error.0.0 as _)
    }

    /// Whether it had its outcome already when the response was taken up again.
    #[must_use]
    pub fn settled_before(&self) -> bool {
        self.settled_before
    }

    /// Whether it would have waited for somebody, and was not executed because a final answer came beside it.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.skipped
    }

    /// What became of the calls of the agent behind its tool since the run was last taken up, response by response.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.turns
    }

    /// The layer that denied it, if one did; `None` when a person did.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        self.denied_by.as_deref()
    }
}

/// Why a response ended with an error, and everything that had happened by then.
pub struct TurnError(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    suspended: Option<SuspendedTurn>,
    report: TurnReport,
}

impl TurnError {
    /// Nothing had run.
    pub(super) fn before(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, suspended: None, report: TurnReport::default() }))
    }

    /// Nothing had changed.
    pub(super) fn with_state(kind: ErrorKind, suspended: SuspendedTurn) -> Self {
        Self(Box::new(Inner { kind, suspended: Some(suspended), report: TurnReport::default() }))
    }

    pub(super) fn after(kind: ErrorKind, suspended: SuspendedTurn, report: TurnReport) -> Self {
        Self(Box::new(Inner { kind, suspended: Some(suspended), report }))
    }

    /// The kind of the error, to match on.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The response as it stood, to resume from: what ran is settled and does not run again (rule T9). `None` when
    /// nothing had run.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedTurn> {
        self.0.suspended.as_ref()
    }

    /// The response as it stood.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedTurn> {
        self.0.suspended
    }

    /// What each call had come to.
    #[must_use]
    pub fn report(&self) -> &TurnReport {
        &self.0.report
    }

    pub(super) fn report_mut(&mut self) -> &mut TurnReport {
        &mut self.0.report
    }

    pub(crate) fn into_parts(self) -> (ErrorKind, Option<SuspendedTurn>, TurnReport) {
        (self.0.kind, self.0.suspended, self.0.report)
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)
    }
}

impl fmt::Debug for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnError")
            .field("kind", &self.0.kind)
            .field("report", &self.0.report)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for TurnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}
