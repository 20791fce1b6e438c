//! What a middleware may return in the place of a decision.

use serde_json::{Map, Value};

use super::{Decision, ToolBlocked, Verdict};
use crate::args::Args;
use crate::error::BoxError;

/// What the closures of [`decide_fn`](crate::decide_fn) and [`from_fn`](crate::from_fn) return: a [`Decision`],
/// [`Args`] (ALLOW with these), a [`ToolBlocked`] (DENY), or a `Result` of one of them, whose `Err` is a DENY.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no decision about a tool call",
    label = "returns no decision",
    note = "return a `Decision`, `Args`, a `ToolBlocked`, or a `Result` of one of them",
    note = "`decide_fn` takes sync closures; an async closure, or one that returns a future, belongs in `from_fn(async |call: ToolCall| …)`"
)]
pub trait IntoDecision {
    /// Makes the decision of a hook.
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
    /// An `Err` is a DENY. A [`ToolBlocked`] gives the model its reason; of any other error the model learns only
    /// which layer failed, and the host learns the rest (rule D4).
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
