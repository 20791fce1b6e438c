//! Requests that two readers would understand differently, or that two requests would share: nothing runs, and no person
//! is asked (rules T5, L0, M3, M6).

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::{Tools, ToolsExt as _};
use countersign_mcp::{Server, serve};
use serde_json::{Value, json};

use super::client::{Client, forms, payments, times, told, yes};
use super::sessions::{call, listening};

const ERA: &str = "2025-11-25";

/// Params of `tools/call`, and what is said of them.
const PARAMS: [(&str, &str); 9] = [
    (r#"{"name":"pay","arguments":{"euros":100000000000000000001}}"#, EXACT),
    (r#"{"name":"pay","arguments":{"euros":18446744073709551616}}"#, EXACT),
    (r#"{"name":"pay","arguments":{"deep":[{"euros":-9223372036854775809}]}}"#, EXACT),
    (r#"{"name":"pay","arguments":{"euros":9007199254740993.0}}"#, EXACT),
    (r#"{"name":"pay","arguments":{"euros":1e-400}}"#, EXACT),
    (r#"{"name":"pay","arguments":{"euros":5,"euros":7}}"#, "the key `euros` appears twice"),
    (r#"{"name":"pay","arguments":{"a":{"b":1,"\u0062":2}}}"#, "the key `b` appears twice"),
    (
        r#"{"name":"pay","arguments":{"euros":5},"arguments":{"euros":7}}"#,
        "the key `arguments` appears twice",
    ),
    (r#"{"name":"no","name":"pay","arguments":{"euros":5}}"#, "the key `name` appears twice"),
];
const EXACT: &str = "cannot be kept exactly: send it as a string";

/// A tool that asks, the asks of its calls, and how often it has run.
fn asking() -> (Server, Ledger, Arc<AtomicU32>) {
    let (tools, paid) = payments();
    let ledger = Ledger::new(MemoryStore::new());
    let tools: Tools = tools.approval_required();
    let server = serve(tools).ledger(ledger.clone()).wait(Duration::from_secs(20));
    (server, ledger, paid)
}

async fn parked(ledger: &Ledger) -> usize {
    ledger.list(None, 9).await.unwrap().records.len()
}

fn is_refused(answer: &Value, code: i64, says: &str) {
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains(says) && text.ends_with("Nothing has run."), "{text}");
}

// Rule T5: "repeated keys, and numbers that would lose digits before the point, become zero or become infinite, are
// errors", where a client calls as where a model does: a fingerprint (L0) is of "the canonical arguments (RFC 8785, with
// every digit of an integer)", so that one approval is not found by a call with other digits (M3).
#[tokio::test]
async fn arguments_that_two_readers_would_understand_differently_are_refused() {
    let (server, ledger, paid) = asking();
    let (http, web_ledger, _) = asking();
    let mut client = Client::earlier(server, ERA, forms()).await;
    let web = listening(http).await;
    let session = web.opened_with(forms()).await;
    for (params, says) in PARAMS {
        let id = client.begin_raw(params).await;
        is_refused(&client.response(id).await, -32602, says);
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{params}}}"#);
        let newest = web.with("mcp-protocol-version", "2026-07-28").with("mcp-name", "pay");
        for web in [&session, &newest.with("mcp-method", "tools/call")] {
            let (status, _, answers) = web.send("POST", &body).await;
            assert_eq!((status, &answers[0]["id"]), (400, &json!(7)), "{answers:?}");
            is_refused(&answers[0], -32602, says);
        }
    }
    // A repeated part of the message itself.
    let twice = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"},"params":{"name":"pay","arguments":{"euros":5}}}"#;
    let (status, _, answers) = session.send("POST", twice).await;
    assert_eq!(status, 400, "{answers:?}");
    is_refused(&answers[0], -32602, "duplicate field `params`");
    assert_eq!((parked(&ledger).await, parked(&web_ledger).await, times(&paid)), (0, 0, 0));
    assert!(client.asked.is_empty(), "no person is asked: {:?}", client.asked);
}

// Rule M6: such a request is refused "also with a request state", and the state is not used by it.
#[tokio::test]
async fn a_state_does_not_let_such_arguments_in() {
    let (server, ledger, paid) = asking();
    let mut client = Client::newest(server, forms()).await;
    let asked = client.call("pay", json!({"euros": 5})).await;
    let state = &asked["result"]["requestState"];
    let (meta, yes) = (client.meta.clone().unwrap(), json!({"countersign": yes()}));
    for arguments in [r#"{"euros":5,"euros":5}"#, r#"{"euros":100000000000000000001}"#] {
        let params = format!(
            r#"{{"name":"pay","arguments":{arguments},"requestState":{state},"inputResponses":{yes},"_meta":{meta}}}"#
        );
        let id = client.begin_raw(&params).await;
        assert_eq!(client.response(id).await["error"]["code"], -32602);
    }
    let twice = yes.to_string().replace(r#""decision":"#, r#""decision":"deny","decision":"#);
    let params = format!(
        r#"{{"name":"pay","arguments":{{"euros":5}},"requestState":{state},"inputResponses":{twice},"_meta":{meta}}}"#
    );
    let id = client.begin_raw(&params).await;
    is_refused(&client.response(id).await, -32602, "the key `decision` appears twice");
    let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap().records;
    assert_eq!((pending.len(), times(&paid)), (1, 0), "nothing was approved");
    let state = state.clone();
    let answer = yes["countersign"].clone();
    let ran = client.retry("pay", json!({"euros": 5}), &state, answer).await;
    assert_eq!((told(&ran).0, times(&paid)), ("paid 5".to_owned(), 1));
}

// Rule M6: "A request whose id is that of one that is still being answered, in the same session, is refused by an error
// -32600, and no person is asked about it."
#[tokio::test]
async fn a_second_request_with_an_id_in_use_is_refused() {
    let (server, ledger, paid) = asking();
    let mut client = Client::earlier(server, ERA, forms()).await;
    let id = client.begin("tools/call", json!({"name": "pay", "arguments": {"euros": 5}})).await;
    client.until(|client| !client.asked.is_empty()).await;
    for (method, params) in
        [("tools/call", json!({"name": "pay", "arguments": {"euros": 7}})), ("ping", json!({}))]
    {
        let second = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        client.send(&second).await;
        is_refused(&client.response(id).await, -32600, "an earlier request with the same `id`");
    }
    assert_eq!((client.asked.len(), parked(&ledger).await), (1, 1), "no person is asked about it");
    client.answer(0, yes()).await;
    let first = client.response(id).await;
    assert_eq!((told(&first).0, times(&paid)), ("paid 5".to_owned(), 1), "the first is answered");
    // Once it is answered, its id is free.
    client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "ping"})).await;
    assert!(client.response(id).await["result"].is_object());
}

// The same over HTTP, where another session may use the same id.
#[tokio::test]
async fn a_second_request_with_an_id_in_use_is_refused_over_http() {
    let (server, ledger, paid) = asking();
    let web = listening(server).await;
    let session = web.opened_with(forms()).await;
    let mut first = session.begin("POST", &call("pay", json!({"euros": 5}))).await;
    let asked = super::answering::until(&mut first, "elicitation/create").await;
    let (status, _, answers) = session.send("POST", &call("pay", json!({"euros": 7}))).await;
    assert_eq!((status, &answers[0]["id"]), (400, &json!(1)), "{answers:?}");
    is_refused(&answers[0], -32600, "an earlier request with the same `id`");
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(web.opened().await.send("POST", &ping).await.0, 200, "another session has its own");
    assert_eq!(parked(&ledger).await, 1, "no person is asked about the second");

    let asked = asked.lines().find(|line| line.contains("elicitation/create")).unwrap();
    let asked: Value = serde_json::from_str(asked.strip_prefix("data:").unwrap().trim()).unwrap();
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": yes()});
    session.send("POST", &answer.to_string()).await;
    super::answering::until(&mut first, "paid 5").await;
    assert_eq!(times(&paid), 1);
    assert_eq!(session.send("POST", &ping).await.0, 200, "its id is free");
}
