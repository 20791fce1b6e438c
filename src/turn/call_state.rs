//! One call of the response that a turn works on.
//!
//! # States
//!
//! ```text
//!               pass                 answer: approve
//!  Planned ───────────► Pending ─────────────────────► Planned (approved pass)
//!     │  │                 │
//!     │  │                 └── deny, result, limit ──► Settled
//!     │  └── to an agent ─► Delegated ── its answers ─► Planned ─► … ─► Settled
//!     ├── outcome ─► Settled
//!     └── fatal error ─► Broken ─► Settled, after the siblings have ended
//! ```
//!
//! Only `Planned` has a pass to make, only `Pending` and `Delegated` are in a batch, and `Settled` is final: a call
//! that has an outcome never passes the stack again, in this process or in another (rule T9).
//!
//! # "Denied" and "may have run"
//!
//! A call that was started and is then denied (its body asked, a person said no; an agent had begun) must not be
//! reported as not executed. [`unrun`](CallState::unrun) is the one place that knows: the model is told that the agent
//! was stopped in its work, or that the tool may have run and was not run again. A body that asks knows that a person may
//! say no, so after that no the model reads the person's words and nothing else, as with PydanticAI.

use super::batch::OpenCall;
use super::event::{RunEvent, Watchers};
use super::report::{BodyError, CallReport, TurnReport};
use super::snapshot::{PlannedPass, StoredCall, StoredState, SuspendedRun};
use super::suspended::not_repeated;
use crate::args::Args;
use crate::call::{Execution, Said, SharedError, ToolCall, is_about_repeating};
use crate::decision::Question;
use crate::deferred::{Answered, DeferredToolResults, PendingCall};
use crate::error::{BoxError, Error};
use crate::message::RequestPart;
use crate::outcome::{Deferral, Outcome};

/// The result that the model gets for a call that ended with an error which is not for the model.
pub(super) const INTERNAL_ERROR: &str = "The tool failed with an internal error.";

/// The result that the model gets for a call whose tool returned before an error ended the response.
pub(super) const RESULT_WITHHELD: &str =
    "The tool ran. Its result is withheld: an error ended the response.";

/// One call of the response: its state, and the data for its report.
pub(super) struct CallState {
    /// The call as the model made it.
    pub(super) call: ToolCall,
    pub(super) state: State,
    /// The final arguments, as far as they are known.
    pub(super) args: Args,
    /// Every question about the call, over all passes.
    pub(super) asked: Vec<Question>,
    pub(super) said: Vec<Said>,
    pub(super) answered: Option<Answered>,
    pub(super) execution: Execution,
    /// The layer or the limit that denied the call, if one did.
    pub(super) denied_by: Option<String>,
    /// The error of the tool body, if the model got its text.
    pub(super) error: Option<SharedError>,
    /// `true` if the call had its outcome when the response was resumed.
    pub(super) settled_before: bool,
    /// `true` if the call was deferred, and then skipped because the response has a final answer.
    pub(super) skipped: bool,
    /// The agent behind the tool, once it has begun.
    pub(super) child: Child,
    /// The id of the call's latest ask in the ledger, once it was parked.
    pub(super) ask: Option<String>,
    /// `true` if the call was deferred just now, so that no person was asked yet.
    pub(super) newly_pending: bool,
    /// Asks of the call, and of the agent behind its tool, that are to be closed.
    pub(super) closed_asks: Vec<String>,
    /// The error that stopped the agent behind the tool.
    pub(super) failed: Option<Error>,
}

pub(super) enum State {
    /// The call is about to pass through the stack.
    Planned(PlannedPass),
    Settled(Outcome),
    Pending(PendingCall),
    /// The agent behind the tool has begun, and is suspended or stopped by an error. The plan is the pass that
    /// resumes it.
    Delegated(PlannedPass),
    /// The call failed with an error that is not for the model.
    Broken(BoxError),
}

