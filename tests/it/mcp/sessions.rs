//! Clients over streamable HTTP that are not who they seem: sessions, origins, hosts and bodies (rules M2, M3).

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::mcp::{Server, serve};
use countersign::{FunctionToolset, ToolError, ToolsExt, tool_fn};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::{NoArgs, payments, times, told};

/// A client, with headers of its own.
#[derive(Clone)]
struct Web {
    url: String,
    headers: Vec<(&'static str, String)>,
}

impl Web {
    /// Sends a request, and gives its status, the id of its session, and the messages of the response.
    async fn send(&self, method: &str, body: &str) -> (u16, Option<String>, Vec<Value>) {
        let client = reqwest::Client::new();
        let mut request = client.request(method.parse().unwrap(), &self.url).body(body.to_owned());
        request = request.header("accept", "application/json, text/event-stream");
        if self.headers.iter().all(|(name, _)| *name != "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let response = request.send().await.unwrap();
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|it| it.to_str().unwrap().to_owned());
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        let data = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        (status, session, data.filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value.into()));
        Self { url: self.url.clone(), headers }
    }

    /// Opens a session.
    async fn opened(&self) -> Self {
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let (status, session, messages) = self.send("POST", &hello.to_string()).await;
        assert_eq!(status, 200, "{messages:?}");
        let this = self.with("mcp-session-id", session.unwrap());
        this.send(
            "POST",
            &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string(),
        )
        .await;
        this
    }

    async fn call(&self, tool: &str, arguments: Value) -> (u16, Value) {
        let (status, _, mut messages) = self.send("POST", &call(tool, arguments)).await;
        (status, messages.pop().unwrap_or_default())
    }
}

fn call(tool: &str, arguments: Value) -> String {
    let mut params = json!({"name": tool});
    params["arguments"] = arguments;
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

async fn listening(server: Server) -> Web {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = server.router().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Web { url, headers: Vec::new() }
}

/// A server whose clients say who they are.
fn of_people(server: Server) -> Server {
    server.authorize(async |headers| Some(headers.get("x-user")?.to_str().ok()?.to_owned()))
}

fn asking() -> (Server, Ledger, Arc<AtomicU32>) {
    let (tools, paid) = payments();
    let ledger = Ledger::new(MemoryStore::new());
    let server = serve(tools.approval_required()).ledger(ledger.clone());
    (server.wait(Duration::from_millis(100)), ledger, paid)
}

async fn approve(ledger: &Ledger, ask: &str) {
    let record = ledger.get(ask).await.unwrap().unwrap();
    let yes = Answer::Approve { args: None };
    ledger.decide(ask, &record.fingerprint, "bob", yes).await.unwrap();
}

/// The id of the ask that a call waits under.
fn ask_of(response: &Value) -> String {
    let text = told(response).0;
    let id = text.split("under ask ").nth(1).unwrap_or_else(|| panic!("{response}"));
    id.split('.').next().unwrap().to_owned()
}

// "A session belongs to the principal that has opened it": its stream has the questions about that person's calls, and an
// answer on it counts as that person's.
#[tokio::test]
async fn a_session_of_another_person_does_not_exist() {
    let (server, ledger, paid) = asking();
    let web = listening(of_people(server)).await;
    let ann = web.with("x-user", "ann").opened().await;
    let session = ann.headers.iter().find(|(name, _)| *name == "mcp-session-id").unwrap().1.clone();
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"decision": "approve"}}});
    for person in ["bob", "Ann", "ann2"] {
        let bob = web.with("x-user", person).with("mcp-session-id", session.clone());
        assert_eq!(bob.call("pay", json!({"euros": 5})).await.0, 404, "{person}");
        assert_eq!(bob.send("POST", &answer.to_string()).await.0, 404, "{person}");
        assert_eq!(bob.send("GET", "").await.0, 404, "{person}");
        assert_eq!(bob.send("DELETE", "").await.0, 404, "{person}");
    }
    assert_eq!(web.with("mcp-session-id", session).call("pay", json!({"euros": 5})).await.0, 401);
    assert!(ledger.list(None, 1).await.unwrap().records.is_empty(), "nothing was asked");
    let (_, response) = ann.call("pay", json!({"euros": 5})).await;
    approve(&ledger, &ask_of(&response)).await;
    assert_eq!(told(&ann.call("pay", json!({"euros": 5})).await.1).0, "paid 5");
    assert_eq!(times(&paid), 1);
    assert!(ann.send("DELETE", "").await.0 < 300);
    assert_eq!(ann.call("pay", json!({"euros": 5})).await.0, 404, "it has ended");
}

// Rule M3: "without a principal, connections share nothing".
#[tokio::test]
async fn equal_calls_of_two_clients_without_accounts_are_two_calls() {
    let (server, ledger, paid) = asking();
    let web = listening(server).await;
    let (one, other) = (web.opened().await, web.opened().await);
    let (first, second) =
        tokio::join!(one.call("pay", json!({"euros": 5})), other.call("pay", json!({"euros": 5})));
    let (first, second) = (ask_of(&first.1), ask_of(&second.1));
    assert_ne!(first, second);
    approve(&ledger, &first).await;
    assert_eq!(ask_of(&other.call("pay", json!({"euros": 5})).await.1), second);
    assert_eq!(times(&paid), 0);
    assert_eq!(told(&one.call("pay", json!({"euros": 5})).await.1).0, "paid 5");
    let third = web.opened().await;
    assert!(![first, second].contains(&ask_of(&third.call("pay", json!({"euros": 5})).await.1)));
    assert_eq!(times(&paid), 1);
}

