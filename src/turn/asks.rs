//! The asks of a response: parked before people are asked, answered, and closed.
//!
//! # Parking
//!
//! We store every pending call before anyone is asked (rule L3): a handler that approves at once, a crash, and a
//! second process that resumes all find the same ask. The id of an ask is made of the call's address and the number of
//! its deferral, so parking twice makes one ask:
//!
//! | deferral | ask | when |
//! |---|---|---|
//! | 1 | A | the first question |
//! | 2 | B | the approved pass asked something new |
//! | 1, again | A | the same call in another process, with the same questions |
//! | 1, other questions | the next free number | a worker parked A and died; in the meantime the call looks different |
//!
//! For the last row there is a loop in [`park_pending`](TurnRun::park_pending): the store says that the ask under
//! this id is another one, we raise the number, and close the replaced ask with the run. If a person still sees that
//! ask, no answer to it lets anything run.
//!
//! # Answering
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
//! A crash is harmless because we record before we apply: after step 3 any process reads the same answers and comes to
//! step 4, and before it nothing has been decided.
//!
//! # Why a recorded decision skips the validation
//!
//! In the meantime the tool may have another schema, which the arguments of a recorded approval do not fit. As the
//! decision is final, every attempt would return an error, and the run could never continue. So we make the approved
//! pass, and the gate refuses the arguments, with a text for the model.
//!
//! # Closing
//!
//! We close an ask when its call has a result without having run under it: the call was denied, refused, or answered
//! elsewhere. A call that ran settles its own ask through the journal. If the caller saves the run (an agent with a
//! ledger), the report has the list, and the transaction that saves the results closes these asks: after any failure,
//! both are seen or neither (rule L5).

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use super::call_state::{CallState, State};
use super::durability::{Granted, ParkResult, Parking, Shares, record_answer};
use super::heap::boxed;
use super::ids::prefix;
use super::report::TurnError;
use super::run::TurnRun;
use super::snapshot::PlannedPass;
use super::sub_agent::sub_agent;
use crate::args::Args;
use crate::call::{Approval, AskHistory, RunInfo, call_key};
use crate::deferred::{
    Answered, CallAddress, DeferredToolRequests, DeferredToolResults, PendingCall, ToolApproval,
    check,
};
use crate::error::{AnswerError, Error, UserError};
use crate::handler::is_policy;
use crate::outcome::{Outcome, ToolDenied};
use crate::telemetry::{self, AskEnd, Stopwatch};

