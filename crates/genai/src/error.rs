//! Errors of a request to a provider: how the client's errors are classified, and how they are shown.
//!
//! The client's errors quote what they were about: the request with the conversation, the response, the address with a
//! key in it. So we write the texts that are shown here, from a closed list of problems. From the provider we take
//! only a status, and a code of letters and underscores. The rest is in [`GenaiError::detail`], for a person who asks
//! for it (rule S2).
//!
//! | problem | example | is worth a retry |
//! |---|---|---|
//! | status 408, 409, 425, 429, 5xx | overloaded | yes, but not `insufficient_quota` |
//! | no connection, time over, lost in the middle | | yes |
//! | no end, nothing said, unreadable | a proxy that cuts streams | yes |
//! | status 400, 401, 403, 404 | a wrong key or model | no |
//! | cut off at the limit of tokens, withheld | | no: the same would happen again |

use countersign::error::with_causes;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::genai::adapter::AdapterKind;
use ::genai::webc::{self, StreamTimeout};
use ::genai::{Error as ClientError, resolver};
use serde_json::Value;

/// The source of an error: the model, by the name that the host gave, and its provider once that is resolved.
pub(super) struct Whose {
    pub(super) model: Arc<str>,
    pub(super) kind: Option<AdapterKind>,
}

/// The error of a request to a model that gave no usable response.
///
/// `Display` and `Debug` name the provider and the model, and give the HTTP status and the provider's own error code.
/// They quote neither keys nor the conversation (rule S2). The provider's own message is [`detail`](Self::detail).
///
/// ```
/// use countersign_genai::Client;
/// use countersign_genai::{GenaiError, GenaiModel};
/// use countersign::model::ModelRequest;
/// use countersign::{BoxError, Message, Model};
/// use genai::adapter::AdapterKind;
/// use genai::resolver::{AuthData, Endpoint};
///
/// /// What a retry policy of tower asks about an error.
/// fn is_worth_another_try(error: &BoxError) -> bool {
///     error.downcast_ref::<GenaiError>().is_some_and(GenaiError::is_temporary)
/// }
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let unreachable = (Endpoint::from_static("http://127.0.0.1:1/v1/"), AuthData::from_single("a key"));
/// let client = Client::builder().append_provider_config(AdapterKind::OpenAI, unreachable).build()?;
/// let model = GenaiModel::with_client(client, "gpt-4o-mini");
/// let error = model.respond(ModelRequest::new(vec![Message::user("Hello")])).await.unwrap_err();
/// assert_eq!(error.to_string(), "openai (gpt-4o-mini): no connection");
/// assert!(is_worth_another_try(&error));
/// # Ok::<(), BoxError>(()) })?;
/// # Ok::<(), BoxError>(())
/// ```
pub struct GenaiError(Box<Inner>);

struct Inner {
    whose: String,
    problem: Cause,
    /// The provider's error code, such as `rate_limit_error`; only if [`is_code`] accepts it.
    code: Option<String>,
    retry_after: Option<Duration>,
    detail: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Cause {
    /// The API key is missing; names the environment variable it is read from, if that is known.
    NoKey(Option<String>),
    NoClient,
    /// The client could not build the request, so nothing was sent.
    NotAsked,
    Status(u16, String),
    NoConnection,
    Timeout,
    /// The provider reported an error in the middle of the stream.
    Failed,
    /// The connection was lost while the response was being read.
    BrokenOff,
    NoEnd,
    CutOff(String),
    Withheld(String),
    /// The model stopped for a reason other than length or a filter, and the response has neither text nor calls.
    Nothing(String),
    Unreadable,
}

impl GenaiError {
    /// The HTTP status of the provider's response, if the provider answered with an error status.
    ///
    /// ```no_run
    /// # fn example(error: &countersign_genai::GenaiError) {
    /// assert_eq!(error.status(), Some(429));
    /// # }
    /// ```
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self.0.problem {
            Cause::Status(status, _) => Some(status),
            _ => None,
        }
    }

