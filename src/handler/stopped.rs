//! The error with which a handler stops the run.

/// A person stopped the run instead of answering. A handler returns `Stopped` as its error, and the run ends with
/// [`Error::Stopped`](crate::Error::Stopped) (rule S8).
///
/// Stopping is not denying: no decision was made about the pending calls, and none of them has run. With a ledger their
/// asks stay open, and the run is parked to be resumed later. Without a ledger the calls are cancelled: in the state
/// that the error carries, each of them has a result, so that the run can be continued without them.
///
/// A handler of an [agent behind a tool](crate::Agent::as_tool) stops the whole run: it ends with
/// [`Error::Agent`](crate::Error::Agent) around this, and [`is_stopped`](crate::Error::is_stopped) finds it. A tool
/// body that runs a [`Turn`](crate::Turn) or an agent of its own is outside of this: for it the error is an ordinary
/// one. Returned with `?`, it fails the tool's call, the model is told that a person stopped the run, and the outer run
/// continues; the state of the inner run is in the error, and the body may store it. A body that wants the outer run to
/// end, too, returns [`ToolError::fatal`](crate::ToolError::fatal); the outer run then ends with
/// [`Error::Tool`](crate::Error::Tool), which is not `is_stopped`.
///
/// ```
/// use countersign::handler::Stopped;
/// use countersign::{DeferredToolResults, FunctionToolset, ToolCall, ToolError, Turn, handler_fn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Target { path: String }
/// async fn delete(target: Target) -> Result<String, ToolError> { Ok(target.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file.", delete).requires_approval());
/// let turn = Turn::new(tools).deferred_tool_handler(handler_fn(async |_cx, _requests| Err::<DeferredToolResults, _>(Stopped)));
/// let error = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await.unwrap_err();
/// assert!(error.error().is_stopped());
/// assert!(error.report().calls()[0].outcome().text().unwrap().contains("stopped the run"));
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a person stopped the run")]
pub struct Stopped;
