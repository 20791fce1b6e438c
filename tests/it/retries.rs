//! The retry budget of a run: `Agent::max_retries`.

use countersign::{
    Agent, Decision, DeferredToolResults, ErrorKind, ExternalToolset, ModelResponse, ModelRetry,
    RunError, ToolCall, ToolDefinition, ToolFailed, Tools, ToolsExt, danger_approve_all, decide_fn,
    handler_fn_sync, text,
};
use serde_json::json;

use crate::support::{Recorder, Script, call, results};

/// A tool that always sends the model back, and one that works.
fn tools() -> Recorder {
    Recorder::new(["locked", "open"]).body(|_, call| match call.name() {
        "locked" => Err(ModelRetry::new("it is locked").into()),
        _ => Ok(json!("opened")),
    })
}

fn locked(id: &str) -> ToolCall {
    call(id, "locked", json!({}))
}

fn open(id: &str) -> ToolCall {
    call(id, "open", json!({}))
}

fn script<const N: usize>(responses: [Vec<ToolCall>; N]) -> Script {
    let script = responses
        .into_iter()
        .fold(Script::default(), |script, calls| script.then(ModelResponse::calls(calls)));
    script.then(ModelResponse::text("done"))
}

/// The call that the run ended about.
fn exceeded_by(error: &RunError) -> Vec<String> {
    let ErrorKind::ModelBehavior { ids, problem } = error.kind() else { panic!("{error:?}") };
    assert!(problem.contains("max_retries"), "{problem}");
    ids.clone()
}

// "The failure after `max_retries` failures ends the run … about that call", per tool name, within one run.
#[tokio::test]
async fn the_failure_after_the_last_retry_ends_the_run_about_its_call() {
    for (max, ids) in [(0, ["c1"]), (1, ["c2"]), (2, ["c3"])] {
        let model = script([vec![locked("c1")], vec![locked("c2")], vec![locked("c3")]]);
        let agent = Agent::new(model, tools()).max_retries(max);
        assert_eq!(exceeded_by(&agent.run("go").await.unwrap_err()), ids);
    }
    // The default is 1, and each tool has a budget of its own.
    let model = script([vec![locked("c1")], vec![call("c2", "nope", json!({}))], vec![open("c3")]]);
    let run = Agent::new(model, tools()).run("go").await.unwrap();
    assert_eq!(run.text(), Some("done"));
    let model = script([vec![locked("c1")], vec![open("c2")], vec![locked("c3")]]);
    let error = Agent::new(model, tools()).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c3"]);
}

// Invalid arguments and unknown tools count; several failures in one response are no retries of each other.
#[tokio::test]
async fn what_counts_and_how_often() {
    let unreadable = |id: &str| call(id, "open", json!([1]));
    let unknown = |id: &str| call(id, "nope", json!({}));
    for (first, second) in [(unreadable("c1"), unreadable("c2")), (unknown("c1"), unknown("c2"))] {
        let error =
            Agent::new(script([vec![first], vec![second]]), tools()).run("go").await.unwrap_err();
        assert_eq!(exceeded_by(&error), ["c2"]);
    }
    let run = Agent::new(script([vec![locked("c1"), locked("c2")]]), tools()).run("go").await;
    assert_eq!(run.unwrap().text(), Some("done"));
}

// "Denials, failures, deferrals and a `model_retry` given as an external result do not count."
#[tokio::test]
async fn denials_failures_deferrals_and_external_results_cost_nothing() {
    let failing = Recorder::new(["fail"]).body(|_, _| Err(ToolFailed::new("no").into()));
    let denied = Recorder::new(["deny"])
        .id("denied")
        .layered(decide_fn(|_: &ToolCall| Decision::deny("no")));
    let asked = Recorder::new(["ask"]).approval_required();
    let elsewhere =
        ExternalToolset::new("ext", [ToolDefinition::new("search", json!({"type": "object"}))]);
    let tools = Tools::combined([failing.into(), denied, asked, elsewhere.into()]);
    let calls = |n: u32| {
        ["fail", "deny", "ask", "search"].map(|tool| call(&format!("{tool}{n}"), tool, json!({})))
    };
    let handler = handler_fn_sync(|_, requests| {
        let id = |of: &[ToolCall]| of[0].id().to_owned();
        let answers = requests.answer().approve(id(&requests.approvals));
        answers.result(id(&requests.calls), ModelRetry::new("be specific")).build()
    });
    let model = script([calls(1).to_vec(), calls(2).to_vec(), calls(3).to_vec()]);
    let agent = Agent::new(model, tools).max_retries(0).deferred_tool_handler(handler);
    assert_eq!(agent.run("go").await.unwrap().text(), Some("done"));
}