    /// The time for which the provider asks to wait before the next request, from its `retry-after-ms` or `retry-after`
    /// header. A `retry-after` that is a date is not read.
    ///
    /// ```no_run
    /// # async fn example(error: &countersign_genai::GenaiError) {
    /// tokio::time::sleep(error.retry_after().unwrap_or_default()).await;
    /// # }
    /// ```
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns `true` if the same request may succeed later: after an overloaded or failing server, a timeout, a lost
    /// connection, or an incomplete, empty or unreadable response. False for a wrong key, a refused request, an
    /// exhausted quota, a withheld response, and a response that was cut off at the token limit.
    ///
    /// ```no_run
    /// # fn example(error: &countersign_genai::GenaiError) {
    /// if error.is_temporary() { println!("try again") }
    /// # }
    /// ```
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self.0.problem {
            Cause::Status(429, _) => self.0.code.as_deref() != Some("insufficient_quota"),
            Cause::Status(status, _) => matches!(status, 408 | 409 | 425 | 500..),
            Cause::NoConnection
            | Cause::Timeout
            | Cause::Failed
            | Cause::BrokenOff
            | Cause::NoEnd
            | Cause::Unreadable
            | Cause::Nothing(_) => true,
            Cause::NoKey(_)
            | Cause::NoClient
            | Cause::NotAsked
            | Cause::CutOff(_)
            | Cause::Withheld(_) => false,
        }
    }

    /// The provider's, or the client's, own error message. It may quote the conversation or a part of a key: show it to
    /// a person who investigates the error, and keep it out of logs.
    ///
    /// ```no_run
    /// # fn example(error: &countersign_genai::GenaiError) {
    /// println!("{error}; in its own words: {:?}", error.detail());
    /// # }
    /// ```
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    fn new(whose: &Whose, problem: Cause) -> Self {
        let model = whose.model.as_ref();
        // The prefix `provider::` is dropped, as the provider is printed before the name.
        let name = model.split_once("::").map_or(model, |(_, name)| name);
        let whose = match &whose.kind {
            Some(kind) => format!("{} ({name})", kind.as_lower_str()),
            None => model.to_owned(),
        };
        Self(Box::new(Inner { whose, problem, code: None, retry_after: None, detail: None }))
    }

    fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }

    /// Adds the code and the message of a provider's JSON error body.
    fn with_body(mut self, body: &Value) -> Self {
        let inner = body.get("error").unwrap_or(body);
        let named = |key: &str| inner.get(key).and_then(Value::as_str);
        let codes = ["code", "type", "status"].into_iter().filter_map(named);
        self.0.code = codes.map(str::to_owned).find(|code| is_code(code));
        let said = named("message").map_or_else(|| body.to_string(), str::to_owned);
        self.with_detail(said)
    }

    pub(super) fn no_key(whose: &Whose, variable: &str) -> Self {
        Self::new(whose, Cause::NoKey(Some(variable.to_owned())))
    }

    pub(super) fn no_client(whose: &Whose, problem: &str) -> Self {
        Self::new(whose, Cause::NoClient).with_detail(problem)
    }

    pub(super) fn no_end(whose: &Whose) -> Self {
        Self::new(whose, Cause::NoEnd)
    }

    pub(super) fn cut_off(whose: &Whose, reason: &str) -> Self {
        Self::new(whose, Cause::CutOff(code(reason)))
    }

    pub(super) fn withheld(whose: &Whose, reason: &str) -> Self {
        Self::new(whose, Cause::Withheld(code(reason)))
    }

    pub(super) fn nothing(whose: &Whose, reason: &str) -> Self {
        Self::new(whose, Cause::Nothing(code(reason)))
    }

    /// Classifies an error of the client.
    pub(super) fn of(whose: &Whose, error: ClientError) -> Self {
        match error {
            ClientError::HttpError { .. }
            | ClientError::WebModelCall {
                webc_error: webc::Error::ResponseFailedStatus { .. },
                ..
            } => Self::status_of(whose, &error),
            ClientError::WebModelCall { webc_error: webc::Error::Reqwest(error), .. } => {
                let problem = match (error.is_timeout(), error.is_body() || error.is_decode()) {
                    (true, _) => Cause::Timeout,
                    (_, true) => Cause::BrokenOff,
                    _ => Cause::NoConnection,
                };
                Self::new(whose, problem).with_detail(with_causes(&error))
            }
            ClientError::WebStream { error, .. } => Self::of_stream(whose, error),
            ClientError::ChatResponse { body, .. } => {
                Self::new(whose, Cause::Failed).with_body(&body)
            }
            ClientError::Resolver {
                resolver_error: resolver::Error::ApiKeyEnvNotFound { env_name },
                ..
            } => Self::no_key(whose, &env_name),
            ClientError::Resolver {
                resolver_error: resolver::Error::ResolverAuthDataNotSingleValue,
                ..
            }
            | ClientError::RequiresApiKey { .. }
            | ClientError::NoAuthResolver { .. }
            | ClientError::NoAuthData { .. } => Self::new(whose, Cause::NoKey(None)),
            // Only the cause is used: the error's own text quotes the whole conversation.
            ClientError::ChatResponseGeneration { cause, .. } => {
                Self::new(whose, Cause::Unreadable).with_detail(cause)
            }
            ClientError::WebModelCall { .. }
            | ClientError::StreamParse { .. }
            | ClientError::NoChatResponse { .. }
            | ClientError::InvalidJsonResponseElement { .. }
            | ClientError::JsonValueExt(_)
            | ClientError::SerdeJson(_) => {
                Self::new(whose, Cause::Unreadable).with_detail(error.to_string())
            }
            other => Self::new(whose, Cause::NotAsked).with_detail(other.to_string()),
        }
    }

    /// Classifies an error of a stream, in which the client wraps the original error a second time.
    fn of_stream(whose: &Whose, error: ::genai::BoxError) -> Self {
        if error.is::<StreamTimeout>() {
            return Self::new(whose, Cause::Timeout);
        }
        let detail = match error.downcast::<ClientError>() {
            Ok(error) => return Self::of(whose, *error),
            Err(error) => error,
        };
        let problem = match as_inside(webc::Error::Reqwest, &*detail) {
            Some(error) if error.is_timeout() => Cause::Timeout,
            Some(error) if error.is_connect() || error.is_request() => Cause::NoConnection,
            _ => Cause::BrokenOff,
        };
        Self::new(whose, problem).with_detail(with_causes(&*detail))
    }

    fn status_of(whose: &Whose, error: &ClientError) -> Self {
        let body = match error {
            ClientError::HttpError { body, .. }
            | ClientError::WebModelCall {
                webc_error: webc::Error::ResponseFailedStatus { body, .. },
                ..
            } => body.as_str(),
            _ => "",
        };
        let header = |name: &str| error.headers()?.get(name)?.to_str().ok()?.trim().parse().ok();
        let after = header("retry-after-ms").map(Duration::from_millis);
        let (status, words) = error.status().map_or((0, ""), |status| {
            (status.as_u16(), status.canonical_reason().unwrap_or_default())
        });
        let mut this = Self::new(whose, Cause::Status(status, words.to_owned()));
        this.0.retry_after = after.or_else(|| header("retry-after").map(Duration::from_secs));
        match serde_json::from_str(body) {
            Ok(body) => this.with_body(&body),
            Err(_) => this.with_detail(body),
        }
    }
}

