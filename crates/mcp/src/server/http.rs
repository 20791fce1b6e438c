//! The router for streamable HTTP: the principal is found, and hosts and origins are checked, before anything is read.
//!
//! The order matters. First we find the principal, from the headers alone, for every method and path. If the sender is
//! not known, the request learns nothing but that, and reaches no session, no tool and no server. Then we check the
//! host and the origin, before we read a body: a page in a browser can send requests to a server on the same machine,
//! under a name that its own DNS points there, and the browser may add what the server knows its user by.
//!
//! A session belongs to the principal that has opened it. Its stream carries the questions about that person's calls, and
//! an answer on it counts as that person's. So if another person has learnt its id, they get the response for a session
//! that does not exist.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::bodies::{BodyReader, MAX_BODY, read_whole};
use super::requests::{HttpPrincipal, Requests};
use super::session::{HttpSession, session};
use super::shared::{FindPrincipal, Shared};
use crate::downstream::lock;

/// The challenge that says how a sender may become known, in the words of HTTP.
const CHALLENGE: &str = r#"Bearer realm="countersign""#;

/// The streams end when the token is cancelled.
pub(crate) fn router(
    shared: Arc<Shared>,
    streams: CancellationToken,
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
    authorize: Option<FindPrincipal>,
) -> Router {
    let mut config = StreamableHttpServerConfig::default()
        .with_max_request_body_bytes(MAX_BODY)
        .with_cancellation_token(streams);
    if let Some(hosts) = hosts {
        config = config.with_allowed_hosts(hosts);
    }
    config = config.with_allowed_origins(origins).enforce_origin_validation();
    let manager = Arc::new(LocalSessionManager::default());
    let principals = authorize.map(|authorize| {
        let (owners, manager) = (Mutex::default(), Arc::clone(&manager));
        Arc::new(Principals { authorize, owners, manager })
    });
    let reader = BodyReader::new(&shared.name, Arc::clone(&shared.request_ids));
    let service = StreamableHttpService::new(
        move || Ok(Requests::new(Arc::clone(&shared), true)),
        Arc::clone(&manager),
        config,
    );
    let door = Door { principals, manager };
    Router::new()
        .fallback_service(service)
        .layer(from_fn_with_state(reader, read_whole))
        .layer(from_fn_with_state(door, authorized))
}

/// The checks of a request before we read anything of it.
#[derive(Clone)]
struct Door {
    principals: Option<Arc<Principals>>,
    manager: Arc<LocalSessionManager>,
}

/// Finds the principals of requests, and knows whose the sessions are.
struct Principals {
    authorize: FindPrincipal,
    /// The principals by the ids of their sessions.
    owners: Mutex<HashMap<String, String>>,
    manager: Arc<LocalSessionManager>,
}

impl Principals {
    /// Returns `true` if a request of this principal is in a session of another one.
    fn is_of_another(&self, headers: &HeaderMap, principal: &str) -> bool {
        let owners = lock(&self.owners);
        let owner = session(headers).and_then(|session| owners.get(session));
        owner.is_some_and(|owner| owner != principal)
    }

    /// Records whose a session is that was opened by this response.
    async fn opened(&self, headers: &HeaderMap, principal: &str) {
        let Some(session) = session(headers) else { return };
        let open = self.manager.sessions.read().await;
        let mut owners = lock(&self.owners);
        // Sessions end by themselves, too.
        owners.retain(|session, _| open.contains_key(session.as_str()));
        owners.insert(session.to_owned(), principal.to_owned());
    }
}

async fn authorized(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    if let Some(session) = HttpSession::of(request.headers(), &door.manager) {
        request.extensions_mut().insert(session);
    }
    let Some(principals) = door.principals else { return next.run(request).await };
    let name = match (principals.authorize)(request.headers().clone()).await {
        Some(name) if !name.trim().is_empty() => name,
        _ => {
            let why = "Unauthorized: the sender of this request is unknown.\n";
            return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, CHALLENGE)], why)
                .into_response();
        }
    };
    if principals.is_of_another(request.headers(), &name) {
        return (StatusCode::NOT_FOUND, "Not Found: Session not found").into_response();
    }
    let opens = request.method() == Method::POST && session(request.headers()).is_none();
    request.extensions_mut().insert(HttpPrincipal(Some(name.clone())));
    let response = next.run(request).await;
    if opens {
        principals.opened(response.headers(), &name).await;
    }
    response
}
