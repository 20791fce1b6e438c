//! One call of the response that a turn works on.

use crate::args::Args;
use crate::call::{Approval, Execution, Said, ToolCall};
use crate::decision::Question;
use crate::error::BoxError;
use crate::message::RequestPart;
use crate::outcome::{Deferral, Outcome};

use super::event::{RunEvent, Watchers};
use super::report::Answered;

/// What the model is told of a call that an error which is not for it has ended.
pub(super) const INTERNAL_ERROR: &str = "The tool failed with an internal error.";

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
    /// It had its outcome when the response was taken up again.
    pub(super) settled_before: bool,
}

pub(super) enum State {
    /// It is about to walk through the stack.
    Planned(Plan),
    Settled(Outcome),
    Waiting(Waiting),
    /// It failed with an error that is not for the model.
    Broken(BoxError),
}

/// A walk that is to be made: from where, and with which approval.
pub(super) struct Plan {
    pub(super) origin: Args,
    pub(super) approval: Option<Approval>,
    /// How often the call was deferred before.
    pub(super) deferrals: u32,
}

/// A call that waits, with what an answer to it is bound to.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) deferral: Deferral,
    /// The arguments that were shown and that an approval is for.
    pub(super) shown: Args,
    /// Where the walk began that came to them, and where the approved one begins.
    pub(super) origin: Args,
    /// The tool's identity at its gate.
    pub(super) tool: String,
    /// How often the call was deferred, with this time.
    pub(super) deferrals: u32,
    pub(super) fingerprint: String,
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
            settled_before: false,
        }
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        match &self.state {
            State::Waiting(waiting) => Some(waiting),
            State::Planned(_) | State::Settled(_) | State::Broken(_) => None,
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
