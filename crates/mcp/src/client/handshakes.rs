//! The answers to two handshakes that one server was asked for (rule M5).
//!
//! Some servers take longer than ten seconds to start, for example because they are downloaded first. Such a server is asked
//! for the earlier handshake before it has read the newest one, and then answers both. The library takes the first answer
//! for that to the second question. So we keep the late answer here, and go by the answer to the earlier handshake:
//!
//! | the late answer | the answer to the earlier handshake | the connection is of |
//! |---|---|---|
//! | a refusal | the server's description | the earlier revision |
//! | the server's description | the same | the earlier revision |
//! | the server's description | a refusal, as the server speaks the newest revision already | the newest revision |

use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, DiscoverResult, InitializeResult, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

/// The handshakes of one connection.
#[derive(Default)]
pub(super) struct Handshakes {
    /// The newest handshake while it has no answer.
    discovering: Option<RequestId>,
    /// The same after the earlier handshake was asked for in its place.
    superseded: Option<RequestId>,
    /// The earlier handshake while it has no answer.
    initializing: Option<RequestId>,
    /// The answer to the newest handshake that has come too late.
    late: Option<DiscoverResult>,
    /// `true` if the late answer counts.
    is_newest: bool,
}

impl Handshakes {
    /// Notes a message to the server. Returns `false` for the end of the earlier handshake where the newest one counts: the
    /// server does not have it.
    pub(super) fn sends(&mut self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        match message {
            JsonRpcMessage::Request(sent) => match &sent.request {
                ClientRequest::DiscoverRequest(_) => self.discovering = Some(sent.id.clone()),
                ClientRequest::InitializeRequest(_) => {
                    self.superseded = self.discovering.take();
                    self.initializing = Some(sent.id.clone());
                }
                _ => {}
            },
            JsonRpcMessage::Notification(sent) => {
                let ends =
                    matches!(sent.notification, ClientNotification::InitializedNotification(_));
                return !(ends && self.is_newest);
            }
            _ => {}
        }
        true
    }

    /// The message as the library reads it; `None` for a late answer.
    pub(super) fn received(
        &mut self,
        message: RxJsonRpcMessage<RoleClient>,
    ) -> Option<RxJsonRpcMessage<RoleClient>> {
        let id = match &message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => return Some(message),
        };
        // Some servers answer with the number of a request as a text, and some refuse one without it.
        let id = id.map(ToString::to_string);
        let is_of = |asked: &mut RequestId| id.as_ref() == Some(&asked.to_string());
        self.discovering.take_if(is_of);
        if self.superseded.take_if(is_of).is_some() {
            if let JsonRpcMessage::Response(response) = message
                && let ServerResult::DiscoverResult(described) = response.result
            {
                self.late = Some(described);
            }
            tracing::debug!(target: "countersign::mcp", "a late answer to the newest handshake is left out");
            return None;
        }
        if let Some(asked) = self.initializing.take_if(|asked| id.is_none() || is_of(asked))
            && let (JsonRpcMessage::Error(_), Some(late)) = (&message, self.late.take())
            && let Some(described) = as_answer(late)
        {
            tracing::debug!(target: "countersign::mcp", "the late answer to the newest handshake counts, as the server has refused the earlier one");
            self.is_newest = true;
            return Some(JsonRpcMessage::response(
                ServerResult::InitializeResult(described),
                asked,
            ));
        }
        Some(message)
    }
}

