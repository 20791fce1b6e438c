//! The retry budget of a run: `Agent::max_retries`.

use countersign::agent::{RunError, text};
use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::model::ModelResponse;
use countersign::outcome::{ApprovalRequired, ModelRetry, ToolFailed};
use countersign::testing::ScriptedModel;
use countersign::toolset::{ExternalToolset, Tool};
use countersign::{
    Agent, Decision, DeferredToolResults, Error, FunctionToolset, ToolCall, ToolDefinition, Tools,
    ToolsExt, decide_fn, tool_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, results};

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

fn script<const N: usize>(responses: [Vec<ToolCall>; N]) -> ScriptedModel {
    let script = responses
        .into_iter()
        .fold(ScriptedModel::new([]), |script, calls| script.then(ModelResponse::calls(calls)));
    script.then(ModelResponse::text("Done."))
}

/// The call that the run ended about.
fn exceeded_by(error: &RunError) -> Vec<String> {
    let Error::ModelBehavior { ids, problem } = error.error() else { panic!("{error:?}") };
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
    assert_eq!(run.text(), Some("Done."));
    let model = script([vec![locked("c1")], vec![open("c2")], vec![locked("c3")]]);
    let error = Agent::new(model, tools()).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c3"]);
}

// Invalid arguments and unknown tools count; several failures in one response are no retries of each other.
#[tokio::test]
async fn failures_count_once_per_tool_and_response() {
    let unreadable = |id: &str| call(id, "open", json!([1]));
    let unknown = |id: &str| call(id, "nope", json!({}));
    for (first, second) in [(unreadable("c1"), unreadable("c2")), (unknown("c1"), unknown("c2"))] {
        let error =
            Agent::new(script([vec![first], vec![second]]), tools()).run("go").await.unwrap_err();
        assert_eq!(exceeded_by(&error), ["c2"]);
    }
    let run = Agent::new(script([vec![locked("c1"), locked("c2")]]), tools()).run("go").await;
    assert_eq!(run.unwrap().text(), Some("Done."));
}

// "Denials, failures, deferrals and a `model_retry` given as an external result do not count."
#[tokio::test]
async fn denials_failures_deferrals_and_external_results_cost_nothing() {
    let failing = Recorder::new(["fail"]).body(|_, _| Err(ToolFailed::new("no").into()));
    let denied =
        Recorder::new(["deny"]).id("denied").layered(decide_fn(|_, _| Decision::deny("no")));
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
    assert_eq!(agent.run("go").await.unwrap().text(), Some("Done."));
}

// T9: "Every error after something ran carries the suspended run, with settled calls settled, so that resuming runs
// nothing twice." T8: the siblings finish first.
#[tokio::test]
async fn after_the_last_retry_siblings_settle_and_the_handler_is_not_asked() {
    let recorder = tools();
    let tools = recorder.clone().approval_required_if(|_, call| call.id() == "c3");
    let model = script([vec![locked("c1"), open("c2"), open("c3")]]);
    let agent =
        Agent::new(model.clone(), tools).max_retries(0).deferred_tool_handler(danger_approve_all());
    let error = agent.run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c1"]);
    assert_eq!(
        recorder.ids(),
        ["c1", "c2"],
        "the siblings have run, and the handler was not asked"
    );

    let suspended = error.into_suspended();
    let answers = suspended.requests().answer().deny("c3", "not now").build().unwrap();
    let run = agent.resume(suspended, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1", "c2"], "nothing runs twice, and no failure counts twice");
    let told = results(model.requests()[1].messages());
    assert_eq!(told.len(), 3, "every call has its result");
}

// "Within one run": what an approved call fails with counts too, and a run that is resumed counts afresh.
#[tokio::test]
async fn an_approved_call_costs_retries_and_a_resumed_run_counts_afresh() {
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
    assert_eq!(run.text(), Some("Done."));
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
    assert_eq!(Agent::new(model, recorder()).run("go").await.unwrap().text(), Some("Done."));
    // One that succeeds and fails in the same response has failed.
    let both = vec![pick("c2", true), pick("c3", false)];
    let model = script([vec![pick("c1", false)], both]);
    let error = Agent::new(model, recorder()).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["c3"]);
}

