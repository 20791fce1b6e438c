//! Knowledge about the execution of a call.

use std::fmt;
use std::sync::Arc;

use crate::error::BoxError;
use crate::outcome::Outcome;

/// The gate's knowledge about the execution of a call.
///
/// | value | what a host may say about the call |
/// |---|---|
/// | [`NotStarted`](Self::NotStarted) | it did not run |
/// | [`Unknown`](Self::Unknown) | it may have run; do not repeat it without a person |
/// | [`Finished`](Self::Finished) | it ran, with this outcome, whatever a layer made of it |
/// | [`FinishedWithError`](Self::FinishedWithError) | it ran, and the run ends with its error |
///
/// ```
/// use countersign::call::Execution;
/// use countersign::Outcome;
///
/// assert!(!Execution::NotStarted.started());
/// assert!(Execution::Unknown.started());
/// assert!(Execution::Finished(Outcome::failed("no such file")).started());
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Execution {
    /// The tool body was never started.
    NotStarted,
    /// The tool body was started, and its end was not seen: it may have run.
    Unknown,
    /// The tool body ended with this outcome.
    Finished(Outcome),
    /// The tool body ended with an error that is not for the model.
    FinishedWithError,
}

impl Execution {
    /// Returns `true` if the tool body was started.
    #[must_use]
    pub fn started(&self) -> bool {
        !matches!(self, Self::NotStarted)
    }
}

/// An error that several attempts of one pass return, and that therefore can be cloned.
#[derive(Clone)]
pub(crate) struct SharedError(pub(crate) Arc<BoxError>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

/// The result of an attempt that has ended.
pub(crate) type Ended = Result<Outcome, SharedError>;
