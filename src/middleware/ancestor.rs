//! The decisions of the layers around an agent, for the calls of that agent (rule T7).
//!
//! An agent behind a tool runs outside of the stack of its parent, so the layers of that stack would never see what the
//! agent does with the call that they allowed. So we put each layer that the call has passed around the agent's tools
//! again, as an `Ancestor`, with its decision only. The other hooks stay with the parent: `after_tool_call` of the
//! parent's layer sees the result of the *agent*, and must not see the results of the agent's tools as if they were the
//! parent's.
//!
//! Because a DENY or an ASK of any ancestor counts, an agent is at most as permissive as its parent, at any depth: each
//! level adds the ancestors of the level above to its own.

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
