//! Bounds for the layers around tools, with compile errors that say how to meet them.
//!
//! Both traits are implemented for every type that meets their bounds, and by no other. They exist for the compiler: if
//! a layer does not fit, it explains that at the place where you add the layer. Without them `layered` would name five
//! bounds on an associated type, and the compiler would report the one that it tried last.

use tower::{Layer, Service};

use super::Tools;
use crate::call::ToolCall;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// A layer for [`layered`](crate::ToolsExt::layered): every [`tower::Layer`] over [`Tools`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no `tower::Layer` around tools",
    label = "no layer",
    note = "a `ToolMiddleware` becomes a layer by `.into_layer()`, here and in a `ServiceBuilder`: `.layered(MyMiddleware.into_layer())`, `.layer(MyMiddleware.into_layer())`"
)]
pub trait ToolLayer {
    /// The service that the layer makes of the tools.
    type Service;

    /// Applies the layer to tools.
    fn around(&self, tools: Tools) -> Self::Service;
}

#[diagnostic::do_not_recommend]
impl<L: Layer<Tools>> ToolLayer for L {
    type Service = L::Service;

    fn around(&self, tools: Tools) -> Self::Service {
        self.layer(tools)
    }
}

/// The service that the layers of [`layered`](crate::ToolsExt::layered) make of [`Tools`]: it takes tool calls, returns
/// outcomes, and is cloned for each call.
///
/// We need `Clone` because one service serves all calls of a set, and each call drives a clone of its own: the
/// layers of concurrent calls share only what they share on purpose, in an `Arc` or in the task behind a `buffer`.
/// We need `Sync` because several tasks use [`Tools`].
#[diagnostic::on_unimplemented(
    message = "these layers make `{Self}` of the tools, which cannot be called as tools are",
    label = "not a service for tool calls",
    note = "it has to be a `Service<ToolCall, Response = Outcome>` with an error that converts into `BoxError`, which is `Clone + Send + Sync + 'static`, and whose future is `Send + 'static`",
    note = "tower's `RateLimit` and `Hedge` are not `Clone`: put `buffer` outside of them, as in `ServiceBuilder::new().buffer(64).rate_limit(10, second)`; `ToolRateLimit` limits each tool without one"
)]
pub trait ToolService:
    Service<ToolCall, Response = Outcome, Error: Into<BoxError>, Future: Send + 'static>
    + Clone
    + Send
    + Sync
    + 'static
{
}

#[diagnostic::do_not_recommend]
impl<S> ToolService for S where
    S: Service<ToolCall, Response = Outcome, Error: Into<BoxError>, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}
