//! Group F: a tool that needs other tools. It runs a turn of its own, and every outcome is a value to it.

use countersign::call::ToolKind;
use countersign::deferred::ToolApproved;
use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::outcome::{ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, ToolReturn};
use countersign::{
    Error, FunctionToolset, Outcome, RunContext, ToolCall, ToolDefinition, ToolError, Turn,
    TurnReport, UserError, tool_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, content, run_one, words};

/// The tools that the tool calls: one to approve, one executed elsewhere.
fn inner() -> Recorder {
    let of = |name, kind| ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind);
    Recorder::of([of("delete", ToolKind::Unapproved), of("search", ToolKind::External)]).body(
        |_, call| match call.args()["then"].as_str() {
            Some("retry") => Err(ModelRetry::new("otherwise").into()),
            Some("hand out") => Err(CallDeferred::new().with_metadata("task", 7).into()),
            _ => Ok(call.args().to_value()),
        },
    )
}

async fn calls(turn: Turn, tool: &str, args: Value) -> TurnReport {
    run_one(&turn, call("inner", tool, args)).await
}

fn outcome(report: &TurnReport) -> &Outcome {
    report.calls()[0].outcome()
}

#[tokio::test]
async fn f101_f103_a_tool_calls_tools_by_a_turn_of_its_own_and_asks_for_them() {
    let tools = inner();
    let behind = tools.clone();
    let body = move |cx: RunContext, args: Value| {
        let turn = Turn::new(behind.clone());
        async move {
            // F103: no handler answers the inner call, so the outer one asks in its own name.
            let turn = if cx.tool_call_approved() {
                turn.deferred_tool_handler(danger_approve_all())
            } else {
                turn
            };
            let report = calls(turn, "delete", args).await;
            match report.deferred() {
                Some(waits) => {
                    let asks = ApprovalRequired::because("deletes a file");
                    let inner = serde_json::to_value(&waits.approvals)?;
                    Err(ToolError::from(asks.with_metadata("inner", inner)))
                }
                None => Ok(outcome(&report).content().unwrap_or_default()),
            }
        }
    };
    let turn = Turn::new(FunctionToolset::new().tool(tool_fn("tidy", "", body)));
    let suspended =
        run_one(&turn, call("outer", "tidy", json!({"path": "a"}))).await.into_suspended().unwrap();
    assert!(tools.ran().is_empty());
    let requests = suspended.requests();
    assert_eq!(requests.approvals[0].id(), "outer");
    assert_eq!(requests.metadata["outer"]["inner"][0]["args"], json!({"path": "a"}));
    let answers = requests.answer().approve("outer").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!({"path": "a"})));
    assert_eq!(tools.ids(), ["inner"]);
}

#[tokio::test]
async fn f104_f105_f106_f107_f108_every_outcome_of_an_inner_call_is_a_value() {
    let approve = |answer: countersign::deferred::ToolApproval| {
        Turn::new(inner()).deferred_tool_handler(handler_fn_sync(move |_, requests| {
            requests.answer().approval("inner", answer.clone()).build()
        }))
    };
    let give = |result: countersign::deferred::CallResult| {
        Turn::new(inner()).deferred_tool_handler(handler_fn_sync(move |_, requests| {
            requests.answer().result("inner", result.clone()).build()
        }))
    };
    let noted = ToolReturn { metadata: Some(json!({"from": "a cache"})), ..ToolReturn::new(3) };
    let report = calls(give(noted.clone().into()), "search", json!({})).await;
    assert_eq!(outcome(&report), &Outcome::Returned(noted), "with its metadata");
    assert_eq!(outcome(&calls(give(3.into()), "search", json!({})).await), &Outcome::returned(3));
    let failed = calls(give(ToolFailed::new("no").into()), "search", json!({})).await;
    assert_eq!(outcome(&failed), &Outcome::failed("no"));
    let retry = calls(give(ModelRetry::new("again").into()), "search", json!({})).await;
    assert_eq!(outcome(&retry), &Outcome::retry("again"));
    let retry = calls(approve(true.into()), "delete", json!({"then": "retry"})).await;
    assert_eq!(outcome(&retry), &Outcome::retry("otherwise"));
    let denied = calls(approve(false.into()), "delete", json!({})).await;
    assert_eq!(outcome(&denied), &Outcome::denied(""));
    let denied = calls(
        approve(countersign::outcome::ToolDenied::new("keep it").into()),
        "delete",
        json!({}),
    )
    .await;
    assert_eq!(outcome(&denied), &Outcome::denied("keep it"));
    let edited = ToolApproved::with_args(countersign::Args::new().with("path", "b"));
    let edited = calls(approve(edited.into()), "delete", json!({"path": "a"})).await;
    assert_eq!(outcome(&edited), &Outcome::returned(json!({"path": "b"})));
}

#[tokio::test]
async fn f109_f110_an_inner_call_that_is_deferred_again_and_an_answer_to_another_one() {
    let turn = Turn::new(inner()).deferred_tool_handler(danger_approve_all());
    let report = calls(turn, "delete", json!({"then": "hand out"})).await;
    let waits = report.deferred().unwrap();
    assert_eq!((waits.calls.len(), &waits.metadata["inner"]["task"]), (1, &json!(7)));

    let wrong = handler_fn_sync(|_, _| {
        Ok::<_, UserError>(countersign::DeferredToolResults::new().approve("outer"))
    });
    let call = ToolCall::new("inner", "delete", json!({}));
    let error = Turn::new(inner()).deferred_tool_handler(wrong).run(vec![call]).await.unwrap_err();
    let Error::Answers(error) = error.error() else { panic!("{error:?}") };
    assert_eq!(error.ids(), ["outer", "inner"], "not silently left unanswered");
}
