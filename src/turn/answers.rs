//! Checking the answers to a batch, and applying them.
//!
//! # The order
//!
//! 1. The answers are checked against the batch: each call once, in the right kind, for what was shown.
//! 2. Edited arguments are validated against their tools, also those of the calls of agents. Up to here nothing has
//!    changed, and an error leaves the state as it was.
//! 3. The answers are recorded in the durable store, if there is one. Where another answer was recorded before, by
//!    another process, it replaces the one at hand: the first decision counts.
//! 4. The ask history is updated, then each answer is taken: a denial settles its call, an approval plans the approved
//!    pass, a result is the outcome.
//! 5. The planned passes run together, sequential ones alone.
//!
//! Recording before applying is what makes a crash harmless: after step 3 any process reads the same answers and comes
//! to step 4; before it nothing has been decided.
//!
//! # Why a recorded decision skips the validation
//!
//! The tool may have another schema in the meantime, under which the arguments of a recorded approval do not fit. As the
//! decision is final, an error would be returned at every attempt, and the run could never go on. So the approved pass
//! is made, and the gate refuses the arguments, with a text for the model.

use std::mem::take;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::call_state::{CallState, State};
use super::durability::Granted;
use super::heap::boxed;
use super::ids::prefix;
use super::report::TurnError;
use super::run::TurnRun;
use super::snapshot::PlannedPass;
use super::sub_agent::sub_agent;
use crate::args::Args;
use crate::call::{Approval, RunInfo};
use crate::deferred::{
    Answered, DeferredToolRequests, DeferredToolResults, PendingCall, ToolApproval, check,
};
use crate::error::{AnswerError, Error, UserError};
use crate::outcome::{Outcome, ToolDenied};

impl TurnRun<'_> {
    /// Checks the answers as a whole, then applies them (rule A4). If the run was resumed with the answers, watchers
    /// get an event again that each answered call is taken up.
    pub(super) async fn apply(
        mut self,
        requests: &DeferredToolRequests,
        mut answers: DeferredToolResults,
        resumed: bool,
    ) -> Result<Self, TurnError> {
        if let Err(kind) = boxed(|| self.check_answers(requests, &answers)).await {
            return Err(self.fail(kind));
        }
        let left: Vec<_> = answers.left().map(str::to_owned).collect();
        if self.turn.answers_all && !resumed && !left.is_empty() {
            let left_by = self.turn.named_handler();
            let again = Vec::new();
            return Err(self.fail(Error::User(UserError::DeferredNotExpected {
                ids: left,
                left_by,
                again,
            })));
        }
        if let Err(kind) = boxed(|| self.decide(&mut answers)).await {
            return Err(self.fail(kind));
        }
        self.note_answers(&answers, resumed);
        let watchers = &self.turn.watchers;
        for call in &mut self.calls {
            if take_answer(call, &mut answers) {
                if resumed {
                    let approved = matches!(call.state, State::Planned(_));
                    call.tell_call(watchers, approved.then_some(true));
                }
                call.tell_result(watchers);
            }
            take_answers_of_agent(call, &mut answers);
        }
        self.wake_agents();
        self.dispatcher.refuse_unfit(&mut self.calls);
        self.dispatch().await;
        self.fail_if_broken()
    }

    pub(super) async fn check_answers(
        &self,
        requests: &DeferredToolRequests,
        answers: &DeferredToolResults,
    ) -> Result<(), Error> {
        if requests.is_empty() && answers.is_empty() {
            return Ok(());
        }
        check(requests, answers, self.turn.require_bound).map_err(Error::Answers)?;
        self.check_overrides(answers).await?;
        let mut rest = answers.clone();
        for call in &self.calls {
            let State::Delegated(_) = call.state else { continue };
            let Some(run) = &call.child.run else { continue };
            let own = rest.take_for_agent(&prefix(call.call.id()), &run.requests());
            let definition = self.dispatcher.definition(call);
            if own.answers_any()
                && let Some(agent) = definition.and_then(|definition| sub_agent(definition))
            {
                let prefix = prefix(call.call.id());
                agent
                    .check(RunInfo::clone(&self.turn.info), self.turn.durability.clone(), run, &own)
                    .await
                    .map_err(|kind| behind(&prefix, kind))?;
            }
        }
        Ok(())
    }

    /// Validates edited arguments, before any answer is recorded and any call executes (rule A2).
    async fn check_overrides(&self, answers: &DeferredToolResults) -> Result<(), Error> {
        let (mut ids, mut problems) = (Vec::new(), Vec::new());
        for call in &self.calls {
            let Some(ToolApproval::Approved(approved)) = answers.approvals.get(call.call.id())
            else {
                continue;
            };
            let Some(args) = &approved.override_args else { continue };
            if let Err(problem) = self.dispatcher.validate(call.call.name(), args) {
                // A recorded decision is final, so an error would block the run for good. The approved pass refuses the
                // arguments instead, and the model is told why.
                if self.is_decided(call, args).await? {
                    continue;
                }
                ids.push(call.call.id().to_owned());
                problems.push(format!("tool `{}`: {problem}", call.call.name().escape_debug()));
            }
        }
        if ids.is_empty() {
            return Ok(());
        }
        Err(Error::Answers(AnswerError::InvalidArgs { ids, problem: problems.join("; ") }))
    }
}

