//! A model whose responses are fixed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::error::BoxError;
use crate::model::{Model, ModelRequest, ModelResponse};

/// A model that gives these responses, one for each request, and after the last one the text `Done.`
///
/// ```
/// use countersign::model::ModelResponse;
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset, ToolCall, ToolError, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct NoArgs {}
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("now", "The time", async |_: NoArgs| Ok::<_, ToolError>("noon")));
/// let model = ScriptedModel::new([
///     ModelResponse::calls([ToolCall::new("c1", "now", json!({}))]),
///     ModelResponse::text("It is noon."),
/// ]);
/// let run = Agent::new(model, tools).run("What time is it?").await?;
/// assert_eq!(run.text(), Some("It is noon."));
/// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct ScriptedModel(Mutex<VecDeque<ModelResponse>>);

impl ScriptedModel {
    /// A model with these responses, in this order.
    ///
    /// One script is shared by all runs of the agent, in the order of their requests; a test with parallel runs gives
    /// each run an agent.
    #[must_use]
    pub fn new(responses: impl IntoIterator<Item = ModelResponse>) -> Self {
        Self(Mutex::new(responses.into_iter().collect()))
    }
}

impl Model for ScriptedModel {
    async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
        let next = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(next.unwrap_or_else(|| ModelResponse::text("Done.")))
    }
}
