//! The examples of the first proposals that the project started from, each with the sentence that it shows.

use countersign::agent::text;
use countersign::deferred::{Answers, ToolApproved, metadata};
use countersign::handler::{handler_fn_sync, permission_handler};
use countersign::middleware::danger_first_decision_wins;
use countersign::model::ModelResponse;
use countersign::outcome::{ApprovalRequired, CallDeferred, ToolDenied};
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, AnswerError, Args, BoxError, Decision, DeferredToolHandler, DeferredToolRequests,
    DeferredToolResults, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddleware,
    ToolMiddlewareExt, ToolsExt, Turn, decide_fn, handler_fn, schemars, tool_fn,
};
use serde_json::{Map, json};

use crate::support::{Recorder, call, content, words};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Path {
    path: String,
}

/// From the proposal, "CLI with Blocking Approval", with the person's answer as a dependency.
fn cli_handler(
    cx: &RunContext,
    requests: &DeferredToolRequests,
) -> Result<DeferredToolResults, BoxError> {
    let types_y: &bool = cx.deps()?;
    let mut results = DeferredToolResults::new();
    for call in &requests.approvals {
        let metadata = requests.metadata.get(call.id());
        if metadata
            .and_then(|it| it.get(metadata::APPROVAL_POLICY))
            .is_some_and(|it| it == metadata::BLOCKED)
        {
            results = results.approval(call.id(), ToolDenied::new("Blocked by policy"));
            continue;
        }
        results = match types_y {
            true => results.approval(call.id(), ToolApproved::new()),
            false => results.approval(call.id(), ToolDenied::new("User denied")),
        };
    }
    for call in &requests.calls {
        results = results.result(call.id(), "External call not handled by CLI handler");
    }
    Ok(results)
}

#[tokio::test]
async fn a_denial_reaches_the_model_and_the_loop_continues() {
    // "The tool function is **never called**", "A synthetic tool result is returned to the LLM containing the denial
    // message", "The agent loop continues".
    for (yes, told, ran) in [(true, "Deleted a.log", 1), (false, "User denied", 0)] {
        let recorder = Recorder::new(["delete_file"])
            .body(|_, call| Ok(format!("Deleted {}", call.args().str("path").unwrap()).into()));
        let model = ScriptedModel::new([ModelResponse::calls([call(
            "c1",
            "delete_file",
            json!({"path": "a.log"}),
        )])]);
        let agent = Agent::new(model.clone(), recorder.clone().approval_required());
        let run = agent
            .run("Clean up logs")
            .deps(yes)
            .deferred_tool_handler(handler_fn_sync(cli_handler))
            .await
            .unwrap();
        assert_eq!(run.text(), Some("Done."));
        assert_eq!(run.turns()[0].calls()[0].outcome().content().unwrap(), told);
        assert_eq!((recorder.ran().len(), model.requests().len()), (ran, 2));
    }
}

#[tokio::test]
async fn the_handler_is_called_once_per_response() {
    // "The handler is called once per LLM response that contains deferred tools".
    let responses = [
        ModelResponse::calls(["a", "b", "c"].map(|id| call(id, "x", json!({})))),
        ModelResponse::calls(["d", "e"].map(|id| call(id, "x", json!({})))),
    ];
    let batches = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let handler = {
        let batches = batches.clone();
        handler_fn(move |_: RunContext, requests: DeferredToolRequests| {
            batches.lock().unwrap().push(requests.iter().count());
            std::future::ready(requests.answer().approve_tool("x").build())
        })
    };
    let agent = Agent::new(ScriptedModel::new(responses), Recorder::new(["x"]).approval_required());
    let _ = agent.deferred_tool_handler(handler).run("go").await.unwrap();
    assert_eq!(*batches.lock().unwrap(), [3, 2]);
}

