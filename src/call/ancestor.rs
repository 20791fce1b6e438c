//! What a sub-agent's calls inherit: the decisions of the layers around the agent (rule T7).

use std::borrow::Cow;
use std::sync::Arc;

use futures::future::BoxFuture;

use super::{Parts, RunContext, ToolCall};
use crate::decision::Decision;

/// The part of a middleware that a sub-agent inherits.
pub(crate) trait Decider: Send + Sync {
    fn name(&self) -> Cow<'static, str>;

    fn parts(&self, parts: &mut Parts);

    fn decide<'a>(&'a self, cx: &'a RunContext, call: &'a ToolCall) -> BoxFuture<'a, Decision>;
}

/// A layer that a call has passed on its way to a sub-agent.
#[derive(Clone)]
pub(crate) struct Inherited(Arc<dyn Decider>);

impl Inherited {
    pub(crate) fn new(layer: Arc<dyn Decider>) -> Self {
        Self(layer)
    }

    pub(crate) fn decider(&self) -> &dyn Decider {
        &*self.0
    }

    /// Whether it is the same layer, not an equal one.
    pub(super) fn is(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}
