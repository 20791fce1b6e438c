//! Several handlers in sequence.

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
