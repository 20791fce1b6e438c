//! The walks of a response: which of its calls go through the stack together, and what that makes of them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::future::join_all;

use crate::args::{Args, ArgsError};
use crate::call::{
    Execution, Inherited, Pass, ToolCall, ToolDefinition, ToolKind, is_about_repeating,
};
use crate::caught::caught;
use crate::deferred::{CallAddress, PendingCall};
use crate::error::ErrorKind;
use crate::outcome::{Deferral, Outcome};

use super::child::{End, Ended, SubAgent, Task, sub_agent};
use super::slot::{INTERNAL_ERROR, Plan, Slot, State};
use super::walk::{Start, Walked, Walker};
use super::{Turn, boxed};

/// Calls that walk at the same time; a call of a sequential tool is alone.
struct Segment<'s> {
    alone: bool,
    slots: Vec<&'s mut Slot>,
}

/// The tools of a turn, as they are for this response.
pub(super) struct Together<'a> {
    turn: &'a Turn,
    walker: Walker,
    definitions: HashMap<String, Arc<ToolDefinition>>,
}

impl<'a> Together<'a> {
    /// With the definitions that the model was shown, or the ones of now.
    pub(super) async fn new(
        turn: &'a Turn,
        shown: Option<Vec<ToolDefinition>>,
    ) -> Result<Self, ErrorKind> {
        let definitions = match shown {
            Some(shown) => shown,
            None => turn.definitions().await?,
        };
        let definitions =
            definitions.into_iter().map(|it| (it.name().to_owned(), Arc::new(it))).collect();
        let walker = Walker {
            tools: turn.tools.clone(),
            info: Arc::new(turn.info.clone()),
            error_outcome: Arc::clone(&turn.error_outcome),
            trace_args: turn.trace_args,
        };
        Ok(Self { turn, walker, definitions })
    }

    /// Makes all planned walks concurrently, with a barrier before and after each call of a sequential tool (rule T1).
    pub(super) async fn walk(&self, slots: &mut [Slot]) {
        let mut segments = self.segments(slots).into_iter().peekable();
        while let Some(segment) = segments.next() {
            let passes = boxed(|| self.walk_together(segment.slots)).await;
            if segment.alone || segments.peek().is_some() {
                // Also for bodies that run on after their call was given up.
                join_all(passes.iter().map(|pass| pass.idle())).await;
            }
        }
    }

