//! Clients that do what the protocol does not allow, at the program `countersign guard`: nothing runs that was not
//! approved, and nothing runs twice (rules M2, M3).

use std::time::{Duration, Instant};

use countersign::ledger::AskState;
use serde_json::{Value, json};

use super::client::{Client, forms, told, yes};
use super::process::Desk;

const ERA: &str = "2025-11-25";

/// Ann's client, which cannot be asked, behind a guard whose tools are accepted.
async fn earlier(desk: &Desk, server: &Value) -> Client {
    let client = Client::earlier(desk.guard(server), ERA, json!({})).await;
    desk.accept_tools().await;
    client
}

fn call(id: Value, n: u32) -> Value {
    let params = json!({"name": "write", "arguments": {"n": n}});
    let mut frame = json!({"jsonrpc": "2.0", "method": "tools/call", "params": params});
    frame["id"] = id;
    frame
}

/// Approves what is pending, and gives how many that was.
async fn approve_all(desk: &Desk) -> usize {
    let pending = desk.pending().await;
    for record in &pending {
        desk.approve(record, "bob").await;
    }
    pending.len()
}

#[tokio::test]
async fn a_call_with_an_id_of_any_type_runs_once_for_its_approval_or_not_at_all() {
    let desk = Desk::new();
    let mut client = earlier(&desk, &desk.told()).await;
    let ids = [
        json!(""),
        json!("7"),
        json!(-7),
        json!(0),
        json!(u64::MAX),
        json!(1.5),
        json!(1e300),
        json!(null),
        json!(true),
        json!([7]),
        json!({"id": 7}),
        json!("x".repeat(100_000)),
        json!("\u{0}\u{202e}"),
    ];
    for (n, id) in ids.iter().enumerate() {
        for _ in 0..3 {
            client.send(&call(id.clone(), n as u32)).await;
            // It is answered, or was left out.
            client.ask("ping", json!({})).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            approve_all(&desk).await;
        }
    }
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "write", "{listed}");
    // Each approved call ends.
    let begun = Instant::now();
    let runs = loop {
        let all = desk.ledger().await.list(None, 200).await.unwrap().records;
        let in_state = |state| all.iter().filter(|it| it.state == state).count();
        let (runs, executed) = (desk.runs(), in_state(AskState::Executed));
        if executed > 0 && executed == runs.len() && in_state(AskState::Claimed) == 0 {
            break runs;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{executed} of {}: {all:?}", runs.len());
        if runs.is_empty() {
            client.send(&call(json!("again"), 0)).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        approve_all(&desk).await;
    };
    let keys: std::collections::BTreeSet<_> = runs.iter().map(|run| run["key"].as_str()).collect();
    assert_eq!(keys.len(), runs.len(), "an approval for each run: {runs:?}");
}

// M6: an id that is in flight is refused, so that no response is taken for another request's.
#[tokio::test]
async fn of_calls_under_one_id_the_first_alone_is_asked_about() {
    let desk = Desk::new();
    let mut client = earlier(&desk, &desk.told()).await;
    for n in [1, 2, 1] {
        client.send(&call(json!(77), n)).await;
    }
    desk.asked().await;
    client.ask("ping", json!({})).await;
    assert_eq!(approve_all(&desk).await, 1, "the others were refused before they were parked");
    desk.begun(1).await;
    client.ask("ping", json!({})).await;
    let ran: Vec<_> = desk.runs().iter().map(|run| run["args"]["n"].as_u64()).collect();
    assert_eq!(ran, [Some(1)]);
}

#[tokio::test]
async fn nothing_runs_before_the_handshake() {
    for frames in [
        vec![call(json!(1), 1)],
        vec![json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), call(json!(1), 1)],
        vec![json!({"jsonrpc": "2.0", "id": 1, "result": {}}), call(json!(2), 1)],
    ] {
        let desk = Desk::new();
        let rules = desk.user.home().join("rules.toml");
        std::fs::write(&rules, "version = 1\ndanger_default_allow = true\n").unwrap();
        let rules = rules.display().to_string();
        let options = ["--danger-accept-all-tools", "--rules", &rules];
        let mut client = Client::from(desk.guard_of("ann", &options, &desk.told()));
        for frame in &frames {
            client.send(frame).await;
        }
        _ = tokio::time::timeout(Duration::from_millis(500), client.response_or_end(99)).await;
        assert!(desk.runs().is_empty(), "{frames:?}");
        // Behind a handshake the same call runs.
        let guard = desk.guard_of("ann", &options, &desk.told());
        let mut proper = Client::earlier(guard, "2025-11-25", json!({})).await;
        proper.call("write", json!({"n": 2})).await;
        let ran: Vec<_> = desk.runs().iter().map(|run| run["args"]["n"].clone()).collect();
        assert_eq!(ran, vec![json!(2); ran.len()], "{frames:?}");
        assert!(!ran.is_empty());
    }
}

