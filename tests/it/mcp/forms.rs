//! Forms in clients: late answers, forms that are closed, and forms that are withdrawn (rules M2, M3, M5).

use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Ledger, MemoryStore};
use countersign::{Tools, ToolsExt};
use countersign_mcp::{Server, serve};
use serde_json::{Value, json};

use super::answering::until;
use super::client::{Client, decide_the_pending, forms, no, payments, times, told, yes};
use super::sessions::{Web, call, listening};

const ERAS: [&str; 2] = ["2025-06-18", "2025-11-25"];

fn ledger() -> Ledger {
    Ledger::new(MemoryStore::new())
}

fn server(tools: impl Into<Tools>, ledger: &Ledger, wait: Duration) -> Server {
    serve(tools).ledger(ledger.clone()).principal("ann").wait(wait)
}

const SHORT: Duration = Duration::from_millis(200);
const LONG: Duration = Duration::from_secs(30);

fn pay(euros: u32) -> Value {
    json!({"name": "pay", "arguments": {"euros": euros}})
}

/// Waits until so many asks are in this state, and gives them.
async fn records(ledger: &Ledger, state: AskState, count: usize) -> Vec<AskRecord> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        let records = ledger.list(Some(state), 99).await.unwrap().records;
        if records.len() == count {
            return records;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("there are not {count} asks in the state {state:?}")
}

// Rule M3: "The form of an ask is answered for as long as the ask is open and the connection lasts".
#[tokio::test]
async fn a_late_answer_is_the_decision_that_an_equal_call_finds() {
    for era in ERAS {
        let (tools, paid) = payments();
        let ledger = ledger();
        let server = server(tools.approval_required(), &ledger, SHORT);
        let mut client = Client::earlier(server, era, forms()).await;
        let (text, error) = told(&client.ask("tools/call", pay(5)).await);
        assert!(error && text.contains("waits for an approval"), "{text}");
        client.answer(0, yes()).await;
        let decided = records(&ledger, AskState::Decided, 1).await;
        assert_eq!(decided[0].decision.as_ref().unwrap().by, ["ann"]);
        assert_eq!(times(&paid), 0, "an approval runs nothing by itself");
        assert_eq!(told(&client.ask("tools/call", pay(5)).await).0, "paid 5");
        assert_eq!((client.asked.len(), times(&paid)), (1, 1));

        client.ask("tools/call", pay(6)).await;
        client.answer(1, no()).await;
        records(&ledger, AskState::Decided, 1).await;
        let (text, _) = told(&client.ask("tools/call", pay(6)).await);
        assert!(text.starts_with("Denied by ann"), "{text}");
        assert_eq!((client.asked.len(), times(&paid)), (2, 1));
    }
}

/// Calls over HTTP until the request has ended without an answer, and gives the form that the person still sees.
async fn asked_over_http(web: &Web, euros: u32) -> Value {
    let mut calling = web.begin("POST", &call("pay", json!({"euros": euros}))).await;
    let read = until(&mut calling, "waits for an approval").await;
    let line = read.lines().find(|line| line.contains("elicitation/create")).unwrap();
    serde_json::from_str(line.strip_prefix("data:").unwrap().trim()).unwrap()
}

