//! One approval, one run: states that travel through clients, and outcomes that were not delivered (rules M2, M3).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use countersign::deferred::Answer;
use countersign::ledger::{Ledger, MemoryStore};
use countersign::seal::SealKeys;
use countersign::{FunctionToolset, ToolError, ToolMiddlewareExt, ToolsExt, tool_fn};
use countersign_mcp::serve;
use countersign_rules::Rules;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::client::{Client, NoArgs, decide_the_pending, forms, told, yes};
use super::process::Desk;

const MINUTE: i64 = 60_000;

/// Ann's client of the newest revision, behind a guard whose tools are accepted.
async fn newest(desk: &Desk) -> Client {
    let mut client = Client::newest(desk.guard(&desk.told()), forms()).await;
    client.ask("tools/list", json!({})).await;
    desk.accept_tools().await;
    client
}

/// Makes a call, and gives the state with which its question comes.
async fn state(client: &mut Client, n: u32) -> Value {
    let response = client.call("write", json!({"n": n})).await;
    assert_eq!(response["result"]["resultType"], "input_required", "{response}");
    response["result"]["requestState"].clone()
}

/// Returns `true` if the call has run, by its response.
fn has_run(response: &Value) -> bool {
    told(response).0.starts_with("wrote")
}

// Rule M2: "A request state that is cut, forged, too old, or for another call or person is refused."
#[tokio::test]
async fn a_state_that_was_cut_or_changed_runs_nothing() {
    let desk = Desk::new();
    let mut client = newest(&desk).await;
    let state = state(&mut client, 1).await;
    let text = state.as_str().unwrap();
    let mut bad: Vec<String> =
        (0..text.len()).step_by(5).map(|end| text[..end].to_owned()).collect();
    bad.extend((0..text.len()).step_by(3).map(|at| {
        let other = if &text[at..=at] == "A" { "B" } else { "A" };
        format!("{}{other}{}", &text[..at], &text[at + 1..])
    }));
    bad.extend([format!("{text}A"), format!(" {text}"), text.repeat(2), "x".repeat(1 << 20)]);
    for bad in bad.into_iter().filter(|bad| bad != text) {
        let response = client.retry("write", json!({"n": 1}), &json!(bad), yes()).await;
        assert!(response["error"]["message"].is_string(), "{bad}: {response}");
    }
    assert!(desk.runs().is_empty());
    assert!(has_run(&client.retry("write", json!({"n": 1}), &state, yes()).await));
    assert_eq!(desk.runs().len(), 1);
}

#[tokio::test]
async fn a_state_of_another_person_call_or_server_runs_nothing() {
    let desk = Desk::new();
    let mut client = newest(&desk).await;
    let state = state(&mut client, 1).await;
    let bob = desk.guard_of("bob", &["--wait", "1"], &desk.told());
    let mut elsewhere = desk.told();
    elsewhere["name"] = json!("another server");
    for command in [bob, desk.guard(&elsewhere)] {
        let mut other = Client::newest(command, forms()).await;
        let response = other.retry("write", json!({"n": 1}), &state, yes()).await;
        let text = response["error"]["message"].as_str().unwrap();
        assert!(text.contains("another call"), "{response}");
    }
    let response = client.retry("write", json!({"n": 2}), &state, yes()).await;
    assert!(response["error"]["message"].as_str().unwrap().contains("another call"), "{response}");
    assert!(desk.runs().is_empty());
}

