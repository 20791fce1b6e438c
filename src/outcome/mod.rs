//! The outcome of a call.
//!
//! ```
//! use countersign::Outcome;
//!
//! let done = Outcome::returned("deleted a.log");
//! assert!(done.is_returned());
//! // A denial is an outcome, which the model reads, and no error.
//! assert_eq!(Outcome::denied("keep the log").text().as_deref(), Some("keep the log"));
//! ```

mod deferral;
mod tool_error;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::depth::{MAX_RESULT, is_deeper};

pub use deferral::{Deferral, DeferralKind};
pub use tool_error::{ApprovalRequired, CallDeferred, FatalError, ToolError};

/// The text of a denial that gives no reason.
pub const DENIED: &str = "The tool call was denied.";

/// The outcome of a call, as every service of a stack returns it. A denial or a failed tool is an outcome for the
/// model, never an `Err`.
///
/// Exhaustive on purpose: a new variant has to break every `match` that reports outcomes.
///
/// | outcome | the tool | the model | in a history |
/// |---|---|---|---|
/// | [`Returned`](Self::Returned) | ran, or a layer answered for it | gets the value | `success` |
/// | [`Denied`](Self::Denied) | did not run | gets the reason | `denied` |
/// | [`Failed`](Self::Failed) | ran or not; the text says which | gets the text | `failed` |
/// | [`Retry`](Self::Retry) | ran or not | is asked to call again | `retried` |
/// | [`Unknown`](Self::Unknown) | may have run | is told so | `interrupted` |
/// | [`Deferred`](Self::Deferred) | has not ended | gets nothing yet | – |
///
/// ```
/// use countersign::Outcome;
///
/// assert_eq!(Outcome::returned(3).content().unwrap(), 3);
/// assert_eq!(Outcome::retry("one digit, please").word(), "retry");
/// assert_eq!(Outcome::unknown("it may have run").text().unwrap(), "it may have run");
/// assert_eq!(Outcome::denied("").text().unwrap(), countersign::outcome::DENIED);
/// let stored = serde_json::to_value(Outcome::failed("no such file"))?;
/// assert_eq!(stored, serde_json::json!({"kind": "tool-failed", "message": "no such file"}));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
#[repr(u64)] // A discriminant of a whole word: every layer moves an outcome, and reading a single byte is slower.
pub enum Outcome {
    /// The tool returned a value.
    #[serde(rename = "tool-return")]
    Returned(ToolReturn),
    /// A layer, a handler or a person denied the call; nothing ran.
    #[serde(rename = "tool-denied")]
    Denied(ToolDenied),
    /// The call failed, without a request to try again.
    #[serde(rename = "tool-failed")]
    Failed(ToolFailed),
    /// The model should try again, with other arguments or another tool.
    #[serde(rename = "model-retry")]
    Retry(ModelRetry),
    /// The tool was started, but its end was not seen: it may have run.
    #[serde(rename = "tool-unknown")]
    Unknown(ToolUnknown),
    /// The call waits for an answer. Only the gate makes a [`Deferral`], so that no layer can forge a question.
    #[serde(skip)]
    Deferred(Deferral),
}

impl Outcome {
    /// Creates a [`Returned`](Self::Returned) with this value.
    #[must_use]
    pub fn returned(value: impl Into<Value>) -> Self {
        Self::Returned(ToolReturn::new(value))
    }

