//! Ready-made handlers that answer without a person.

use super::{DeferredToolHandler, Stopped, deny_blocked, name_of, reasons};
use crate::call::RunContext;
use crate::deferred::{CallResult, DeferredToolRequests, DeferredToolResults, check};
use crate::error::BoxError;
use crate::panic::{Panicked, catch_panic};

pub(super) const DENY_ALL: &str = "deny all";
pub(super) const FAIL_CLOSED: &str = "fail closed";

/// Denies every call; a call that is executed elsewhere fails. With this handler an ASK is a denial, instead of
/// suspending the run. The model is told the message, or with the default one also the reasons of the questions: `Denied:
/// no approver is available for this call. It is asked about: delete a.log?`.
///
/// ```
/// use countersign::handler::DenyAll;
/// let handler = DenyAll::new("approvals are off in this environment");
/// # let _ = handler;
/// ```
///
/// ```
/// use countersign::handler::DenyAll;
/// use countersign::{DeferredToolHandler, DeferredToolRequests, RunContext, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let requests = DeferredToolRequests::new([ToolCall::new("c1", "rm", json!({}))], []);
/// let answers = DenyAll::new("approvals are off").handle(&RunContext::default(), &requests).await?;
/// assert_eq!(answers, requests.answer().deny("c1", "approvals are off").answered_by("deny all").build()?);
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct DenyAll {
    /// `None` for the default, which also tells the reasons of the questions.
    message: Option<String>,
}

/// The message of a [`DenyAll`] that was given none.
const NO_APPROVER: &str = "Denied: no approver is available for this call.";

impl DenyAll {
    /// Creates a handler that denies with this message, which the model gets verbatim.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: Some(message.into()) }
    }
}

impl DeferredToolHandler for DenyAll {
    async fn handle(
        &self,
        _: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = deny_blocked(requests);
        if self.message.is_none() {
            for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
                let reason = reasons(requests, call.id());
                if !reason.is_empty() {
                    let message = format!("{NO_APPROVER} It is asked about: {reason}");
                    answers = answers.deny(call.id(), message);
                }
            }
        }
        let rest = self.message.as_deref().unwrap_or(NO_APPROVER);
        Ok(answers.deny_rest(rest).answered_by(DENY_ALL).build()?)
    }
}

/// Approves every call that is not blocked, and leaves those that are executed elsewhere. Use it in tests and
/// sandboxes.
///
/// When a call is left and the run [may not end](crate::Agent::output) with deferred calls, the run ends with
/// [`UserError::DeferredNotExpected`](crate::UserError::DeferredNotExpected), and none of the approved calls has run.
/// Give external calls a result with [`results_with`](ApproveAll::results_with), or add a handler that knows their results
/// ([`HandlerChain`](crate::handler::HandlerChain)).
#[must_use]
pub fn danger_approve_all() -> ApproveAll {
    ApproveAll { result: None }
}

/// Approves every call that is not blocked; see [`danger_approve_all`].
#[derive(Debug, Clone)]
pub struct ApproveAll {
    /// The result of every call that is executed elsewhere; `None` leaves these calls.
    result: Option<CallResult>,
}

impl ApproveAll {
    /// Gives this result to every call that is executed elsewhere, instead of leaving it.
    ///
    /// ```
    /// use countersign::handler::danger_approve_all;
    /// use countersign::{DeferredToolHandler, DeferredToolRequests, RunContext, ToolCall};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let (asked, elsewhere) = (ToolCall::new("c1", "rm", json!({})), ToolCall::new("c2", "render", json!({})));
    /// let requests = DeferredToolRequests::new([asked], [elsewhere]);
    /// let answers = danger_approve_all().results_with("done").handle(&RunContext::default(), &requests).await?;
    /// let expected = requests.answer().approve("c1").result("c2", "done").answered_by("approve all").build()?;
    /// assert_eq!(answers, expected);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn results_with(mut self, result: impl Into<CallResult>) -> Self {
        self.result = Some(result.into());
        self
    }
}

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
        for call in requests.calls.iter().filter(|call| !requests.is_blocked(call.id())) {
            if let Some(result) = &self.result {
                answers = answers.result(call.id(), result.clone());
            }
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
///
/// ```
/// use countersign::handler::{FailClosed, handler_fn_sync};
/// use countersign::{DeferredToolHandler, DeferredToolRequests, DeferredToolResults, RunContext, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let broken = handler_fn_sync(|_: &RunContext, _: &DeferredToolRequests| {
///     Err::<DeferredToolResults, _>("the directory does not answer")
/// });
/// let requests = DeferredToolRequests::new([ToolCall::new("c1", "rm", json!({}))], []);
/// let answers = FailClosed::new(broken).handle(&RunContext::default(), &requests).await?;
/// assert_eq!(answers.answered_by["c1"], "fail closed");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
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
                    tracing::warn!(handler = %name_of(&self.inner), call = call.id(), tool = call.name(), "a handler forgot a call, which is denied");
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
        tracing::error!(handler = %name_of(&self.inner), failed, "a handler failed, the calls are denied");
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
