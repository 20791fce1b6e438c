//! Guards, clients and servers that are killed at every step of a call (rules M3, M6).

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::AskState;
use countersign_mcp::ACCEPT_TOOLS;
use serde_json::{Value, json};

use super::client::{Client, told};
use super::process::Desk;
use crate::support::Dice;

const ERA: &str = "2025-11-25";

async fn client(command: Command) -> Client {
    Client::earlier(command, ERA, json!({})).await
}

/// A client of Ann's guard, whose server's tools are accepted, and an approved call.
async fn approved(desk: &Desk, server: &Value) -> Client {
    let mut client = client(desk.guard(server)).await;
    desk.accept_tools().await;
    let response = client.call("write", json!({"n": 1})).await;
    assert!(told(&response).0.contains("waits for an approval"), "{response}");
    desk.approve(&desk.asked().await, "bob").await;
    client
}

async fn begin(client: &mut Client) -> u64 {
    client.begin("tools/call", json!({"name": "write", "arguments": {"n": 1}})).await
}

fn kill(process: u64) {
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
}

/// The reasons of the questions about the pending call.
async fn reasons(desk: &Desk) -> String {
    let record = desk.asked().await;
    let reasons = record.ask.questions().iter().map(|question| question.reason().to_owned());
    reasons.collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_guard_that_is_killed_while_a_person_decides_loses_nothing() {
    let desk = Desk::new();
    let mut first = client(desk.guard(&desk.told())).await;
    desk.accept_tools().await;
    begin(&mut first).await;
    let asked = desk.asked().await;
    first.kill().await;
    desk.approve(&asked, "bob").await;
    let mut again = client(desk.guard(&desk.told())).await;
    let response = again.call("write", json!({"n": 1})).await;
    assert!(told(&response).0.starts_with("wrote"), "{response}");
    assert!(told(&again.call("write", json!({"n": 1})).await).0.contains("waits for an approval"));
    assert_eq!(desk.runs().len(), 1);
    assert_eq!(desk.runs()[0]["key"], asked.ask.id());
}

// Rule M3: "after an unknown outcome an equal call is asked about anew".
#[tokio::test]
async fn a_call_whose_guard_was_killed_in_it_is_not_repeated_silently() {
    let desk = Desk::new();
    let mut first = approved(&desk, &desk.held()).await;
    begin(&mut first).await;
    desk.begun(1).await;
    first.kill().await;
    std::fs::write(desk.gate(), "").unwrap();
    let mut again = client(desk.guard(&desk.held())).await;
    assert!(told(&again.call("write", json!({"n": 1})).await).0.contains("waits for an approval"));
    assert_eq!(desk.runs().len(), 1);
    assert!(reasons(&desk).await.contains("may have run"), "{}", reasons(&desk).await);
    desk.approve(&desk.asked().await, "bob").await;
    assert!(told(&again.call("write", json!({"n": 1})).await).0.starts_with("wrote"));
    let runs = desk.runs();
    assert_ne!(runs[0]["key"], runs[1]["key"], "another approval, another key");
}

// Rule M6: "A server that dies in a call leaves *may have run*."
#[tokio::test]
async fn a_call_whose_server_was_killed_in_it_may_have_run() {
    let desk = Desk::new();
    let mut client = approved(&desk, &desk.held()).await;
    let id = begin(&mut client).await;
    desk.begun(1).await;
    kill(desk.servers(&Value::Null)[0]);
    let response = client.response(id).await;
    let (text, error) = told(&response);
    assert!(error && text.contains("may have run"), "{response}");
    // The next call starts the server again, and is another question.
    std::fs::write(desk.gate(), "").unwrap();
    assert!(told(&client.call("write", json!({"n": 1})).await).0.contains("waits for an approval"));
    assert!(reasons(&desk).await.contains("may have run"), "{}", reasons(&desk).await);
    desk.approve(&desk.asked().await, "bob").await;
    assert!(told(&client.call("write", json!({"n": 1})).await).0.starts_with("wrote"));
    assert_eq!(desk.runs().len(), 2);
}

#[tokio::test]
async fn a_call_whose_client_has_died_and_that_does_not_end_may_have_run() {
    let desk = Desk::new();
    let mut first = approved(&desk, &desk.held()).await;
    begin(&mut first).await;
    desk.begun(1).await;
    first.goes().await;
    std::fs::write(desk.gate(), "").unwrap();
    let mut again = client(desk.guard(&desk.held())).await;
    assert!(told(&again.call("write", json!({"n": 1})).await).0.contains("waits for an approval"));
    assert!(reasons(&desk).await.contains("may have run"), "{}", reasons(&desk).await);
    assert_eq!(desk.runs().len(), 1);
}

const LANES: u64 = 3;
/// The calls of each lane. `COUNTERSIGN_STORM=100` for more.
fn calls() -> u64 {
    std::env::var("COUNTERSIGN_STORM").ok().and_then(|n| n.parse().ok()).unwrap_or(8)
}
/// How often the call is made while something is killed; afterwards it is made until it has a result.
const KILLED: u32 = 2;

/// Makes one call again and again, as a client does that has lost its answer, while something is killed.
async fn storm(desk: &Desk, dice: &mut Dice, server: &Value, n: u64) {
    for attempt in 0..30 {
        let before = desk.servers(&server["lane"]);
        let mut client = client(desk.guard_of("ann", &["--wait", "5"], server)).await;
        let call = json!({"name": "write", "arguments": {"n": n}});
        let id = client.begin("tools/call", call).await;
        if attempt < KILLED {
            tokio::time::sleep(Duration::from_millis(dice.roll(120))).await;
            match dice.roll(3) {
                0 => client.kill().await,
                // It ends by itself after a while, beside the next guard.
                1 => drop(tokio::spawn(client.goes())),
                _ => {
                    let mine = desk.servers(&server["lane"]);
                    mine.iter().skip(before.len()).for_each(|process| kill(*process));
                    client.response_or_end(id).await;
                }
            }
            continue;
        }
        let response = client.response(id).await;
        if told(&response).0 == format!("wrote {{\"n\": {n}}}") {
            return;
        }
    }
    panic!("the call {n} has no result: {}", desk.logged());
}

// "`kill -9` of guard, client and upstream at each step": what has run was approved, each approval ran at most once, and
// nothing that may have run is repeated without a person who was told.
#[tokio::test]
async fn a_storm_of_kills_runs_each_approval_at_most_once() {
    let desk = Desk::new();
    let lane = |lane: u64| {
        let mut told = desk.told();
        told["lane"] = json!(lane);
        told
    };
    for n in 0..LANES {
        client(desk.guard(&lane(n))).await.goes().await;
    }
    desk.accept_tools().await;
    let ledger = desk.ledger().await;
    let approving = async {
        loop {
            for record in ledger.list(Some(AskState::Pending), 100).await.unwrap().records {
                let yes = Answer::Approve { args: None };
                ledger.decide(record.ask.id(), &record.fingerprint, "bob", yes).await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let lanes = futures::future::join_all((0..LANES).map(|at| {
        let (desk, server) = (&desk, lane(at));
        async move {
            let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (at + 1));
            for n in 0..calls() {
                storm(desk, &mut dice, &server, at * 1_000 + n).await;
            }
        }
    }));
    tokio::select! {
        _ = lanes => {}
        _ = approving => {}
    }
    check(&desk).await;
}

async fn check(desk: &Desk) {
    let (ledger, runs) = (desk.ledger().await, desk.runs());
    let keys: BTreeSet<_> = runs.iter().map(|run| run["key"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), runs.len(), "no approval runs twice: {runs:?}");
    assert!(runs.len() >= usize::try_from(LANES * calls()).unwrap());
    for run in &runs {
        let record = ledger.get(run["key"].as_str().unwrap()).await.unwrap().unwrap();
        assert_eq!(record.ask.args().to_value(), run["args"], "what was approved is what ran");
        assert_eq!(record.decision.as_ref().unwrap().by, ["bob"]);
        assert!(record.claim.is_some() || record.outcome.is_some(), "it was claimed: {record:?}");
    }
    let all = ledger.list(None, 1_000).await.unwrap().records;
    for record in all.iter().filter(|record| record.ask.tool() != ACCEPT_TOOLS) {
        let ran = keys.contains(record.ask.id());
        if record.outcome.is_some() {
            assert!(ran, "an outcome is of a run: {record:?}");
        }
        let unknown = record.claim.is_some() && record.outcome.is_none();
        let equal = all.iter().filter(|other| {
            other.ask.args() == record.ask.args() && other.parked_at > record.parked_at
        });
        let next = equal.min_by_key(|other| other.parked_at);
        if let Some(next) = next.filter(|_| ran && unknown) {
            let tells = next.ask.questions().iter().any(|it| it.reason().contains("may have run"));
            assert!(tells, "a person was told: {next:?}");
        }
    }
    ledger.verify(&Default::default()).await.unwrap();
}