#[tokio::test]
async fn a_state_that_is_too_old_or_sealed_by_another_key_runs_nothing() {
    let desk = Desk::new();
    let mut client = newest(&desk).await;
    let state = state(&mut client, 1).await;
    let secret = std::fs::read(desk.user.state("seal.key")).unwrap();
    let (keys, now) = (SealKeys::new("local", secret).unwrap(), SystemTime::now());
    let purpose = "mcp request state";
    let claims: Value = keys.open(purpose, state.as_str().unwrap(), now).unwrap();
    let hour = Duration::from_secs(3600);
    let old = keys.seal(purpose, &claims, now - Duration::from_secs(1)).unwrap();
    let others = SealKeys::new("local", (0..32).collect::<Vec<u8>>()).unwrap().seal(
        purpose,
        &claims,
        now + hour,
    );
    let other_purpose = keys.seal("another purpose", &claims, now + hour).unwrap();
    for bad in [old, others.unwrap(), other_purpose] {
        let response = client.retry("write", json!({"n": 1}), &json!(bad), yes()).await;
        let text = response["error"]["message"].as_str().unwrap();
        assert!(text.starts_with("The request state is refused"), "{response}");
    }
    assert!(desk.runs().is_empty());
    let same = json!(keys.seal(purpose, &claims, now + hour).unwrap());
    assert!(
        has_run(&client.retry("write", json!({"n": 1}), &same, yes()).await),
        "it was sealed alike"
    );
}

// Rule M3: "Of any number of equal calls, over all processes, one claims an approval, before the tool runs."
#[tokio::test]
async fn one_state_at_four_guards_at_once_runs_one_call() {
    let desk = Desk::new();
    let mut first = newest(&desk).await;
    let mut clients = Vec::new();
    for _ in 0..4 {
        clients.push(Client::newest(desk.guard(&desk.told()), forms()).await);
    }
    for round in 0..5 {
        let state = state(&mut first, round).await;
        let retries = clients.iter_mut().map(|client| async {
            client.retry("write", json!({"n": round}), &state, yes()).await
        });
        let responses = futures::future::join_all(retries).await;
        let ran = responses.iter().filter(|response| has_run(response)).count();
        assert_eq!((ran, desk.runs().len()), (1, round as usize + 1), "{responses:?}");
        // "Single-use", also in the guard that has sent it, and without an answer.
        for answer in [yes(), Value::Null] {
            let response = first.retry("write", json!({"n": round}), &state, answer).await;
            let text = response["error"]["message"].as_str().unwrap();
            assert!(text.contains("used already"), "{response}");
        }
    }
    let runs = desk.runs();
    let keys: std::collections::BTreeSet<_> = runs.iter().map(|run| run["key"].as_str()).collect();
    assert_eq!(keys.len(), runs.len(), "a key of its own for each approval: {runs:?}");
}

// Rule M3: the server of an ask is the command that is started, never the name that it gives itself, nor the one that
// the user gives to two of them.
#[tokio::test]
async fn servers_of_equal_names_share_no_approval() {
    for options in [&["--wait", "1"][..], &["--wait", "1", "--name", "files"]] {
        let desk = Desk::new();
        let guard = |server: u32| {
            let mut told = desk.told();
            (told["name"], told["server"]) = (json!("files"), json!(server));
            desk.guard_of("ann", options, &told)
        };
        let mut one = Client::earlier(guard(1), "2025-11-25", json!({})).await;
        desk.accept_tools().await;
        let mut other = Client::earlier(guard(2), "2025-11-25", json!({})).await;
        desk.accept_tools().await;
        assert!(
            told(&one.call("write", json!({"n": 1})).await).0.contains("waits for an approval")
        );
        desk.approve(&desk.asked().await, "bob").await;
        let response = other.call("write", json!({"n": 1})).await;
        assert!(told(&response).0.contains("waits for an approval"), "{options:?}: {response}");
        assert!(desk.runs().is_empty());
        assert!(has_run(&one.call("write", json!({"n": 1})).await));
    }
}