/// The state of the agent behind a call.
#[derive(Default)]
pub(super) struct Child {
    pub(super) run: Option<Box<SuspendedRun>>,
    /// The answers for its next step; in a box, as most calls have no agent behind them.
    pub(super) answers: Option<Box<DeferredToolResults>>,
    pub(super) turns: Vec<TurnReport>,
}

impl CallState {
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
            closed_asks: Vec::new(),
            failed: None,
        }
    }

    /// A new call: about to pass through the stack as the model made it, or settled if its outcome is known.
    pub(super) fn of(call: ToolCall, outcome: Option<Outcome>) -> Self {
        let plan = || PlannedPass { origin: call.args().clone(), approval: None, deferrals: 0 };
        let state = outcome.map_or_else(|| State::Planned(plan()), State::Settled);
        Self::new(call, state)
    }

    /// Returns whether the planned pass is the first one of the call; `None` if no pass is planned.
    pub(super) fn is_new(&self) -> Option<bool> {
        let State::Planned(plan) = &self.state else { return None };
        Some(plan.approval.is_none() && plan.deferrals == 0 && self.child.run.is_none())
    }

    /// Returns `true` if the call has no outcome, and gets none before an answer or a resume.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Pending(_) | State::Delegated(_))
    }

    pub(super) fn pending(&self) -> Option<&PendingCall> {
        match &self.state {
            State::Pending(pending) => Some(pending),
            State::Planned(_) | State::Settled(_) | State::Delegated(_) | State::Broken(_) => None,
        }
    }

    /// The call as an entry of the batch, if it is pending or its agent has begun.
    pub(super) fn open(&self) -> Option<OpenCall<'_>> {
        match &self.state {
            State::Pending(pending) => Some(OpenCall::Pending(&self.call, pending)),
            State::Delegated(_) => {
                Some(OpenCall::Delegated(&self.call, self.child.run.as_ref()?.turn()?))
            }
            State::Planned(_) | State::Settled(_) | State::Broken(_) => None,
        }
    }

    /// Returns `true` if the ledger has found that the call may have run, and a person was asked whether to run it
    /// again.
    pub(super) fn may_have_run(&self) -> bool {
        self.asked.iter().any(is_about_repeating)
    }

    /// The outcome of a call that does not run, or not again. If the call may have run, or its agent has begun, the
    /// outcome says so: the model must not believe that nothing was done.
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

    /// Adds the reports of the agent behind the call. The first new one is about the suspended response again, so that it
    /// replaces the earlier report.
    pub(super) fn add_turns_of_agent(&mut self, turns: Vec<TurnReport>) {
        if let Some(report) = self.child.turns.pop_if(|report| report.suspended().is_some()) {
            self.closed_asks.extend(report.closed_asks().cloned());
        }
        self.closed_asks.extend(turns.iter().flat_map(TurnReport::closed_asks).cloned());
        self.child.turns.extend(turns);
    }

    /// Settles the call without running it.
    pub(super) fn settle_unrun(&mut self, outcome: Outcome) {
        self.state = State::Settled(self.unrun(outcome));
    }

    /// Increments the number of deferrals, which gives the pending call the id of another ask.
    pub(super) fn next_deferral(&mut self) {
        if let State::Pending(pending) = &mut self.state {
            pending.deferrals += 1;
        }
    }

    /// Sends watchers the event that the call is taken up.
    pub(super) fn tell_call(&self, watchers: &Watchers, args_valid: Option<bool>) {
        watchers.tell(|| RunEvent::FunctionToolCall { part: self.call.clone(), args_valid });
    }

    /// Sends watchers the result of the call, if it is settled.
    pub(super) fn tell_result(&self, watchers: &Watchers) {
        let State::Settled(outcome) = &self.state else { return };
        if !watchers.are_there() {
            return;
        }
        if let Some(part) = RequestPart::result(&self.call, outcome) {
            watchers.tell(|| RunEvent::FunctionToolResult { part });
        }
    }

    /// Adds the questions of a pass to those of the passes before.
    pub(super) fn remember(&mut self, questions: Vec<Question>) {
        if self.asked.is_empty() {
            // The questions of one pass differ.
            self.asked = questions;
            return;
        }
        for question in questions {
            if !self.has_asked(&question) {
                self.asked.push(question);
            }
        }
    }

    /// Adds copies of the questions that are new.
    pub(super) fn remember_new(&mut self, questions: &[Question]) {
        for question in questions {
            if !self.has_asked(question) {
                self.asked.push(question.clone());
            }
        }
    }

    fn has_asked(&self, question: &Question) -> bool {
        self.asked.iter().any(|asked| asked.id() == question.id())
    }
}

