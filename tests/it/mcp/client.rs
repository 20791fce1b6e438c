//! A client that writes frames by hand, so that it can do what no library would.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use countersign::ledger::Ledger;
use countersign::{FunctionToolset, ToolError, schemars, tool_fn};
use countersign_mcp::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, split};

/// The other end of a client's connection.
pub(crate) enum Served {
    Here(tokio::task::JoinHandle<Result<(), countersign_mcp::McpError>>),
    /// The program, which is killed when the client is dropped.
    Process(Box<tokio::process::Child>),
}

pub(crate) struct Client {
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    write: Box<dyn AsyncWrite + Send + Unpin>,
    next: u64,
    /// The `_meta` of each request of the newest revision.
    pub(crate) meta: Option<Value>,
    /// What the person answers to elicitation, and what they were asked.
    pub(crate) person: Option<Value>,
    /// The result or error that is answered to elicitation in place of it.
    pub(crate) answers_raw: Option<Value>,
    pub(crate) asked: Vec<Value>,
    /// The ids of the requests by which they were asked.
    pub(crate) asked_ids: Vec<Value>,
    pub(crate) notified: Vec<Value>,
    /// Responses that were read while another one was waited for.
    responses: Vec<Value>,
    pub(crate) served: Served,
}

impl From<Server> for Client {
    fn from(server: Server) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = split(theirs);
        let served = tokio::spawn(server.on(input, output));
        let (read, write) = split(ours);
        Self::of(Box::new(read), Box::new(write), Served::Here(served))
    }
}

impl From<std::process::Command> for Client {
    fn from(mut command: std::process::Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
        let (read, write) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Self::of(Box::new(read), Box::new(write), Served::Process(Box::new(child)))
    }
}

impl Client {
    fn of(
        read: Box<dyn AsyncRead + Send + Unpin>,
        write: Box<dyn AsyncWrite + Send + Unpin>,
        served: Served,
    ) -> Self {
        let (lines, next) = (BufReader::new(read).lines(), 1);
        let (asked, asked_ids, notified) = (Vec::new(), Vec::new(), Vec::new());
        let responses = Vec::new();
        let (meta, person, answers_raw) = (None, None, None);
        Self {
            lines,
            write,
            next,
            meta,
            person,
            answers_raw,
            asked,
            asked_ids,
            notified,
            responses,
            served,
        }
    }

    /// A client of an earlier revision, with these capabilities.
    pub(crate) async fn earlier(
        server: impl Into<Self>,
        version: &str,
        capabilities: Value,
    ) -> Self {
        let mut client = server.into();
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        let answer = client.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], version, "{answer}");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client
    }

    /// A client of the newest revision, with these capabilities.
    pub(crate) async fn newest(server: impl Into<Self>, capabilities: Value) -> Self {
        let mut client = server.into();
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }));
        let answer = client.ask("server/discover", json!({})).await;
        assert!(answer["result"]["supportedVersions"].as_array().is_some(), "{answer}");
        client
    }

    pub(crate) async fn send(&mut self, frame: &Value) {
        self.write_line(&frame.to_string()).await;
    }

    /// Writes a line, which need not be a frame. A server that is gone reads nothing.
    pub(crate) async fn write_line(&mut self, line: &str) {
        _ = self.write.write_all(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next_id();
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        id
    }

    /// The id of a request that is written by hand.
    pub(super) fn next_id(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Begins a call whose parameters are written as they are.
    pub(crate) async fn begin_raw(&mut self, params: &str) -> u64 {
        let id = self.next_id();
        self.write_line(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
        ))
        .await;
        id
    }

    /// Sends a request, and answers what the server asks until it has the response.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.response(id).await
    }

    pub(crate) async fn response(&mut self, id: u64) -> Value {
        self.response_or_end(id).await.expect("the connection is open")
    }

    /// The response to a request; `None` when the connection ends before.
    pub(crate) async fn response_or_end(&mut self, id: u64) -> Option<Value> {
        loop {
            if let Some(at) = self.responses.iter().position(|response| response["id"] == id) {
                return Some(self.responses.remove(at));
            }
            self.read().await?;
        }
    }

    /// Reads one frame; `None` when the connection ends before.
    async fn read(&mut self) -> Option<()> {
        let line = tokio::time::timeout(Duration::from_secs(40), self.lines.next_line()).await;
        let line = line.expect("an answer in time").unwrap()?;
        let frame: Value = serde_json::from_str(&line).unwrap();
        match (frame.get("method"), frame.get("id")) {
            (Some(method), Some(asked)) => {
                assert_eq!(method, "elicitation/create", "{frame}");
                self.asked.push(frame["params"].clone());
                self.asked_ids.push(asked.clone());
                let answer = self.person.clone().map(|answer| json!({"result": answer}));
                if let Some(mut answer) = answer.or_else(|| self.answers_raw.clone()) {
                    (answer["jsonrpc"], answer["id"]) = (json!("2.0"), asked.clone());
                    self.send(&answer).await;
                }
            }
            (None, Some(id)) if id.as_u64().is_some_and(|id| (1..self.next).contains(&id)) => {
                self.responses.push(frame);
            }
            _ => self.notified.push(frame),
        }
        Some(())
    }

    /// Reads until something is so.
    pub(crate) async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            self.read().await.expect("the connection is open");
        }
    }

    /// Answers a question that was asked before, in the order of the questions.
    pub(crate) async fn answer(&mut self, question: usize, answer: Value) {
        let id = self.asked_ids[question].clone();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": answer})).await;
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    /// Ends the connection, as the death of a client does, and waits until the server has ended.
    pub(crate) async fn goes(self) {
        let Self { lines, write, served, .. } = self;
        drop((lines, write));
        match served {
            Served::Here(served) => served.await.unwrap().unwrap(),
            Served::Process(mut child) => {
                let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
                assert!(ended.expect("the program ends in time").unwrap().success());
            }
        }
    }

    /// Kills the program, as `kill -9` does.
    pub(crate) async fn kill(self) {
        let Served::Process(mut child) = self.served else { panic!("it is no process") };
        child.kill().await.unwrap();
    }

    /// Calls again, with the state of an input-required result and an answer to its question.
    pub(crate) async fn retry(
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

pub(crate) fn yes() -> Value {
    json!({"action": "accept", "content": {"decision": "approve"}})
}

pub(crate) fn no() -> Value {
    json!({"action": "accept", "content": {"decision": "deny"}})
}

pub(crate) fn forms() -> Value {
    json!({"elicitation": {}})
}

/// The text of a result, and whether it is an error.
pub(crate) fn told(response: &Value) -> (String, bool) {
    let result = &response["result"];
    (
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        result["isError"] == true,
    )
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct NoArgs {}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    euros: u32,
}

/// A tool that pays, and how often it has.
pub(crate) fn payments() -> (FunctionToolset, Arc<AtomicU32>) {
    let paid = Arc::new(AtomicU32::new(0));
    (payments_counting(Arc::clone(&paid)), paid)
}

pub(crate) fn payments_counting(count: Arc<AtomicU32>) -> FunctionToolset {
    let pay = tool_fn("pay", "Pays an amount", move |pay: Pay| {
        count.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(format!("paid {}", pay.euros)) }
    });
    FunctionToolset::new().id("payments").tool(pay)
}

pub(crate) fn times(paid: &AtomicU32) -> u32 {
    paid.load(Ordering::SeqCst)
}

/// Decides about the only pending ask, as a person at the inbox does.
pub(crate) async fn decide_the_pending(
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
