//! Approvals in a chat, by a client that does what `useChat` does.

use std::time::Duration;

use countersign_ai_sdk::ClientVersion;
use serde_json::{Value, json};

use super::client::Client;
use super::order::{Response, sends_answers};
use super::world::World;

const NOTHING: [&str; 0] = [];

#[tokio::test]
async fn an_approved_call_runs_once_and_a_denied_one_never() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let asked = ann.say("delete a.txt").await;
    assert_eq!(asked.reason(), "tool-calls");
    let types = ["tool-input-start", "tool-input-delta", "tool-input-available"];
    assert_eq!(asked.types()[2..5], types);
    let types = ["tool-approval-request", "data-approval", "finish-step", "finish"];
    assert_eq!(asked.types()[5..], types);
    assert_eq!(world.ran(), NOTHING, "nothing runs before the answer");

    let told = ann.answer(true).await;
    assert_eq!(told.reason(), "stop");
    assert_eq!(told.text(), r#"I heard: success: {"done":"a.txt"}"#);
    assert_eq!((ann.states(), world.ran()), (vec!["output-available"], vec!["a.txt".to_owned()]));
    assert_eq!(ann.shown()[0]["status"], "approved");

    ann.say("delete b.txt").await;
    let ask = ann.waiting().remove(0);
    ann.note(&ask, false, Some("not *that* one")).send().await;
    assert_eq!(world.told(), ["denied: not *that* one"], "D2: it reaches the model verbatim");
    assert_eq!((ann.states(), world.ran()), (vec!["output-denied"], vec!["a.txt".to_owned()]));
    assert_eq!(ann.shown()[0]["reason"], json!("not *that* one"));
    world.check();
}

#[tokio::test]
async fn the_reason_of_a_denial_is_stored_verbatim() {
    // The reason in an approval is optional: the server's copy of the message has none that the user did not write.
    let world = World::new();
    let mut ann = world.ann("c1");
    for (reason, kept) in [(None, Value::Null), (Some("not today"), json!("not today"))] {
        ann.say("delete a.txt").await;
        let ask = ann.waiting().remove(0);
        ann.note(&ask, false, reason).send().await;
        let messages = ann.at_the_server().await;
        let parts = messages.last().unwrap()["parts"].as_array().unwrap();
        let part = parts.iter().find(|part| part["approval"]["id"] == ask.as_str()).unwrap();
        assert_eq!(
            (&part["approval"]["approved"], &part["approval"]["reason"]),
            (&json!(false), &kept)
        );
    }
    assert_eq!(world.ran(), NOTHING);
    world.check();
}

#[tokio::test]
async fn two_calls_of_a_response_are_answered_in_one_request() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt; delete b.txt; read c.txt").await;
    assert_eq!(world.ran(), ["c.txt"], "T1: ordinary calls run first");
    let asks = ann.waiting();
    ann.note(&asks[0], true, None).note(&asks[1], false, None);
    let told = ann.send().await;
    let place = |kind: &str| told.types().iter().position(|it| *it == kind).unwrap();
    for outcome in ["tool-output-available", "tool-output-denied"] {
        assert!(place(outcome) < place("start-step"), "outcomes come before a step: {told:?}");
    }
    assert_eq!(world.ran(), ["a.txt", "c.txt"]);
    world.check();
}

#[tokio::test]
async fn answers_are_stored_until_complete_and_a_denial_counts_at_once() {
    // T1: "no deferred call of a response executes before all of them are answered". A3: "a no is final".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt; delete b.txt; delete c.txt").await;
    let asks = ann.waiting();
    ann.note(&asks[0], false, Some("keep it")).note(&asks[1], true, None);
    let held = ann.send().await;
    assert_eq!((held.reason(), world.ran()), ("tool-calls", vec![]));
    let asks_now = world.asks().await;
    let decided: Vec<_> = asks_now.iter().filter_map(|ask| ask.decision.as_ref()).collect();
    assert_eq!(decided.len(), 1, "only the no: {decided:?}");
    assert_eq!(decided[0].by, ["ann"]);

    let mut changed = ann.clone();
    changed.differs = true;
    let back = changed.note(&asks[0], true, None).send().await;
    assert_eq!((back.reason(), world.ran()), ("tool-calls", vec![]), "a no is final");
    ann.note(&asks[2], true, None).send().await;
    assert_eq!(ann.states(), ["output-denied", "output-available", "output-available"]);
    assert_eq!(world.ran(), ["b.txt", "c.txt"]);
    world.check();
}

