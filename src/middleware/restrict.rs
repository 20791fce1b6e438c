//! A middleware for some tools only, with a time limit, or under another name.

use std::borrow::Cow;
use std::time::Duration;

use super::{ToolCallError, ToolMiddleware};
use crate::call::{RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// A middleware for some tools; see [`for_tools`](crate::ToolMiddlewareExt::for_tools).
#[derive(Debug, Clone)]
pub struct ForTools<M> {
    pub(crate) inner: M,
    pub(crate) tools: Vec<String>,
}

impl<M> ForTools<M> {
    fn applies(&self, call: &ToolCall) -> bool {
        self.tools.iter().any(|tool| tool == call.name())
    }
}

impl<M: ToolMiddleware> ToolMiddleware for ForTools<M> {
    fn name(&self) -> Cow<'static, str> {
        self.inner.name()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self.applies(call) {
            true => self.inner.before_tool_call(cx, call).await,
            false => Decision::allow(),
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        match self.applies(call) {
            true => self.inner.after_tool_call(cx, call, outcome).await,
            false => outcome,
        }
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        match self.applies(call) {
            true => self.inner.on_tool_error(cx, call, error).await,
            false => Err(error.error),
        }
    }
}

/// A middleware with a time limit; see [`deciding_within`](crate::ToolMiddlewareExt::deciding_within).
#[derive(Debug, Clone)]
pub struct DecidingWithin<M> {
    pub(crate) inner: M,
    pub(crate) limit: Duration,
}

impl<M: ToolMiddleware> ToolMiddleware for DecidingWithin<M> {
    fn name(&self) -> Cow<'static, str> {
        self.inner.name()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match tokio::time::timeout(self.limit, self.inner.before_tool_call(cx, call)).await {
            Ok(decision) => decision,
            Err(_) => Decision::failed(format_args!("did not decide within {:?}", self.limit)),
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        self.inner.after_tool_call(cx, call, outcome).await
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.inner.on_tool_error(cx, call, error).await
    }
}

/// A middleware under another name; see [`named`](crate::ToolMiddlewareExt::named).
#[derive(Debug, Clone)]
pub struct Named<M> {
    pub(crate) inner: M,
    pub(crate) name: Cow<'static, str>,
}

impl<M: ToolMiddleware> ToolMiddleware for Named<M> {
    fn name(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.inner.before_tool_call(cx, call).await
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        self.inner.after_tool_call(cx, call, outcome).await
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.inner.on_tool_error(cx, call, error).await
    }
}
