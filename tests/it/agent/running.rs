//! The agent loop: handlers of a run and of the agent, suspended runs, errors that lose nothing.

use std::sync::{Arc, Mutex};

use countersign::agent::{RunError, text};
use countersign::handler::{DenyAll, danger_approve_all};
use countersign::message::{RequestPart, ReturnKind};
use countersign::model::ModelResponse;
use countersign::outcome::ToolReturn;
use countersign::testing::ScriptedModel;
use countersign::turn::RunEvent;
use countersign::{
    Agent, AnswerError, BoxError, DeferredToolResults, Error, Message, SuspendedRun, ToolError,
    ToolsExt, UserError,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, last_seen};

fn two() -> ModelResponse {
    ModelResponse::calls([
        call("c1", "read", json!({"n": 1})),
        call("c2", "delete", json!({"n": 2})),
    ])
}

fn tools() -> Recorder {
    Recorder::new(["read", "delete"])
}

fn asking(tools: &Recorder) -> countersign::Tools {
    tools.clone().approval_required_if(|_, call| call.name() == "delete")
}

/// The results in the last request, as (call, kind, content).
fn results(history: &[Message]) -> Vec<(String, ReturnKind, Value)> {
    let Some(Message::Request { parts }) = history.last() else { panic!("{history:?}") };
    let result = |part: &RequestPart| match part {
        RequestPart::ToolReturn { tool_call_id, outcome, content, .. } => {
            Some((tool_call_id.clone(), *outcome, content.clone()))
        }
        _ => None,
    };
    parts.iter().filter_map(result).collect()
}

#[tokio::test]
async fn the_handler_of_a_run_overrides_the_agents_and_can_be_switched_off() {
    // The proposal: "If a handler is provided to `run()` …, it overrides the `Agent` default."
    let recorder = tools();
    let agent = |output| {
        Agent::new(ScriptedModel::new([two()]), asking(&recorder))
            .deferred_tool_handler(danger_approve_all())
            .output(output)
    };
    assert_eq!(agent(text()).run("go").await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let run =
        agent(text()).run("go").deferred_tool_handler(DenyAll::new("not today")).await.unwrap();
    assert_eq!(run.turns()[0].calls()[1].outcome().content().unwrap(), "not today");
    assert_eq!(recorder.ids(), ["c1", "c1", "c2"]);
    let run = agent(text().or_deferred()).run("go").without_deferred_tool_handler().await.unwrap();
    assert!(run.suspended().is_some());
}

#[tokio::test]
async fn a_run_is_suspended_stored_and_resumed_in_another_process() {
    // The proposal: "Hours later, when approval comes via webhook"; the proposal: "the agent loop continues with tool results".
    let recorder = tools();
    let model = ScriptedModel::new([two()]);
    let agent = Agent::new(model.clone(), asking(&recorder)).output(text().or_deferred());
    let run = agent.run("Clean up").await.unwrap();
    let stored = serde_json::to_string(run.suspended().unwrap()).unwrap();
    assert_eq!(recorder.ids(), ["c1"]);

    let suspended: SuspendedRun = serde_json::from_str(&stored).unwrap();
    assert_eq!(&suspended, run.suspended().unwrap());
    let answers = suspended.requests().answer().approve("c2").answered_by("ann").build().unwrap();
    let run = agent.resume(suspended, answers).saying("And be quick.").await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"], "what ran in the first process does not run again");
    let seen = last_seen(&model);
    let expected = [("c1", json!({"n": 1})), ("c2", json!({"n": 2}))];
    assert_eq!(
        results(&seen),
        expected.map(|(id, value)| (id.to_owned(), ReturnKind::Success, value))
    );
    let Some(Message::Request { parts }) = seen.last() else { panic!() };
    assert!(matches!(&parts[2], RequestPart::UserPrompt { content } if content == "And be quick."));
}

#[tokio::test]
async fn unanswered_calls_are_an_error_that_names_the_fix_and_loses_nothing() {
    // The proposal: "If deferred calls are returned …, `DeferredToolRequests` must be included in `output_type`, otherwise
    // raise `UserError`".  T9.
    let recorder = tools();
    let agent = Agent::new(ScriptedModel::new([two()]), asking(&recorder));
    let error = agent.run("go").await.unwrap_err();
    assert!(
        matches!(error.error(), Error::User(UserError::DeferredNotExpected { ids, .. }) if ids == &["c2"])
    );
    assert!(error.to_string().contains("or_deferred()"), "{error}");
    let suspended = error.into_suspended();
    let answers = suspended.requests().answer().approve("c2").build().unwrap();
    assert_eq!(agent.resume(suspended, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

#[tokio::test]
async fn every_error_after_something_ran_can_be_resumed_and_runs_nothing_twice() {
    // T9, in each way a run can fail.
    let recorder = tools();
    let agent =
        Agent::new(ScriptedModel::new([two()]).then_error("the line is dead"), recorder.clone());
    let error = agent.run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::Model(_)), "{error:?}");
    let run = agent.resume(error.into_suspended(), DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);

    let recorder = tools().body(|_, call| match call.id() {
        "c2" => Err(ToolError::fatal("disk on fire")),
        _ => Ok(json!("fine")),
    });
    let model = ScriptedModel::new([two()]);
    let agent = Agent::new(model.clone(), recorder.clone());
    let error: RunError = agent.run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { id, .. } if id == "c2"), "{error:?}");
    assert_eq!(error.turns()[0].calls()[0].outcome().word(), "returned");
    let stored = serde_json::to_string(error.suspended()).unwrap();
    let suspended: SuspendedRun = serde_json::from_str(&stored).unwrap();
    let run = agent.resume(suspended, DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let kinds: Vec<_> = results(&last_seen(&model)).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds, [ReturnKind::Success, ReturnKind::Failed], "T3: one result for every call");
}

