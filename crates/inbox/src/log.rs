//! The log of the ledger: verified, and exported.
//!
//! A whole export ends with `{"end": true, …}`. Without such a line, you could not tell a file from a broken connection
//! from a short log.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::json;
use tokio::sync::mpsc;

use super::app::{App, Visitor};
use super::refused::{ApiError, ApiReply};
use countersign::ledger::{Approver, LedgerError};

/// The number of lines of an export that are buffered for a slow client.
///
/// An export needs memory only for these lines, whatever the size of the log and the speed of the client.
const AHEAD: usize = 256;

fn may_audit(who: &Approver) -> Result<(), ApiError> {
    let problem = "You may not verify or export the log.";
    if who.audits() { Ok(()) } else { Err(ApiError::forbidden("not_allowed", problem)) }
}

/// Replays the log, and compares every row with it.
pub(super) async fn verify(State(app): State<Arc<App>>, Visitor(who): Visitor) -> ApiReply {
    may_audit(&who)?;
    Ok(Json(match app.ledger.verify(&Default::default()).await {
        Ok(verified) => json!({
            "ok": true, "entries": verified.entries, "runs": verified.heads.len(),
            "ran_unapproved": verified.ran_unapproved,
        }),
        Err(LedgerError::Broken(broken)) => json!({
            "ok": false, "run": broken.run, "seq": broken.seq, "problem": broken.problem,
        }),
        Err(error) => return Err(error.into()),
    }))
}

/// The log as lines of JSON. It is read as fast as the client takes it.
pub(super) async fn export(
    State(app): State<Arc<App>>,
    Visitor(who): Visitor,
) -> Result<Response, ApiError> {
    may_audit(&who)?;
    let (lines, read) = mpsc::channel::<Bytes>(AHEAD);
    let ledger = app.ledger.clone();
    // The ledger calls back for each entry, and the callback may block, so it runs on a thread of its own.
    tokio::task::spawn_blocking(move || {
        let write = |line: String| drop(lines.blocking_send(Bytes::from(line + "\n")));
        let each = |entry| write(json!(entry).to_string());
        let exported = futures_executor::block_on(ledger.export(each));
        // A truncated export must not look like a complete one.
        match exported {
            Ok(entries) => write(json!({"end": true, "entries": entries}).to_string()),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "an export has failed");
                write(json!({"end": false, "problem": "the store could not be read"}).to_string());
            }
        }
    });
    let lines = stream::unfold(read, async |mut read| {
        let line = read.recv().await?;
        Some((Ok::<_, Infallible>(line), read))
    });
    let headers = [
        (CONTENT_TYPE, "application/x-ndjson"),
        (CONTENT_DISPOSITION, r#"attachment; filename="countersign-log.jsonl""#),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
