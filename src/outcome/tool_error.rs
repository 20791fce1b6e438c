//! What a tool body may return instead of a value.

use std::fmt;

use serde_json::{Map, Value};

use super::{DeferralKind, ModelRetry, ToolFailed};
use crate::error::BoxError;

/// What a tool body returns instead of a value. `?` makes one of any error: [`ModelRetry`], [`ToolFailed`],
/// [`ApprovalRequired`] and [`CallDeferred`] become what they say, every other error is fatal and ends the run.
///
/// ```
/// use countersign::{ModelRetry, ToolError};
///
/// fn parse(text: &str) -> Result<u32, ToolError> {
///     let number: u32 = text.parse()?; // fatal: the run ends, saying which call failed
///     if number > 9 {
///         return Err(ModelRetry::new("one digit, please").into()); // the model tries again
///     }
///     Ok(number)
/// }
/// assert!(matches!(parse("42"), Err(ToolError::Retry(_))));
/// assert!(matches!(parse("x"), Err(ToolError::Fatal(_))));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// The model should try again.
    Retry(ModelRetry),
    /// The call failed for good; the run goes on.
    Failed(ToolFailed),
    /// The call needs an approval first.
    ApprovalRequired(ApprovalRequired),
    /// The call is executed elsewhere.
    CallDeferred(CallDeferred),
    /// Not for the model: the other calls of the response finish, then the run ends with this error.
    Fatal(BoxError),
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self::from_box(Box::new(error))
    }
}

impl ToolError {
    /// A fatal error of something that is not a [`std::error::Error`].
    #[must_use]
    pub fn fatal(error: impl Into<BoxError>) -> Self {
        Self::from_box(error.into())
    }

    fn from_box(error: BoxError) -> Self {
        error
            .downcast()
            .map(|it| Self::Retry(*it))
            .or_else(|error| error.downcast().map(|it| Self::Failed(*it)))
            .or_else(|error| error.downcast().map(|it| Self::ApprovalRequired(*it)))
            .or_else(|error| error.downcast().map(|it| Self::CallDeferred(*it)))
            .unwrap_or_else(Self::Fatal)
    }
}

/// A tool body asks for an approval of its own call. Return it, or use
/// [`RunContext::approved_for`](crate::RunContext::approved_for).
#[derive(Clone, Default, PartialEq, thiserror::Error)]
#[error("this call needs an approval")]
pub struct ApprovalRequired {
    pub(crate) key: String,
    pub(crate) reason: String,
    pub(crate) metadata: Map<String, Value>,
}

impl ApprovalRequired {
    /// Needs an approval.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Needs an approval for this; the reason is shown to the approver and is the key of the question.
    #[must_use]
    pub fn because(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { key: reason.clone(), reason, metadata: Map::new() }
    }

    /// Adds request metadata, for handlers and pages.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

/// A tool body hands its call out: the result comes from elsewhere.
#[derive(Clone, PartialEq, thiserror::Error)]
#[error("this call is executed elsewhere")]
pub struct CallDeferred {
    pub(crate) kind: DeferralKind,
    pub(crate) metadata: Map<String, Value>,
}

impl CallDeferred {
    /// Executed elsewhere.
    #[must_use]
    pub fn new() -> Self {
        Self { kind: DeferralKind::External, metadata: Map::new() }
    }

    /// The result is a person's answer.
    #[must_use]
    pub fn question() -> Self {
        Self { kind: DeferralKind::Question, metadata: Map::new() }
    }

    /// Adds request metadata, for example the id of the task that was started.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }
}

impl Default for CallDeferred {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ApprovalRequired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApprovalRequired(key: {:?}, metadata: {:?})", self.key, self.metadata.keys())
    }
}

impl fmt::Debug for CallDeferred {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallDeferred({:?}, metadata: {:?})", self.kind, self.metadata.keys())
    }
}
