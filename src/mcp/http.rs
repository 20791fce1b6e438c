//! The router for streamable HTTP: hosts and origins are checked, and the principal is found, before anything is read.
//!
//! The order matters: a page in a browser can send requests to a server on the same machine, under a name that its own
//! DNS points there. The host and the origin are compared before a body is read or a name is looked up, so such a page
//! learns nothing, not even who is known.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::face::{Face, HttpPrincipal};
use super::shared::{FindPrincipal, Shared};

/// The largest request body; a frame that is larger is refused with 413.
const MAX_BODY: usize = 4 << 20;

/// The streams end when the token is cancelled.
pub(super) fn router(
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
    let service = StreamableHttpService::new(
        move || Ok(Face::new(Arc::clone(&shared), true)),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    Router::new().fallback_service(service).layer(from_fn_with_state(authorize, authorized))
}

async fn authorized(
    State(authorize): State<Option<FindPrincipal>>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Some(authorize) = authorize {
        match authorize(request.headers().clone()).await {
            Some(name) if !name.trim().is_empty() => {
                request.extensions_mut().insert(HttpPrincipal(Some(name)));
            }
            _ => {
                return (StatusCode::UNAUTHORIZED, "the sender of this request is unknown")
                    .into_response();
            }
        }
    }
    next.run(request).await
}
