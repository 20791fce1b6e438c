//! What the host of a stack can get wrong, and how a response can fail.
//!
//! A denial is never an error: it is an [`Outcome`](crate::Outcome) that the model sees. The types here are for the
//! program that wires tools, layers and handlers together.

mod ids;
mod limit;

pub use limit::UsageLimitExceeded;

use ids::{Behind, Ids, IdsAre, NotExpected};

/// The error type that crosses every [`tower::Service`] of a stack, as in tower itself.
pub type BoxError = tower::BoxError;

/// The host wired something wrong: answers that do not fit what was asked, tools whose names clash, a call that went
/// round the stack. The message names the calls and says what to do.
///
/// Where answers are refused, nothing deferred has been executed (rule A4), and the questions stand as they were.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// Some calls were neither answered nor explicitly left.
    #[error(
        "no answer for {}: answer every deferred call, or leave it explicitly with `leave`",
        Ids(ids)
    )]
    AnswersMissing {
        /// The calls without an answer.
        ids: Vec<String>,
    },
    /// Answers for calls that do not wait for one: never asked about, already settled, or answered before.
    #[error(
        "{} not waiting for an answer: answer only the calls of the requests you were given",
        IdsAre(ids)
    )]
    AnswersUnknown {
        /// The ids that are not pending.
        ids: Vec<String>,
    },
    /// A value was given for a call that needs an approval, or an approval for one that is executed elsewhere.
    #[error(
        "wrong kind of answer for {}: answer approvals in `approvals`, and calls executed elsewhere in `calls`",
        Ids(ids)
    )]
    AnswersOfWrongKind {
        /// The calls that were answered in the wrong map.
        ids: Vec<String>,
    },
    /// A call was answered in more than one way, or answered and left.
    #[error("more than one answer for {}: give each call one answer, or leave it", Ids(ids))]
    AnswersContradict {
        /// The calls with several answers.
        ids: Vec<String>,
    },
    /// Several things are wrong with the answers at once.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    AnswersWrong {
        /// Each of them.
        problems: Vec<Self>,
    },
    /// The answers were made for other questions than the ones that wait (rule A6).
    #[error(
        "the answers were made for other questions than the ones that wait now ({}): show the current requests and answer those",
        Ids(ids)
    )]
    AnswersForOtherBatch {
        /// The calls whose question is not the one that was answered; all of them when the batch itself differs.
        ids: Vec<String>,
    },
    /// Answers that must carry the fingerprints of what was shown do not: the turn requires them, or the answers they
    /// are merged with carry them.
    #[error(
        "the answers carry no fingerprints, and `require_bound_answers`, or the answers they are merged with, demand them: build them with `requests.answer()`"
    )]
    AnswersNotBound,
    /// Arguments that an approver typed do not fit their tools.
    #[error("the edited arguments of {} do not fit: {problem}", Ids(ids))]
    InvalidOverride {
        /// The calls whose edited arguments do not fit.
        ids: Vec<String>,
        /// What does not fit which tool.
        problem: String,
    },
    /// Calls wait for an answer, and the run may not end with deferred calls.
    #[error("{}", NotExpected { ids, left_by: left_by.as_deref(), again })]
    DeferredNotExpected {
        /// The calls that wait.
        ids: Vec<String>,
        /// What left them: the handler that was asked, or the answers that were given. `None` when nothing was.
        left_by: Option<String>,
        /// Those of them that were answered and have deferred again. A handler is asked about a call once in a response
        /// (rule T4).
        again: Vec<String>,
    },
    /// State is nested too deep to be read back once it is stored (rule L7). It is still in memory: the error of the run
    /// or the turn has it.
    #[error(
        "the state is nested {levels} levels deep, and only {max} could be read back: keep the results of tools, the metadata of questions and the agents behind tools flatter, or answer its calls in this process"
    )]
    StateTooDeep {
        /// How deep it is.
        levels: usize,
        /// How deep it may be.
        max: usize,
    },
    /// Two tools have one name.
    #[error(
        "two tools are called `{name}` (in {first} and {second}): rename one with `renamed`, or give a whole set a prefix with `prefixed`"
    )]
    ToolConflict {
        /// The name both have.
        name: String,
        /// Where the first one comes from.
        first: String,
        /// Where the second one comes from.
        second: String,
    },
    /// A wrapper was asked to rename a tool onto a name that is taken, or to rename one tool twice.
    #[error("cannot rename `{from}` to `{to}`: {problem}")]
    Rename {
        /// The name to change.
        from: String,
        /// The name it should get.
        to: String,
        /// Why that is not possible.
        problem: &'static str,
    },
    /// A prepare function gave a tool that it was not given.
    #[error(
        "a prepare function cannot add or rename tools, but gave `{name}`: add tools to a toolset, rename with `renamed`"
    )]
    PrepareAdded {
        /// The tool that nobody knows.
        name: String,
    },
    /// A tool body asked for a dependency that the run does not have.
    #[error("the run has no dependency of type `{type_name}`: add it with `.deps(value)`")]
    MissingDeps {
        /// The type that was asked for.
        type_name: &'static str,
    },
    /// A call reached a layer or the gate without the record of what was decided about it.
    #[error(
        "call `{}` of tool `{}` was not made by a turn: send calls through `Turn` or `Agent`, and let layers change a call with `with_args` instead of building a new one",
        id.escape_debug(),
        tool.escape_debug()
    )]
    NoPass {
        /// The call.
        id: String,
        /// The tool.
        tool: String,
    },
    /// An attempt came after its call had got its outcome, or after the turn was dropped (rule T6).
    #[error("call `{}` already has its outcome: a late or detached attempt runs nothing", id.escape_debug())]
    PassClosed {
        /// The call.
        id: String,
    },
    /// Stored state cannot be used.
    #[error("the stored state cannot be used: {problem}")]
    StoredState {
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The history that a run should continue does not fit.
    #[error("the history cannot be continued: {problem}{}", Behind(ids))]
    History {
        /// What is wrong with it and what to do.
        problem: String,
        /// The calls it is about.
        ids: Vec<String>,
    },
    /// A blocking call was made where an async runtime runs.
    #[error(
        "this would block the async runtime it is called in: await the run instead, or call it on a thread of its own"
    )]
    InsideRuntime,
    /// The system gave no runtime for a blocking call.
    #[error("no async runtime could be started: {problem}")]
    NoRuntime {
        /// What the system says.
        problem: String,
    },
}

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
        /// What it did.
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
        /// The call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
        /// What failed.
        #[source]
        source: BoxError,
    },
    /// A deferred tool handler failed.
    #[error("deferred tool handler `{name}` failed")]
    Handler {
        /// The handler.
        name: String,
        /// What failed.
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
        /// Why.
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
        /// The run.
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
        /// The run.
        run: String,
    },
    /// The ledger could not answer. What waits stands as it was.
    #[error("the ledger could not answer")]
    Ledger(#[source] BoxError),
    /// The run may not use more.
    #[error("{exceeded}{}", Behind(ids))]
    UsageLimit {
        /// Which limit.
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

impl UserError {
    /// Refuses stored state of another version than this build reads (rule L7).
    pub(crate) fn check_version(found: u64, known: u32) -> Result<(), Self> {
        if found == u64::from(known) {
            return Ok(());
        }
        let problem = format!(
            "it has version {found}, and this build reads version {known}: resume it with the version that wrote it"
        );
        Err(Self::StoredState { problem })
    }

    /// Whether the error is about the answers that were given, and not about how things are wired: a service tells
    /// whoever answered, and what waits stands as it was.
    #[must_use]
    pub fn is_about_answers(&self) -> bool {
        match self {
            Self::AnswersMissing { .. }
            | Self::AnswersUnknown { .. }
            | Self::AnswersOfWrongKind { .. }
            | Self::AnswersContradict { .. }
            | Self::AnswersWrong { .. }
            | Self::AnswersForOtherBatch { .. }
            | Self::AnswersNotBound
            | Self::InvalidOverride { .. } => true,
            Self::DeferredNotExpected { .. }
            | Self::StateTooDeep { .. }
            | Self::ToolConflict { .. }
            | Self::Rename { .. }
            | Self::PrepareAdded { .. }
            | Self::MissingDeps { .. }
            | Self::NoPass { .. }
            | Self::PassClosed { .. }
            | Self::StoredState { .. }
            | Self::History { .. }
            | Self::InsideRuntime
            | Self::NoRuntime { .. } => false,
        }
    }

    /// The calls the error is about; empty when it is not about particular calls.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::AnswersMissing { ids }
            | Self::AnswersUnknown { ids }
            | Self::AnswersOfWrongKind { ids }
            | Self::AnswersContradict { ids }
            | Self::AnswersForOtherBatch { ids }
            | Self::InvalidOverride { ids, .. }
            | Self::History { ids, .. }
            | Self::DeferredNotExpected { ids, .. } => ids.clone(),
            Self::AnswersWrong { problems } => problems.iter().flat_map(Self::ids).collect(),
            Self::NoPass { id, .. } | Self::PassClosed { id } => vec![id.clone()],
            Self::AnswersNotBound
            | Self::StateTooDeep { .. }
            | Self::ToolConflict { .. }
            | Self::Rename { .. }
            | Self::PrepareAdded { .. }
            | Self::MissingDeps { .. }
            | Self::StoredState { .. }
            | Self::InsideRuntime
            | Self::NoRuntime { .. } => Vec::new(),
        }
    }
}