// Rule M3: the same over HTTP, where the answer is a request of its own and the stream of the question has ended.
#[tokio::test]
async fn a_late_answer_over_http_is_the_decision_that_an_equal_call_finds() {
    let (tools, paid) = payments();
    let ledger = ledger();
    let web = listening(server(tools.approval_required(), &ledger, SHORT)).await;
    let web = web.opened_with(forms()).await;
    let form = asked_over_http(&web, 5).await;
    let answer = |form: &Value, answer: Value| {
        json!({"jsonrpc": "2.0", "id": form["id"], "result": answer}).to_string()
    };
    assert!(web.send("POST", &answer(&form, yes())).await.0 < 300);
    records(&ledger, AskState::Decided, 1).await;
    assert_eq!(times(&paid), 0, "an approval runs nothing by itself");
    assert_eq!(told(&web.call("pay", json!({"euros": 5})).await.1).0, "paid 5");

    // Another one is withdrawn on the stream of the session, once its ask is decided elsewhere.
    let mut stream = web.begin("GET", "").await;
    let form = asked_over_http(&web, 6).await;
    decide_the_pending(&ledger, "bob", Answer::Deny { message: "keep it".into() }).await;
    let withdrawn = until(&mut stream, "notifications/cancelled").await;
    assert!(withdrawn.contains(&format!("\"requestId\":{}", form["id"])), "{withdrawn}");
    web.send("POST", &answer(&form, yes())).await;
    let (text, _) = told(&web.call("pay", json!({"euros": 6})).await.1);
    assert_eq!((text.as_str(), times(&paid)), ("Denied by bob: keep it", 1));
}

// Rule M2: "a form whose ask is decided elsewhere is withdrawn", and its answer is none.
#[tokio::test]
async fn a_form_is_withdrawn_when_its_ask_is_decided_elsewhere() {
    for wait in [LONG, SHORT] {
        let (tools, paid) = payments();
        let ledger = ledger();
        let server = server(tools.approval_required(), &ledger, wait);
        let mut client = Client::earlier(server, ERAS[1], forms()).await;
        let call = client.begin("tools/call", pay(5)).await;
        client.until(|client| client.asked.len() == 1).await;
        if wait == SHORT {
            // The form is still open when its request has ended.
            assert!(told(&client.response(call).await).0.contains("waits for an approval"));
        }
        decide_the_pending(&ledger, "bob", Answer::Deny { message: "keep it".into() }).await;
        if wait == LONG {
            assert_eq!(told(&client.response(call).await).0, "Denied by bob: keep it");
        }
        let withdrawn = |client: &Client| {
            let mut cancelled =
                client.notified.iter().filter(|it| it["method"] == "notifications/cancelled");
            cancelled.any(|it| it["params"]["requestId"] == client.asked_ids[0])
        };
        client.until(withdrawn).await;
        client.answer(0, yes()).await;
        if wait == SHORT {
            assert_eq!(told(&client.ask("tools/call", pay(5)).await).0, "Denied by bob: keep it");
        }
        assert_eq!(times(&paid), 0);
    }
}

// Rule M3: "Of any number of calls at once, through a client that shows one form at a time, each answer has its result."
#[tokio::test]
async fn four_calls_through_a_client_that_shows_one_form_at_a_time_have_four_results() {
    let (tools, paid) = payments();
    let ledger = ledger();
    let server = server(tools.approval_required(), &ledger, Duration::from_millis(500));
    let mut client = Client::earlier(server, ERAS[1], forms()).await;
    let mut calls = Vec::new();
    for euros in 1..=4 {
        calls.push((euros, client.begin("tools/call", pay(euros)).await));
    }
    client.until(|client| client.asked.len() == 4).await;
    for form in 0..4 {
        tokio::time::sleep(Duration::from_millis(250)).await;
        client.answer(form, yes()).await;
    }
    let mut late = 0;
    for (euros, call) in calls {
        let mut response = client.response(call).await;
        if told(&response).0.contains("waits for an approval") {
            late += 1;
            response = client.ask("tools/call", pay(euros)).await;
        }
        assert_eq!(told(&response).0, format!("paid {euros}"));
    }
    assert!(late > 0, "the last forms were answered late");
    assert_eq!((client.asked.len(), times(&paid)), (4, 4));
}

