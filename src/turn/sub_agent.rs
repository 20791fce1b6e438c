//! Agents behind tools: how a turn runs them, outside of the stack (rule T7).

use std::sync::Arc;

use futures::future::BoxFuture;

use super::durability::Durability;
use super::event::Watchers;
use super::limits::AskLimits;
use super::report::TurnReport;
use super::snapshot::SuspendedRun;
use crate::args::Args;
use crate::call::{Behind, Inherited, RunInfo, ToolDefinition};
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::outcome::Outcome;

/// An agent behind a tool.
pub(crate) trait SubAgent: Send + Sync {
    /// Runs the agent until it is done, needs answers, or fails.
    fn run(&self, task: SubAgentTask) -> BoxFuture<'_, SubAgentResult>;

    /// Checks answers to the agent's pending calls, as far as its tools have a say in it.
    fn check<'a>(
        &'a self,
        info: RunInfo,
        durability: Option<Arc<dyn Durability>>,
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
pub(crate) struct SubAgentTask {
    /// What is known about the parent's run. The path is the agent's own.
    pub(crate) info: RunInfo,
    /// The arguments of the parent's call.
    pub(crate) args: Args,
    /// The decisions of the layers around the agent, outermost first.
    pub(crate) inherited: Vec<Inherited>,
    /// Where it stopped, and the answers to its pending calls.
    pub(crate) resume: Option<(SuspendedRun, DeferredToolResults)>,
    pub(crate) watchers: Watchers,
    pub(crate) durability: Option<Arc<dyn Durability>>,
    /// How often, and about how many calls, the parent may ask.
    pub(crate) ask_limits: AskLimits,
    /// Argument values may be put into spans.
    pub(crate) trace_args: bool,
    /// How many levels of agents may be below it.
    pub(crate) max_nested_agents: u32,
}

/// How the work of an agent ended, for now or for good.
pub(crate) struct SubAgentResult {
    pub(crate) end: SubAgentEnd,
    /// The reports on its calls, response by response.
    pub(crate) turns: Vec<TurnReport>,
}

pub(crate) enum SubAgentEnd {
    /// It is done.
    Done(Outcome),
    /// It needs answers.
    Suspended(Box<SuspendedRun>),
    /// It cannot go on now.
    Failed(ErrorKind, Box<SuspendedRun>),
}
