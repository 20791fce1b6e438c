//! Errors: mistakes in the host program, answers that do not fit, and failures of a response.
//!
//! A denial is never an error: it is an [`Outcome`](crate::Outcome) that the model gets. These types are for the host,
//! the program that puts tools, layers and handlers together.
//!
//! ```
//! use countersign::{DeferredToolRequests, ToolCall};
//! use serde_json::json;
//!
//! let requests = DeferredToolRequests::new([ToolCall::new("c1", "delete_file", json!({}))], []);
//! let error = requests.answer().approve("c2").build().unwrap_err();
//! assert!(error.to_string().contains("c2"), "an error names the calls: {error}");
//! ```

mod answer;
mod causes;
mod failure;
mod ids;
mod kind;
mod limit;

pub use answer::AnswerError;
pub use causes::with_causes;
pub use failure::Error;
pub use kind::ErrorKind;
pub use limit::UsageLimitExceeded;

use ids::{IdsAfter, Nearest, NotExpected};

/// The error type that crosses every [`tower::Service`] of a stack, as in tower itself.
pub type BoxError = tower::BoxError;

/// A mistake in the host program: tools with the same name, a call that bypassed the stack, a stored state that cannot
/// be used. The message names the calls and says what to do. Answers that do not fit are an [`AnswerError`].
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UserError {
    /// Calls are pending, and the run may not end with deferred calls.
    #[error("{}", NotExpected { ids, left_by: left_by.as_deref(), again })]
    DeferredNotExpected {
        /// The ids of the pending calls.
        ids: Vec<String>,
        /// The cause that left the calls unanswered: the handler, or the answers that were given. `None` when there was
        /// neither.
        left_by: Option<String>,
        /// The ids among `ids` that were answered and then deferred again. A handler is asked about a call only once
        /// per response (rule T4).
        again: Vec<String>,
    },
    /// The state is nested too deeply to be read back after it is stored (rule L7). The error of the run or the turn
    /// still has the state in memory.
    #[error(
        "the state is nested {levels} levels deep, and only {max} could be read back: keep the metadata of questions and the agents behind tools flatter, or answer its calls in this process"
    )]
    StateTooDeep {
        /// The nesting of the state, in levels.
        levels: usize,
        /// The maximum nesting, in levels.
        max: usize,
    },
    /// Two tools have the same name.
    #[error(
        "two tools are called `{name}` (in {first} and {second}): rename one with `renamed`, or give a whole set a prefix with `prefixed`"
    )]
    ToolConflict {
        /// The name that both tools have.
        name: String,
        /// The origin of the first tool, such as its toolset.
        first: String,
        /// The origin of the second tool, such as its toolset.
        second: String,
    },
    /// A wrapper was asked to rename a tool onto a name that is taken, or to rename one tool twice.
    #[error("cannot rename `{from}` to `{to}`: {problem}")]
    Rename {
        /// The current name of the tool.
        from: String,
        /// The requested name of the tool.
        to: String,
        /// The reason why the tool cannot be renamed.
        problem: &'static str,
    },
    /// A prepare function returned a tool that is not in its input.
    #[error(
        "a prepare function cannot add or rename tools, but gave `{name}`: add tools to a toolset, rename with `renamed`"
    )]
    PrepareAdded {
        /// The name of the tool that is not in the input.
        name: String,
    },
    /// A layer selects a tool by a name that no tool has at the layer's level.
    #[error(
        "the layer `{layer}` is for a tool `{name}`, and there is none where it stands ({}): correct the name in `for_tools`, as the wrappers inside have left it; for a tool that comes and goes, use `when`",
        Nearest(nearest)
    )]
    UnknownTool {
        /// The name of the layer.
        layer: String,
        /// The name that no tool has.
        name: String,
        /// The names of the most similar tools.
        nearest: Vec<String>,
    },
    /// The name of an agent has a `/`, which joins the names of agents in a path.
    #[error(
        "the agent `{}` cannot be told apart from an agent behind another one: its name has a `/`, which joins the names of agents; give it a name without one",
        name.escape_debug()
    )]
    AgentName {
        /// The name of the agent, or of the tool that it is behind.
        name: String,
    },
    /// A dependency was requested that the run does not have.
    #[error("the run has no dependency of type `{type_name}`: add it with `.deps(value)`")]
    MissingDeps {
        /// The name of the requested type.
        type_name: &'static str,
    },
    /// A call without a call record reached a layer or the gate: no turn has sent it.
    #[error(
        "call `{}` of tool `{}` was not made by a turn: send calls through `Turn` or `Agent`, and let layers change a call with `with_args` instead of building a new one",
        id.escape_debug(),
        tool.escape_debug()
    )]
    NoPass {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        tool: String,
    },
    /// An attempt to execute a call came after the call had its outcome, or after the turn was dropped (rule T6).
    #[error("call `{}` already has its outcome: a late or detached attempt runs nothing", id.escape_debug())]
    PassClosed {
        /// The id of the call.
        id: String,
    },
    /// A call reached its gate without passing a middleware between the turn and the tool (rule D9). Nothing ran.
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
        /// The name of the outermost middleware that was skipped.
        layer: String,
    },
    /// A tool body sent its own call into a stack, where the call would wait for its own end.
    #[error(
        "the body of tool `{}` sent its own call `{}` into a stack: a call runs once, so give a tool that calls tools a `Turn` of its own",
        tool.escape_debug(),
        id.escape_debug()
    )]
    CallFromBody {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        tool: String,
    },
    /// A call was approved, and this process has no tool of its name. Nothing has run, and the approval stays.
    #[error(
        "call `{}` was approved, and no tool is called `{}` here: resume the run in a process that has the tool; the approval stays",
        id.escape_debug(),
        tool.escape_debug()
    )]
    ApprovedToolMissing {
        /// The id of the call.
        id: String,
        /// The tool, by the name the model used.
        tool: String,
    },
    /// Stored state cannot be used.
    #[error("the stored state cannot be used: {problem}")]
    StoredState {
        /// The fault of the state, and what to do.
        problem: String,
    },
    /// The run cannot continue the history that it was given.
    #[error("the history cannot be continued: {problem}{}", IdsAfter(ids))]
    History {
        /// The fault of the history, and what to do.
        problem: String,
        /// The ids of the affected calls; may be empty.
        ids: Vec<String>,
    },
    /// A blocking method was called on a thread that runs an async runtime.
    #[error(
        "this would block the async runtime it is called in: await the run instead, or call it on a thread of its own"
    )]
    InsideRuntime,
    /// The async runtime for a blocking method could not be started.
    #[error("no async runtime could be started: {problem}")]
    NoRuntime {
        /// The error message of the system.
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

    /// The ids of the affected calls; empty when the error is not about particular calls.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::History { ids, .. } | Self::DeferredNotExpected { ids, .. } => ids.clone(),
            Self::NoPass { id, .. }
            | Self::PassClosed { id }
            | Self::LayerSkipped { id, .. }
            | Self::CallFromBody { id, .. }
            | Self::ApprovedToolMissing { id, .. } => vec![id.clone()],
            Self::StateTooDeep { .. }
            | Self::ToolConflict { .. }
            | Self::Rename { .. }
            | Self::PrepareAdded { .. }
            | Self::UnknownTool { .. }
            | Self::AgentName { .. }
            | Self::MissingDeps { .. }
            | Self::StoredState { .. }
            | Self::InsideRuntime
            | Self::NoRuntime { .. } => Vec::new(),
        }
    }
}
