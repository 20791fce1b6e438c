//! What a run comes to.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::call::Usage;
use crate::error::ErrorKind;
use crate::message::Message;
use crate::turn::{SuspendedRun, TurnReport};

/// What a run came to.
#[derive(Debug)]
#[must_use]
pub struct RunResult {
    pub(super) output: RunOutput,
    pub(super) history: Arc<Vec<Message>>,
    pub(super) run_id: String,
    pub(super) turns: Vec<TurnReport>,
    pub(super) usage: Usage,
}

/// What a run ended with.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunOutput {
    /// The model's final answer.
    Text(String),
    /// The model's final answer, as JSON that fits the type.
    Structured(Value),
    /// Calls that nobody has answered.
    Deferred(Box<SuspendedRun>),
}

impl RunResult {
    /// What the run ended with.
    #[must_use]
    pub fn output(&self) -> &RunOutput {
        &self.output
    }

    /// What the run ended with.
    #[must_use]
    pub fn into_output(self) -> RunOutput {
        self.output
    }

    /// The final answer, if there is one.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.output {
            RunOutput::Text(text) => Some(text),
            RunOutput::Structured(_) | RunOutput::Deferred(_) => None,
        }
    }

    /// The final answer as a value of this type; `None` when it is none, or not of this type.
    #[must_use]
    pub fn structured<T: DeserializeOwned>(&self) -> Option<T> {
        match &self.output {
            RunOutput::Structured(value) => T::deserialize(value).ok(),
            RunOutput::Text(_) | RunOutput::Deferred(_) => None,
        }
    }

    /// What the run has used, with its sub-agents, over all of its suspensions.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The run that waits, if it does.
    #[must_use]
    pub fn suspended(&self) -> Option<&SuspendedRun> {
        match &self.output {
            RunOutput::Deferred(suspended) => Some(suspended),
            RunOutput::Text(_) | RunOutput::Structured(_) => None,
        }
    }

    /// The run that waits, if it does.
    #[must_use]
    pub fn into_suspended(self) -> Option<SuspendedRun> {
        match self.output {
            RunOutput::Deferred(suspended) => Some(*suspended),
            RunOutput::Text(_) | RunOutput::Structured(_) => None,
        }
    }

    /// The conversation.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The run.
    #[must_use]
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// What became of the calls, response by response.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.turns
    }
}

/// Puts the reports of what a run did before in front of those that are there.
pub(super) fn put_before(before: Vec<TurnReport>, ended: &mut Result<RunResult, RunError>) {
    let turns = match ended {
        Ok(result) => &mut result.turns,
        Err(error) => &mut error.0.turns,
    };
    turns.splice(0..0, before);
}

/// Why a run ended with an error, and everything that had happened by then.
pub struct RunError(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    suspended: SuspendedRun,
    turns: Vec<TurnReport>,
}

impl RunError {
    pub(super) fn new(kind: ErrorKind, suspended: SuspendedRun, turns: Vec<TurnReport>) -> Self {
        Self(Box::new(Inner { kind, suspended, turns }))
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The run as it stood, to resume from: what ran is settled and does not run again (rule T9).
    #[must_use]
    pub fn suspended(&self) -> &SuspendedRun {
        &self.0.suspended
    }

    /// The run as it stood.
    #[must_use]
    pub fn into_suspended(self) -> SuspendedRun {
        self.0.suspended
    }

    /// An error before anything of the run was done.
    #[cfg(feature = "ai-sdk")]
    pub(crate) fn stopped(kind: ErrorKind, suspended: SuspendedRun) -> Self {
        Self::new(kind, suspended, Vec::new())
    }

    pub(super) fn into_parts(self) -> (ErrorKind, SuspendedRun, Vec<TurnReport>) {
        let Inner { kind, suspended, turns } = *self.0;
        (kind, suspended, turns)
    }

    /// What became of the calls, response by response.
    #[must_use]
    pub fn turns(&self) -> &[TurnReport] {
        &self.0.turns
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.kind.fmt(f)
    }
}

impl fmt::Debug for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunError")
            .field("kind", &self.0.kind)
            .field("suspended", &self.0.suspended)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.kind.source()
    }
}