/// A8: an approval is valid for as long as its ledger says, also one that waits in the chat for the other answers.
#[tokio::test]
async fn a_yes_that_is_stored_for_too_long_runs_nothing() {
    for (minutes, runs) in [(9, &["a.txt", "b.txt"][..]), (11, &["b.txt"])] {
        let world = World::new().with_approvals_for(Duration::from_secs(600));
        let mut ann = world.ann("c1");
        ann.say("delete a.txt; delete b.txt").await;
        let asks = ann.waiting();
        ann.note(&asks[0], true, None).send().await;
        world.wait(Duration::from_secs(minutes * 60));
        let told = ann.note(&asks[1], true, None).send().await;
        assert_eq!(world.ran(), runs, "after {minutes} minutes: {told:?}");
        world.check();
    }
}

#[tokio::test]
async fn an_approval_can_be_taken_back_until_the_call_runs() {
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt; delete b.txt").await;
    let asks = ann.waiting();
    ann.note(&asks[0], true, None).send().await;
    ann.note(&asks[0], false, Some("no, wait")).note(&asks[1], true, None).send().await;
    assert_eq!(
        (ann.states(), world.ran()),
        (vec!["output-denied", "output-available"], vec!["b.txt".to_owned()])
    );
    ann.differs = true;
    let late = ann.note(&asks[1], false, None).send().await;
    assert_eq!((late.reason(), world.ran()), ("stop", vec!["b.txt".to_owned()]));
    let told = ann.tools()[1]["errorText"].as_str().unwrap();
    assert!(told.contains("has run"), "the client is told that its no came too late: {told}");
    world.check();
}

/// Approves the one call that waits, with other arguments.
async fn edit(ann: &mut Client, args: &Value) -> Response {
    let ask = ann.waiting().remove(0);
    let mut body = ann.note(&ask, true, None).body();
    body["overrideArgs"] = json!({ask: args});
    ann.post(&body).await.unwrap()
}

#[tokio::test]
async fn a_call_that_is_approved_with_edited_arguments_runs_with_them() {
    // A2: "`override_args` replace the model's args … validated … before anything executes".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt").await;
    edit(&mut ann, &json!({"path": "b.txt"})).await;
    assert_eq!(world.ran(), ["b.txt"]);
    let shown = ann.shown().remove(0);
    assert_eq!(
        (&shown["status"], &shown["ranInput"]),
        (&json!("edited"), &json!({"path": "b.txt"}))
    );
    assert_eq!(
        ann.tools()[0]["input"],
        json!({"path": "a.txt"}),
        "the history keeps what was asked"
    );

    ann.say("delete c.txt").await;
    let first = ann.waiting();
    let again = edit(&mut ann, &json!({"path": "d.txt", "invalid": 1})).await;
    assert_eq!((again.reason(), world.ran()), ("tool-calls", vec!["b.txt".to_owned()]));
    assert_eq!(ann.states(), ["output-error", "approval-requested"], "asked in a part of its own");
    assert_ne!(ann.waiting(), first, "each ask has an id of its own");
    assert_eq!(ann.shown().len(), 2);
    ann.answer(true).await;
    assert_eq!(world.ran(), ["b.txt", "c.txt"]);
    world.check();
}

#[tokio::test]
async fn a_call_is_asked_about_again_when_its_pin_has_changed() {
    // A1: "a changed pin is a new question".
    let world = World::new();
    let mut ann = world.ann("c1");
    ann.say("delete a.txt").await;
    for pin in ["2", "3"] {
        pin.clone_into(&mut world.pin.lock().unwrap());
        let again = ann.answer(true).await;
        assert_eq!((again.reason(), world.ran()), ("tool-calls", vec![]));
        assert_eq!(ann.states().last(), Some(&"approval-requested"));
        assert!(ann.shown().last().unwrap()["changed"].is_string(), "{:?}", ann.shown());
    }
    assert_eq!(ann.tools().len(), 3);
    ann.answer(true).await;
    assert_eq!(ann.states(), ["output-error", "output-error", "output-available"]);
    assert_eq!(world.ran(), ["a.txt"]);
    assert_eq!(ann.asks.len(), 3, "each ask had an id of its own");
    world.check();
}

