//! Workers in processes of their own, some of which die.

use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::AskState;
use serde_json::json;

use crate::http::Client;
use crate::service::Place;

/// Starts a run and approves its one ask. Returns the ask's id.
async fn approved(place: &Place, url: &str, prompt: &str) -> String {
    Client::of(url, "ann").await.start(prompt).await;
    let pending = place.ledger().list(Some(AskState::Pending), 2).await.unwrap().records;
    let [ask] = &pending[..] else { panic!("{pending:?}") };
    let yes = Answer::Approve { args: None };
    place.ledger().decide(ask.ask.id(), &ask.fingerprint, "bob", yes).await.unwrap();
    ask.ask.id().to_owned()
}

async fn waits_for_a_worker(place: Place) {
    let server = place.server(&["--workers", "0"]);
    let id = approved(&place, &server.url, r#"delete_file {"path": "a.log"}"#).await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let ask = place.ledger().get(&id).await.unwrap().unwrap();
    assert_eq!(ask.state, AskState::Decided, "there is no worker to resume it");
    // Of several concurrent workers one gets the run.
    let _workers = [place.worker(&[]), place.worker(&[]), place.server(&[])];
    place.until(&id, AskState::Executed).await;
    assert_eq!(place.times("path", "a.log"), 1);
    let said = place.over(&[ask.ask.run().to_owned()]).await;
    assert_eq!(said, ["delete_file: deleted a.log"]);
}

#[tokio::test]
async fn one_of_several_workers_resumes_a_decided_run_over_sqlite() {
    waits_for_a_worker(Place::sqlite().await).await;
}

#[tokio::test]
async fn one_of_several_workers_resumes_a_decided_run_over_postgres() {
    waits_for_a_worker(Place::postgres().await).await;
}

async fn dies(place: Place) {
    // L2: "When the worker is gone, the outcome is unknown, and the call is never silently run again, unless the tool
    // is idempotent."  L5: another worker takes the run up.
    let server = place.server(&["--workers", "0"]);
    // The body ends while its claim and its run are renewed, as it takes longer than the lease of the second worker.
    for (prompt, tool, idempotent) in [
        (r#"restart_server {"host": "x", "takes_s": 3600}"#, "host", false),
        (r#"send_report {"to": "x", "takes_s": 12}"#, "to", true),
    ] {
        let id = approved(&place, &server.url, prompt).await;
        let mut first = place.worker(&["--lease-s", "2"]);
        place.until(&id, AskState::Claimed).await;
        while place.times(tool, "x") == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        first.kill();
        let second = place.worker(&["--lease-s", "10"]);
        let state = if idempotent { AskState::Executed } else { AskState::Unknown };
        let ask = place.until(&id, state).await;
        let said = place.over(&[ask.ask.run().to_owned()]).await;
        let expected = if idempotent { "sent the report to x" } else { "may have run" };
        assert!(said[0].contains(expected), "{said:?}");
        assert_eq!(place.times(tool, "x"), if idempotent { 2 } else { 1 }, "{tool}");
        drop(second);
    }
}

#[tokio::test]
async fn the_run_of_a_dead_worker_is_resumed_after_its_lease_over_sqlite() {
    dies(Place::sqlite().await).await;
}

#[tokio::test]
async fn the_run_of_a_dead_worker_is_resumed_after_its_lease_over_postgres() {
    dies(Place::postgres().await).await;
}

#[tokio::test]
async fn later_asks_of_a_run_keep_its_requester() {
    // L1: "the requester may be refused", also where it is a worker's process that asks, for a sub-agent.
    let place = Place::sqlite().await;
    let server = place.server(&["--workers", "0"]);
    let worker = place.worker(&[]);
    let ann = Client::of(&server.url, "ann").await;
    let team = json!({"prompt": "delete_file {\"path\": \"a.log\"}\n\ntransfer {\"amount_eur\": 5, \"to\": \"DE02\"}"});
    ann.start(&format!("cleaner {team}")).await;
    let first = place.ask("path", "a.log").await;
    let yes = Answer::Approve { args: None };
    place.ledger().decide(first.ask.id(), &first.fingerprint, "bob", yes).await.unwrap();
    place.until(first.ask.id(), AskState::Executed).await;
    while place.ledger().list(Some(AskState::Pending), 1).await.unwrap().records.is_empty() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(worker);
    let _worker = place.worker(&[]);
    let ask = place.ask("to", "DE02").await;
    assert_eq!(ask.ask.principal(), Some("ann"));
    let yes = json!({"verdict": "approve", "fingerprint": ask.fingerprint});
    let path = format!("/api/asks/{}/decision", ask.ask.id());
    assert_eq!(ann.post(&path, &yes).await.0, 403);
    for (who, result) in [("bob", "recorded"), ("carol", "won")] {
        let (status, said) = Client::of(&server.url, who).await.post(&path, &yes).await;
        assert_eq!((status, &said["result"]), (200, &json!(result)), "{said}");
    }
    place.until(ask.ask.id(), AskState::Executed).await;
    assert_eq!(place.times("to", "DE02"), 1);
}