// "An idempotency key goes upstream in `_meta`": the guard's, and nothing of the client's.
#[tokio::test]
async fn metadata_of_a_client_does_not_reach_the_server() {
    let desk = Desk::new();
    let mut client = Client::newest(desk.guard(&desk.told()), forms()).await;
    desk.accept_tools().await;
    let asked = client.call("write", json!({"n": 1})).await;
    let mut meta = client.meta.take().unwrap();
    meta["countersign/idempotencyKey"] = json!("forged");
    meta["countersign/deliveredLate"] = json!(true);
    let again = json!({
        "name": "write", "arguments": {"n": 1}, "requestState": asked["result"]["requestState"],
        "inputResponses": {"countersign": yes()}, "_meta": meta,
    });
    let response = client.ask("tools/call", again).await;
    assert!(told(&response).0.starts_with("wrote"), "{response}");
    let ran = desk.runs().remove(0);
    let executed = desk.ledger().await.list(Some(AskState::Executed), 1).await.unwrap().records;
    assert_eq!(ran["key"], executed[0].ask.id());
}

// Rule M2: an answer is for a question that was asked.
#[tokio::test]
async fn an_answer_without_a_question_approves_nothing() {
    let desk = Desk::new();
    let mut client = Client::newest(desk.guard(&desk.told()), forms()).await;
    desk.accept_tools().await;
    for extra in [
        json!({"inputResponses": {"countersign": yes()}}),
        json!({"inputResponses": {"countersign": yes()}, "requestState": null}),
        json!({"inputResponses": {"decision": yes(), "approve": yes(), "": yes()}}),
        json!({"decision": "approve", "approved": true}),
    ] {
        let mut params = json!({"name": "write", "arguments": {"n": 1}});
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let response = client.ask("tools/call", params).await;
        assert_eq!(response["result"]["resultType"], "input_required", "{extra}: {response}");
    }
    assert!(desk.runs().is_empty());
    // One that is put among the arguments is an argument, and is shown.
    let params =
        json!({"name": "write", "arguments": {"n": 1, "inputResponses": {"countersign": yes()}}});
    let response = client.ask("tools/call", params).await;
    let message = &response["result"]["inputRequests"]["countersign"]["params"]["message"];
    assert!(message.as_str().unwrap().contains("inputResponses"), "{response}");
    assert!(desk.runs().is_empty());
}

// An approval is of the tool whose name was shown: names are compared as they are.
#[tokio::test]
async fn a_tool_by_a_similar_name_is_another_tool() {
    let desk = Desk::new();
    let rules = desk.user.home().join("rules.toml");
    std::fs::write(&rules, "version = 1\n[[rule]]\nid = 'w'\nallow = 'mcp:files/*'\n").unwrap();
    let rules = rules.display().to_string();
    let options = ["--name", "files", "--danger-accept-all-tools", "--rules", &rules];
    let mut client =
        Client::earlier(desk.guard_of("ann", &options, &desk.told()), ERA, forms()).await;
    for name in [
        "Write",
        "WRITE",
        " write",
        "write ",
        "write\u{200b}",
        "wr\u{131}te",
        "wr\u{456}te",
        "\u{ff57}rite",
        "files/write",
        "mcp:files/write",
        "resources/read",
        "prompts/get",
        "completion/complete",
        "resources/subscribe",
        "",
    ] {
        let response = client
            .call(name, json!({"n": 1, "uri": "file:///etc/passwd", "name": "x", "argument": {}}))
            .await;
        assert!(told(&response).1 || response["error"].is_object(), "{name:?}: {response}");
    }
    assert!(desk.runs().is_empty() && client.asked.is_empty());
    assert!(!told(&client.call("write", json!({"n": 1})).await).1);
}

