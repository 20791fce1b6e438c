//! What became of a call.

mod deferral;
mod tool_error;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use deferral::{Deferral, DeferralKind};
pub use tool_error::{ApprovalRequired, CallDeferred, FatalError, ToolError};

/// The default text of a denial.
pub const DENIED: &str = "The tool call was denied.";

/// What became of a call: a response that the model sees, never an `Err`.
///
/// Exhaustive on purpose: whoever reports outcomes should notice a new one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
#[repr(u64)] // A whole word tells the variants apart: every layer hands an outcome on, and taking single bytes out is slow.
pub enum Outcome {
    /// The tool gave a value.
    #[serde(rename = "tool-return")]
    Returned(ToolReturn),
    /// A layer or a person said no; nothing ran.
    #[serde(rename = "tool-denied")]
    Denied(ToolDenied),
    /// The call failed for good.
    #[serde(rename = "tool-failed")]
    Failed(ToolFailed),
    /// The model should try again, with other arguments or another tool.
    #[serde(rename = "model-retry")]
    Retry(ModelRetry),
    /// The tool was started and its end was not seen: it may have run.
    #[serde(rename = "tool-unknown")]
    Unknown(ToolUnknown),
    /// The call waits for somebody. Only the gate makes one, so that no layer can invent or forge a question.
    #[serde(skip)]
    Deferred(Deferral),
}

impl Outcome {
    /// The tool gave `value`.
    #[must_use]
    pub fn returned(value: impl Into<Value>) -> Self {
        Self::Returned(ToolReturn::new(value))
    }

    /// Denied, with a text the model is told verbatim; an empty one means the default text.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::Denied(ToolDenied::new(message))
    }

    /// The call has failed for good, with this message for the model.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::Failed(ToolFailed::new(message))
    }

    /// The model should try again.
    #[must_use]
    pub fn retry(message: impl Into<String>) -> Self {
        Self::Retry(ModelRetry::new(message))
    }

    /// Started, end not seen.
    #[must_use]
    pub fn unknown(message: impl Into<String>) -> Self {
        Self::Unknown(ToolUnknown { message: message.into() })
    }

    /// Whether the call still waits for somebody.
    #[must_use]
    pub fn is_deferred(&self) -> bool {
        matches!(self, Self::Deferred(_))
    }

    /// Whether the tool gave a value.
    #[must_use]
    pub fn is_returned(&self) -> bool {
        matches!(self, Self::Returned(_))
    }

    /// One word for it: `returned`, `denied`, `failed`, `retry`, `unknown` or `deferred`.
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

    /// What the model is told: the value, or the message as text. `None` while the call waits.
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

    /// What the model is told, as text: a text as it is, any other value as JSON. `None` while the call waits.
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

/// The value of a tool, with what goes beside it.
#[derive(Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ToolReturn {
    /// What the model is told.
    pub return_value: Value,
    /// Something for the model to read beside the results, as if the user had said it.
    #[serde(default)]
    pub content: Option<Value>,
    /// For the host; never sent to the model.
    #[serde(default)]
    pub metadata: Option<Value>,
}

impl ToolReturn {
    /// A value and nothing else.
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
    /// What the model is told, verbatim.
    #[serde(default = "default_denial")]
    pub message: String,
}

impl ToolDenied {
    /// Denied with a text; an empty one means the default text.
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

/// What a tool returns, or an external result says, when the call failed for good.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ToolFailed {
    /// What the model is told.
    pub message: String,
}

impl ToolFailed {
    /// A failure for good, with this message for the model.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// What a tool returns, or an external result says, when the model should try again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct ModelRetry {
    /// What the model is told.
    pub message: String,
}

impl ModelRetry {
    /// Try again, saying how.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A call whose tool was started and whose end was not seen.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUnknown {
    /// What the model is told.
    pub message: String,
}

/// `Debug` of a message that a tool wrote: its length, as it may quote arguments (rule S2).
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
