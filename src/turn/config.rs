//! The configuration of a turn: the tools, and the settings of users, of an agent and of a parent.
//!
//! A turn is a value: cloning it is cheap, running it does not change it, and one turn serves any number of responses,
//! also at the same time. What belongs to one response (its calls and their states) is made by each run.
//!
//! A sub-agent's turn is configured by two sides: by the agent, as if it ran alone, and by the parent, in
//! [`inside`](Turn::inside). The parent's part can only make it stricter:
//!
//! | setting | of both, what counts |
//! |---|---|
//! | explain, errors of tools end the run, argument values in spans | either |
//! | levels of agents below, limits on questions, time for describing | the smaller |
//! | audits | both |
//! | durable store | the agent's own, or else the parent's |
//! | layers | the agent's, and outside of them the decisions of all ancestors (rule T7) |
//! | run id, usage, ask history | the parent's |

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::audit::{Auditors, PassEnd};
use super::call_state::CallState;
use super::durability::Durability;
use super::errors::{ErrorOutcome, default_outcome};
use super::event::{RunEvent, Watchers};
use super::limits::AskLimits;
use super::reading::{LabelOf, Labels};
use super::retries::Retries;
use super::snapshot::SuspendedTurn;
use super::sub_agent::SubAgentTask;
use crate::call::{
    AskHistory, ExecutionJournal, Extensions, Meter, RunContext, RunInfo, ToolCall, ToolDefinition,
};
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::layer::MiddlewareLayer;
use crate::middleware::{Ancestor, ToolCallError};
use crate::origin::{ReadLabel, ReadRecord};
use crate::outcome::Outcome;
use crate::tools::{Tools, ToolsExt as _};

/// The number of times one call may be deferred before it is denied (rule D7).
const MAX_DEFERRALS: u32 = 16;

/// The number of levels of agents that may be below a turn by default (rule T10).
const MAX_NESTED: u32 = 16;

/// The kind of final answer that a response has besides its calls.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum FinalAnswer {
    /// The answer was streamed to the user, and cannot be taken back.
    Streamed,
    /// The answer is a call. It is void if another call of the response has to be tried again.
    Structured,
}

/// One model response, from calls to outcomes, through a stack of tools and layers.
///
/// ```
/// use countersign::handler::danger_approve_all;
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
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
/// // Without a handler the call is deferred, as a value that can be stored and answered later, anywhere.
/// let turn = Turn::new(tools);
/// let report = turn.run(calls()).await?;
/// let suspended = report.into_suspended().unwrap();
/// let answers = suspended.requests().answer().approve("c1").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "deleted a.log");
///
/// // Or a handler answers inline.
/// let report = turn.deferred_tool_handler(danger_approve_all()).run(calls()).await?;
/// assert!(report.suspended().is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
#[derive(Clone)]
#[must_use = "a turn does nothing until it runs"]
pub struct Turn {
    pub(super) tools: Tools,
    /// Shared with the contexts of the calls.
    pub(super) info: Arc<RunInfo>,
    pub(super) handler: Option<Arc<dyn ErasedHandler>>,
    pub(super) error_outcome: ErrorOutcome,
    pub(super) max_deferrals: u32,
    /// The number of levels of agents that may be below this turn.
    pub(super) max_nested_agents: u32,
    /// `true` if the run may not end with pending calls.
    pub(super) answers_all: bool,
    pub(super) ask_limits: AskLimits,
    /// The retries of the run. `None` in a turn without an agent, whose caller counts them in its own loop.
    pub(super) retries: Option<Retries>,
    pub(super) require_bound: bool,
    pub(super) trace_args: bool,
    pub(super) durability: Option<Arc<dyn Durability>>,
    /// `true` if asks are left open here, to be closed when the run is saved, or by the parent.
    pub(super) closes_later: bool,
    /// The final answer of the response, if it has one besides the calls.
    pub(super) final_answer: Option<FinalAnswer>,
    pub(super) watchers: Watchers,
    pub(super) auditors: Auditors,
    /// The functions that label results, besides the definitions of tools.
    pub(super) labels: Labels,
}

impl Turn {
    /// A turn over these tools. Each [`run`](Self::run) has a new run id, unless [`of_run`](Self::of_run) sets one.
    pub fn new(tools: impl Into<Tools>) -> Self {
        let info = RunInfo { path: vec!["root".to_owned()], ..RunInfo::default() };
        Self {
            tools: tools.into(),
            info: Arc::new(info),
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
            auditors: Auditors::default(),
            labels: Labels::default(),
        }
    }

