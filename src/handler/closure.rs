//! Handlers made from closures.
//!
//! There are two forms over the batch, and not one that takes both. A sync closure borrows the requests. A future
//! cannot borrow from a closure's arguments without a type that the caller would have to name, so the async form gets
//! clones, which share their arguments.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;

use super::{DeferredToolHandler, deny_blocked, reasons};
use crate::call::{RunContext, ToolCall};
use crate::deferred::{DeferredToolRequests, DeferredToolResults};
use crate::error::BoxError;

/// Creates a handler from an async closure over the whole batch.
///
/// ```
/// use countersign::{DeferredToolRequests, RunContext, handler_fn};
///
/// let handler = handler_fn(async |_cx: RunContext, requests: DeferredToolRequests| { requests.answer().deny_rest("no
/// approver is available").build() });
/// # let _ = handler;
/// ```
///
/// # Errors
/// An error ends the run; none of the calls has been executed, and the error carries the state to resume from (rules
/// A4, T9). To deny instead, wrap the handler in [`FailClosed`](super::FailClosed).
pub fn handler_fn<F, Fut, E>(handle: F) -> HandlerFn<F>
where
    F: Fn(RunContext, DeferredToolRequests) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<DeferredToolResults, E>> + Send,
    E: Into<BoxError>,
{
    HandlerFn(handle)
}

/// A handler from an async closure; see [`handler_fn`].
#[derive(Clone)]
pub struct HandlerFn<F>(F);

impl<F, Fut, E> DeferredToolHandler for HandlerFn<F>
where
    F: Fn(RunContext, DeferredToolRequests) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<DeferredToolResults, E>> + Send,
    E: Into<BoxError>,
{
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("handler_fn")
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        self.0(cx.clone(), requests.clone()).await.map_err(Into::into)
    }
}

/// Creates a handler from a sync closure over the whole batch. The closure runs on the task of the turn and blocks it:
/// a closure that waits for a person belongs on a blocking thread, where the terminal handler waits.
///
/// ```
/// use countersign::handler::handler_fn_sync;
///
/// let handler = handler_fn_sync(|_cx, requests| {
///     requests.answer().approve_tool("read_file").deny_rest("reads only").build()
/// });
/// # let _ = handler;
/// ```
///
/// ```
/// use countersign::handler::handler_fn_sync;
/// use countersign::{DeferredToolHandler, DeferredToolRequests, RunContext, ToolCall};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let small = handler_fn_sync(|_: &RunContext, requests: &DeferredToolRequests| {
///     let cheap = |call: &&ToolCall| call.args().u64("euros").is_some_and(|euros| euros < 10);
///     let approved = requests.approvals.iter().filter(cheap).map(ToolCall::id);
///     approved.fold(requests.answer(), |answers, id| answers.approve(id)).leave_rest().build()
/// });
/// let pay = |id: &str, euros: u64| ToolCall::new(id, "pay", json!({"euros": euros}));
/// let requests = DeferredToolRequests::new([pay("c1", 5), pay("c2", 500)], []);
/// let answers = small.handle(&RunContext::default(), &requests).await?;
/// assert!(answers.approvals.contains_key("c1") && answers.is_left("c2"));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
pub fn handler_fn_sync<F, E>(handle: F) -> HandlerFnSync<F>
where
    F: Fn(&RunContext, &DeferredToolRequests) -> Result<DeferredToolResults, E>
        + Send
        + Sync
        + 'static,
    E: Into<BoxError>,
{
    HandlerFnSync(handle)
}

/// A handler from a sync closure; see [`handler_fn_sync`].
#[derive(Clone)]
pub struct HandlerFnSync<F>(F);

impl<F, E> DeferredToolHandler for HandlerFnSync<F>
where
    F: Fn(&RunContext, &DeferredToolRequests) -> Result<DeferredToolResults, E>
        + Send
        + Sync
        + 'static,
    E: Into<BoxError>,
{
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("handler_fn_sync")
    }

    fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> impl Future<Output = Result<DeferredToolResults, BoxError>> + Send {
        std::future::ready(self.0(cx, requests).map_err(Into::into))
    }
}

/// Creates a handler from an async closure `(cx, call, reason) -> bool`, which is asked about one call after the other.
/// The closure takes everything by value, and may change nothing: `true` approves the call as it is. The context is
/// that of the run, as for every handler. The call has the arguments that would run. The reason says why the call is
/// asked about; if several layers ask, it has the reasons of all. Calls that are executed elsewhere are left.
///
/// After `false` the model gets a denial with the reason of the question: `The tool call was denied: delete a.log?`.
///
/// ```
/// use countersign::handler::permission_handler;
/// use countersign::{RunContext, ToolCall};
///
/// let handler = permission_handler(async |_cx: RunContext, call: ToolCall, _reason: String| {
///     call.name() != "delete_file"
/// });
/// # let _ = handler;
/// ```
pub fn permission_handler<F, Fut>(permit: F) -> PermissionHandler<F>
where
    F: Fn(RunContext, ToolCall, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = bool> + Send,
{
    PermissionHandler(permit)
}

/// A handler from a closure over single calls; see [`permission_handler`].
#[derive(Clone)]
pub struct PermissionHandler<F>(F);

impl<F, Fut> DeferredToolHandler for PermissionHandler<F>
where
    F: Fn(RunContext, ToolCall, String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = bool> + Send,
{
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("permission_handler")
    }

    async fn handle(
        &self,
        cx: &RunContext,
        requests: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        let mut answers = deny_blocked(requests);
        for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
            let reason = reasons(requests, call.id());
            let denied = match reason.as_str() {
                "" => String::new(),
                reason => format!("The tool call was denied: {reason}"),
            };
            answers = match self.0(cx.clone(), call.clone(), reason).await {
                true => answers.approve(call.id()),
                false => answers.deny(call.id(), denied),
            };
        }
        Ok(answers.answered_by("permission handler").leave_rest().build()?)
    }
}

macro_rules! debug_by_name {
    ($($name:ident),*) => {$(
        impl<F> fmt::Debug for $name<F> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
debug_by_name!(HandlerFn, HandlerFnSync, PermissionHandler);
