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

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use deferral::{Deferral, DeferralKind};
pub use tool_error::{ApprovalRequired, CallDeferred, FatalError, ToolError};

/// The text of a denial that gives no reason.
pub const DENIED: &str = "The tool call was denied.";

/// The outcome of a call, as every service of a stack returns it. A denial or a failed tool is an outcome for the
/// model, never an `Err`.
///
/// Exhaustive on purpose: a new variant has to break every `match` that reports outcomes.
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

    /// Whether the call still waits for an answer.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred(_))
    }

    /// Whether the tool returned a value.
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
}

impl fmt::Debug for ToolReturn {
    /// The size of the value, not the value (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolReturn({} bytes)", self.return_value.to_string().len())
    }
}

/// A denial, by a layer or a person.
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