// T9: "Every error after something ran carries the suspended run, with settled calls settled, so that resuming runs
// nothing twice." T8: the siblings finish first.
#[tokio::test]
async fn siblings_settle_nobody_is_asked_and_the_run_goes_on_from_the_error() {
    let recorder = tools();
    let tools = recorder.clone().approval_required_if(|_, call| call.id() == "c3");
    let model = script([vec![locked("c1"), open("c2"), open("c3")]]);
    let agent =
        Agent::new(model.clone(), tools).max_retries(0).deferred_tool_handler(danger_approve_all());
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c1"]);
    assert_eq!(recorder.ids(), ["c1", "c2"], "the siblings have run, and nobody was asked");

    let suspended = error.into_suspended();
    let answers = suspended.requests().answer().deny("c3", "not now").build().unwrap();
    let run = agent.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("done"));
    assert_eq!(recorder.ids(), ["c1", "c2"], "nothing runs twice, and no failure counts twice");
    let told = results(&model.heard()[1].messages);
    assert_eq!(told.len(), 3, "every call has its result");
}

// "Within one run": what an approved call fails with counts too, and a run that is resumed counts afresh.
#[tokio::test]
async fn an_approved_call_costs_as_any_other_and_a_resumed_run_counts_afresh() {
    let model = script([vec![locked("c1")], vec![locked("c2")]]);
    let agent = |max| {
        let tools = tools().approval_required();
        Agent::new(model.clone(), tools).max_retries(max).output(text().or_deferred())
    };
    let suspended = agent(1).run("go").await.unwrap().into_suspended().unwrap();
    let approve = |id: &str| DeferredToolResults::new().approve(id);
    let error = agent(0).resume(suspended.clone(), approve("c1")).await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c1"]);
    let suspended = agent(1).resume(suspended, approve("c1")).await.unwrap();
    let suspended = suspended.into_suspended().unwrap();
    let run = agent(1).resume(suspended, approve("c2")).await.unwrap();
    assert_eq!(run.text(), Some("done"));
}

// As PydanticAI counts: failures in a row.
#[tokio::test]
async fn a_tool_that_succeeds_has_its_budget_again() {
    let recorder = || {
        Recorder::new(["pick"]).body(|_, call| match call.args()["open"].as_bool() {
            Some(true) => Ok(json!("opened")),
            _ => Err(ModelRetry::new("it is locked").into()),
        })
    };
    let pick = |id: &str, open: bool| call(id, "pick", json!({"open": open}));
    let model = script([vec![pick("c1", false)], vec![pick("c2", true)], vec![pick("c3", false)]]);
    assert_eq!(Agent::new(model, recorder()).run("go").await.unwrap().text(), Some("done"));
    // One that succeeds and fails in the same response has failed.
    let both = vec![pick("c2", true), pick("c3", false)];
    let model = script([vec![pick("c1", false)], both]);
    let error = Agent::new(model, recorder()).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c3"]);
}

#[tokio::test]
async fn a_call_that_cannot_be_used_ends_the_run_before_its_siblings_run() {
    let recorder = tools();
    let model = script([vec![open("c1"), call("c2", "nope", json!({}))]]);
    let error = Agent::new(model, recorder.clone()).max_retries(0).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c2"]);
    assert!(recorder.ran().is_empty());
    assert_eq!(
        error.suspended().history().len(),
        1,
        "the history is as it was before the response"
    );
}