/// The description of a server of the newest revision, in the form of the earlier handshake; `None` where it has no name, or
/// does not speak that revision.
fn as_answer(described: DiscoverResult) -> Option<InitializeResult> {
    let newest = ProtocolVersion::V_2026_07_28;
    let server = described.server_info()?;
    described.supported_versions.contains(&newest).then(|| {
        let mut answer = InitializeResult::new(described.capabilities)
            .with_server_info(server)
            .with_protocol_version(newest);
        (answer.instructions, answer.meta) = (described.instructions, described.meta);
        answer
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _};
    use rmcp::transport::IntoTransport as _;
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};

    use super::super::progress::ProgressTransport;
    use super::*;
    use crate::downstream::Routes;

    /// The answer of a server of the revision 2025-06-18.
    fn earlier(asked: &Value) -> Value {
        match asked["method"].as_str() {
            Some("initialize") => {
                json!({"result": {"protocolVersion": "2025-06-18", "capabilities": {},
                    "serverInfo": {"name": "slow", "version": "1"}}})
            }
            Some("tools/list") => json!({"result": {"tools": []}}),
            _ => json!({"error": {"code": -32601, "message": "there is no such method"}}),
        }
    }

    /// The answer of a server that speaks the revision 2026-07-28 from its first answer on.
    fn newest(asked: &Value) -> Value {
        match asked["method"].as_str() {
            Some("server/discover") => {
                json!({"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "slow", "version": "1"}}}})
            }
            Some("tools/list") => json!({"result": {"resultType": "complete", "tools": [],
                "ttlMs": 0, "cacheScope": "private"}}),
            _ => {
                json!({"error": {"code": -32602, "message": "the initialize handshake is not accepted"}})
            }
        }
    }

    /// A server that reads nothing before it has started. Returns what it was asked, up to the list of its tools.
    async fn server(
        stream: DuplexStream,
        starting: Duration,
        answer: fn(&Value) -> Value,
    ) -> Vec<Value> {
        tokio::time::sleep(starting).await;
        let (read, mut write) = tokio::io::split(stream);
        let (mut lines, mut all) = (BufReader::new(read).lines(), Vec::new());
        while let Ok(Some(line)) = lines.next_line().await {
            let asked: Value = serde_json::from_str(&line).unwrap();
            if let (Some(id), Value::Object(mut answer)) = (asked.get("id"), answer(&asked)) {
                answer.extend([("jsonrpc".into(), json!("2.0")), ("id".into(), id.clone())]);
                let line = Value::Object(answer).to_string() + "\n";
                write.write_all(line.as_bytes()).await.unwrap();
            }
            all.push(asked);
            if all.last().is_some_and(|asked| asked["method"] == "tools/list") {
                break;
            }
        }
        all
    }

    /// Connects to such a server, and asks it for its tools. Returns the revision, and what the server was asked.
    async fn connected(seconds: u64, answer: fn(&Value) -> Value) -> (String, Vec<Value>) {
        let (ours, theirs) = duplex(1 << 16);
        let server = tokio::spawn(server(theirs, Duration::from_secs(seconds), answer));
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let stream = tokio::io::split(ours).into_transport();
        let transport = ProgressTransport::new(stream, Arc::new(Routes::default()));
        let running = ().serve_with_lifecycle(transport, mode).await;
        let running = running.unwrap_or_else(|error| panic!("{seconds} s: {error}"));
        running.list_tools(None).await.unwrap_or_else(|error| panic!("{seconds} s: {error}"));
        let version = running.peer_info().unwrap().protocol_version.to_string();
        (version, server.await.unwrap())
    }

    fn methods(asked: &[Value]) -> Vec<&str> {
        asked.iter().filter_map(|it| it["method"].as_str()).collect()
    }

    /// M5: "A server that answers the newest handshake only after it was asked for the earlier one … is used."
    #[tokio::test(start_paused = true)]
    async fn a_server_that_starts_slowly_is_used_though_its_first_answer_comes_too_late() {
        for seconds in [0, 9, 11, 25] {
            let (version, asked) = connected(seconds, earlier).await;
            assert_eq!(version, "2025-06-18", "{seconds} s");
            let all = ["server/discover", "initialize", "notifications/initialized", "tools/list"];
            assert_eq!(methods(&asked), all, "{seconds} s");
        }
    }

    /// M5: "If it then refuses the earlier one, its late answer counts."
    #[tokio::test(start_paused = true)]
    async fn a_slow_server_of_the_newest_revision_may_refuse_the_earlier_handshake() {
        for (seconds, asks) in [(0, 1), (9, 1), (11, 2), (25, 2)] {
            let (version, asked) = connected(seconds, newest).await;
            assert_eq!(version, "2026-07-28", "{seconds} s");
            let all = ["server/discover", "initialize"];
            let all: Vec<_> = all.into_iter().take(asks).chain(["tools/list"]).collect();
            assert_eq!(methods(&asked), all, "{seconds} s");
            // Each request says the revision, as there is no handshake that has said it.
            let said = &asked[asks]["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
            assert_eq!(said, "2026-07-28", "{seconds} s");
        }
    }
}
