//! Why a request was refused: a status, a word for programs and a sentence for people.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use countersign::ledger::{LedgerError, Winner};
use serde_json::{Value, json};

use crate::view;

/// `{"error": word, "message": sentence, …}`.
#[derive(Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    error: &'static str,
    message: String,
    more: Option<(&'static str, Value)>,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, error: &'static str, message: impl Into<String>) -> Self {
        Self { status, error, message: message.into(), more: None }
    }

    /// What was sent cannot be done, and never could.
    pub(crate) fn bad(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error, message)
    }

    pub(crate) fn forbidden(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, error, message)
    }

    pub(crate) fn gone(error: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, error, message)
    }

    pub(crate) fn unauthenticated() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthenticated", "Say who you are first.")
    }

    pub(crate) fn unknown_ask() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown_ask", "There is no such request.")
    }

    /// Somebody else was first: who, what and when.
    pub(crate) fn lost(winner: &Winner) -> Self {
        let by = view::names(&winner.by);
        let message = format!("Already decided by {by}: {}.", view::past(&winner.decision));
        let decision = view::decision(&winner.by, &winner.decision, winner.at);
        let more = Some(("winner", decision));
        Self { more, ..Self::new(StatusCode::CONFLICT, "already_decided", message) }
    }
}

impl From<LedgerError> for Refused {
    fn from(error: LedgerError) -> Self {
        // Details are for whoever runs the service.
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

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let mut body = json!({"error": self.error, "message": self.message});
        if let Some((key, value)) = self.more {
            body[key] = value;
        }
        (self.status, Json(body)).into_response()
    }
}
