//! Grants behind a hook (rule G2).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANTABLE;
use countersign::hook::{Client, Hook};
use countersign::ledger::{AskState, Grant, GrantPlace, Ledger, MemoryStore, Record};
use countersign::{Decision, decide_fn};
use serde_json::json;

/// G2: "no person denied this call in this run": a no is about the call, under whichever questions it was asked.
#[tokio::test]
async fn a_grant_answers_no_call_that_was_denied_under_other_questions() {
    let ledger = Ledger::new(MemoryStore::new());
    let late = Arc::new(AtomicBool::new(false));
    let is_late = Arc::clone(&late);
    let asks = decide_fn(move |_, _| {
        let asked = Decision::ask("makes").with_key("make").with_metadata(GRANTABLE, true);
        match is_late.load(Ordering::SeqCst) {
            true => asked.and(Decision::ask("it is late").with_key("late")),
            false => asked,
        }
    });
    let hook = Hook::new(Client::Claude).layered(asks.named("makes"));
    let calls = async || {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": "Bash", "tool_input": {"command": "make"},
        });
        let (payload, until) = (payload.to_string(), Instant::now() + Duration::from_millis(5));
        let store = async { Ok(ledger.clone()) };
        hook.answer(payload.as_bytes(), until, store).await.stderr().to_owned()
    };
    let pending = async || -> Record {
        ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0)
    };
    let answer = async |answer: Answer| {
        let asked = pending().await;
        ledger.decide(asked.ask.id(), &asked.fingerprint, "ann", answer).await.unwrap();
    };

    assert!(calls().await.contains("waits for approval"));
    let asked = pending().await.ask;
    let scope = GrantPlace::Session.scope(&asked).unwrap();
    ledger.make_grant(Grant::of(&asked, scope).unwrap(), &["ann"]).await.unwrap();
    answer(Answer::Approve { args: None }).await;
    for _ in 0..3 {
        assert_eq!(calls().await, "", "approved, and then granted");
    }
    late.store(true, Ordering::SeqCst);
    assert!(
        calls().await.contains("waits for approval"),
        "the grant does not cover the second question"
    );
    answer(Answer::Deny { message: "not now".to_owned() }).await;
    assert!(calls().await.contains("not now"));
    late.store(false, Ordering::SeqCst);
    assert!(calls().await.contains("waits for approval"), "the no is still the last answer");
    answer(Answer::Approve { args: None }).await;
    assert_eq!(calls().await, "");
    assert_eq!(calls().await, "", "a later yes counts again");
}
