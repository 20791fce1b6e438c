//! The decisions of the layers around an agent, for the calls of that agent (rule T7).

use std::borrow::Cow;

use futures::future::BoxFuture;

use super::ToolMiddleware;
use crate::call::{Decider, Inherited, Parts, RunContext, ToolCall};
use crate::decision::Decision;

impl<M: ToolMiddleware> Decider for M {
    fn name(&self) -> Cow<'static, str> {
        ToolMiddleware::name(self)
    }

    fn parts(&self, parts: &mut Parts) {
        ToolMiddleware::parts(self, parts);
    }

    fn decide<'a>(&'a self, cx: &'a RunContext, call: &'a ToolCall) -> BoxFuture<'a, Decision> {
        Box::pin(self.before_tool_call(cx, call))
    }
}

/// Runs only the decision of a layer around the agent. The layer's other hooks run in the parent's stack.
pub(crate) struct Ancestor(pub(crate) Inherited);

impl ToolMiddleware for Ancestor {
    fn name(&self) -> Cow<'static, str> {
        self.0.decider().name()
    }

    // Takes over the names, not the selected tools: the layer may select tools of the parent or of another agent, which
    // the check of this agent's tools would report as unknown.
    fn parts(&self, parts: &mut Parts) {
        let mut inherited = Parts::default();
        self.0.decider().parts(&mut inherited);
        parts.inherits(inherited);
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.decider().decide(cx, call).await
    }
}
