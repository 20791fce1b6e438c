//! A program that is told to end while calls are in flight (rules M3, L2).

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{FunctionToolset, Outcome, ToolCall, ToolError, Turn, tool_fn};
use countersign_mcp::{Launch, McpToolset, serve};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use super::client::{Client, NoArgs, Served, told};
use super::process::Desk;

const ERA: &str = "2025-11-25";

/// Ann's guard with an accepted server, and its process.
async fn guard(desk: &Desk, options: &[&str]) -> (Client, u32) {
    let client = Client::earlier(desk.guard_of("ann", options, &desk.held()), ERA, json!({})).await;
    desk.accept_tools().await;
    let Served::Process(process) = &client.served else { panic!("it is a process") };
    let process = process.id().unwrap();
    (client, process)
}

fn signal(process: u32, name: &str) {
    let process = process.to_string();
    assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
}

/// Waits until the guard has ended, whose client is still there.
async fn ends(client: &mut Client) {
    let Served::Process(process) = &mut client.served else { panic!("it is a process") };
    let ended = tokio::time::timeout(Duration::from_secs(30), process.wait()).await;
    assert_eq!(ended.expect("it ends in time").unwrap().code(), Some(0));
}

// "Calls in flight have a second to end; then … recorded as *may have run*": at once, and not when the lease is over.
#[tokio::test]
async fn a_call_in_flight_may_have_run_when_the_guard_is_told_to_end() {
    for name in ["-TERM", "-INT"] {
        let desk = Desk::new();
        let (mut client, process) = guard(&desk, &["--wait", "30"]).await;
        let call = json!({"name": "write", "arguments": {"n": 1}});
        let id = client.begin("tools/call", call).await;
        let asked = desk.asked().await;
        desk.approve(&asked, "bob").await;
        desk.begun(1).await;
        signal(process, name);
        let response = client.response(id).await;
        let (text, error) = told(&response);
        assert!(error && text.contains("may have run"), "{response}");
        let record = desk.ledger().await.get(asked.ask.id()).await.unwrap().unwrap();
        assert_eq!(record.state, AskState::Unknown, "{record:?}");
        // A list of the store's says it, too, before anything looks at the ask again.
        let unknown = desk.ledger().await.list(Some(AskState::Unknown), 9).await.unwrap().records;
        assert_eq!(unknown.len(), 1, "{unknown:?}");
        std::fs::write(desk.gate(), "").unwrap();
        ends(&mut client).await;
        let (mut again, _) = guard(&desk, &["--wait", "1"]).await;
        let response = again.call("write", json!({"n": 1})).await;
        assert!(told(&response).0.contains("waits for an approval"), "{response}");
        let reasons = desk.asked().await.ask.questions().to_vec();
        assert!(reasons.iter().any(|it| it.reason().contains("may have run")), "{reasons:?}");
        assert_eq!(desk.runs().len(), 1);
    }
}

#[tokio::test]
async fn a_call_that_waits_for_a_person_is_told_its_ask_which_stays() {
    let desk = Desk::new();
    let (mut client, process) = guard(&desk, &["--wait", "30"]).await;
    let id = client.begin("tools/call", json!({"name": "write", "arguments": {"n": 1}})).await;
    let asked = desk.asked().await;
    signal(process, "-TERM");
    let (text, error) = told(&client.response(id).await);
    assert!(error && text.contains(asked.ask.id()) && text.contains("Nothing has run"), "{text}");
    ends(&mut client).await;
    assert_eq!(desk.pending().await, std::slice::from_ref(&asked));
    desk.approve(&asked, "bob").await;
    std::fs::write(desk.gate(), "").unwrap();
    let (mut again, _) = guard(&desk, &["--wait", "1"]).await;
    assert!(told(&again.call("write", json!({"n": 1})).await).0.starts_with("wrote"));
    assert_eq!(desk.runs()[0]["key"], asked.ask.id());
}

