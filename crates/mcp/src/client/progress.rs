//! Progress and log messages of a server, which reach the served call in order and before the call's result.
//!
//! The protocol's library makes the token of a request while it sends it, and hands each notification to a task of its
//! own. A server that answers at once could report progress before the token is known here, and its last report could
//! arrive behind the result. So we route both where messages have an order: in the transport. We set the route of
//! progress before we send the request, and pass a notification on before we read the next message.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use rmcp::RoleClient;
use rmcp::model::{
    GetExtensions as _, GetMeta as _, JsonRpcMessage, ProgressToken, ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc::UnboundedSender;

use super::handshakes::Handshakes;
use crate::downstream::{Report, Routes};

/// The receiver of the progress of a request: an extension of the request, which is not sent. The route ends with the
/// call.
#[derive(Clone)]
pub(crate) struct ProgressRoute(Weak<UnboundedSender<Report>>);

impl ProgressRoute {
    pub(crate) fn to(sender: &Arc<UnboundedSender<Report>>) -> Self {
        Self(Arc::downgrade(sender))
    }
}

/// A connection to a server whose progress and log messages are routed. Tokens are those of this connection.
pub(crate) struct ProgressTransport<T> {
    inner: T,
    routes: HashMap<ProgressToken, ProgressRoute>,
    calls: Arc<Routes>,
    handshakes: Handshakes,
}

impl<T> ProgressTransport<T> {
    pub(crate) fn new(inner: T, calls: Arc<Routes>) -> Self {
        Self { inner, routes: HashMap::new(), calls, handshakes: Handshakes::default() }
    }

    fn pass_on(&self, sent: &ServerNotification) {
        match sent {
            ServerNotification::ProgressNotification(progress) => {
                let route = self.routes.get(&progress.params.progress_token);
                if let Some(to) = route.and_then(|route| route.0.upgrade()) {
                    // A client that has disconnected needs no progress.
                    _ = to.send(Report::Progress(progress.params.clone()));
                }
            }
            ServerNotification::LoggingMessageNotification(_) => {
                if let Ok(downstream) = self.calls.only() {
                    downstream.log(sent);
                }
            }
            _ => {}
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for ProgressTransport<T> {
    type Error = T::Error;

    /// The library's errors name it.
    fn name() -> std::borrow::Cow<'static, str> {
        T::name()
    }

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_sent = self.handshakes.sends(&message);
        if let JsonRpcMessage::Request(sent) = &message
            && let Some(route) = sent.request.extensions().get::<ProgressRoute>()
            && let Some(token) = sent.request.get_meta().get_progress_token()
        {
            // Those of calls that have ended.
            self.routes.retain(|_, route| route.0.strong_count() > 0);
            self.routes.insert(token, route.clone());
        }
        let sending = is_sent.then(|| self.inner.send(message));
        async move {
            match sending {
                Some(sending) => sending.await,
                None => Ok(()),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = loop {
            if let Some(message) = self.handshakes.received(self.inner.receive().await?) {
                break message;
            }
        };
        if let JsonRpcMessage::Notification(sent) = &message {
            self.pass_on(&sent.notification);
        }
        // The library counts the time limit of the request anew.
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
