//! The body of a request, read strictly.
//!
//! We refuse unknown fields everywhere: otherwise a client that writes `finger_print` would decide without the
//! binding that it believes to have. The error names a place and no value, as a body may hold arguments with secrets
//! (rule S2).

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;

use super::refused::ApiError;

/// The largest body, in bytes.
pub(super) const MOST_BYTES: usize = 1 << 20;

/// A JSON body. Its type was checked [before](super::guard).
pub(super) struct Sent<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Sent<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let body = Bytes::from_request(request, state).await.map_err(|rejected| {
            if rejected.status() == StatusCode::PAYLOAD_TOO_LARGE {
                let problem = format!("A body may have {MOST_BYTES} bytes.");
                return ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", problem);
            }
            ApiError::new(StatusCode::BAD_REQUEST, "unreadable", "The body did not arrive.")
        })?;
        // We leave serde's text out: it quotes values, and a proxy may log this response.
        serde_json::from_slice(&body).map(Self).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            if error.is_data() {
                let problem = "The body does not have the fields of this request, or has others";
                return ApiError::bad("bad_request", format!("{problem} ({place})."));
            }
            let problem = format!("The body is not JSON ({place}).");
            ApiError::new(StatusCode::BAD_REQUEST, "bad_json", problem)
        })
    }
}
