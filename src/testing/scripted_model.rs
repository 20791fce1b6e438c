//! A model whose responses are fixed.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::call::ToolCall;
use crate::error::BoxError;
use crate::model::{Model, ModelRequest, ModelResponse};

/// A model that gives these responses, one for each request, and after the last one the text `Done.` It records its
/// requests. Clones share the script and the record, so that a test keeps one and gives the other to an agent.
///
/// ```
/// use countersign::testing::ScriptedModel;
/// use countersign::{Agent, FunctionToolset, ToolCall, ToolError, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct NoArgs {}
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("now", "The time", async |_: NoArgs| Ok::<_, ToolError>("noon")));
/// let model = ScriptedModel::calls([ToolCall::new("c1", "now", json!({}))]).then_text("It is noon.");
/// let run = Agent::new(model.clone(), tools).run("What time is it?").await?;
/// assert_eq!(run.text(), Some("It is noon."));
///
/// // The second request has the result of the call, which is what the model was told.
/// let requests = model.requests();
/// assert_eq!((requests.len(), requests[0].tools()[0].name()), (2, "now"));
/// assert_eq!(requests[1].messages().len(), 3);
/// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct ScriptedModel(Arc<Mutex<State>>);

struct State {
    script: VecDeque<Result<ModelResponse, String>>,
    requests: Vec<ModelRequest>,
}

impl ScriptedModel {
    /// A model with these responses, in this order.
    ///
    /// All runs of the agent share one script, in the order of their requests. If your test has parallel runs, give
    /// each run an agent.
    #[must_use]
    pub fn new(responses: impl IntoIterator<Item = ModelResponse>) -> Self {
        let script = responses.into_iter().map(Ok).collect();
        Self(Arc::new(Mutex::new(State { script, requests: Vec::new() })))
    }

    /// A model that makes these calls in its first response.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self::new([ModelResponse::calls(calls)])
    }

    /// Adds a response to the end of the script.
    #[must_use]
    pub fn then(self, response: ModelResponse) -> Self {
        self.add(Ok(response))
    }

    /// Adds a response with this text.
    #[must_use]
    pub fn then_text(self, text: impl Into<String>) -> Self {
        self.then(ModelResponse::text(text))
    }

    /// Adds a request that fails with this message, as one to a provider that is not available: for tests of what a run
    /// keeps when it ends with an error.
    ///
    /// ```
    /// use countersign::testing::ScriptedModel;
    /// use countersign::{Agent, FunctionToolset};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let model = ScriptedModel::new([]).then_error("no connection").then_text("Hello.");
    /// let agent = Agent::new(model, FunctionToolset::new());
    /// let failed = agent.run("Hello").await.unwrap_err();
    /// let run = agent.resume(failed.into_suspended(), Default::default()).await?;
    /// assert_eq!(run.text(), Some("Hello."));
    /// # Ok::<(), countersign::agent::RunError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn then_error(self, message: impl Into<String>) -> Self {
        self.add(Err(message.into()))
    }

    /// The requests so far, in order, with their messages, tools and instructions.
    #[must_use]
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.with(|state| state.requests.clone())
    }

    fn add(self, response: Result<ModelResponse, String>) -> Self {
        self.with(|state| state.script.push_back(response));
        self
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Model for ScriptedModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        // A copy and no clone: a clone of a streamed request is another attempt.
        let mut seen =
            ModelRequest::new(request.messages().to_vec()).with_tools(request.tools().to_vec());
        if let Some(instructions) = request.instructions() {
            seen = seen.with_instructions(instructions);
        }
        let next = self.with(|state| {
            state.requests.push(seen);
            state.script.pop_front()
        });
        next.unwrap_or_else(|| Ok(ModelResponse::text("Done."))).map_err(Into::into)
    }
}

impl fmt::Debug for ScriptedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, requests) = self.with(|state| (state.script.len(), state.requests.len()));
        f.debug_struct("ScriptedModel").field("left", &left).field("requests", &requests).finish()
    }
}
