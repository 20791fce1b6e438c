//! The resources that one client has subscribed to.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use rmcp::model::{ClientRequest, Request, UnsubscribeRequestParams};
use tokio::sync::broadcast;

use super::connection::Connection;
use crate::downstream::lock;

/// The most resources that one client may subscribe to.
const MAX_SUBSCRIPTIONS: usize = 1_000;

/// The subscriptions of one client, which end with it.
pub(crate) struct Subscriber {
    connection: Arc<Connection>,
    uris: Mutex<BTreeSet<String>>,
}

impl Subscriber {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection, uris: Mutex::default() }
    }

    /// Returns `true` if the client may subscribe to one more resource.
    pub(crate) fn has_room(&self) -> bool {
        lock(&self.uris).len() < MAX_SUBSCRIPTIONS
    }

    /// Records a subscription that the server has accepted.
    pub(crate) fn join(&self, uri: String) {
        if lock(&self.uris).insert(uri.clone()) {
            self.connection.subscriptions.join(uri);
        }
    }

    /// Ends a subscription, at the server too if no other client has it.
    pub(crate) async fn leave(&self, uri: &str) {
        if lock(&self.uris).remove(uri) && self.connection.subscriptions.leave(uri) {
            unsubscribe(&self.connection, uri).await;
        }
    }

    /// The resources of this client that an update is about: of the resource itself, or of one below it. A client that
    /// was too slow is told of all.
    pub(crate) fn about(
        &self,
        update: Result<String, broadcast::error::RecvError>,
    ) -> Option<Vec<String>> {
        let uris = lock(&self.uris);
        match update {
            Ok(uri) if uris.iter().any(|it| is_below(&uri, it)) => Some(vec![uri]),
            Ok(_) => Some(Vec::new()),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(uris.iter().cloned().collect()),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let uris = std::mem::take(&mut *lock(&self.uris));
        let last: Vec<_> =
            uris.into_iter().filter(|uri| self.connection.subscriptions.leave(uri)).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let connection = Arc::clone(&self.connection);
        runtime.spawn(async move {
            for uri in last {
                unsubscribe(&connection, &uri).await;
            }
        });
    }
}

async fn unsubscribe(connection: &Connection, uri: &str) {
    let request = Request::new(UnsubscribeRequestParams::new(uri));
    // A server that does not run any more has no subscriptions.
    if let Some(peer) = connection.running().await {
        _ = peer.send_request(ClientRequest::UnsubscribeRequest(request)).await;
    }
}

/// Returns `true` if it is this resource, or one below it.
fn is_below(uri: &str, resource: &str) -> bool {
    uri.strip_prefix(resource).is_some_and(|rest| {
        rest.is_empty() || resource.ends_with('/') || rest.starts_with(['/', '?', '#'])
    })
}