    /// Creates a [`Denied`](Self::Denied). The model gets `message` verbatim, or [`DENIED`] if it is empty.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(ToolDenied::new(message))
    }

    /// Creates a [`Failed`](Self::Failed) with this text for the model.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(ToolFailed::new(message))
    }

    /// Creates a [`Retry`](Self::Retry) with this text for the model.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        Self::Retry(ModelRetry::new(message))
    }

    /// Creates an [`Unknown`](Self::Unknown) with this text for the model.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(ToolUnknown { message: message.into() })
    }

    /// Returns `true` if the call still waits for an answer.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred(_))
    }

    /// Returns `true` if the tool returned a value.
    #[must_use]
    pub fn is_returned(&self) -> bool {
        matches!(self, Self::Returned(_))
    }

    /// The name of the variant in one word: `returned`, `denied`, `failed`, `retry`, `unknown` or `deferred`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Returned(_) => "returned",
            Self::Denied(_) => "denied",
            Self::Failed(_) => "failed",
            Self::Retry(_) => "retry",
            Self::Unknown(_) => "unknown",
            Self::Deferred(_) => "deferred",
        }
    }

    /// The content for the model: the tool's value, or the message as text. `None` for a deferred call.
    ///
    /// ```
    /// use countersign::Outcome;
    /// assert_eq!(Outcome::denied("").content().unwrap(), "The tool call was denied.");
    /// ```
    #[must_use]
    pub fn content(&self) -> Option<Value> {
        match self {
            Self::Returned(ToolReturn { return_value, .. }) => Some(return_value.clone()),
            Self::Denied(ToolDenied { message })
            | Self::Failed(ToolFailed { message })
            | Self::Retry(ModelRetry { message })
            | Self::Unknown(ToolUnknown { message }) => Some(message.as_str().into()),
            Self::Deferred(_) => None,
        }
    }

    /// The outcome as it is stored, and as the model is told it: a value that is nested too deeply is its JSON text (rule
    /// T5).
    ///
    /// A page or a server chooses how deep a result is, and we could not read a state with a deep one back. So the limit
    /// holds wherever we keep a result: in a history, a snapshot and a journal.
    pub(crate) fn bounded(&self) -> Cow<'_, Self> {
        match self {
            Self::Returned(returned) if returned.is_too_deep() => {
                Cow::Owned(Self::Returned(returned.flattened()))
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// The content for the model as text: a string as it is, any other value as JSON. `None` for a deferred call.
    ///
    /// ```
    /// use countersign::Outcome;
    /// assert_eq!(Outcome::returned("done").text().unwrap(), "done");
    /// assert_eq!(Outcome::returned(vec![1, 2]).text().unwrap(), "[1,2]");
    /// ```
    #[must_use]
    pub fn text(&self) -> Option<String> {
        Some(match self.content()? {
            Value::String(text) => text,
            value => value.to_string(),
        })
    }
}

/// The value that a tool returned, with optional content for the model and metadata for the host.
///
/// ```
/// use countersign::outcome::ToolReturn;
/// use serde_json::json;
///
/// let found = ToolReturn {
///     return_value: json!({"hits": 2}),
///     content: Some(json!("The two articles, in full: …")), // the model reads it after the results
///     metadata: Some(json!({"took_ms": 12})),               // for the host alone
/// };
/// assert_eq!(format!("{found:?}"), "ToolReturn(10 bytes)", "the value may be a secret");
/// ```
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolReturn {
    /// The result for the model.
    pub return_value: Value,
    /// Additional content for the model, sent after the results as a message of the user.
    #[serde(default)]
    pub content: Option<Value>,
    /// Data for the host; never sent to the model.
    #[serde(default)]
    pub metadata: Option<Value>,
}

impl ToolReturn {
    /// Creates a return value without additional content or metadata.
    #[must_use]
    pub fn new(value: impl Into<Value>) -> Self {
        Self { return_value: value.into(), content: None, metadata: None }
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        [Some(&self.return_value), self.content.as_ref(), self.metadata.as_ref()]
            .into_iter()
            .flatten()
    }

    fn is_too_deep(&self) -> bool {
        self.values().any(|value| is_deeper(value, MAX_RESULT))
    }

    /// The same with the JSON texts of deep values in their place. The model is told so; the host, which reads the
    /// metadata, gets the bare text.
    fn flattened(&self) -> Self {
        let text = |value: &Value| is_deeper(value, MAX_RESULT).then(|| value.to_string());
        let told = |value: &Value| match text(value) {
            Some(text) => Value::String(format!("{TOO_DEEP} {text}")),
            None => value.clone(),
        };
        let metadata = |value: &Value| text(value).map_or_else(|| value.clone(), Value::String);
        Self {
            return_value: told(&self.return_value),
            content: self.content.as_ref().map(told),
            metadata: self.metadata.as_ref().map(metadata),
        }
    }
}

/// The note for the model in front of the JSON text of a value that is nested too deeply.
const TOO_DEEP: &str = "(Nested more than 64 levels deep, and therefore given as JSON text.)";

impl fmt::Debug for ToolReturn {
    /// The size of the value, not the value (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolReturn({} bytes)", self.return_value.to_string().len())
    }
}

