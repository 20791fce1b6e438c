//! The context that hooks, predicates, handlers and tool bodies get: the run and the current call.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};

use super::definition::tool_layer;
use super::{Approval, AskHistory, ExecutionJournal, Extensions, Meter, ToolDefinition};
use crate::args::{Args, canonical};
use crate::decision::{Decision, LayerName, ToolDecision};
use crate::error::UserError;
use crate::origin::{Origin, ReadRecord};
use crate::outcome::ApprovalRequired;

/// The pass through the stack that a call is on.
///
/// ```
/// use countersign::call::Phase;
/// use countersign::{
///     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn,
///     schemars, tool_fn,
/// };
/// use serde_json::json;
/// use std::sync::{Arc, Mutex};
///
/// struct Phases(Arc<Mutex<Vec<Phase>>>);
///
/// impl ToolMiddleware for Phases {
///     async fn before_tool_call(&self, cx: &RunContext, _call: &ToolCall) -> Decision {
///         self.0.lock().unwrap().push(cx.phase());
///         Decision::ask("sure?")
///     }
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let phases = Arc::new(Mutex::new(Vec::new()));
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("delete", "Deletes a file", delete))
///     .layered(Phases(Arc::clone(&phases)).into_layer());
/// let turn = Turn::new(tools);
/// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
/// let answers = suspended.requests().answer().approve("c1").build()?;
/// turn.resume(suspended, answers).await?;
/// assert_eq!(*phases.lock().unwrap(), [Phase::First, Phase::Approved]);
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// The first pass, on the call as the model made it. The turn repeats it, in the same phase, when a layer inside
    /// has changed the arguments (rule D3); [`RunContext::is_repeat`] tells the two apart.
    First,
    /// The pass after an approval. Every middleware runs again (rule A1).
    Approved,
}

/// The run, and the call that is being decided about or executed. Cheap to clone.
///
/// Every middleware hook, predicate, handler and tool body gets a context. A handler is asked about several calls: in
/// its context the accessors about a call return `None` or `false`.
///
/// | who gets it | run | call | approval |
/// |---|---|---|---|
/// | a middleware hook | yes | yes | on the approved pass |
/// | a tool body, through its [`Permit`](crate::Permit) | yes | yes | if there is one |
/// | a handler | yes | no: its requests have the calls | no |
/// | a filter or wrapper of tools | yes | no | no |
/// | a test | `RunContext::default()`, with [`with_deps`](Self::with_deps) | no | no |
#[derive(Clone, Default)]
pub struct RunContext {
    run: Arc<RunInfo>,
    call: Option<Arc<CallInfo>>,
    /// Set where a composite asks its members again within one pass.
    repeat: bool,
}

#[derive(Clone, Default)]
pub(crate) struct RunInfo {
    pub(crate) run_id: String,
    /// The number of the response in its run, from 0.
    pub(crate) response: u32,
    /// The agent and its parents, outermost first.
    pub(crate) path: Vec<String>,
    pub(crate) deps: Extensions,
    pub(crate) explain: bool,
    /// `true` if every error of a tool ends the run.
    pub(crate) tool_errors_end_run: bool,
    /// The time that a toolset may take to describe its tools, or a call; `None` for the default.
    pub(crate) describing: Option<Duration>,
    pub(crate) usage: Arc<Meter>,
    pub(crate) journal: Option<Arc<dyn ExecutionJournal>>,
    /// The history of the run's questions to people. The turn sets it when it begins.
    pub(crate) asks: Option<AskHistory>,
    /// The record of the run's reads, if there is one.
    pub(crate) reads: Option<ReadRecord>,
    /// The number of reads in the record when the response was requested.
    pub(crate) read_before: Option<u32>,
}

/// The time that a toolset may take by default to list its tools, or to preview a call.
const DESCRIBING: Duration = Duration::from_secs(10);

impl RunInfo {
    /// The time that a toolset may take to list its tools, or to preview a call.
    pub(crate) fn describing_within(&self) -> Duration {
        self.describing.unwrap_or(DESCRIBING)
    }
}

pub(crate) struct CallInfo {
    pub(crate) id: Arc<str>,
    /// The name the model used.
    pub(crate) name: Arc<str>,
    pub(crate) definition: Arc<ToolDefinition>,
    pub(crate) phase: Phase,
    /// The number of the pass in its phase, from 1.
    pub(crate) pass: u32,
    /// `true` if the agent behind the call has begun its work, so that the call has passed the stack before.
    pub(crate) begun: bool,
    pub(crate) approval: Option<Arc<Approval>>,
    pub(crate) attempts: AtomicU32,
    pub(crate) said: Mutex<Vec<Said>>,
}

