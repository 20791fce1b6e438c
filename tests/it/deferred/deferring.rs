//! Deferring calls. Row ids (A1) are those of group A in PydanticAI's conformance table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::agent::text;
use countersign::call::ToolKind;
use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::message::{RequestPart, ReturnKind};
use countersign::model::ModelResponse;
use countersign::outcome::{ApprovalRequired, CallDeferred, ModelRetry, ToolFailed, ToolReturn};
use countersign::testing::ScriptedModel;
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, Args, Error, FunctionToolset, Message, RunContext, SuspendedRun, ToolDefinition,
    ToolError, Tools, ToolsExt, UserError, schemars, tool_fn,
};
use serde_json::{Value, json};

use crate::support::{Recorder, call, results};

fn agent(model: &ScriptedModel, tools: impl Into<Tools>) -> Agent {
    Agent::new(model.clone(), tools).output(text().or_deferred())
}

/// Runs until calls are pending, and passes through the stored form, as another process would.
async fn suspended(agent: &Agent) -> SuspendedRun {
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap()
}

/// The arguments of the first call in a history.
fn sent(history: &[Message]) -> Args {
    history.iter().flat_map(Message::tool_calls).next().unwrap().args().clone()
}

fn deferring() -> Recorder {
    Recorder::new(["task"]).body(|_, call| match call.args()["meta"].as_bool() {
        Some(true) => Err(CallDeferred::new().with_metadata("task_id", "t-1").into()),
        _ => Err(CallDeferred::new().into()),
    })
}

fn asking() -> Recorder {
    Recorder::new(["double"]).body(|cx, call| {
        if !cx.tool_call_approved() {
            let asks = ApprovalRequired::new();
            return Err(match call.args()["meta"].as_bool() {
                Some(true) => asks.with_metadata("reason", "large").into(),
                _ => asks.into(),
            });
        }
        Ok(json!(call.args()["x"].as_i64().unwrap_or(0) * 42))
    })
}

#[tokio::test]
async fn a1_a_body_that_defers_its_call_gives_requests_with_the_args_as_sent() {
    let model = ScriptedModel::calls([call("c1", "task", json!({"x": 1}))]);
    let run = suspended(&agent(&model, deferring())).await;
    let requests = run.requests();
    assert_eq!(requests.calls, [call("c1", "task", json!({"x": 1}))]);
    assert!(requests.approvals.is_empty());
    assert_eq!(model.requests().len(), 1, "the model is not asked again while calls wait");
}

#[tokio::test]
async fn a2_an_approval_with_other_args_runs_those_and_the_history_keeps_what_was_sent() {
    let model = ScriptedModel::calls([call("c1", "double", json!({"x": 1}))]);
    let agent = agent(&model, asking());
    let run = suspended(&agent).await;
    assert_eq!(run.requests().approvals.len(), 1);
    let requests = run.requests();
    let answers = requests.answer().approve_with("c1", Args::new().with("x", 2));
    let run = agent.resume(run, answers.build().unwrap()).await.unwrap();
    assert_eq!(results(run.history()), [("c1".into(), ReturnKind::Success, json!(84))]);
    assert_eq!(sent(run.history()), Args::new().with("x", 1));
    assert_eq!(run.text(), Some("Done."));
}

// A3, A5: `CallDeferred` with metadata and without.
#[tokio::test]
async fn a3_a5_metadata_of_a_deferred_call_is_in_the_requests_when_there_is_any() {
    let calls =
        [call("c1", "task", json!({"meta": true})), call("c2", "task", json!({"meta": false}))];
    let run = suspended(&agent(&ScriptedModel::calls(calls), deferring())).await;
    let metadata = serde_json::to_value(&run.requests().metadata).unwrap();
    assert_eq!(metadata, json!({"c1": {"task_id": "t-1"}}));
}

// A4, A6: `ApprovalRequired` with metadata and without; approving works the same.
#[tokio::test]
async fn a4_a6_metadata_of_an_approval_is_in_the_requests_and_resuming_works() {
    let calls = [
        call("c1", "double", json!({"x": 1, "meta": true})),
        call("c2", "double", json!({"x": 2, "meta": false})),
    ];
    let agent = agent(&ScriptedModel::calls(calls), asking());
    let run = suspended(&agent).await;
    let metadata = serde_json::to_value(&run.requests().metadata).unwrap();
    assert_eq!(metadata, json!({"c1": {"reason": "large"}}));
    let answers = run.requests().answer().approve("c1").approve("c2").build().unwrap();
    let run = agent.resume(run, answers).await.unwrap();
    let values: Vec<_> = results(run.history()).into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, [json!(42), json!(84)]);
}

