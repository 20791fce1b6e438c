//! One middleware or another, by a predicate.

use std::borrow::Cow;
use std::sync::Arc;

use super::{ToolCallError, ToolMiddleware};
use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Applies `then` where the predicate is `true`, and nothing (or [`otherwise`](When::otherwise)) where it is `false`.
///
/// The predicate gets the call and its context. It runs on every pass, and again for the hooks after the call, and must
/// return the same value for the same call. When the predicate panics before the call, the call is denied (rule D4).
///
/// ```
/// use countersign::middleware::when;
/// use countersign::{Decision, RunContext, ToolCall, decide_fn};
///
/// let large = |_: &RunContext, call: &ToolCall| call.args()["amount"].as_u64() > Some(1_000);
/// let policy = when(large, decide_fn(|_, _| Decision::ask("large transfer")))
///     .otherwise(decide_fn(|_, _| Decision::allow()));
/// # let _ = policy;
/// ```
pub fn when<P, A>(predicate: P, then: A) -> When<P, A, ()>
where
    P: Fn(&RunContext, &ToolCall) -> bool + Send + Sync + 'static,
    A: ToolMiddleware,
{
    When { predicate: Arc::new(predicate), then: Arc::new(then), otherwise: Arc::new(()) }
}

/// A middleware that applies only under a condition; see [`when`].
///
/// The name in explanations is that of both branches (`when(large, nothing)`), and questions carry the name of the
/// branch that asked, so that an approval of one branch does not cover the other (rule D10).
pub struct When<P, A, B> {
    predicate: Arc<P>,
    then: Arc<A>,
    otherwise: Arc<B>,
}

impl<P, A, B> Clone for When<P, A, B> {
    fn clone(&self) -> Self {
        let Self { predicate, then, otherwise } = self;
        Self {
            predicate: Arc::clone(predicate),
            then: Arc::clone(then),
            otherwise: Arc::clone(otherwise),
        }
    }
}

impl<P, A> When<P, A, ()> {
    /// Applies `otherwise` to the calls for which the predicate is `false`.
    #[must_use]
    pub fn otherwise<B: ToolMiddleware>(self, otherwise: B) -> When<P, A, B> {
        When { predicate: self.predicate, then: self.then, otherwise: Arc::new(otherwise) }
    }
}

impl<P, A, B> ToolMiddleware for When<P, A, B>
where
    P: Fn(&RunContext, &ToolCall) -> bool + Send + Sync + 'static,
    A: ToolMiddleware,
    B: ToolMiddleware,
{
    fn name(&self) -> Cow<'static, str> {
        Cow::Owned(format!("when({}, {})", self.then.name(), self.otherwise.name()))
    }

    fn parts(&self, parts: &mut Parts) {
        parts.members(|parts| {
            self.then.parts(parts);
            self.otherwise.parts(parts);
        });
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match (self.predicate)(cx, call) {
            true => self.then.before_tool_call(cx, call).await.named(&|| self.then.name()),
            false => {
                self.otherwise.before_tool_call(cx, call).await.named(&|| self.otherwise.name())
            }
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        match (self.predicate)(cx, call) {
            true => self.then.after_tool_call(cx, call, outcome).await,
            false => self.otherwise.after_tool_call(cx, call, outcome).await,
        }
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        match (self.predicate)(cx, call) {
            true => self.then.on_tool_error(cx, call, error).await,
            false => self.otherwise.on_tool_error(cx, call, error).await,
        }
    }
}

impl<P, A, B> std::fmt::Debug for When<P, A, B>
where
    Self: ToolMiddleware,
{
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}