    /// The planned walks, cut at the calls of sequential tools, which are alone.
    fn segments<'s>(&self, slots: &'s mut [Slot]) -> Vec<Segment<'s>> {
        let mut segments: Vec<Segment<'s>> = Vec::new();
        for slot in slots.iter_mut().filter(|slot| matches!(slot.state, State::Planned(_))) {
            let alone = self.is_sequential(slot);
            match segments.last_mut() {
                Some(last) if !alone && !last.alone => last.slots.push(slot),
                _ => segments.push(Segment { alone, slots: vec![slot] }),
            }
        }
        segments
    }

    /// Whether the calls of the tool are executed elsewhere: nobody looks at their arguments here.
    pub(super) fn is_external(&self, slot: &Slot) -> bool {
        self.definition(slot).is_some_and(|it| it.get_kind() == ToolKind::External)
    }

    /// What is known about the tool of a call.
    pub(super) fn definition(&self, slot: &Slot) -> Option<&Arc<ToolDefinition>> {
        self.definitions.get(slot.call.name())
    }

    pub(super) fn is_agent(&self, slot: &Slot) -> bool {
        self.definition(slot).is_some_and(|definition| sub_agent(definition).is_some())
    }

    /// Whether there is an agent behind any tool.
    pub(super) fn has_agents(&self) -> bool {
        self.definitions.values().any(|definition| sub_agent(definition).is_some())
    }

    /// How often the model may try again with a tool, where the tool says it.
    pub(super) fn max_retries(&self) -> impl Fn(&str) -> Option<u32> {
        |tool| self.definitions.get(tool)?.get_max_retries()
    }

    fn is_sequential(&self, slot: &Slot) -> bool {
        self.definition(slot).is_some_and(|it| it.is_sequential())
    }

    /// Whether edited arguments fit the tool; those of a tool that is gone, or executed elsewhere, do.
    pub(super) fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        if args.are_too_deep() {
            return Err(ArgsError::too_deep().to_string());
        }
        self.definitions.get(tool).map_or(Ok(()), |definition| validate(definition, args))
    }

    async fn walk_together(&self, segment: Vec<&mut Slot>) -> Vec<Arc<Pass>> {
        let walks = join_all(segment.into_iter().map(|slot| self.walk_one(slot))).await;
        walks.into_iter().flatten().collect()
    }

    /// Walks one call, if it may enter the stack. Gives the pass, to wait for a body that runs on.
    async fn walk_one(&self, slot: &mut Slot) -> Option<Arc<Pass>> {
        let State::Planned(plan) =
            std::mem::replace(&mut slot.state, State::Settled(Outcome::failed(INTERNAL_ERROR)))
        else {
            return None;
        };
        let definition = Arc::clone(self.definitions.get(slot.call.name())?);
        let Plan { origin, approval, deferrals } = plan.clone();
        let agent = sub_agent(&definition);
        let (call, args, begun) = (slot.call.clone(), origin.clone(), slot.child.run.is_some());
        let start = Start { call, definition, args, approval, begun };
        let mut walked = boxed(|| self.walker.walk(start)).await;
        let pass = Arc::clone(&walked.pass);
        match agent.zip(walked.delegated.take()) {
            Some((agent, inherited)) => {
                slot.remember(walked.questions);
                slot.said.extend(walked.said);
                slot.args = walked.args;
                boxed(|| self.run_agent(slot, plan, &*agent, inherited)).await;
            }
            None => self.settle(slot, origin, deferrals + 1, walked),
        }
        slot.tell_result(&self.turn.watchers);
        Some(pass)
    }

    /// Lets the agent behind a call work, outside of the stack (rule T7).
    async fn run_agent(
        &self,
        slot: &mut Slot,
        plan: Plan,
        agent: &dyn SubAgent,
        inherited: Vec<Inherited>,
    ) {
        let mut info = self.turn.info.clone();
        info.path.push(slot.call.name().to_owned());
        let watchers = self.turn.watchers.of_agent(info.path.join("/"), slot.call.id());
        let answers = std::mem::take(&mut slot.child.answers);
        if answers.is_empty() && slot.child.run.as_ref().is_some_and(|run| run.waits()) {
            // The call itself was asked about again: what its agent waits for is still to be answered.
            slot.state = State::Delegated(plan);
            return;
        }
        let Some(max_nested_agents) = self.turn.max_nested_agents.checked_sub(1) else {
            let max = self.turn.info.path.len() - 1;
            slot.failed = Some(ErrorKind::AgentsTooDeep { max });
            slot.state = State::Planned(plan);
            return;
        };
        let task = Task {
            info,
            args: slot.args.clone(),
            inherited,
            resume: slot.child.run.take().map(|run| (*run, answers)),
            watchers,
            ledger: self.turn.ledger.clone(),
            closing: self.turn.closing.clone(),
            ask_limits: self.turn.ask_limits,
            trace_args: self.turn.trace_args,
            max_nested_agents,
        };
        slot.execution = Execution::Unknown;
        let Ok(Ended { end, turns }) = caught(|| agent.run(task)).await else {
            slot.state = State::Broken("the agent panicked".into());
            return;
        };
        // The report of a response that was taken up again has its calls again.
        slot.child.turns.pop_if(|report| report.suspended().is_some());
        slot.child.turns.extend(turns);
        slot.state = match end {
            End::Done(outcome) => {
                slot.execution = Execution::Finished(outcome.clone());
                State::Settled(outcome)
            }
            End::Suspended(run) => {
                slot.child.run = Some(run);
                State::Delegated(plan)
            }
            End::Failed(kind, run) => {
                (slot.child.run, slot.failed) = (Some(run), Some(kind));
                State::Delegated(plan)
            }
        };
    }

    /// Settles the planned calls that may not enter the stack, before anything runs and anybody is bothered: unknown
    /// tools, and arguments that do not fit. The model is told to try again (rule T5).
    pub(super) fn refuse_unfit(&self, slots: &mut [Slot]) {
        for slot in slots {
            let State::Planned(plan) = &slot.state else { continue };
            if let Err(outcome) = self.enters(&slot.call, plan) {
                slot.settle_unrun(outcome);
            } else if slot.child.run.is_some() && !self.is_agent(slot) {
                let text =
                    "The agent had begun its work and was stopped: its tool is no agent any more.";
                slot.state = State::Settled(Outcome::failed(text));
            }
        }
    }

    fn enters(&self, call: &ToolCall, plan: &Plan) -> Result<(), Outcome> {
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
        // A call that an earlier version stored with deeper arguments goes on as it was approved.
        let stored = plan.approval.is_some() && plan.origin == *call.args();
        let fits = match plan.origin.are_too_deep() && !stored {
            true => Err(format!("{}.", ArgsError::too_deep())),
            false => validate(definition, &plan.origin),
        };
        fits.map_err(|problem| {
            Outcome::retry(format!(
                "Not executed: the arguments do not fit `{}`: {problem}",
                call.name()
            ))
        })
    }

    fn settle(&self, slot: &mut Slot, origin: Args, deferrals: u32, walked: Walked) {
        let Walked { end, questions, said, args, execution, denied_by, error, pass, .. } = walked;
        slot.remember(questions);
        slot.said.extend(said);
        slot.args = args;
        (slot.denied_by, slot.error) = (denied_by, error);
        let ran = execution.started();
        if execution.started() || !slot.execution.started() {
            slot.execution = execution;
        }
        slot.state = match end {
            Err(error) => State::Broken(error),
            Ok(Outcome::Deferred(_)) if deferrals > self.turn.max_deferrals => {
                let times = self.turn.max_deferrals;
                let text = format!("Denied: the call was deferred {times} times.");
                State::Settled(slot.unrun(Outcome::denied(text)))
            }
            Ok(Outcome::Deferred(deferral)) => {
                slot.remember(deferral.questions.clone());
                if deferral.questions.iter().any(is_about_repeating) {
                    slot.execution = Execution::Unknown;
                }
                State::Pending(self.pending(slot, deferral, origin, deferrals, &pass))
            }
            Ok(outcome) if ran => State::Settled(outcome),
            Ok(outcome) => State::Settled(slot.unrun(outcome)),
        };
    }

    fn pending(
        &self,
        slot: &Slot,
        deferral: Deferral,
        origin: Args,
        deferrals: u32,
        pass: &Pass,
    ) -> PendingCall {
        let info = &self.turn.info;
        let address = CallAddress::new(&info.run_id, info.response, &info.path, slot.call.id());
        let leaf = pass.definition().leaf();
        let tool = leaf.map(|leaf| leaf.identity().to_owned()).unwrap_or_default();
        PendingCall::new(&address, tool, deferral, (origin, slot.args.clone()), deferrals)
    }
}

fn validate(definition: &ToolDefinition, args: &Args) -> Result<(), String> {
    definition
        .leaf()
        .and_then(|leaf| leaf.validate.as_ref())
        .map_or(Ok(()), |validate| validate(args))
}
