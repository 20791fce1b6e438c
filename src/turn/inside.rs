//! What an agent sets on its turns, and a sub-agent on top of it.

use std::sync::Arc;

use super::child::Task;
use super::closing::Closing;
use super::event::Watchers;
use super::retries::Retries;
use super::slot::Slot;
use super::suspended::SuspendedTurn;
use super::{FinalAnswer, Turn, boxed, resolve};
use crate::call::{AskHistory, Extensions, Meter, RunInfo, ToolCall};
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::handler::ErasedHandler;
use crate::layer::MiddlewareLayer;
use crate::ledger::Ledger;
use crate::middleware::Ancestor;
use crate::outcome::Outcome;
use crate::tools::ToolsExt as _;

impl Turn {
    pub(crate) fn shared_handler(mut self, handler: Option<Arc<dyn ErasedHandler>>) -> Self {
        self.handler = handler;
        self
    }

    pub(crate) fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = Some(retries);
        self
    }

    /// Whether it is no sub-agent's.
    pub(crate) fn is_root(&self) -> bool {
        self.info.path.len() <= 1
    }

    pub(crate) fn get_ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    pub(crate) fn get_closing(&self) -> Option<&Closing> {
        self.closing.as_ref()
    }

    pub(crate) fn has_handler(&self) -> bool {
        self.handler.is_some()
    }

    /// The handler, as errors name it.
    pub(crate) fn named_handler(&self) -> Option<String> {
        let handler = self.handler.as_ref()?;
        Some(format!("handler `{}`", handler.name().escape_debug()))
    }

    /// The run may not end with calls that wait: nothing is applied of answers that leave one.
    pub(crate) fn answering_all(mut self, answers_all: bool) -> Self {
        self.answers_all = answers_all;
        self
    }

    /// How many levels of [agents](crate::Agent::as_tool) may be below this turn; 16 by default (rule T10). A call that
    /// would go deeper ends the response with [`ErrorKind::AgentsTooDeep`], when its siblings have settled; resumed under a
    /// higher limit, it goes on. An agent cannot raise the limit of the agents above it.
    ///
    /// 16 levels fit on the stack of a thread of 2 MiB, as tokio's are, without optimisations too. Give the threads more
    /// before you allow many more levels.
    pub fn max_nested_agents(mut self, max: u32) -> Self {
        self.max_nested_agents = max;
        self
    }

    /// A final answer came beside the calls: as long as it stands, what would wait is not executed, and nobody is
    /// asked.
    pub(crate) fn beside(mut self, answer: FinalAnswer) -> Self {
        self.final_answer = Some(answer);
        self
    }

    /// A response of this turn that nobody has decided about yet, with the outcomes that are known.
    pub(crate) fn undecided(
        &self,
        calls: impl IntoIterator<Item = (ToolCall, Option<Outcome>)>,
    ) -> SuspendedTurn {
        let slots: Vec<_> =
            calls.into_iter().map(|(call, outcome)| Slot::of(call, outcome)).collect();
        SuspendedTurn::new(&self.info, &slots)
    }

    /// The turn of a sub-agent: in the parent's run, and inside of the layers around it (rule T7).
    pub(crate) fn inside(mut self, task: &Task) -> Self {
        let explain = self.info.explain || task.info.explain;
        let tool_errors_end_run = self.info.tool_errors_end_run || task.info.tool_errors_end_run;
        self.info = RunInfo { explain, tool_errors_end_run, ..task.info.clone() };
        self.trace_args |= task.trace_args;
        self.max_nested_agents = self.max_nested_agents.min(task.max_nested_agents);
        self.ask_limits = self.ask_limits.within(task.ask_limits);
        // Of a ledger of its own and its parent's, its own is the one that it is written down in.
        let shared = |own: &Ledger| task.ledger.as_ref().is_some_and(|it| it.is_beside(own));
        self.closing = task.closing.clone().filter(|_| self.ledger.as_ref().is_none_or(shared));
        if let Some(ledger) = self.ledger.take().or_else(|| task.ledger.clone()) {
            self = self.ledger(ledger);
        }
        for layer in task.inherited.iter().rev() {
            self.tools = self.tools.layered(MiddlewareLayer::new(Ancestor(layer.clone())));
        }
        self
    }

    /// Checks answers to what waits, without applying them.
    pub(crate) async fn check(
        &self,
        suspended: SuspendedTurn,
        answers: &DeferredToolResults,
    ) -> Result<(), ErrorKind> {
        let turn = self.taking_up(&suspended);
        let resolving = boxed(|| resolve::Resolving::from_suspended(&turn, suspended)).await;
        let resolving = resolving.map_err(|error| error.into_parts().0)?;
        let requests = resolving.requests();
        boxed(|| resolving.check_answers(&requests, answers)).await
    }

    /// In the run of this history.
    pub(crate) fn with_asks(mut self, asks: AskHistory) -> Self {
        self.info.asks = Some(asks);
        self
    }

    pub(crate) fn get_asks(&self) -> Option<&AskHistory> {
        self.info.asks.as_ref()
    }

    pub(crate) fn with_usage(mut self, usage: Arc<Meter>) -> Self {
        self.info.usage = usage;
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
        self.info.deps = deps;
        self
    }
}
