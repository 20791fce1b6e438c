//! Middleware behind a pointer, for composites that hold several.

use std::borrow::Cow;

use futures::future::BoxFuture;

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
