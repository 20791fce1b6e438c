//! Middleware behind a pointer, for composites that hold several.

use std::borrow::Cow;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use pin_project_lite::pin_project;

use super::{ToolCallError, ToolMiddleware};
use crate::call::{RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// The object-safe twin of [`ToolMiddleware`].
pub(crate) trait Erased: Send + Sync {
    fn name(&self) -> Cow<'static, str>;
    /// `None` for a plain ALLOW, which most answers are, and which is then not moved about.
    fn before<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<Box<Decision>>>;
    fn after<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        outcome: Outcome,
    ) -> BoxFuture<'a, Outcome>;
    fn on_error<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        error: ToolCallError,
    ) -> BoxFuture<'a, Result<Outcome, BoxError>>;
}

impl<M: ToolMiddleware> Erased for M {
    fn name(&self) -> Cow<'static, str> {
        ToolMiddleware::name(self)
    }

    fn before<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
    ) -> BoxFuture<'a, Option<Box<Decision>>> {
        Box::pin(async move { self.before_tool_call(cx, call).await.unless_plain() })
    }

    fn after<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        outcome: Outcome,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(self.after_tool_call(cx, call, outcome))
    }

    fn on_error<'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        error: ToolCallError,
    ) -> BoxFuture<'a, Result<Outcome, BoxError>> {
        Box::pin(self.on_tool_error(cx, call, error))
    }
}

/// What a hook did instead of answering.
pub(crate) struct Caught(pub(crate) &'static str);

/// Runs a hook, catching a panic while it is made and while it runs. The message of the panic is not kept: the panic
/// hook has printed it, and it may quote arguments (rule S2).
pub(crate) fn caught<F: Future>(hook: impl FnOnce() -> F) -> Catching<F> {
    Catching { hook: catch_unwind(AssertUnwindSafe(hook)).ok() }
}

pin_project! {
    /// A hook that runs. Written by hand, as every layer has several: an `async fn` would keep the hook twice, and
    /// combinators would move its result several times.
    pub(crate) struct Catching<F> {
        // Empty when it could not be made.
        #[pin]
        hook: Option<F>,
    }
}

impl<F: Future> Future for Catching<F> {
    type Output = Result<F::Output, Caught>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(hook) = self.project().hook.as_pin_mut() else {
            return Poll::Ready(Err(Caught("panicked")));
        };
        match catch_unwind(AssertUnwindSafe(|| hook.poll(cx))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Err(Caught("panicked"))),
        }
    }
}
