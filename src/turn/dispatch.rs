//! The passes of a response: which calls go through the stack concurrently, and how a pass changes the state of a call.
//!
//! # Segments
//!
//! Calls run concurrently between barriers, in model order. A call of a sequential tool is a barrier: it starts when
//! everything before it has ended, bodies included, and everything behind it starts when its body has ended.
//!
//! ```text
//!  model order:   a   b   S   c   d   S'  e
//!  segments:     [a   b] [S] [c   d] [S'] [e]
//! ```
//!
//! We wait for the *body*, which is more than waiting for the call. If a timeout outside gives a call up, its
//! blocking function continues, and the next call would overlap with it (rule T1).
//!
//! # An agent behind a call
//!
//! The pass of the call ends at the gate, which delegates it, and the agent runs here, after the pass: the layers
//! around the call measure the decision and not the work of the agent, which may take hours and a person's answer (rule
//! T7). What ran before an error stopped the agent is in its snapshot, which goes into the state of the call.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;

use super::call_state::{CallState, State};
use super::config::Turn;
use super::heap::boxed;
use super::pass::{PassResult, PassRunner, Start};
use super::snapshot::PlannedPass;
use super::sub_agent::{SubAgent, SubAgentEnd, SubAgentResult, SubAgentTask, sub_agent};
use crate::args::{Args, ArgsError};
use crate::call::{
    CallRecord, Execution, Inherited, RunInfo, ToolCall, ToolDefinition, ToolKind,
    is_about_repeating,
};
use crate::deferred::{CallAddress, PendingCall};
use crate::error::{Error, UserError};
use crate::outcome::{Deferral, Outcome};
use crate::panic::catch_panic;

/// Calls that pass through the stack concurrently; a call of a sequential tool has a segment of its own.
struct Segment<'s> {
    alone: bool,
    calls: Vec<&'s mut CallState>,
}

/// Sends the calls of one response through the stack, with one list of tool definitions for all of them.
pub(super) struct Dispatcher<'a> {
    turn: &'a Turn,
    runner: PassRunner,
    definitions: BTreeMap<String, Arc<ToolDefinition>>,
}

impl<'a> Dispatcher<'a> {
    /// Uses the definitions that the model was shown, or lists the tools now. A response that is resumed may have calls of
    /// agents with names that a new one is refused with.
    pub(super) async fn new(
        turn: &'a Turn,
        shown: Option<Vec<ToolDefinition>>,
        resumes: bool,
    ) -> Result<Self, Error> {
        let definitions = match shown {
            Some(shown) => shown,
            None if resumes => turn.listed().await?,
            None => turn.definitions().await?,
        };
        let definitions =
            definitions.into_iter().map(|it| (it.name().to_owned(), Arc::new(it))).collect();
        let runner = PassRunner {
            tools: turn.tools.clone(),
            info: Arc::clone(&turn.info),
            error_outcome: Arc::clone(&turn.error_outcome),
            trace_args: turn.trace_args,
        };
        Ok(Self { turn, runner, definitions })
    }

    /// Makes all planned passes concurrently, with a barrier before and after each call of a sequential tool (rule T1).
    pub(super) async fn dispatch(&self, calls: &mut [CallState]) {
        let mut segments = self.segments(calls).into_iter().peekable();
        while let Some(segment) = segments.next() {
            let records = boxed(|| self.pass_together(segment.calls)).await;
            if segment.alone || segments.peek().is_some() {
                // A body may still run although its call has an outcome: blocking code whose future was dropped.
                join_all(records.iter().map(|record| record.idle())).await;
            }
        }
    }