#[tokio::test]
async fn granted_capabilities_travel_in_the_answers() {
    // "If the user grants the missing capability, the handler can attach it in `DeferredToolResults.metadata`".
    let recorder = Recorder::new(["upload"]).body(|cx, _| match cx.tool_call_approved() {
        true => Ok(json!(cx.tool_call_metadata())),
        false => Err(ApprovalRequired::new()
            .with_metadata("required_capabilities", json!(["fs.write", "net.external"]))
            .with_metadata("missing_capabilities", json!(["net.external"]))
            .into()),
    });
    let grants = handler_fn_sync(|_, requests| {
        let granted = |(id, asked): (&String, &Map<String, _>)| {
            let missing = asked["missing_capabilities"].clone();
            (id.clone(), Map::from_iter([("granted_capabilities".to_owned(), missing)]))
        };
        let granted: Vec<_> = requests.metadata.iter().map(granted).collect();
        let start: Answers<'_> = requests.answer().approve_tool("upload");
        granted.into_iter().fold(start, |answers, (id, grant)| answers.metadata(id, grant)).build()
    });
    let report = Turn::new(recorder)
        .deferred_tool_handler(grants)
        .run(vec![call("c1", "upload", json!({}))])
        .await
        .unwrap();
    assert_eq!(content(&report, 0), json!({"granted_capabilities": ["net.external"]}));
}

#[tokio::test]
async fn ordinary_calls_of_a_response_run_and_the_others_are_pending() {
    // "`get_price('apple')` executes immediately"; "`buy('apple')` raises `ApprovalRequired`, gets deferred".
    let recorder = Recorder::new(["get_price", "buy"]).body(|cx, call| {
        match (call.name(), cx.tool_call_approved()) {
            ("buy", false) => Err(ApprovalRequired::new().into()),
            ("buy", true) => Ok(json!("bought")),
            _ => Ok(json!(10.0)),
        }
    });
    let calls = [
        call("p", "get_price", json!({"fruit": "apple"})),
        call("b", "buy", json!({"fruit": "apple"})),
    ];
    let agent = Agent::new(ScriptedModel::new([ModelResponse::calls(calls)]), recorder.clone())
        .output(text().or_deferred());
    // `run_with_blocking_approval`: the loop around two-phase runs.
    let mut run = agent.run("What does an apple cost? Also buy me one.").await.unwrap();
    assert_eq!(run.turns()[0].calls()[0].outcome().content().unwrap(), 10.0);
    let mut rounds = 0;
    while let Some(suspended) = run.suspended().cloned() {
        rounds += 1;
        let requests = suspended.requests();
        let answers = requests
            .approvals
            .iter()
            .fold(requests.answer(), |answers, call| answers.approve(call.id()));
        run = agent.resume(suspended, answers.build().unwrap()).await.unwrap();
    }
    assert_eq!((rounds, run.text()), (1, Some("Done.")));
    assert_eq!(recorder.ids(), ["b", "b", "p"]);
}

async fn update_file(cx: RunContext, args: Path) -> Result<String, ToolError> {
    if [".env", "secrets.yaml"].contains(&args.path.as_str()) && !cx.tool_call_approved() {
        return Err(ApprovalRequired::new().with_metadata("reason", "protected file").into());
    }
    Ok(format!("Updated {}", args.path))
}

#[tokio::test]
async fn a_tool_asks_for_some_arguments_only() {
    // "First run: README.md updates immediately, .env is deferred"; "attach context for UI display".
    let turn = Turn::new(FunctionToolset::new().tool(tool_fn(
        "update_file",
        "Updates a file",
        update_file,
    )));
    let calls = vec![
        call("readme", "update_file", json!({"path": "README.md"})),
        call("env", "update_file", json!({"path": ".env"})),
    ];
    let report = turn.run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "deferred"]);
    let suspended = report.into_suspended().unwrap();
    let requests = suspended.requests();
    assert_eq!(requests.metadata["env"]["reason"], "protected file");
    let report =
        turn.resume(suspended, requests.answer().approve("env").build().unwrap()).await.unwrap();
    assert_eq!(content(&report, 1), "Updated .env");
}

