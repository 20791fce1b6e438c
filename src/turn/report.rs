//! The report of a turn: the result of each call, and the suspended state.

use std::collections::BTreeSet;
use std::fmt;

use super::snapshot::SuspendedTurn;
use crate::args::Args;
use crate::call::{Execution, Said, SharedError, ToolCall};
use crate::decision::Question;
use crate::deferred::{Answered, DeferredToolRequests};
use crate::error::{Error, ErrorKind};
use crate::outcome::Outcome;

/// The result of one response: a report per call, in model order, and the suspended state if calls are pending.
///
/// ```
/// use countersign::call::Execution;
/// use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn read(file: File) -> anyhow::Result<String> {
///     anyhow::ensure!(file.path != "b", "there is no file b");
///     Ok(file.path)
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("read", "Reads a file", read)));
/// let calls = ["a", "b"].map(|path| ToolCall::new(path, "read", json!({"path": path})));
/// let report = turn.run(calls.to_vec()).await?;
/// assert!(report.deferred().is_none() && report.suspended().is_none());
///
/// let [good, bad] = report.calls() else { unreachable!("one report for each call, in model order") };
/// assert!(matches!(good.execution(), Execution::Finished(_)));
/// assert_eq!(bad.outcome().text().unwrap(), "there is no file b", "for the model");
/// assert_eq!(bad.error().unwrap().to_string(), "there is no file b", "for the host, with its sources");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct TurnReport {
    calls: Vec<CallReport>,
    suspended: Option<SuspendedTurn>,
    closed_asks: BTreeSet<String>,
}

/// The result of one call: the outcome, and how it came about.
///
/// | method | for |
/// |---|---|
/// | [`outcome`](Self::outcome) | the model, and the history |
/// | [`execution`](Self::execution) | what really happened, whatever layers made of the outcome |
/// | [`asked`](Self::asked), [`answered`](Self::answered), [`denied_by`](Self::denied_by) | an audit: who asked, who answered, who denied |
/// | [`said`](Self::said) | an explanation, if the turn [explains](crate::Turn::explain) |
/// | [`error`](Self::error) | the host's log; its text may quote arguments |
/// | [`turns`](Self::turns) | the agent behind the tool |
#[derive(Debug, Clone)]
pub struct CallReport {
    pub(super) call: ToolCall,
    pub(super) args: Args,
    pub(super) outcome: Outcome,
    pub(super) asked: Vec<Question>,
    pub(super) said: Vec<Said>,
    pub(super) answered: Option<Answered>,
    pub(super) execution: Execution,
    pub(super) denied_by: Option<String>,
    pub(super) error: Option<BodyError>,
    pub(super) settled_before: bool,
    pub(super) skipped: bool,
    pub(super) turns: Vec<TurnReport>,
}

/// The error of a tool body. `Debug` does not show it, as it may quote arguments (rule S2).
#[derive(Clone)]
pub(super) struct BodyError(pub(super) SharedError);

impl fmt::Debug for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BodyError")
    }
}

impl TurnReport {
    pub(super) fn new(
        calls: Vec<CallReport>,
        suspended: Option<SuspendedTurn>,
        closed_asks: BTreeSet<String>,
    ) -> Self {
        Self { calls, suspended, closed_asks }
    }

    /// The ids of the asks of calls that have their results, in a run that its caller saves: they are closed in the
    /// transaction that saves these results ([`Lease::end`](crate::ledger::Lease::end), rule L5).
    pub fn closed_asks(&self) -> impl Iterator<Item = &String> {
        self.closed_asks.iter()
    }

    /// Takes the same asks out of the report, to close them now.
    pub(super) fn take_closed_asks(&mut self) -> Vec<String> {
        std::mem::take(&mut self.closed_asks).into_iter().collect()
    }

    /// The reports of the calls, in model order.
    #[must_use]
    pub fn calls(&self) -> &[CallReport] {
        &self.calls
    }

    /// Replaces the outcomes of the calls for which the function returns one.
    pub(crate) fn replace_outcomes(&mut self, other: impl Fn(&CallReport) -> Option<Outcome>) {
        for call in &mut self.calls {
            if let Some(outcome) = other(call) {
                call.outcome = outcome;
            }
        }
    }

    /// The pending calls, as the batch to answer; `None` when every call is settled.
    #[must_use]
    pub fn deferred(&self) -> Option<DeferredToolRequests> {
        self.suspended.as_ref().map(SuspendedTurn::requests)
    }