// Rule M2: "A form that is closed, or sent without a decision, ends the call at once, and is not shown again for it."
#[tokio::test]
async fn a_form_that_is_closed_ends_the_call_and_its_ask_stays() {
    for answer in [
        json!({"action": "cancel"}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {}}),
        json!({"action": "accept", "content": {"decision": "Approve"}}),
    ] {
        for newest in [false, true] {
            let (tools, paid) = payments();
            let ledger = ledger();
            let server = server(tools.approval_required(), &ledger, LONG);
            let begun = Instant::now();
            let (mut client, response) = if newest {
                let mut client = Client::newest(server, forms()).await;
                let state =
                    client.ask("tools/call", pay(5)).await["result"]["requestState"].clone();
                let response =
                    client.retry("pay", json!({"euros": 5}), &state, answer.clone()).await;
                (client, response)
            } else {
                let mut client = Client::earlier(server, ERAS[1], forms()).await;
                client.person = Some(answer.clone());
                let response = client.ask("tools/call", pay(5)).await;
                assert_eq!(client.asked.len(), 1, "{answer}");
                (client, response)
            };
            let (text, error) = told(&response);
            let [pending] = &records(&ledger, AskState::Pending, 1).await[..] else { panic!() };
            assert!(error && text.contains(pending.ask.id()), "{answer}: {response}");
            assert!(text.contains("closed without an answer"), "{answer}: {text}");
            assert!(begun.elapsed() < LONG / 2, "the call is not held");
            // The decision about it is found all the same.
            decide_the_pending(&ledger, "bob", Answer::Approve { args: None }).await;
            assert_eq!(told(&client.ask("tools/call", pay(5)).await).0, "paid 5");
            assert_eq!(times(&paid), 1);
        }
    }
}

// Rule M2: a person who closes a form after another one has approved has changed nothing.
#[tokio::test]
async fn a_form_that_is_closed_after_a_decision_elsewhere_does_not_hide_it() {
    let (tools, paid) = payments();
    let ledger = ledger();
    let mut client =
        Client::newest(server(tools.approval_required(), &ledger, LONG), forms()).await;
    let state = client.ask("tools/call", pay(5)).await["result"]["requestState"].clone();
    decide_the_pending(&ledger, "bob", Answer::Approve { args: None }).await;
    let response =
        client.retry("pay", json!({"euros": 5}), &state, json!({"action": "cancel"})).await;
    assert_eq!((told(&response).0.as_str(), times(&paid)), ("paid 5", 1), "{response}");
}

// Rule M2: "one form for each ask": equal calls share it, and each approval runs one of them.
#[tokio::test]
async fn equal_calls_share_a_form_and_each_approval_runs_one() {
    let (tools, paid) = payments();
    let ledger = ledger();
    let mut client =
        Client::earlier(server(tools.approval_required(), &ledger, LONG), ERAS[1], forms()).await;
    let calls =
        [client.begin("tools/call", pay(5)).await, client.begin("tools/call", pay(5)).await];
    client.until(|client| client.asked.len() == 1).await;
    // Time for a second form, which would be one too many.
    tokio::time::sleep(SHORT).await;
    client.answer(0, yes()).await;
    client.until(|client| client.asked.len() == 2).await;
    assert_eq!(times(&paid), 1);
    client.answer(1, yes()).await;
    for call in calls {
        assert_eq!(told(&client.response(call).await).0, "paid 5");
    }
    assert_eq!((client.asked.len(), times(&paid)), (2, 2));
}

// Rule M3: a call that waits for a person ends with its connection.
#[tokio::test]
async fn a_client_that_leaves_while_its_form_is_open_does_not_keep_the_server() {
    let (tools, paid) = payments();
    let ledger = ledger();
    let mut client =
        Client::earlier(server(tools.approval_required(), &ledger, LONG), ERAS[1], forms()).await;
    client.begin("tools/call", pay(5)).await;
    client.until(|client| client.asked.len() == 1).await;
    let left = Instant::now();
    client.goes().await;
    assert!(left.elapsed() < LONG / 2, "{:?}", left.elapsed());
    records(&ledger, AskState::Pending, 1).await;
    assert_eq!(times(&paid), 0);
}
