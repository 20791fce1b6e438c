//! The messages between a client and a server that pass the guard: questions, cancellation, and wishes to remember (rule
//! M5).

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use countersign::ledger::{Ledger, MemoryStore};
use countersign::{FunctionToolset, ToolError, tool_fn};
use countersign_mcp::Guard;
use serde_json::json;
use tokio::sync::Notify;

use super::client::{Client, NoArgs, forms, told};
use super::guarding::upstream;
use super::process::{Desk, wait};

/// A guard that allows every call, before a server of this revision that asks its client back.
pub(super) fn before(desk: &Desk, era: &str, more: &[&str]) -> Command {
    before_command(desk, more, &["python3", &fixture(), era])
}

/// The program of the server, which takes the revision that it speaks.
pub(super) fn fixture() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/fixture.py").display().to_string()
}

/// A guard that allows every call, before a server that this command starts.
pub(super) fn before_command(desk: &Desk, more: &[&str], server: &[&str]) -> Command {
    let rules = desk.user.home().join("rules.toml");
    std::fs::write(&rules, "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:asking/*'\n").unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "asking", "--danger-accept-all-tools", "--rules", &rules];
    desk.guard_before("ann", &[&options[..], more].concat(), server)
}

// "A server's own question passes through under its own key, labelled with the server's name, and is no approval."
#[tokio::test]
async fn a_servers_question_is_labelled_and_answers_nothing_but_itself() {
    for (era, key) in [("2025-11-25", "question"), ("2026-07-28", "user_name")] {
        let desk = Desk::new();
        let mut client = Client::newest(before(&desk, era, &[]), forms()).await;
        let tool = "test_input_required_result_elicitation";
        let asked = client.call(tool, json!({})).await;
        let question = &asked["result"]["inputRequests"][key];
        let message = question["params"]["message"].as_str().unwrap_or_else(|| panic!("{asked}"));
        assert!(message.starts_with("The MCP server `asking` asks"), "{message}");
        assert!(message.ends_with("What is your name?"), "{message}");
        let answer = json!({key: {"action": "accept", "content": {"name": "Alice"}}});
        let again = json!({"name": tool, "arguments": {}, "requestState": asked["result"]["requestState"], "inputResponses": answer});
        let response = client.ask("tools/call", again.clone()).await;
        assert_eq!(told(&response), ("Hello, Alice!".to_owned(), false), "{era}: {response}");
        // The state was used.
        let response = client.ask("tools/call", again).await;
        assert!(
            response["error"]["message"].as_str().unwrap().contains("used already"),
            "{response}"
        );
        assert!(desk.pending().await.is_empty(), "no approval was asked for or given");
    }
}

#[tokio::test]
async fn a_servers_question_reaches_an_earlier_client_as_elicitation() {
    for era in ["2025-11-25", "2026-07-28"] {
        let desk = Desk::new();
        let mut client = Client::earlier(before(&desk, era, &[]), "2025-11-25", forms()).await;
        client.person = Some(json!({"action": "accept", "content": {"name": "Bob"}}));
        let response = client.call("test_input_required_result_elicitation", json!({})).await;
        assert_eq!(told(&response), ("Hello, Bob!".to_owned(), false), "{era}: {response}");
        assert!(client.asked[0]["message"].as_str().unwrap().contains("`asking` asks"));
    }
}

// Rule M5: where a question may be of several calls, "the server and the log are told why no one was asked".
#[tokio::test]
async fn a_question_that_may_be_of_two_calls_is_refused_with_the_reason() {
    let desk = Desk::new();
    let mut client = Client::newest(before(&desk, "2025-11-25", &[]), forms()).await;
    let tool = "test_input_required_result_elicitation";
    let first = client.call(tool, json!({})).await;
    assert!(first["result"]["requestState"].is_string(), "{first}");
    let second = client.call(tool, json!({})).await;
    let problem = "several calls are in flight";
    assert!(second.to_string().contains(&format!("No one was asked: {problem}")), "{second}");
    let logged = desk.logged();
    let lines: Vec<_> = logged.lines().filter(|line| line.contains("reaches no one")).collect();
    assert!(lines.len() == 1 && lines[0].contains(problem), "{logged}");
}

// "Progress passes through": all of it, in its order and before the result, however soon a server sends it.
#[tokio::test]
async fn progress_that_comes_at_once_is_not_lost() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    std::fs::write(&rules, "version = 1\n[[rule]]\nid = 'all'\nallow = 'mcp:quick/*'\n").unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "quick", "--danger-accept-all-tools", "--rules", &rules];
    let mut server = desk.told();
    server["progress"] = json!(20);
    let guard = desk.guard_of("ann", &options, &server);
    let mut client = Client::earlier(guard, "2025-11-25", json!({})).await;
    for token in 0..20 {
        client.notified.clear();
        let call =
            json!({"name": "write", "arguments": {"n": token}, "_meta": {"progressToken": token}});
        let response = client.ask("tools/call", call).await;
        assert_eq!(told(&response), ("done".to_owned(), false), "{response}");
        let reports = client.notified.iter().map(|report| {
            assert_eq!(report["params"]["progressToken"], token, "{report}");
            report["params"]["progress"].as_f64().unwrap()
        });
        assert_eq!(reports.collect::<Vec<_>>(), (1..=20).map(f64::from).collect::<Vec<_>>());
    }
}

// "A client's wish to remember an answer is ignored."
#[tokio::test]
async fn a_wish_to_remember_an_approval_is_ignored() {
    let desk = Desk::new();
    let mut client = Client::newest(desk.guard(&desk.told()), forms()).await;
    desk.accept_tools().await;
    let answer = json!({
        "action": "accept", "content": {"decision": "approve", "persist": "always", "remember": true},
        "_meta": {"persist": "always"},
    });
    for runs in 1..=2 {
        let asked = client.call("write", json!({"n": 1})).await;
        let state = &asked["result"]["requestState"];
        assert!(state.is_string(), "each call is asked about: {asked}");
        let response = client.retry("write", json!({"n": 1}), state, answer.clone()).await;
        assert!(told(&response).0.starts_with("wrote"), "{response}");
        assert_eq!(desk.runs().len(), runs);
    }
}

/// Says so when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

// "Cancellation passes through."
#[tokio::test]
async fn a_call_that_the_client_cancels_is_cancelled_at_the_server() {
    let (begun, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let (tells, drops) = (Arc::clone(&begun), Arc::clone(&ended));
    let tool = tool_fn("write", "Writes for ever", move |_: NoArgs| {
        let (tells, dropped) = (Arc::clone(&tells), Dropped(Arc::clone(&drops)));
        async move {
            tells.notify_one();
            tokio::time::sleep(Duration::from_secs(3600)).await;
            drop(dropped);
            Ok::<_, ToolError>("wrote")
        }
    });
    let launch = upstream(FunctionToolset::new().tool(tool)).await;
    let guard = Guard::new("files", launch, Ledger::new(MemoryStore::new()));
    let guard = guard.danger_accept_all_tools().layers(|tools| tools);
    let mut client = Client::earlier(guard.server(), "2025-11-25", json!({})).await;
    let id = client.begin("tools/call", json!({"name": "write", "arguments": {}})).await;
    begun.notified().await;
    assert!(!ended.load(Ordering::SeqCst));
    let cancelled = json!({"requestId": id, "reason": "no longer wanted"});
    client
        .send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}))
        .await;
    wait("the server's tool is stopped", || ended.load(Ordering::SeqCst)).await;
    assert_eq!(
        client.ask("tools/list", json!({})).await["result"]["tools"][0]["name"],
        json!("write")
    );
}
