//! The service that runs a middleware around a stack.
//!
//! # Why readiness is awaited late
//!
//! tower's contract is that a service is called after it was polled ready, and that readiness may hold something: a
//! slot of a concurrency limit, a place in a buffer. A middleware that decides between the two would hold that slot
//! while it asks a server, or even for ever, where the decision is a DENY and the slot is never used. So this service
//! is always ready itself, decides first, and awaits the readiness of its own clone of the inner service after that.
//! The clone that was polled ready is the one that is called.
//!
//! # Why the inner service is dropped before its future is awaited
//!
//! We need the clone of the stack inside for the call only. If we held it while the tool runs, every limit and buffer
//! inside would stay alive for the time of the slowest call, and we would keep the memory of a deep stack once per
//! concurrent call and level.

use std::borrow::Cow;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::{Layer, Service};

use crate::call::{Inherited, Parts, Place, Standing, ToolCall, stands};
use crate::decision::{Decision, LayerName};
use crate::error::BoxError;
use crate::middleware::absent::NoAfter;
use crate::middleware::{ToolCallError, ToolMiddleware, told};
use crate::outcome::Outcome;
use crate::panic::{Panicked, catch_panic};

use super::decide::recorded;

/// The layer of a [`ToolMiddleware`]; see [`into_layer`](crate::ToolMiddlewareExt::into_layer).
pub struct MiddlewareLayer<M> {
    middleware: Arc<M>,
}

impl<M> MiddlewareLayer<M> {
    /// Creates a layer that runs `middleware`; clones of the layer share it.
    pub fn new(middleware: M) -> Self {
        Self { middleware: Arc::new(middleware) }
    }
}

impl<M> Clone for MiddlewareLayer<M> {
    fn clone(&self) -> Self {
        Self { middleware: Arc::clone(&self.middleware) }
    }
}

impl<M: ToolMiddleware, S> Layer<S> for MiddlewareLayer<M> {
    type Service = MiddlewareService<M, S>;

    fn layer(&self, inner: S) -> Self::Service {
        let applied = AppliedMiddleware {
            middleware: Arc::clone(&self.middleware),
            place: Place::default(),
            no_after: NoAfter::default(),
        };
        let applied = Arc::new(applied);
        stands(&applied);
        MiddlewareService { shared: Arc::new(Inner { applied, inner }) }
    }
}

/// Runs a middleware around the inner service.
///
/// Always ready: readiness of the inner service is awaited after the decision, so that a slow decision never holds a
/// slot of a limit inside.
pub struct MiddlewareService<M, S> {
    /// In an `Arc`, so that cloning the service does not clone the stack inside.
    shared: Arc<Inner<M, S>>,
}

struct Inner<M, S> {
    applied: Arc<AppliedMiddleware<M>>,
    inner: S,
}

/// A middleware with its position in the stack, by which the gate finds a skipped layer (rule D9).
struct AppliedMiddleware<M> {
    middleware: Arc<M>,
    place: Place,
    no_after: NoAfter,
}

impl<M: ToolMiddleware> Standing for AppliedMiddleware<M> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn name(&self) -> Cow<'static, str> {
        self.middleware.name()
    }

    fn parts(&self, parts: &mut Parts) {
        self.middleware.parts(parts);
    }
}

impl<M, S> Clone for MiddlewareService<M, S> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
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

    fn call(&mut self, mut call: ToolCall) -> Self::Future {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let Inner { applied, inner } = &*shared;
            let AppliedMiddleware { middleware, place, no_after } = &**applied;
            let record = call.record()?;
            let decided =
                catch_panic(|| middleware.before_tool_call(record.context(), &call)).await;
            let decision = match decided {
                Ok(decision) => decision.unless_plain(),
                Err(Panicked(what)) => Some(Box::new(Decision::failed(what))),
            };
            if let Err(denied) = recorded(&mut call, decision, &|| middleware.name()) {
                return Ok(*denied);
            }
            call.passes(place);
            pass_on(&call, middleware);
            let mut inner = inner.clone();
            poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Into::into)?;
            let sent = inner.call(call.clone());
            drop(inner);
            match sent.await.map_err(Into::into) {
                Ok(outcome) if !no_after.is_known() && is_told_of(&call, &outcome) => {
                    let hook = || middleware.after_tool_call(call.context(), &call, outcome);
                    let told = catch_panic(|| no_after.learn::<M, _>(hook)).await;
                    Ok(after(told, &call, &|| middleware.name()))
                }
                Ok(outcome) => Ok(outcome),
                // Boxed, as most calls have no error, and their futures would have room for it.
                Err(error) => Box::pin(on_error(&**middleware, &call, error)).await,
            }
        })
    }
}

async fn on_error<M: ToolMiddleware>(
    middleware: &M,
    call: &ToolCall,
    error: BoxError,
) -> Result<Outcome, BoxError> {
    let execution = call.record()?.execution();
    let error = ToolCallError { error, execution };
    let told = catch_panic(|| middleware.on_tool_error(call.context(), call, error));
    told.await.unwrap_or_else(|Panicked(what)| {
        Err(format!("layer `{}` {what} in on_tool_error", middleware.name()).into())
    })
}

/// Records the layer for a call to a sub-agent, so that it also decides about the sub-agent's calls (rule T7).
#[inline]
fn pass_on<M: ToolMiddleware>(call: &ToolCall, middleware: &Arc<M>) {
    if let Some(record) = call.known_record()
        && record.is_inherited()
    {
        let layer: Arc<M> = Arc::clone(middleware);
        record.inherit(Inherited::new(layer));
    }
}

/// Returns `true` if `after_tool_call` runs: only on the outcome of an execution (rule D8).
///
/// We go by the record, not by the outcome. For example, a cache inside may make an outcome of kind `Returned`, which
/// is no execution. A layer inside may make a `Denied` of an executed call, which does not pass either: the hook would
/// take an executed call for one that was not.
fn is_told_of(call: &ToolCall, outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Denied(_) | Outcome::Deferred(_))
        && call.known_record().is_some_and(|record| record.started())
}

/// The outcome that goes outward after `after_tool_call`: never denied or deferred, and a text of ours after a panic.
fn after(result: Result<Outcome, Panicked>, call: &ToolCall, name: LayerName<'_>) -> Outcome {
    let what = match result {
        Ok(outcome) => return told(outcome),
        Err(Panicked(what)) => what,
    };
    let name = name();
    tracing::error!(layer = %name, tool = call.name(), what, "after_tool_call failed");
    Outcome::failed(format!(
        "The tool ran, but the layer `{name}` failed on its result, which is withheld."
    ))
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
        write!(f, "{} > {:?}", self.shared.applied.middleware.name(), self.shared.inner)
    }
}
