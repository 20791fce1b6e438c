//! Results and errors of runs.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Usage;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::origin::ReadRecord;
use crate::turn::{SuspendedRun, TurnReport};

/// The result of a run: its output, its history, and what its calls did.
///
/// ```
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset};
///
/// let agent = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
/// let run = agent.run_sync("Hello")?;
/// assert_eq!(run.text(), Some("Done."));
/// assert_eq!(run.history().len(), 2, "the prompt and the answer");
/// assert_eq!(run.usage().requests, 1);
/// assert!(run.turns().is_empty() && run.suspended().is_none() && !run.run_id().is_empty());
/// # Ok::<(), countersign::agent::RunError>(())
/// ```
#[derive(Debug)]
#[must_use]
pub struct RunResult {
    pub(super) output: RunOutput,
    pub(super) history: Arc<Vec<Message>>,
    pub(super) run_id: String,
    pub(super) turns: Vec<TurnReport>,
    pub(super) usage: Usage,
    pub(super) reads: Option<ReadRecord>,
}

/// The output of a run.
///
/// ```
/// use countersign::agent::RunOutput;
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset};
///
/// let run = Agent::new(ScriptedModel::new([]), FunctionToolset::new()).run_sync("Hello")?;
/// match run.into_output() {
///     RunOutput::Text(text) => assert_eq!(text, "Done."),
///     other => panic!("{other:?}"),
/// }
/// # Ok::<(), countersign::agent::RunError>(())
/// ```
///
/// Exhaustive on purpose: a run that is suspended must not be taken for one that has ended.
#[derive(Debug)]
pub enum RunOutput {
    /// The model's final answer.
    Text(String),
    /// The model's final answer, as JSON that fits the type.
    Structured(Value),
    /// Deferred calls that are not answered: the run is suspended.
    Deferred(Box<SuspendedRun>),
}

impl RunResult {
    /// The output of the run.
    #[must_use]
    pub fn output(&self) -> &RunOutput {
        &self.output
    }

    /// The output of the run, by value.
    #[must_use]
    pub fn into_output(self) -> RunOutput {
        self.output
    }

    /// The final answer, if it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.output {
            RunOutput::Text(text) => Some(text),
            RunOutput::Structured(_) | RunOutput::Deferred(_) => None,
        }
    }

    /// The final answer as a value of type `T`; `None` when the output is not structured, or does not fit the type.
    #[must_use]
    pub fn structured<T: DeserializeOwned>(&self) -> Option<T> {
        match &self.output {
            RunOutput::Structured(value) => T::deserialize(value).ok(),
            RunOutput::Text(_) | RunOutput::Deferred(_) => None,
        }
    }

    /// Returns the usage of the run and its sub-agents, over all of its suspensions.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the record of the run's reads, if there is one. The next run of a conversation continues it
    /// ([`Run::origins`](super::Run::origins)).
    #[must_use]
    pub fn reads(&self) -> Option<&ReadRecord> {
        self.reads.as_ref()
    }

    /// The suspended run, if the run ended with deferred calls.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedRun> {
        match &self.output {
            RunOutput::Deferred(suspended) => Some(suspended),
            RunOutput::Text(_) | RunOutput::Structured(_) => None,
        }
    }

    /// The suspended run, if the run ended with deferred calls, by value.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedRun> {
        match self.output {
            RunOutput::Deferred(suspended) => Some(*suspended),
            RunOutput::Text(_) | RunOutput::Structured(_) => None,
        }
    }

    /// All messages of the run, including the history that it started from.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The id of the run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The reports of the run's turns, one for each response with calls.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.turns
    }
}

/// Inserts the reports of an earlier part of the run before the others.
pub(super) fn put_before(before: Vec<TurnReport>, ended: &mut Result<RunResult, RunError>) {
    let turns = match ended {
        Ok(result) => &mut result.turns,
        Err(error) => &mut error.0.turns,
    };
    turns.splice(0..0, before);
}

/// The error that a run ended with, with a snapshot and the reports of the turns before it.
///
/// ```
/// use countersign::error::ErrorKind;
/// use countersign::model::{ModelRequest, ModelResponse};
/// use countersign::{Agent, BoxError, FunctionToolset, Model};
///
/// struct Down;
///
/// impl Model for Down {
///     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Err("no route to host".into()) }
/// }
///
/// let error = Agent::new(Down, FunctionToolset::new()).run_sync("Hello").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Model);
/// // Nothing is lost: the snapshot has the history, and `Agent::ask` continues from it.
/// assert_eq!(error.into_suspended().history().len(), 1);
/// ```
pub struct RunError(Box<Inner>);

struct Inner {
    error: Error,
    suspended: SuspendedRun,
    turns: Vec<TurnReport>,
}

impl RunError {
    pub(super) fn new(error: Error, suspended: SuspendedRun, turns: Vec<TurnReport>) -> Self {
        Self(Box::new(Inner { error, suspended, turns }))
    }

    /// Returns the error, with its details.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.0.error
    }

    /// The kind of the error, without its details.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.error.kind()
    }

    /// A snapshot of the run, to resume from: calls that ran are settled, and do not run again (rule T9).
    #[must_use]
    pub fn suspended(&self) -> &SuspendedRun {
        &self.0.suspended
    }

    /// The snapshot of the run, by value.
    #[must_use]
    pub fn into_suspended(self) -> SuspendedRun {
        self.0.suspended
    }

    /// The error of a run that could not be started, for a caller that reports such errors as those of runs. `suspended`
    /// is the run as it was.
    ///
    /// ```
    /// use countersign::agent::RunError;
    /// use countersign::{Error, SuspendedRun};
    ///
    /// let run = SuspendedRun::from_trusted_history(Vec::new());
    /// let error = RunError::before_start(Error::Ledger("the disk is full".into()), run);
    /// assert!(error.turns().is_empty());
    /// ```
    #[must_use]
    pub fn before_start(kind: Error, suspended: SuspendedRun) -> Self {
        Self::new(kind, suspended, Vec::new())
    }

    pub(super) fn into_parts(self) -> (Error, SuspendedRun, Vec<TurnReport>) {
        let Inner { error, suspended, turns } = *self.0;
        (error, suspended, turns)
    }

    /// The reports of the run's turns, one for each response with calls.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.0.turns
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.error.fmt(f)
    }
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunError")
            .field("error", &self.0.error)
            .field("suspended", &self.0.suspended)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.error.source()
    }
}
