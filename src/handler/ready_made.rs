//! Ready-made handlers that answer without a person.

use super::{DeferredToolHandler, Stopped, deny_blocked};
use crate::call::RunContext;
use crate::deferred::{DeferredToolRequests, DeferredToolResults, check};
use crate::error::BoxError;
use crate::panic::{Panicked, catch_panic};

pub(super) const DENY_ALL: &str = "deny all";
pub(super) const FAIL_CLOSED: &str = "fail closed";

/// Denies every call; a call that is executed elsewhere fails. With this handler an ASK is a denial, instead of
/// suspending the run.
///
/// ```
/// use countersign::handler::DenyAll;
/// let handler = DenyAll::new("approvals are off in this environment");
/// # let _ = handler;
/// ```
#[derive(Debug, Clone)]
pub struct DenyAll {
    message: String,
}

impl DenyAll {
    /// Creates a handler that denies with this message, which the model gets verbatim.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

impl Default for DenyAll {
    fn default() -> Self {
        Self::new("Denied: no approver is available for this call.")
    }
}

impl DeferredToolHandler for DenyAll {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Ok(deny_blocked(requests).deny_rest(&self.message).answered_by(DENY_ALL).build()?)
    }
}

/// Approves every call that is not blocked, and leaves those that are executed elsewhere. For tests and sandboxes.
///
/// When a call is left and the run [may not end](crate::Agent::output) with deferred calls, the run ends with
/// [`UserError::DeferredNotExpected`](crate::UserError::DeferredNotExpected), and none of the approved calls has run.
/// For external calls, add a handler that gives their results ([`HandlerChain`](crate::handler::HandlerChain)).
#[must_use]
pub fn danger_approve_all() -> ApproveAll {
    ApproveAll(())
}

/// Approves every call that is not blocked; see [`danger_approve_all`].
#[derive(Debug, Clone)]
pub struct ApproveAll(());

impl DeferredToolHandler for ApproveAll {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = deny_blocked(requests);
        for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
            answers = answers.approve(call.id());
        }
        Ok(answers.answered_by("approve all").leave_rest().build()?)
    }
}

/// Denies the calls that the inner handler leaves or forgets, and all calls when that handler fails or gives invalid
/// answers. A [`Stopped`] still stops the run.
///
/// ```
/// use countersign::handler::{FailClosed, handler_fn_sync};
///
/// let reads = handler_fn_sync(|_cx, requests| Ok::<_, std::io::Error>(requests.answer().approve_tool("read_file").unchecked()));
/// let handler = FailClosed::new(reads); // everything but reads is denied
/// # let _ = handler;
/// ```
#[derive(Debug, Clone)]
pub struct FailClosed<H> {
    inner: H,
}

impl<H: DeferredToolHandler> FailClosed<H> {
    /// Wraps `inner`, so that it fails closed.
    pub fn new(inner: H) -> Self {
        Self { inner }
    }

    /// The answers of the inner handler, with forgotten calls left; `None` when the handler fails or its answers are
    /// invalid.
    async fn answered(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<Option<DeferredToolResults>, Stopped> {
        let failed = match catch_panic(|| self.inner.handle(cx, requests)).await {
            Ok(Ok(mut results)) => {
                for call in requests.remaining(&results).unwrap_or_default().iter() {
                    tracing::warn!(handler = %self.inner.name(), call = call.id(), tool = call.name(), "a handler forgot a call, which is denied");
                    results = results.leave(call.id());
                }
                match check(requests, &results, false) {
                    Ok(()) => return Ok(Some(results)),
                    Err(error) => error.to_string(),
                }
            }
            // Stopping the run is no denial (rule S8).
            Ok(Err(error)) if error.is::<Stopped>() => return Err(Stopped),
            Ok(Err(error)) => error.to_string(),
            Err(Panicked(what)) => what.to_owned(),
        };
        tracing::error!(handler = %self.inner.name(), failed, "a handler failed, the calls are denied");
        Ok(None)
    }
}

impl<H: DeferredToolHandler> DeferredToolHandler for FailClosed<H> {
    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let denied = "Denied by policy.";
        let Some(results) = self.answered(cx, requests).await? else {
            return Ok(deny_blocked(requests)
                .deny_rest(denied)
                .answered_by(FAIL_CLOSED)
                .build()?);
        };
        let left = requests.clone().only(|id| results.is_left(id));
        let closed = deny_blocked(&left).deny_rest(denied).answered_by(FAIL_CLOSED).build()?;
        Ok(results.then(closed))
    }
}
