//! An agent as a tool of another one (rule T7).

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Agent;
use super::result::RunOutput;
use super::run::Run;
use crate::args::Args;
use crate::call::{RunContext, RunInfo};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::{BoxError, Error};
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::outcome::Outcome;
use crate::toolset::Tool;
use crate::turn::{
    Durability, SubAgent, SubAgentEnd, SubAgentResult, SubAgentTask, SuspendedRun, Turn, behind,
    boxed,
};

/// The arguments of a sub-agent's tool.
#[derive(Deserialize, JsonSchema)]
struct Prompt {
    /// The task of the agent, with everything it has to know.
    prompt: String,
}

impl Agent {
    /// This agent as a tool of another one, which calls it with a `prompt` and gets its final answer.
    ///
    /// - The agent runs outside the stack around its tool, so that the parent's limits and timeouts neither wait for it
    ///   nor measure it. The layers decide about the call of the agent, but do not see its outcome.
    /// - Each call that the agent makes is decided by the agent's own layers and by every
    ///   [middleware](crate::ToolMiddleware) around its tool (their `before_tool_call`, under the called tool's own
    ///   name; [`RunContext::agent_path`] names the agent). So an agent can only have fewer permissions than its
    ///   parent.
    /// - The agent's pending calls are part of the parent's batch, as `root/cleaner/delete_file`, under an id made of
    ///   the ids of both calls. They are answered by the parent's handler, or when the parent's run is resumed. The
    ///   agent's own handler may deny calls, give results of calls that were executed elsewhere, or leave calls open;
    ///   calls that it approves are left open.
    /// - The agent's state is part of the parent's [`SuspendedRun`]: it resumes where it stopped, and nothing that ran
    ///   runs again.
    /// - The agent has the dependencies of the parent's run, unless it has one of the same type, and what it uses
    ///   counts towards the [limits](Agent::usage_limits) of its parents.
    ///
    /// ```
    /// use countersign::{Agent, FunctionToolset};
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{BoxError, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let cleaner = Agent::new(Polite, FunctionToolset::new());
    /// let tools = FunctionToolset::new().tool(cleaner.as_tool("cleaner", "Cleans up what it is told to"));
    /// let root = Agent::new(Polite, tools);
    /// # let _ = root;
    /// ```
    #[must_use]
    pub fn as_tool(&self, name: impl Into<Arc<str>>, description: impl Into<Arc<str>>) -> Tool {
        self.as_tool_fn(name, description, |_, args: Prompt| args.prompt)
    }

    /// This agent as a tool with arguments of type `A`; see [`as_tool`](Self::as_tool). The sync closure `(cx, args)`
    /// makes the prompt from the arguments; its context is that of the agent's run, with the dependencies of both.
    ///
    /// ```
    /// use countersign::{Agent, FunctionToolset, schemars};
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{BoxError, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Folder { path: String }
    ///
    /// let cleaner = Agent::new(Polite, FunctionToolset::new());
    /// let tool = cleaner.as_tool_fn("cleaner", "Cleans up a folder", |_cx, folder: Folder| {
    ///     format!("Delete the temporary files in {}", folder.path)
    /// });
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn as_tool_fn<A>(
        &self,
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        prompt: impl Fn(&RunContext, A) -> String + Send + Sync + 'static,
    ) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
    {
        let prompt = move |cx: &RunContext, args: &Args| Ok(prompt(cx, args.deserialize::<A>()?));
        let agent = AgentTool { agent: self.clone(), prompt: Box::new(prompt) };
        Tool::of_agent::<A>(name, description, behind(agent))
    }
}

type MakePrompt = dyn Fn(&RunContext, &Args) -> Result<String, String> + Send + Sync;

struct AgentTool {
    agent: Agent,
    prompt: Box<MakePrompt>,
}

impl AgentTool {
    fn turn(&self, task: &SubAgentTask) -> Turn {
        let deps = self.agent.deps.clone().over(&task.info.deps);
        let turn = self.agent.turn.clone().inside(task).with_deps(deps);
        turn.shared_handler(self.agent.handler.clone().map(|handler| {
            let narrowed: Arc<dyn ErasedHandler> = Arc::new(Narrowed(handler));
            narrowed
        }))
    }

    async fn work(&self, mut task: SubAgentTask) -> SubAgentResult {
        let turn = self.turn(&task);
        let (agent, output) = (&self.agent, self.agent.output.clone().or_deferred());
        let run = match task.resume.take() {
            Some((run, answers)) => {
                let waits = run.waits();
                Run::resume(agent, run, waits.then_some(answers))
            }
            None => match (self.prompt)(&turn.context(), &task.args) {
                Ok(prompt) => Run::prompt(agent, prompt),
                Err(problem) => {
                    let end = SubAgentEnd::Done(Outcome::retry(problem));
                    return SubAgentResult { end, turns: Vec::new() };
                }
            },
        };
        let run = run.output(output).watched_by(&task.watchers);
        let running = boxed(|| run.start_with(turn, Some(task.info.usage)).run_to_end());
        match running.await {
            Ok(result) => {
                let end = match result.output {
                    RunOutput::Text(text) => SubAgentEnd::Done(Outcome::returned(text)),
                    RunOutput::Structured(value) => SubAgentEnd::Done(Outcome::returned(value)),
                    RunOutput::Deferred(run) => SubAgentEnd::Suspended(run),
                };
                SubAgentResult { end, turns: result.turns }
            }
            Err(error) => {
                let (kind, run, turns) = error.into_parts();
                SubAgentResult { end: SubAgentEnd::Failed(kind, Box::new(run)), turns }
            }
        }
    }
}

impl SubAgent for AgentTool {
    fn run(&self, task: SubAgentTask) -> BoxFuture<'_, SubAgentResult> {
        Box::pin(self.work(task))
    }

    fn check<'a>(
        &'a self,
        info: RunInfo,
        durability: Option<Arc<dyn Durability>>,
        run: &'a SuspendedRun,
        answers: &'a DeferredToolResults,
    ) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            let Some(suspended) = run.turn().cloned() else { return Ok(()) };
            let deps = self.agent.deps.clone().over(&info.deps);
            let turn = self.agent.turn.clone().with_deps(deps);
            let turn = match durability.filter(|_| turn.durability().is_none()) {
                Some(durability) => turn.durable(durability),
                None => turn,
            };
            turn.check(suspended, answers).await
        })
    }
}

/// The handler of a sub-agent: calls that it approves are left to the parent's handler.
struct Narrowed(Arc<dyn ErasedHandler>);

impl DeferredToolHandler for Narrowed {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        self.0.name()
    }

    fn counts_people(&self) -> bool {
        self.0.counts_people()
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Ok(self.0.handle(cx, requests).await?.leave_approved())
    }
}

impl fmt::Debug for AgentTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentTool").field(&self.agent).finish()
    }
}
