//! Blocking runs, for programs without an async runtime.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

use super::Agent;
use super::result::{RunError, RunResult};
use crate::call::ToolCall;
use crate::error::UserError;

/// One runtime for all blocking runs; each run is polled on the thread that called it. The runtime is never dropped, so
/// that a task that a layer has spawned for one run, such as the worker of `buffer`, still exists for the next. Its
/// worker thread drives the timers, so that a tool that blocks the thread of its own run does not delay other runs.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The runtime for blocking runs. Inside another runtime this is an error, as blocking would stop the tasks of that
/// runtime.
pub(super) fn runtime() -> Result<&'static Runtime, UserError> {
    if Handle::try_current().is_ok() {
        return Err(UserError::InsideRuntime);
    }
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let made = builder.worker_threads(1).thread_name("countersign").enable_all().build();
    let made = made.map_err(|error| UserError::NoRuntime { problem: error.to_string() })?;
    Ok(RUNTIME.get_or_init(|| made))
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, UserError> {
    Ok(runtime()?.block_on(future))
}

impl Agent {
    /// Runs to the end, blocking this thread, and asks `approve` about each call that needs an approval, one after the
    /// other: the blocking approval of a terminal tool, made of runs that suspend and are resumed. Blocked calls are
    /// denied without asking. The closure gets only the call: between two parts of a run there is no context. Calls
    /// that are executed elsewhere are left open: when no call needs an approval any more, the run ends with them.
    ///
    /// ```
    /// # use countersign::model::{ModelRequest, ModelResponse};
    /// # use countersign::{Agent, BoxError, FunctionToolset, Model};
    /// # struct Polite;
    /// # impl Model for Polite {
    /// #     async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> { Ok(ModelResponse::text("Hi")) }
    /// # }
    /// let agent = Agent::new(Polite, FunctionToolset::new());
    /// let run = agent.run_with_blocking_approval("Tidy up", |call| {
    ///     println!("Approve {}({})?", call.name(), call.args());
    ///     false
    /// })?;
    /// assert_eq!(run.text(), Some("Hi"));
    /// # Ok::<(), countersign::agent::RunError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`run_sync`](Self::run_sync).
    pub fn run_with_blocking_approval(
        &self,
        prompt: impl Into<String>,
        mut approve: impl FnMut(&ToolCall) -> bool,
    ) -> Result<RunResult, RunError> {
        let output = self.output.clone().or_deferred();
        let mut result =
            self.run(prompt).without_deferred_tool_handler().output(output.clone()).sync()?;
        while let Some(suspended) = result.suspended() {
            let requests = suspended.requests();
            if requests.approvals.is_empty() {
                break;
            }
            let mut answers = crate::handler::deny_blocked(&requests);
            for call in requests.approvals.iter().filter(|call| !requests.is_blocked(call.id())) {
                answers = answers.approval(call.id(), approve(call));
            }
            let answers = answers.leave_rest().unchecked();
            let run = self.resume(suspended.clone(), answers).without_deferred_tool_handler();
            result = run.output(output.clone()).sync()?;
        }
        Ok(result)
    }
}
