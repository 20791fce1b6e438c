//! One model response, from calls to outcomes.
//!
//! ```text
//!  calls ──► pass each through the stack ──► settled │ deferred
//!                                                         │ one batch
//!  pass the approved ones again ◄── check all answers ◄───┘
//!        │
//!        └─► a report: one outcome per call, in model order,
//!            and the pending calls as a value to store
//! ```
//!
//! [`Turn`] needs no agent: a loop of your own passes it the calls of a response and appends the outcomes to the
//! history.
//!
//! ```
//! use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct File { path: String }
//!
//! async fn delete(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
//! let report = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a.log"}))]).await?;
//! let suspended = report.into_suspended().unwrap();
//! let answers = suspended.requests().answer().approve("c1").build()?;
//! let report = turn.resume(suspended, answers).await?;
//! assert_eq!(report.calls()[0].outcome().text().as_deref(), Some("deleted a.log"));
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! # A loop of your own
//!
//! ```
//! use countersign::message::RequestPart;
//! use countersign::turn::admit;
//! use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
//! use serde_json::json;
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Query { text: String }
//! async fn search(query: Query) -> Result<String, ToolError> { Ok(format!("2 hits for {}", query.text)) }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let turn = Turn::new(FunctionToolset::new().tool(tool_fn("search", "Searches", search)));
//! // The calls of one response of your model, with ids that were not used before in this conversation.
//! let calls = admit(vec![ToolCall::new("call_1", "search", json!({"text": "cats"}))], &[]);
//! let report = turn.run(calls).await?;
//! let results = report.calls().iter().filter_map(|call| RequestPart::result(call.call(), call.outcome()));
//! assert_eq!(results.count(), 1);
//! # Ok::<(), countersign::BoxError>(()) }).unwrap();
//! ```
//!
//! # What a response can end with
//!
//! | result | means | continue with |
//! |---|---|---|
//! | a report without [`suspended`](TurnReport::suspended) | every call has its outcome | the next model request |
//! | a report with it | calls are pending | an answer, then [`Turn::resume`] |
//! | [`TurnError`] | a fatal error; calls that ran are settled | its state, if it has one |
//!
//! # Who may run what, and when
//!
//! Allowed calls run before any answer is there. Deferred calls run after *all* of them are answered, so that a person
//! who answers the last one has still the choice over the first (rule T1).

mod admit;
mod asks;
mod audit;
mod batch;
mod call_state;
mod checks;
mod config;
mod dispatch;
mod durability;
mod errors;
mod event;
mod heap;
mod ids;
mod limits;
mod pass;
mod reading;
mod report;
mod retries;
mod run;
mod snapshot;
mod sub_agent;
mod suspended;
mod suspended_run;

pub use admit::admit;
pub use audit::PassEnd;
pub(crate) use checks::unique_ids;
pub(crate) use config::FinalAnswer;
pub use config::Turn;
pub(crate) use durability::{Durability, Granted, OpenAsk, ParkResult, Parking, Recorded, Shares};
pub(crate) use durability::{open_asks, record_answer};
pub use event::RunEvent;
pub(crate) use event::Watchers;
pub(crate) use heap::boxed;
pub use ids::is_below;
pub(crate) use ids::new_run_id;
pub use report::{CallReport, TurnError, TurnReport};
pub(crate) use retries::Retries;
pub use snapshot::{SuspendedRun, SuspendedTurn};
pub(crate) use sub_agent::{SubAgent, SubAgentEnd, SubAgentResult, SubAgentTask, behind};
pub(crate) use suspended::results;

use std::sync::Arc;

use call_state::CallState;
use run::TurnRun;
use snapshot::StoredCall;

use crate::call::{ToolCall, ToolDefinition};
use crate::deferred::DeferredToolResults;
use crate::error::{Error, UserError};
use crate::outcome::Outcome;
use crate::panic::{Panicked, catch_within};

