//! How a response, or the run around it, fails.

use super::ids::Behind;
use super::{BoxError, UsageLimitExceeded, UserError};

/// Why a response, or the run around it, ended with an error.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum ErrorKind {
    /// The host wired something wrong.
    #[error(transparent)]
    User(#[from] UserError),
    /// The model broke the rules: duplicate call ids, or failures beyond the [retries](crate::Agent::max_retries) of a tool.
    #[error("the model's response cannot be used: {problem}{}", Behind(ids))]
    ModelBehavior {
        /// What the model did, and where.
        problem: String,
        /// The calls it is about.
        ids: Vec<String>,
    },
    /// The model, or the way to it, failed.
    #[error("the model request failed")]
    Model(#[source] BoxError),
    /// A tool, or a layer around it, ended with an error that is not for the model.
    #[error("call `{}` of tool `{}` failed", id.escape_debug(), tool.escape_debug())]
    Tool {
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
        /// The error of the tool, layer or handler.
        #[source]
        source: BoxError,
    },
    /// A deferred tool handler failed.
    #[error("deferred tool handler `{name}` failed")]
    Handler {
        /// The name of the handler.
        name: String,
        /// The error of the tool, layer or handler.
        #[source]
        source: BoxError,
    },
    /// A person stopped the run: see [`Stopped`](crate::Stopped).
    #[error("the run was stopped by a person; none of the calls that were open has run")]
    Stopped,
    /// The agent behind a tool cannot go on. The suspended run has it where it stopped.
    #[error("agent `{}` cannot go on (call `{}`)", agent.escape_debug(), id.escape_debug())]
    Agent {
        /// The call it works on.
        id: String,
        /// The agent, by the name of its tool.
        agent: String,
        /// Why the agent cannot go on.
        #[source]
        source: Box<Self>,
    },
    /// Agents would be nested deeper than [they may](crate::Turn::max_nested_agents) (rule T10). The agent was not started.
    #[error(
        "agents may be nested {max} levels deep and no deeper: raise the limit (`max_nested_agents`) to resume the run, or close it"
    )]
    AgentsTooDeep {
        /// How deep they may be nested.
        max: usize,
    },
    /// Another worker, or another task of this one, resumes the run now. Nothing has changed; try again when it is done.
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
        /// Since when, in milliseconds since 1970 by the store's clock, where the ledger knows.
        since: Option<i64>,
    },
    /// The run has gone on since this state of it was stored, or another worker has taken it over in the meantime: resume
    /// it by its id ([`Agent::take_up`](crate::Agent::take_up)).
    #[error("run `{}` has gone on elsewhere: take it up by its id", run.escape_debug())]
    RunGoneOn {
        /// The id of the run.
        run: String,
    },
    /// The ledger could not answer. What waits stands as it was.
    #[error("the ledger could not answer")]
    Ledger(#[source] BoxError),
    /// The run may not use more.
    #[error("{exceeded}{}", Behind(ids))]
    UsageLimit {
        /// The limit that was reached.
        exceeded: UsageLimitExceeded,
        /// The calls that were not executed.
        ids: Vec<String>,
    },
    /// The definitions of the tools could not be had.
    #[error("the tools could not be listed")]
    Tools(#[source] BoxError),
}

impl ErrorKind {
    /// The calls the error is about, in the order of the response where it has one.
    ///
    /// ```
    /// use countersign::{ErrorKind, UserError};
    /// let kind = ErrorKind::from(UserError::AnswersMissing { ids: vec!["call_2".into()] });
    /// assert_eq!(kind.ids(), ["call_2"]);
    /// ```
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::User(error) => error.ids(),
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

    /// Whether a person [stopped](crate::Stopped) the run, at a call of its own or of an agent behind a tool.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        match self {
            Self::Stopped => true,
            Self::Agent { source, .. } => source.is_stopped(),
            _ => false,
        }
    }

    /// Whether another worker resumes the same run, or has resumed it: a web handler answers 409.
    ///
    /// ```
    /// use countersign::ErrorKind;
    /// assert!(ErrorKind::RunGoneOn { run: "r1".into() }.is_conflict());
    /// ```
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::RunTaken { .. } | Self::RunGoneOn { .. })
    }
}
