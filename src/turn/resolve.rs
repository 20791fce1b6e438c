//! Working through the calls of a response: walking them, asking, checking the answers, and applying them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;

use crate::args::Args;
use crate::call::{Approval, Execution, Pass, ToolCall, ToolDefinition};
use crate::deferred::{
    Asked, DeferredToolRequests, DeferredToolResults, Pending, ToolApproval, batch_id, check,
    fingerprint,
};
use crate::error::{ErrorKind, UserError};
use crate::middleware::{Caught, caught};
use crate::outcome::{Deferral, Outcome, ToolDenied};

use super::report::{Answered, TurnError, TurnReport};
use super::slot::{Slot, State, Waiting};
use super::suspended::SuspendedTurn;
use super::walk::{Start, Walked, Walker};
use super::{Turn, user};

/// A response that is being worked on.
pub(super) struct Resolving<'a> {
    turn: &'a Turn,
    walker: Walker,
    definitions: HashMap<String, Arc<ToolDefinition>>,
    slots: Vec<Slot>,
}

/// A walk that is to be made: which call, from where, and with which approval.
struct Plan {
    slot: usize,
    origin: Args,
    approval: Option<Approval>,
    /// How often the call was deferred before.
    deferrals: u32,
}

impl<'a> Resolving<'a> {
    /// Walks the calls of a fresh response: ordinary ones run, deferred ones are known afterwards (rule T1).
    pub(super) async fn start(turn: &'a Turn, calls: Vec<ToolCall>) -> Result<Self, TurnError> {
        let slots = calls
            .into_iter()
            .map(|call| Slot::new(call, State::Settled(Outcome::unknown(""))))
            .collect();
        let mut this = Self::new(turn, slots).await.map_err(TurnError::before)?;
        let plans = (0..this.slots.len()).map(|slot| {
            let origin = this.slots[slot].call.args().clone();
            Plan { slot, origin, approval: None, deferrals: 0 }
        });
        let plans = plans.collect();
        this.walk(plans).await;
        this.fail_if_broken()
    }

    /// Takes up a response where it was left.
    pub(super) async fn from_suspended(
        turn: &'a Turn,
        suspended: SuspendedTurn,
    ) -> Result<Self, TurnError> {
        match Self::new(turn, suspended.slots()).await {
            Ok(this) => Ok(this),
            Err(kind) => Err(TurnError::with_state(kind, suspended)),
        }
    }

    async fn new(turn: &'a Turn, slots: Vec<Slot>) -> Result<Self, ErrorKind> {
        let definitions = turn.definitions().await?;
        let walker = Walker {
            tools: turn.tools.clone(),
            info: Arc::new(turn.info.clone()),
            error_outcome: Arc::clone(&turn.error_outcome),
            trace_args: turn.trace_args,
        };
        let definitions =
            definitions.into_iter().map(|it| (it.name().to_owned(), Arc::new(it))).collect();
        Ok(Self { turn, walker, definitions, slots })
    }

    /// Asks the handler, once, about everything that waits (rule T2).
    pub(super) async fn answer(self) -> Result<TurnReport, TurnError> {
        let requests = self.requests();
        let Some(handler) = self.turn.handler.as_ref().filter(|_| !requests.is_empty()) else {
            return Ok(self.finish());
        };
        let (name, cx) = (handler.name(), self.turn.context());
        let answers = match caught(|| handler.handle(&cx, &requests)).await {
            Ok(Ok(answers)) => answers,
            Ok(Err(error)) => {
                let kind = match error.downcast() {
                    Ok(error) => user(*error),
                    Err(source) => ErrorKind::Handler { name: name.into_owned(), source },
                };
                return Err(self.fail(kind));
            }
            Err(Caught(what)) => {
                return Err(
                    self.fail(ErrorKind::Handler { name: name.into_owned(), source: what.into() })
                );
            }
        };
        self.apply(answers).await
    }

    /// Checks the answers as a whole, then applies them (rule A4).
    pub(super) async fn apply(
        mut self,
        answers: DeferredToolResults,
    ) -> Result<TurnReport, TurnError> {
        let requests = self.requests();
        if requests.is_empty() && answers.is_empty() {
            return Ok(self.finish());
        }
        let checked = check(&requests, &answers, self.turn.require_bound)
            .and_then(|()| self.check_overrides(&answers));
        if let Err(error) = checked {
            return Err(self.fail(user(error)));
        }
        let plans = self.take_answers(answers);
        self.walk(plans).await;
        Ok(self.fail_if_broken()?.finish())
    }

