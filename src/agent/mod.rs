//! The agent loop around [`Turn`]: send the history to the model, run the calls of its response, send it their results,
//! until a response is the final answer or the run is suspended.
//!
//! ```
//! use countersign::model::ModelResponse;
//! use countersign::testing::ScriptedModel;
//! use countersign::{Agent, FunctionToolset};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let agent = Agent::new(ScriptedModel::new([ModelResponse::text("Hello!")]), FunctionToolset::new());
//! assert_eq!(agent.run("Hi").await?.text(), Some("Hello!"));
//! # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
//! ```

mod blocking;
mod history;
mod iter;
mod model_step;
mod output;
mod reading;
mod result;
mod run;
mod run_loop;
mod stored_run;
mod stream;
mod sub_agent;

use std::fmt;
use std::sync::Arc;

pub use iter::{RunIter, RunStep};
pub use output::{Output, structured, text};
pub use result::{RunError, RunOutput, RunResult};
pub use run::Run;
pub use stored_run::TakeUp;
pub use stream::{RunStream, RunStreamSync};

use crate::call::{Extensions, RunContext, ToolCall, UsageLimits};
use crate::deferred::DeferredToolResults;
use crate::error::Error;
use crate::handler::{DeferredToolHandler, ErasedHandler, deny_blocked};
use crate::ledger::{AskRecord, Ledger};
use crate::model::{ErasedModel, Model};
use crate::tools::Tools;
use crate::turn::{PassEnd, RunEvent, SuspendedRun, Turn};

/// The default of [`Agent::max_retries`].
const MAX_RETRIES: u32 = 1;

/// A model, its tools, and the handler that decides about deferred calls.
///
/// ```
/// use countersign::handler::danger_approve_all;
/// use countersign::model::{ModelRequest, ModelResponse};
/// use countersign::{Agent, BoxError, FunctionToolset, Model};
///
/// struct Polite;
///
/// impl Model for Polite {
///     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
///         Ok(ModelResponse::text("How do you do?"))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let agent = Agent::new(Polite, FunctionToolset::new()).deferred_tool_handler(danger_approve_all());
/// let run = agent.run("Hello").await?;
/// assert_eq!(run.text(), Some("How do you do?"));
/// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "an agent does nothing until it runs"]
pub struct Agent {
    model: Arc<dyn ErasedModel>,
    turn: Turn,
    instructions: Option<Arc<str>>,
    handler: Option<Arc<dyn ErasedHandler>>,
    deps: Extensions,
    output: Output,
    max_retries: u32,
    limits: UsageLimits,
    tell_edits: bool,
    records_origins: bool,
}

