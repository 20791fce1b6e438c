//! The proof that a call may be executed.

use std::fmt;

use crate::args::Args;
use crate::call::{BodyToken, RunContext, ToolCall};

/// The proof that a call may be executed once, given by a [`Gate`](crate::gate::Gate) to its [`Toolset`](super::Toolset).
///
/// A permit has no public constructor and cannot be cloned. Keep it for as long as the body runs, also in blocking
/// code: a sequential tool starts only when the permits before it are dropped.
///
/// ```compile_fail
/// # use countersign::Permit;
/// fn twice(permit: Permit) -> (Permit, Permit) {
///     (permit.clone(), permit) // error: no method `clone`
/// }
/// ```
///
/// ```
/// use countersign::outcome::ToolReturn;
/// use countersign::{BoxError, Permit, RunContext, ToolCall, ToolDefinition, ToolError, Toolset, Turn};
/// use serde_json::json;
///
/// struct Printer;
///
/// impl Toolset for Printer {
///     fn id(&self) -> &str { "printer" }
///
///     async fn definitions(&self, _cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
///         Ok(vec![ToolDefinition::new("print", json!({"type": "object"}))])
///     }
///
///     async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
///         assert_eq!((permit.tool(), permit.call().id()), ("print", "c1"));
///         let pages = permit.args().u64("pages").unwrap_or(1);
///         let printed = tokio::task::spawn_blocking(move || {
///             let _permit = permit; // a sequential tool behind this one starts after the last page
///             format!("{pages} pages")
///         });
///         Ok(ToolReturn::new(printed.await?))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let report = Turn::new(Printer).run(vec![ToolCall::new("c1", "print", json!({"pages": 3}))]).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "3 pages");
/// # Ok::<(), BoxError>(()) }).unwrap();
/// ```
pub struct Permit {
    call: ToolCall,
    cx: RunContext,
    _running: BodyToken,
}

impl Permit {
    pub(crate) fn new(call: ToolCall, cx: RunContext, running: BodyToken) -> Self {
        Self { call, cx, _running: running }
    }

    /// The name of the tool in its toolset, without the names that wrappers give.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.call.name()
    }

    /// The call, with the arguments that were decided on.
    ///
    /// It cannot be sent into a stack: a body that calls the tools with its own call gets
    /// [`UserError::CallFromBody`](crate::UserError::CallFromBody), as it would wait for its own end (rule T6).
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The arguments that were decided on.
    #[must_use]
    pub fn args(&self) -> &Args {
        self.call.args()
    }

    /// The context of the run and of this call, with the approval if there is one.
    #[must_use]
    pub fn context(&self) -> &RunContext {
        &self.cx
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Permit").field(&self.call).finish()
    }
}