    /// Edited arguments are validated before anything executes (rule A2).
    fn check_overrides(&self, answers: &DeferredToolResults) -> Result<(), UserError> {
        for slot in &self.slots {
            let Some(ToolApproval::Approved(approved)) = answers.approvals.get(slot.call.id())
            else {
                continue;
            };
            let Some(args) = &approved.override_args else { continue };
            if let Some(Err(problem)) =
                self.definitions.get(slot.call.name()).map(|it| validate(it, args))
            {
                let (id, tool) = (slot.call.id().to_owned(), slot.call.name().to_owned());
                return Err(UserError::InvalidOverride { id, tool, problem });
            }
        }
        Ok(())
    }

    /// Settles what is answered without running, and plans the walks of what is approved.
    fn take_answers(&mut self, mut answers: DeferredToolResults) -> Vec<Plan> {
        let mut plans = Vec::new();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let Some(waiting) = slot.waiting().cloned() else { continue };
            let id = slot.call.id().to_owned();
            let by = answers.answered_by.remove(&id);
            let answered = match answers.approvals.remove(&id) {
                Some(ToolApproval::Denied(ToolDenied { message })) => {
                    slot.state = State::Settled(Outcome::denied(message));
                    Answered::Denied { by }
                }
                Some(ToolApproval::Approved(approved)) => {
                    let edited = approved.override_args.is_some();
                    let origin = approved.override_args.clone().unwrap_or(waiting.origin);
                    let approval = Approval {
                        tool: waiting.tool,
                        args: approved.override_args.unwrap_or(waiting.shown),
                        questions: waiting.deferral.questions,
                        metadata: answers.metadata.remove(&id),
                    };
                    let deferrals = waiting.deferrals;
                    plans.push(Plan { slot: index, origin, approval: Some(approval), deferrals });
                    Answered::Approved { by, edited }
                }
                None => match answers.calls.remove(&id) {
                    Some(result) => {
                        slot.state = State::Settled(result.into());
                        Answered::Result { by }
                    }
                    None => continue,
                },
            };
            answered.report(slot.call.id(), slot.call.name());
            slot.answered = Some(answered);
        }
        plans
    }

    /// Makes walks concurrently, with a barrier before and after each call of a sequential tool (rule T1).
    async fn walk(&mut self, plans: Vec<Plan>) {
        let mut plans = plans.into_iter().peekable();
        while let Some(first) = plans.next() {
            let mut segment = vec![first];
            if !self.sequential(&segment[0]) {
                while let Some(next) = plans.next_if(|next| !self.sequential(next)) {
                    segment.push(next);
                }
            }
            let passes = self.walk_together(segment).await;
            if plans.peek().is_some() {
                // Also for bodies that run on after their call was given up.
                join_all(passes.iter().map(|pass| pass.idle())).await;
            } else if let [pass] = &passes[..] {
                if pass.definition().is_sequential() {
                    pass.idle().await;
                }
            }
        }
    }

    fn sequential(&self, plan: &Plan) -> bool {
        self.definitions
            .get(self.slots[plan.slot].call.name())
            .is_some_and(|definition| definition.is_sequential())
    }

    async fn walk_together(&mut self, segment: Vec<Plan>) -> Vec<Arc<Pass>> {
        let mut started = Vec::with_capacity(segment.len());
        for plan in segment {
            match self.enters(&plan) {
                Ok(definition) => {
                    let call = self.slots[plan.slot].call.clone();
                    let start = Start {
                        call,
                        definition,
                        args: plan.origin.clone(),
                        approval: plan.approval.clone(),
                    };
                    started.push((plan, start));
                }
                Err(outcome) => self.slots[plan.slot].state = State::Settled(outcome),
            }
        }
        let (plans, starts): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        let walks = join_all(starts.into_iter().map(|start| self.walker.walk(start))).await;
        let mut passes = Vec::with_capacity(walks.len());
        for (plan, walked) in plans.into_iter().zip(walks) {
            passes.push(Arc::clone(&walked.pass));
            self.settle(plan, walked);
        }
        passes
    }

    /// Whether a call may enter the stack: a known tool, and arguments that fit. Otherwise the model is told to try
    /// again before anybody is bothered (rule T5).
    fn enters(&self, plan: &Plan) -> Result<Arc<ToolDefinition>, Outcome> {
        let call = &self.slots[plan.slot].call;
        let Some(definition) = self.definitions.get(call.name()) else {
            let mut names: Vec<_> =
                self.definitions.keys().map(|name| format!("`{name}`")).collect();
            names.sort_unstable();
            let available = if names.is_empty() { "no tools".to_owned() } else { names.join(", ") };
            let name = call.name().escape_debug();
            return Err(Outcome::retry(format!(
                "There is no tool `{name}`. Available: {available}."
            )));
        };
        if let Some(error) = call.unreadable() {
            return Err(Outcome::retry(format!("Not executed: {error}.")));
        }
        match validate(definition, &plan.origin) {
            Ok(()) => Ok(Arc::clone(definition)),
            Err(problem) => Err(Outcome::retry(format!(
                "Not executed: the arguments do not fit `{}`: {problem}",
                call.name()
            ))),
        }
    }

    fn settle(&mut self, plan: Plan, walked: Walked) {
        let deferrals = plan.deferrals + 1;
        let state = match walked.end {
            Err(error) => State::Broken(error),
            Ok(Outcome::Deferred(_)) if deferrals > self.turn.max_deferrals => {
                let times = self.turn.max_deferrals;
                State::Settled(Outcome::denied(format!(
                    "Denied: the call was deferred {times} times."
                )))
            }
            Ok(Outcome::Deferred(deferral)) => State::Waiting(self.waiting(
                &plan,
                deferral,
                walked.args.clone(),
                &walked.pass,
                deferrals,
            )),
            Ok(outcome) => State::Settled(outcome),
        };
        let slot = &mut self.slots[plan.slot];
        slot.state = state;
        slot.args = walked.args;
        slot.said.extend(walked.said);
        slot.remember(walked.questions);
        if let Some(waiting) = slot.waiting() {
            let questions = waiting.deferral.questions.clone();
            slot.remember(questions);
        }
        if walked.execution.started() || !slot.execution.started() {
            slot.execution = walked.execution;
        }
        slot.denied_by = walked.denied_by;
    }

    fn waiting(
        &self,
        plan: &Plan,
        deferral: Deferral,
        shown: Args,
        pass: &Pass,
        deferrals: u32,
    ) -> Waiting {
        let call = &self.slots[plan.slot].call;
        let tool = pass.definition().leaf().map(|leaf| leaf.identity.clone()).unwrap_or_default();
        let call_path = format!("{}/{}", self.turn.info.path.join("/"), call.id());
        let fingerprint = fingerprint(&Asked {
            run_id: &self.turn.info.run_id,
            response: self.turn.info.response,
            call_path: &call_path,
            tool: &tool,
            args: &shown,
            questions: &deferral.questions,
        });
        Waiting { deferral, shown, origin: plan.origin.clone(), tool, deferrals, fingerprint }
    }

    /// The batch of what waits.
    fn requests(&self) -> DeferredToolRequests {
        requests(&self.turn.info.run_id, self.turn.info.response, &self.slots)
    }

    /// A fatal error of a call: its siblings are done, the handler is not asked, and the response ends (rule T8).
    fn fail_if_broken(mut self) -> Result<Self, TurnError> {
        let Some(index) = self.slots.iter().position(|slot| matches!(slot.state, State::Broken(_)))
        else {
            return Ok(self);
        };
        let mut first = None;
        for (at, slot) in self.slots.iter_mut().enumerate() {
            let ended = State::Settled(match slot.execution {
                Execution::NotStarted => {
                    Outcome::failed("The tool did not run: an error stopped it.")
                }
                _ => Outcome::failed("The tool failed with an internal error."),
            });
            if let State::Broken(_) = slot.state
                && let State::Broken(error) = std::mem::replace(&mut slot.state, ended)
                && at == index
            {
                first = Some(match error.downcast::<UserError>() {
                    Ok(error) => user(*error),
                    Err(source) => {
                        let (id, tool) = (slot.call.id().to_owned(), slot.call.name().to_owned());
                        ErrorKind::Tool { id, tool, source }
                    }
                });
            }
        }
        match first {
            Some(kind) => Err(self.fail(kind)),
            None => Ok(self),
        }
    }

    fn fail(self, kind: ErrorKind) -> TurnError {
        let suspended = SuspendedTurn::new(&self.turn.info, &self.slots);
        TurnError::after(kind, suspended, self.finish())
    }

    fn finish(self) -> TurnReport {
        let suspended = self.slots.iter().any(|slot| slot.waiting().is_some());
        let suspended = suspended.then(|| SuspendedTurn::new(&self.turn.info, &self.slots));
        TurnReport::new(self.slots, suspended)
    }
}

/// The batch of what waits among these calls.
pub(super) fn requests(run_id: &str, response: u32, slots: &[Slot]) -> DeferredToolRequests {
    let waiting = || slots.iter().filter_map(|slot| Some((&slot.call, slot.waiting()?)));
    let ids = waiting().map(|(call, it)| (call.id(), it.fingerprint.as_str(), it.deferrals));
    let batch = batch_id(run_id, response, ids);
    let pending = waiting().map(|(call, it)| Pending {
        call: call.clone().with_args(it.shown.clone()),
        deferral: &it.deferral,
        fingerprint: &it.fingerprint,
    });
    DeferredToolRequests::of(batch, pending)
}

fn validate(definition: &ToolDefinition, args: &Args) -> Result<(), String> {
    definition
        .leaf()
        .and_then(|leaf| leaf.validate.as_ref())
        .map_or(Ok(()), |validate| validate(args))
}
