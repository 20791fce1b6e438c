//! One response through the stack: allowed, denied, asked about, approved.

use countersign::handler::danger_approve_all;
use countersign::{Decision, ToolsExt, Turn, decide_fn};
use serde_json::json;

use crate::support::{Recorder, call, content, words};

fn policy()
-> impl Clone + Fn(&countersign::RunContext, &countersign::ToolCall) -> Decision + Send + Sync + 'static
{
    |_, call| match call.name() {
        "delete" => Decision::ask("sure?"),
        "format" => Decision::deny("never"),
        _ => Decision::allow(),
    }
}

#[tokio::test]
async fn an_allowed_call_runs_a_denied_one_does_not_and_an_asked_one_is_pending() {
    let tools = Recorder::new(["read", "delete", "format"]);
    let turn = Turn::new(tools.clone().layered(decide_fn(policy())));
    let calls = vec![
        call("c1", "read", json!({"n": 1})),
        call("c2", "delete", json!({"n": 2})),
        call("c3", "format", json!({})),
        call("c4", "nothing", json!({})),
        call("c5", "read", json!([1])),
    ];
    let report = turn.run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "deferred", "denied", "retry", "retry"]);
    assert_eq!(content(&report, 2), "never");
    assert_eq!(tools.ids(), ["c1"]);

    let suspended = report.into_suspended().unwrap();
    let stored = serde_json::to_string(&suspended).unwrap();
    let suspended: countersign::SuspendedTurn = serde_json::from_str(&stored).unwrap();
    let requests = suspended.requests();
    assert_eq!(requests.questions("c2")[0].reason(), "sure?");
    let answers = requests.answer().approve("c2").answered_by("ann").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["returned", "returned", "denied", "retry", "retry"]);
    assert_eq!(tools.ids(), ["c1", "c2"]);
    assert!(tools.ran()[1].approved);
}

#[tokio::test]
async fn a_handler_answers_inline() {
    let tools = Recorder::new(["read", "delete", "format"]);
    let turn = Turn::new(tools.clone().layered(decide_fn(policy())))
        .deferred_tool_handler(danger_approve_all());
    let report = turn.run(vec![call("c2", "delete", json!({"n": 2}))]).await.unwrap();
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(tools.ids(), ["c2"]);
}
