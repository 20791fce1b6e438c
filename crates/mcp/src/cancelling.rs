//! The cancellation of a request to the other end, when it is given up here.

use rmcp::model::{CancelledNotification, CancelledNotificationParam, RequestId};
use rmcp::service::{Peer, RequestHandle, ServiceRole};

/// Tells the other end that a request was given up, when it is dropped before the request is answered.
pub(crate) struct CancelOnDrop<Role: ServiceRole> {
    peer: Peer<Role>,
    id: Option<RequestId>,
    reason: &'static str,
}

impl<Role: ServiceRole> CancelOnDrop<Role> {
    pub(crate) fn new(sent: &RequestHandle<Role>, reason: &'static str) -> Self {
        Self { peer: sent.peer.clone(), id: Some(sent.id.clone()), reason }
    }

    /// There is nothing to cancel any more.
    pub(crate) fn answered(&mut self) {
        self.id = None;
    }
}

impl<Role: ServiceRole> Drop for CancelOnDrop<Role> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (peer, reason) = (self.peer.clone(), self.reason.to_owned());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some(reason));
            // The other end may be gone.
            _ = peer.send_notification(CancelledNotification::new(params).into()).await;
        });
    }
}