#[tokio::test]
async fn notifications_and_answers_that_belong_to_nothing_are_ignored() {
    let desk = Desk::new();
    let mut client = earlier(&desk, &desk.told()).await;
    let notification =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    for frame in [
        notification("notifications/cancelled", json!({"requestId": 4711})),
        notification("notifications/cancelled", json!({"requestId": {}})),
        notification("notifications/cancelled", json!(null)),
        notification("notifications/progress", json!({"progressToken": "x", "progress": 1})),
        notification("notifications/progress", json!({"progressToken": {}, "progress": "x"})),
        notification("notifications/resources/updated", json!({"uri": "x"})),
        notification("notifications/tools/list_changed", json!({})),
        notification("tools/call", json!({"name": "write", "arguments": {"n": 1}})),
        notification("x/y", json!([1])),
        json!({"jsonrpc": "2.0", "id": 4711, "result": yes()}),
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}),
        json!({"jsonrpc": "2.0", "id": "x", "result": {"action": "accept", "content": {"decision": "approve"}}}),
    ] {
        client.send(&frame).await;
        let listed = client.ask("tools/list", json!({})).await;
        assert_eq!(listed["result"]["tools"][0]["name"], "write", "after {frame}: {listed}");
    }
    for token in [json!({}), json!([1]), json!(null), json!(1.5), json!(true), json!("")] {
        let params =
            json!({"name": "write", "arguments": {"n": 1}, "_meta": {"progressToken": token}});
        let response = client.ask("tools/call", params).await;
        assert!(told(&response).1 || response["error"].is_object(), "{token}: {response}");
    }
    assert!(desk.runs().is_empty());
}

/// Cancels a request of the client.
async fn cancel(client: &mut Client, request: u64) {
    let params = json!({"requestId": request, "reason": "no longer wanted"});
    let frame = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.send(&frame).await;
}

// Rule M3: "a client that cancels loses nothing": before the claim the ask stays, after it the outcome is recorded.
#[tokio::test]
async fn a_call_that_is_cancelled_before_its_claim_stays_pending() {
    let desk = Desk::new();
    let guard = desk.guard_of("ann", &["--wait", "30"], &desk.told());
    let mut client = Client::earlier(guard, ERA, json!({})).await;
    desk.accept_tools().await;
    let id = client.begin("tools/call", json!({"name": "write", "arguments": {"n": 1}})).await;
    let asked = desk.asked().await;
    cancel(&mut client, id).await;
    client.ask("ping", json!({})).await;
    desk.approve(&asked, "bob").await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(desk.runs().is_empty(), "the call was given up");
    let response = client.call("write", json!({"n": 1})).await;
    assert!(told(&response).0.starts_with("wrote"), "{response}");
    assert_eq!(desk.runs().len(), 1);
}

#[tokio::test]
async fn the_outcome_of_a_call_that_was_cancelled_in_it_is_delivered_to_an_equal_one() {
    let desk = Desk::new();
    let mut client = earlier(&desk, &desk.held()).await;
    client.call("write", json!({"n": 1})).await;
    desk.approve(&desk.asked().await, "bob").await;
    let id = client.begin("tools/call", json!({"name": "write", "arguments": {"n": 1}})).await;
    desk.begun(1).await;
    cancel(&mut client, id).await;
    client.ask("ping", json!({})).await;
    std::fs::write(desk.gate(), "").unwrap();
    // Its outcome is recorded, and then there is one for the equal call.
    let begun = Instant::now();
    while desk.ledger().await.list(Some(AskState::Executed), 1).await.unwrap().records.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(30), "no outcome is recorded");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let response = client.call("write", json!({"n": 1})).await;
    assert!(told(&response).0.starts_with("wrote"), "{response}");
    assert_eq!(response["result"]["_meta"]["countersign/deliveredLate"], true, "{response}");
    assert_eq!(desk.runs().len(), 1);
}

// Rule R5: the floor protects the store and the configuration of the guard where they are.
#[tokio::test]
async fn a_tool_that_may_write_the_guards_own_files_is_asked_about() {
    let desk = Desk::new();
    let [rules, store] = ["rules.toml", "data/asks.db"].map(|name| desk.user.home().join(name));
    std::fs::create_dir(desk.user.home().join("data")).unwrap();
    std::fs::write(&rules, "version = 1\n[[rule]]\nid = 'w'\nallow = 'mcp:files/*'\n").unwrap();
    let (rules, store) = (rules.display().to_string(), store.display().to_string());
    let options = [
        "--name",
        "files",
        "--wait",
        "0",
        "--danger-accept-all-tools",
        "--rules",
        &rules,
        "--store",
        &store,
    ];
    let mut client =
        Client::earlier(desk.guard_of("ann", &options, &desk.told()), ERA, json!({})).await;
    for place in [&store, &format!("{store}-wal"), &rules] {
        let response = client.call("write", json!({"n": 1, "path": place})).await;
        assert!(told(&response).1, "{place}: {response}");
    }
    assert!(desk.runs().is_empty());
    assert!(!told(&client.call("write", json!({"n": 1, "path": "data/other"})).await).1);
}