// A call whose client has gone has no connection, for which an HTTP server would wait.
#[tokio::test]
async fn a_guard_over_http_records_a_call_whose_client_has_gone() {
    let desk = Desk::new();
    let options = ["--wait", "30", "--listen", "127.0.0.1:0"];
    let mut guard = desk.listening(desk.guard_of("ann", &options, &desk.held())).await;
    let launch = Launch::url(&*guard.url).header("authorization", guard.bearer());
    let toolset = McpToolset::connect("held", launch).await.unwrap();
    desk.accept_tools().await;
    let turn = Turn::new(toolset);
    let calling = tokio::spawn(async move {
        turn.run(vec![ToolCall::new("c1", "write", json!({"n": 1}))]).await.map(drop)
    });
    let asked = desk.asked().await;
    desk.approve(&asked, "bob").await;
    desk.begun(1).await;
    calling.abort();
    signal(guard.process.id().unwrap(), "-TERM");
    let ended = tokio::time::timeout(Duration::from_secs(30), guard.process.wait()).await;
    assert_eq!(ended.expect("it ends in time").unwrap().code(), Some(0), "{}", desk.logged());
    let record = desk.ledger().await.get(asked.ask.id()).await.unwrap().unwrap();
    assert_eq!(record.state, AskState::Unknown, "{record:?}");
    assert_eq!(desk.runs().len(), 1);
}

/// A tool that begins, and ends when it is told to.
fn slow() -> (FunctionToolset, Arc<Notify>, Arc<Notify>) {
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, ends) = (Arc::clone(&begun), Arc::clone(&end));
    let tool = tool_fn("write", "Writes slowly", move |_: NoArgs| {
        let (begins, ends) = (Arc::clone(&begins), Arc::clone(&ends));
        async move {
            begins.notify_one();
            ends.notified().await;
            Ok::<_, ToolError>("wrote")
        }
    });
    (FunctionToolset::new().tool(tool), begun, end)
}

// "From then on no call begins", and a call that ends in time has its outcome.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_told_to_end_begins_nothing_and_ends_what_it_has_begun() {
    let (tools, begun, end) = slow();
    let (stop, stopped) = oneshot::channel::<()>();
    let ledger = Ledger::new(MemoryStore::new());
    let server = serve(tools).ledger(ledger).shutdown(async { _ = stopped.await });
    let mut client = Client::earlier(server, ERA, json!({})).await;
    let call = json!({"name": "write", "arguments": {}});
    let first = client.begin("tools/call", call.clone()).await;
    begun.notified().await;
    stop.send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let late = client.ask("tools/call", call).await;
    assert!(told(&late).0.contains("Nothing has run"), "{late}");
    end.notify_one();
    let response = client.response(first).await;
    assert_eq!(told(&response), ("wrote".to_owned(), false), "{response}");
    let Served::Here(served) = &mut client.served else { panic!("it is served here") };
    let ended = tokio::time::timeout(Duration::from_secs(30), served).await;
    ended.expect("it ends in time, beside its client").unwrap().unwrap();
}

// The same over HTTP: the client keeps a stream open, which would keep the HTTP server from ending.
#[tokio::test]
async fn a_router_that_is_told_to_end_ends_its_calls_and_streams() {
    let (tools, begun, _end) = slow();
    let (stop, stopped) = tokio::sync::watch::channel(());
    let told_to_end = |mut stopped: tokio::sync::watch::Receiver<()>| async move {
        _ = stopped.changed().await;
    };
    let router = serve(tools).shutdown(told_to_end(stopped.clone())).router().unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let serving = axum::serve(listener, router).with_graceful_shutdown(told_to_end(stopped));
    let serving = tokio::spawn(serving.into_future());
    let toolset = McpToolset::connect("slow", Launch::url(url)).await.unwrap();
    let turn = Turn::new(toolset.clone());
    let calling = tokio::spawn(async move {
        turn.run(vec![ToolCall::new("c1", "write", json!({}))]).await.unwrap()
    });
    begun.notified().await;
    stop.send(()).unwrap();
    let report = tokio::time::timeout(Duration::from_secs(30), calling).await.unwrap().unwrap();
    let outcome = report.calls()[0].outcome();
    assert!(matches!(outcome, Outcome::Failed(_) | Outcome::Unknown(_)), "{outcome:?}");
    assert!(outcome.text().unwrap().contains("may have run"), "{outcome:?}");
    let ended = tokio::time::timeout(Duration::from_secs(30), serving).await;
    ended.expect("it ends in time").unwrap().unwrap();
}
