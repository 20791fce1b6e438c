//! The service that runs a middleware around a stack.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::{Layer, Service, ServiceExt as _};

use crate::call::{Pass, ToolCall};
use crate::caught::{Caught, caught};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::middleware::{ToolCallError, ToolMiddleware};
use crate::outcome::Outcome;

use super::decide::record;

/// The layer of a [`ToolMiddleware`]; see [`into_layer`](crate::ToolMiddlewareExt::into_layer).
pub struct MiddlewareLayer<M> {
    middleware: Arc<M>,
}

impl<M> MiddlewareLayer<M> {
    /// A layer that runs this middleware.
    pub fn new(middleware: M) -> Self {
        Self { middleware: Arc::new(middleware) }
    }
}

impl<M> Clone for MiddlewareLayer<M> {
    fn clone(&self) -> Self {
        Self { middleware: Arc::clone(&self.middleware) }
    }
}

impl<M, S> Layer<S> for MiddlewareLayer<M> {
    type Service = MiddlewareService<M, S>;

    fn layer(&self, inner: S) -> Self::Service {
        MiddlewareService { middleware: Arc::clone(&self.middleware), inner: Arc::new(inner) }
    }
}

/// Runs a middleware around the inner service.
///
/// Always ready: readiness of the inner service is awaited after the decision, so that a slow decision never holds a
/// slot of a limit inside.
pub struct MiddlewareService<M, S> {
    middleware: Arc<M>,
    /// Shared, so that cloning a deep stack clones one level.
    inner: Arc<S>,
}

impl<M, S> Clone for MiddlewareService<M, S> {
    fn clone(&self) -> Self {
        Self { middleware: Arc::clone(&self.middleware), inner: Arc::clone(&self.inner) }
    }
}

impl<M, S> Service<ToolCall> for MiddlewareService<M, S>
where
    M: ToolMiddleware,
    S: Service<ToolCall, Response = Outcome> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
{
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outcome, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        let Self { middleware, inner } = self.clone();
        Box::pin(async move {
            let pass = Arc::clone(call.pass()?);
            let (cx, middleware) = (pass.context(), &*middleware);
            let decision = caught(|| middleware.before_tool_call(cx, &call)).await;
            let decision = decision.unwrap_or_else(|Caught(what)| Decision::failed(what));
            let call = match record(&pass, &call, decision, || middleware.name()) {
                Ok(None) => call,
                Ok(Some(args)) => call.with_args(args),
                Err(denied) => return Ok(denied),
            };
            // `map_err` first: the inner error need not be `Send` across the await.
            let result = S::clone(&inner).oneshot(call.clone());
            let result = futures::TryFutureExt::map_err(result, Into::into).await;
            afterwards(&pass, &call, result, middleware).await
        })
    }
}

/// Runs the hooks that see what came of the call (rule D8).
async fn afterwards<M: ToolMiddleware>(
    pass: &Pass,
    call: &ToolCall,
    result: Result<Outcome, BoxError>,
    middleware: &M,
) -> Result<Outcome, BoxError> {
    let cx = pass.context();
    match result {
        Ok(outcome @ (Outcome::Denied(_) | Outcome::Deferred(_))) => Ok(outcome),
        Ok(outcome) if !pass.started() => Ok(outcome),
        Ok(outcome) => {
            let told = caught(|| middleware.after_tool_call(cx, call, outcome.clone())).await;
            Ok(match told {
                Ok(Outcome::Denied(_) | Outcome::Deferred(_)) => outcome,
                Ok(told) => told,
                Err(Caught(what)) => {
                    tracing::error!(layer = %middleware.name(), tool = call.name(), what, "after_tool_call failed");
                    let name = middleware.name();
                    Outcome::failed(format!(
                        "The tool ran, but the layer `{name}` failed on its result, which is withheld."
                    ))
                }
            })
        }
        Err(error) => {
            let error = ToolCallError { error, execution: pass.execution() };
            let told = caught(|| middleware.on_tool_error(cx, call, error)).await;
            told.unwrap_or_else(|Caught(what)| {
                Err(format!("layer `{}` {what} in on_tool_error", middleware.name()).into())
            })
        }
    }
}

impl<M> fmt::Debug for MiddlewareLayer<M>
where
    M: ToolMiddleware,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MiddlewareLayer({})", self.middleware.name())
    }
}

impl<M, S> fmt::Debug for MiddlewareService<M, S>
where
    M: ToolMiddleware,
    S: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} > {:?}", self.middleware.name(), self.inner)
    }
}