/// A denial, by a layer or a person.
///
/// ```
/// use countersign::outcome::ToolDenied;
///
/// assert_eq!(ToolDenied::new("keep the log").message, "keep the log");
/// assert_eq!(ToolDenied::new("").message, "The tool call was denied.");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolDenied {
    /// The text for the model, verbatim.
    #[serde(default = "default_denial")]
    pub message: String,
}

impl ToolDenied {
    /// Creates a denial. The model gets `message` verbatim, or [`DENIED`] if it is empty.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message: if message.is_empty() { default_denial() } else { message } }
    }
}

impl Default for ToolDenied {
    fn default() -> Self {
        Self { message: default_denial() }
    }
}

fn default_denial() -> String {
    DENIED.to_owned()
}

/// The error of a tool, or an external result, that fails the call without asking the model to try again.
///
/// Use it for an error that the model cannot correct by other arguments:
///
/// ```
/// use countersign::outcome::ToolFailed;
/// use countersign::ToolError;
///
/// fn read(path: &str) -> Result<String, ToolError> {
///     match path {
///         "a.txt" => Ok("text".to_owned()),
///         _ => Err(ToolFailed::new(format!("there is no file `{path}`")).into()),
///     }
/// }
/// assert!(matches!(read("b.txt"), Err(ToolError::Failed(failed)) if failed.message.contains("b.txt")));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailed {
    /// The text for the model.
    pub message: String,
}

impl ToolFailed {
    /// Creates a failure with a text for the model that says why.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// The error of a tool, or an external result, that asks the model to try again.
///
/// Use it for an error that the model can correct. It costs a retry of the tool
/// ([`Tool::max_retries`](crate::toolset::Tool::max_retries)):
///
/// ```
/// use countersign::outcome::ModelRetry;
/// use countersign::ToolError;
///
/// fn digit(text: &str) -> Result<u32, ToolError> {
///     match text.parse() {
///         Ok(digit @ 0..=9) => Ok(digit),
///         _ => Err(ModelRetry::new("`digit` has to be from 0 to 9").into()),
///     }
/// }
/// assert_eq!(digit("7").unwrap(), 7);
/// assert!(matches!(digit("70"), Err(ToolError::Retry(_))));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelRetry {
    /// The text for the model.
    pub message: String,
}

impl ModelRetry {
    /// Creates a request to try again, with a text for the model that says how.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A call whose tool was started, but whose end was not seen: the tool may have run.
///
/// A tool that works through another server returns it when the connection breaks in the middle of a call:
///
/// ```
/// use countersign::outcome::ToolUnknown;
/// use countersign::ToolError;
///
/// let lost = ToolError::Unknown(ToolUnknown { message: "the server stopped during the call: it may have run".into() });
/// assert!(matches!(lost, ToolError::Unknown(_)));
/// ```
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolUnknown {
    /// The text for the model.
    pub message: String,
}

/// `Debug` shows only the length of a message that a tool wrote, because the text may quote arguments (rule S2).
macro_rules! debug_as_length {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({} bytes)"), self.message.len())
            }
        }
    )*};
}
debug_as_length!(ToolFailed, ModelRetry, ToolUnknown);
