//! Clients over streamable HTTP that are not who they seem: sessions, origins, hosts and bodies (rules M2, M3).

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger, MemoryStore, Quorum};
use countersign::{FunctionToolset, ToolError, ToolsExt, tool_fn};
use countersign_mcp::{Server, serve};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::{Client, NoArgs, decide_the_pending, forms, no, payments, times, told, yes};

/// A client, with headers of its own.
#[derive(Clone)]
pub(super) struct Web {
    /// Made once, as it reads the certificates of the machine.
    client: reqwest::Client,
    url: String,
    headers: Vec<(&'static str, String)>,
}

impl Web {
    pub(super) fn new(url: impl Into<String>) -> Self {
        Self { client: reqwest::Client::new(), url: url.into(), headers: Vec::new() }
    }

    /// Sends a request, and gives its response, whose body may not have ended.
    pub(super) async fn begin(&self, method: &str, body: &str) -> reqwest::Response {
        let request = self.client.request(method.parse().unwrap(), &self.url);
        let mut request = request.body(body.to_owned());
        request = request.header("accept", "application/json, text/event-stream");
        if self.headers.iter().all(|(name, _)| *name != "content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.send().await.unwrap()
    }

    /// Sends a request, and gives its status, the id of its session, and the messages of the response.
    pub(super) async fn send(&self, method: &str, body: &str) -> (u16, Option<String>, Vec<Value>) {
        let response = self.begin(method, body).await;
        let session = response.headers().get("mcp-session-id");
        let session = session.map(|it| it.to_str().unwrap().to_owned());
        let (status, text) = (response.status().as_u16(), response.text().await.unwrap());
        let data = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
        (status, session, data.filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    pub(super) fn with(&self, name: &'static str, value: impl Into<String>) -> Self {
        let mut headers = self.headers.clone();
        headers.retain(|(known, _)| *known != name);
        headers.push((name, value.into()));
        Self { headers, ..self.clone() }
    }

    /// Opens a session of a client that can do nothing.
    pub(super) async fn opened(&self) -> Self {
        self.opened_with(json!({})).await
    }

    /// Opens a session of a client with these capabilities.
    pub(super) async fn opened_with(&self, capabilities: Value) -> Self {
        let info = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info});
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

    /// The value of one of its headers.
    pub(super) fn header(&self, name: &str) -> String {
        let found = self.headers.iter().find(|(known, _)| *known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1.clone()
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> (u16, Value) {
        let (status, _, mut messages) = self.send("POST", &call(tool, arguments)).await;
        (status, messages.pop().unwrap_or_default())
    }

    /// A call of the revision 2026-07-28, which has no sessions, by a client with these capabilities.
    pub(super) async fn call_newest(
        &self,
        tool: &str,
        arguments: Value,
        (capabilities, more): (&Value, Value),
    ) -> (u16, Value) {
        let mut body: Value = serde_json::from_str(&call(tool, arguments)).unwrap();
        let params = body["params"].as_object_mut().unwrap();
        params.extend(more.as_object().cloned().unwrap_or_default());
        params.insert(
            "_meta".to_owned(),
            json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }),
        );
        let web = self.with("mcp-protocol-version", "2026-07-28").with("mcp-name", tool);
        let web = web.with("mcp-method", "tools/call");
        let (status, _, mut messages) = web.send("POST", &body.to_string()).await;
        (status, messages.pop().unwrap_or_default())
    }
}

pub(super) fn call(tool: &str, arguments: Value) -> String {
    let mut params = json!({"name": tool});
    params["arguments"] = arguments;
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

pub(super) async fn listening(server: Server) -> Web {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = server.router().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    Web::new(url)
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
pub(super) fn ask_of(response: &Value) -> String {
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
    let session = ann.header("mcp-session-id");
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

/// A client of 2026-07-28 without an account: its capabilities, and the parameters of a call beside its arguments.
async fn newest(web: &Web, capabilities: &Value, more: Value) -> Value {
    web.call_newest("pay", json!({"euros": 5}), (capabilities, more)).await.1
}

/// Returns `true` if a call was refused, as its client could not come back for an approval.
fn has_no_way_back(response: &Value) -> bool {
    let (text, failed) = told(response);
    failed
        && text.contains("no later call would be known as the same")
        && text.contains("Nothing has run")
}

// Rule M3: "A call whose client would not find the decision is refused at once, and nothing is parked." In 2026-07-28
// each request is a connection, so that without an account an approval would be for a call that never comes.
#[tokio::test]
async fn a_client_that_could_not_come_back_is_told_so_and_no_person_is_asked() {
    let none = json!({});
    let (server, ledger, paid) = asking();
    let web = listening(server).await;
    for _ in 0..3 {
        let response = newest(&web, &none, none.clone()).await;
        assert!(has_no_way_back(&response), "{response}");
    }
    assert!(ledger.list(None, 1).await.unwrap().records.is_empty(), "nothing was asked");

    // A link counts only where there is a page that it can lead to, and a form only where the person may decide in it.
    let links = json!({"elicitation": {"url": {}}});
    assert!(has_no_way_back(&newest(&web, &links, none.clone()).await));
    let (server, others, _) = asking();
    let other = Quorum { approvals: 1, not_the_requester: true };
    let web = listening(server.ask_policy(move |_, ask| ask.with_quorum(other))).await;
    assert!(has_no_way_back(&newest(&web, &forms(), none.clone()).await));
    let (server, elsewhere, _) = asking();
    let web = listening(server.without_forms()).await;
    assert!(has_no_way_back(&newest(&web, &forms(), none.clone()).await));
    for ledger in [others, elsewhere] {
        assert!(ledger.list(None, 1).await.unwrap().records.is_empty(), "nothing was asked");
    }
    assert_eq!(times(&paid), 0);
}

// The same client can be asked by a form or a link: its request state leads back to the ask.
#[tokio::test]
async fn a_client_without_an_account_comes_back_by_its_request_state() {
    let (server, ledger, paid) = asking();
    // S14: an address never has the secret of the inbox, also where it was given with it.
    let web = listening(server.inbox("https://inbox.example/#secret=5ec2e7")).await;
    let asked = newest(&web, &forms(), json!({})).await;
    let state = &asked["result"]["requestState"];
    let answered = json!({"requestState": state, "inputResponses": {"countersign": yes()}});
    let response = newest(&web, &forms(), answered).await;
    assert_eq!(told(&response).0, "paid 5", "{response}");

    let links = json!({"elicitation": {"url": {}}});
    let asked = newest(&web, &links, json!({})).await;
    let question = &asked["result"]["inputRequests"]["countersign"]["params"];
    assert_eq!(question["mode"], "url", "{asked}");
    let id = question["elicitationId"].as_str().unwrap();
    assert_eq!(question["url"], format!("https://inbox.example/#ask={id}"));
    let state = &asked["result"]["requestState"];
    let opened =
        json!({"requestState": state, "inputResponses": {"countersign": {"action": "accept"}}});
    decide_the_pending(&ledger, "bob", Answer::Approve { args: None }).await;
    assert_eq!(told(&newest(&web, &links, opened).await).0, "paid 5");
    assert_eq!(times(&paid), 2);
}

// "An ask that its client would not find again is cancelled": the link was opened, and no one has decided in time.
#[tokio::test]
async fn an_ask_that_its_client_would_not_find_again_does_not_stay() {
    let (server, ledger, paid) = asking();
    let web = listening(server.inbox("https://inbox.example")).await;
    let links = json!({"elicitation": {"url": {}}});
    let asked = newest(&web, &links, json!({})).await;
    let state = &asked["result"]["requestState"];
    let opened =
        json!({"requestState": state, "inputResponses": {"countersign": {"action": "accept"}}});
    let response = newest(&web, &links, opened).await;
    assert!(has_no_way_back(&response), "{response}");
    let records = ledger.list(None, 9).await.unwrap().records;
    assert!(matches!(&records[..], [record] if record.state == AskState::Cancelled), "{records:?}");
    assert_eq!(times(&paid), 0);
}

// Rule M2: what comes back for a link decides nothing, as only the answer to a form does.
#[tokio::test]
async fn an_answer_to_a_link_decides_nothing() {
    let links = json!({"elicitation": {"url": {}}});
    for answer in [yes(), no(), json!({"action": "decline"})] {
        let (server, ledger, paid) = asking();
        let server = server.inbox("https://inbox.example").principal("ann");
        let mut client = Client::newest(server, links.clone()).await;
        let asked = client.call("pay", json!({"euros": 5})).await;
        let state = &asked["result"]["requestState"];
        let response = client.retry("pay", json!({"euros": 5}), state, answer.clone()).await;
        assert!(told(&response).0.contains("waits for an approval"), "{response}");
        let (server, ledger_too, paid_too) = asking();
        let server = server.inbox("https://inbox.example").principal("ann");
        let mut client = Client::earlier(server, "2025-11-25", links.clone()).await;
        client.person = Some(answer);
        let response = client.call("pay", json!({"euros": 5})).await;
        assert!(told(&response).0.contains("waits for an approval"), "{response}");
        assert_eq!(client.asked[0]["mode"], "url");
        for ledger in [ledger, ledger_too] {
            let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
            assert_eq!(pending.len(), 1, "it is still undecided");
        }
        assert_eq!(times(&paid) + times(&paid_too), 0);
    }
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
    let begun = std::time::Instant::now();
    while ledger.get(&ask).await.unwrap().unwrap().outcome.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no outcome is recorded");
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