struct FileAccessControl;

impl ToolMiddleware for FileAccessControl {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        match call.name() {
            "delete_file" => Decision::ask(format!("Delete {}?", call.args()["path"])),
            "read_file" => Decision::allow().with_args(call.args().clone().with("audit", true)),
            _ => call.args().clone().into(),
        }
    }
}

#[tokio::test]
async fn allow_deny_ask_and_the_permission_handler() {
    // "If the handler returns True, the tool call proceeds. If False, ToolBlocked is raised."
    let recorder = Recorder::new(["delete_file", "read_file", "list"]);
    let tools = recorder.clone().layered(FileAccessControl.into_layer());
    let approval_callback = permission_handler(async |_, call: ToolCall, reason: String| {
        assert_eq!(reason, "Delete \"a\"?");
        call.name() != "delete_file"
    });
    let calls = || {
        ["delete_file", "read_file", "list"]
            .map(|name| call(name, name, json!({"path": "a"})))
            .to_vec()
    };
    let report = Turn::new(tools.clone())
        .deferred_tool_handler(approval_callback)
        .run(calls())
        .await
        .unwrap();
    assert_eq!(words(&report), ["denied", "returned", "returned"]);
    assert_eq!(
        content(&report, 0),
        "The tool call was denied: Delete \"a\"?",
        "D6: the ASK's reason"
    );
    assert_eq!(content(&report, 1)["audit"], true, "modified_args");
    // "ASK: Defers to permission_handler callback. If no handler, raises ToolBlocked": D6 keeps that by name.
    let report = Turn::new(tools)
        .deferred_tool_handler(countersign::handler::DenyAll::new("Permission required"))
        .run(calls())
        .await
        .unwrap();
    assert_eq!(content(&report, 0), "Permission required");
    assert_eq!(recorder.ids(), ["list", "list", "read_file", "read_file"]);
}

#[tokio::test]
async fn a_chain_ends_at_the_first_permission_result() {
    // "MiddlewareChain -- if any middleware returns ToolPermissionResult, it short-circuits the chain"; "plain dict
    // still works", and is no such result.
    let chain = danger_first_decision_wins()
        .with(FileAccessControl)
        .with(decide_fn(|_, _| Decision::deny("not by the file rules")));
    let recorder = Recorder::new(["delete_file", "read_file", "list"]);
    let turn = Turn::new(recorder.clone().layered(chain.into_layer()));
    let calls = ["delete_file", "read_file", "list"]
        .map(|name| call(name, name, json!({"path": "a"})))
        .to_vec();
    let report = turn.run(calls).await.unwrap();
    assert_eq!(words(&report), ["deferred", "returned", "denied"]);
    assert_eq!(recorder.ids(), ["read_file"]);
}

#[tokio::test]
async fn results_from_elsewhere_are_found_by_their_metadata() {
    // "raise CallDeferred(metadata={'task_id': task_id})"; "results.calls[call.tool_call_id] = get_task_result(task_id)".
    let turn = Turn::new(Recorder::new(["long_running_task"]).body(|cx, _| {
        let task = format!("task of {}", cx.tool_call_id().unwrap());
        Err(CallDeferred::new().with_metadata("task_id", task).into())
    }));
    let report = turn
        .run(vec![call("call_id_5", "long_running_task", json!({"query": "q"}))])
        .await
        .unwrap();
    let suspended = report.into_suspended().unwrap();
    let requests = suspended.requests();
    let task = requests.metadata["call_id_5"]["task_id"].as_str().unwrap().to_owned();
    let answers =
        requests.answer().result("call_id_5", format!("result of {task}")).build().unwrap();
    assert_eq!(
        content(&turn.resume(suspended, answers).await.unwrap(), 0),
        "result of task of call_id_5"
    );
}

