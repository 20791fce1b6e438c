//! Groups A, B and E: asking, answering, resuming.

use std::sync::{Arc, Mutex};

use countersign::agent::text;
use countersign::call::ToolKind;
use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::message::{RequestPart, ReturnKind};
use countersign::outcome::{ApprovalRequired, ToolReturn};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, Decision, DeferredToolHandler, DeferredToolRequests, DeferredToolResults,
    Error, FunctionToolset, Message, RunContext, ToolCall, ToolDefinition, ToolError, Tools,
    ToolsExt, Turn, UserError, decide_fn, handler_fn, tool_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, results, words};

fn declared() -> Recorder {
    Recorder::of([ToolDefinition::new("delete", json!({})).with_kind(ToolKind::Unapproved)])
}

fn delete(id: &str) -> ToolCall {
    call(id, "delete", json!({}))
}

#[tokio::test]
async fn a18_without_retries_invalid_arguments_of_an_approval_tool_end_the_run() {
    let recorder = declared();
    let handler =
        handler_fn_sync(|_, _| -> Result<DeferredToolResults, AnswerError> { panic!("asked") });
    let model = ScriptedModel::calls([call("c1", "delete", json!({"invalid": 1}))]);
    let agent = Agent::new(model, recorder.clone()).max_retries(0).deferred_tool_handler(handler);
    let error = agent.run("go").await.unwrap_err();
    assert!(
        matches!(error.error(), Error::ModelBehavior { ids, .. } if *ids == ["c1"]),
        "{error:?}"
    );
    assert!(recorder.ran().is_empty());
}

