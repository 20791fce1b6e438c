//! The interface through which a turn runs the agent behind a tool, outside of the stack (rule T7).
//!
//! The turn runs an agent without knowing the type: the definition of its tool holds an opaque value, which only this
//! module looks into. That keeps the agent loop above the turn, while a turn can still run one.
//!
//! The interface is one step, not a conversation: run until the end, a suspension or an error. A suspended agent is
//! resumed by another call with its snapshot, which may happen in another process, so that nothing of an agent stays in
//! memory between.

use std::sync::Arc;

use futures::future::BoxFuture;

use super::audit::Auditors;
use super::durability::Durability;
use super::event::Watchers;
use super::limits::AskLimits;
use super::reading::Labels;
use super::report::TurnReport;
use super::snapshot::SuspendedRun;
use crate::args::Args;
use crate::call::{Behind, Inherited, RunInfo, ToolDefinition};
use crate::deferred::DeferredToolResults;
use crate::error::Error;
use crate::outcome::Outcome;

/// An agent behind a tool.
pub(crate) trait SubAgent: Send + Sync {
    /// Runs the agent until it has ended, is suspended with pending calls, or fails.
    fn run(&self, task: SubAgentTask) -> BoxFuture<'_, SubAgentResult>;

    /// Checks answers to the agent's pending calls against the agent's own tools, such as edited arguments.
    fn check<'a>(
        &'a self,
        info: RunInfo,
        durability: Option<Arc<dyn Durability>>,
        run: &'a SuspendedRun,
        answers: &'a DeferredToolResults,
    ) -> BoxFuture<'a, Result<(), Error>>;
}

/// Wraps an agent for the definition of its tool, which does not know the type.
pub(crate) fn behind(agent: impl SubAgent + 'static) -> Behind {
    let agent: Arc<dyn SubAgent> = Arc::new(agent);
    Arc::new(agent)
}

/// The agent behind a tool, if there is one.
pub(super) fn sub_agent(definition: &ToolDefinition) -> Option<Arc<dyn SubAgent>> {
    definition.leaf()?.behind.as_ref()?.downcast_ref().cloned()
}

/// The input of a sub-agent's run.
pub(crate) struct SubAgentTask {
    /// The data of the parent's run, with the path of the agent.
    pub(crate) info: RunInfo,
    /// The arguments of the parent's call.
    pub(crate) args: Args,
    /// The decisions of the layers around the agent, outermost first.
    pub(crate) inherited: Vec<Inherited>,
    /// The snapshot to resume from, and the answers to the agent's pending calls; `None` for a new run.
    pub(crate) resume: Option<(SuspendedRun, DeferredToolResults)>,
    pub(crate) watchers: Watchers,
    /// The parent's functions for the ends of passes.
    pub(super) auditors: Auditors,
    /// The functions of the parent that label results.
    pub(super) labels: Labels,
    pub(crate) durability: Option<Arc<dyn Durability>>,
    /// The parent's limits on questions to people.
    pub(crate) ask_limits: AskLimits,
    /// `true` if the parent puts argument values into spans.
    pub(crate) trace_args: bool,
    /// The number of levels of agents that may be below this one.
    pub(crate) max_nested_agents: u32,
}

/// The result of running a sub-agent until its end or its suspension.
pub(crate) struct SubAgentResult {
    pub(crate) end: SubAgentEnd,
    /// The reports of the agent's turns, one for each response with calls.
    pub(crate) turns: Vec<TurnReport>,
}

pub(crate) enum SubAgentEnd {
    /// The agent has ended, with this outcome of the call.
    Done(Outcome),
    /// The agent is suspended with pending calls.
    Suspended(Box<SuspendedRun>),
    /// The agent was stopped by an error, and can be resumed from the snapshot.
    Failed(Error, Box<SuspendedRun>),
}