#[tokio::test]
async fn a7_external_and_approval_calls_mix_in_one_batch_and_one_resume() {
    let (tasks, double) = (deferring(), asking());
    let calls = [
        call("c1", "task", json!({"meta": true})),
        call("c2", "double", json!({"x": 1, "meta": true})),
        call("c3", "task", json!({})),
    ];
    let tools = Tools::combined([tasks.clone().into(), double.clone().into()]);
    let agent = agent(&ScriptedModel::calls(calls), tools);
    let run = suspended(&agent).await;
    let requests = run.requests();
    assert_eq!((requests.calls.len(), requests.approvals.len()), (2, 1));
    assert_eq!(requests.metadata.keys().collect::<Vec<_>>(), ["c1", "c2"]);
    let answers = requests.answer().result("c1", "one").approve("c2").result("c3", "three");
    let run = agent.resume(run, answers.build().unwrap()).await.unwrap();
    let values: Vec<_> = results(run.history()).into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, [json!("one"), json!(42), json!("three")]);
    // Handing a call out is one execution, and its result does not execute it again.
    assert_eq!(tasks.ids(), ["c1", "c3"]);
    assert_eq!(double.ids(), ["c2", "c2"], "once to ask, once approved");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Fruit {
    name: String,
}

async fn price(fruit: Fruit) -> Result<ToolReturn, ToolError> {
    if fruit.name == "pear" {
        return Err(ModelRetry::new("no pears").into());
    }
    let content = Some(json!(format!("about {}", fruit.name)));
    Ok(ToolReturn { content, ..ToolReturn::new(10) })
}

async fn buy(_: Fruit) -> Result<(), ToolError> {
    Err(CallDeferred::new().into())
}

// A8, T3: one merged request: all results first, in model order, then what tools added for the model to read.
#[tokio::test]
async fn a8_ordinary_and_deferred_results_come_as_one_request_in_model_order() {
    let fruit = |id: &str, tool: &str, name: &str| call(id, tool, json!({"name": name}));
    let calls = [
        fruit("c1", "price", "apple"),
        fruit("c2", "buy", "apple"),
        fruit("c3", "price", "pear"),
        fruit("c4", "buy", "banana"),
        fruit("c5", "price", "banana"),
        fruit("c6", "buy", "pear"),
        fruit("c7", "price", "pear"),
    ];
    let model = ScriptedModel::calls(calls);
    let tools =
        FunctionToolset::new().tool(tool_fn("price", "", price)).tool(tool_fn("buy", "", buy));
    let agent = agent(&model, tools);
    let run = suspended(&agent).await;
    let bought = ToolReturn { content: Some(json!("bought")), ..ToolReturn::new(true) };
    let requests = run.requests();
    let answers = requests.answer();
    let answers = answers.result("c2", ModelRetry::new("again")).result("c4", bought);
    let answers = answers.result("c6", ToolFailed::new("sold out")).build().unwrap();
    let run = agent.resume(run, answers).await.unwrap();

    let kinds: Vec<_> =
        results(run.history()).into_iter().map(|(id, kind, _)| (id, kind)).collect();
    let expected = [
        ("c1", ReturnKind::Success),
        ("c2", ReturnKind::Retried),
        ("c3", ReturnKind::Retried),
        ("c4", ReturnKind::Success),
        ("c5", ReturnKind::Success),
        ("c6", ReturnKind::Failed),
        ("c7", ReturnKind::Retried),
    ];
    assert_eq!(kinds, expected.map(|(id, kind)| (id.to_owned(), kind)));
    let last = model.requests()[1].messages().last().cloned();
    let Some(Message::Request { parts }) = last else { panic!("{last:?}") };
    let beside: Vec<_> = parts[7..]
        .iter()
        .map(|part| match part {
            RequestPart::UserPrompt { content } => content.clone(),
            other => panic!("a result after what goes beside them: {other:?}"),
        })
        .collect();
    assert_eq!(beside, [json!("about apple"), json!("bought"), json!("about banana")]);
}

