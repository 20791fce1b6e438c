//! Several handlers in sequence.
//!
//! A chain begins with every call left, and each handler can only turn left calls into answered ones. We show it
//! nothing else, and check its answers against what it was shown before we join them. For example, a rule in front of
//! a person saves the person questions, and a rule behind one answers the calls that the person left. Neither can
//! change what the other has said.
//!
//! An error of one handler ends the chain and the run, and the answers of the handlers before it have no effect. Wrap a
//! handler that may fail in [`FailClosed`](super::FailClosed).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::{DeferredToolHandler, ErasedHandler};
use crate::call::RunContext;
use crate::deferred::{DeferredToolRequests, DeferredToolResults, check};
use crate::error::BoxError;

/// Several handlers in sequence. Each is asked about the calls that the handlers before it have explicitly left; the
/// chain leaves the calls that its last handler leaves. A later handler is not shown the calls that are already
/// answered, and so cannot overturn an answer (rule A3).
///
/// ```
/// use countersign::handler::{DenyAll, HandlerChain, handler_fn_sync};
///
/// let handler = HandlerChain::new()
///     .with(handler_fn_sync(|_cx, requests| requests.answer().approve_tool("read_file").leave_rest().build()))
///     .with(DenyAll::default());
/// # let _ = handler;
/// ```
///
/// ```
/// use countersign::handler::{DenyAll, HandlerChain, handler_fn_sync};
/// use countersign::{DeferredToolHandler, DeferredToolRequests, RunContext, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let reads = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
///     requests.answer().approve_tool("read_file").leave_rest().answered_by("policy: reads").build()
/// });
/// let chain = HandlerChain::new().with(reads).with(DenyAll::new("not in the pipeline"));
///
/// let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
/// let requests = DeferredToolRequests::new([call("c1", "read_file"), call("c2", "rm")], []);
/// let answers = chain.handle(&RunContext::default(), &requests).await?;
/// assert_eq!((&*answers.answered_by["c1"], &*answers.answered_by["c2"]), ("policy: reads", "deny all"));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, Default)]
pub struct HandlerChain {
    handlers: Vec<Arc<dyn ErasedHandler>>,
}

impl HandlerChain {
    /// Creates an empty chain, which leaves every call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a handler after the existing ones.
    #[must_use]
    pub fn with(mut self, handler: impl DeferredToolHandler) -> Self {
        self.handlers.push(Arc::new(handler));
        self
    }
}

impl DeferredToolHandler for HandlerChain {
    fn counts_people(&self) -> bool {
        !self.handlers.is_empty() && self.handlers.iter().all(|handler| handler.counts_people())
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut rest = requests.clone();
        let mut all = requests.answer().leave_rest().unchecked();
        for handler in &self.handlers {
            let results = handler.handle(cx, &rest).await?;
            check(&rest, &results, false)?;
            rest = rest.only(|id| results.is_left(id));
            all = all.then(results);
            if rest.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    fn name(&self) -> Cow<'static, str> {
        let names: Vec<_> = self.handlers.iter().map(|handler| handler.name()).collect();
        Cow::Owned(format!("HandlerChain[{}]", names.join(", ")))
    }
}

impl fmt::Debug for HandlerChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&DeferredToolHandler::name(self))
    }
}