#[tokio::test]
async fn a_response_with_duplicate_ids_is_an_error_and_the_history_stays_usable() {
    let same = ModelResponse::calls([call("c", "read", json!({})), call("c", "delete", json!({}))]);
    let recorder = tools();
    let agent = Agent::new(ScriptedModel::new([same]), recorder.clone());
    let error = agent.run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { .. }), "{error:?}");
    assert!(recorder.ran().is_empty());
    let run = agent.resume(error.into_suspended(), DeferredToolResults::new()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
}

#[tokio::test]
async fn an_id_that_was_used_before_is_replaced() {
    let again = || ModelResponse::calls([call("c1", "read", json!({}))]);
    let agent = Agent::new(ScriptedModel::new([again(), again()]), tools());
    let run = agent.run("go").await.unwrap();
    let mut ids: Vec<_> = run
        .history()
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.id().to_owned())
        .collect();
    assert_eq!(ids[0], "c1");
    ids.dedup();
    assert_eq!(ids.len(), 2);
}

#[tokio::test]
async fn pending_calls_can_be_closed_to_continue_with_a_new_message() {
    // T3: "Every call ends with one result … under … a new user message (`SuspendedRun::close`)".
    let recorder = tools();
    let model = ScriptedModel::new([two()]);
    let agent = Agent::new(model.clone(), asking(&recorder)).output(text().or_deferred());
    let suspended = agent.run("go").await.unwrap().into_suspended().unwrap();

    let history = suspended.history().to_vec();
    let error = agent.run("never mind").history(history).await.unwrap_err();
    assert!(matches!(error.error(), Error::User(UserError::History { .. })), "{error:?}");

    let history = suspended.close("the user said something else");
    let expected = [("c1", ReturnKind::Success), ("c2", ReturnKind::Failed)]
        .map(|(id, kind)| (id.to_owned(), kind));
    let told: Vec<_> = results(&history).into_iter().map(|(id, kind, _)| (id, kind)).collect();
    assert_eq!(told, expected);
    let run = agent.run("never mind").history(history).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn stored_runs_that_were_cut_edited_or_written_by_another_version_are_refused() {
    let agent =
        Agent::new(ScriptedModel::new([two()]), asking(&tools())).output(text().or_deferred());
    let suspended = agent.run("go").await.unwrap().into_suspended().unwrap();
    let stored = serde_json::to_string(&suspended).unwrap();
    let read = |text: &str| {
        serde_json::from_str::<SuspendedRun>(text).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(read(&stored), Ok(()));
    for cut in [0, 1, stored.len() / 2, stored.len() - 1] {
        assert!(read(&stored[..cut]).is_err(), "cut at {cut}");
    }
    let edit = |from: &str, to: &str| {
        assert!(stored.contains(from), "{from} is not in {stored}");
        read(&stored.replace(from, to)).unwrap_err()
    };
    assert!(edit("\"version\":1,", "\"version\":2,").contains("version 2"));
    assert!(edit("\"version\":1,", "").contains("version"));
    assert!(
        edit("\"shown\":{\"n\":2}", "\"shown\":{\"n\":9999}")
            .contains("changed after it was stored")
    );
    assert!(edit("\"id\":null,", "\"id\":null,\"tool_call_id\":\"x\",").contains("appears twice"));
    assert!(
        edit("\"key\":\"approval required\"", "\"key\":\"harmless\"")
            .contains("changed after it was stored")
    );
    assert!(edit("\"response\":0", "\"response\":1").contains("changed after it was stored"));
    assert!(edit("\"history\":[", "\"history\":[],\"x\":[").contains("last response"));
}

#[tokio::test]
async fn answers_without_pending_calls_and_empty_runs_are_errors() {
    let agent = Agent::new(ScriptedModel::new([]), tools());
    let run = agent.run("go").await.unwrap();
    let error =
        agent.resume(empty(&run), DeferredToolResults::new().approve("c1")).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::Answers(AnswerError::Unknown { ids }) if ids == &["c1"])
    );
    let error = agent.resume(empty(&run), DeferredToolResults::new()).await.unwrap_err();
    assert!(matches!(error.error(), Error::User(UserError::History { .. })), "{error:?}");
}