    /// Sets the run id and the number of the response. Approvals are bound to both, so that with the same two a call id
    /// must not be used twice.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
    /// let calls = || vec![ToolCall::new("c1", "delete", json!({"path": "a"}))];
    /// let requests = async |response| -> Result<_, countersign::BoxError> {
    ///     Ok(turn.clone().of_run("run-1", response).run(calls()).await?.deferred().unwrap())
    /// };
    /// let (first, second) = (requests(0).await?, requests(1).await?);
    /// assert_ne!(first.fingerprint("c1"), second.fingerprint("c1"), "an approval of one does not cover the other");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn of_run(mut self, run_id: impl Into<String>, response: u32) -> Self {
        let info = Arc::make_mut(&mut self.info);
        (info.run_id, info.response) = (run_id.into(), response);
        self
    }

    /// Sets the name of the agent that makes the calls; `root` by default.
    ///
    /// The name is the first part of the agent's path, which is part of every fingerprint: use the same name when you
    /// resume.
    pub fn agent(mut self, name: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.info).path = vec![name.into()];
        self
    }

    /// Adds a dependency, which hooks, predicates, handlers and tool bodies find by its type.
    ///
    /// ```
    /// use countersign::{FunctionToolset, RunContext, ToolCall, ToolError, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// struct Database(&'static str); // a pool, in a real program
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Query { table: String }
    /// async fn count(cx: RunContext, query: Query) -> Result<String, ToolError> {
    ///     Ok(format!("{} rows of {} in {}", 3, query.table, cx.deps::<Database>()?.0))
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("count", "Counts rows", count))).deps(Database("shop"));
    /// let report = turn.run(vec![ToolCall::new("c1", "count", json!({"table": "orders"}))]).await?;
    /// assert_eq!(report.calls()[0].outcome().content().unwrap(), "3 rows of orders in shop");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.info).deps.insert(value);
        self
    }

    /// Sets the handler that answers deferred calls inline. Without one, and for calls that it leaves, the report has
    /// the suspended state.
    ///
    /// A second call replaces the first handler; combine several with [`HandlerChain`](crate::handler::HandlerChain).
    pub fn deferred_tool_handler(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Sets how errors of layers become outcomes, with a sync closure `(cx, call, error)`. It sees the context of the
    /// pass, the call with its arguments as far as the pass got, and the error with the gate's record of the execution;
    /// `None` ends the response with the error. By default tower's errors (a timeout, a full limit, a closed buffer)
    /// become outcomes for the model that say whether the tool ran (rule T8).
    ///
    /// The function must not claim more than it knows:
    /// [`ToolCallError::execution`](crate::middleware::ToolCallError::execution) says whether the tool was started. A
    /// panic in it counts as `None`, and so does a deferral, which only a gate can make.
    ///
    /// ```
    /// use countersign::{FunctionToolset, Outcome, Turn};
    ///
    /// let turn = Turn::new(FunctionToolset::new()).error_outcome(|_cx, _call, failed| {
    ///     let text = failed.error.to_string();
    ///     (!failed.execution.started()).then(|| Outcome::failed(format!("The tool did not run: {text}.")))
    /// });
    /// # let _ = turn;
    /// ```
    pub fn error_outcome<F>(mut self, outcome: F) -> Self
    where
        F: Fn(&RunContext, &ToolCall, &ToolCallError) -> Option<Outcome> + Send + Sync + 'static,
    {
        self.error_outcome = Arc::new(outcome);
        self
    }

    /// Refuses answers that do not carry the fingerprints of what was shown (rule A6). A handler that answers inline
    /// holds the requests themselves, and builds bound answers with `requests.answer()`.
    ///
    /// ```
    /// use countersign::{DeferredToolResults, FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required();
    /// let turn = Turn::new(tools).require_bound_answers();
    /// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
    ///
    /// let error = turn.resume(suspended, DeferredToolResults::new().approve("c1")).await.unwrap_err();
    /// let suspended = error.into_suspended().unwrap(); // nothing has run: answer again
    /// let answers = suspended.requests().answer().approve("c1").build()?;
    /// assert!(turn.resume(suspended, answers).await?.calls()[0].outcome().is_returned());
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn require_bound_answers(mut self) -> Self {
        self.require_bound = true;
        self
    }

    /// Records the decision of every layer, for [`CallReport::said`](crate::turn::CallReport::said).
    pub fn explain(mut self) -> Self {
        Arc::make_mut(&mut self.info).explain = true;
        self
    }

    /// Puts argument values into spans. Off by default (rule S2).
    pub fn danger_trace_arguments(mut self) -> Self {
        self.trace_args = true;
        self
    }

    /// Adds a watcher, which is called with every event of the run as it happens.
    ///
    /// A watcher is called from the tasks of the run and must not block; a panic in it is caught and logged, since an
    /// observer must not end a run whose tools have run. Several watchers are called in the order in which they were
    /// added.
    ///
    /// ```
    /// use countersign::turn::RunEvent;
    /// use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
    /// use serde_json::json;
    /// use std::sync::{Arc, Mutex};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn read(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let seen = Arc::new(Mutex::new(Vec::new()));
    /// let heard = Arc::clone(&seen);
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("read", "Reads a file", read))).watch(move |event| {
    ///     heard.lock().unwrap().push(match event {
    ///         RunEvent::FunctionToolCall { .. } => "call",
    ///         RunEvent::FunctionToolResult { .. } => "result",
    ///         _ => "other",
    ///     });
    /// });
    /// turn.run(vec![ToolCall::new("c1", "read", json!({"path": "a"}))]).await?;
    /// assert_eq!(seen.lock().unwrap()[..2], ["call", "result"]);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Adds a function that is called at the end of every pass of every call: of one that ran, one that a layer or a limit
    /// has denied, one that is deferred, and one whose tool does not exist or whose arguments do not fit. It is called
    /// once for each pass, with the context of the run, also for the calls of sub-agents
    /// ([`RunContext::agent_path`]).
    ///
    /// A pass that is repeated because a layer has changed the arguments (rule D3) is one pass, and the pass after an
    /// approval is another one. The answers of people make no pass: [watch](Self::watch) for them, or read the ledger.
    ///
    /// The function is called from the tasks of the run and must not block: send to a channel what takes time. A panic
    /// in it is caught and logged. It sees the arguments, which may be secret.
    ///
    /// ```
    /// use countersign::turn::PassEnd;
    /// use countersign::{
    ///     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddlewareExt, ToolsExt, Turn, decide_fn,
    ///     schemars, tool_fn,
    /// };
    /// use serde_json::json;
    /// use std::sync::{Arc, Mutex};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let policy = decide_fn(|_, call: &ToolCall| match call.args().str("path") {
    ///     Some(".env") => Decision::deny("secrets stay"),
    ///     Some("a.log") => Decision::allow(),
    ///     _ => Decision::ask("delete it?"),
    /// });
    /// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete));
    /// let lines = Arc::new(Mutex::new(Vec::new()));
    /// let log = Arc::clone(&lines);
    /// let turn = Turn::new(tools.layered(policy.named("files").into_layer())).audit(move |_: &RunContext, end: &PassEnd<'_>| {
    ///     let by = end.denied_by().map(|by| format!(" by {by}")).unwrap_or_default();
    ///     log.lock().unwrap().push(format!("{} {}{by}", end.call().id(), end.outcome().word()));
    /// });
    /// let call = |id: &str, tool: &str, path: &str| ToolCall::new(id, tool, json!({"path": path}));
    /// let calls = vec![
    ///     call("c1", "delete", "a.log"),
    ///     call("c2", "delete", ".env"),
    ///     call("c3", "delete", "notes.md"),
    ///     call("c4", "destroy", "a.log"),
    /// ];
    /// turn.run(calls).await?;
    ///
    /// lines.lock().unwrap().sort();
    /// assert_eq!(*lines.lock().unwrap(), ["c1 returned", "c2 denied by files", "c3 deferred", "c4 retry"]);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn audit(
        mut self,
        audit: impl Fn(&RunContext, &PassEnd<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.auditors.add(audit);
        self
    }

    /// Sets how long a toolset may take to list its tools, and to preview a call; 10 seconds by default. A list that
    /// takes longer is an error before anything has run, and a preview that does is shown as a failed one (rule S7). An
    /// agent cannot raise the limit of the agents above it.
    ///
    /// Outside of a runtime of tokio's, or in one without its timer, there is no limit.
    ///
    /// ```
    /// use countersign::{FunctionToolset, Turn};
    /// use std::time::Duration;
    ///
    /// // The previews ask a slow server.
    /// let turn = Turn::new(FunctionToolset::new()).describing_within(Duration::from_secs(30));
    /// # let _ = turn;
    /// ```
    pub fn describing_within(mut self, limit: Duration) -> Self {
        Arc::make_mut(&mut self.info).describing = Some(limit);
        self
    }

    /// Ends the response with every error of a tool, as PydanticAI does, also with those of sub-agents' tools. By default
    /// an ordinary error fails its call: the model gets its `Display`, and the run continues. The typed errors of a
    /// [tool](crate::ToolError) ([`ModelRetry`](crate::outcome::ModelRetry), [`ToolFailed`](crate::outcome::ToolFailed), …) mean the same
    /// either way.
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
    /// # Ok::<(), countersign::turn::TurnError>(()) }).unwrap();
    /// ```
    pub fn tool_errors_end_run(mut self) -> Self {
        Arc::make_mut(&mut self.info).tool_errors_end_run = true;
        self
    }

    /// Sets how often a person may deny the same call in one run, the same tool with equal arguments, before it is
    /// denied without asking; 3 by default (rule D11). Until then a call that repeats a denied one is shown with the
    /// count and the last reason ([`DeferredToolRequests::denied_before`](crate::DeferredToolRequests::denied_before)),
    /// and an approval resets the count. A call that no layer asks about runs, however often it was denied.
    ///
    /// The denials of a run are kept by the [`Agent`](crate::Agent), or by a loop of your own in an [`AskHistory`].
    /// Equal calls that are denied in one batch count once. An answer that a program gives counts as a person's, unless it
    /// says that a policy gives it
    /// ([`answered_by_policy`](crate::deferred::Answers::answered_by_policy)).
    ///
    /// ```
    /// use countersign::handler::handler_fn_sync;
    /// use countersign::{DeferredToolRequests, FunctionToolset, RunContext, ToolsExt, Turn};
    /// # use countersign::ToolCall;
    ///
    /// let ann = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
    ///     requests.answer().deny_rest("keep it").answered_by("ann").build()
    /// });
    /// let tools = FunctionToolset::new().approval_required();
    /// let turn = Turn::new(tools).deferred_tool_handler(ann).max_repeats(1);
    /// # let _ = turn;
    /// ```
    pub fn max_repeats(mut self, times: u32) -> Self {
        self.ask_limits.max_repeats = times.max(1);
        self
    }

    /// Sets how many calls of one run, with its sub-agents, may be pending at the same time; with a
    /// [ledger](Self::ledger) also how many of one requester
    /// ([`Ask::with_principal`](crate::ledger::Ask::with_principal)). 1 000 by default. Calls beyond the limit are
    /// denied without asking, and the denial says why (rule D11).
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required();
    /// let call = |id: &str| ToolCall::new(id, "delete", json!({"path": id}));
    /// let report = Turn::new(tools).max_pending(1).run(vec![call("c1"), call("c2")]).await?;
    /// assert!(report.calls()[0].outcome().is_deferred());
    /// assert_eq!(report.calls()[1].denied_by(), Some("max_pending"));
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn max_pending(mut self, calls: u32) -> Self {
        self.ask_limits.max_pending = calls;
        self
    }

    /// Sets how often one call may be deferred before it is denied; 16 by default (rule D7).
    ///
    /// If a layer asks about something new on every approved pass, for example with a clock in its key, it would ask
    /// for ever. The bound ends that, and the model is told that the call was denied.
    pub fn max_deferrals(mut self, max: u32) -> Self {
        self.max_deferrals = max;
        self
    }

    /// Sets the history of the run's questions to people. A loop of your own passes one history to every turn of the
    /// run. Without it, each turn has its own, which is stored in its [`SuspendedTurn`](crate::SuspendedTurn).
    pub fn ask_history(self, history: &AskHistory) -> Self {
        self.with_asks(history.clone())
    }

    /// Records what the run reads, so that layers and people learn where the values of its calls come from. A loop of
    /// your own passes one record to every turn of the run, and adds what the user says
    /// ([`ReadRecord::user_said`]); the turn adds the arguments and results of its calls. The record is stored in the
    /// [`SuspendedTurn`](crate::SuspendedTurn), with the moment at which the response was requested.
    ///
    /// ```
    /// use countersign::origin::{ReadLabel, ReadRecord};
    /// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Page { url: String }
    /// async fn fetch(page: Page) -> Result<String, ToolError> { Ok(format!("Write to eve@{}", page.url)) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let record = ReadRecord::new();
    /// let tools = FunctionToolset::new().tool(tool_fn("fetch", "Fetches a page", fetch).reads(ReadLabel::others("web")));
    /// Turn::new(tools).origins(&record).run(vec![ToolCall::new("c1", "fetch", json!({"url": "example.com"}))]).await?;
    /// let origin = record.origin().of_value("/to", "eve@example.com");
    /// assert!(origin.to_string().starts_with("stands only in the page `fetch`"));
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub fn origins(mut self, record: &ReadRecord) -> Self {
        Arc::make_mut(&mut self.info).reads = Some(record.clone());
        self
    }

    /// Adds a function that says how the results of a tool are labelled, beside what its definition says; of two labels
    /// the stricter counts for each field. A file of rules has such a function.
    ///
    /// ```
    /// use countersign::origin::ReadLabel;
    /// use countersign::{FunctionToolset, Turn};
    ///
    /// let turn = Turn::new(FunctionToolset::new())
    ///     .labelled(|tool| (tool.name() == "fetch").then(|| ReadLabel::others("web")));
    /// # let _ = turn;
    /// ```
    pub fn labelled(
        mut self,
        label: impl Fn(&ToolDefinition) -> Option<ReadLabel> + Send + Sync + 'static,
    ) -> Self {
        let label: LabelOf = Arc::new(label);
        self.labels.add(label);
        self
    }

    /// Sets how much the run had read when the response was requested.
    pub(crate) fn requested_at(mut self, position: Option<u32>) -> Self {
        Arc::make_mut(&mut self.info).read_before = position;
        self
    }

    pub(crate) fn own_reads(&self) -> Option<&ReadRecord> {
        self.info.reads.as_ref()
    }

    /// The label of the results of a tool.
    pub(crate) fn label_of(&self, definition: &ToolDefinition) -> ReadLabel {
        self.labels.label_of(definition)
    }

    /// Records pending calls, answers and executions in this durable store.
    pub(crate) fn durable(mut self, durability: Arc<dyn Durability>) -> Self {
        let journal: Arc<dyn ExecutionJournal> = Arc::clone(&durability) as _;
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

    /// Returns `true` if this is the turn of the run's own agent, and not of a sub-agent.
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

    /// Sets how many levels of [agents](crate::Agent::as_tool) may be below this turn; 16 by default (rule T10). A call
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
    pub(crate) fn final_answer(mut self, answer: FinalAnswer) -> Self {
        self.final_answer = Some(answer);
        self
    }

    /// Makes this the turn of a sub-agent: in the parent's run, and inside of the layers around the agent (rule T7).
    pub(crate) fn inside(mut self, task: &SubAgentTask) -> Self {
        let explain = self.info.explain || task.info.explain;
        let tool_errors_end_run = self.info.tool_errors_end_run || task.info.tool_errors_end_run;
        let describing = self.info.describing_within().min(task.info.describing_within());
        let describing = Some(describing);
        self.info =
            Arc::new(RunInfo { explain, tool_errors_end_run, describing, ..task.info.clone() });
        self.trace_args |= task.trace_args;
        self.max_nested_agents = self.max_nested_agents.min(task.max_nested_agents);
        self.ask_limits = self.ask_limits.within(task.ask_limits);
        self.auditors.extend(&task.auditors);
        self.labels.extend(&task.labels);
        // An agent with a durable store of its own records its asks there, not in the parent's. The parent closes them
        // with its own only if both are the same store, as one transaction cannot span two.
        let shared = |own: &Arc<dyn Durability>| {
            task.durability.as_ref().is_some_and(|parents| own.shares_store_with(&**parents))
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

    /// Tells the audits that a pass of the call has ended.
    pub(super) fn pass_ended(&self, call: &CallState) {
        self.auditors.tell(|| self.context(), call);
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
        // A response of a version without a record was requested at a moment that is not known.
        info.read_before = suspended.read_before();
        match (suspended.reads(), &info.reads) {
            (Some(stored), None) => info.reads = Some(stored.clone()),
            (None, Some(record)) if info.read_before.is_none() => record.past_is_unknown(),
            _ => {}
        }
        turn.begins_asking(Some(suspended));
        turn
    }

    /// The context of the run, for code that runs outside of any call.
    pub(crate) fn context(&self) -> RunContext {
        RunContext::of_run(Arc::clone(&self.info))
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
