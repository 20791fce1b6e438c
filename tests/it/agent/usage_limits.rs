//! The limits of a run: `Agent::usage_limits`. Row ids (H129) are those of PydanticAI's conformance table.

use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::agent::{RunError, text};
use countersign::call::UsageLimits;
use countersign::handler::danger_approve_all;
use countersign::message::ReturnKind;
use countersign::model::ModelResponse;
use countersign::outcome::ApprovalRequired;
use countersign::testing::ScriptedModel;
use countersign::{Agent, Error, ToolCall, ToolError, ToolsExt};
use serde_json::json;
use tower::retry::RetryLayer;

use crate::support::{Recorder, Retries, call, every_kind, results, stored};

fn of(tool: &str) -> ToolCall {
    call(tool, tool, json!({}))
}

fn plain<const N: usize>(ids: [&str; N]) -> Vec<ToolCall> {
    ids.map(|id| call(id, "plain", json!({}))).to_vec()
}

fn script<const N: usize>(responses: [Vec<ToolCall>; N]) -> ScriptedModel {
    let script = responses
        .into_iter()
        .fold(ScriptedModel::new([]), |script, calls| script.then(ModelResponse::calls(calls)));
    script.then(ModelResponse::text("Done."))
}

fn agent(model: &ScriptedModel, limits: UsageLimits) -> (Recorder, Agent) {
    let (recorder, tools) = every_kind();
    (recorder, Agent::new(model.clone(), tools).usage_limits(limits))
}

fn tool_calls(max: u32) -> UsageLimits {
    UsageLimits::new().tool_calls(max)
}

fn requests(max: u32) -> UsageLimits {
    UsageLimits::new().requests(max)
}

/// The calls that were one too many.
fn over(error: &RunError) -> Vec<String> {
    assert!(matches!(error.error(), Error::UsageLimit { .. }), "{error:?}");
    assert!(error.to_string().contains("raise the limit"), "{error}");
    error.error().ids()
}

#[tokio::test]
async fn requests_to_the_model_are_limited() {
    let calls = || script([plain(["c1"]), plain(["c2"])]);
    let (recorder, enough) = agent(&calls(), requests(3));
    let run = enough.run("go").await.unwrap();
    assert_eq!((run.text(), run.usage().requests, run.usage().tool_calls), (Some("Done."), 3, 2));
    assert_eq!(recorder.ids(), ["c1", "c2"]);

    let model = calls();
    let (recorder, short) = agent(&model, requests(2));
    let error = short.run("go").await.unwrap_err();
    assert!(over(&error).is_empty());
    assert!(error.to_string().contains("ask its models 2 times"), "{error}");
    assert_eq!((model.requests().len(), recorder.ids().len()), (2, 2), "the third was not made");
    let state = stored(error.suspended());
    assert_eq!(state.usage().requests, 2);
    let again = short.ask(state.clone()).await.unwrap_err();
    assert!(over(&again).is_empty(), "what was used stays used");
    let run = short.clone().usage_limits(requests(3)).ask(state).await.unwrap();
    assert_eq!((run.text(), recorder.ids().len()), (Some("Done."), 2));

    let (recorder, none) = agent(&calls(), requests(0));
    assert!(over(&none.run("go").await.unwrap_err()).is_empty());
    assert!(recorder.ran().is_empty());
}

// "A call that is one too many is not executed; the run ends with `Error::UsageLimit`, when its siblings have
// settled, and can be resumed."
#[tokio::test]
async fn calls_over_the_limit_are_named_and_the_run_can_be_resumed() {
    let (recorder, exactly) = agent(&script([plain(["c1", "c2"])]), tool_calls(2));
    assert_eq!(exactly.run("go").await.unwrap().usage().tool_calls, 2);
    assert_eq!(recorder.ids(), ["c1", "c2"]);

    let model = script([plain(["c1", "c2", "c3", "c4"])]);
    let (recorder, short) = agent(&model, tool_calls(2));
    let error = short.run("go").await.unwrap_err();
    assert_eq!(over(&error), ["c3", "c4"]);
    assert!(error.to_string().contains("calls `c3`, `c4`"), "{error}");
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let words: Vec<_> = error.turns()[0].calls().iter().map(|call| call.outcome().word()).collect();
    assert_eq!(words, ["returned", "returned", "failed", "failed"]);
    let run = short.ask(stored(error.suspended())).await.unwrap();
    assert_eq!((run.text(), run.usage().tool_calls), (Some("Done."), 2));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let told = results(model.requests()[1].messages());
    assert_eq!(told[3].1, ReturnKind::Failed);
    assert!(told[3].2.as_str().unwrap().contains("did not run"), "{told:?}");
}