impl From<&CallState> for StoredCall {
    fn from(call: &CallState) -> Self {
        let state = match &call.state {
            State::Settled(outcome) => StoredState::Settled(outcome.bounded().into_owned()),
            State::Broken(_) => StoredState::Settled(Outcome::failed(INTERNAL_ERROR)),
            State::Planned(plan) => StoredState::Planned(plan.clone()),
            State::Delegated(plan) => StoredState::Delegated(plan.clone()),
            State::Pending(pending) => StoredState::Pending(pending.clone()),
        };
        Self {
            call: call.call.clone(),
            state,
            asked: call.asked.clone(),
            args: Some(call.args.clone()).filter(|args| args != call.call.args()),
            answered: call.answered.clone(),
            denied_by: call.denied_by.clone(),
            started: call.execution.started(),
            agent: call.child.run.clone(),
        }
    }
}

/// The stored form has one flag for the execution, `started`, and the rest follows from the state. A settled call was
/// finished with its outcome, a pending one has deferred itself from within its body, and the end of a planned or
/// delegated one was not seen.
impl From<&StoredCall> for CallState {
    fn from(stored: &StoredCall) -> Self {
        let state = match &stored.state {
            StoredState::Settled(outcome) => State::Settled(outcome.clone()),
            StoredState::Pending(pending) => State::Pending(pending.clone()),
            StoredState::Delegated(plan) => State::Delegated(plan.clone()),
            StoredState::Planned(plan) => State::Planned(plan.clone()),
        };
        let mut call = Self::new(stored.call.clone(), state);
        call.asked.clone_from(&stored.asked);
        call.answered.clone_from(&stored.answered);
        call.denied_by.clone_from(&stored.denied_by);
        call.child.run.clone_from(&stored.agent);
        call.settled_before = matches!(stored.state, StoredState::Settled(_));
        if let State::Planned(plan) | State::Delegated(plan) = &call.state {
            call.ask = plan.approval.as_ref().and_then(|approval| approval.ask.clone());
        }
        if let Some(args) = &stored.args {
            call.args = args.clone();
        }
        if stored.started {
            call.execution = match &stored.state {
                StoredState::Settled(Outcome::Unknown(_)) => Execution::Unknown,
                StoredState::Settled(outcome) => Execution::Finished(outcome.clone()),
                // A pending call was started only if its body deferred, or an execution under an earlier ask is
                // unknown.
                StoredState::Pending(it) if it.questions.iter().any(is_about_repeating) => {
                    Execution::Unknown
                }
                StoredState::Pending(it) => Execution::Finished(Outcome::Deferred(it.deferral())),
                StoredState::Delegated(_) | StoredState::Planned(_) => Execution::Unknown,
            };
        }
        if let Some(pending) = call.pending() {
            call.args = pending.shown.clone();
        }
        call
    }
}

impl From<CallState> for CallReport {
    fn from(call: CallState) -> Self {
        let outcome = match call.state {
            State::Settled(outcome) => outcome,
            State::Pending(pending) => Outcome::Deferred(pending.deferral()),
            State::Delegated(_) => Outcome::Deferred(Deferral::of_agent()),
            State::Planned(_) | State::Broken(_) => Outcome::failed(INTERNAL_ERROR),
        };
        Self {
            call: call.call,
            args: call.args,
            outcome,
            asked: call.asked,
            said: call.said,
            answered: call.answered,
            execution: call.execution,
            denied_by: call.denied_by,
            error: call.error.map(BodyError),
            settled_before: call.settled_before,
            skipped: call.skipped,
            turns: call.child.turns,
        }
    }
}