#[tokio::test]
async fn a9_an_approval_predicate_gates_only_the_tool_it_picks() {
    let recorder = Recorder::new(["foo", "bar"]);
    let tools = recorder.clone().approval_required_if(|_, call| call.name() == "foo");
    let calls =
        [("c1", "foo"), ("c2", "foo"), ("c3", "bar")].map(|(id, tool)| call(id, tool, json!({})));
    let agent = agent(&ScriptedModel::calls(calls), tools);
    let run = suspended(&agent).await;
    assert_eq!(recorder.ids(), ["c3"]);
    let answers = run.requests().answer().approval("c1", true).approval("c2", false).build();
    let run = agent.resume(run, answers.unwrap()).await.unwrap();
    let denied = json!("The tool call was denied.");
    let expected = [
        ("c1".into(), ReturnKind::Success, json!({})),
        ("c2".into(), ReturnKind::Denied, denied),
        ("c3".into(), ReturnKind::Success, json!({})),
    ];
    assert_eq!(results(run.history()), expected);
    assert_eq!(recorder.ids(), ["c1", "c3"]);
}

fn declared() -> Recorder {
    Recorder::of([
        ToolDefinition::new("delete", json!({})).with_kind(ToolKind::Unapproved),
        ToolDefinition::new("list", json!({})),
    ])
}

// A10: the ordinary call runs first; the answers come back in emission order.
#[tokio::test]
async fn a10_tools_with_a_declared_approval_are_deferred_and_ordinary_ones_run() {
    let recorder = declared();
    let calls = [("c1", "delete"), ("c2", "list"), ("c3", "delete")]
        .map(|(id, tool)| call(id, tool, json!({})));
    let agent = agent(&ScriptedModel::calls(calls), recorder.clone());
    let run = suspended(&agent).await;
    assert_eq!(recorder.ids(), ["c2"]);
    let answers = run.requests().answer().approve("c1").deny("c3", "not that one").build();
    let run = agent.resume(run, answers.unwrap()).await.unwrap();
    let kinds: Vec<_> =
        results(run.history()).into_iter().map(|(id, kind, _)| (id, kind)).collect();
    let expected = [ReturnKind::Success, ReturnKind::Success, ReturnKind::Denied];
    assert_eq!(
        kinds,
        ["c1", "c2", "c3"].map(String::from).into_iter().zip(expected).collect::<Vec<_>>()
    );
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

// A11: an error only at run time, and only without an answer.
#[tokio::test]
async fn a11_a_tool_that_needs_approval_is_fine_until_a_call_of_it_is_left_unanswered() {
    let recorder = declared();
    let delete = || ScriptedModel::calls([call("c1", "delete", json!({}))]);
    let plain = Agent::new(ScriptedModel::calls([call("c0", "list", json!({}))]), recorder.clone());
    assert_eq!(plain.run("go").await.unwrap().text(), Some("Done."));

    let resolved =
        Agent::new(delete(), recorder.clone()).deferred_tool_handler(danger_approve_all());
    assert_eq!(resolved.run("go").await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c0", "c1"]);

    let error = Agent::new(delete(), recorder.clone()).run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::User(UserError::DeferredNotExpected { .. })));
    assert_eq!(recorder.ids(), ["c0", "c1"]);
}