/// Downcasts to the error type that a variant of `webc::Error` wraps. The type is inferred from the variant's
/// constructor, since it comes from a crate that is no dependency of this one.
///
/// `webc::Error::Reqwest` holds an error of another version of `reqwest` than this crate may have, so its type has no
/// name here.
fn as_inside<'a, T: Error + 'static>(
    _: impl Fn(T) -> webc::Error,
    error: &'a (dyn Error + Send + Sync + 'static),
) -> Option<&'a T> {
    error.downcast_ref()
}

/// Returns `true` if a text looks like an error code, such as `rate_limit_error`: at most 48 ASCII letters and
/// underscores, so that neither a key nor a sentence of the conversation gets through.
///
/// Providers put anything into the field: we have seen a sentence with a part of the key in it.
fn is_code(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphabetic() || c == '_';
    (1..=48).contains(&text.len()) && text.chars().all(fits)
}

fn code(text: &str) -> String {
    if is_code(text) { text.to_owned() } else { "without a reason that can be shown".to_owned() }
}

impl fmt::Display for GenaiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { whose, problem, code, .. } = &*self.0;
        write!(f, "{whose}: ")?;
        match problem {
            Cause::NoKey(Some(variable)) => {
                write!(f, "no key: set {variable} in the environment")
            }
            Cause::NoKey(None) => f.write_str("no key: give the client one"),
            Cause::NoClient => f.write_str("no HTTP client can be made on this machine"),
            Cause::NotAsked => f.write_str("the request could not be made"),
            Cause::Status(status, words) => {
                write!(f, "{}", format!("{status} {words}").trim_end())
            }
            Cause::NoConnection => f.write_str("no connection"),
            Cause::Timeout => f.write_str("no answer in time"),
            Cause::Failed => f.write_str("it failed in the middle of its response"),
            Cause::BrokenOff => f.write_str("the connection was lost in the middle of the response"),
            Cause::NoEnd => {
                f.write_str("the response stopped without its end marker: the part that was received is discarded")
            }
            Cause::CutOff(reason) => {
                write!(
                    f,
                    "the response was cut off at the token limit ({reason}): raise `max_tokens`"
                )
            }
            Cause::Withheld(reason) => write!(f, "the response was withheld ({reason})"),
            Cause::Nothing(reason) => write!(f, "the response is empty, and the model stopped ({reason})"),
            Cause::Unreadable => f.write_str("the response cannot be read"),
        }?;
        match code {
            Some(code) => write!(f, " ({code})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for GenaiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiError")
            .field("whose", &self.0.whose)
            .field("problem", &self.0.problem)
            .field("code", &self.0.code)
            .finish_non_exhaustive()
    }
}

impl Error for GenaiError {}
