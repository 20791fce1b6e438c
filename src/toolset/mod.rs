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
pub trait Toolset: Send + Sync + 'static {
    /// The id of the set, the same in every process. Approvals are bound to it, and an error about two tools with the
    /// same name shows it.
    fn id(&self) -> &str;

    /// The definitions of the tools. Called once per model response, and again when a call is resumed.
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
    fn run(&self, permit: Permit) -> impl Future<Output = Result<ToolReturn, ToolError>> + Send;
}
