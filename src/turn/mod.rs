//! One model response, from calls to outcomes.
//!
//! ```text
//!  calls ──► walk each through the stack, concurrently ──► settled │ deferred
//!                                                                     │ one batch, one question to the handler
//!            walk the approved ones again ◄── check all answers ◄─────┘
//!                  │
//!                  └─► a report: one outcome per call, in model order; what still waits, as a value to store
//! ```
//!
//! [`Turn`] needs no agent: whoever has a loop gives it the calls of a response and appends the outcomes to the
//! history.

mod admit;
mod apply;
mod asks;
mod checks;
mod child;
mod closing;
mod errors;
mod event;
mod heap;
mod inside;
mod journal;
mod kept;
mod pending;
mod report;
mod resolve;
mod retries;
mod slot;
mod suspended;
mod suspended_run;
mod together;
mod walk;

use std::fmt;
use std::sync::Arc;

pub use admit::admit;
use asks::AskLimits;
pub(crate) use checks::unique_ids;
#[cfg(feature = "ai-sdk")]
pub(crate) use child::JOINT;
pub(crate) use child::{End, Ended, SubAgent, Task, behind};
pub(crate) use closing::Closing;
pub use event::RunEvent;
pub(crate) use event::Watchers;
pub(crate) use heap::boxed;
pub(crate) use kept::recorded;
pub use report::{Answered, CallReport, TurnError, TurnReport};
pub(crate) use retries::Retries;
pub use suspended::SuspendedTurn;
pub use suspended_run::SuspendedRun;
pub(crate) use suspended_run::results;

use crate::call::{RunContext, RunInfo, ToolCall, ToolDefinition};
use crate::caught::{Caught, caught};
use crate::deferred::DeferredToolResults;
use crate::error::ErrorKind;
use crate::handler::{DeferredToolHandler, ErasedHandler};
use crate::ledger::{Ledger, Record};
use crate::middleware::ToolCallError;
use crate::outcome::Outcome;
use crate::tools::Tools;

/// How often one call may be deferred before it is denied (rule D7).
const MAX_DEFERRALS: u32 = 16;

/// A final answer that came beside the calls of a response.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum FinalAnswer {
    /// It was heard, and stands.
    Streamed,
    /// It stands unless a call beside it has to be tried again.
    Structured,
}

/// Makes an outcome for the model of an error of a layer, or does not.
type ErrorOutcome = Arc<dyn Fn(&ToolCallError) -> Option<Outcome> + Send + Sync>;

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
    tools: Tools,
    info: RunInfo,
    handler: Option<Arc<dyn ErasedHandler>>,
    error_outcome: ErrorOutcome,
    max_deferrals: u32,
    /// How many levels of agents may be below this turn.
    max_nested_agents: u32,
    /// The run may not end with calls that wait.
    answers_all: bool,
    ask_limits: AskLimits,
    /// A turn of its own has no budget: whoever has the loop counts.
    retries: Option<Retries>,
    require_bound: bool,
    trace_args: bool,
    ledger: Option<Ledger>,
    /// Takes the asks that are to be closed; without it they are closed at once.
    closing: Option<Closing>,
    /// Came beside these calls.
    final_answer: Option<FinalAnswer>,
    watchers: Watchers,
}

