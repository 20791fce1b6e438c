//! What becomes of the errors of layers and tools (rule T8).

use tower::buffer::error::{Closed, ServiceError};
use tower::load_shed::error::Overloaded;
use tower::timeout::error::Elapsed;

use super::Turn;
use crate::call::Execution;
use crate::error::BoxError;
use crate::gate::MAY_HAVE_RUN;
use crate::middleware::ToolCallError;
use crate::outcome::Outcome;

impl Turn {
    /// Ends the response with every error of a tool, as PydanticAI does, also with those of sub-agents' tools. By default
    /// an ordinary error fails its call: the model is told its `Display`, and the run goes on. What a tool says by the
    /// [type](crate::ToolError) of an error ([`ModelRetry`](crate::ModelRetry), [`ToolFailed`](crate::ToolFailed), …) means
    /// the same either way.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolCall, Turn, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Read { path: String }
    ///
    /// async fn read(args: Read) -> std::io::Result<String> {
    ///     std::fs::read_to_string(args.path)
    /// }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("read", "Reads a file", read)));
    /// let calls = || vec![ToolCall::new("c1", "read", serde_json::json!({"path": "/no/such/file"}))];
    ///
    /// let report = turn.run(calls()).await?;
    /// assert_eq!(report.calls()[0].outcome().word(), "failed");
    ///
    /// let error = turn.tool_errors_end_run().run(calls()).await.unwrap_err();
    /// assert_eq!(error.to_string(), "call `c1` of tool `read` failed");
    /// # Ok::<(), countersign::TurnError>(()) }).unwrap();
    /// ```
    pub fn tool_errors_end_run(mut self) -> Self {
        self.info.tool_errors_end_run = true;
        self
    }
}

/// Tower's errors become outcomes that say whether the tool ran; everything else ends the response.
pub(super) fn default_outcome(failed: &ToolCallError) -> Option<Outcome> {
    let what = tower_error(&failed.error)?;
    Some(match &failed.execution {
        Execution::NotStarted => Outcome::failed(format!("The tool did not run: {what}.")),
        Execution::Unknown => Outcome::unknown(format!("{MAY_HAVE_RUN} ({what})")),
        Execution::Finished(outcome) => outcome.clone(),
        Execution::FinishedWithError => return None,
    })
}

fn tower_error(error: &BoxError) -> Option<&'static str> {
    if error.is::<Elapsed>() {
        Some("it took too long")
    } else if error.is::<Overloaded>() {
        Some("too many calls are running")
    } else if error.is::<Closed>() || error.is::<ServiceError>() {
        Some("its queue is closed")
    } else {
        None
    }
}
