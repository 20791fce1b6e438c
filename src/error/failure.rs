//! The failure of a response, or of the run around it.

use super::ids::IdsAfter;
use super::{AnswerError, BoxError, ErrorKind, UsageLimitExceeded, UserError};

/// An error that ended a response, or the run around it. [`kind`](Self::kind) tells which one without its details.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A mistake in the host program: in its setup, or in the stored state.
    #[error(transparent)]
    User(#[from] UserError),
    /// Answers that do not fit the pending calls. No call has run, and the calls can be answered again.
    #[error(transparent)]
    Answers(#[from] AnswerError),
    /// The response of the model cannot be used: duplicate call ids, or more failures of a tool than its
    /// [retries](crate::Agent::max_retries) allow.
    #[error("the model's response cannot be used: {problem}{}", IdsAfter(ids))]
    ModelBehavior {
        /// The fault of the response.
        problem: String,
        /// The ids of the affected calls; may be empty.
        ids: Vec<String>,
    },
    /// The request to the model failed: in the model, its client, or a layer around them.
    #[error("the model request failed")]
    Model(#[source] BoxError),
    /// A tool, or a layer around it, ended with an error that is not for the model.
    #[error("call `{}` of tool `{}` failed", id.escape_debug(), tool.escape_debug())]
    Tool {
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
        /// The error of the tool or layer.
        #[source]
        source: BoxError,
    },
    /// A deferred tool handler returned an error or panicked.
    #[error("deferred tool handler `{name}` failed")]
    Handler {
        /// The name of the handler.
        name: String,
        /// The error that the handler returned, or a text for a panic.
        #[source]
        source: BoxError,
    },
    /// A person stopped the run: see [`Stopped`](crate::handler::Stopped).
    #[error("the run was stopped by a person; none of the calls that were open has run")]
    Stopped,
    /// The agent behind a tool failed. The suspended run contains the agent's state, to resume from.
    #[error("agent `{}` failed (call `{}`)", agent.escape_debug(), id.escape_debug())]
    Agent {
        /// The id of the call that the agent executes.
        id: String,
        /// The agent, by the name of its tool.
        agent: String,
        /// The error of the agent.
        #[source]
        source: Box<Self>,
    },
    /// Agents would be nested deeper than [allowed](crate::Turn::max_nested_agents) (rule T10). The agent was not
    /// started.
    #[error(
        "agents may be nested {max} levels deep and no deeper: raise the limit (`max_nested_agents`) to resume the run, or close it"
    )]
    AgentsTooDeep {
        /// The maximum nesting, in levels.
        max: usize,
    },
    /// Another worker, or another task of this worker, is resuming the run. Nothing has changed; try again later.
    #[error(
        "run `{}` is being resumed by worker `{}`: try again when it is done",
        run.escape_debug(),
        by.escape_debug()
    )]
    RunTaken {
        /// The id of the run.
        run: String,
        /// The worker, by its [name](crate::ledger::Ledger::worker) in the ledger.
        by: String,
        /// The time when that worker took the run, in milliseconds since the Unix epoch by the store's clock; `None` if
        /// the ledger does not know.
        since: Option<i64>,
    },
    /// The snapshot is out of date: the run was resumed after this state was stored, or another worker has taken over.
    /// Resume the run by its id ([`Agent::take_up`](crate::Agent::take_up)).
    #[error("run `{}` was continued elsewhere: resume it by its id, with `Agent::take_up`", run.escape_debug())]
    RunGoneOn {
        /// The id of the run.
        run: String,
    },
    /// The ledger could not answer. The pending calls are unchanged.
    #[error("the ledger could not answer")]
    Ledger(#[source] BoxError),
    /// The run has reached one of its [usage limits](crate::call::UsageLimits).
    #[error("{exceeded}{}", IdsAfter(ids))]
    UsageLimit {
        /// The limit that the run has reached.
        exceeded: UsageLimitExceeded,
        /// The ids of the calls that were therefore not executed.
        ids: Vec<String>,
    },
    /// The definitions of the tools could not be listed.
    #[error("the tools could not be listed")]
    Tools(#[source] BoxError),
}

impl Error {
    /// The kind of the error, without its details: for a status code, a metric, or the decision to retry.
    ///
    /// ```
    /// use countersign::error::{Error, ErrorKind};
    /// assert_eq!(Error::RunGoneOn { run: "r1".into() }.kind(), ErrorKind::RunGoneOn);
    /// ```
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::User(_) => ErrorKind::User,
            Self::Answers(_) => ErrorKind::Answers,
            Self::ModelBehavior { .. } => ErrorKind::ModelBehavior,
            Self::Model(_) => ErrorKind::Model,
            Self::Tool { .. } => ErrorKind::Tool,
            Self::Handler { .. } => ErrorKind::Handler,
            Self::Stopped => ErrorKind::Stopped,
            Self::Agent { .. } => ErrorKind::Agent,
            Self::AgentsTooDeep { .. } => ErrorKind::AgentsTooDeep,
            Self::RunTaken { .. } => ErrorKind::RunTaken,
            Self::RunGoneOn { .. } => ErrorKind::RunGoneOn,
            Self::Ledger(_) => ErrorKind::Ledger,
            Self::UsageLimit { .. } => ErrorKind::UsageLimit,
            Self::Tools(_) => ErrorKind::Tools,
        }
    }

    /// The error that a tool, a layer or a handler returned, if it is one of the host program or about its answers.
    pub(crate) fn of_host(error: BoxError) -> Result<Self, BoxError> {
        match error.downcast::<UserError>() {
            Ok(error) => Ok(Self::User(*error)),
            Err(error) => error.downcast::<AnswerError>().map(|error| Self::Answers(*error)),
        }
    }

    /// The ids of the affected calls, in the order of the response where the error has one; empty if there are none.
    ///
    /// ```
    /// use countersign::{AnswerError, Error};
    /// let error = Error::from(AnswerError::Missing { ids: vec!["call_2".into()] });
    /// assert_eq!(error.ids(), ["call_2"]);
    /// ```
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::User(error) => error.ids(),
            Self::Answers(error) => error.ids(),
            Self::ModelBehavior { ids, .. } => ids.clone(),
            Self::Tool { id, .. } | Self::Agent { id, .. } => vec![id.clone()],
            Self::UsageLimit { ids, .. } => ids.clone(),
            Self::Model(_)
            | Self::Handler { .. }
            | Self::Stopped
            | Self::Tools(_)
            | Self::AgentsTooDeep { .. }
            | Self::RunTaken { .. }
            | Self::RunGoneOn { .. }
            | Self::Ledger(_) => Vec::new(),
        }
    }

    /// Returns `true` if a person [stopped](crate::handler::Stopped) the run, at a call of its own or of an agent
    /// behind a tool.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Agent { source, .. } => source.is_stopped(),
            _ => false,
        }
    }

    /// Returns `true` if another worker is resuming the same run, or has resumed it: a web handler responds with 409.
    ///
    /// ```
    /// use countersign::Error;
    /// assert!(Error::RunGoneOn { run: "r1".into() }.is_conflict());
    /// ```
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::RunTaken { .. } | Self::RunGoneOn { .. })
    }
}