impl Turn {
    /// Takes the calls of one response through the stack: ordinary ones run, deferred ones are collected, answered by
    /// the handler if there is one, and run if they are approved.
    ///
    /// The future borrows the turn. A task of its own takes a clone along:
    ///
    /// ```
    /// use countersign::{FunctionToolset, Turn};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new());
    /// let ours = turn.clone();
    /// let task = tokio::spawn(async move { ours.run(Vec::new()).await });
    /// assert!(task.await??.calls().is_empty());
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`TurnError`]: duplicate or unusable ids (see [`admit()`]) before anything runs, tools that cannot be
    /// listed, a tool or layer that failed fatally, a handler that failed or answered wrongly. The error has the
    /// report of the calls that ran, and the state to resume from (rule T9).
    pub async fn run(&self, calls: Vec<ToolCall>) -> Result<TurnReport, TurnError> {
        self.run_with(calls.into_iter().map(|call| (call, None)).collect(), None).await
    }

    /// Like [`run`](Self::run), with the outcomes of calls that are settled already, and with the definitions that the
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
            Arc::make_mut(&mut turn.info).run_id = new_run_id();
        }
        turn.begins_asking(None);
        let info = Arc::make_mut(&mut turn.info);
        if let (Some(record), None) = (&info.reads, info.read_before) {
            info.read_before = Some(record.position());
        }
        let ended = match boxed(|| TurnRun::start(&turn, calls, shown)).await {
            Ok(run) => boxed(|| run.answer()).await,
            Err(error) => Err(error),
        };
        boxed(|| turn.closed(ended)).await
    }

    /// Applies answers to the pending calls: denied calls get their outcome, approved ones pass the same stack again.
    /// All answers are checked before any of them takes effect.
    ///
    /// A state that is resumed twice, from a clone or from a stored copy, runs its approved calls twice, and so does
    /// a state whose first resume was dropped in the middle. Only a [`ledger`](Self::ledger) detects the second resume.
    ///
    /// # Errors
    /// [`TurnError`] as [`run`](Self::run). Answers that do not fit change nothing: the error has the state to resume
    /// from.
    ///
    /// ```
    /// use countersign::{FunctionToolset, SuspendedTurn, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
    /// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
    /// let stored = serde_json::to_string(&suspended)?;
    ///
    /// // Later, in another process with the same tools:
    /// let suspended: SuspendedTurn = serde_json::from_str(&stored)?;
    /// let answers = suspended.requests().answer().deny("c1", "keep it").answered_by("ann").build()?;
    /// let report = turn.resume(suspended, answers).await?;
    /// assert_eq!(report.calls()[0].outcome().text().unwrap(), "keep it");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub async fn resume(
        &self,
        suspended: SuspendedTurn,
        answers: DeferredToolResults,
    ) -> Result<TurnReport, TurnError> {
        let turn = self.taking_up(&suspended);
        let run = boxed(|| TurnRun::from_suspended(&turn, suspended)).await?;
        let ended = boxed(|| run.resume(answers)).await;
        boxed(|| turn.closed(ended)).await
    }

    /// Asks the handler about the pending calls, and applies its answers: for a response that was suspended without a
    /// handler, or whose calls were deferred again. Without a handler the calls stay pending.
    ///
    /// # Errors
    /// [`TurnError`] as [`run`](Self::run).
    ///
    /// ```
    /// use countersign::handler::DenyAll;
    /// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
    /// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
    /// let report = turn.deferred_tool_handler(DenyAll::new("not at night")).ask(suspended).await?;
    /// assert_eq!(report.calls()[0].outcome().text().unwrap(), "not at night");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    pub async fn ask(&self, suspended: SuspendedTurn) -> Result<TurnReport, TurnError> {
        let turn = self.taking_up(&suspended);
        let run = boxed(|| TurnRun::from_suspended(&turn, suspended)).await?;
        let ended = boxed(|| run.answer()).await;
        boxed(|| turn.closed(ended)).await
    }

    /// The definitions of the tools that the model may be shown now.
    ///
    /// # Errors
    /// [`Error::User`] when two tools have one name, a wrapper is wired wrong, or the name of an agent has a `/`;
    /// [`Error::Tools`] when a toolset cannot list its tools, or takes longer than
    /// [`describing_within`](Self::describing_within).
    pub async fn definitions(&self) -> Result<Vec<ToolDefinition>, Error> {
        let definitions = self.listed().await?;
        let agents = definitions.iter().filter(|it| sub_agent::sub_agent(it).is_some());
        let names = self.info.path.iter().map(String::as_str).chain(agents.map(|it| it.name()));
        match names.into_iter().find(|name| name.contains(ids::JOINT)) {
            Some(name) => Err(UserError::AgentName { name: name.to_owned() }.into()),
            None => Ok(definitions),
        }
    }

    /// The definitions, also of agents whose names an earlier version accepted.
    async fn listed(&self) -> Result<Vec<ToolDefinition>, Error> {
        let cx = self.context();
        let limit = self.info.describing_within();
        match catch_within(limit, || self.tools.definitions(&cx)).await {
            Ok(definitions) => definitions.map_err(|error| match Error::of_host(error) {
                Ok(error) => error,
                Err(error) => Error::Tools(error),
            }),
            Err(Panicked(what)) => {
                Err(Error::Tools(format!("a toolset or a wrapper {what}").into()))
            }
        }
    }

    /// Checks answers to the pending calls, without applying them.
    pub(crate) async fn check(
        &self,
        suspended: SuspendedTurn,
        answers: &DeferredToolResults,
    ) -> Result<(), Error> {
        let turn = self.taking_up(&suspended);
        let run = boxed(|| TurnRun::from_suspended(&turn, suspended)).await;
        let run = run.map_err(|error| error.into_parts().0)?;
        let requests = run.requests();
        boxed(|| run.check_answers(&requests, answers)).await
    }

    /// The state of a response whose calls have not passed the stack yet, with the outcomes that are known.
    pub(crate) fn undecided(
        &self,
        calls: impl IntoIterator<Item = (ToolCall, Option<Outcome>)>,
    ) -> SuspendedTurn {
        let calls = calls.into_iter().map(|(call, outcome)| CallState::of(call, outcome));
        let calls = calls.map(|call| StoredCall::from(&call)).collect();
        SuspendedTurn::new(&self.info, calls)
    }

    /// Closes the asks of calls that have their results, unless the code that saves the run closes them (rule L5).
    async fn close_asks(&self, report: &mut TurnReport) -> Result<(), Error> {
        let Some(durability) = self.durability.as_ref().filter(|_| !self.closes_later) else {
            return Ok(());
        };
        match &report.take_closed_asks()[..] {
            [] => Ok(()),
            asks => durability.close(asks).await.map_err(Error::Ledger),
        }
    }

    /// Closes asks after a turn has ended with an error. If that fails too, the first error is returned.
    async fn closed(&self, ended: Result<TurnReport, TurnError>) -> Result<TurnReport, TurnError> {
        let Err(mut error) = ended else { return ended };
        if let Err(error) = self.close_asks(error.report_mut()).await {
            tracing::warn!(%error, "asks of calls that have their results could not be closed");
        }
        Err(error)
    }
}
