//! Values that a middleware may return in place of a decision.

use serde_json::{Map, Value};

use super::{Decision, ToolBlocked, Verdict};
use crate::args::Args;
use crate::error::BoxError;

/// The return type of the closures of [`decide_fn`](crate::decide_fn) and [`from_fn`](crate::from_fn): a [`Decision`],
/// [`Args`] (ALLOW with these), a [`ToolBlocked`] (DENY), or a `Result` of one of them, whose `Err` is a DENY.
///
/// | returned | means |
/// |---|---|
/// | [`Decision`] | itself |
/// | [`Args`] or a JSON map | ALLOW with these arguments |
/// | [`ToolBlocked`] | DENY, with its reason for the model |
/// | `Ok` of any of them | the same |
/// | `Err(ToolBlocked)`, also boxed | DENY, with its reason for the model |
/// | any other `Err` | DENY; the model is told only which layer failed, the host gets the text (rule D4) |
///
/// ```
/// use countersign::decision::{IntoDecision, ToolBlocked, ToolDecision};
/// use countersign::{Args, BoxError};
///
/// assert_eq!(Args::new().with("limit", 10).into_decision().decision(), ToolDecision::Allow);
/// let failed: Result<Args, BoxError> = Err("the directory does not answer".into());
/// assert_eq!(failed.into_decision().denied().unwrap().detail(), Some("the directory does not answer"));
/// let blocked: Result<Args, BoxError> = Err(ToolBlocked::new("not on fridays").into());
/// assert_eq!(blocked.into_decision().reason(), "not on fridays");
/// ```
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