#[test]
fn the_answers_have_the_shape_it_shows() {
    let answers: DeferredToolResults = serde_json::from_value(json!({
        "approvals": {
            "call_id_1": true,
            "call_id_2": false,
            "call_id_3": {"kind": "tool-denied", "message": "Not allowed"},
            "call_id_4": {"kind": "tool-approved", "override_args": {"path": "/safe/path"}},
        },
        "calls": {
            "call_id_5": "task result",
            "call_id_6": {"structured": "data"},
            "call_id_7": {"kind": "model-retry", "message": "Task failed, try again"},
        },
        "metadata": {"call_id_1": {"user_id": "admin"}},
        "answered_by": {"call_id_1": "alice"},
    }))
    .unwrap();
    let built = DeferredToolResults::new()
        .approve("call_id_1")
        .approval("call_id_2", false)
        .deny("call_id_3", "Not allowed")
        .approval("call_id_4", ToolApproved::with_args(Args::new().with("path", "/safe/path")))
        .result("call_id_5", "task result")
        .result("call_id_6", json!({"structured": "data"}))
        .result("call_id_7", countersign::outcome::ModelRetry::new("Task failed, try again"))
        .metadata("call_id_1", Map::from_iter([("user_id".to_owned(), "admin".into())]));
    assert_eq!(answers.approvals, built.approvals);
    assert_eq!(answers.calls, built.calls);
    assert_eq!(answers.metadata, built.metadata);
    let written = serde_json::to_value(&answers).unwrap();
    assert_eq!(serde_json::from_value::<DeferredToolResults>(written.clone()).unwrap(), answers);
    assert_eq!(written["calls"]["call_id_5"], "task result");
    let mut keys: Vec<_> = written.as_object().unwrap().keys().cloned().collect();
    // Their order is serde_json's, and goes by its features.
    keys.sort();
    assert_eq!(keys, ["answered_by", "approvals", "calls", "metadata"]);
}

#[tokio::test]
async fn the_requests_have_the_shape_of_pydantic_ai() {
    let report = Turn::new(
        Recorder::new(["rm", "ask"])
            .body(|_, _| Err(CallDeferred::question().into()))
            .approval_required_if(|_, call| call.name() == "rm"),
    )
    .run(vec![call("a1", "rm", json!({"path": "x"})), call("c2", "ask", json!({"q": "?"}))])
    .await
    .unwrap();
    let mut shape = serde_json::to_value(report.deferred().unwrap()).unwrap();
    let own = shape.as_object_mut().unwrap().remove("_countersign").unwrap();
    assert_eq!(own["fingerprints"].as_object().unwrap().len(), 2);
    let part = |name: &str, args, id: &str| {
        json!({"tool_name": name, "args": args, "tool_call_id": id, "tool_kind": null, "id": null,
            "provider_name": null, "provider_details": null, "part_kind": "tool-call"})
    };
    assert_eq!(
        shape,
        json!({
            "calls": [part("ask", json!({"q": "?"}), "c2")],
            "approvals": [part("rm", json!({"path": "x"}), "a1")],
            "metadata": {},
            "_kinds": {"c2": "question"},
        })
    );
}

/// From the proposal, "Fail-Closed Defaults": a gap in a handler's answers is a denial.
#[tokio::test]
async fn fail_closed_defaults_are_one_word() {
    // From the proposal, "Fail-Closed Defaults".
    async fn told(handler: impl DeferredToolHandler) -> String {
        let turn =
            Turn::new(Recorder::new(["x"]).approval_required()).deferred_tool_handler(handler);
        let report = turn.run(vec![call("c1", "x", json!({}))]).await.unwrap();
        content(&report, 0).as_str().unwrap().to_owned()
    }
    let forgets = handler_fn_sync(|_, _| Ok::<_, AnswerError>(DeferredToolResults::new()));
    assert_eq!(told(countersign::handler::FailClosed::new(forgets)).await, "Denied by policy.");
}