// A session that ends in the middle of a call: the outcome is recorded, and the call is not repeated.
#[tokio::test]
async fn a_session_that_ends_during_a_call_runs_it_once() {
    let (begun, end, runs) =
        (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
    let (tells, waits, counts) = (Arc::clone(&begun), Arc::clone(&end), Arc::clone(&runs));
    let tool = tool_fn("write", "Writes", move |_: NoArgs| {
        let (tells, waits) = (Arc::clone(&tells), Arc::clone(&waits));
        counts.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move {
            tells.notify_one();
            waits.notified().await;
            Ok::<_, ToolError>("wrote")
        }
    });
    let ledger = Ledger::new(MemoryStore::new());
    let tools = FunctionToolset::new().tool(tool).approval_required();
    let server = serve(tools).ledger(ledger.clone()).wait(Duration::from_millis(100));
    let web = listening(of_people(server)).await.with("x-user", "ann");
    let ann = web.opened().await;
    let ask = ask_of(&ann.call("write", json!({})).await.1);
    approve(&ledger, &ask).await;
    let calling = tokio::spawn({
        let ann = ann.clone();
        async move { ann.call("write", json!({})).await }
    });
    begun.notified().await;
    assert!(ann.send("DELETE", "").await.0 < 300);
    end.notify_one();
    let (_, response) = calling.await.unwrap();
    for _ in 0..400 {
        if ledger.get(&ask).await.unwrap().unwrap().outcome.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let record = ledger.get(&ask).await.unwrap().unwrap();
    assert_eq!(record.state, AskState::Executed, "{record:?} {response}");
    let (_, again) = web.opened().await.call("write", json!({})).await;
    // Either the first client has got the outcome, or this one does: it does not run again without a question.
    let is_late = again["result"]["_meta"]["countersign/deliveredLate"] == true;
    assert_eq!(is_late, told(&response).0 != "wrote", "{response} {again}");
    assert_eq!(times(&runs), 1);
}

#[tokio::test]
async fn requests_of_other_origins_and_hosts_are_refused() {
    let (server, ledger, paid) = asking();
    let web = listening(server).await;
    let session = web.opened().await;
    for (name, value) in [
        ("origin", "http://evil.example"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://127.0.0.1.evil.example:80"),
        ("origin", "https://localhost@evil.example"),
        ("origin", "null"),
        ("origin", "file://"),
        ("host", "evil.example"),
        ("host", "localhost.evil.example"),
        ("host", "127.0.0.1.evil.example:8080"),
        ("host", "0.0.0.0"),
    ] {
        let (status, _) = session.with(name, value).call("pay", json!({"euros": 5})).await;
        assert!((400..500).contains(&status), "{name}: {value}: {status}");
        let (status, opened, _) = web.with(name, value).send("POST", "{}").await;
        assert!((400..500).contains(&status) && opened.is_none(), "{name}: {value}: {status}");
    }
    assert!(ledger.list(None, 1).await.unwrap().records.is_empty() && times(&paid) == 0);
    let here = session.with("origin", "http://localhost:3000");
    assert!(
        told(&here.call("pay", json!({"euros": 5})).await.1).0.contains("waits for an approval")
    );
}

#[tokio::test]
async fn bodies_that_cannot_be_read_run_nothing() {
    let (tools, paid) = payments();
    let web = listening(serve(tools)).await;
    let session = web.opened().await;
    let good = call("pay", json!({"euros": 5}));
    let deep = format!("{}{}", "[".repeat(50_000), "]".repeat(50_000));
    for bad in [
        format!("[{good}]"),
        good.replace(":5}", &format!(":{deep}}}")),
        good.replace(":5}", &format!(":\"{}\"}}", "x".repeat(5 << 20))),
        good.replace("2.0", "1.0"),
        good[..good.len() - 2].to_owned(),
        format!("{good}{good}"),
        "null".to_owned(),
        String::new(),
        "\u{0}".to_owned(),
    ] {
        let (status, _, messages) = session.send("POST", &bad).await;
        let refused = messages.iter().all(|it| it.get("result").is_none());
        assert!(refused, "{status} {messages:?}");
        assert_eq!(times(&paid), 0, "{}", bad.chars().take(80).collect::<String>());
    }
    for (name, value) in [("content-type", "text/plain"), ("mcp-session-id", "another")] {
        let (status, _) = session.with(name, value).call("pay", json!({"euros": 5})).await;
        assert!((400..500).contains(&status), "{name}: {status}");
    }
    assert_eq!(times(&paid), 0);
    assert_eq!(told(&session.call("pay", json!({"euros": 5})).await.1).0, "paid 5");
}