#[tokio::test]
async fn calls_that_the_client_executes_are_answered_with_their_results() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let asked = ann.say("locate here; delete a.txt; wipe disk; read b.txt").await;
    assert_eq!(asked.reason(), "tool-calls");
    assert_eq!(asked.of("tool-approval-request").len(), 1, "{asked:?}");
    let states = ["input-available", "approval-requested", "output-error", "output-available"];
    assert_eq!(ann.states(), states);
    let ask = ann.waiting().remove(0);
    ann.output(&json!({"lat": 1.5})).note(&ask, true, None).send().await;
    let told = [
        r#"success: {"lat":1.5}"#,
        r#"success: {"done":"a.txt"}"#,
        "denied: wiping disks is forbidden",
        r#"success: {"done":"b.txt"}"#,
    ];
    assert_eq!(world.told(), told, "T3: in model order");
    assert_eq!(world.ran(), ["a.txt", "b.txt"]);
    world.check();
}

#[tokio::test]
async fn a_denial_by_policy_is_no_question_and_every_client_accepts_it() {
    let world = World::new();
    let mut ann = world.ann("c1");
    let told = ann.say("wipe disk").await;
    assert_eq!(told.of("tool-approval-request").len() + told.of("tool-output-denied").len(), 0);
    assert_eq!(ann.tools()[0]["errorText"], "wiping disks is forbidden");
    let shown = ann.shown().remove(0);
    assert_eq!((&shown["status"], &shown["approvalId"]), (&json!("denied"), &Value::Null));
    assert_eq!(world.ran(), NOTHING);
    world.check();
}

#[tokio::test]
async fn newer_clients_get_the_reason_with_the_ask() {
    let world = World::new();
    for (version, reason) in [
        (ClientVersion::new(7, 0, 81), Value::Null),
        (ClientVersion::new(7, 0, 82), json!("deleting is permanent")),
    ] {
        let mut ann = world.ann(&version.to_string());
        ann.chats = world.chats().client(version);
        let asked = ann.say("delete a.txt").await;
        assert_eq!(asked.of("tool-approval-request")[0]["reason"], reason);
        assert_eq!(ann.shown()[0]["questions"][0]["reason"], "deleting is permanent");
    }
}

#[tokio::test]
async fn the_asks_of_an_agent_behind_a_tool_are_answered_in_the_same_chat() {
    // T7: "Its asks join the parent's batch under library-made path ids".
    let world = World::new();
    let mut ann = world.ann("c1");
    let asked = ann.say("clean delete+a.txt&delete+b.txt; delete c.txt").await;
    assert_eq!((asked.of("tool-approval-request").len(), ann.waiting().len()), (3, 3), "{asked:?}");
    let paths: Vec<_> = ann.shown().iter().map(|it| it["path"].clone()).collect();
    assert!(
        paths.contains(&json!("root/clean/delete")) && paths.contains(&json!("delete")),
        "{paths:?}"
    );
    let asks: Vec<_> = ann.shown();
    for ask in asks {
        let yes = ask["input"]["path"] != "b.txt";
        ann.note(ask["approvalId"].as_str().unwrap(), yes, None);
    }
    ann.send().await;
    assert_eq!(world.ran(), ["a.txt", "c.txt"]);
    let told = world.told();
    assert_eq!(told.len(), 2, "{told:?}");
    world.check();
}

#[tokio::test]
async fn a_client_that_sends_automatically_completes_for_answers_in_any_order() {
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let world = World::new();
        let mut ann = world.ann("c1");
        ann.say("delete c.txt; clean delete+a.txt&delete+b.txt").await;
        let paths = order.map(|at| ["a.txt", "b.txt", "c.txt"][at]);
        for path in paths {
            let waits = |ask: &Value| ask["input"]["path"] == path && ask["status"] == "pending";
            let ask = ann.shown().into_iter().rfind(waits).unwrap();
            ann.note(ask["approvalId"].as_str().unwrap(), true, None);
            while sends_answers(ann.last().unwrap()) {
                ann.send().await;
            }
        }
        assert_eq!(world.ran(), ["a.txt", "b.txt", "c.txt"], "{paths:?}");
        world.check();
    }
}
