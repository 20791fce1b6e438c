//! The layers around an agent, which decide about the calls of that agent too (rule T7).
//!
//! The trait is here, below the middleware, because a call record holds the layers that its call has passed, and
//! records know nothing of middleware. Layers are compared by address: two layers of one type around one agent are two.

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Parts, RunContext, ToolCall};
use crate::decision::Decision;

/// The part of a middleware that applies to the calls of a sub-agent: the decision before a call.
pub(crate) trait Decider: Send + Sync {
    fn name(&self) -> Cow<'static, str>;

    fn parts(&self, parts: &mut Parts);

    fn decide<'a>(&'a self, cx: &'a RunContext, call: &'a ToolCall) -> BoxFuture<'a, Decision>;
}

/// A layer that a call has passed on the way to the agent behind its tool, and that this agent's calls pass too.
#[derive(Clone)]
pub(crate) struct Inherited(Arc<dyn Decider>);

impl Inherited {
    pub(crate) fn new(layer: Arc<dyn Decider>) -> Self {
        Self(layer)
    }

    pub(crate) fn decider(&self) -> &dyn Decider {
        &*self.0
    }

    /// Returns `true` if both are the same layer, compared by address.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}
