//! The model behind an agent.
//!
//! [`Model`] has one method, so that any client can implement it. Requests to a model can have tower's layers around
//! them, too: see [`ModelExt::layered`].
//!
//! ```
//! use countersign::model::{ModelRequest, ModelResponse};
//! use countersign::{BoxError, Model};
//!
//! struct Echo;
//!
//! impl Model for Echo {
//!     async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
//!         Ok(ModelResponse::text(format!("I have {} tools.", request.tools().len())))
//!     }
//! }
//! # let _ = Echo;
//! ```

mod request;
mod service;

use std::future::Future;

use futures::future::BoxFuture;

pub use request::ModelRequest;
pub(crate) use request::{Deltas, Heard};
pub use service::{LayeredModel, ModelExt, ModelService};

use crate::call::ToolCall;
use crate::error::BoxError;
use crate::message::ResponsePart;

/// Generates the next response: text, tool calls, or both.
///
/// ```
/// use countersign::model::{ModelRequest, ModelResponse};
/// use countersign::{BoxError, Model};
///
/// struct Echo;
///
/// impl Model for Echo {
///     async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
///         // A client that streams passes on each piece of text as it arrives; others leave this out.
///         request.text_delta("I have ");
///         Ok(ModelResponse::text(format!("I have {} tools.", request.tools().len())))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no model",
    note = "implement `Model`, use a client of the crate `countersign-genai` (`GenaiModel::new(\"gpt-5\")`), or script one for tests with `countersign::testing::ScriptedModel`"
)]
pub trait Model: Send + Sync + 'static {
    /// Generates the response to a request.
    ///
    /// # Errors
    /// The error of the model or its client. The run ends with this error, and can be resumed.
    fn respond(
        &self,
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send;
}

/// The response of a model: texts and tool calls.
///
/// A response with calls is never the final answer, also when it has text: the calls run, and the model is asked again.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// The parts of the response, in the order of the model.
    pub parts: Vec<ResponsePart>,
    /// The tokens that the provider has counted, if it says so. They are recorded in the spans of the request and of
    /// the run.
    pub tokens: Option<TokenUsage>,
    /// The name of the model that has answered, for the span of the request.
    pub model: Option<String>,
}

/// The number of tokens of one request to a model, as its provider counts them.
///
/// ```
/// use countersign::model::ModelResponse;
/// use countersign::model::TokenUsage;
///
/// let tokens = TokenUsage { input: 812, output: 40 };
/// let response = ModelResponse { tokens: Some(tokens), ..ModelResponse::text("Done.") };
/// assert_eq!(response.tokens, Some(tokens));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// The tokens of the request: instructions, history and tool definitions.
    pub input: u64,
    /// The tokens of the response, with those of its reasoning.
    pub output: u64,
}

impl ModelResponse {
    /// Creates a response of text without calls: a final answer.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![ResponsePart::Text(text.into())], ..Self::default() }
    }

    /// Creates a response of tool calls, in this order.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        let parts = calls.into_iter().map(ResponsePart::ToolCall).collect();
        Self { parts, ..Self::default() }
    }

    /// Puts a text before the other parts.
    ///
    /// ```
    /// use countersign::message::ResponsePart;
    /// use countersign::model::ModelResponse;
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "list_files", json!({}));
    /// let response = ModelResponse::calls([call]).saying("I will look first.");
    /// assert!(matches!(&response.parts[..], [ResponsePart::Text(_), ResponsePart::ToolCall(_)]));
    /// assert!(matches!(&ModelResponse::text("Done.").parts[..], [ResponsePart::Text(_)]));
    /// ```
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.parts.insert(0, ResponsePart::Text(text.into()));
        self
    }
}

/// The object-safe form of [`Model`].
pub(crate) trait ErasedModel: Send + Sync {
    fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>>;
}

impl<M: Model> ErasedModel for M {
    fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        Box::pin(Model::respond(self, request))
    }
}