impl Agent {
    /// Creates an agent without instructions or a handler, whose runs end with text.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    /// assert_eq!(agent.run_sync("Hello")?.text(), Some("Done."));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    pub fn new(model: impl Model, tools: impl Into<Tools>) -> Self {
        Self {
            model: Arc::new(model),
            turn: Turn::new(tools),
            instructions: None,
            handler: None,
            deps: Extensions::default(),
            output: text(),
            max_retries: MAX_RETRIES,
            limits: UsageLimits::new(),
            tell_edits: true,
            records_origins: false,
        }
    }

    /// Sets the instructions, which we send with every request.
    ///
    /// The instructions are not in the history. If you resume a run with other instructions, it follows
    /// those.
    ///
    /// ```
    /// use countersign::model::{ModelRequest, ModelResponse};
    /// use countersign::{Agent, BoxError, FunctionToolset, Model};
    ///
    /// struct Echo;
    ///
    /// impl Model for Echo {
    ///     async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
    ///         Ok(ModelResponse::text(request.instructions().unwrap_or_default()))
    ///     }
    /// }
    ///
    /// let agent = Agent::new(Echo, FunctionToolset::new()).instructions("Answer in one word.");
    /// let run = agent.run_sync("Hello")?;
    /// assert_eq!((run.text(), run.history().len()), (Some("Answer in one word."), 2));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    pub fn instructions(mut self, instructions: impl Into<Arc<str>>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Records what each run reads, so that layers and people learn where the values of its calls come from (rule O2). The
    /// record is shared with sub-agents, and stored with the run. [`Run::user_said`] says what a person typed, and
    /// [`Tool::reads`](crate::toolset::Tool::reads) how the results of a tool are labelled.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new()).record_origins();
    /// assert!(agent.run("Hello").await?.reads().is_some());
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn record_origins(mut self) -> Self {
        self.records_origins = true;
        self
    }

    /// Adds a function that says how the results of a tool are labelled, beside what its definition says
    /// ([`Turn::labelled`](crate::Turn::labelled)).
    pub fn labelled(
        mut self,
        label: impl Fn(&crate::call::ToolDefinition) -> Option<crate::origin::ReadLabel>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.turn = self.turn.labelled(label);
        self
    }

    /// Sets the handler that answers deferred calls inline. A run can replace it with [`Run::deferred_tool_handler`].
    pub fn deferred_tool_handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Adds a dependency for every run. Hooks, predicates, handlers and tool bodies find it by its type.
    ///
    /// There is one value for each type: a second one of the same type takes its place. Use a type of your own
    /// (`struct Db(Pool)`), and it cannot collide with one of a library.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// struct Tenant(&'static str);
    ///
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new()).deps(Tenant("acme"));
    /// # let _ = agent;
    /// ```
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.deps.insert(value);
        self
    }

    /// Sets what a run may end with. `text().or_deferred()` lets it end with deferred calls; otherwise deferred calls
    /// that are not answered are an error.
    pub fn output(mut self, output: Output) -> Self {
        self.output = output;
        self
    }

    /// Sets how often the model may retry one tool within one run, unless the tool or its toolset sets a [limit of its
    /// own](crate::toolset::Tool::max_retries); 1 by default. The failure after that ends the run with
    /// [`Error::ModelBehavior`] about the call. If the call itself is unusable, the run ends before any call of the
    /// response runs. Otherwise it ends after the other calls of the response have settled, and before the handler is
    /// asked. The error has a snapshot of the run, as every error does (rule T9). If you resume from it, the run has
    /// its whole budget again.
    ///
    /// A failure is a call that the model is told to make differently: invalid arguments, an unknown tool, or a
    /// [`ModelRetry`](crate::outcome::ModelRetry) of the tool. Several failures in one response count once per tool, as none of
    /// them is a retry of another. After a success the tool has its whole budget again. Denials, calls that fail for
    /// good, deferrals, and results of calls that were executed elsewhere do not count.
    pub fn max_retries(mut self, max: u32) -> Self {
        self.max_retries = max;
        self
    }

    /// Limits what a run and its sub-agents may use. A call beyond the limit is not executed; the run ends with
    /// [`Error::UsageLimit`] after the other calls of the response have settled, and can be resumed.
    ///
    /// ```
    /// use countersign::error::ErrorKind;
    /// use countersign::testing::ScriptedModel;
    /// use countersign::call::UsageLimits;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new()).usage_limits(UsageLimits::new().requests(0));
    /// let error = agent.run_sync("Hello").err().map(|error| error.kind());
    /// assert_eq!(error, Some(ErrorKind::UsageLimit));
    /// ```
    pub fn usage_limits(mut self, limits: UsageLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many levels of agents may be below this one; 16 by default (rule T10). See [`Turn::max_nested_agents`].
    pub fn max_nested_agents(self, max: u32) -> Self {
        self.turns(|turn| turn.max_nested_agents(max))
    }

    /// Configures the turns of this agent: how errors become outcomes, whether layers are explained, and so on.
    ///
    /// ```
    /// # use countersign::{Agent, Turn};
    /// # fn example(agent: Agent) -> Agent {
    /// agent.turns(Turn::explain)
    /// # }
    /// ```
    pub fn turns(mut self, set: impl FnOnce(Turn) -> Turn) -> Self {
        self.turn = set(self.turn);
        self
    }

    /// Sets how often a person may deny the same call in one run, of this agent and its sub-agents, before it is denied
    /// without asking; 3 by default. See [`Turn::max_repeats`].
    pub fn max_repeats(self, times: u32) -> Self {
        self.turns(|turn| turn.max_repeats(times))
    }

    /// Sets how many calls of one run, of this agent and its sub-agents, may be pending at the same time; 1 000 by
    /// default. See [`Turn::max_pending`].
    pub fn max_pending(self, calls: u32) -> Self {
        self.turns(|turn| turn.max_pending(calls))
    }

    /// Adds a function that is called at the end of every pass of every call, of this agent and its sub-agents; see
    /// [`Turn::audit`].
    pub fn audit(self, audit: impl Fn(&RunContext, &PassEnd<'_>) + Send + Sync + 'static) -> Self {
        self.turns(|turn| turn.audit(audit))
    }

    /// Lets every error of a tool end the run, as PydanticAI does; see [`Turn::tool_errors_end_run`].
    pub fn tool_errors_end_run(self) -> Self {
        self.turns(Turn::tool_errors_end_run)
    }

    /// Records pending calls and executions in a ledger, across processes and crashes; see [`Turn::ledger`]. Sub-agents
    /// use the same ledger, unless they have one of their own.
    pub fn ledger(self, ledger: Ledger) -> Self {
        self.turns(|turn| turn.ledger(ledger))
    }

    /// The [ledger](Self::ledger) of the agent, if it has one.
    ///
    /// ```
    /// use countersign::ledger::{Ledger, MemoryStore};
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    /// assert!(agent.configured_ledger().is_none());
    /// assert!(agent.ledger(Ledger::new(MemoryStore::new())).configured_ledger().is_some());
    /// ```
    #[must_use]
    pub fn configured_ledger(&self) -> Option<&Ledger> {
        self.turn.configured_ledger()
    }

    /// Records answers as decisions in the ledger, without resuming the run; see [`Turn::decide`].
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails; some of the answers may be recorded.
    pub async fn decide(
        &self,
        suspended: &SuspendedRun,
        answers: DeferredToolResults,
    ) -> Result<(), Error> {
        match suspended.turn() {
            Some(turn) => self.turn.decide(turn, answers).await,
            None => Ok(()),
        }
    }

    /// The decisions that the ledger has about the pending calls of a suspended run, as answers to
    /// [resume](Self::resume) it with; see [`Turn::decisions`].
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails.
    pub async fn decisions(&self, suspended: &SuspendedRun) -> Result<DeferredToolResults, Error> {
        match suspended.turn() {
            Some(turn) => self.turn.decisions(turn).await,
            None => Ok(DeferredToolResults::new()),
        }
    }

    /// The ledger's asks about the pending calls of a run, those of sub-agents included, with the ids of the calls; see
    /// [`Turn::asks`].
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger fails.
    pub async fn asks(&self, suspended: &SuspendedRun) -> Result<Vec<(String, AskRecord)>, Error> {
        match suspended.turn() {
            Some(turn) => self.turn.asks(turn).await,
            None => Ok(Vec::new()),
        }
    }

    /// Sets whether the model is told, in a note with the changed arguments, that a person has changed the arguments of a
    /// call. By default it is told, as it may try the original again otherwise. The history keeps what the model sent either
    /// way (rule A2).
    pub fn tell_edits(mut self, tell: bool) -> Self {
        self.tell_edits = tell;
        self
    }

    /// Adds a watcher of every run, called with each event as it happens. [`Run::watch`] adds one to a single run.
    ///
    /// The run waits for the watcher, which we call on the task of the run. Send the event somewhere else, and do
    /// not block. A watcher decides nothing.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// let events = Arc::new(AtomicUsize::new(0));
    /// let seen = Arc::clone(&events);
    /// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new())
    ///     .watch(move |_| { seen.fetch_add(1, Ordering::Relaxed); });
    /// agent.run_sync("Hello")?;
    /// assert!(events.load(Ordering::Relaxed) > 0);
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.turn = self.turn.watch(watch);
        self
    }

    /// Builds a run with a prompt, which starts when it is awaited. See [`Run`] for its settings and the other ways to
    /// run it.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let run = agent.run("Hello").await?;
    /// assert_eq!(run.text(), Some("Hi"));
    /// let run = agent.run("And now?").history(run.history().to_vec()).await?;
    /// assert_eq!(run.history().len(), 4);
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn run(&self, prompt: impl Into<String>) -> Run<'_> {
        Run::prompt(self, prompt.into())
    }

    /// Runs to the end, blocking this thread: `run(prompt).sync()`.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// assert_eq!(agent.run_sync("Hello")?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Run::sync`].
    pub fn run_sync(&self, prompt: impl Into<String>) -> Result<RunResult, RunError> {
        self.run(prompt).sync()
    }

    /// Streams the events of a run up to the first answer: `run(prompt).stream()`. See [`Run::stream`].
    ///
    /// ```
    /// use futures::StreamExt as _;
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut stream = agent.run_stream("Hello");
    /// while let Some(event) = stream.next().await {
    ///     println!("{event:?}");
    /// }
    /// assert_eq!(stream.finish().await?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn run_stream(&self, prompt: impl Into<String>) -> RunStream<'_> {
        self.run(prompt).stream()
    }

    /// Streams the events as an iterator that blocks this thread: `run(prompt).stream_sync()`.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut stream = agent.run_stream_sync("Hello")?;
    /// for event in &mut stream {
    ///     println!("{event:?}");
    /// }
    /// assert_eq!(stream.finish()?.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Run::stream_sync`].
    pub fn run_stream_sync(
        &self,
        prompt: impl Into<String>,
    ) -> Result<RunStreamSync<'_>, RunError> {
        self.run(prompt).stream_sync()
    }

    /// Runs step by step: `run(prompt).iter()`.
    ///
    /// ```
    /// # use countersign::agent::RunStep;
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let mut run = agent.iter("Hello");
    /// while let Some(step) = run.next().await? {
    ///     match step {
    ///         RunStep::ModelRequest => assert_eq!(run.history().len(), 1),
    ///         RunStep::ToolCalls(calls) => println!("{} calls are taken up next", calls.len()),
    ///         RunStep::End(result) => assert_eq!(result.text(), Some("Hi")),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    pub fn iter(&self, prompt: impl Into<String>) -> RunIter<'_> {
        self.run(prompt).iter()
    }

    /// Resumes a suspended run, or one that ended with an error. The answers must match the pending calls (rule A4).
    ///
    /// If the run is parked in the [ledger](Self::ledger), this worker holds a lease on it while it is resumed, and the
    /// result is saved: one worker resumes a run at a time (rule L5). Meanwhile every other worker gets
    /// [`Error::RunTaken`], and a worker with an outdated state of the run gets [`Error::RunGoneOn`]; see
    /// [`Error::is_conflict`].
    ///
    /// Without a ledger, nothing detects a second resume: a state that is resumed twice runs its approved calls twice,
    /// and so does a state whose resume was dropped midway.
    ///
    /// ```
    /// use countersign::agent::text;
    /// use countersign::model::ModelResponse;
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset, ToolCall, ToolError, ToolsExt, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let delete = async |file: File| Ok::<_, ToolError>(format!("{} is gone", file.path));
    /// let tools = FunctionToolset::new().tool(tool_fn("delete_file", "Deletes a file", delete)).approval_required();
    /// let call = ToolCall::new("c1", "delete_file", json!({"path": "a.log"}));
    /// let model = ScriptedModel::new([ModelResponse::calls([call]), ModelResponse::text("Cleaned up.")]);
    /// let agent = Agent::new(model, tools).output(text().or_deferred());
    ///
    /// // The run ends with the pending call, and can be stored as JSON.
    /// let run = agent.run("Clean up").await?;
    /// let stored = serde_json::to_string(run.suspended().unwrap())?;
    ///
    /// let suspended: countersign::SuspendedRun = serde_json::from_str(&stored)?;
    /// let answers = suspended.requests().answer().approve("c1").build()?;
    /// let run = agent.resume(suspended, answers).await?;
    /// assert_eq!(run.text(), Some("Cleaned up."));
    /// assert_eq!((run.turns().len(), run.usage().requests), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    pub fn resume(&self, suspended: SuspendedRun, answers: DeferredToolResults) -> Run<'_> {
        Run::resume(self, suspended, Some(answers))
    }

    /// Resumes a suspended run by asking the handler about its pending calls, as if the run had just reached them.
    /// Without a handler the calls stay pending, and no request is made to the model.
    pub fn ask(&self, suspended: SuspendedRun) -> Run<'_> {
        Run::resume(self, suspended, None)
    }

    /// Runs to the end, blocking this thread, and asks `approve` about each call that needs an approval, one after the
    /// other. A terminal tool gets its blocking approval this way, from runs that suspend and are resumed. Blocked
    /// calls are denied without asking. The closure gets only the call, as there is no context between two parts of a
    /// run. Calls that are executed elsewhere stay open: when no call needs an approval any more, the run ends with
    /// them.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let run = agent.run_with_blocking_approval("Tidy up", |call| {
    ///     println!("Approve {}({})?", call.name(), call.args());
    ///     false
    /// })?;
    /// assert_eq!(run.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run_sync`](Self::run_sync).
    pub fn run_with_blocking_approval(
        &self,
        prompt: impl Into<String>,
        mut approve: impl FnMut(&ToolCall) -> bool,
    ) -> Result<RunResult, RunError> {
        let output = self.output.clone().or_deferred();
        let mut result =
            self.run(prompt).without_deferred_tool_handler().output(output.clone()).sync()?;
        while let Some(suspended) = result.suspended() {
            let requests = suspended.requests();
            if requests.approvals.is_empty() {
                break;
            }
            let mut answers = deny_blocked(&requests);
            for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
                answers = answers.approval(call.id(), approve(call));
            }
            let answers = answers.leave_rest().unchecked();
            let run = self.resume(suspended.clone(), answers).without_deferred_tool_handler();
            result = run.output(output.clone()).sync()?;
        }
        Ok(result)
    }
}

impl fmt::Debug for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent")
            .field("turn", &self.turn)
            .field("handler", &self.handler.as_ref().map(|handler| handler.name()))
            .field("deps", &self.deps)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}
