//! The refusal of a request: a status, a word for programs and a sentence for people.
//!
//! The word never changes, and the sentence may. If another person has decided first, the sentence names that person, so
//! that you know whom to ask.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::authorize_error::AuthorizeError;
use super::json::set;
use countersign::ledger::{LedgerError, Winner};
use countersign::show::{AnswerView, Limits};

/// The result of a handler.
pub(super) type ApiReply = Result<Json<Value>, ApiError>;

/// `{"error": word, "message": sentence, …}`.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    error: &'static str,
    message: String,
    more: Option<(&'static str, Value)>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self { status, error, message: message.into(), more: None }
    }

    /// The refusal of a request that is wrong in itself, and would fail again.
    pub(super) fn bad(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error, message)
    }

    pub(super) fn forbidden(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error, message)
    }

    pub(super) fn gone(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, error, message)
    }

    /// Returns `true` if the request is refused for want of a login.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    /// Tells whether there is no such ask, or none that the person may see.
    pub(super) fn is_unknown(&self) -> bool {
        self.error == "unknown_ask"
    }

    pub(super) fn unknown_ask() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_ask", "There is no such request.")
    }

    pub(super) fn unknown_run() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_run", "There is no such run.")
    }

    /// The refusal of a call that a person has to approve alone, as no surface can show all of it.
    pub(super) fn cut() -> Self {
        let problem = "A preview of it is too long to be stored in full: approve it by itself.";
        Self::bad("cut", problem)
    }

    /// The ask has a decision already: the response names the deciders, the decision and its time.
    pub(super) fn lost(winner: &Winner) -> Self {
        let view = AnswerView::of(&winner.by, &winner.decision, winner.at, Limits::default());
        let message = format!("Already decided by {}: {}.", view.by.join(" and "), view.past);
        let more = Some(("winner", json!(view)));
        Self { more, ..Self::new(StatusCode::CONFLICT, "already_decided", message) }
    }
}

impl From<AuthorizeError> for ApiError {
    fn from(rejection: AuthorizeError) -> Self {
        let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::FORBIDDEN);
        let word = match status {
            StatusCode::UNAUTHORIZED => "unauthenticated",
            StatusCode::FORBIDDEN => "forbidden",
            _ => "rejected",
        };
        Self::new(status, word, rejection.message())
    }
}

impl From<LedgerError> for ApiError {
    fn from(error: LedgerError) -> Self {
        // The client gets no details; the log of the service has them.
        tracing::error!(error = &error as &dyn std::error::Error, "the ledger could not answer");
        match error {
            LedgerError::Unkeepable { problem, .. } => Self::bad("cannot_be_kept", problem),
            LedgerError::Changed { .. } | LedgerError::Broken(_) => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "changed",
                "Its row in the store was changed outside of the ledger. It cannot be decided until the store is restored.",
            ),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store",
                "The store cannot be reached or read. Nothing may have changed: look before you try again.",
            ),
        }
    }
}

impl ApiError {
    /// Writes the refusal as JSON.
    pub(super) fn body(self) -> Value {
        let mut body = json!({"error": self.error, "message": self.message});
        if let Some((key, value)) = self.more {
            set(&mut body, key, value);
        }
        body
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