/// A run of which nothing is left.
fn empty(run: &countersign::agent::RunResult) -> SuspendedRun {
    let stored =
        json!({"version": 1, "run_id": run.run_id(), "responses": 0, "history": [], "turn": null});
    serde_json::from_value(stored).unwrap()
}

#[tokio::test]
async fn additional_content_of_tools_follows_all_results() {
    // pydantic.md A8: all tool results first, then all user content.
    #[derive(Clone)]
    struct Beside;
    impl countersign::Toolset for Beside {
        fn id(&self) -> &str {
            "beside"
        }
        async fn definitions(
            &self,
            _: &countersign::RunContext,
        ) -> Result<Vec<countersign::ToolDefinition>, BoxError> {
            Ok(vec![countersign::ToolDefinition::new("read", json!({}))])
        }
        async fn run(&self, permit: countersign::Permit) -> Result<ToolReturn, ToolError> {
            Ok(ToolReturn { content: Some(permit.call().id().into()), ..ToolReturn::new("value") })
        }
    }
    let model = ScriptedModel::new([ModelResponse::calls([
        call("c1", "read", json!({})),
        call("c2", "read", json!({})),
    ])]);
    let _ = Agent::new(model.clone(), Beside).run("go").await.unwrap();
    let seen = serde_json::to_value(last_seen(&model).last().unwrap()).unwrap();
    let kinds: Vec<_> =
        seen["parts"].as_array().unwrap().iter().map(|part| part["part_kind"].clone()).collect();
    assert_eq!(kinds, ["tool-return", "tool-return", "user-prompt", "user-prompt"]);
    assert_eq!(seen["parts"][2]["content"], "c1");
}

#[tokio::test]
async fn a_run_can_be_watched_and_has_dependencies() {
    struct Db(&'static str);
    let events = Arc::new(Mutex::new(Vec::new()));
    let watch = {
        let events = Arc::clone(&events);
        move |event: &RunEvent| {
            events.lock().unwrap().push(serde_json::to_value(event).unwrap()["event_kind"].clone());
        }
    };
    let recorder = tools().body(|cx, _| Ok(cx.deps::<Db>()?.0.into()));
    let agent =
        Agent::new(ScriptedModel::new([two()]), recorder.clone()).deps(Db("agent's")).watch(watch);
    let run = agent.run("go").deps(Db("run's")).await.unwrap();
    assert_eq!(run.turns()[0].calls()[0].outcome().content().unwrap(), "run's");
    let expected = [
        "response",
        "function_tool_call",
        "function_tool_call",
        "function_tool_result",
        "function_tool_result",
        "tool_calls_done",
        "text_delta",
        "response",
    ];
    assert_eq!(*events.lock().unwrap(), expected);

    let without = Agent::new(ScriptedModel::new([two()]), recorder).run("go").await.unwrap_err();
    let source = std::error::Error::source(&without).unwrap().to_string();
    assert!(source.contains("Db") && source.contains(".deps(value)"), "{source}");
}

#[test]
fn a_history_has_the_shape_of_pydantic_ai() {
    let shape = json!([
        {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "go"}]},
        {"kind": "response", "parts": [
            {"part_kind": "text", "content": "well"},
            {"part_kind": "tool-call", "tool_name": "read", "tool_call_id": "c1", "args": {"n": 1}, "tool_kind": null,
             "id": null, "provider_name": null, "provider_details": null},
        ]},
        {"kind": "request", "parts": [
            {"part_kind": "tool-return", "tool_name": "read", "tool_call_id": "c1", "content": 7, "outcome": "success"},
        ]},
    ]);
    let history: Vec<Message> = serde_json::from_value(shape.clone()).unwrap();
    assert_eq!(serde_json::to_value(&history).unwrap(), shape);
}