/// The decision of one layer about a call, recorded when the turn is asked to [explain](crate::Turn::explain).
///
/// ```
/// use countersign::decision::ToolDecision;
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required();
/// let report = Turn::new(tools).explain().run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?;
/// let said = &report.calls()[0].said()[0];
/// assert_eq!((said.layer.as_str(), said.decision), ("approval_required", ToolDecision::Ask));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Said {
    /// The name of the layer that decided.
    pub layer: String,
    /// The phase of the pass in which the layer decided.
    pub phase: Phase,
    /// The number of the pass in its phase, from 1. There is a second one if a layer inside has changed the arguments.
    pub pass: u32,
    /// The decision: allow, ask or deny.
    pub decision: ToolDecision,
    /// The reasons of the layer; empty for an ALLOW.
    pub reason: String,
    /// `true` if the layer changed the arguments.
    pub changed_args: bool,
}

impl RunContext {
    pub(crate) fn of_run(run: Arc<RunInfo>) -> Self {
        Self { run, call: None, repeat: false }
    }

    pub(crate) fn of_call(run: Arc<RunInfo>, call: CallInfo) -> Self {
        Self { run, call: Some(Arc::new(call)), repeat: false }
    }

    /// The same context, marked as a repeat, for a member of a composite that is asked about the call again.
    pub(crate) fn repeated(&self) -> Self {
        Self { repeat: true, ..self.clone() }
    }

