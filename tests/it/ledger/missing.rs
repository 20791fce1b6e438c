//! An approved call whose tool this process does not have: an error for the host, and the approval stays (rule A1).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::agent::TakeUp;
use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::testing::ScriptedModel;
use countersign::{Agent, Args, FunctionToolset, ToolCall, ToolError, schemars, tool_fn};
use serde_json::json;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct File {
    path: String,
}

/// A tool that needs an approval, and counts its runs.
fn tools(runs: &Arc<AtomicUsize>) -> FunctionToolset {
    let runs = Arc::clone(runs);
    let delete = move |file: File| {
        runs.fetch_add(1, Ordering::SeqCst);
        std::future::ready(Ok::<_, ToolError>(format!("deleted {}", file.path)))
    };
    FunctionToolset::new().tool(tool_fn("delete", "Deletes", delete).requires_approval())
}

fn calls() -> ScriptedModel {
    ScriptedModel::calls([ToolCall::new("d1", "delete", json!({"path": "a"}))])
}

#[tokio::test]
async fn an_approved_call_whose_tool_is_missing_is_an_error_and_its_approval_stays() {
    let (runs, ledger) = (Arc::new(AtomicUsize::new(0)), Ledger::new(MemoryStore::new()));
    let agent = Agent::new(calls(), tools(&runs)).ledger(ledger.clone());
    let run = agent.run("go").or_deferred().await.unwrap();
    let ask = ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
    let yes = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
    for _ in 0..2 {
        let model = ScriptedModel::new([]).then_text("over");
        let worker = Agent::new(model.clone(), FunctionToolset::new()).ledger(ledger.clone());
        let TakeUp::Resumed(Err(error)) = worker.take_up(run.run_id()).await.unwrap() else {
            panic!("the host is told")
        };
        let told = countersign::error::with_causes(&error);
        assert!(told.contains("no tool is called `delete` here"), "{told}");
        assert!(model.requests().is_empty(), "the model is not told anything");
        let state = ledger.get(ask.ask.id()).await.unwrap().unwrap().state;
        assert_eq!(state, AskState::Decided);
        assert_eq!(runs.load(Ordering::SeqCst), 0);
    }
    let model = ScriptedModel::new([]).then_text("over");
    let worker = Agent::new(model, tools(&runs)).ledger(ledger.clone());
    let TakeUp::Resumed(Ok(done)) = worker.take_up(run.run_id()).await.unwrap() else {
        panic!("a worker with the tool runs it")
    };
    assert_eq!((done.text(), runs.load(Ordering::SeqCst)), (Some("over"), 1));
    let state = ledger.get(ask.ask.id()).await.unwrap().unwrap().state;
    assert_eq!(state, AskState::Executed);
}

#[tokio::test]
async fn a_stored_run_keeps_its_approval_until_its_tool_is_there() {
    let runs = Arc::new(AtomicUsize::new(0));
    let suspended = Agent::new(calls(), tools(&runs)).run("go").or_deferred().await.unwrap();
    let suspended = suspended.into_suspended().unwrap();
    let requests = suspended.requests().clone();
    let answers = requests.answer();
    let answers = answers.approve_with("d1", Args::new().with("path", "b")).build().unwrap();
    let without = Agent::new(ScriptedModel::new([]), FunctionToolset::new());
    let error = without.resume(suspended, answers).await.unwrap_err();
    let told = countersign::error::with_causes(&error);
    assert!(told.contains("call `d1` was approved"), "{told}");
    // "with the state to resume from": the approval, with the edited arguments, is in it.
    let state = serde_json::to_string(error.suspended()).unwrap();
    let state = serde_json::from_str(&state).unwrap();
    let model = ScriptedModel::new([]).then_text("over");
    let with = Agent::new(model.clone(), tools(&runs));
    let done = with.resume(state, countersign::DeferredToolResults::new()).await.unwrap();
    assert_eq!((done.text(), runs.load(Ordering::SeqCst)), (Some("over"), 1));
    let told = serde_json::to_string(model.requests()[0].messages().last().unwrap()).unwrap();
    assert!(told.contains("deleted b"), "{told}");
}