// Rule M3: "An outcome that could not be delivered answers one equal call within 10 minutes, marked as such".
#[tokio::test]
async fn the_outcome_of_a_call_whose_client_has_died_is_delivered_once() {
    let desk = Desk::new();
    let mut client = Client::earlier(desk.guard(&desk.held()), "2025-11-25", json!({})).await;
    desk.accept_tools().await;
    let call = json!({"name": "write", "arguments": {"n": 1}});
    assert!(told(&client.ask("tools/call", call.clone()).await).0.contains("waits for"));
    desk.approve(&desk.asked().await, "bob").await;
    client.begin("tools/call", call.clone()).await;
    desk.begun(1).await;
    let (ends, opens) = (client.goes(), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        std::fs::write(desk.gate(), "").unwrap();
    });
    tokio::join!(ends, opens);

    let mut client = Client::earlier(desk.guard(&desk.held()), "2025-11-25", json!({})).await;
    let response = client.ask("tools/call", call.clone()).await;
    assert!(has_run(&response), "{response} {}", desk.logged());
    assert_eq!(response["result"]["_meta"]["countersign/deliveredLate"], true, "{response}");
    assert!(told(&client.ask("tools/call", call).await).0.contains("waits for an approval"));
    assert_eq!(desk.runs().len(), 1);
}

/// A call that was approved, and has run while its client died.
struct Undelivered {
    ledger: Ledger,
    time: Arc<AtomicI64>,
    state: Value,
    tools: FunctionToolset,
}

impl Undelivered {
    fn server(&self) -> countersign_mcp::Server {
        let keys = SealKeys::new("k", (0..32).collect::<Vec<u8>>()).unwrap();
        let tools = self.tools.clone().approval_required();
        let server = serve(tools).ledger(self.ledger.clone()).seal_keys(keys);
        server.wait(Duration::from_millis(200)).principal("ann")
    }

    async fn new() -> Self {
        let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (tells, waits) = (Arc::clone(&begun), Arc::clone(&end));
        let tool = tool_fn("write", "Writes", move |_: NoArgs| {
            let (tells, waits) = (Arc::clone(&tells), Arc::clone(&waits));
            async move {
                tells.notify_one();
                waits.notified().await;
                Ok::<_, ToolError>("wrote")
            }
        });
        let time = Arc::new(AtomicI64::new(1_000));
        let clock = Arc::clone(&time);
        let store = MemoryStore::with_clock(move || clock.load(Ordering::SeqCst));
        let tools = FunctionToolset::new().tool(tool);
        let mut this = Self { ledger: Ledger::new(store), time, state: Value::Null, tools };
        let mut client = Client::newest(this.server(), forms()).await;
        let asked = client.call("write", json!({})).await;
        this.state = asked["result"]["requestState"].clone();
        let answer = json!({"countersign": yes()});
        let call = json!({"name": "write", "arguments": {}, "requestState": this.state, "inputResponses": answer});
        client.begin("tools/call", call).await;
        begun.notified().await;
        tokio::join!(client.goes(), async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            end.notify_one();
        });
        this
    }

    /// The responses to the equal call, without the state and with it, after so many milliseconds.
    async fn later(time: i64) -> [Value; 2] {
        let mut responses = [Value::Null, Value::Null];
        for (with_state, response) in responses.iter_mut().enumerate() {
            let this = Self::new().await;
            this.time.fetch_add(time, Ordering::SeqCst);
            let mut client = Client::newest(this.server(), forms()).await;
            let mut again = async || match with_state {
                0 => client.call("write", json!({})).await,
                _ => client.retry("write", json!({}), &this.state, yes()).await,
            };
            *response = again().await;
            assert!(!has_run(&again().await), "it is delivered once");
        }
        responses
    }
}

#[tokio::test]
async fn an_outcome_is_delivered_late_within_ten_minutes() {
    for response in Undelivered::later(10 * MINUTE - 1).await {
        assert_eq!(told(&response).0, "wrote", "{response}");
        assert_eq!(response["result"]["_meta"]["countersign/deliveredLate"], true, "{response}");
    }
}

#[tokio::test]
async fn an_outcome_is_not_delivered_after_ten_minutes() {
    let [call, retry] = Undelivered::later(10 * MINUTE).await;
    assert_eq!(call["result"]["resultType"], "input_required", "it is asked anew: {call}");
    assert!(retry["error"]["message"].as_str().unwrap().contains("used already"), "{retry}");
}