// H129: "limit 0 + deferred call: not charged"; denied ones neither (theirs charges them).
#[tokio::test]
async fn only_executed_calls_count_towards_the_limit() {
    let free = ["declared", "external", "asked", "denied", "nothing"];
    let calls = || {
        let mut calls: Vec<_> = free.into_iter().map(of).collect();
        calls.push(call("bad", "plain", json!({"invalid": true})));
        calls
    };
    let (recorder, waiting) = agent(&script([calls()]), tool_calls(0));
    let waits = waiting.run("go").output(text().or_deferred()).await.unwrap();
    assert_eq!(waits.usage().tool_calls, 0);
    let waits = stored(waits.suspended().unwrap());
    let requests = waits.requests();
    let answers =
        requests.answer().deny("declared", "no").deny("asked", "no").result("external", 1);
    let run = waiting.resume(waits.clone(), answers.build().unwrap()).await.unwrap();
    assert_eq!((run.text(), run.usage().tool_calls), (Some("Done."), 0));
    // Approved, it executes, and costs.
    let answers = requests.answer().approve("declared").deny("asked", "no").result("external", 1);
    let error = waiting.resume(waits, answers.build().unwrap()).await.unwrap_err();
    assert_eq!(over(&error), ["declared"]);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn a_body_that_defers_itself_does_not_count() {
    let recorder = Recorder::new(["patient"]).body(|cx, _| {
        match cx.tool_call_metadata().and_then(|map| map.get("enough")) {
            Some(_) => Ok(json!("at last")),
            None => Err(ApprovalRequired::new().into()),
        }
    });
    let model = script([vec![of("patient")]]);
    let agent = Agent::new(model, recorder.clone()).usage_limits(tool_calls(1));
    let agent = agent.output(text().or_deferred());
    let mut run = agent.run("go").await.unwrap();
    for enough in [false, false, true] {
        assert_eq!(run.usage().tool_calls, 0);
        let waits = stored(run.suspended().unwrap());
        let mut answers = waits.requests().answer().approve("patient").build().unwrap();
        if enough {
            answers =
                answers.metadata("patient", json!({"enough": 1}).as_object().unwrap().clone());
        }
        run = agent.resume(waits, answers).await.unwrap();
    }
    assert_eq!((run.text(), run.usage().tool_calls), (Some("Done."), 1));
    assert_eq!(recorder.ran().len(), 4);
}

#[tokio::test]
async fn usage_is_counted_over_suspensions() {
    let model = script([vec![of("plain"), of("declared")], plain(["c3"])]);
    let model = model.then_error("the script is at its end");
    let (recorder, agent) = agent(&model, tool_calls(2).requests(3));
    let waits = agent.run("go").output(text().or_deferred()).await.unwrap();
    let waits = stored(waits.suspended().unwrap());
    assert_eq!((waits.usage().tool_calls, waits.usage().requests), (1, 1));
    let answers = waits.requests().answer().approve("declared").build().unwrap();
    let error = agent.resume(waits, answers).await.unwrap_err();
    assert_eq!(over(&error), ["c3"]);
    assert_eq!(recorder.ids(), ["declared", "plain"]);
    let raised = agent.clone().usage_limits(tool_calls(2).requests(3));
    let run = raised.ask(stored(error.suspended())).await.unwrap();
    assert_eq!((run.usage().tool_calls, run.usage().requests), (2, 3));
    // A new run has its own.
    let run = agent.run("again").history(run.history().to_vec()).await;
    assert!(matches!(run.unwrap_err().error(), Error::Model(_)), "the script is at its end");
}

// "A call counts when its tool is started": the same call, sent again by a layer, is one.
#[tokio::test]
async fn attempts_of_a_retry_layer_count_once() {
    static ATTEMPTS: AtomicUsize = AtomicUsize::new(0);
    let recorder =
        Recorder::new(["plain"]).body(|_, _| match ATTEMPTS.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(ToolError::fatal("not yet")),
            _ => Ok(json!("now")),
        });
    let tools = recorder.clone().layered(RetryLayer::new(Retries::of_failures(5)));
    let agent = Agent::new(script([plain(["c1"])]), tools).usage_limits(tool_calls(1));
    let run = agent.run("go").await.unwrap();
    assert_eq!((run.usage().tool_calls, recorder.ran().len()), (1, 3));
    // A refused call is refused at every attempt.
    let recorder = Recorder::new(["plain"]);
    let tools = recorder.clone().layered(RetryLayer::new(Retries::always(5)));
    let agent = Agent::new(script([plain(["c1"])]), tools).usage_limits(tool_calls(0));
    assert_eq!(over(&agent.run("go").await.unwrap_err()), ["c1"]);
    assert!(recorder.ran().is_empty());
}

// Bodies that fail, or send the model back, have run.
#[tokio::test]
async fn every_started_body_counts() {
    let model = script([vec![of("retried"), of("broken")]]);
    let (recorder, agent) = agent(&model, UsageLimits::new());
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(error.suspended().usage().tool_calls, 2);
    assert_eq!(recorder.ids(), ["broken", "retried"]);
}

// Nothing else is asked when a call was one too many: the error comes before the handler.
#[tokio::test]
async fn the_handler_is_not_asked_when_a_call_exceeds_the_limit() {
    let model = script([vec![of("plain"), of("declared")]]);
    let (recorder, agent) = agent(&model, tool_calls(0));
    let error = agent.run("go").deferred_tool_handler(danger_approve_all()).await.unwrap_err();
    assert_eq!(over(&error), ["plain"]);
    assert!(recorder.ran().is_empty());
    let waits = stored(error.suspended());
    assert_eq!(waits.requests().approvals[0].id(), "declared");
    let raised = agent.clone().usage_limits(tool_calls(1));
    let run = raised.ask(waits).deferred_tool_handler(danger_approve_all()).await.unwrap();
    assert_eq!((run.text(), recorder.ids()), (Some("Done."), vec!["declared".to_owned()]));
}

#[test]
fn every_way_to_run_keeps_the_limits() {
    let over_in = |error: RunError| assert_eq!(over(&error), ["c2"]);
    let agent = || agent(&script([plain(["c1", "c2"])]), tool_calls(1));
    over_in(agent().1.run_sync("go").unwrap_err());
    over_in(agent().1.run_stream_sync("go").unwrap().finish().unwrap_err());
    let agent = agent().1;
    let mut events = agent.run_stream_sync("go").unwrap();
    assert_eq!(events.by_ref().count(), 6, "the error comes behind the last event");
    over_in(events.finish().unwrap_err());
}
