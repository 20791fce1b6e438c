//! Why a request was refused: a status, a word for programs and a sentence for people.
//!
//! The word is for programs and never changes; the sentence is for people and may. A person who was not the first is
//! told who was, since the next question is otherwise asked of a colleague.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::json::set;
use super::principal::Rejection;
use super::view;
use crate::ledger::{LedgerError, Winner};

/// The answer of a handler.
pub(super) type Reply = Result<Json<Value>, Refused>;

/// `{"error": word, "message": sentence, …}`.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    error: &'static str,
    message: String,
    more: Option<(&'static str, Value)>,
}

impl Refused {
    pub(super) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self { status, error, message: message.into(), more: None }
    }

    /// What was sent cannot be done, and never could.
    pub(super) fn bad(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error, message)
    }

    pub(super) fn forbidden(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error, message)
    }

    pub(super) fn gone(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, error, message)
    }

    /// Whether a login would help.
    pub(super) fn is_unauthenticated(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(super) fn unknown_ask() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_ask", "There is no such request.")
    }

    pub(super) fn unknown_run() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_run", "There is no such run.")
    }

    /// Another person was first: who, what and when.
    pub(super) fn lost(winner: &Winner) -> Self {
        let by = view::names(&winner.by);
        let message = format!("Already decided by {by}: {}.", view::past(&winner.decision));
        let decision = view::decision(&winner.by, &winner.decision, winner.at);
        let more = Some(("winner", decision));
        Self { more, ..Self::new(StatusCode::CONFLICT, "already_decided", message) }
    }
}

impl From<Rejection> for Refused {
    fn from(rejection: Rejection) -> Self {
        let status = StatusCode::from_u16(rejection.status()).unwrap_or(StatusCode::FORBIDDEN);
        let word = match status {
            StatusCode::UNAUTHORIZED => "unauthenticated",
            StatusCode::FORBIDDEN => "forbidden",
            _ => "rejected",
        };
        Self::new(status, word, rejection.message())
    }
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        // The client gets no details; the log of the service has them.
        tracing::error!(error = &error as &dyn std::error::Error, "the ledger could not answer");
        match error {
            LedgerError::Unkeepable { problem, .. } => Self::bad("cannot_be_kept", problem),
            LedgerError::Changed { .. } => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "changed",
                "What the store has of it was changed outside of the ledger. Nobody can decide about it until the store is restored.",
            ),
            _ => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "store",
                "The store cannot be reached or read. Nothing may have changed: look before you try again.",
            ),
        }
    }
}

impl Refused {
    /// The answer, as JSON.
    pub(super) fn body(self) -> Value {
        let mut body = json!({"error": self.error, "message": self.message});
        if let Some((key, value)) = self.more {
            set(&mut body, key, value);
        }
        body
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(self.body())).into_response()
    }
}