impl TurnRun<'_> {
    /// Records every pending call as an ask before people are asked (rule L3), and keeps the id of the ask. If the
    /// store has another ask under that id, from before a worker died, the call gets the id of the next deferral
    /// (rule A1).
    ///
    /// A new call that a grant answers is approved instead, and not shown to anyone (rule G2). Returns whether there is
    /// such a call: its approved pass is planned.
    pub(super) async fn park(&mut self) -> Result<bool, Error> {
        let answered = self.answer_by_grants().await?;
        self.park_pending().await?;
        Ok(answered)
    }

    /// Approves the new calls that a person has approved in advance. Calls that were pending before are left to people.
    async fn answer_by_grants(&mut self) -> Result<bool, Error> {
        let mut any = false;
        if self.answer_stands() {
            return Ok(false);
        }
        let Some(durability) = &self.turn.durability else { return Ok(false) };
        let (cx, info) = (self.turn.context(), &self.turn.info);
        for call in self.calls.iter_mut().filter(|call| call.newly_pending) {
            let leaf = self.dispatcher.definition(call).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            let Some(pending) = call.pending() else { continue };
            let address = CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
            let tool = call.call.name();
            let parking = Parking { cx: &cx, address, tool, pending, idempotent, is_new: true };
            let Some(granted) = durability.grant(parking).await.map_err(Error::Ledger)? else {
                continue;
            };
            grant(call, granted);
            info.asks.iter().for_each(AskHistory::answered);
            any = true;
        }
        Ok(any)
    }

    async fn park_pending(&mut self) -> Result<(), Error> {
        let Some(durability) = &self.turn.durability else { return Ok(()) };
        let (cx, info) = (self.turn.context(), &self.turn.info);
        let max = self.turn.ask_limits.max_pending;
        let mut shares = Shares { max, pending: BTreeMap::new() };
        for call in &mut self.calls {
            let is_new = take(&mut call.newly_pending);
            let leaf = self.dispatcher.definition(call).and_then(|definition| definition.leaf());
            let idempotent = leaf.is_some_and(|leaf| leaf.idempotent);
            while let Some(pending) = call.pending() {
                let address =
                    CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
                let tool = call.call.name();
                let parking = Parking { cx: &cx, address, tool, pending, idempotent, is_new };
                let parked = durability.park(parking, &mut shares).await;
                let (ask, same) = match parked.map_err(Error::Ledger)? {
                    ParkResult::Same(ask) => (ask, true),
                    ParkResult::Other(ask) => (ask, false),
                    unasked @ (ParkResult::Full | ParkResult::NoPolicy) => {
                        let (limit, why) = match unasked {
                            ParkResult::NoPolicy => {
                                ("ask_policy", "it could not be determined who may decide.".into())
                            }
                            _ => {
                                let why = "calls of its requester are pending already.";
                                ("max_pending", format!("{max} {why}"))
                            }
                        };
                        call.deny_unasked(limit, format!("Denied without asking: {why}"));
                        info.asks.iter().for_each(AskHistory::answered);
                        call.tell_result(&self.turn.watchers);
                        break;
                    }
                };
                let before =
                    call.ask.replace(ask).filter(|before| call.ask.as_ref() != Some(before));
                call.closed_asks.extend(before);
                if same {
                    break;
                }
                call.next_deferral();
            }
        }
        Ok(())
    }

    /// Returns whether a recorded decision already approves the call with these arguments.
    pub(super) async fn is_decided(&self, call: &CallState, args: &Args) -> Result<bool, Error> {
        let (Some(durability), Some(pending)) = (&self.turn.durability, call.pending()) else {
            return Ok(false);
        };
        let info = &self.turn.info;
        let address = CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
        let ask = durability.ask_id(address, pending.deferrals);
        let decided = durability.decided_args(&ask).await.map_err(Error::Ledger)?;
        Ok(decided.as_ref() == Some(args))
    }

    /// Records every answer as a decision. Where another decision was recorded before, that one replaces the answer.
    pub(super) async fn decide(&self, answers: &mut DeferredToolResults) -> Result<(), Error> {
        let Some(durability) = &self.turn.durability else { return Ok(()) };
        for call in &self.calls {
            if let (Some(ask), Some(pending)) = (&call.ask, call.pending()) {
                let shown = (ask.as_str(), pending.fingerprint.as_str());
                let id = (call.call.id(), pending.kind);
                record_answer(&**durability, shown, id, answers).await?;
            }
        }
        Ok(())
    }

    /// Checks the answers as a whole, then applies them (rule A4). `asked` runs since the handler was asked; if there is
    /// none, the run was resumed with the answers, and watchers get an event again that each answered call is taken up.
    pub(super) async fn apply(
        mut self,
        requests: &DeferredToolRequests,
        mut answers: DeferredToolResults,
        asked: Option<Stopwatch>,
    ) -> Result<Self, TurnError> {
        let resumed = asked.is_none();
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
        self.measure_answers(requests, &answers, asked.as_ref().and_then(Stopwatch::elapsed));
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

    /// Reports the answers to the metrics; with a ledger, the ledger does so. The answers to calls of agents are reported
    /// with the batch of the root, as what an agent's own handler approves is asked about there.
    fn measure_answers(
        &self,
        requests: &DeferredToolRequests,
        answers: &DeferredToolResults,
        waited: Option<Duration>,
    ) {
        if !telemetry::EXPORTS || self.turn.durability.is_some() || !self.turn.is_root() {
            return;
        }
        for call in requests.iter() {
            let Some(answer) = answers.answer_to(call.id()) else { continue };
            let by = answers.answered_by.get(call.id()).map(String::as_str);
            let by = Some(if by.is_some_and(is_policy) { "policy" } else { "person" });
            let end = AskEnd { tool: call.name(), answer: answer.given(), by, waited };
            let questions = requests.questions(call.id()).iter();
            telemetry::measure_ask(&end, questions.map(|it| (it.layer(), it.own_key())));
        }
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
        let mut rest = None;
        for call in &self.calls {
            let State::Delegated(_) = call.state else { continue };
            let Some(run) = &call.child.run else { continue };
            let rest = rest.get_or_insert_with(|| answers.clone());
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

    /// The asks to close: of calls that were settled without running, and those that a later ask has replaced.
    pub(super) fn closed_asks(&self) -> BTreeSet<String> {
        let mut asks = BTreeSet::new();
        if self.turn.durability.is_none() {
            return asks;
        }
        for call in &self.calls {
            asks.extend(call.closed_asks.iter().cloned());
            // The journal settles the ask of a call that ran, but never that of an agent, whose own calls are settled
            // there. If a person was asked whether to repeat a call, the execution may belong to an earlier ask.
            let ran = call.execution.started() && !call.may_have_run();
            let ran = ran && !self.dispatcher.is_agent(call);
            if matches!(call.state, State::Settled(_)) && !ran {
                asks.extend(call.ask.clone());
            }
        }
        asks
    }

    /// Records the answers in the ask history, in model order. The answers that an agent is resumed with belong to the
    /// parent's batch, so that they do not begin another one.
    pub(super) fn note_answers(&self, answers: &DeferredToolResults, resumed: bool) {
        let Some(asks) = &self.turn.info.asks else { return };
        if self.turn.is_root() || !resumed {
            asks.begin_batch();
        }
        for call in &self.calls {
            if let Some(pending) = call.pending() {
                note_answer(asks, call.call.id(), pending, answers);
            }
        }
    }
}

fn note_answer(asks: &AskHistory, id: &str, pending: &PendingCall, answers: &DeferredToolResults) {
    let key = |args: &Args| call_key(&pending.tool, args);
    match answers.approvals.get(id) {
        Some(ToolApproval::Approved(approved)) => {
            asks.approve(|| key(approved.override_args.as_ref().unwrap_or(&pending.shown)));
        }
        Some(ToolApproval::Denied(denied)) => {
            let by = answers.answered_by.get(id);
            if !by.is_some_and(|by| is_policy(by)) {
                asks.deny(key(&pending.shown), &denied.message);
            }
        }
        None if answers.calls.contains_key(id) => {}
        None => return,
    }
    asks.answered();
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

/// Settles a call with its answer, or plans the approved pass: a call that was denied passes nothing again (rule A3). Returns
/// whether there was an answer.
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
/// The ask of the grant may replace an earlier one of the same call, from before the call was asked about again. We
/// close that one with the run.
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
        call.child.answers = Some(Box::new(own));
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