    /// The planned passes, split before and after each call of a sequential tool.
    fn segments<'s>(&self, calls: &'s mut [CallState]) -> Vec<Segment<'s>> {
        let mut segments: Vec<Segment<'s>> = Vec::new();
        for call in calls.iter_mut().filter(|call| matches!(call.state, State::Planned(_))) {
            let alone = self.is_sequential(call);
            match segments.last_mut() {
                Some(last) if !alone && !last.alone => last.calls.push(call),
                _ => segments.push(Segment { alone, calls: vec![call] }),
            }
        }
        segments
    }

    /// Returns `true` if the calls of the tool are executed elsewhere, so that their arguments are not validated here.
    pub(super) fn is_external(&self, call: &CallState) -> bool {
        self.definition(call).is_some_and(|it| it.kind() == ToolKind::External)
    }

    /// The definition of a call's tool, if there is such a tool.
    pub(super) fn definition(&self, call: &CallState) -> Option<&Arc<ToolDefinition>> {
        self.definitions.get(call.call.name())
    }

    pub(super) fn is_agent(&self, call: &CallState) -> bool {
        self.definition(call).is_some_and(|definition| sub_agent(definition).is_some())
    }

    /// Returns `true` if there is an agent behind any tool of the turn.
    pub(super) fn has_agents(&self) -> bool {
        self.definitions.values().any(|definition| sub_agent(definition).is_some())
    }

    /// The number of times the model may retry a tool; `None` for a tool that does not set a number.
    pub(super) fn max_retries(&self) -> impl Fn(&str) -> Option<u32> {
        |tool| self.definitions.get(tool)?.max_retries()
    }

    fn is_sequential(&self, call: &CallState) -> bool {
        self.definition(call).is_some_and(|it| it.is_sequential())
    }

    /// Checks edited arguments against the tool. Arguments of a tool that does not exist any more, or that is executed
    /// elsewhere, are accepted.
    pub(super) fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        if args.are_too_deep() {
            return Err(ArgsError::too_deep().to_string());
        }
        self.definitions.get(tool).map_or(Ok(()), |definition| validate(definition, args))
    }

    async fn pass_together(&self, segment: Vec<&mut CallState>) -> Vec<Arc<CallRecord>> {
        let records = join_all(segment.into_iter().map(|call| self.pass(call))).await;
        records.into_iter().flatten().collect()
    }

    /// Makes the planned pass of a call, if there is one. Returns the call record, so that the caller can wait for a
    /// body that is still running.
    async fn pass(&self, call: &mut CallState) -> Option<Arc<CallRecord>> {
        let State::Planned(plan) = &call.state else { return None };
        let plan = plan.clone();
        let definition = Arc::clone(self.definitions.get(call.call.name())?);
        let agent = sub_agent(&definition);
        let (args, approval) = (plan.origin.clone(), plan.approval.clone());
        let begun = call.child.run.is_some();
        let start = Start { call: call.call.clone(), definition, args, approval, begun };
        // The result of the pass is taken apart in a block, so that the future has no room for it while the agent runs.
        let (record, delegated) = {
            let mut passed = boxed(|| self.runner.run(start)).await;
            let record = Arc::clone(&passed.record);
            let delegated = agent.zip(passed.delegated.take());
            if delegated.is_some() {
                call.remember(passed.questions);
                call.said.extend(passed.said);
                call.args = passed.args;
            } else {
                self.settle(call, &plan, passed);
            }
            (record, delegated)
        };
        if let Some((agent, inherited)) = delegated {
            boxed(|| self.run_agent(call, plan, &*agent, inherited)).await;
        }
        call.tell_result(&self.turn.watchers);
        // A limit on questions may still deny a pending call: its pass has ended when that is known.
        if call.pending().is_none() {
            self.turn.pass_ended(call);
        }
        Some(record)
    }

    /// Runs the agent behind a call, outside of the stack (rule T7).
    async fn run_agent(
        &self,
        call: &mut CallState,
        plan: PlannedPass,
        agent: &dyn SubAgent,
        inherited: Vec<Inherited>,
    ) {
        let turn = self.turn;
        let mut info = RunInfo::clone(&turn.info);
        info.path.push(call.call.name().to_owned());
        // The agent's own requests have moments of their own.
        info.read_before = None;
        let watchers = turn.watchers.of_agent(info.path.join("/"), call.call.id());
        let answers = call.child.answers.take().map(|answers| *answers).unwrap_or_default();
        if answers.is_empty() && call.child.run.as_ref().is_some_and(|run| run.waits()) {
            // This pass was made because the call itself was asked about again. The agent's own pending calls have no
            // answers yet.
            call.state = State::Delegated(plan);
            return;
        }
        let Some(max_nested_agents) = turn.max_nested_agents.checked_sub(1) else {
            let max = turn.info.path.len() - 1;
            (call.failed, call.state) = (Some(Error::AgentsTooDeep { max }), State::Planned(plan));
            return;
        };
        let task = SubAgentTask {
            info,
            args: call.args.clone(),
            inherited,
            resume: call.child.run.take().map(|run| (*run, answers)),
            watchers,
            auditors: turn.auditors.clone(),
            labels: turn.labels.clone(),
            durability: turn.durability.clone(),
            ask_limits: turn.ask_limits,
            trace_args: turn.trace_args,
            max_nested_agents,
        };
        call.execution = Execution::Unknown;
        let Ok(SubAgentResult { end, turns }) = catch_panic(|| agent.run(task)).await else {
            call.state = State::Broken("the agent panicked".into());
            return;
        };
        call.add_turns_of_agent(turns);
        call.state = match end {
            SubAgentEnd::Done(outcome) => {
                call.execution = Execution::Finished(outcome.clone());
                State::Settled(outcome)
            }
            SubAgentEnd::Suspended(run) => {
                call.child.run = Some(run);
                State::Delegated(plan)
            }
            SubAgentEnd::Failed(kind, run) => {
                (call.child.run, call.failed) = (Some(run), Some(kind));
                State::Delegated(plan)
            }
        };
    }

    /// Settles the planned calls of unknown tools, and those with arguments that do not fit, before anything runs and
    /// any person is asked. The model is told to try again (rule T5). An approved call whose tool is not there stays as it
    /// is, and is an error for the host (rule A1).
    pub(super) fn refuse_unfit(&self, calls: &mut [CallState]) {
        for call in calls {
            let State::Planned(plan) = &call.state else { continue };
            if plan.approval.is_some() && self.definition(call).is_none() {
                // A person has approved the call, and this process lacks its tool. Another one may have it.
                let (id, tool) = (call.call.id().to_owned(), call.call.name().to_owned());
                call.failed = Some(UserError::ApprovedToolMissing { id, tool }.into());
                continue;
            }
            if let Err(outcome) = self.enters(&call.call, plan) {
                call.settle_unrun(outcome);
            } else if call.child.run.is_some() && !self.is_agent(call) {
                let text =
                    "The agent had begun its work and was stopped: its tool is no agent any more.";
                call.state = State::Settled(Outcome::failed(text));
            } else {
                continue;
            }
            self.turn.pass_ended(call);
        }
    }

    fn enters(&self, call: &ToolCall, plan: &PlannedPass) -> Result<(), Outcome> {
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
        // Earlier versions stored calls with more levels of arguments; such a call runs as it was approved.
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

    fn settle(&self, call: &mut CallState, plan: &PlannedPass, passed: PassResult) {
        let deferrals = plan.deferrals + 1;
        let PassResult {
            end,
            questions,
            said,
            args,
            execution,
            denied_by,
            error,
            record,
            trace_parent,
            ..
        } = passed;
        call.remember(questions);
        call.said.extend(said);
        call.args = args;
        (call.denied_by, call.error) = (denied_by, error);
        let ran = execution.started();
        if execution.started() || !call.execution.started() {
            call.execution = execution;
        }
        call.state = match end {
            Err(error) => State::Broken(error),
            // Rule D7.
            Ok(Outcome::Deferred(_)) if deferrals > self.turn.max_deferrals => {
                let times = self.turn.max_deferrals;
                let text = format!("Denied: the call was deferred {times} times.");
                State::Settled(call.unrun(Outcome::denied(text)))
            }
            Ok(Outcome::Deferred(deferral)) => {
                call.remember_new(&deferral.questions);
                if deferral.questions.iter().any(is_about_repeating) {
                    call.execution = Execution::Unknown;
                }
                State::Pending(PendingCall {
                    asked_in: trace_parent,
                    ..self.pending(call, deferral, plan.origin.clone(), deferrals, &record)
                })
            }
            Ok(outcome) if ran => State::Settled(outcome),
            Ok(outcome) => State::Settled(call.unrun(outcome)),
        };
    }

    fn pending(
        &self,
        call: &CallState,
        deferral: Deferral,
        origin: Args,
        deferrals: u32,
        record: &CallRecord,
    ) -> PendingCall {
        let info = &self.turn.info;
        let address = CallAddress::new(&info.run_id, info.response, &info.path, call.call.id());
        let leaf = record.definition().leaf();
        let tool = leaf.map(|leaf| leaf.identity().to_owned()).unwrap_or_default();
        let pending =
            PendingCall::new(&address, tool, deferral, (origin, call.args.clone()), deferrals);
        let known = info.reads.as_ref().map(|_| record.context().origin().of_args(&call.args));
        PendingCall { origins: known.unwrap_or_default(), ..pending }
    }
}

fn validate(definition: &ToolDefinition, args: &Args) -> Result<(), String> {
    definition
        .leaf()
        .and_then(|leaf| leaf.validate.as_ref())
        .map_or(Ok(()), |validate| validate(args))
}
