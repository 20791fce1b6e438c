//! Requests that are rejected, with the status of the HTTP response.

use std::fmt;
use std::time::Duration;

/// A request that is rejected: nothing has run, and the chat is as it was.
///
/// A rejection is an [`IntoResponse`](axum::response::IntoResponse) of axum: the status, a body `{"error": message}`,
/// and `retry-after` in whole seconds where [`retry_after`](Self::retry_after) is set.
///
/// ```
/// use countersign_ai_sdk::Rejection;
///
/// let rejection = Rejection::forbidden("this page is for editors");
/// assert_eq!((rejection.status, rejection.to_string().as_str()), (403, "this page is for editors"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rejection {
    /// The status code of the HTTP response.
    pub status: u16,
    /// The fault, and what to do about it. The client is sent this text, so it contains no internals of the server.
    pub message: String,
    /// The time after which the request may succeed; `None` where repeating it does not help.
    pub retry_after: Option<Duration>,
}

impl Rejection {
    /// A rejection with this status code and message.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_ai_sdk::Rejection;
    ///
    /// let mut limited = Rejection::new(429, "too many messages: wait a moment");
    /// limited.retry_after = Some(Duration::from_secs(10));
    /// assert_eq!((limited.status, Rejection::unauthorized("log in").status), (429, 401));
    /// ```
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), retry_after: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// Status 401: the request does not say who sends it.
    pub fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(401, message)
    }

    /// Status 403: the sender is known, and may not do this.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(403, message)
    }

    pub(super) fn unknown_chat() -> Self {
        Self::new(404, "there is no such chat")
    }

    /// Status 409: the request does not fit what the chat has shown to the client.
    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new(409, message)
    }

    pub(super) fn busy(retry_after: Duration) -> Self {
        let message = "a response is being made: wait for its end, then try again";
        Self { retry_after: Some(retry_after), ..Self::new(409, message) }
    }

    /// Status 500: the server failed. The error is logged, and the client is sent nothing of it.
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
