//! Real models, through the clients of the [`genai`] crate: OpenAI, Anthropic, Gemini, and some thirty more.
//!
//! ```no_run
//! use std::time::Duration;
//! use countersign::{Agent, FunctionToolset, GenaiModel, ModelExt};
//! use tower::ServiceBuilder;
//!
//! # async fn example() -> Result<(), countersign::RunError> {
//! // The provider goes by the name, and its key comes from the environment: here OPENAI_API_KEY.
//! let model = GenaiModel::new("gpt-4o-mini");
//! let model = model.layered(ServiceBuilder::new().timeout(Duration::from_secs(90)));
//! let run = Agent::new(model, FunctionToolset::new()).run("Hello").await?;
//! println!("{:?}", run.text());
//! # Ok(()) }
//! ```
//!
//! # What a provider is told
//!
//! - The results of one response stand together, right behind its calls; what a tool adds for the model to read comes
//!   after all of them. Empty texts are left out, and messages of one speaker that follow each other become one.
//! - A value goes as its JSON text. A text goes as it is, and so does the reason of a denial (rule D2). A failure and a
//!   request to try again are told apart from a result: as `{"error": …}`, PydanticAI's shape, or by `is_error` where
//!   the provider has that (Anthropic). Then a denial carries it too.
//! - Ids and names of calls that the provider would refuse, as they come from another provider or from a model's
//!   imagination, are replaced in what is sent, never in the history. Arguments that could not be read go as `{}`.
//! - Thoughts go back to the provider that had them, where it needs them: signed ones with their signature, and the
//!   plain `reasoning_content` of those who ask for it (DeepSeek, Kimi, Moonshot, MiMo, Z.ai, BigModel, Mistral).
//!
//! # Errors
//!
//! A [`GenaiError`] says who failed and how, and can be found again for a retry policy:
//! `error.downcast_ref::<GenaiError>()`. An answer that stops without its end marker, or is cut off at the limit of
//! tokens, is an error and never a short answer. An answer of which a call was cut off is given to the turn, which lets
//! the model try that call again.
//!
//! The client logs on its own, with the target `genai`: at `warn` and above it may quote what a provider said.

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

use crate::error::BoxError;
use crate::model::{Model, ModelRequest, ModelResponse};

/// A model of any provider that the `genai` crate knows.
///
/// Cheap to clone; the clones share their connections.
///
/// ```
/// use countersign::GenaiModel;
/// use countersign::genai::ChatOptions;
///
/// let model = GenaiModel::new("claude-sonnet-4-5").options(ChatOptions::default().with_temperature(0.2));
/// # let _ = model;
/// ```
#[derive(Clone)]
pub struct GenaiModel {
    /// Or why there is none: the first request says it.
    client: Result<Client, Arc<str>>,
    name: Arc<str>,
    options: ChatOptions,
    streaming: bool,
}

impl GenaiModel {
    /// A model by its name, as `genai` takes it: `gpt-4o-mini`, `claude-sonnet-4-5`, `gemini-2.5-flash`, or with the
    /// provider in front, `groq::llama-3.3-70b-versatile`. A name that says nothing of a provider is Ollama's. The key
    /// comes from the environment, from the variable that the provider's own tools use.
    ///
    /// ```
    /// let model = countersign::GenaiModel::new("gpt-4o-mini");
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::of(Client::new().map_err(|error| error.to_string().into()), name.into())
    }

    /// A model of a client of your own: with other endpoints, keys from elsewhere, or HTTP settings.
    ///
    /// ```
    /// use countersign::GenaiModel;
    /// use countersign::genai::Client;
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

    /// Temperature, limits, reasoning effort and the like, for every request. What is to be captured is set by the
    /// library, except for `capture_reasoning_content`: it is on unless you say otherwise, as signatures come with it.
    /// OpenAI's Responses API is left as you have it, since asking it for thoughts needs a verified organisation.
    ///
    /// ```
    /// use countersign::GenaiModel;
    /// use countersign::genai::ChatOptions;
    ///
    /// let model = GenaiModel::new("gpt-4o-mini").options(ChatOptions::default().with_max_tokens(2_000));
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn options(mut self, options: ChatOptions) -> Self {
        self.options = options;
        self
    }

    /// Whether to stream; yes by default, also where nobody listens. Without it, one call with unreadable arguments
    /// fails the whole response, and repeated keys in arguments go unseen, as the client reads the arguments itself.
    /// It is for servers that cannot stream, or that stream without saying why they stop.
    ///
    /// ```
    /// let model = countersign::GenaiModel::new("gpt-4o-mini").streaming(false);
    /// # let _ = model;
    /// ```
    #[must_use]
    pub fn streaming(mut self, streaming: bool) -> Self {
        self.streaming = streaming;
        self
    }

    /// Whether the model can be asked: its provider is known, and the key is there. Asks nobody.
    ///
    /// # Errors
    /// Says what is missing, with the name of the environment variable.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), countersign::GenaiError> {
    /// countersign::GenaiModel::new("gpt-4o-mini").check().await?;
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

    /// The options of a request.
    fn options_for(&self, kind: AdapterKind) -> ChatOptions {
        let mut options = self.options.clone();
        options.capture_content = Some(true);
        options.capture_tool_calls = Some(true);
        if kind != AdapterKind::OpenAIResp {
            options.capture_reasoning_content.get_or_insert(true);
        }
        options
    }

    async fn ask(&self, request: &ModelRequest) -> Result<ModelResponse, GenaiError> {
        let client = self.client()?;
        // What a request looks like depends on who reads it, which the client's own resolvers may decide.
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