#[tokio::test]
async fn the_model_is_told_that_a_person_edited_its_call() {
    // A2: History keeps what the model sent, and can tell the model that a human edited the call.
    let edits = countersign::handler::handler_fn_sync(|_, requests| {
        requests.answer().approve_with("c2", countersign::Args::new().with("n", 5)).build()
    });
    let model = ScriptedModel::new([two()]);
    let agent = Agent::new(model.clone(), asking(&tools())).deferred_tool_handler(edits);
    let run = agent.run("go").await.unwrap();
    let sent: Vec<_> = run
        .history()
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.args()["n"].clone())
        .collect();
    assert_eq!(sent, [1, 2]);
    let seen = serde_json::to_value(last_seen(&model).last().unwrap()).unwrap();
    assert_eq!(
        seen["parts"][2]["content"],
        "A person changed the arguments of call c2 before it ran, to {\"n\":5}."
    );
    let model = ScriptedModel::new([two()]);
    let edits = countersign::handler::handler_fn_sync(|_, requests| {
        requests.answer().approve_with("c2", countersign::Args::new().with("n", 5)).build()
    });
    let quiet = Agent::new(model.clone(), asking(&tools())).deferred_tool_handler(edits);
    drop(quiet.tell_edits(false).run("go").await.unwrap());
    let seen = serde_json::to_value(last_seen(&model).last().unwrap()).unwrap();
    assert_eq!(seen["parts"].as_array().unwrap().len(), 2, "{seen}");
}

#[tokio::test]
async fn a_suspended_run_can_be_resumed_by_asking_a_handler() {
    let recorder = tools();
    let model = ScriptedModel::new([two()]);
    let agent = Agent::new(model.clone(), asking(&recorder)).output(text().or_deferred());
    let suspended = agent.run("go").await.unwrap().into_suspended().unwrap();
    // Without a handler the same requests come back, and the model is not asked.
    let again = agent.ask(suspended.clone()).await.unwrap().into_suspended().unwrap();
    assert_eq!((again.requests(), model.requests().len()), (suspended.requests(), 1));
    let run = agent.ask(again).deferred_tool_handler(danger_approve_all()).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
    let told: Vec<_> = run.turns()[0].calls().iter().map(|call| call.settled_before()).collect();
    assert_eq!(told, [true, false], "the report tells what is new");
}

#[tokio::test]
async fn a_stored_response_keeps_its_report() {
    let recorder = tools();
    let tools =
        recorder.clone().approval_required().layered(countersign::decide_fn(|_, call| match call
            .name()
        {
            "read" => countersign::Decision::deny("no reading"),
            _ => countersign::Decision::from(call.args().clone().with("n", 7)),
        }));
    let turn = countersign::Turn::new(tools);
    let calls = ["c1", "c2", "c3"]
        .map(|id| call(id, if id == "c1" { "read" } else { "delete" }, json!({})))
        .to_vec();
    let mut suspended = turn.run(calls).await.unwrap().into_suspended().unwrap();
    for id in ["c2", "c3"] {
        let requests = suspended.requests();
        let answers =
            requests.answer().approve(id).answered_by("ann").leave_rest().build().unwrap();
        let report = turn.resume(suspended, answers).await.unwrap();
        let before = |at: usize| report.calls()[at].denied_by().map(str::to_owned);
        assert!(before(0).is_some() && before(1).is_none());
        assert_eq!(report.calls()[1].answered().unwrap().by(), Some("ann"));
        assert_eq!(report.calls()[1].args()["n"], 7);
        assert!(report.calls()[1].execution().started());
        let Some(rest) = report.into_suspended() else { return };
        suspended = serde_json::from_str(&serde_json::to_string(&rest).unwrap()).unwrap();
    }
    panic!("it still waits");
}

#[tokio::test]
async fn a_panic_of_a_watcher_does_not_end_the_run() {
    let recorder = tools();
    let agent =
        Agent::new(ScriptedModel::new([two()]), recorder.clone()).watch(|_| panic!("broken pipe"));
    assert_eq!(agent.run("go").await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

#[tokio::test]
async fn a_history_without_open_calls_takes_a_prompt_and_refuses_answers() {
    // A4: "answers by id, strict and total: … an unknown id … is a `UserError` naming the ids". A6: "A bare history
    // enters only by `SuspendedRun::from_trusted_history`".
    let agent = Agent::new(ScriptedModel::new([two()]), tools());
    let history = agent.run("go").await.unwrap().history().to_vec();
    let suspended = SuspendedRun::from_trusted_history(history.clone());
    assert!(suspended.requests().is_empty());
    let again = DeferredToolResults::new().approve("c2").approve("c1").result("c1", 1);
    let error = agent.resume(suspended, again).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::Answers(AnswerError::Unknown { ids }) if ids == &["c1", "c2"])
    );
    let suspended = error.into_suspended();
    assert_eq!(suspended.history(), history);
    let run = agent.resume(suspended, DeferredToolResults::new()).saying("more").await.unwrap();
    assert_eq!(run.text(), Some("Done."));
}
