//! A client that writes frames by hand, so that it can do what no library would.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use countersign::ledger::Ledger;
use countersign::mcp::Server;
use countersign::{FunctionToolset, ToolError, schemars, tool_fn};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, split,
};

pub(super) struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    next: u64,
    /// The `_meta` of each request of the newest revision.
    meta: Option<Value>,
    /// What the person answers to elicitation, and what they were asked.
    pub(super) person: Option<Value>,
    pub(super) asked: Vec<Value>,
    pub(super) notified: Vec<Value>,
    pub(super) served: tokio::task::JoinHandle<Result<(), countersign::mcp::McpError>>,
}

impl Client {
    fn of(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = split(theirs);
        let served = tokio::spawn(server.on(input, output));
        let (read, write) = split(ours);
        let (lines, next) = (BufReader::new(read).lines(), 1);
        let (asked, notified) = (Vec::new(), Vec::new());
        Self { lines, write, next, meta: None, person: None, asked, notified, served }
    }

    /// A client of an earlier revision, with these capabilities.
    pub(super) async fn earlier(server: Server, version: &str, capabilities: Value) -> Self {
        let mut client = Self::of(server);
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let answer = client.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    /// A client of the newest revision, with these capabilities.
    pub(super) async fn newest(server: Server, capabilities: Value) -> Self {
        let mut client = Self::of(server);
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        let answer = client.ask("server/discover", json!({})).await;
        assert!(answer["result"]["supportedVersions"].as_array().is_some(), "{answer}");
        client
    }

    pub(super) async fn send(&mut self, frame: &Value) {
        self.write.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    }

    pub(super) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// Sends a request, and answers what the server asks until it has the response.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.response(id).await
    }

    pub(super) async fn response(&mut self, id: u64) -> Value {
        loop {
            let line = tokio::time::timeout(Duration::from_secs(20), self.lines.next_line()).await;
            let line = line.expect("an answer in time").unwrap().expect("the connection is open");
            let frame: Value = serde_json::from_str(&line).unwrap();
            match (frame.get("method"), frame.get("id")) {
                (None, Some(got)) if *got == id => return frame,
                (Some(method), Some(asked)) => {
                    assert_eq!(method, "elicitation/create", "{frame}");
                    self.asked.push(frame["params"].clone());
                    if let Some(answer) = self.person.clone() {
                        let answer = json!({"jsonrpc": "2.0", "id": asked, "result": answer});
                        self.send(&answer).await;
                    }
                }
                _ => self.notified.push(frame),
            }
        }
    }

    pub(super) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Ends the connection, and waits until the server has seen it.
    pub(super) async fn goes(self) {
        let Self { lines, write, served, .. } = self;
        drop((lines, write));
        served.await.unwrap().unwrap();
    }

    /// Calls again, with the state of an input-required result and an answer to its question.
    pub(super) async fn retry(
        &mut self,
        tool: &str,
        arguments: Value,
        state: &Value,
        answer: Value,
    ) -> Value {
        let responses = json!({"countersign": answer});
        let params = json!({"name": tool, "arguments": arguments, "requestState": state, "inputResponses": responses});
        self.ask("tools/call", params).await
    }
}

pub(super) fn yes() -> Value {
    json!({"action": "accept", "content": {"decision": "approve"}})
}

pub(super) fn no() -> Value {
    json!({"action": "accept", "content": {"decision": "deny"}})
}

pub(super) fn forms() -> Value {
    json!({"elicitation": {}})
}

/// The text of a result, and whether it is an error.
pub(super) fn told(response: &Value) -> (String, bool) {
    let result = &response["result"];
    (
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        result["isError"] == true,
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    euros: u32,
}

/// A tool that pays, and how often it has.
pub(super) fn payments() -> (FunctionToolset, Arc<AtomicU32>) {
    let paid = Arc::new(AtomicU32::new(0));
    (payments_counting(Arc::clone(&paid)), paid)
}

pub(super) fn payments_counting(count: Arc<AtomicU32>) -> FunctionToolset {
    let pay = tool_fn("pay", "Pays an amount", move |pay: Pay| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(format!("paid {}", pay.euros)) }
    });
    FunctionToolset::new().id("payments").tool(pay)
}

pub(super) fn times(paid: &AtomicU32) -> u32 {
    paid.load(Ordering::SeqCst)
}

/// Decides about the only pending ask, as a person at the inbox does.
pub(super) async fn decide_the_pending(
    ledger: &Ledger,
    who: &str,
    answer: countersign::deferred::Answer,
) {
    let pending =
        ledger.list(Some(countersign::ledger::AskState::Pending), 9).await.unwrap().records;
    let [record] = &pending[..] else { panic!("one ask is pending, not {}", pending.len()) };
    let decided = ledger.decide(record.ask.id(), &record.fingerprint, who, answer).await.unwrap();
    assert!(matches!(decided, countersign::ledger::Decided::Won { again: false }));
}
