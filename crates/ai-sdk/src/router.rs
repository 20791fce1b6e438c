//! The routes for axum.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, FromRequest, Path, Request, State};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::future::BoxFuture;
use serde_json::json;

use super::active::Events;
use super::chats::Chats;
use super::principal::Principal;
use super::rejection::Rejection;
use super::sse::HEADERS;

/// The largest body of a request, in bytes.
///
/// Clients post all of their messages by default, with the outputs of tools in them.
const LARGEST_BODY: usize = 4 << 20;

type AuthorizeChat =
    dyn Fn(Parts) -> BoxFuture<'static, Result<Principal, Rejection>> + Send + Sync;

#[derive(Clone)]
struct RouterState {
    chats: Chats,
    authorize: Arc<AuthorizeChat>,
}

/// The chats as routes of axum, to nest under the path that the client posts to:
///
/// | route | does |
/// |---|---|
/// | `POST /` | takes a request of `useChat`, and answers with an event stream |
/// | `GET /{id}/stream` | resumes the stream in flight, from its first chunk on; 204 when there is none |
/// | `GET /{id}/messages` | answers with the messages of the chat, `{"messages": […]}`, or 404 |
/// | `DELETE /{id}/stream` | stops the response in flight; 204, also when there is none |
///
/// `authorize` returns the principal of each request, from the head of the request. Bodies are at most 4 MiB; a
/// [`DefaultBodyLimit`] changes that.
///
/// A post has to have the content type `application/json`. A page of another origin can send that, or `DELETE`, only
/// after a preflight request, and this router does not allow one. So no other page can act for a user who is logged in
/// by a cookie.
///
/// # Errors
/// `{"error": "…"}` with the status of the [`Rejection`]: those of `authorize`, those of [`Chats::post`], 413 for a
/// body that is too large, and 415 for another content type.
///
/// ```no_run
/// use axum::Router;
/// use countersign_ai_sdk::{Chats, Principal, Rejection, router};
/// # async fn example(agent: countersign::Agent) -> std::io::Result<()> {
/// let chats = Chats::new(agent);
/// let app = Router::new().nest("/api/chat", router(chats, async |parts| {
///     let user = parts.headers.get("x-user").and_then(|user| user.to_str().ok());
///     user.map(Principal::new).ok_or_else(|| Rejection::unauthorized("say who you are"))
/// }));
/// axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8080").await?, app).await
/// # }
/// ```
pub fn router<F, Fut>(chats: Chats, authorize: F) -> Router
where
    F: Fn(Parts) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Principal, Rejection>> + Send + 'static,
{
    let authorize: Arc<AuthorizeChat> = Arc::new(move |parts| Box::pin(authorize(parts)));
    Router::new()
        .route("/", post(submit))
        .route("/{id}/stream", get(resume).delete(stop))
        .route("/{id}/messages", get(messages))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(RouterState { chats, authorize })
}

/// We find out who the person is before we read the body: a person who is not logged in cannot make the server
/// read four megabytes.
async fn submit(
    State(server): State<RouterState>,
    request: Request,
) -> Result<Response, Rejection> {
    let (parts, body) = request.into_parts();
    let principal = (server.authorize)(parts.clone()).await?;
    is_json(&parts.headers)?;
    let body = Bytes::from_request(Request::from_parts(parts, body), &()).await;
    let body = body.map_err(|error| Rejection::new(error.status().as_u16(), error.body_text()))?;
    Ok(events(server.chats.post(&principal, &body).await?))
}

async fn resume(
    State(server): State<RouterState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Rejection> {
    let principal = (server.authorize)(request.into_parts().0).await?;
    Ok(match server.chats.resume(&principal, &id) {
        Some(it) => events(it),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

async fn messages(
    State(server): State<RouterState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Rejection> {
    let principal = (server.authorize)(request.into_parts().0).await?;
    let messages = server.chats.messages(&principal, &id).await?;
    let messages = messages.ok_or_else(Rejection::unknown_chat)?;
    Ok(axum::Json(json!({"messages": messages})).into_response())
}

async fn stop(
    State(server): State<RouterState>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Rejection> {
    let principal = (server.authorize)(request.into_parts().0).await?;
    server.chats.stop(&principal, &id);
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn events(events: Events) -> Response {
    let mut response = Response::new(Body::from_stream(events.into_stream()));
    let headers = HEADERS.iter().filter_map(|(name, value)| {
        Some((name.parse::<axum::http::HeaderName>().ok()?, value.parse().ok()?))
    });
    response.headers_mut().extend(headers);
    response
}

/// Rejects content types other than JSON: pages of other origins can send a form without a preflight request.
fn is_json(headers: &HeaderMap) -> Result<(), Rejection> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Rejection::new(415, "the content type has to be `application/json`"))
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::BAD_REQUEST);
        let mut response = (status, axum::Json(json!({"error": self.message}))).into_response();
        if let Some(after) = self.retry_after {
            let seconds = after.as_secs().max(1);
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}