impl Turn {
    /// A turn over these tools. Each run of it has a new run id, unless [`of_run`](Self::of_run) says which it is.
    pub fn new(tools: impl Into<Tools>) -> Self {
        let info = RunInfo { path: vec!["root".to_owned()], ..RunInfo::default() };
        Self {
            tools: tools.into(),
            info,
            handler: None,
            error_outcome: Arc::new(errors::default_outcome),
            max_deferrals: MAX_DEFERRALS,
            max_nested_agents: child::MAX_NESTED,
            answers_all: false,
            ask_limits: AskLimits::default(),
            retries: None,
            require_bound: false,
            trace_args: false,
            ledger: None,
            closing: None,
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

    /// Keeps what every layer said, for [`CallReport::said`].
    pub fn explain(mut self) -> Self {
        self.info.explain = true;
        self
    }

    /// Puts argument values into spans. Off by default (rule S2).
    pub fn danger_trace_arguments(mut self) -> Self {
        self.trace_args = true;
        self
    }

    /// Writes every ask down before anybody is asked, makes every answer a decision that counts once, and claims and
    /// settles every approved execution, over all processes and crashes (rules L1 to L3). See [`ledger`](crate::ledger).
    ///
    /// An answer that comes after somebody else's does not count: the decision that was recorded takes its place. A
    /// call that was executed gives its recorded outcome, and one whose end was not seen is reported as *may have run*.
    /// Claims are renewed while a body runs, by tokio's clock.
    pub fn ledger(mut self, ledger: Ledger) -> Self {
        self.info.journal = Some(Arc::new(journal::LedgerJournal(ledger.clone())));
        self.ledger = Some(ledger);
        self
    }

    /// What the ledger says about a response that waits, as answers to [resume](Self::resume) it with: what was decided
    /// since, here or elsewhere. What nobody has decided about is left. Without a ledger everything is left.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`].
    pub async fn decisions(
        &self,
        suspended: &SuspendedTurn,
    ) -> Result<DeferredToolResults, ErrorKind> {
        match &self.ledger {
            Some(ledger) => kept::decisions(ledger, suspended).await,
            None => Ok(suspended.requests().answer().leave_rest().unchecked()),
        }
    }

    /// Makes answers decisions, and applies none of them.
    #[cfg(feature = "ai-sdk")]
    pub(crate) async fn decide(
        &self,
        suspended: &SuspendedTurn,
        answers: DeferredToolResults,
    ) -> Result<(), ErrorKind> {
        match &self.ledger {
            Some(ledger) => kept::decide(ledger, suspended, answers).await,
            None => Ok(()),
        }
    }

    /// The asks in the ledger of the calls that wait, those of sub-agents too, by the ids of the calls in
    /// [`requests`](SuspendedTurn::requests). None without a ledger.
    ///
    /// # Errors
    /// [`ErrorKind::Ledger`].
    pub async fn asks(
        &self,
        suspended: &SuspendedTurn,
    ) -> Result<Vec<(String, Record)>, ErrorKind> {
        match &self.ledger {
            Some(ledger) => kept::asks(ledger, suspended).await,
            None => Ok(Vec::new()),
        }
    }

    /// Watches what happens, as it happens.
    pub fn watch(mut self, watch: impl Fn(&RunEvent) + Send + Sync + 'static) -> Self {
        self.watchers.add(watch);
        self
    }

    /// Takes the calls of one response through the stack: ordinary ones run, deferred ones are collected, answered by
    /// the handler if there is one, and run if they are approved.
    ///
    /// # Errors
    /// [`TurnError`]: duplicate or unusable ids (see [`admit()`]) before anything runs, tools that cannot be listed, a tool
    /// or layer that failed fatally, a handler that failed or answered wrongly. What has run is in the error, with the value
    /// to resume from (rule T9).
    pub async fn run(&self, calls: Vec<ToolCall>) -> Result<TurnReport, TurnError> {
        self.run_with(calls.into_iter().map(|call| (call, None)).collect(), None).await
    }

    /// Like [`run`](Self::run), with the outcome of calls that are settled already, and with the definitions that the
    /// model was shown.
    pub(crate) async fn run_with(
        &self,
        calls: Vec<(ToolCall, Option<Outcome>)>,
        shown: Option<Vec<ToolDefinition>>,
    ) -> Result<TurnReport, TurnError> {
        let entering = || calls.iter().map(|(call, _)| call);
        if let Err(kind) = unique_ids(entering()).and_then(|()| checks::usable_ids(entering())) {
            return Err(TurnError::before(kind));
        }
        let mut turn = self.clone();
        if turn.info.run_id.is_empty() {
            turn.info.run_id = new_run_id();
        }
        turn.begins_asking(None);
        let ended = match boxed(|| resolve::Resolving::start(&turn, calls, shown)).await {
            Ok(resolving) => boxed(|| resolving.answer()).await,
            Err(error) => Err(error),
        };
        boxed(|| turn.closed(ended)).await
    }

    /// Applies answers to what waits: denied calls get their outcome, approved ones go through the same stack again.
    /// Everything is checked before anything takes effect.
    ///
    /// A state that is resumed twice, from a clone or from what was stored, runs its approved calls twice, and so does one
    /// whose resume was dropped in the middle: only a [`ledger`](Self::ledger) knows of the other time.
    ///
    /// # Errors
    /// [`TurnError`] as [`run`](Self::run). Answers that do not fit leave everything as it was: the error carries the
    /// value to resume from.
    pub async fn resume(
        &self,
        suspended: SuspendedTurn,
        answers: DeferredToolResults,
    ) -> Result<TurnReport, TurnError> {
        let turn = self.taking_up(&suspended);
        let resolving = boxed(|| resolve::Resolving::from_suspended(&turn, suspended)).await?;
        let ended = boxed(|| resolving.resume(answers)).await;
        boxed(|| turn.closed(ended)).await
    }

    /// Asks the handler about what waits, and applies its answers: for a response that was suspended without one, or
    /// whose calls have deferred again. Without a handler everything goes on waiting.
    ///
    /// # Errors
    /// [`TurnError`] as [`run`](Self::run).
    pub async fn ask(&self, suspended: SuspendedTurn) -> Result<TurnReport, TurnError> {
        let turn = self.taking_up(&suspended);
        let resolving = boxed(|| resolve::Resolving::from_suspended(&turn, suspended)).await?;
        let ended = boxed(|| resolving.answer()).await;
        boxed(|| turn.closed(ended)).await
    }

    /// The same turn for the response that waits.
    fn taking_up(&self, suspended: &SuspendedTurn) -> Self {
        let mut turn = self.clone();
        turn.info.run_id = suspended.run_id().to_owned();
        turn.info.response = suspended.response();
        turn.info.path = suspended.path().to_vec();
        turn.begins_asking(Some(suspended));
        turn
    }

    /// The tools as the model may be told of them now.
    ///
    /// # Errors
    /// [`ErrorKind::User`] when two tools have one name or a wrapper is wired wrong, [`ErrorKind::Tools`] when a toolset
    /// cannot list its tools.
    pub async fn definitions(&self) -> Result<Vec<ToolDefinition>, ErrorKind> {
        let cx = self.context();
        match caught(|| self.tools.definitions(&cx)).await {
            Ok(definitions) => definitions.map_err(|error| match error.downcast() {
                Ok(error) => user(*error),
                Err(error) => ErrorKind::Tools(error),
            }),
            Err(Caught(what)) => {
                Err(ErrorKind::Tools(format!("a toolset or a wrapper {what}").into()))
            }
        }
    }

    /// The context outside any call.
    pub(crate) fn context(&self) -> RunContext {
        RunContext::of_run(Arc::new(self.info.clone()))
    }
}

/// A new id for a run: unique, and in the order of time.
pub(crate) fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// The error of wiring, as a response ends with it.
fn user(error: crate::error::UserError) -> ErrorKind {
    ErrorKind::User(error)
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
