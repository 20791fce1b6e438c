//! A turn, before it runs: its tools, and everything that its users, an agent and a parent set.

use std::fmt;
use std::sync::Arc;

use super::durability::Durability;
use super::errors::{ErrorOutcome, default_outcome};
use super::event::{RunEvent, Watchers};
use super::limits::AskLimits;
use super::retries::Retries;
use crate::call::{AskHistory, RunInfo};
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::middleware::ToolCallError;
use crate::outcome::Outcome;
use crate::tools::Tools;

/// How often one call may be deferred before it is denied (rule D7).
const MAX_DEFERRALS: u32 = 16;

/// How many levels of agents may be below a turn, unless it says otherwise.
const MAX_NESTED: u32 = 16;

/// A final answer that came beside the calls of a response.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum FinalAnswer {
    /// It was heard, and stands.
    Streamed,
    /// It stands unless a call beside it has to be tried again.
    Structured,
}

/// One model response, from calls to outcomes, through a stack of tools and layers.
///
/// ```
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, danger_approve_all, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct DeleteFile { path: String }
///
/// async fn delete_file(args: DeleteFile) -> Result<String, ToolError> {
///     Ok(format!("deleted {}", args.path))
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("delete_file", "Deletes a file", delete_file)).approval_required();
/// let calls = || vec![ToolCall::new("c1", "delete_file", json!({"path": "a.log"}))];
///
/// // Nobody answers: the call waits, as a value that can be stored and answered later, anywhere.
/// let turn = Turn::new(tools);
/// let report = turn.run(calls()).await?;
/// let suspended = report.into_suspended().unwrap();
/// let answers = suspended.requests().answer().approve("c1").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "deleted a.log");
///
/// // Or a handler answers inline.
/// let report = turn.handler(danger_approve_all()).run(calls()).await?;
/// assert!(report.suspended().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a turn does nothing until it runs"]
pub struct Turn {
    pub(super) tools: Tools,
    pub(super) info: RunInfo,
    pub(super) handler: Option<Arc<dyn ErasedHandler>>,
    pub(super) error_outcome: ErrorOutcome,
    pub(super) max_deferrals: u32,
    /// How many levels of agents may be below this turn.
    pub(super) max_nested_agents: u32,
    /// The run may not end with calls that wait.
    pub(super) answers_all: bool,
    pub(super) ask_limits: AskLimits,
    /// A turn of its own has no budget: whoever has the loop counts.
    pub(super) retries: Option<Retries>,
    pub(super) require_bound: bool,
    pub(super) trace_args: bool,
    pub(super) durability: Option<Arc<dyn Durability>>,
    /// The asks that are to be closed are closed with the run, or by the parent.
    pub(super) closes_later: bool,
    /// Came beside these calls.
    pub(super) final_answer: Option<FinalAnswer>,
    pub(super) watchers: Watchers,
}

impl Turn {
    /// A turn over these tools. Each run of it has a new run id, unless [`of_run`](Self::of_run) says which it is.
    pub fn new(tools: impl Into<Tools>) -> Self {
        let info = RunInfo { path: vec!["root".to_owned()], ..RunInfo::default() };
        Self {
            tools: tools.into(),
            info,
            handler: None,
            error_outcome: Arc::new(default_outcome),
            max_deferrals: MAX_DEFERRALS,
            max_nested_agents: MAX_NESTED,
            answers_all: false,
            ask_limits: AskLimits::default(),
            retries: None,
            require_bound: false,
            trace_args: false,
            durability: None,
            closes_later: false,
            final_answer: None,
            watchers: Watchers::default(),
        }
    }

    /// Says which response of which run this is. Both are part of what an approval is bound to: with the same two,
    /// a call id must not come twice.
    pub fn of_run(mut self, run_id: impl Into<String>, response: u32) -> Self {
        self.info.run_id = run_id.into();
        self.info.response = response;
        self
    }

