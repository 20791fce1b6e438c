//! The proof that a call may be executed.

use std::fmt;

use crate::args::Args;
use crate::call::{BodyToken, RunContext, ToolCall};

/// The proof that a call may be executed, once: what a [`Gate`](crate::Gate) hands to its [`Toolset`](super::Toolset).
///
/// It has no public constructor and cannot be cloned. Keep it as long as the body runs, also in blocking code: calls
/// of sequential tools wait for it to be dropped.
///
/// ```compile_fail
/// # use countersign::Permit;
/// fn twice(permit: Permit) -> (Permit, Permit) {
///     (permit.clone(), permit) // error: no method `clone`
/// }
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

    /// The tool, by its own name.
    #[must_use]
    pub fn tool(&self) -> &str {
        self.call.name()
    }

    /// The call, with the arguments that were decided on.
    #[must_use]
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The arguments that were decided on.
    #[must_use]
    pub fn args(&self) -> &Args {
        self.call.args()
    }

    /// The run, and whether this call was approved.
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
