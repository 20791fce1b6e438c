//! The decisions of the layers around an agent, for the calls of that agent (rule T7).

use std::borrow::Cow;

use futures::future::BoxFuture;

use super::ToolMiddleware;
use crate::call::{Decider, Inherited, RunContext, ToolCall};
use crate::decision::Decision;

impl<M: ToolMiddleware> Decider for M {
    fn name(&self) -> Cow<'static, str> {
        ToolMiddleware::name(self)
    }

    fn decide<'a>(&'a self, cx: &'a RunContext, call: &'a ToolCall) -> BoxFuture<'a, Decision> {
        Box::pin(self.before_tool_call(cx, call))
    }
}

/// Decides as a layer around the agent does. Its other hooks stay with the parent.
pub(crate) struct Ancestor(pub(crate) Inherited);

impl ToolMiddleware for Ancestor {
    fn name(&self) -> Cow<'static, str> {
        self.0.decider().name()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.decider().decide(cx, call).await
    }
}
