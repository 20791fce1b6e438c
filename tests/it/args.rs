//! The levels to which arguments and stored states may be nested (rules T5, L7).

use countersign::agent::text;
use countersign::deferred::ToolApproved;
use countersign::ledger::{Ledger, MemoryStore};
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, Args, Decision, DeferredToolResults, Error, SuspendedRun, SuspendedTurn,
    ToolCall, ToolsExt, Turn, UserError, decide_fn,
};
use serde_json::{Value, json};
use tower::util::MapRequestLayer;

use crate::support::{Recorder, content, stored, words};

/// A list in a list in a list.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |value, _| json!([value]))
}

/// Arguments of this many levels.
fn args(levels: usize) -> Value {
    json!({"deep": nested(levels - 1)})
}

// T5: "nested more than 64 levels deep": as text and as a value, the model is told to try again; what stands beside it is
// not lost.
#[tokio::test]
async fn a_call_with_arguments_that_are_nested_too_deep_goes_back_to_the_model() {
    let pay = Recorder::new(["pay", "list"]);
    let tools = pay.clone().approval_required_if(|_, call| call.name() == "pay");
    for deep in [args(65), json!(args(65).to_string()), args(1000), json!(args(126).to_string())] {
        let calls = vec![
            ToolCall::new("a", "list", deep.clone()),
            ToolCall::new("b", "list", args(64)),
            ToolCall::new("c", "pay", json!(args(64).to_string())),
        ];
        let report = Turn::new(tools.clone()).run(calls).await.unwrap();
        assert_eq!(words(&report), ["retry", "returned", "deferred"]);
        let told = content(&report, 0).to_string();
        assert!(told.contains("nested more than 64 levels deep"), "{told}");
        let suspended = stored(report.suspended().unwrap());
        assert_eq!(&suspended, report.suspended().unwrap());
        let answers = suspended.requests().answer().approve("c").build().unwrap();
        let report = Turn::new(tools.clone()).resume(suspended, answers).await.unwrap();
        assert_eq!(words(&report), ["retry", "returned", "returned"]);
    }
    assert!(pay.ids().iter().all(|id| id != "a"));
}

// T5: "wherever they enter": also by a layer, which is refused like any layer that fails (rule D4).
#[tokio::test]
async fn a_layer_that_nests_arguments_too_deep_runs_nothing() {
    let list = Recorder::new(["list"]);
    let deep = || Args::new().with("deep", nested(64));
    let fine = || Args::new().with("deep", nested(63));
    let asks = decide_fn(|_, _| Decision::ask("sure?"));
    let by_decision = decide_fn(move |_, _| Decision::allow().with_args(deep())).named("deepens");
    let by_call = MapRequestLayer::new(move |call: ToolCall| call.with_args(deep()));
    let to_the_limit = MapRequestLayer::new(move |call: ToolCall| call.with_args(fine()));
    let calls = || vec![ToolCall::new("a", "list", json!({}))];

    let report = Turn::new(list.clone().layered(by_decision)).run(calls()).await.unwrap();
    assert_eq!((words(&report), report.calls()[0].denied_by()), (vec!["denied"], Some("deepens")));
    for tools in
        [list.clone().layered(by_call.clone()), list.clone().layered(asks.clone()).layered(by_call)]
    {
        let report = Turn::new(tools).run(calls()).await.unwrap();
        assert_eq!(words(&report), ["denied"]);
        assert_eq!(report.calls()[0].args(), &Args::new(), "no report and no state has them");
    }
    assert!(list.ran().is_empty());
    let report = Turn::new(list.clone().layered(to_the_limit)).run(calls()).await.unwrap();
    assert_eq!(words(&report), ["returned"]);
}

// T5 and A2: "Edited arguments are validated before anything executes".
#[tokio::test]
async fn edited_arguments_that_are_nested_too_deep_are_refused_before_anything_runs() {
    let pay = Recorder::new(["pay"]);
    let turn = Turn::new(pay.clone().approval_required());
    let report = turn.run(vec![ToolCall::new("a", "pay", json!({}))]).await.unwrap();
    let suspended = report.into_suspended().unwrap();
    let edited = |levels: usize| {
        let args = Some(Args::new().with("deep", nested(levels - 1)));
        DeferredToolResults::new().approval("a", ToolApproved { override_args: args })
    };
    let error = turn.resume(suspended.clone(), edited(65)).await.unwrap_err();
    assert!(
        matches!(error.error(), Error::Answers(AnswerError::InvalidArgs { ids, .. }) if ids == &["a"]),
        "{error}"
    );
    assert!(error.to_string().contains("nested more than 64 levels deep"), "{error}");
    assert!(pay.ran().is_empty());
    assert_eq!(error.suspended(), Some(&suspended));
    assert_eq!(words(&turn.resume(suspended, edited(64)).await.unwrap()), ["returned"]);
}

