//! Leaves: where tools are known and executed.
//!
//! A [`Toolset`] is reached through its [`Gate`](crate::Gate) only: it runs a [`Permit`], which nothing else can
//! make.

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
use crate::error::BoxError;
use crate::outcome::{ToolError, ToolReturn};

/// A leaf: definitions of tools, and their execution.
///
/// Implement it for tools that come from elsewhere (a server, a plug-in host); for Rust functions there is
/// [`FunctionToolset`]. Layers and wrappers are put around it with [`ToolsExt`](crate::ToolsExt).
///
/// ```
/// use countersign::{Args, BoxError, Permit, RunContext, ToolDefinition, ToolError, ToolReturn, Toolset};
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
    /// Names the set, stably across processes: part of what an approval is bound to, and of the message when two
    /// tools have one name.
    fn id(&self) -> &str;

    /// The tools, asked for once per model response, and again when a call is resumed.
    fn definitions(
        &self,
        cx: &RunContext,
    ) -> impl Future<Output = Result<Vec<ToolDefinition>, BoxError>> + Send;

    /// Checks arguments before anybody is asked, and again what layers and people made of them. Not called for
    /// external tools.
    ///
    /// # Errors
    /// Says, for the model, what does not fit.
    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        let _ = (tool, args);
        Ok(())
    }

    /// Executes a call. The permit is the proof that it may run, once.
    fn run(&self, permit: Permit) -> impl Future<Output = Result<ToolReturn, ToolError>> + Send;
}
