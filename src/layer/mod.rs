//! Running middleware as [`tower::Layer`]s.
//!
//! Any layer over a tool call composes with these, above and below: tower's own, yours, boxed or not. What tower
//! itself demands is in [`ordering`](crate::docs::ordering).

mod decide;
mod service;

use std::borrow::Cow;
use std::time::Duration;

use tower::Layer;

pub use decide::{DecideFuture, DecideService};
pub use service::{MiddlewareLayer, MiddlewareService};

use crate::middleware::{
    Adjusted, Chain, DecideFn, FirstDecision, FromFn, ToolMiddleware, ToolRateLimit, When,
};

/// What every middleware can do.
pub trait ToolMiddlewareExt: ToolMiddleware + Sized {
    /// The [`tower::Layer`] that runs this middleware around the calls that pass through it.
    fn into_layer(self) -> MiddlewareLayer<Self> {
        MiddlewareLayer::new(self)
    }

    /// Applies to calls of these tools only, by the names they have at this level.
    ///
    /// A name that no tool has is an error when the tools are listed
    /// ([`UserError::UnknownTool`](crate::UserError::UnknownTool)), as it would be a rule about nothing. Tools that a
    /// wrapper inside hides exist. Around an agent a name may be that of a tool of the agent's, whose calls the layer
    /// decides about too, and nothing is checked. For tools that come and go there is [`when`](crate::when).
    ///
    /// ```
    /// use countersign::{Decision, ToolMiddlewareExt, decide_fn};
    /// let writes = decide_fn(|_| Decision::ask("write?")).for_tools(["write_file", "move_file"]);
    /// # let _ = writes;
    /// ```
    fn for_tools<I: Into<String>>(self, tools: impl IntoIterator<Item = I>) -> Adjusted<Self> {
        Adjusted::new(self).with_tools(tools.into_iter().map(Into::into).collect())
    }

    /// Limits the time the decision may take; a decision that comes later is a DENY that names this layer (rule D4).
    /// Unlike a timeout layer it does not measure the tool.
    fn deciding_within(self, limit: Duration) -> Adjusted<Self> {
        Adjusted::new(self).with_limit(limit)
    }

    /// Gives the layer another name in questions, denials and explanations. Two middleware on the way of a call that
    /// have one name do not ask (rule D10): the second instance of a type, and the second closure of a function, need
    /// names of their own. A composite's members ask under their own names.
    ///
    /// ```
    /// use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt, ToolsExt};
    ///
    /// #[derive(Clone)]
    /// struct Limit(f64);
    ///
    /// impl ToolMiddleware for Limit {
    ///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
    ///         match call.args().f64("amount") {
    ///             Some(amount) if amount > self.0 => Decision::ask("above the limit"),
    ///             _ => Decision::allow(),
    ///         }
    ///     }
    /// }
    ///
    /// let tools = FunctionToolset::new()
    ///     .layered(Limit(100.0).named("team limit"))
    ///     .layered(Limit(1000.0).named("company limit"));
    /// # let _ = tools;
    /// ```
    fn named(self, name: impl Into<Cow<'static, str>>) -> Adjusted<Self> {
        Adjusted::new(self).with_name(name.into())
    }
}

impl<M: ToolMiddleware> ToolMiddlewareExt for M {}

impl<F, S> Layer<S> for DecideFn<F>
where
    F: Clone + Send + Sync + 'static,
{
    type Service = DecideService<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        DecideService::new(self.clone(), inner)
    }
}

/// Middleware of the library's own that is a layer as it is. What cannot be cloned becomes one by `into_layer`.
macro_rules! layers {
    ($($middleware:ident<$($parameter:ident),*>),* $(,)?) => {$(
        impl<S, $($parameter),*> Layer<S> for $middleware<$($parameter),*>
        where
            Self: ToolMiddleware + Clone,
        {
            type Service = MiddlewareService<Self, S>;

            fn layer(&self, inner: S) -> Self::Service {
                MiddlewareLayer::new(self.clone()).layer(inner)
            }
        }
    )*};
}

layers!(Adjusted<M>, Chain<>, FirstDecision<>, FromFn<F>, ToolRateLimit<>, When<P, A, B>);
