//! Bodies of HTTP, which are read here once, before the protocol's library is given them (rule M6: no request vanishes).
//!
//! If the library cannot read a body, it answers with a status and a text, from which no client knows which request has
//! failed. So we read a body here, as we read a line of stdio:
//!
//! | a body | the library is given | the client is answered by |
//! |---|---|---|
//! | is a message | it as it came | the library |
//! | can be repaired | the repaired text | the library |
//! | is refused: it cannot be read, two readers would understand it differently, or its id is in use | no body | an error with its id |
//! | is an answer that cannot be read | an answer that says so, which ends its question | an error |
//! | is too large | nothing | 413 |
//!
//! The library refuses hosts, origins and headers before it asks for a body. So we refuse a body only once the library has
//! asked for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};

use super::request_ids::{RequestIds, TakenId};
use super::session::session;
use crate::reading::{MessageReading, Refusal, read, unread_params};

/// The largest body; one that is larger is refused with 413.
pub(crate) const MAX_BODY: usize = 4 << 20;

/// The header by which a request names its revision.
const REVISION: &str = "mcp-protocol-version";

/// The server for which bodies are read, and the ids in use there.
#[derive(Clone)]
pub(crate) struct BodyReader {
    server: Arc<str>,
    ids: Arc<RequestIds>,
}

/// The result of reading a body.
enum BodyReading {
    /// The body that the library is given, with the id that is in use from now on.
    Served(Body, Option<TakenId>),
    /// The body that the library is given in place of an answer, and the error for its sender.
    Replaced(Body, Refusal),
    Refused(Refusal),
}

impl BodyReader {
    pub(crate) fn new(server: &str, ids: Arc<RequestIds>) -> Self {
        Self { server: server.into(), ids }
    }

    fn log(&self, problem: &str, what: &str) {
        let server = &*self.server;
        tracing::warn!(target: "countersign::mcp", server, problem, "a message over HTTP {what}");
    }

    fn read(&self, headers: &HeaderMap, bytes: Bytes) -> BodyReading {
        let (message, body) = match read::<ClientJsonRpcMessage>(&bytes) {
            MessageReading::Message(message) => (message, bytes.into()),
            MessageReading::Repaired { message, text, problem, what } => {
                self.log(problem, what);
                (message, text.into())
            }
            MessageReading::Unread(unread) => {
                self.log(&unread.problem, "cannot be read");
                // An answer that cannot be read ends the question: its call waits for it.
                let answered = unread.head.id.as_ref().filter(|_| unread.head.is_answer());
                let answer = answered.map(|id| unread.in_place_of_response(id).to_string());
                return match answer {
                    Some(answer) => BodyReading::Replaced(answer.into(), unread.refusal()),
                    None => BodyReading::Refused(unread.refusal()),
                };
            }
        };
        match self.taken(headers, &message) {
            Ok(id) => BodyReading::Served(body, id),
            Err(refusal) => BodyReading::Refused(refusal),
        }
    }

    /// The id of a request in a session, which is in use until it is dropped. Without a session each request is a
    /// connection of its own.
    fn taken(
        &self,
        headers: &HeaderMap,
        message: &ClientJsonRpcMessage,
    ) -> Result<Option<TakenId>, Refusal> {
        let JsonRpcMessage::Request(request) = message else { return Ok(None) };
        let session = session(headers);
        // Only the first request of an earlier revision names no revision and no session. If the library cannot read its
        // params, it opens no session, and answers without its id. It answers all other requests as their revision says.
        let is_first = session.is_none() && !headers.contains_key(REVISION);
        if let ClientRequest::CustomRequest(custom) = &request.request
            && is_first
            && let Some(error) = unread_params(custom)
        {
            return Err(Refusal::of(&request.id, error));
        }
        session.map(|session| self.ids.take(Some(session), &request.id)).transpose()
    }
}

/// Reads the body of a request, and answers one that is not to be served.
pub(crate) async fn read_whole(
    State(reader): State<BodyReader>,
    request: Request,
    next: Next,
) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut head, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_BODY).await else {
        let why = format!("the body is longer than {MAX_BODY} bytes, or has not come as a whole\n");
        return (StatusCode::PAYLOAD_TOO_LARGE, why).into_response();
    };
    match reader.read(&head.headers, bytes) {
        BodyReading::Served(body, id) => {
            // It is in use for as long as the library keeps the head of the request.
            if let Some(id) = id {
                head.extensions.insert(Arc::new(id));
            }
            next.run(Request::from_parts(head, body)).await
        }
        BodyReading::Replaced(answer, refusal) => {
            let response = next.run(Request::from_parts(head, answer)).await;
            if response.status().is_client_error() { response } else { refused(refusal) }
        }
        BodyReading::Refused(refusal) => refused_where_asked(head, next, refusal).await,
    }
}

fn refused(refusal: Refusal) -> Response {
    (StatusCode::BAD_REQUEST, Json(refusal)).into_response()
}

/// Refuses a request, unless the library refuses it before it asks for the body.
async fn refused_where_asked(head: Parts, next: Next, refusal: Refusal) -> Response {
    let is_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&is_asked);
    let body = stream::once(async move {
        asked.store(true, Ordering::Relaxed);
        Ok::<_, std::convert::Infallible>(Bytes::new())
    });
    let response = next.run(Request::from_parts(head, Body::from_stream(body))).await;
    if is_asked.load(Ordering::Relaxed) { refused(refusal) } else { response }
}