    /// Adds a dependency, for tests of middleware and handlers. A run gets its dependencies from its
    /// [turn](crate::Turn::deps) or [agent](crate::Agent::deps).
    ///
    /// ```
    /// use countersign::RunContext;
    ///
    /// struct Tenant(&'static str);
    ///
    /// let cx = RunContext::default().with_deps(Tenant("acme"));
    /// assert_eq!(cx.deps::<Tenant>()?.0, "acme");
    /// assert!(cx.deps::<String>().unwrap_err().to_string().contains("String"));
    /// # Ok::<(), countersign::UserError>(())
    /// ```
    #[must_use]
    pub fn with_deps<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        Arc::make_mut(&mut self.run).deps.insert(value);
        self
    }

    /// The context of a call outside a turn.
    pub(crate) fn empty() -> &'static Self {
        static EMPTY: LazyLock<RunContext> = LazyLock::new(RunContext::default);
        &EMPTY
    }

    /// The id of the run.
    ///
    /// The id is the same for every response of a run and after every resume. In a context that no turn has
    /// made it is empty.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run.run_id
    }

    /// The number of the model's response in its run, from 0.
    #[must_use]
    pub fn response(&self) -> u32 {
        self.run.response
    }

    /// The path of the agent, from the root of the run: `root/cleaner`.
    #[must_use]
    pub fn agent_path(&self) -> String {
        self.run.path.join("/")
    }

    /// A dependency of the run, looked up by its type.
    ///
    /// # Errors [`UserError::MissingDeps`] when the run has no dependency of this type. With `?` in a tool body the
    /// other calls of the response finish, and the run ends with [`Error::Tool`](crate::Error::Tool), which
    /// names the call and has the text of this error as its source; the result for the model is an internal error.
    /// With `?` in a middleware the call is denied, and the other calls continue (rule D4).
    pub fn deps<T: Send + Sync + 'static>(&self) -> Result<&T, UserError> {
        self.run.deps.get().ok_or(UserError::MissingDeps { type_name: std::any::type_name::<T>() })
    }

    /// The origin of the values of the call: what the run had read when the response was requested (rule O3). If
    /// nothing is recorded, every answer is the safe one: anything may have been read, and nothing is named by anyone.
    ///
    /// ```
    /// use countersign::origin::ReadRecord;
    /// use countersign::{
    ///     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolsExt, Turn, decide_fn, schemars, tool_fn,
    /// };
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Payment { iban: String }
    /// async fn pay(it: Payment) -> Result<String, ToolError> { Ok(format!("paid to {}", it.iban)) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let named = decide_fn(|cx: &RunContext, call: &ToolCall| {
    ///     match cx.origin().named_by(&["user"], &call.args()["iban"]) {
    ///         true => Decision::allow(),
    ///         false => Decision::ask("you have not named this account"),
    ///     }
    /// });
    /// let tools = FunctionToolset::new().tool(tool_fn("pay", "Pays", pay)).layered(named);
    /// let record = ReadRecord::new();
    /// record.user_said("Pay 50 euro to DE89 3704 0044 0532 0130 00");
    /// let turn = Turn::new(tools).origins(&record);
    /// let call = |id: &str, iban: &str| ToolCall::new(id, "pay", json!({"iban": iban}));
    /// let report = turn.run(vec![call("c1", "DE89370400440532013000"), call("c2", "GB29NWBK60161331926819")]).await?;
    /// assert!(report.calls()[0].outcome().is_returned() && report.calls()[1].outcome().is_deferred());
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn origin(&self) -> Origin {
        let Some(record) = &self.run.reads else { return Origin::default() };
        let origin = match self.run.read_before {
            Some(position) => Origin::at(record, position),
            None => record.origin(),
        };
        match self.tool_definition().is_some_and(|it| it.reads().is_some()) {
            true => origin.for_reading(),
            false => origin,
        }
    }

    /// The id of the call.
    #[must_use]
    pub fn tool_call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.id)
    }

    /// The name of the tool, as the model called it.
    #[must_use]
    pub fn tool_name(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.name)
    }

    /// The definition of the tool, under the name that the model used, with the metadata that the toolset and the
    /// wrappers have added for predicates.
    #[must_use]
    pub fn tool_definition(&self) -> Option<&ToolDefinition> {
        self.call.as_ref().map(|call| &*call.definition)
    }

    /// The pass that the call is on.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.call.as_ref().map_or(Phase::First, |call| call.phase)
    }

    /// Returns `true` if the call has passed the stack before, so that the current middleware has decided about it
    /// already (rule D3). A middleware that counts each call once (a rate limit, a budget, a metric) counts where this
    /// is `false`.
    ///
    /// It is `true` for every middleware
    /// - on the approved pass ([`Phase::Approved`]), also in another process or after a restart, and also with edited
    ///   arguments. A count in memory may be lost by then, and the approved pass does not restore it;
    /// - when the turn repeats the pass because a layer inside has changed the arguments; for a member of a
    ///   [`Chain`](crate::middleware::Chain) also when another member has;
    /// - when the [agent](crate::Agent::as_tool) behind the call has begun, and continues after an answer.
    ///
    /// It is `false` during the first pass, for every attempt of a layer outside (a tower `retry` or `hedge`),
    /// because each of these attempts may run the tool. When the turn repeats the pass, all attempts are repeats. The
    /// value is about this call only: if the model makes another call with the same arguments, that is a new call. It
    /// is also not about the layer: a layer that was added to the stack while the call was pending, or that an outer
    /// layer has bypassed (a cache that answers by itself), sees `true` where it decides for the first time.
    ///
    /// ```
    /// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
    /// use std::sync::atomic::{AtomicU32, Ordering};
    ///
    /// struct Budget(AtomicU32);
    ///
    /// impl ToolMiddleware for Budget {
    ///     async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
    ///         let take = |left: u32| left.checked_sub(1);
    ///         if cx.is_repeat() || self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
    ///             return Decision::allow();
    ///         }
    ///         Decision::deny("the budget is used up")
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn is_repeat(&self) -> bool {
        let again =
            |call: &Arc<CallInfo>| call.begun || call.pass > 1 || call.phase == Phase::Approved;
        self.repeat || self.call.as_ref().is_some_and(again)
    }

    /// The number of times the call has reached the gate in this pass, including the current attempt: 0 before the
    /// gate, and more than 1 only inside of a layer that sends calls again.
    ///
    /// A body may use the number to choose a longer time for a second attempt. The number says nothing about executions
    /// in other passes or processes.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.call.as_ref().map_or(0, |call| call.attempts.load(Ordering::Relaxed))
    }

    /// Returns `true` if this call was approved. It does not say for which questions: a tool body with a question of
    /// its own asks it with [`approved_for`](Self::approved_for).
    #[must_use]
    pub fn tool_call_approved(&self) -> bool {
        self.approval().is_some()
    }

    /// The metadata that the answer has for the tool: `DeferredToolResults.metadata` of this call, and nothing else
    /// (rule A5).
    ///
    /// ```
    /// use countersign::{FunctionToolset, RunContext, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Payment { euros: u32 }
    /// async fn pay(cx: RunContext, payment: Payment) -> Result<String, ToolError> {
    ///     let account = cx.tool_call_metadata().and_then(|it| it.get("account")).cloned().unwrap_or_default();
    ///     Ok(format!("{} euros from {account}", payment.euros))
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("pay", "Pays", pay)).approval_required());
    /// let suspended = turn.run(vec![ToolCall::new("c1", "pay", json!({"euros": 5}))]).await?.into_suspended().unwrap();
    /// let chosen = serde_json::Map::from_iter([("account".to_owned(), json!(7))]); // by the approver, never by the model
    /// let answers = suspended.requests().answer().approve("c1").metadata("c1", chosen).build()?;
    /// let report = turn.resume(suspended, answers).await?;
    /// assert_eq!(report.calls()[0].outcome().content().unwrap(), "5 euros from 7");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn tool_call_metadata(&self) -> Option<&Map<String, Value>> {
        self.approval()?.metadata.as_ref()
    }

    /// Asks for an approval of exactly this reason, unless there is one already (rule A7). In a tool body:
    ///
    /// ```
    /// # use countersign::{RunContext, ToolError};
    /// async fn update_file(cx: RunContext, path: String) -> Result<String, ToolError> {
    ///     if path == ".env" {
    ///         cx.approved_for("protected file")?;
    ///     }
    ///     Ok(format!("updated {path}"))
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ApprovalRequired`] until the call was approved for this reason. Return it, as `?` does, to defer the call.
    pub fn approved_for(&self, reason: impl Into<String>) -> Result<(), ApprovalRequired> {
        let required = ApprovalRequired::because(reason);
        let shown = |call: &Arc<CallInfo>| {
            let layer = call.definition.leaf().map(|leaf| tool_layer(&leaf.name));
            let questions = call.approval.as_ref().map_or(&[][..], |approval| &approval.questions);
            questions.iter().any(|question| {
                Some(question.layer()) == layer.as_deref() && question.key() == required.key
            })
        };
        if self.call.as_ref().is_some_and(shown) { Ok(()) } else { Err(required) }
    }

    /// A key that is the same for every execution of this call, for an idempotent tool to pass to the service it calls.
    /// `None` outside a call.
    ///
    /// The key is made of the run, the response, the agent's path and the call's id, as one JSON text: a separator in
    /// an id cannot make two of them alike. The key does not depend on the arguments. If a person edits them, it is
    /// the same call, and a service that has seen the key refuses a second execution, which is what at-most-once
    /// means.
    #[must_use]
    pub fn idempotency_key(&self) -> Option<String> {
        let call = self.call.as_ref()?;
        let parts =
            [&self.run.run_id, &self.run.response.to_string(), &self.agent_path(), &*call.id]
                .map(Value::from);
        Some(canonical(&Value::from(parts.to_vec())))
    }

    pub(crate) fn approval(&self) -> Option<&Approval> {
        self.call.as_ref()?.approval.as_deref()
    }

    /// Returns `true` if the turn records what each layer decides.
    #[inline]
    pub(crate) fn explains(&self) -> bool {
        self.run.explain
    }

    /// Records the decision of a layer, if the turn is asked to explain.
    pub(crate) fn note(&self, layer: LayerName<'_>, decision: &Decision, seen: &Args) {
        let Some(call) = self.call.as_ref().filter(|_| self.explains()) else { return };
        call.said.lock().unwrap_or_else(PoisonError::into_inner).push(Said {
            layer: layer().into_owned(),
            phase: call.phase,
            pass: call.pass,
            decision: decision.decision(),
            reason: decision.reason(),
            changed_args: decision.changes(seen),
        });
    }

    pub(crate) fn said(&self) -> Vec<Said> {
        self.call.as_ref().map_or_else(Vec::new, |call| {
            std::mem::take(&mut *call.said.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    /// The part of the context that is about the run, which a sub-agent takes over.
    pub(crate) fn run(&self) -> &RunInfo {
        &self.run
    }

    pub(crate) fn arrives(&self) {
        if let Some(call) = &self.call {
            call.attempts.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext")
            .field("run_id", &self.run_id())
            .field("agent", &self.agent_path())
            .field("call", &self.tool_call_id())
            .field("tool", &self.tool_name())
            .field("phase", &self.phase())
            .field("approved", &self.tool_call_approved())
            .finish_non_exhaustive()
    }
}