// The page says: "none of the approved calls has run. PydanticAI runs the approved ones first".
#[tokio::test]
async fn a_run_that_may_not_suspend_runs_no_approved_call_while_another_is_left() {
    let recorder = Recorder::new(["delete"]);
    let calls = ScriptedModel::calls([delete("c1"), delete("c2")]);
    let agent = Agent::new(calls, recorder.clone().approval_required());
    let leaves = handler_fn_sync(|_, requests: &DeferredToolRequests| {
        requests.answer().approve("c1").leave("c2").build()
    });
    let error = agent.run("go").deferred_tool_handler(leaves).await.unwrap_err();
    assert!(error.to_string().contains("handler_fn_sync"), "{error}");
    assert_eq!(error.error().ids(), ["c2"]);
    assert_eq!(recorder.ids(), [""; 0]);
    let run = error.into_suspended();
    let answers = run.requests().answer().approve("c1").deny("c2", "keep it").build().unwrap();
    assert_eq!(agent.resume(run, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c1"]);
}

// B24: an approval is bound to the run id, so that a resumed run keeps it.
#[tokio::test]
async fn b24_a_resumed_run_is_the_same_run() {
    let agent =
        Agent::new(ScriptedModel::calls([delete("c1")]), declared()).output(text().or_deferred());
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    let (id, answers) =
        (run.run_id().to_owned(), run.requests().answer().approve("c1").build().unwrap());
    assert_eq!(agent.resume(run, answers).await.unwrap().run_id(), id);
}

// E79: everything is left and the run may not suspend; or there is no answer at all, which is an error in itself.
#[tokio::test]
async fn e79_e100_a_handler_leaves_calls_only_where_the_run_may_suspend() {
    let run = |answers: fn(&DeferredToolRequests) -> Result<DeferredToolResults, AnswerError>| async move {
        let agent = Agent::new(ScriptedModel::calls([delete("c1")]), declared());
        let handler = handler_fn_sync(move |_, requests| answers(requests));
        agent.deferred_tool_handler(handler).run("go").await.unwrap_err()
    };
    let error = run(|requests| requests.answer().leave_rest().build()).await;
    assert!(
        matches!(error.error(), Error::User(UserError::DeferredNotExpected { .. })),
        "{error:?}"
    );
    let error = run(|_| Ok(DeferredToolResults::new())).await;
    assert!(
        matches!(error.error(), Error::Answers(AnswerError::Missing { ids }) if ids == &["c1"]),
        "{error:?}"
    );
    let metadata = |_: &DeferredToolRequests| {
        Ok(DeferredToolResults::new().metadata("c1", serde_json::Map::new()))
    };
    let error = run(metadata).await;
    assert!(matches!(error.error(), Error::Answers(AnswerError::Missing { .. })), "{error:?}");
}

#[test]
fn e81_e82_e83_the_answers_to_a_batch_are_checked_as_they_are_built() {
    let requests =
        DeferredToolRequests::new(["a", "b", "c"].map(delete), [call("x", "search", json!({}))]);
    let all = || requests.answer().deny("a", "not that one").approve_tool("delete");
    let built = all().result("x", 1).build().unwrap();
    assert_eq!(
        built.approvals["a"],
        countersign::outcome::ToolDenied::new("not that one").into(),
        "what was said stays"
    );
    assert_eq!((&built.approvals["b"], &built.approvals["c"]), (&true.into(), &true.into()));

    let wrong = |error: AnswerError| (error.ids(), error);
    let (ids, error) = wrong(all().result("x", 1).approve("zzz").build().unwrap_err());
    assert_eq!((ids, matches!(error, AnswerError::Unknown { .. })), (vec!["zzz".to_owned()], true));
    let (ids, error) = wrong(all().approve("x").build().unwrap_err());
    assert_eq!((ids, matches!(error, AnswerError::WrongKind { .. })), (vec!["x".to_owned()], true));
    let (ids, error) = wrong(all().result("x", 1).approve("a").build().unwrap_err());
    assert_eq!(
        (ids, matches!(error, AnswerError::Contradictory { .. })),
        (vec!["a".to_owned()], true)
    );
    let (ids, error) = wrong(all().build().unwrap_err());
    assert_eq!((ids, matches!(error, AnswerError::Missing { .. })), (vec!["x".to_owned()], true));
}

// E87: both are pending, each with its present questions.
#[tokio::test]
async fn e87_left_calls_and_calls_that_defer_again_are_one_batch() {
    let asks_again = Recorder::new(["pay"]).id("pay").body(|cx, _| match cx.tool_call_approved() {
        true => Err(ApprovalRequired::new().with_metadata("attempt", 2).into()),
        false => Err(ApprovalRequired::new().with_metadata("attempt", 1).into()),
    });
    let tools = Tools::combined([asks_again.into(), declared().into()]);
    let seen = Arc::new(Mutex::new(0));
    let count = Arc::clone(&seen);
    let handler = handler_fn_sync(move |_, requests| {
        *count.lock().unwrap() += 1;
        requests.answer().approve("c1").leave_rest().build()
    });
    let model = ScriptedModel::calls([call("c1", "pay", json!({})), delete("c2")]);
    let agent =
        Agent::new(model, tools).deferred_tool_handler(handler).output(text().or_deferred());
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    let requests = run.requests();
    assert_eq!(requests.approvals.iter().map(ToolCall::id).collect::<Vec<_>>(), ["c1", "c2"]);
    assert_eq!(serde_json::to_value(&requests.metadata).unwrap(), json!({"c1": {"attempt": 2}}));
    assert_eq!(*seen.lock().unwrap(), 1, "the handler is not asked again");
}

/// A value with something for the model to read beside it, and something that is for the host alone.
fn noted() -> ToolReturn {
    ToolReturn {
        return_value: json!(7),
        content: Some(json!("about seven")),
        metadata: Some(json!({"host": "only"})),
    }
}

/// The text that the model reads, and whether the host's part is in it.
fn told(history: &[Message]) -> (Vec<(ReturnKind, Value)>, Vec<Value>) {
    assert!(
        !serde_json::to_string(history).unwrap().contains("host"),
        "the host's part is not for the model"
    );
    let Some(Message::Request { parts }) =
        history.iter().rev().find(|it| matches!(it, Message::Request { .. }))
    else {
        panic!("nothing was told")
    };
    let prompts = parts.iter().filter_map(|part| match part {
        RequestPart::UserPrompt { content } => Some(content.clone()),
        _ => None,
    });
    (
        results(history).into_iter().map(|(_, kind, value)| (kind, value)).collect(),
        prompts.collect(),
    )
}

// E80, E91, E94: from elsewhere, and from an approved tool.
#[tokio::test]
async fn e80_e91_e94_a_result_can_have_content_for_the_model_and_data_for_the_host() {
    let expected = (vec![(ReturnKind::Success, json!(7))], vec![json!("about seven")]);
    let outside =
        Recorder::of([ToolDefinition::new("search", json!({})).with_kind(ToolKind::External)]);
    let handler = handler_fn_sync(|_, requests| requests.answer().result("c1", noted()).build());
    let agent = Agent::new(ScriptedModel::calls([call("c1", "search", json!({}))]), outside)
        .deferred_tool_handler(handler);
    let run = agent.run("go").await.unwrap();
    assert_eq!(told(run.history()), expected);
    let kept = run.turns()[0].calls()[0].outcome().clone();
    assert_eq!(
        kept,
        countersign::Outcome::Returned(noted()),
        "and the host finds it in the report"
    );

    let tool =
        tool_fn("delete", "", async |_: Value| Ok::<_, ToolError>(noted())).requires_approval();
    let agent = Agent::new(ScriptedModel::calls([delete("c1")]), FunctionToolset::new().tool(tool));
    let run = agent.deferred_tool_handler(danger_approve_all()).run("go").await;
    assert_eq!(told(run.unwrap().history()), expected);
}

// E98: the forms of a handler.
#[tokio::test]
async fn e77_e98_a_handler_is_a_type_a_closure_or_an_async_closure() {
    struct Approves;
    impl DeferredToolHandler for Approves {
        async fn handle(
            &self,
            _: &RunContext,
            requests: &DeferredToolRequests,
        ) -> Result<DeferredToolResults, countersign::BoxError> {
            Ok(requests.answer().approve("c1").build()?)
        }
    }
    let tools = || declared().layered(decide_fn(|_, _| Decision::ask("sure?")));
    let turns = [
        Turn::new(tools()).deferred_tool_handler(Approves),
        Turn::new(tools()).deferred_tool_handler(handler_fn_sync(|_, requests| {
            requests.answer().approve("c1").build()
        })),
        Turn::new(tools()).deferred_tool_handler(handler_fn(
            async |_: RunContext, requests: DeferredToolRequests| {
                tokio::task::yield_now().await;
                requests.answer().approve("c1").build()
            },
        )),
    ];
    for turn in turns {
        assert_eq!(words(&turn.run(vec![delete("c1")]).await.unwrap()), ["returned"]);
    }
}