    /// The suspended state, to store and to [resume](crate::Turn::resume); `None` when every call is settled.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedTurn> {
        self.suspended.as_ref()
    }

    /// The suspended state, by value; `None` when every call is settled.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedTurn> {
        self.suspended
    }
}

impl CallReport {
    /// The call as the model made it.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The final arguments, with which the call ran or would run.
    #[must_use]
    pub fn args(&self) -> &Args {
        &self.args
    }

    /// The outcome that the model gets, or [`Outcome::Deferred`] while the call is pending.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The questions about the call: which layers asked, and why.
    #[must_use]
    pub fn asked(&self) -> &[Question] {
        &self.asked
    }

    /// The decisions of all layers, in order, if the turn was asked to [explain](crate::Turn::explain).
    #[must_use]
    pub fn said(&self) -> &[Said] {
        &self.said
    }

    /// The answer to the call, if it was pending and has one.
    #[must_use]
    pub fn answered(&self) -> Option<&Answered> {
        self.answered.as_ref()
    }

    /// The execution of the call, as the gate has recorded it.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    /// The error of the tool body, if the model got its `Display` and the run continued. The stored state does not have
    /// it.
    #[must_use]
    pub fn error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.as_ref().map(|error| &**error.0.0 as _)
    }

    /// Returns `true` if the call already had its outcome when the response was resumed.
    #[must_use]
    pub fn settled_before(&self) -> bool {
        self.settled_before
    }

    /// Returns `true` if the call was deferred, and then not executed because the response also had a final answer.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.skipped
    }

    /// The reports of the agent behind the call's tool since the run was last resumed, one for each response.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.turns
    }

    /// The layer, or the limit (`max_pending`, `max_repeats`), that denied the call; `None` if the call was not denied,
    /// or by a person.
    #[must_use]
    pub fn denied_by(&self) -> Option<&str> {
        self.denied_by.as_deref()
    }
}

/// The error that a response ended with, the state to resume from, and the report so far.
///
/// ```
/// use countersign::error::ErrorKind;
/// use countersign::{FunctionToolset, ToolCall, ToolError, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn read(file: File) -> Result<String, ToolError> {
///     if file.path == "b" { Err(ToolError::fatal("the disk is gone")) } else { Ok(file.path) }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("read", "Reads a file", read)));
/// let calls = ["a", "b"].map(|path| ToolCall::new(path, "read", json!({"path": path})));
/// let error = turn.run(calls.to_vec()).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Tool);
/// assert!(error.report().calls()[0].outcome().is_returned(), "its sibling has finished");
/// let state = error.into_suspended().unwrap();
/// assert!(state.calls().all(|(_, outcome)| outcome.is_some()), "nothing runs again");
/// # });
/// ```
pub struct TurnError(Box<Inner>);

struct Inner {
    error: Error,
    suspended: Option<SuspendedTurn>,
    report: TurnReport,
}

impl TurnError {
    /// An error before any call has run.
    pub(super) fn before(error: Error) -> Self {
        Self(Box::new(Inner { error, suspended: None, report: TurnReport::default() }))
    }

    /// An error before a suspended response was changed.
    pub(super) fn with_state(error: Error, suspended: SuspendedTurn) -> Self {
        Self(Box::new(Inner { error, suspended: Some(suspended), report: TurnReport::default() }))
    }

    pub(super) fn after(error: Error, suspended: SuspendedTurn, report: TurnReport) -> Self {
        Self(Box::new(Inner { error, suspended: Some(suspended), report }))
    }

    /// The problem, with its details.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0.error
    }

    /// The kind of the error, without its details.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.error.kind()
    }

    /// The state of the response, to resume from: calls that ran are settled and do not run again (rule T9). `None` if
    /// no call of a new response has run.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedTurn> {
        self.0.suspended.as_ref()
    }

    /// The state of the response, by value.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedTurn> {
        self.0.suspended
    }

    /// The reports of the calls at the time of the error.
    #[must_use]
    pub fn report(&self) -> &TurnReport {
        &self.0.report
    }

    pub(super) fn report_mut(&mut self) -> &mut TurnReport {
        &mut self.0.report
    }

    pub(crate) fn into_parts(self) -> (Error, Option<SuspendedTurn>, TurnReport) {
        (self.0.error, self.0.suspended, self.0.report)
    }
}

impl fmt::Display for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.error.fmt(f)
    }
}

impl fmt::Debug for TurnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnError")
            .field("error", &self.0.error)
            .field("report", &self.0.report)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for TurnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}
