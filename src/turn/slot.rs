//! One call of the response that a turn works on.

use serde::{Deserialize, Serialize};

use crate::args::Args;
use crate::call::{Approval, Execution, Said, SharedError, ToolCall, is_about_repeating};
use crate::decision::Question;
use crate::deferred::PendingCall;
use crate::error::{BoxError, ErrorKind};
use crate::gate::MAY_HAVE_RUN;
use crate::message::RequestPart;
use crate::outcome::Outcome;

use super::child::Child;
use super::event::{RunEvent, Watchers};
use super::report::Answered;

/// What the model is told of a call that an error which is not for it has ended.
pub(super) const INTERNAL_ERROR: &str = "The tool failed with an internal error.";

/// What the model is told of a call whose tool returned before an error ended the response.
pub(super) const RESULT_WITHHELD: &str =
    "The tool ran. Its result is withheld: an error ended the response.";

/// One call, where it stands, and what is known about it for the report.
pub(super) struct Slot {
    /// The call as the model made it.
    pub(super) call: ToolCall,
    pub(super) state: State,
    /// The final arguments, as far as they are known.
    pub(super) args: Args,
    /// Every question that was asked about it, over all passes.
    pub(super) asked: Vec<Question>,
    pub(super) said: Vec<Said>,
    pub(super) answered: Option<Answered>,
    pub(super) execution: Execution,
    /// The layer that denied it, if one did.
    pub(super) denied_by: Option<String>,
    /// The error of its body, where the model was told of it.
    pub(super) error: Option<SharedError>,
    /// It had its outcome when the response was taken up again.
    pub(super) settled_before: bool,
    /// It would have waited, beside a final answer.
    pub(super) skipped: bool,
    /// The agent behind its tool, once it has begun.
    pub(super) child: Child,
    /// Its ask in the ledger, once it has waited.
    pub(super) ask: Option<String>,
    /// It has just come to wait: nobody was asked yet.
    pub(super) newly_pending: bool,
    /// Asks of it that another one has followed.
    pub(super) followed: Vec<String>,
    /// Why the agent behind its tool cannot go on.
    pub(super) failed: Option<ErrorKind>,
}

pub(super) enum State {
    /// It is about to walk through the stack.
    Planned(Plan),
    Settled(Outcome),
    Pending(PendingCall),
    /// The agent behind its tool is at work, and waits or has stopped. The plan is the walk that leads to it.
    Delegated(Plan),
    /// It failed with an error that is not for the model.
    Broken(BoxError),
}

/// A walk that is to be made: from where, and with which approval.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) origin: Args,
    pub(super) approval: Option<Approval>,
    /// How often the call was deferred before.
    pub(super) deferrals: u32,
}

impl Slot {
    pub(super) fn new(call: ToolCall, state: State) -> Self {
        let args = call.args().clone();
        Self {
            call,
            state,
            args,
            asked: Vec::new(),
            said: Vec::new(),
            answered: None,
            execution: Execution::NotStarted,
            denied_by: None,
            error: None,
            settled_before: false,
            skipped: false,
            child: Child::default(),
            ask: None,
            newly_pending: false,
            followed: Vec::new(),
            failed: None,
        }
    }

    /// A call that is about to walk, as the model made it; or one whose outcome is known, and that needs no walk.
    pub(super) fn of(call: ToolCall, outcome: Option<Outcome>) -> Self {
        let plan = || Plan { origin: call.args().clone(), approval: None, deferrals: 0 };
        let state = outcome.map_or_else(|| State::Planned(plan()), State::Settled);
        Self::new(call, state)
    }

    /// For a call that is about to walk: whether nobody has decided about it yet.
    pub(super) fn is_new(&self) -> Option<bool> {
        let State::Planned(plan) = &self.state else { return None };
        Some(plan.approval.is_none() && plan.deferrals == 0 && self.child.run.is_none())
    }

    /// Whether it has no outcome yet, and somebody or something has to be waited for.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Pending(_) | State::Delegated(_))
    }

    pub(super) fn pending(&self) -> Option<&PendingCall> {
        match &self.state {
            State::Pending(pending) => Some(pending),
            State::Planned(_) | State::Settled(_) | State::Delegated(_) | State::Broken(_) => None,
        }
    }

    /// Whether it may have run before, as the ledger says, and is asked about again.
    pub(super) fn may_have_run(&self) -> bool {
        self.asked.iter().any(is_about_repeating)
    }

    /// What becomes of the call when it does not run, or not again: one that may have run, or whose agent has begun,
    /// is never said to have done nothing.
    pub(super) fn unrun(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Denied(denied) if self.child.run.take().is_some() => Outcome::failed(format!(
                "The agent had begun its work and was stopped: {}",
                denied.message
            )),
            Outcome::Denied(_) | Outcome::Failed(_) | Outcome::Retry(_) if self.may_have_run() => {
                not_repeated(&outcome)
            }
            outcome => outcome,
        }
    }

    /// Settles the call without running it.
    pub(super) fn settle_unrun(&mut self, outcome: Outcome) {
        self.state = State::Settled(self.unrun(outcome));
    }

    /// Counts one deferral more: what waits is another ask.
    pub(super) fn next_deferral(&mut self) {
        if let State::Pending(pending) = &mut self.state {
            pending.deferrals += 1;
        }
    }

    /// Tells whoever watches that the call was taken up.
    pub(super) fn tell_call(&self, watchers: &Watchers, args_valid: Option<bool>) {
        watchers.tell(|| RunEvent::FunctionToolCall { part: self.call.clone(), args_valid });
    }

    /// Tells whoever watches what became of the call, if it is settled.
    pub(super) fn tell_result(&self, watchers: &Watchers) {
        let State::Settled(outcome) = &self.state else { return };
        if let Some(part) = RequestPart::result(&self.call, outcome) {
            watchers.tell(|| RunEvent::FunctionToolResult { part });
        }
    }

    /// Adds the questions of a walk to those of the walks before.
    pub(super) fn remember(&mut self, questions: Vec<Question>) {
        for question in questions {
            if !self.asked.iter().any(|asked| asked.id() == question.id()) {
                self.asked.push(question);
            }
        }
    }
}

/// What the model is told of a call that may have run, and was not run again.
pub(super) fn not_repeated(why: &Outcome) -> Outcome {
    let why = why.content().unwrap_or_default();
    let why = why.as_str().unwrap_or_default();
    Outcome::unknown(format!("{MAY_HAVE_RUN} It was not run again: {why}"))
}
