//! The ends of passes, for an audit.
//!
//! A middleware sees the calls that reach it, and after them the executions alone (rule D8). It does not see the end of
//! a call that a layer outside has denied, that has an unknown tool, or that is asked about. We see every end above the
//! stack, where the [call record](crate::call) and the result of the layers become one outcome.
//!
//! | a call … | ends its pass as |
//! |---|---|
//! | has no tool, or arguments that do not fit | `retry`, and never reached a layer |
//! | is denied by a layer, by the gate, or by a limit on questions (rules D7, D11) | `denied` |
//! | is asked about, or executed elsewhere | `deferred`; the pass after its approval is another one |
//! | ran | `returned`, `failed`, `retry` or `unknown` |
//! | was ended by an error of a layer | `failed`, with the [error](PassEnd::error) |
//!
//! A person's denial, and a result from elsewhere, are answers and make no pass: watchers are told of them
//! ([`RunEvent::DeferredToolResults`](crate::turn::RunEvent::DeferredToolResults)), and a ledger logs them.

use std::borrow::Cow;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::call_state::{CallState, INTERNAL_ERROR, State};
use crate::args::Args;
use crate::call::{Execution, RunContext, ToolCall};
use crate::decision::Question;
use crate::deferred::Answered;
use crate::outcome::{Deferral, Outcome};

/// The end of one pass of one call, as [`Turn::audit`](crate::Turn::audit) sees it: after every layer, and after the
/// limits on questions.
///
/// ```
/// use countersign::turn::PassEnd;
///
/// fn line(end: &PassEnd<'_>) -> String {
///     let by = end.denied_by().unwrap_or("no layer");
///     format!("{} {}: {}, denied by {by}", end.call().name(), end.args(), end.outcome().word())
/// }
/// # let _ = line;
/// ```
pub struct PassEnd<'a> {
    call: &'a CallState,
    outcome: Cow<'a, Outcome>,
}

impl<'a> PassEnd<'a> {
    fn new(call: &'a CallState) -> Self {
        let outcome = match &call.state {
            State::Settled(outcome) => Cow::Borrowed(outcome),
            State::Pending(pending) => Cow::Owned(Outcome::Deferred(pending.deferral())),
            State::Delegated(_) => Cow::Owned(Outcome::Deferred(Deferral::of_agent())),
            State::Planned(_) | State::Broken(_) => Cow::Owned(Outcome::failed(INTERNAL_ERROR)),
        };
        Self { call, outcome }
    }

    /// The call as the model made it.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call.call
    }

    /// The arguments as far as the pass got: those that ran, or that are shown.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.call.args
    }

    /// The outcome of the pass. That of a call whose agent is suspended is deferred, too.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Every question about the call so far, over all of its passes.
    #[must_use]
    pub fn asked(&self) -> &[Question] {
        &self.call.asked
    }

    /// Returns `true` if this is the pass after an approval, by a person, a policy or a grant.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        matches!(self.call.answered, Some(Answered::Approved { .. }))
    }

    /// The layer or the limit that denied the call, if one did.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        self.call.denied_by.as_deref()
    }

    /// Returns whether the tool was started, and how its execution ended.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.call.execution
    }

    /// The error that ended the pass and is not for the model. It ends the response, too (rule T8).
    #[must_use]
    pub fn error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match (&self.call.state, &self.call.failed) {
            (State::Broken(error), _) => Some(&**error),
            (_, Some(failed)) => Some(failed),
            _ => None,
        }
    }
}

impl fmt::Debug for PassEnd<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PassEnd")
            .field("call", &self.call.call)
            .field("outcome", &self.outcome.word())
            .field("denied_by", &self.denied_by())
            .finish_non_exhaustive()
    }
}

type Audit = dyn Fn(&RunContext, &PassEnd<'_>) + Send + Sync;

/// The functions that are called at the end of each pass.
#[derive(Clone, Default)]
pub(super) struct Auditors(Vec<Arc<Audit>>);

impl Auditors {
    pub(super) fn add(
        &mut self,
        audit: impl Fn(&RunContext, &PassEnd<'_>) + Send + Sync + 'static,
    ) {
        self.0.push(Arc::new(audit));
    }

    /// Adds those of a parent, as no agent is less watched than its parent.
    pub(super) fn extend(&mut self, parents: &Self) {
        self.0.extend(parents.0.iter().cloned());
    }

    /// Tells of the end of a pass. A panic is caught: it must not end a run whose tools have run.
    pub(super) fn tell(&self, cx: impl FnOnce() -> RunContext, call: &CallState) {
        if self.0.is_empty() {
            return;
        }
        let (cx, end) = (cx(), PassEnd::new(call));
        for audit in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| audit(&cx, &end))).is_err() {
                tracing::error!(tool = call.call.name(), "an audit of the end of a pass panicked");
            }
        }
    }
}