// L7: "What could not be read again … is refused when it is written": suspending says it, while everything is in memory.
#[tokio::test]
async fn a_state_that_could_not_be_read_back_is_an_error_and_stays_in_memory() {
    let tools = Recorder::new(["list", "pay"]);
    let asks = || {
        decide_fn(|_, call: &ToolCall| match call.name() {
            "pay" => Decision::ask("sure?").with_metadata("deep", nested(150)),
            _ => Decision::allow(),
        })
    };
    let calls =
        || vec![ToolCall::new("a", "list", json!({})), ToolCall::new("b", "pay", json!({}))];
    let too_deep = |kind: &Error| matches!(kind, Error::User(UserError::StateTooDeep { levels, max: 120 }) if *levels > 150);

    let turn = Turn::new(tools.clone().layered(asks()));
    let error = turn.run(calls()).await.unwrap_err();
    assert!(too_deep(error.error()), "{error}");
    assert_eq!(words(error.report()), ["returned", "deferred"]);
    let suspended = error.into_suspended().unwrap();
    assert!(serde_json::to_string(&suspended).unwrap_err().to_string().contains("levels deep"));
    assert!(serde_json::to_value(&suspended).is_err());
    let answers = suspended.requests().answer().approve("b").build().unwrap();
    assert_eq!(words(&turn.resume(suspended, answers).await.unwrap()), ["returned", "returned"]);

    let model = ScriptedModel::new([ModelResponse::calls(calls())]);
    let agent = Agent::new(model, tools.clone().layered(asks())).output(text().or_deferred());
    let error = agent.run("go").await.unwrap_err();
    assert!(too_deep(error.error()), "{error}");
    let suspended = error.into_suspended();
    assert!(serde_json::to_string(&suspended).is_err());
    let answers = suspended.requests().answer().approve("b").build().unwrap();
    assert_eq!(agent.resume(suspended, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(tools.ids(), ["a", "a", "b", "b"], "nothing runs again");
}

// T5: "A stored result that is nested deeper is stored as its JSON text": a run with one suspends, with a ledger or without.
#[tokio::test]
async fn a_run_with_deep_results_suspends_and_is_resumed() {
    for (depth, has_ledger) in
        [64, 65, 120, 1_000].into_iter().flat_map(|it| [(it, false), (it, true)])
    {
        let tools = Recorder::new(["list", "pay"]).body(move |_, call| match call.name() {
            "list" => Ok(nested(depth)),
            _ => Ok(json!("paid")),
        });
        let asked = tools.clone().approval_required_if(|_, call| call.name() == "pay");
        let call =
            |id: &str, tool: &str| ModelResponse::calls([ToolCall::new(id, tool, json!({}))]);
        let model = ScriptedModel::new([call("a", "list"), call("b", "pay")]);
        let mut agent = Agent::new(model, asked).output(text().or_deferred());
        if has_ledger {
            agent = agent.ledger(Ledger::new(MemoryStore::new()));
        }
        let run = agent.run("go").await.unwrap().into_suspended().unwrap();
        let history = serde_json::to_value(run.history()).unwrap();
        let result = &history[2]["parts"][0]["content"];
        match depth {
            64 => assert_eq!(*result, nested(64)),
            _ => assert!(result.as_str().unwrap().ends_with(&nested(depth).to_string())),
        }
        let run: SuspendedRun = stored(&run);
        let answers = run.requests().answer().approve("b").build().unwrap();
        assert_eq!(agent.resume(run, answers).await.unwrap().text(), Some("Done."));
        assert_eq!(tools.ids(), ["a", "b"]);
    }
}

#[test]
fn a_state_that_is_nested_too_deep_is_refused_on_reading_as_on_writing() {
    let deep = format!("{{\"version\":1,\"calls\":{}{}}}", "[".repeat(200), "]".repeat(200));
    assert!(serde_json::from_str::<SuspendedTurn>(&deep).is_err());
}
