//! The settings of a turn that an agent makes, and those that a parent makes on the turns of a sub-agent.

use std::sync::Arc;

use super::config::{FinalAnswer, Turn};
use super::durability::Durability;
use super::event::Watchers;
use super::retries::Retries;
use super::snapshot::SuspendedTurn;
use super::sub_agent::SubAgentTask;
use crate::call::{AskHistory, Extensions, Journal, Meter, RunContext, RunInfo};
use crate::handler::ErasedHandler;
use crate::layer::MiddlewareLayer;
use crate::middleware::Ancestor;
use crate::tools::ToolsExt as _;

impl Turn {
    /// Records pending calls, answers and executions in this durable store.
    pub(crate) fn durable(mut self, durability: Arc<dyn Durability>) -> Self {
        let journal: Arc<dyn Journal> = Arc::clone(&durability) as _;
        Arc::make_mut(&mut self.info).journal = Some(journal);
        self.durability = Some(durability);
        self
    }

    pub(crate) fn durability(&self) -> Option<&Arc<dyn Durability>> {
        self.durability.as_ref()
    }

    /// Leaves the asks that are to be closed in the reports: the code that saves the run closes them, in the same
    /// transaction (rule L5).
    pub(crate) fn closing_later(mut self) -> Self {
        self.closes_later = true;
        self
    }

    pub(crate) fn shared_handler(mut self, handler: Option<Arc<dyn ErasedHandler>>) -> Self {
        self.handler = handler;
        self
    }

    pub(crate) fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Whether this is the turn of the run's own agent, and not of a sub-agent.
    pub(crate) fn is_root(&self) -> bool {
        self.info.path.len() <= 1
    }

    /// The names of the agents from the root to this turn's own.
    pub(crate) fn agent_path(&self) -> &[String] {
        &self.info.path
    }

    pub(crate) fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// The name of the handler, as errors quote it.
    pub(crate) fn named_handler(&self) -> Option<String> {
        let handler = self.handler.as_ref()?;
        Some(format!("handler `{}`", handler.name().escape_debug()))
    }

    /// Sets whether every call has to be answered, as the run may not end with pending calls. If so, the handler's
    /// answers are refused as a whole when they leave a call.
    pub(crate) fn answering_all(mut self, answers_all: bool) -> Self {
        self.answers_all = answers_all;
        self
    }

    /// How many levels of [agents](crate::Agent::as_tool) may be below this turn; 16 by default (rule T10). A call
    /// that would go deeper ends the response with [`Error::AgentsTooDeep`](crate::Error::AgentsTooDeep),
    /// after the other calls have settled. The response can be resumed under a higher limit. An agent cannot raise
    /// the limit of the agents above it.
    ///
    /// 16 levels fit on a thread's stack of 2 MiB, the default of tokio, also without optimisations. Give the threads
    /// larger stacks before you allow many more levels.
    pub fn max_nested_agents(mut self, max: u32) -> Self {
        self.max_nested_agents = max;
        self
    }

    /// Sets the final answer that the response has besides the calls. Unless the answer is void, calls that defer are
    /// skipped: they are not executed, and no person is asked about them.
    pub(crate) fn beside(mut self, answer: FinalAnswer) -> Self {
        self.final_answer = Some(answer);
        self
    }

    /// Makes this the turn of a sub-agent: in the parent's run, and inside of the layers around the agent (rule T7).
    pub(crate) fn inside(mut self, task: &SubAgentTask) -> Self {
        let explain = self.info.explain || task.info.explain;
        let tool_errors_end_run = self.info.tool_errors_end_run || task.info.tool_errors_end_run;
        self.info = Arc::new(RunInfo { explain, tool_errors_end_run, ..task.info.clone() });
        self.trace_args |= task.trace_args;
        self.max_nested_agents = self.max_nested_agents.min(task.max_nested_agents);
        self.ask_limits = self.ask_limits.within(task.ask_limits);
        // An agent with a durable store of its own records its asks there, not in the parent's. The parent closes them
        // with its own only if both are the same store, as one transaction cannot span two.
        let shared = |own: &Arc<dyn Durability>| {
            task.durability.as_ref().is_some_and(|parents| own.is_beside(&**parents))
        };
        self.closes_later = self.durability.as_ref().is_none_or(shared);
        if let Some(durability) = self.durability.take().or_else(|| task.durability.clone()) {
            self = self.durable(durability);
        }
        for layer in task.inherited.iter().rev() {
            self.tools = self.tools.layered(MiddlewareLayer::new(Ancestor(layer.clone())));
        }
        self
    }

    /// Sets the history of the run's questions to people.
    pub(crate) fn with_asks(mut self, asks: AskHistory) -> Self {
        Arc::make_mut(&mut self.info).asks = Some(asks);
        self
    }

    pub(crate) fn own_ask_history(&self) -> Option<&AskHistory> {
        self.info.asks.as_ref()
    }

    pub(crate) fn with_usage(mut self, usage: Arc<Meter>) -> Self {
        Arc::make_mut(&mut self.info).usage = usage;
        self
    }

    pub(crate) fn watched_by(mut self, watchers: Watchers) -> Self {
        self.watchers = watchers;
        self
    }

    pub(crate) fn watchers(&self) -> &Watchers {
        &self.watchers
    }

    pub(crate) fn with_deps(mut self, deps: Extensions) -> Self {
        Arc::make_mut(&mut self.info).deps = deps;
        self
    }

    /// Prepares the ask history for a new response, or for a suspended one that is resumed. Only the root's turn sets
    /// the number of pending calls, as that number counts the whole run.
    pub(super) fn begins_asking(&mut self, suspended: Option<&SuspendedTurn>) {
        let root = self.is_root();
        let asks = Arc::make_mut(&mut self.info).asks.get_or_insert_default();
        if let Some(suspended) = suspended {
            asks.extend(suspended.denied());
        }
        if root {
            asks.set_pending(suspended.map_or(0, |it| it.requests().iter().count()));
        }
    }

    /// The same turn, in the run and response of the suspended one.
    pub(super) fn taking_up(&self, suspended: &SuspendedTurn) -> Self {
        let mut turn = self.clone();
        let info = Arc::make_mut(&mut turn.info);
        info.run_id = suspended.run_id().to_owned();
        info.response = suspended.response();
        info.path = suspended.path().to_vec();
        turn.begins_asking(Some(suspended));
        turn
    }

    /// The context of the run, for code that runs outside of any call.
    pub(crate) fn context(&self) -> RunContext {
        RunContext::of_run(Arc::clone(&self.info))
    }
}
