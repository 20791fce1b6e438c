//! What the host of a stack can get wrong, and how a response can fail.
//!
//! A denial is never an error: it is an [`Outcome`](crate::Outcome) that the model sees. The types here are for the
//! program that wires tools, layers and handlers together.

mod ids;
mod kind;
mod limit;

pub use kind::ErrorKind;
pub use limit::UsageLimitExceeded;

use ids::{Behind, Ids, IdsAre, Nearest, NotExpected};

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
        /// Each of them, as an error of its own.
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
    /// A layer is for a tool by name, and there is none of that name where it stands.
    #[error(
        "the layer `{layer}` is for a tool `{name}`, and there is none where it stands ({}): correct the name in `for_tools`, as the wrappers inside have left it; for a tool that comes and goes, use `when`",
        Nearest(nearest)
    )]
    UnknownTool {
        /// The name of the layer.
        layer: String,
        /// The name that no tool has.
        name: String,
        /// The names of tools that are most like it.
        nearest: Vec<String>,
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
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
    },
    /// An attempt came after its call had got its outcome, or after the turn was dropped (rule T6).
    #[error("call `{}` already has its outcome: a late or detached attempt runs nothing", id.escape_debug())]
    PassClosed {
        /// The id of the call.
        id: String,
    },
    /// A call reached its gate round a middleware that stands between the turn and the tool (rule D9). Nothing ran.
    #[error(
        "call `{}` of tool `{}` did not pass the layer `{}`, and nothing was run: a layer sends a call inward only by the service it wraps; one that chooses between several builds each of them from that service, with `inner.clone().layered(…)`",
        id.escape_debug(),
        tool.escape_debug(),
        layer.escape_debug()
    )]
    LayerSkipped {
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
        /// The outermost middleware that was skipped.
        layer: String,
    },
    /// The body of a tool sent the call that it executes into a stack, where it would wait for its own end.
    #[error(
        "the body of tool `{}` sent its own call `{}` into a stack: a call runs once, so give a tool that calls tools a `Turn` of its own",
        tool.escape_debug(),
        id.escape_debug()
    )]
    CallFromBody {
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
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
            | Self::UnknownTool { .. }
            | Self::MissingDeps { .. }
            | Self::NoPass { .. }
            | Self::PassClosed { .. }
            | Self::LayerSkipped { .. }
            | Self::CallFromBody { .. }
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
            Self::NoPass { id, .. }
            | Self::PassClosed { id }
            | Self::LayerSkipped { id, .. }
            | Self::CallFromBody { id, .. } => vec![id.clone()],
            Self::AnswersNotBound
            | Self::StateTooDeep { .. }
            | Self::ToolConflict { .. }
            | Self::Rename { .. }
            | Self::PrepareAdded { .. }
            | Self::UnknownTool { .. }
            | Self::MissingDeps { .. }
            | Self::StoredState { .. }
            | Self::InsideRuntime
            | Self::NoRuntime { .. } => Vec::new(),
        }
    }
}
