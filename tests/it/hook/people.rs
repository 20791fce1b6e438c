//! Calls of a hook that certain people have to approve (rule R9).

use std::time::{Duration, Instant};

use countersign::ToolMiddlewareExt as _;
use countersign::deferred::Answer;
use countersign::ledger::{AskState, Decided, Ledger, MemoryStore};
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use serde_json::json;

use super::without_servers;

const RULES: &str = "version = 2\n[[rule]]\nid = 'deploy'\nask = 'shell'\nwhere.command.runs = 'deploy'\n\
                     people = 2\nnot_the_requester = true\napprovers = ['ann', 'group:ops']";

/// R9: "in the hook": the requester is the user of the hook, and the approval is spent once.
#[tokio::test]
async fn a_hook_runs_the_call_once_enough_of_its_people_have_approved_it() {
    let ops = |name: &str| (name == "ops").then(|| vec!["bob".to_owned(), "eve".to_owned()]);
    let ledger = Ledger::new(MemoryStore::new()).groups(ops);
    let rules = Rules::builder().lexical().groups([("ops", vec!["bob".into(), "eve".into()])]);
    let rules = rules.text("mine.toml", RULES).load().unwrap();
    let hook = Hook::new(Client::Claude).layered(rules.into_layer()).principal("ann");
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
        "tool_name": "Bash", "tool_input": {"command": "deploy production"},
    })
    .to_string();
    let calls = async || {
        let until = Instant::now() + Duration::from_millis(5);
        let reply = hook.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) }).await;
        reply.stderr().to_owned()
    };
    assert!(calls().await.contains("waits for approval"));
    let pending = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let view = pending.view(ledger.now().await.unwrap(), countersign::show::Limits::default());
    assert!(view.reason.unwrap().contains("2 people of ann, group:ops have to approve"));
    assert_eq!((view.approvals_needed, view.not_the_requester), (2, true));
    for (by, made) in [
        ("ann", Decided::NotAllowed),
        ("mallory", Decided::NotAllowed),
        ("bob", Decided::Recorded { approvals: 1, needed: 2, again: false }),
    ] {
        let yes = Answer::Approve { args: None };
        let decided = ledger.decide(pending.ask.id(), &pending.fingerprint, by, yes).await.unwrap();
        assert_eq!(decided, made, "{by}");
        assert!(calls().await.contains("waits for approval"), "{by}");
    }
    let yes = Answer::Approve { args: None };
    ledger.decide(pending.ask.id(), &pending.fingerprint, "eve", yes).await.unwrap();
    assert_eq!(calls().await, "", "the call may run");
    assert!(calls().await.contains("waits for approval"), "once");
}

/// R9: "The client's own form never answers such an ask."
#[tokio::test]
async fn the_clients_own_question_is_not_for_certain_people() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::new(MemoryStore::new());
    let asked_by = async |people: &str| {
        let text = format!("version = 2\n[[rule]]\nid = 'a'\nask = 'shell'\n{people}");
        let rules = Rules::builder().lexical().text("mine.toml", text).load().unwrap();
        let hook = Hook::new(Client::Claude).layered(rules.into_layer()).asking_in_client(true);
        let hook = hook.noting_in(folder.path().join("allowed"));
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": format!("deploy {}", people.len())},
        });
        let until = Instant::now() + Duration::from_millis(5);
        let payload = payload.to_string();
        let reply = hook.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) }).await;
        String::from_utf8(reply.stdout().to_vec()).unwrap()
    };
    assert!(asked_by("").await.contains(r#""permissionDecision":"ask""#));
    for people in ["people = 1", "approvers = ['ann']", "not_the_requester = true"] {
        let told = asked_by(people).await;
        assert!(told.contains(r#""permissionDecision":"deny""#), "{people}: {told}");
    }
}

/// R9: "in the hook", also where the name of a tool only may be that of the rule: no one but its people approves it.
#[tokio::test]
async fn a_call_that_may_be_one_for_certain_people_waits_for_them() {
    let rules = "version = 2\n[[rule]]\nid = 'pay'\nask = 'mcp:bank/pay'\npeople = 2\napprovers = ['ann', 'bob']";
    // The client's configuration has no server `bank`.
    let hook = without_servers(rules);
    let ledger = Ledger::new(MemoryStore::new());
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
        "tool_name": "mcp__bank__pay", "tool_input": {"amount": 5000},
    })
    .to_string();
    let calls = async || {
        let until = Instant::now() + Duration::from_millis(5);
        let reply = hook.answer(payload.as_bytes(), until, async { Ok(ledger.clone()) }).await;
        reply.stderr().to_owned()
    };
    assert!(calls().await.contains("waits for approval"));
    let pending = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    for (by, made) in [
        ("mallory", Decided::NotAllowed),
        ("ann", Decided::Recorded { approvals: 1, needed: 2, again: false }),
    ] {
        let yes = Answer::Approve { args: None };
        let decided = ledger.decide(pending.ask.id(), &pending.fingerprint, by, yes).await.unwrap();
        assert_eq!(decided, made, "{by}");
        assert!(calls().await.contains("waits for approval"), "{by}");
    }
    let yes = Answer::Approve { args: None };
    ledger.decide(pending.ask.id(), &pending.fingerprint, "bob", yes).await.unwrap();
    assert_eq!(calls().await, "", "the call may run");
}
