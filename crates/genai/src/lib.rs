//! Real models, through the clients of the [`genai`] crate: OpenAI, Anthropic, Gemini, and some thirty more.
//!
//! ```no_run
//! use std::time::Duration;
//! use countersign_genai::GenaiModel;
//! use countersign::model::ModelExt;
//! use countersign::{Agent, FunctionToolset};
//! use tower::ServiceBuilder;
//!
//! # async fn example() -> Result<(), countersign::agent::RunError> {
//! // The name selects the provider; its key is read from the environment: here OPENAI_API_KEY.
//! let model = GenaiModel::new("gpt-4o-mini");
//! let model = model.layered(ServiceBuilder::new().timeout(Duration::from_secs(90)));
//! let run = Agent::new(model, FunctionToolset::new()).run("Hello").await?;
//! println!("{:?}", run.text());
//! # Ok(()) }
//! ```
//!
//! # What a provider receives
//!
//! - The results of one response follow directly after its calls; additional content of a tool comes after all of them.
//!   We leave out blank texts, and merge consecutive messages of one role.
//! - We send a JSON value as its JSON text, a string as it is, and so the reason of a denial (rule D2). We mark
//!   failures and requests to try again, so the model does not take them for results: as `{"error": …}`, which is
//!   PydanticAI's shape, or with `is_error` if the provider has that field (Anthropic). There, denials carry `is_error`
//!   too.
//! - Some call ids and tool names come from another provider, or the model made them up, and the provider would refuse
//!   them. We replace them in what we send, never in the history. We send arguments that could not be parsed as `{}`.
//! - We send reasoning back only to the provider that produced it, and only if it needs that: signed reasoning with
//!   its signature, and plain `reasoning_content` to the providers that require it (DeepSeek, Kimi, Moonshot, MiMo,
//!   Z.ai, BigModel, Mistral).
//!
//! # Errors
//!
//! A [`GenaiError`] says which provider failed and how. A retry policy finds it with
//! `error.downcast_ref::<GenaiError>()`. A response that ends without its end marker, or that is cut off at the token
//! limit, is an error and never a short answer. A response in which a call was cut off goes to the turn, which lets the
//! model try that call again.
//!
//! The client has log events of its own, with the target `genai`: at `warn` and above they may quote a provider's
//! message.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod error;
mod ids;
mod request;
mod response;

use std::fmt;
use std::sync::Arc;

pub use ::genai::Client;
use ::genai::adapter::AdapterKind;
pub use ::genai::chat::ChatOptions;
use ::genai::resolver::AuthData;

pub use error::GenaiError;
use error::Whose;

use countersign::error::BoxError;
use countersign::model::{Model, ModelRequest, ModelResponse};

/// A [`Model`] of any provider that the `genai` crate supports.
///
/// Cheap to clone; the clones share their connections.
///
/// ```
/// use countersign_genai::GenaiModel;
/// use countersign_genai::ChatOptions;
///
/// let model = GenaiModel::new("claude-sonnet-4-5").options(ChatOptions::default().with_temperature(0.2));
/// # let _ = model;
/// ```
#[derive(Clone)]
pub struct GenaiModel {
    /// If the client cannot be built, we keep the error, and the first request returns it: so `new` is
    /// infallible.
    client: Result<Client, Arc<str>>,
    name: Arc<str>,
    options: ChatOptions,
    streaming: bool,
}

