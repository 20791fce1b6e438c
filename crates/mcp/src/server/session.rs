//! The session of a request over HTTP, which may end while the request is answered.

use std::sync::Arc;

use axum::http::HeaderMap;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// The header with the id of a session.
const SESSION: &str = "mcp-session-id";

/// The id of the session of a request, or of the one that a response has opened.
pub(crate) fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION).and_then(|session| session.to_str().ok())
}

/// The session that a request belongs to.
#[derive(Clone)]
pub(crate) struct HttpSession {
    id: String,
    manager: Arc<LocalSessionManager>,
}

impl HttpSession {
    /// `None` for a request without a session, as the revision 2026-07-28 has none.
    pub(crate) fn of(headers: &HeaderMap, manager: &Arc<LocalSessionManager>) -> Option<Self> {
        let id = session(headers)?.to_owned();
        Some(Self { id, manager: Arc::clone(manager) })
    }

    /// Returns `true` if the session has not ended: otherwise a response to its requests has no stream.
    pub(crate) async fn is_open(&self) -> bool {
        self.manager.sessions.read().await.contains_key(self.id.as_str())
    }
}