#[tokio::test]
async fn an_unusable_call_ends_the_run_before_its_siblings_run() {
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

/// A tool that always sends the model back.
fn stuck(name: &'static str) -> Tool {
    tool_fn(name, "", async |_: Value| Err::<(), _>(ModelRetry::new("it is stuck")))
}

/// How many calls of `tool` the model could make before the run ended about one of them.
async fn calls_of(tool: &str, tools: impl Into<Tools>, agent: u32) -> usize {
    let model = (0..9).fold(ScriptedModel::new([]), |script, n| {
        script.then(ModelResponse::calls([call(&format!("c{n}"), tool, json!({}))]))
    });
    let error = Agent::new(model.clone(), tools).max_retries(agent).run("go").await.unwrap_err();
    exceeded_by(&error);
    model.requests().len()
}

#[tokio::test]
async fn i142_a_tool_comes_before_its_toolset_and_the_toolset_before_the_agent() {
    let set = || FunctionToolset::new().tool(stuck("own").max_retries(3)).tool(stuck("plain"));
    assert_eq!(calls_of("own", set().max_retries(2), 1).await, 4);
    assert_eq!(calls_of("plain", set().max_retries(2), 1).await, 3);
    assert_eq!(calls_of("plain", set(), 1).await, 2);
    // Also where it says less, and none at all.
    assert_eq!(calls_of("plain", set().max_retries(0), 5).await, 1);
    let none = FunctionToolset::new().tool(stuck("none").max_retries(0)).max_retries(4);
    assert_eq!(calls_of("none", none, 5).await, 1);
    // An unknown tool has the limit of the agent.
    assert_eq!(calls_of("nope", set().max_retries(3), 1).await, 2);
}

#[tokio::test]
async fn a_wrapper_lowers_the_retries_of_a_tool_and_never_raises_them() {
    let says = |max: u32| {
        move |_: &_, tools: Vec<ToolDefinition>| {
            tools.into_iter().map(|it| it.with_max_retries(max)).collect()
        }
    };
    let set = || FunctionToolset::new().tool(stuck("own").max_retries(2)).tool(stuck("plain"));
    assert_eq!(calls_of("own", set().prepared(says(1)), 5).await, 2);
    assert_eq!(calls_of("own", set().prepared(says(4)), 5).await, 3);
    assert_eq!(calls_of("own", set().prepared(says(1)).prepared(says(4)), 5).await, 2);
    assert_eq!(
        calls_of("plain", set().prepared(says(3)), 1).await,
        4,
        "without a limit of its own"
    );
    assert_eq!(calls_of("p_own", set().prefixed("p"), 5).await, 3, "names change, budgets do not");
    // A definition that is built anew keeps what was said.
    let anew = |_: &_, _: Vec<ToolDefinition>| vec![ToolDefinition::new("own", json!({}))];
    assert_eq!(calls_of("own", set().prepared(anew), 5).await, 3);
}

// A definition that travels (to a cache, to a page) keeps its budget, and one without says nothing about it.
#[test]
fn a_budget_is_stored_with_its_definition() {
    let definition = ToolDefinition::new("a", json!({}));
    assert!(serde_json::to_value(&definition).unwrap().get("max_retries").is_none());
    let stored = serde_json::to_value(definition.with_max_retries(2)).unwrap();
    assert_eq!(stored["max_retries"], 2);
    let read: ToolDefinition = serde_json::from_value(stored).unwrap();
    assert_eq!(read.max_retries(), Some(2));
}

// I140: what a tool has cost is its own, over steps in which others are called; one that fails and succeeds within one
// step has failed.
#[tokio::test]
async fn i140_each_tool_has_its_own_count_over_interleaved_steps() {
    let set = || {
        Recorder::of([
            ToolDefinition::new("locked", json!({})).with_max_retries(2),
            ToolDefinition::new("open", json!({})),
        ])
        .body(|_, call| match call.name() {
            "locked" if call.args().get("key").is_none() => {
                Err(ModelRetry::new("it is locked").into())
            }
            _ => Ok(json!("opened")),
        })
    };
    let unlocked = |id: &str| call(id, "locked", json!({"key": 1}));
    let steps = [
        vec![locked("a")],
        vec![open("b")],
        vec![locked("c"), unlocked("d")],
        vec![open("e")],
        vec![locked("f")],
    ];
    let error = Agent::new(script(steps), set()).run("go").await.unwrap_err();
    assert_eq!(exceeded_by(&error), ["f"]);
    let steps = [
        vec![locked("a")],
        vec![locked("b")],
        vec![unlocked("c")],
        vec![locked("d")],
        vec![locked("e")],
    ];
    assert_eq!(Agent::new(script(steps), set()).run("go").await.unwrap().text(), Some("Done."));
}

// Asking, and being denied, costs nothing of a tool's own budget either.
#[tokio::test]
async fn deferred_and_denied_calls_cost_no_retry_of_a_tool() {
    let tool = ToolDefinition::new("pay", json!({})).with_max_retries(0);
    let asking = Recorder::of([tool]).body(|cx, _| match cx.tool_call_approved() {
        false => Err(ApprovalRequired::new().into()),
        true => Ok(json!("paid")),
    });
    let handler = handler_fn_sync(|_, requests| {
        let id = requests.approvals[0].id();
        match id {
            "c2" => requests.answer().deny(id, "no").build(),
            _ => requests.answer().approve(id).build(),
        }
    });
    let pay = |id: &str| vec![call(id, "pay", json!({}))];
    let model = script([pay("c1"), pay("c2"), pay("c3")]);
    let run =
        Agent::new(model, asking.clone()).deferred_tool_handler(handler).run("go").await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(asking.ids(), ["c1", "c1", "c2", "c3", "c3"]);
}