impl GenaiModel {
    /// A model by its name, as `genai` resolves it: `gpt-4o-mini`, `claude-sonnet-4-5`, `gemini-2.5-flash`, or with the
    /// provider as a prefix, `groq::llama-3.3-70b-versatile`. A name that matches no provider is Ollama's. The key is
    /// read from the environment variable that the provider's own tools use.
    ///
    /// ```
    /// let model = countersign_genai::GenaiModel::new("gpt-4o-mini");
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::of(Client::new().map_err(|error| error.to_string().into()), name.into())
    }

    /// A model that uses your own client, with other endpoints, another source of keys, or other HTTP settings.
    ///
    /// ```
    /// use countersign_genai::GenaiModel;
    /// use countersign_genai::Client;
    /// use genai::adapter::AdapterKind;
    /// use genai::resolver::{AuthData, Endpoint};
    ///
    /// let gateway = (Endpoint::from_static("https://gateway.internal/v1/"), AuthData::from_env("GATEWAY_KEY"));
    /// let client = Client::builder().append_provider_config(AdapterKind::OpenAI, gateway).build()?;
    /// let model = GenaiModel::with_client(client, "openai::gpt-4o-mini");
    /// # let _ = model;
    /// # Ok::<(), genai::Error>(())
    /// ```
    #[must_use]
    pub fn with_client(client: Client, name: impl Into<Arc<str>>) -> Self {
        Self::of(Ok(client), name.into())
    }

    fn of(client: Result<Client, Arc<str>>, name: Arc<str>) -> Self {
        Self { client, name, options: ChatOptions::default(), streaming: true }
    }

    /// Sets temperature, token limit, reasoning effort and the like for every request. The library sets the capture
    /// options that it needs, except for `capture_reasoning_content`: it is on unless you switch it off, as signatures
    /// come with it. For OpenAI's Responses API it stays as you set it, since requesting reasoning there needs a
    /// verified organisation.
    ///
    /// ```
    /// use countersign_genai::GenaiModel;
    /// use countersign_genai::ChatOptions;
    ///
    /// let model = GenaiModel::new("gpt-4o-mini").options(ChatOptions::default().with_max_tokens(2_000));
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns whether to request a streamed response; on by default, also when no watcher listens. Without
    /// streaming, one call with unparsable arguments fails the whole response, and repeated keys in arguments go
    /// unnoticed, as the client parses the arguments itself. Switch it off for servers that cannot stream, or that
    /// stream without a stop reason.
    ///
    /// ```
    /// let model = countersign_genai::GenaiModel::new("gpt-4o-mini").streaming(false);
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Checks that the provider is known and its key is set, without sending a request.
    ///
    /// # Errors
    /// [`GenaiError`] says what is missing, with the name of the environment variable.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), countersign_genai::GenaiError> {
    /// countersign_genai::GenaiModel::new("gpt-4o-mini").check().await?;
    /// # Ok(()) }
    /// ```
    pub async fn check(&self) -> Result<(), GenaiError> {
        let client = self.client()?;
        let target = client.resolve_service_target(&*self.name).await;
        let target = target.map_err(|error| GenaiError::of(&self.whose(None), error))?;
        match target.auth {
            AuthData::FromEnv(name) if std::env::var_os(&name).is_none_or(|key| key.is_empty()) => {
                Err(GenaiError::no_key(&self.whose(Some(target.model.adapter_kind)), &name))
            }
            _ => Ok(()),
        }
    }

    fn client(&self) -> Result<&Client, GenaiError> {
        self.client.as_ref().map_err(|problem| GenaiError::no_client(&self.whose(None), problem))
    }

    fn whose(&self, kind: Option<AdapterKind>) -> Whose {
        Whose { model: Arc::clone(&self.name), kind }
    }

    /// The options of a request, with the captures that the conversion to [`ModelResponse`] depends on.
    fn options_for(&self, kind: AdapterKind) -> ChatOptions {
        let mut options = self.options.clone();
        options.capture_content = Some(true);
        options.capture_tool_calls = Some(true);
        options.capture_usage.get_or_insert(true);
        if kind != AdapterKind::OpenAIResp {
            options.capture_reasoning_content.get_or_insert(true);
        }
        options
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelResponse, GenaiError> {
        let client = self.client()?;
        // The shape of the request depends on the provider, which the client's own resolvers may choose.
        let target = client.resolve_service_target(&*self.name).await;
        let kind =
            target.map_err(|error| GenaiError::of(&self.whose(None), error))?.model.adapter_kind;
        let whose = self.whose(Some(kind));
        let (chat, options) = (request::chat(request, kind), self.options_for(kind));
        let failed = |error| GenaiError::of(&whose, error);
        if self.streaming {
            let answer = client.exec_chat_stream(&*self.name, chat, Some(&options)).await;
            response::streamed(answer.map_err(failed)?.stream, request, &whose).await
        } else {
            let answer = client.exec_chat(&*self.name, chat, Some(&options)).await;
            response::whole(answer.map_err(failed)?, &whose)
        }
    }
}

impl Model for GenaiModel {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        Ok(self.ask(&request).await?)
    }
}

impl fmt::Debug for GenaiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel")
            .field("name", &self.name)
            .field("streaming", &self.streaming)
            .finish_non_exhaustive()
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
