//! Requests that are refused.

use std::fmt;
use std::time::Duration;

/// A request that is refused: nothing has run, and what waits waits. The text is for whoever sent it, and holds nothing
/// of the inside of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong, and what to do.
    pub message: String,
    /// When to try again, where that helps.
    pub retry_after: Option<Duration>,
}

impl Rejection {
    /// A rejection with this status.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// Whoever sends it has not said who they are.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// Whoever sends it may not.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    pub(super) fn unknown_chat() -> Self {
        Self::new(404, "there is no such chat")
    }

    /// What the client says does not fit what it was shown.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }

    pub(super) fn busy(retry_after: Duration) -> Self {
        let message = "a response is being made: wait for its end, then try again";
        Self { retry_after: Some(retry_after), ..Self::new(409, message) }
    }

    /// Something failed that is nobody's business outside; the log has it.
    pub(super) fn internal(what: &str, error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "{what}");
        Self::new(500, "the chat cannot be read or written just now: try again later")
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Rejection {}
