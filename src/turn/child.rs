//! Agents behind tools: how a turn runs them, outside of the stack (rule T7).

use std::sync::Arc;

use futures::future::BoxFuture;

use super::SuspendedRun;
use super::asks::AskLimits;
use super::closing::Closing;
use super::event::Watchers;
use super::report::TurnReport;
use crate::args::Args;
use crate::call::{Behind, Inherited, RunInfo, ToolDefinition};
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::ledger::Ledger;
use crate::outcome::Outcome;

/// What joins the id of a call and the ids of the calls of the agent behind it. Ids with it are replaced where a
/// response enters, so that ids of siblings never collide.
pub(crate) const JOINT: char = '/';

/// How many levels of agents may be below a turn, unless it says otherwise.
pub(super) const MAX_NESTED: u32 = 16;

/// An agent behind a tool.
pub(crate) trait SubAgent: Send + Sync {
    /// Runs the agent until it is done, waits for answers, or fails.
    fn run(&self, task: Task) -> BoxFuture<'_, Ended>;

    /// Checks answers to what the agent waits for, as far as its tools have a say in it.
    fn check<'a>(
        &'a self,
        info: RunInfo,
        ledger: Option<Ledger>,
        run: &'a SuspendedRun,
        answers: &'a DeferredToolResults,
    ) -> BoxFuture<'a, Result<(), ErrorKind>>;
}

/// The agent, as it is kept at its leaf.
pub(crate) fn behind(agent: impl SubAgent + 'static) -> Behind {
    let agent: Arc<dyn SubAgent> = Arc::new(agent);
    Arc::new(agent)
}

/// The agent behind a tool, if there is one.
pub(super) fn sub_agent(definition: &ToolDefinition) -> Option<Arc<dyn SubAgent>> {
    definition.leaf()?.behind.as_ref()?.downcast_ref().cloned()
}

/// What an agent is to do.
pub(crate) struct Task {
    /// What is known about the parent's run. The path is the agent's own.
    pub(crate) info: RunInfo,
    /// The arguments of the parent's call.
    pub(crate) args: Args,
    /// The decisions of the layers around the agent, outermost first.
    pub(crate) inherited: Vec<Inherited>,
    /// Where it stopped, and the answers to what it waits for.
    pub(crate) resume: Option<(SuspendedRun, DeferredToolResults)>,
    pub(crate) watchers: Watchers,
    pub(crate) ledger: Option<Ledger>,
    /// What is closed with the parent's run.
    pub(crate) closing: Option<Closing>,
    /// How often, and about how many calls, the parent may ask.
    pub(crate) ask_limits: AskLimits,
    /// Argument values may be put into spans.
    pub(crate) trace_args: bool,
    /// How many levels of agents may be below it.
    pub(crate) max_nested_agents: u32,
}

/// What an agent came to.
pub(crate) struct Ended {
    pub(crate) end: End,
    /// What became of its calls, response by response.
    pub(crate) turns: Vec<TurnReport>,
}

pub(crate) enum End {
    /// It is done.
    Done(Outcome),
    /// It waits for answers.
    Suspended(Box<SuspendedRun>),
    /// It cannot go on now.
    Failed(ErrorKind, Box<SuspendedRun>),
}

/// An agent behind a call, and where it stands.
#[derive(Default)]
pub(super) struct Child {
    pub(super) run: Option<Box<SuspendedRun>>,
    /// The answers for its next step.
    pub(super) answers: DeferredToolResults,
    pub(super) turns: Vec<TurnReport>,
}

/// The ids of the calls of an agent, as the parent's batch has them, begin with this.
pub(super) fn prefix(id: &str) -> String {
    format!("{id}{JOINT}")
}
