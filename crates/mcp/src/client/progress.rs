//! Progress and log messages of a server, which reach the served call in order and before the call's result.
//!
//! The protocol's library makes the token of a request while it sends it, and hands each notification to a task of its
//! own. A server that answers at once could report progress before the token is known here, and its last report could
//! arrive behind the result. So both are routed where messages have an order: in the transport. The route of progress is
//! set before the request is sent, and a notification is passed on before the next message is read.
//!
//! A server that takes longer than ten seconds to start, as one that is downloaded first, is asked for the earlier handshake
//! before it has read the newest one, and then answers both. The library takes the first answer for that to the second
//! question, so an answer that comes too late is left out here.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage, ProgressToken, RequestId,
    ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc::UnboundedSender;

use crate::downstream::{Report, Routes};

/// Where the progress of a request goes: an extension of the request, which is not sent. The route ends with the call.
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
    /// The newest handshake while it has no answer.
    discovering: Option<RequestId>,
    /// The same after the earlier handshake was asked for in its place.
    superseded: Option<RequestId>,
}

impl<T> ProgressTransport<T> {
    pub(crate) fn new(inner: T, calls: Arc<Routes>) -> Self {
        Self { inner, routes: HashMap::new(), calls, discovering: None, superseded: None }
    }

    /// Notes which handshake waits for its answer.
    fn sending(&mut self, request: &ClientRequest, id: &RequestId) {
        match request {
            ClientRequest::DiscoverRequest(_) => self.discovering = Some(id.clone()),
            ClientRequest::InitializeRequest(_) => self.superseded = self.discovering.take(),
            _ => {}
        }
    }

    /// Returns `true` for the answer to a handshake in whose place another one was asked for.
    fn is_late(&mut self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => &response.id,
            JsonRpcMessage::Error(error) => match &error.id {
                Some(id) => id,
                None => return false,
            },
            _ => return false,
        };
        // Some servers answer with the number of a request as a text.
        let id = id.to_string();
        self.discovering.take_if(|asked| asked.to_string() == id);
        self.superseded.take_if(|asked| asked.to_string() == id).is_some()
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
        if let JsonRpcMessage::Request(sent) = &message {
            self.sending(&sent.request, &sent.id);
        }
        if let JsonRpcMessage::Request(sent) = &message
            && let Some(route) = sent.request.extensions().get::<ProgressRoute>()
            && let Some(token) = sent.request.get_meta().get_progress_token()
        {
            // Those of calls that have ended.
            self.routes.retain(|_, route| route.0.strong_count() > 0);
            self.routes.insert(token, route.clone());
        }
        self.inner.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        let message = loop {
            let message = self.inner.receive().await?;
            if !self.is_late(&message) {
                break message;
            }
            tracing::debug!(target: "countersign::mcp", "a late answer to the newest handshake is left out");
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::model::ProtocolVersion;
    use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
    use rmcp::transport::IntoTransport as _;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

    use super::*;

    /// A server of the revision 2025-06-18 that reads nothing before it has started.
    async fn server(stream: DuplexStream, starting: Duration) -> Vec<String> {
        tokio::time::sleep(starting).await;
        let (read, mut write) = tokio::io::split(stream);
        let (mut lines, mut methods) = (BufReader::new(read).lines(), Vec::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            let method = asked["method"].as_str().unwrap().to_owned();
            let answer = match &*method {
                "initialize" => {
                    json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {},
                    "serverInfo": {"name": "slow", "version": "1"}}})
                }
                _ => json!({"error": {"code": -32601, "message": "there is no such method"}}),
            };
            methods.push(method);
            if let (Some(id), Value::Object(mut answer)) = (asked.get("id"), answer) {
                answer.extend([("jsonrpc".into(), json!("2.0")), ("id".into(), id.clone())]);
                let line = Value::Object(answer).to_string() + "\n";
                write.write_all(line.as_bytes()).await.unwrap();
            }
            if methods.iter().any(|it| it == "notifications/initialized") {
                break;
            }
        }
        methods
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_slowly_is_used_though_its_first_answer_comes_too_late() {
        for seconds in [0, 9, 11, 25] {
            let (ours, theirs) = duplex(1 << 16);
            let server = tokio::spawn(server(theirs, Duration::from_secs(seconds)));
            let mode = ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                legacy_version: None,
            };
            let transport = ProgressTransport::new(
                tokio::io::split(ours).into_transport(),
                Arc::new(Routes::default()),
            );
            let running = ().serve_with_lifecycle(transport, mode).await;
            let info = running.unwrap_or_else(|error| panic!("{seconds} s: {error}"));
            let version = info.peer_info().map(|it| it.protocol_version.to_string());
            assert_eq!(version.as_deref(), Some("2025-06-18"), "{seconds} s");
            let asked = ["server/discover", "initialize", "notifications/initialized"];
            assert_eq!(server.await.unwrap(), asked, "{seconds} s");
        }
    }
}
