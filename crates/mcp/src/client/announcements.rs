//! The announcements of a server: changes of its lists, and updates of resources that clients subscribe to.
//!
//! One connection to a server has many clients. So we count changes, and each client compares the counts with those that
//! it was told. An update of a resource goes to the clients that have subscribed to it. We subscribe to the resource once
//! for all of them, and again after the server was restarted.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rmcp::model::{
    ClientRequest, Request, ServerCapabilities, ServerNotification, SubscribeRequestParams,
};
use rmcp::service::{Peer, RoleClient, RoleServer, SubscriptionContext};
use tokio::sync::broadcast;

use crate::downstream::lock;

/// The number of updates that a slow client may be behind. A slower one is told of all its
/// resources.
const BEHIND: usize = 256;

/// Counts the changes of a server's lists. A restart may have changed each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: u64,
    pub(crate) prompts: u64,
    pub(crate) resources: u64,
}

impl ListChanges {
    pub(crate) fn restarted(&mut self) {
        self.tools += 1;
        self.prompts += 1;
        self.resources += 1;
    }

    /// Counts a change that a server has announced.
    pub(crate) fn count(&mut self, sent: &ServerNotification) {
        match sent {
            ServerNotification::PromptListChangedNotification(_) => self.prompts += 1,
            ServerNotification::ResourceListChangedNotification(_) => self.resources += 1,
            _ => self.tools += 1,
        }
    }

    /// Tells a client of an earlier revision what has changed since, as far as it was declared. `false` when the client
    /// is gone.
    pub(crate) async fn tell(
        self,
        now: Self,
        peer: &Peer<RoleServer>,
        offered: &ServerCapabilities,
    ) -> bool {
        let prompts = offered.prompts.as_ref().and_then(|it| it.list_changed) == Some(true);
        let resources = offered.resources.as_ref().and_then(|it| it.list_changed) == Some(true);
        (self.tools == now.tools || peer.notify_tool_list_changed().await.is_ok())
            && (self.prompts == now.prompts
                || !prompts
                || peer.notify_prompt_list_changed().await.is_ok())
            && (self.resources == now.resources
                || !resources
                || peer.notify_resource_list_changed().await.is_ok())
    }

    /// Tells a client of the newest revision what has changed since, as far as its subscription goes. `false` when the
    /// client is gone.
    pub(crate) async fn stream(self, now: Self, cx: &SubscriptionContext) -> bool {
        let (sink, accepted) = (cx.sink(), cx.accepted());
        let wants = |kind: Option<bool>| kind == Some(true);
        (self.tools == now.tools
            || !wants(accepted.tools_list_changed)
            || sink.notify_tool_list_changed().await.is_ok())
            && (self.prompts == now.prompts
                || !wants(accepted.prompts_list_changed)
                || sink.notify_prompt_list_changed().await.is_ok())
            && (self.resources == now.resources
                || !wants(accepted.resources_list_changed)
                || sink.notify_resource_list_changed().await.is_ok())
    }
}

/// The resources of a server that clients have subscribed to.
pub(crate) struct Subscriptions {
    /// The number of clients that have subscribed to each.
    clients: Mutex<BTreeMap<String, usize>>,
    updates: broadcast::Sender<String>,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self { clients: Mutex::default(), updates: broadcast::channel(BEHIND).0 }
    }
}

impl Subscriptions {
    /// Passes an update on to the clients.
    pub(crate) fn updated(&self, uri: String) {
        // Without clients the error means nothing.
        _ = self.updates.send(uri);
    }

    pub(crate) fn updates(&self) -> broadcast::Receiver<String> {
        self.updates.subscribe()
    }

    /// Subscribes again to all of them, at a server that was started again.
    pub(crate) async fn renew(&self, peer: &Peer<RoleClient>) {
        let uris: Vec<_> = lock(&self.clients).keys().cloned().collect();
        for uri in uris {
            let request = Request::new(SubscribeRequestParams::new(uri));
            // A server that refuses it now sends no updates.
            _ = peer.send_request(ClientRequest::SubscribeRequest(request)).await;
        }
    }

    /// Counts one more client of this resource.
    pub(crate) fn join(&self, uri: String) {
        *lock(&self.clients).entry(uri).or_default() += 1;
    }

    /// Counts one client less; whether it was the last one.
    pub(crate) fn leave(&self, uri: &str) -> bool {
        let mut clients = lock(&self.clients);
        let Some(count) = clients.get_mut(uri) else { return false };
        *count = count.saturating_sub(1);
        let is_last = *count == 0;
        if is_last {
            clients.remove(uri);
        }
        is_last
    }
}