// A12, T9: the error names the call and says what to do, and carries the run, with what ran settled.
#[tokio::test]
async fn a12_a_deferred_call_without_the_output_for_it_is_an_error_that_can_be_resumed() {
    let (browser, recorder) = (
        ExternalToolset::new("browser", [ToolDefinition::new("open", json!({}))]),
        Recorder::new(["a"]),
    );
    let model = ScriptedModel::calls([call("c1", "open", json!({})), call("c2", "a", json!({}))]);
    let agent = Agent::new(model, Tools::combined([browser.into(), recorder.clone().into()]));
    let error = agent.run("go").await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("`c1`") && said.contains("or_deferred"), "{said}");
    let run = error.into_suspended();
    let answers = run.requests().answer().result("c1", "opened").build().unwrap();
    assert_eq!(agent.resume(run, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(recorder.ids(), ["c2"], "what ran before the error did not run again");
}

fn browser() -> ExternalToolset {
    ExternalToolset::new("browser", [ToolDefinition::new("open", json!({}))])
}

/// The error of a run that may not end with deferred calls, and what ran.
async fn not_expected(
    calls: &[(&str, &str)],
    handler: Option<impl countersign::DeferredToolHandler>,
) -> (countersign::agent::RunError, Vec<String>) {
    let recorder = Recorder::of(["list", "delete", "again"].map(|name| {
        let kind = if name == "list" { ToolKind::Function } else { ToolKind::Unapproved };
        ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind)
    }));
    let recorder = recorder.body(|_, call| match call.name() {
        "again" => Err(CallDeferred::new().into()),
        name => Ok(json!(format!("{name} ran"))),
    });
    let calls = calls.iter().map(|(id, tool)| call(id, tool, json!({})));
    let model = ScriptedModel::calls(calls.collect::<Vec<_>>());
    let agent = Agent::new(model, Tools::combined([browser().into(), recorder.clone().into()]));
    let run = agent.run("go");
    let ended = match handler {
        Some(handler) => run.deferred_tool_handler(handler).await,
        None => run.await,
    };
    (ended.unwrap_err(), recorder.ids())
}

// A12: the error gives the cause: there was no handler, the handler left the call, or the call deferred again.
#[tokio::test]
async fn the_error_says_why_a_run_ended_with_pending_calls() {
    let nothing = None::<countersign::handler::DenyAll>;
    let (error, ran) = not_expected(&[("l", "list"), ("d", "delete")], nothing).await;
    assert_eq!(
        error.to_string(),
        "call `d` is waiting for an answer: give the run a deferred tool handler, or let the run end with deferred calls \
         (`.output(text().or_deferred())`)"
    );
    assert_eq!(ran, ["l"]);

    let leaves = handler_fn_sync(|_: &RunContext, requests| {
        requests.answer().approve("d").leave("e").build()
    });
    let (error, ran) = not_expected(&[("d", "delete"), ("e", "delete")], Some(leaves)).await;
    let said = error.to_string();
    assert!(said.starts_with("call `e` is waiting for an answer; handler `"), "{said}");
    assert!(said.contains("` left call `e`: answer all of them, or let the run end"), "{said}");
    assert!(ran.is_empty(), "T2: nothing is applied of answers that do not fit");
    assert_eq!(error.suspended().requests().approvals.len(), 2);

    let (error, ran) = not_expected(&[("a", "again")], Some(danger_approve_all())).await;
    assert_eq!(
        error.to_string(),
        "call `a` is waiting for an answer; call `a` deferred again after the answer, and a handler is asked once: let \
         the run end with deferred calls (`.output(text().or_deferred())`)"
    );
    assert_eq!(ran, ["a"]);

    let recorder = declared();
    let model =
        ScriptedModel::calls([call("c1", "delete", json!({})), call("c2", "delete", json!({}))]);
    let agent = agent(&model, recorder.clone());
    let run = suspended(&agent).await;
    let answers = run.requests().answer().approve("c1").leave("c2").build().unwrap();
    let error = agent.resume(run, answers).output(text()).await.unwrap_err();
    assert!(error.to_string().contains("the answers left call `c2`"), "{error}");
    assert!(recorder.ran().is_empty());
}

// T2: "All answers are checked before any takes effect": also whether they are enough for the run.
#[tokio::test]
async fn approving_all_beside_an_external_call_runs_nothing_in_a_run_that_may_not_suspend() {
    let calls = [("d", "delete"), ("l", "list"), ("o", "open")];
    let (error, ran) = not_expected(&calls, Some(danger_approve_all())).await;
    assert_eq!((error.error().ids(), ran), (vec!["o".to_owned()], vec!["l".to_owned()]));
    let requests = error.suspended().requests();
    assert_eq!((requests.approvals.len(), requests.calls.len()), (1, 1));
}

#[tokio::test]
async fn a13_a_run_that_may_end_with_deferred_calls_may_end_with_text() {
    let model = ScriptedModel::new([]).then(ModelResponse::text("hello"));
    let run = agent(&model, declared()).run("go").await.unwrap();
    assert_eq!((run.text(), run.suspended()), (Some("hello"), None));
}

