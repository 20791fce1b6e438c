//! Toolsets, the leaves of a stack: they define tools and execute their calls.
//!
//! A [`Toolset`] is reached only through its [`Gate`](crate::gate::Gate): it executes a [`Permit`], which only a gate can
//! make.
//!
//! ```
//! use countersign::{FunctionToolset, ToolError, schemars, tool_fn};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct File { path: String }
//!
//! async fn delete(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
//!
//! let tools = FunctionToolset::new().id("files").tool(tool_fn("delete", "Deletes a file", delete).requires_approval());
//! # let _ = tools;
//! ```
//!
//! # What a toolset may rely on
//!
//! - [`run`](Toolset::run) is called at most once per permit, with arguments that [`validate`](Toolset::validate) has
//!   accepted and that every layer has decided on. It never runs for a denied call or one with an open question.
//! - The name in the permit is the toolset's own, whatever wrappers call the tool.
//! - A panic in a hook is caught: of `validate` as invalid arguments, of `preview` as a preview that says so, of `run`
//!   as a failed call that may have done part of its work.
//! - `definitions` is called again for each response, so that a set whose tools come and go needs no notification.
//!
//! # Which error does what
//!
//! | a body returns | the model gets | the run |
//! |---|---|---|
//! | `Ok(value)` | the value as JSON | continues |
//! | [`ModelRetry`](crate::outcome::ModelRetry) | the text, and counts as a retry | continues |
//! | [`ToolFailed`](crate::outcome::ToolFailed), any other error | the text | continues |
//! | [`ApprovalRequired`](crate::outcome::ApprovalRequired) | nothing yet | the call is pending |
//! | [`CallDeferred`](crate::outcome::CallDeferred) | nothing yet | the call is pending, its result is an answer |
//! | [`ToolError::fatal`](crate::ToolError::fatal) | an internal error | ends after the siblings have finished |

mod external;
mod function;
mod permit;
mod signature;
mod tool;

use std::future::Future;

pub use external::ExternalToolset;
pub use function::FunctionToolset;
pub use permit::Permit;
pub use signature::{IntoToolError, IntoToolFn, IntoToolReturn, ToolArgs, WithArgs, WithContext};
#[cfg(feature = "schema")]
pub use tool::schema_tool_fn;
pub use tool::{Tool, blocking_tool_fn, tool_fn};

use crate::args::Args;
use crate::call::{RunContext, ToolDefinition};
use crate::decision::Preview;
use crate::error::BoxError;
use crate::outcome::{ToolError, ToolReturn};

/// A leaf of a stack: the definitions of tools, and their execution.
///
/// Implement `Toolset` for tools that come from elsewhere (a server, a plug-in host); for Rust functions there is
/// [`FunctionToolset`]. [`ToolsExt`](crate::ToolsExt) puts layers and wrappers around a toolset.
///
/// ```
/// use countersign::outcome::ToolReturn;
/// use countersign::{Args, BoxError, Permit, RunContext, ToolDefinition, ToolError, Toolset};
/// use serde_json::json;
///
/// struct Clock;
///
/// impl Toolset for Clock {
///     fn id(&self) -> &str { "clock" }
///
///     async fn definitions(&self, _cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
///         Ok(vec![ToolDefinition::new("now", json!({"type": "object"}))])
///     }
///
///     async fn run(&self, _permit: Permit) -> Result<ToolReturn, ToolError> {
///         Ok(ToolReturn::new("12:00"))
///     }
/// }
/// ```
///
/// `validate` is where a set refuses what its schema cannot say. The model is told the text and tries again, before any
/// person is asked:
///
/// ```
/// use countersign::outcome::ToolReturn;
/// use countersign::{Args, BoxError, Permit, RunContext, ToolCall, ToolDefinition, ToolError, Toolset, Turn};
/// use serde_json::json;
///
/// struct Calendar;
///
/// impl Toolset for Calendar {
///     fn id(&self) -> &str { "calendar" }
///
///     async fn definitions(&self, _cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
///         Ok(vec![ToolDefinition::new("book", json!({"type": "object"})).with_sequential(true)])
///     }
///
///     fn validate(&self, _tool: &str, args: &Args) -> Result<(), String> {
///         match (args.u64("from"), args.u64("to")) {
///             (Some(from), Some(to)) if from < to => Ok(()),
///             _ => Err("`from` must be before `to`".to_owned()),
///         }
///     }
///
///     async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
///         Ok(ToolReturn::new(format!("booked {}", permit.args())))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let report = Turn::new(Calendar).run(vec![
///     ToolCall::new("c1", "book", json!({"from": 9, "to": 10})),
///     ToolCall::new("c2", "book", json!({"from": 9, "to": 8})),
/// ]).await?;
/// assert_eq!(report.calls()[0].outcome().text().unwrap(), r#"booked {"from":9,"to":10}"#);
/// assert_eq!(report.calls()[1].outcome().word(), "retry");
/// # Ok::<(), BoxError>(()) }).unwrap();
/// ```
pub trait Toolset: Send + Sync + 'static {
    /// The id of the set, the same in every process. Approvals are bound to it, and an error about two tools with the
    /// same name shows it.
    fn id(&self) -> &str;

    /// The definitions of the tools. Called once per model response, and again when a call is resumed.
    ///
    /// # Errors
    /// Any error, such as that of a server that cannot be reached. It ends the turn before any of its calls has run.
    fn definitions(
        &self,
        cx: &RunContext,
    ) -> impl Future<Output = Result<Vec<ToolDefinition>, BoxError>> + Send;

    /// Validates the arguments of a call before any question is asked, and again after layers or people have changed
    /// them. Not called for external tools.
    ///
    /// # Errors
    /// A text for the model that says what does not fit.
    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        let _ = (tool, args);
        Ok(())
    }

    /// Shows what a call would do, to the person who is asked about it (rule S7). Called whenever the call is asked
    /// about, and again on the approved pass, as the digests of the previews are pins. It must not change anything; it
    /// may take time, which counts as time of the tool. No preview by default.
    ///
    /// # Errors
    /// Any error, also a panic: the person is told that there is no preview, and sees the error's text.
    fn preview(
        &self,
        cx: &RunContext,
        tool: &str,
        args: &Args,
    ) -> impl Future<Output = Result<Vec<Preview>, BoxError>> + Send {
        let _ = (cx, tool, args);
        async { Ok(Vec::new()) }
    }

    /// Executes a call. The permit is the proof that the call may run, once.
    ///
    /// Dropping the future is a cancellation: a timeout outside, or a run that was dropped. The call is then reported
    /// as *may have run*, whatever the body had done by then, and is not run again by itself. Work that must not be cut
    /// off belongs in a task of its own, to which the permit moves.
    ///
    /// # Errors
    /// See [`ToolError`]: an error with a meaning keeps it, and any other one fails the call with its `Display` as the
    /// text for the model.
    fn run(&self, permit: Permit) -> impl Future<Output = Result<ToolReturn, ToolError>> + Send;
}
