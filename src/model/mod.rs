//! The model behind an agent.
//!
//! [`Model`] has one method, so that any client fits behind it. Model calls are tower services too: see
//! [`ModelExt::layered`].

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

/// Says what comes next: text, tool calls, or both. Small enough to put any client behind it.
///
/// ```
/// use countersign::{BoxError, Model, ModelRequest, ModelResponse};
///
/// struct Echo;
///
/// impl Model for Echo {
///     async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
///         // A client that streams passes on what it hears as it hears it; the others leave this out.
///         request.text_delta("I have ");
///         Ok(ModelResponse::text(format!("I have {} tools.", request.tools().len())))
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
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, BoxError>> + Send;
}

/// What a model says.
#[derive(Debug, Clone, Default)]
pub struct ModelResponse {
    /// The parts, in this order.
    pub parts: Vec<ResponsePart>,
}

impl ModelResponse {
    /// Text and no calls: the final answer.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { parts: vec![ResponsePart::Text(text.into())] }
    }

    /// A response of tool calls alone.
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
pub(crate) trait ErasedModel: Send + Sync {
    fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>>;
}

impl<M: Model> ErasedModel for M {
    fn respond(&self, request: ModelRequest) -> BoxFuture<'_, Result<ModelResponse, BoxError>> {
        Box::pin(Model::respond(self, request))
    }
}