// Rule M3: "An approval that was not used is valid for 15 minutes."
#[tokio::test]
async fn an_approval_that_was_not_used_in_time_is_asked_for_again() {
    for (later, runs) in [(15 * MINUTE - 1, true), (15 * MINUTE, false)] {
        let time = Arc::new(AtomicI64::new(1_000));
        let clock = Arc::clone(&time);
        let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::SeqCst)));
        let (tools, _) = super::client::payments();
        let server = serve(tools.approval_required()).ledger(ledger.clone());
        let server = server.wait(Duration::from_millis(100));
        let mut client = Client::earlier(server, "2025-11-25", json!({})).await;
        client.call("pay", json!({"euros": 5})).await;
        decide_the_pending(&ledger, "bob", Answer::Approve { args: None }).await;
        time.fetch_add(later, Ordering::SeqCst);
        let (text, _) = told(&client.call("pay", json!({"euros": 5})).await);
        assert_eq!(text == "paid 5", runs, "after {later} ms: {text}");
    }
}

// Rule R7: a limit counts a call once, however often its client makes it until it is approved.
#[tokio::test]
async fn a_call_that_is_made_again_is_counted_once() {
    let ledger = Ledger::new(MemoryStore::new());
    let text = "version = 1\n[[rule]]\nid = 'few'\nask = 'pay'\n\
                at_most = { calls = 2, within = '1h', else = 'deny' }";
    let rules = Rules::builder().lexical().text("mine.toml", text).counts(ledger.clone());
    let (tools, paid) = super::client::payments();
    let rules = rules.load().unwrap();
    let server = || {
        let keys = SealKeys::new("k", (0..32).collect::<Vec<u8>>()).unwrap();
        let served = serve(tools.clone().layered(rules.clone().into_layer()));
        let served = served.ledger(ledger.clone()).seal_keys(keys);
        served.wait(Duration::from_millis(50)).principal("ann")
    };
    let call = json!({"euros": 5});

    let mut earlier = Client::earlier(server(), "2025-11-25", json!({})).await;
    for _ in 0..3 {
        let (text, _) = told(&earlier.call("pay", call.clone()).await);
        assert!(text.contains("waits for an approval"), "{text}");
    }
    decide_the_pending(&ledger, "bob", Answer::Approve { args: None }).await;
    assert_eq!(told(&earlier.call("pay", call.clone()).await).0, "paid 5");

    let mut newest = Client::newest(server(), forms()).await;
    let state = newest.call("pay", call.clone()).await["result"]["requestState"].clone();
    let response = newest.retry("pay", call.clone(), &state, yes()).await;
    assert_eq!(told(&response).0, "paid 5", "{response}");
    let (text, _) = told(&newest.call("pay", call).await);
    assert!(text.contains("at most 2 calls"), "{text}");
    assert_eq!(super::client::times(&paid), 2);
}

// Rule M3: "An equal call joins the pending ask."
#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_once_have_one_ask() {
    let place = tempfile::TempDir::new().unwrap();
    let store = countersign_sqlite::SqliteStore::open(place.path().join("asks.db")).await.unwrap();
    let ledger = Ledger::new(store);
    let (tools, paid) = super::client::payments();
    let server = serve(tools.approval_required()).ledger(ledger.clone()).principal("ann");
    let mut client =
        Client::earlier(server.wait(Duration::from_millis(300)), "2025-11-25", json!({})).await;
    for round in 0..8 {
        let mut calls = Vec::new();
        for _ in 0..8 {
            let call = json!({"name": "pay", "arguments": {"euros": round}});
            calls.push(client.begin("tools/call", call).await);
        }
        for call in calls {
            let response = client.response(call).await;
            assert!(told(&response).0.contains("waits for an approval"), "{response}");
        }
        // "one ask is pending", and the no to it is the last word.
        let no = Answer::Deny { message: "never".to_owned() };
        decide_the_pending(&ledger, "bob", no).await;
        let (text, is_error) = told(&client.call("pay", json!({"euros": round})).await);
        assert!(is_error && text.contains("never"), "{text}");
    }
    assert_eq!(super::client::times(&paid), 0);
}