    /// Names the agent that makes the calls.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        self.info.path = vec![name.into()];
        self
    }

    /// Adds a dependency, which hooks, predicates, handlers and tool bodies find by its type.
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.info.deps.insert(value);
        self
    }

    /// Answers deferred calls inline. Without a handler, and for what it leaves, the report carries what waits.
    pub fn handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Replaces what becomes of the errors of layers. The function is given the error with the gate's record of the
    /// execution; `None` makes the response end with the error. By default tower's errors (a timeout, a full limit, a
    /// closed buffer) become outcomes for the model that say whether the tool ran (rule T8).
    pub fn error_outcome<F>(mut self, outcome: F) -> Self
    where
        F: Fn(&ToolCallError) -> Option<Outcome> + Send + Sync + 'static,
    {
        self.error_outcome = Arc::new(outcome);
        self
    }

    /// Refuses answers that do not carry the fingerprints of what was shown (rule A6). A handler that answers inline
    /// holds the requests themselves, and builds bound answers with `requests.answer()`.
    pub fn require_bound_answers(mut self) -> Self {
        self.require_bound = true;
        self
    }

    /// Keeps what every layer said, for [`CallReport::said`](crate::CallReport::said).
    pub fn explain(mut self) -> Self {
        self.info.explain = true;
        self
    }

    /// Puts argument values into spans. Off by default (rule S2).
    pub fn danger_trace_arguments(mut self) -> Self {
        self.trace_args = true;
        self
    }

    /// Watches what happens, as it happens.
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Ends the response with every error of a tool, as PydanticAI does, also with those of sub-agents' tools. By default
    /// an ordinary error fails its call: the model is told its `Display`, and the run goes on. What a tool says by the
    /// [type](crate::ToolError) of an error ([`ModelRetry`](crate::ModelRetry), [`ToolFailed`](crate::ToolFailed), …) means
    /// the same either way.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolCall, Turn, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Read { path: String }
    ///
    /// async fn read(args: Read) -> std::io::Result<String> {
    ///     std::fs::read_to_string(args.path)
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("read", "Reads a file", read)));
    /// let calls = || vec![ToolCall::new("c1", "read", serde_json::json!({"path": "/no/such/file"}))];
    ///
    /// let report = turn.run(calls()).await?;
    /// assert_eq!(report.calls()[0].outcome().word(), "failed");
    ///
    /// let error = turn.tool_errors_end_run().run(calls()).await.unwrap_err();
    /// assert_eq!(error.to_string(), "call `c1` of tool `read` failed");
    /// # Ok::<(), countersign::TurnError>(()) }).unwrap();
    /// ```
    pub fn tool_errors_end_run(mut self) -> Self {
        self.info.tool_errors_end_run = true;
        self
    }

    /// How often a person may deny the same call in one run, the same tool with equal arguments, before it is denied
    /// without asking; 3 by default (rule D11). Until then a call that repeats a denied one is shown with the count and the
    /// person's words ([`DeferredToolRequests::denied_before`](crate::DeferredToolRequests::denied_before)), and an
    /// approval starts the count anew. A call that no layer asks about runs, however often it was denied.
    ///
    /// What a run has asked is kept by its [`Agent`](crate::Agent), or by a loop of your own in an [`AskHistory`]. Equal
    /// calls that are denied in one batch count once. An answer that a program gives counts as a person's unless it
    /// says otherwise: `answered_by("policy")`, or `"policy: no writes at night"`.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, FunctionToolset, RunContext, ToolsExt, Turn, handler_fn_sync};
    /// # use countersign::ToolCall;
    ///
    /// let ann = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
    ///     requests.answer().deny_rest("keep it").answered_by("ann").build()
    /// });
    /// let tools = FunctionToolset::new().approval_required();
    /// let turn = Turn::new(tools).handler(ann).max_repeats(1);
    /// # let _ = turn;
    /// ```
    pub fn max_repeats(mut self, times: u32) -> Self {
        self.ask_limits.max_repeats = times.max(1);
        self
    }

    /// How many calls of one run, with its sub-agents, may be pending at the same time; with a [ledger](Self::ledger)
    /// also how many of one requester ([`Ask::principal`](crate::ledger::Ask::principal)). 1 000 by default. The calls
    /// beyond are denied, saying so, and nobody is asked (rule D11).
    pub fn max_pending(mut self, calls: u32) -> Self {
        self.ask_limits.max_pending = calls;
        self
    }

    /// How often one call may be deferred before it is denied; 16 by default (rule D7).
    pub fn max_deferrals(mut self, max: u32) -> Self {
        self.max_deferrals = max;
        self
    }

    /// The history of what the run has asked people, which a loop of your own gives to every turn of the run. Without it,
    /// each turn has its own, which its [`SuspendedTurn`](crate::SuspendedTurn) carries on.
    pub fn ask_history(self, history: &AskHistory) -> Self {
        self.with_asks(history.clone())
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("run_id", &self.info.run_id)
            .field("tools", &self.tools)
            .field("handler", &self.handler.as_ref().map(|handler| handler.name()))
            .finish_non_exhaustive()
    }
}
