//! Group H: events. Each event passes through its JSON, as a page would get it.

use std::sync::{Arc, Mutex};

use countersign::agent::text;
use countersign::call::ToolKind;
use countersign::handler::handler_fn_sync;
use countersign::model::ModelResponse;
use countersign::outcome::{ApprovalRequired, CallDeferred};
use countersign::testing::ScriptedModel;
use countersign::turn::RunEvent;
use countersign::{Agent, SuspendedRun, ToolCall, ToolDefinition};
use serde_json::{Value, json};

use crate::support::{Recorder, call};

/// The JSON of the events of calls, in order.
type Events = Arc<Mutex<Vec<Value>>>;

fn watch(events: &Events) -> impl Fn(&RunEvent) + Send + Sync + 'static {
    let events = Arc::clone(events);
    move |event| {
        let written = serde_json::to_value(event).unwrap();
        let kind = written["event_kind"].as_str().unwrap();
        if kind.starts_with("function_tool") || kind.starts_with("deferred") {
            // H128: events survive a round trip, distinguished by `event_kind`.
            let read: RunEvent = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), written);
            events.lock().unwrap().push(written);
        }
    }
}

/// The kinds of the events so far, with the validity of the arguments.
fn kinds(events: &Events) -> Vec<String> {
    let short = |event: Value| match &event["event_kind"] {
        kind if kind == "function_tool_call" => {
            format!(
                "call {} {}",
                event["part"]["tool_call_id"].as_str().unwrap(),
                event["args_valid"]
            )
        }
        kind if kind == "function_tool_result" => {
            format!(
                "result {} {}",
                event["part"]["tool_call_id"].as_str().unwrap(),
                event["part"]["content"]
            )
        }
        kind => kind.as_str().unwrap().to_owned(),
    };
    events.lock().unwrap().drain(..).map(short).collect()
}

fn declared() -> Recorder {
    Recorder::of([ToolDefinition::new("delete", json!({})).with_kind(ToolKind::Unapproved)])
}

fn delete(id: &str) -> ToolCall {
    call(id, "delete", json!({}))
}

#[tokio::test]
async fn h123_h128_a_call_has_events_from_start_to_result() {
    let events = Events::default();
    let handler =
        handler_fn_sync(|_, requests| requests.answer().approve("c1").answered_by("ann").build());
    let agent =
        Agent::new(ScriptedModel::calls([delete("c1")]), declared()).deferred_tool_handler(handler);
    let _done = agent.run("go").watch(watch(&events)).await.unwrap();
    assert_eq!(events.lock().unwrap()[2]["results"]["answered_by"], json!({"c1": "ann"}));
    let expected =
        ["call c1 true", "deferred_tool_requests", "deferred_tool_results", "result c1 {}"];
    assert_eq!(kinds(&events), expected);
}

// H127: also of a call that its body defers, after its arguments were found to fit.
#[tokio::test]
async fn h124_h127_calls_that_bodies_defer_are_one_batch() {
    let events = Events::default();
    let tools = Recorder::new(["ask", "hand_out"]).body(|_, call| match call.name() {
        "ask" => Err(ApprovalRequired::new().into()),
        _ => Err(CallDeferred::new().into()),
    });
    let calls = [call("c1", "ask", json!({})), call("c2", "hand_out", json!({}))];
    let agent = Agent::new(ScriptedModel::calls(calls), tools).output(text().or_deferred());
    let run = agent.run("go").watch(watch(&events)).await.unwrap();
    let told = events.lock().unwrap().last().unwrap()["requests"].clone();
    assert_eq!(told, serde_json::to_value(run.suspended().unwrap().requests()).unwrap());
    assert_eq!(
        (told["approvals"].as_array().unwrap().len(), told["calls"].as_array().unwrap().len()),
        (1, 1)
    );
    assert_eq!(kinds(&events), ["call c1 true", "call c2 true", "deferred_tool_requests"]);
}

async fn waiting(model: &ScriptedModel) -> (Agent, SuspendedRun) {
    let agent = Agent::new(model.clone(), declared()).output(text().or_deferred());
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    (agent, run)
}

// H125, H126: on a resume the answered calls have start events again; the arguments of a denied one are not checked.
#[tokio::test]
async fn h125_h126_the_event_of_a_resumed_call_says_whether_its_arguments_fit() {
    let events = Events::default();
    let (agent, run) = waiting(&ScriptedModel::calls([delete("c1"), delete("c2")])).await;
    let answers = run.requests().answer().approve("c1").deny("c2", "keep it").build().unwrap();
    let _done = agent.resume(run, answers).watch(watch(&events)).await.unwrap();
    let mut told = kinds(&events);
    told.sort();
    assert_eq!(told, ["call c1 true", "call c2 null", "result c1 {}", "result c2 \"keep it\""]);
}

// Invalid arguments are reported as such, and those of external calls are not checked.
#[tokio::test]
async fn h127_events_say_whether_arguments_are_valid_invalid_or_unchecked() {
    let events = Events::default();
    let tools = Recorder::of([
        ToolDefinition::new("delete", json!({})).with_kind(ToolKind::Unapproved),
        ToolDefinition::new("search", json!({})).with_kind(ToolKind::External),
    ]);
    let calls =
        [call("c1", "delete", json!({"invalid": 1})), call("c2", "search", json!({"invalid": 1}))];
    let model = ScriptedModel::new([]).then(ModelResponse::calls(calls));
    let agent = Agent::new(model, tools).output(text().or_deferred());
    let _waits = agent.run("go").watch(watch(&events)).await.unwrap();
    let told = kinds(&events);
    assert_eq!(&told[..2], ["call c1 false", "call c2 null"]);
}