/// Rewrites the ids in an error about calls of an agent to those of the parent's batch.
fn behind(prefix: &str, kind: Error) -> Error {
    match kind {
        Error::Answers(AnswerError::InvalidArgs { ids, problem }) => {
            let ids = ids.iter().map(|id| format!("{prefix}{id}")).collect();
            Error::Answers(AnswerError::InvalidArgs { ids, problem })
        }
        kind => kind,
    }
}

/// Settles a call with its answer, or plans the approved pass. Returns whether there was an answer.
fn take_answer(call: &mut CallState, answers: &mut DeferredToolResults) -> bool {
    let State::Pending(pending) = &mut call.state else { return false };
    let id = call.call.id();
    let by = answers.answered_by.remove(id);
    let (state, answered) = match (answers.approvals.remove(id), answers.calls.remove(id)) {
        (Some(ToolApproval::Denied(ToolDenied { message })), _) => {
            (State::Settled(call.unrun(Outcome::denied(message))), Answered::Denied { by })
        }
        (Some(ToolApproval::Approved(approved)), _) => {
            let edited = approved.override_args.is_some();
            let metadata = answers.metadata.remove(id);
            let plan = approved_pass(pending, approved.override_args, metadata, call.ask.clone());
            (State::Planned(plan), Answered::Approved { by, edited })
        }
        (None, Some(result)) => (State::Settled(result.into()), Answered::Result { by }),
        (None, None) => return false,
    };
    answered.report(call.call.id(), call.call.name());
    call.state = state;
    call.answered = Some(answered);
    true
}

/// Plans the approved pass of a call that a grant has approved.
///
/// The ask of the grant may replace an earlier one of the same call, from before the call was asked about again; that
/// one is closed with the run.
pub(super) fn grant(call: &mut CallState, granted: Granted) {
    let State::Pending(pending) = &mut call.state else { return };
    let Granted { ask, by } = granted;
    let before = call.ask.replace(ask.clone()).filter(|before| *before != ask);
    call.closed_asks.extend(before);
    call.newly_pending = false;
    call.state = State::Planned(approved_pass(pending, None, None, Some(ask)));
    let answered = Answered::Approved { by: Some(by), edited: false };
    answered.report(call.call.id(), call.call.name());
    call.answered = Some(answered);
}

/// Hands the agent behind a call the answers to its own calls, if there are any, and plans the pass that resumes it.
fn take_answers_of_agent(call: &mut CallState, answers: &mut DeferredToolResults) {
    let (State::Delegated(plan), Some(run)) = (&call.state, &call.child.run) else { return };
    let own = answers.take_for_agent(&prefix(call.call.id()), &run.requests());
    if own.answers_any() {
        call.child.answers = own;
        call.state = State::Planned(plan.clone());
    }
}

/// The approved pass. It begins with the edited arguments, or with those that the deferring pass began with, and the
/// approval covers exactly what was shown (rules A1, A2). It takes the contents of the pending call, whose state it
/// replaces.
///
/// | | shown as it is | edited |
/// |---|---|---|
/// | the pass begins with | `origin`, so that layers change it as before | the edited arguments |
/// | the approval covers | `shown` | the edited arguments |
/// | a layer changes them on the way | to `shown`: covered | asked about again (rule A2) |
fn approved_pass(
    pending: &mut PendingCall,
    edited: Option<Args>,
    metadata: Option<Map<String, Value>>,
    ask: Option<String>,
) -> PlannedPass {
    let origin = edited.clone().unwrap_or_else(|| pending.origin.clone());
    let approval = Approval {
        tool: take(&mut pending.tool),
        args: edited.unwrap_or_else(|| pending.shown.clone()),
        questions: take(&mut pending.questions),
        metadata,
        ask,
        asked_in: take(&mut pending.asked_in),
    };
    PlannedPass { origin, approval: Some(Arc::new(approval)), deferrals: pending.deferrals }
}