#[tokio::test]
async fn a16_two_calls_of_one_response_with_one_id_are_refused_and_nothing_executes() {
    let recorder = declared();
    let calls = ["delete", "list", "delete"].map(|tool| call("duplicate-id", tool, json!({})));
    let error = agent(&ScriptedModel::calls(calls), recorder.clone()).run("go").await.unwrap_err();
    assert!(matches!(error.error(), Error::ModelBehavior { ids, .. } if *ids == ["duplicate-id"]));
    assert!(recorder.ran().is_empty());
}

// A17, T5: the model is told to retry; the human is never asked.
#[tokio::test]
async fn a17_invalid_args_of_an_approval_tool_go_back_to_the_model_without_asking() {
    let (recorder, asked) = (declared(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&asked);
    let handler = handler_fn_sync(move |_: &RunContext, requests| {
        count.fetch_add(1, Ordering::Relaxed);
        requests.answer().approve_tool("delete").build()
    });
    let model = ScriptedModel::new([])
        .then(ModelResponse::calls([call("c1", "delete", json!({"invalid": 1}))]))
        .then(ModelResponse::calls([call("c2", "delete", json!([1, 2]))]))
        .then(ModelResponse::calls([call("c3", "delete", json!({"path": "a"}))]))
        .then(ModelResponse::text("Done."));
    let agent = agent(&model, recorder.clone()).max_retries(2).deferred_tool_handler(handler);
    let run = agent.run("go").await.unwrap();
    assert_eq!(run.text(), Some("Done."));
    assert_eq!(asked.load(Ordering::Relaxed), 1, "asked about the valid call only");
    assert_eq!(recorder.ids(), ["c3"]);
    let told: Vec<_> =
        model.requests()[1..].iter().map(|it| results(it.messages())[0].clone()).collect();
    assert_eq!(
        told.iter().map(|told| told.1).collect::<Vec<_>>(),
        [ReturnKind::Retried, ReturnKind::Retried, ReturnKind::Success]
    );
    let problem = told[0].2.as_str().unwrap();
    assert!(problem.contains("`invalid` is not allowed"), "{problem}");
}

// The definitions are asked per step: what a run may call can change between two responses.
#[tokio::test]
async fn the_tools_are_listed_for_each_step() {
    let only_first = |cx: &RunContext, it: &ToolDefinition| cx.response() == 0 || it.name() != "a";
    let recorder = Recorder::new(["a", "b"]);
    let twice = |id: &str| ModelResponse::calls([call(id, "a", json!({}))]);
    let model = ScriptedModel::new([])
        .then(twice("c1"))
        .then(twice("c2"))
        .then(ModelResponse::text("Done."));
    let run = agent(&model, recorder.clone().filtered(only_first)).run("go").await.unwrap();
    let names = |tools: &[ToolDefinition]| -> Vec<_> {
        tools.iter().map(|tool| tool.name().to_owned()).collect()
    };
    let told: Vec<_> = model.requests().iter().map(|request| names(request.tools())).collect();
    assert_eq!(told, [vec!["a", "b"], vec!["b"], vec!["b"]]);
    assert_eq!(results(run.history())[0].1, ReturnKind::Retried);
    assert_eq!(recorder.ids(), ["c1"]);
}

// A5: only the answer's metadata reaches the tool.
#[tokio::test]
async fn a_tool_sees_the_metadata_of_the_answer_and_not_of_the_request() {
    let recorder = declared();
    let asks = countersign::decide_fn(|_, _| {
        countersign::Decision::ask("sure?").with_metadata("from", "request")
    });
    let agent = agent(
        &ScriptedModel::calls([call("c1", "delete", json!({})), call("c2", "list", json!({}))]),
        recorder.clone().layered(asks),
    );
    let run = suspended(&agent).await;
    let metadata: Value = json!({"from": "answer"});
    let requests = run.requests();
    let answers = requests.answer().approve("c1").approve("c2");
    let answers = answers.metadata("c1", metadata.as_object().unwrap().clone()).build().unwrap();
    let _done = agent.resume(run, answers).await.unwrap();
    let mut ran = recorder.ran();
    ran.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(
        ran.iter().map(|ran| ran.metadata.clone()).collect::<Vec<_>>(),
        [Some(metadata), None]
    );
}
