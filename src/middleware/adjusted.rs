//! A middleware under another name, for some tools only, or with a time limit on its decision.
//!
//! The three adjustments are one type, so that `policy.named("a").for_tools(["b"]).deciding_within(limit)` is one
//! wrapper per method and no combination has a meaning of its own. A call of another tool is *undecided*, which counts
//! as ALLOW everywhere except in [`danger_first_decision_wins`](super::danger_first_decision_wins), where it lets the
//! next member decide.
//!
//! The selection is by the name at this level of the stack, compared as a whole. We look the name up in the call,
//! not in the definition: a call has one name at each level, and the definition in the context has the model's.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use super::{ToolCallError, ToolMiddleware};
use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// A middleware with another name, for some tools only, or with a time limit; built by
/// [`named`](crate::ToolMiddlewareExt::named), [`for_tools`](crate::ToolMiddlewareExt::for_tools) and
/// [`deciding_within`](crate::ToolMiddlewareExt::deciding_within).
///
/// ```
/// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt};
///
/// struct Ask;
///
/// impl ToolMiddleware for Ask {
///     async fn before_tool_call(&self, _cx: &RunContext, _call: &ToolCall) -> Decision { Decision::ask("sure?") }
/// }
///
/// let deletes = Ask.named("deletes").for_tools(["delete_file"]);
/// assert_eq!(ToolMiddleware::name(&deletes), "deletes");
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let decide = async |tool: &str| {
///     let call = ToolCall::new("c1", tool, serde_json::json!({}));
///     deletes.before_tool_call(call.context(), &call).await.questions().len()
/// };
/// assert_eq!((decide("delete_file").await, decide("read_file").await), (1, 0));
/// # });
/// ```
#[derive(Debug)]
pub struct Adjusted<M> {
    inner: Arc<M>,
    name: Option<Cow<'static, str>>,
    tools: Option<Vec<String>>,
    limit: Option<Duration>,
}

impl<M> Clone for Adjusted<M> {
    fn clone(&self) -> Self {
        let Self { inner, name, tools, limit } = self;
        Self { inner: Arc::clone(inner), name: name.clone(), tools: tools.clone(), limit: *limit }
    }
}

impl<M> Adjusted<M> {
    pub(crate) fn new(inner: M) -> Self {
        Self { inner: Arc::new(inner), name: None, tools: None, limit: None }
    }

    pub(crate) fn with_name(mut self, name: Cow<'static, str>) -> Self {
        self.name = Some(name);
        self
    }

    pub(crate) fn with_tools(mut self, tools: Vec<String>) -> Self {
        self.tools = Some(tools);
        self
    }

    pub(crate) fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    fn applies(&self, call: &ToolCall) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.iter().any(|tool| tool == call.name()))
    }
}

impl<M: ToolMiddleware> ToolMiddleware for Adjusted<M> {
    fn name(&self) -> Cow<'static, str> {
        self.name.clone().unwrap_or_else(|| self.inner.name())
    }

    fn parts(&self, parts: &mut Parts) {
        if let Some(tools) = &self.tools {
            parts.selects(self.name(), tools);
        }
        match &self.name {
            Some(name) => parts.named(name.clone(), |parts| self.inner.parts(parts)),
            None => self.inner.parts(parts),
        }
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        if !self.applies(call) {
            return Decision::undecided();
        }
        let deciding = self.inner.before_tool_call(cx, call);
        let Some(limit) = self.limit else { return deciding.await };
        match tokio::time::timeout(limit, deciding).await {
            Ok(decision) => decision,
            Err(_) => Decision::failed(format_args!("did not decide within {limit:?}")),
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
