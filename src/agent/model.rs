//! The model behind an agent.

use std::future::Future;

use futures::future::BoxFuture;

use super::message::{Message, ResponsePart};
use crate::call::{ToolCall, ToolDefinition};
use crate::error::BoxError;

/// Says what comes next: text, tool calls, or both. Small enough to put any client behind it.
///
/// ```
/// use countersign::{BoxError, Model, ModelRequest, ModelResponse};
///
/// struct Echo;
///
/// impl Model for Echo {
///     async fn respond(&self, request: ModelRequest<'_>) -> Result<ModelResponse, BoxError> {
///         Ok(ModelResponse::text(format!("I have {} tools.", request.tools.len())))
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers a request.
    ///
    /// # Errors
    /// Whatever keeps the model from answering; the run ends with it, and can be resumed.
    fn respond(
        &self,
        request: ModelRequest<'_>,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send;
}

/// What a model is given.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ModelRequest<'a> {
    /// What the agent is there for.
    pub instructions: Option<&'a str>,
    /// The conversation so far.
    pub messages: &'a [Message],
    /// The tools as they are now.
    pub tools: &'a [ToolDefinition],
}

/// What a model says.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// In this order.
    pub parts: Vec<ResponsePart>,
}

impl ModelResponse {
    /// Text and no calls: the final answer.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![ResponsePart::Text(text.into())] }
    }

    /// Tool calls.
    #[must_use]
    pub fn calls(calls: impl IntoIterator<Item = ToolCall>) -> Self {
        Self { parts: calls.into_iter().map(ResponsePart::ToolCall).collect() }
    }

    /// With a text in front.
    #[must_use]
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.parts.insert(0, ResponsePart::Text(text.into()));
        self
    }
}

/// The object-safe twin of [`Model`].
pub(super) trait ErasedModel: Send + Sync {
    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, BoxError>>;
}

impl<M: Model> ErasedModel for M {
    fn respond<'a>(
        &'a self,
        request: ModelRequest<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse, BoxError>> {
        Box::pin(Model::respond(self, request))
    }
}
