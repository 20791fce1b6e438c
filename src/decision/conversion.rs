//! Values that a middleware may return in place of a decision.

use serde_json::{Map, Value};

use super::{Decision, ToolBlocked, Verdict};
use crate::args::Args;
use crate::error::BoxError;

/// The return type of the closures of [`decide_fn`](crate::decide_fn) and [`from_fn`](crate::from_fn): a [`Decision`],
/// [`Args`] (ALLOW with these), a [`ToolBlocked`] (DENY), or a `Result` of one of them, whose `Err` is a DENY.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no decision about a tool call",
    label = "returns no decision",
    note = "return a `Decision`, `Args`, a `ToolBlocked`, or a `Result` of one of them",
    note = "`decide_fn` takes sync closures; an async closure, or one that returns a future, belongs in `from_fn(async |cx: RunContext, call: ToolCall| …)`"
)]
pub trait IntoDecision {
    /// Converts the value into a decision.
    fn into_decision(self) -> Decision;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Decision>> IntoDecision for T {
    fn into_decision(self) -> Decision {
        self.into()
    }
}

impl From<ToolBlocked> for Decision {
    fn from(blocked: ToolBlocked) -> Self {
        Self::deny(blocked.reason)
    }
}

impl From<Args> for Decision {
    fn from(args: Args) -> Self {
        Self { verdict: Verdict::Undecided, args: Some(args) }
    }
}

impl From<Map<String, Value>> for Decision {
    fn from(args: Map<String, Value>) -> Self {
        Self { verdict: Verdict::Undecided, args: Some(args.into()) }
    }
}

impl<D: Into<Self>, E: Into<BoxError>> From<Result<D, E>> for Decision {
    /// An `Err` is a DENY. The model gets the reason of a [`ToolBlocked`]; of any other error it gets only the name of
    /// the layer that failed, and the host gets the error's text (rule D4).
    fn from(result: Result<D, E>) -> Self {
        match result {
            Ok(decision) => decision.into(),
            Err(error) => {
                let error = error.into();
                match error.downcast::<ToolBlocked>() {
                    Ok(blocked) => (*blocked).into(),
                    Err(error) => Self::failed(error),
                }
            }
        }
    }
}
