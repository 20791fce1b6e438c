//! Groups C and D: a middleware stands where PydanticAI has validators and hooks.

use std::sync::{Arc, Mutex};

use countersign::agent::text;
use countersign::call::{Phase, ToolKind};
use countersign::handler::danger_approve_all;
use countersign::middleware::ToolCallError;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::outcome::ApprovalRequired;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, BoxError, Decision, Error, FunctionToolset, Model, Outcome, RunContext, ToolCall,
    ToolDefinition, ToolError, ToolMiddleware, ToolMiddlewareExt, Tools, ToolsExt, Turn, decide_fn,
    from_fn, schemars, tool_fn,
};
use serde_json::json;
use tower::layer::layer_fn;

use crate::support::{Recorder, call, content, results, run_one, words};

/// Asks about large amounts, and records the calls that it saw.
#[derive(Clone, Default)]
struct Limit(Arc<Mutex<Vec<(Phase, bool)>>>);

impl ToolMiddleware for Limit {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.lock().unwrap().push((cx.phase(), cx.tool_call_approved()));
        match call.args()["amount"].as_u64() {
            Some(amount) if amount > 100 => {
                Decision::ask("a large amount").with_metadata("limit", 100)
            }
            _ => Decision::allow(),
        }
    }
}

impl Limit {
    fn saw(&self) -> Vec<(Phase, bool)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pay {
    amount: u32,
}

/// A tool over typed arguments, and what it was paid.
fn pay() -> (FunctionToolset, Arc<Mutex<Vec<u32>>>) {
    let paid = Arc::<Mutex<Vec<u32>>>::default();
    let noted = Arc::clone(&paid);
    let body = move |pay: Pay| {
        noted.lock().unwrap().push(pay.amount);
        async move { Ok::<_, ToolError>(pay.amount) }
    };
    (FunctionToolset::new().tool(tool_fn("pay", "", body)), paid)
}

fn large(id: &str) -> ToolCall {
    call(id, "pay", json!({"amount": 500}))
}

// C35, C36, C46: asking about valid arguments is no failure, so that it costs no retry; each run decides once.
#[tokio::test]
async fn c35_c36_c46_a_middleware_asks_about_valid_arguments_once_in_each_run_and_no_retry_is_spent()
 {
    let (tools, paid) = pay();
    let limit = Limit::default();
    let tools = tools.layered(limit.clone().into_layer());
    let agent = Agent::new(ScriptedModel::calls([large("c1")]), tools)
        .max_retries(0)
        .output(text().or_deferred());
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    assert_eq!(limit.saw(), [(Phase::First, false)]);
    assert_eq!(
        serde_json::to_value(&run.requests().metadata).unwrap(),
        json!({"c1": {"limit": 100}})
    );
    assert!(paid.lock().unwrap().is_empty());
    let answers = run.requests().answer().approve("c1").build().unwrap();
    assert_eq!(agent.resume(run, answers).await.unwrap().text(), Some("Done."));
    assert_eq!(limit.saw(), [(Phase::Approved, true)]);
    assert_eq!(*paid.lock().unwrap(), [500]);
}

// C38: a tool that needs an approval anyway is asked about once, with what the layer adds.
#[tokio::test]
async fn c38_a_layer_adds_its_metadata_to_a_tool_that_needs_an_approval_anyway() {
    let declared =
        Recorder::of([ToolDefinition::new("pay", json!({})).with_kind(ToolKind::Unapproved)]);
    let turn = Turn::new(declared.clone().layered(Limit::default().into_layer()));
    let suspended = run_one(&turn, large("c1")).await.into_suspended().unwrap();
    let requests = suspended.requests();
    assert_eq!((requests.approvals.len(), &requests.metadata["c1"]["limit"]), (1, &json!(100)));
    let answers = requests.answer().approve("c1").build().unwrap();
    assert_eq!(words(&turn.resume(suspended, answers).await.unwrap()), ["returned"]);
}

#[tokio::test]
async fn c39_the_question_of_a_middleware_is_answered_inline() {
    let (tools, paid) = pay();
    let tools = tools.layered(Limit::default().into_layer());
    let agent = Agent::new(ScriptedModel::calls([large("c1")]), tools)
        .deferred_tool_handler(danger_approve_all());
    assert_eq!(agent.run("go").await.unwrap().text(), Some("Done."));
    assert_eq!(*paid.lock().unwrap(), [500]);
}

// C40: a stack sees calls of whole responses; nothing is decided while the model still talks.
#[tokio::test]
async fn c40_incomplete_arguments_are_not_decided_on() {
    struct Talks(Limit);
    impl Model for Talks {
        async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
            if request.messages().len() > 1 {
                return Ok(ModelResponse::text("Done."));
            }
            for text in ["I ", "pay."] {
                tokio::task::yield_now().await;
                assert!(self.0.saw().is_empty(), "decided before {text}");
            }
            Ok(ModelResponse::calls([large("c1")]))
        }
    }
    let limit = Limit::default();
    let (tools, paid) = pay();
    let agent = Agent::new(Talks(limit.clone()), tools.layered(limit.clone().into_layer()))
        .output(text().or_deferred());
    let run = agent.run("go").watch(|_| ()).await.unwrap();
    assert_eq!(run.suspended().unwrap().requests().approvals.len(), 1);
    assert_eq!((limit.saw().len(), paid.lock().unwrap().len()), (1, 0));
}

/// Records which of its hooks ran.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<&'static str>>>);

impl ToolMiddleware for Notes {
    async fn before_tool_call(&self, _: &RunContext, _: &ToolCall) -> Decision {
        self.0.lock().unwrap().push("before");
        Decision::allow()
    }

    async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, outcome: Outcome) -> Outcome {
        self.0.lock().unwrap().push("after");
        outcome
    }

    async fn on_tool_error(
        &self,
        _: &RunContext,
        _: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.0.lock().unwrap().push("error");
        Err(error.error)
    }
}

// C41, C42: a deferral is no error, and a gate outside has seen the valid arguments of the call.
#[tokio::test]
async fn c41_c42_a_deferral_is_no_error_of_the_call_and_every_gate_has_seen_it() {
    let body = Recorder::new(["pay"]).body(|_, _| Err(ApprovalRequired::new().into()));
    let layer = Recorder::new(["pay"]).layered(decide_fn(|_, _| Decision::ask("sure?")));
    for tools in [Tools::from(body), layer] {
        let notes = Notes::default();
        let report =
            run_one(&Turn::new(tools.layered(notes.clone().into_layer())), large("c1")).await;
        assert_eq!(
            (words(&report), report.deferred().unwrap().approvals.len()),
            (vec!["deferred"], 1)
        );
        assert_eq!(*notes.0.lock().unwrap(), ["before"]);
    }
}

/// Behind a foreign layer that answers in the tool's place.
fn instead(tools: impl Into<Tools>, outcome: &Outcome) -> Tools {
    let outcome = outcome.clone();
    tools.into().layered(layer_fn(move |_: Tools| {
        let outcome = outcome.clone();
        tower::service_fn(move |_: ToolCall| std::future::ready(Ok::<_, BoxError>(outcome.clone())))
    }))
}

/// Replaces the result of the tool or of a layer inside by this text.
#[derive(Clone)]
struct Says(Outcome);

impl ToolMiddleware for Says {
    async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, _: Outcome) -> Outcome {
        self.0.clone()
    }

    async fn on_tool_error(
        &self,
        _: &RunContext,
        _: &ToolCall,
        _: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        Ok(self.0.clone())
    }
}

/// Something around a tool says what became of its call: in its place, after it, and when it fails. With how often
/// the tool runs.
fn around(outcome: &Outcome) -> [(Recorder, Tools, usize); 3] {
    let says = || Says(outcome.clone()).into_layer();
    let tool = || Recorder::new(["pay"]);
    let (before, after) = (tool(), tool());
    let error = tool().body(|_, _| Err(ToolError::fatal("broken")));
    [
        (before.clone(), instead(before, outcome), 0),
        (after.clone(), after.layered(says()), 1),
        (error.clone(), error.layered(says()), 1),
    ]
}

// D56, D58: the result for the model can be changed after the call, and made from an error.
#[tokio::test]
async fn d56_d57_d58_layers_and_hooks_determine_the_result_for_the_model() {
    for (recorder, tools, runs) in around(&Outcome::returned("instead")) {
        let report = run_one(&Turn::new(tools), large("c1")).await;
        assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!("instead")));
        assert_eq!(recorder.ran().len(), runs);
    }
    // D57: a call that must not run is denied; PydanticAI's `SkipToolExecution("denied")` is a success.
    let recorder = Recorder::new(["pay"]);
    let report = run_one(
        &Turn::new(recorder.clone().layered(decide_fn(|_, _| Decision::deny("denied")))),
        large("c1"),
    )
    .await;
    assert_eq!((words(&report), content(&report, 0)), (vec!["denied"], json!("denied")));
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn d60_d62_a_failure_by_a_layer_is_final_and_costs_no_retry() {
    for (recorder, tools, runs) in around(&Outcome::failed("closed")) {
        let agent = Agent::new(ScriptedModel::calls([large("c1")]), tools).max_retries(0);
        let run = agent.run("go").await.unwrap();
        assert_eq!(
            results(run.history()),
            [("c1".into(), countersign::message::ReturnKind::Failed, json!("closed"))]
        );
        assert_eq!(recorder.ran().len(), runs);
    }
}

// D61, D63: no person is asked about a call that a layer outside of the question has ended.
#[tokio::test]
async fn d61_d63_a_failure_by_a_layer_replaces_an_approval() {
    let declared =
        Recorder::of([ToolDefinition::new("pay", json!({})).with_kind(ToolKind::Unapproved)]);
    let report =
        run_one(&Turn::new(instead(declared.clone(), &Outcome::failed("closed"))), large("c1"))
            .await;
    assert_eq!((words(&report), report.deferred()), (vec!["failed"], None));
    assert!(declared.ran().is_empty());
}

#[tokio::test]
async fn d64_a_retry_by_a_layer_counts_against_the_budget_of_the_tool() {
    for (recorder, tools, runs) in around(&Outcome::retry("otherwise")) {
        let twice = || {
            ScriptedModel::new([])
                .then(ModelResponse::calls([large("c1")]))
                .then(ModelResponse::calls([large("c2")]))
                .then(ModelResponse::text("Done."))
        };
        let error = Agent::new(twice(), tools.clone()).run("go").await.unwrap_err();
        assert!(
            matches!(error.error(), Error::ModelBehavior { ids, .. } if *ids == ["c2"]),
            "{error:?}"
        );
        assert_eq!(recorder.ran().len(), 2 * runs);
        assert_eq!(
            Agent::new(twice(), tools).max_retries(2).run("go").await.unwrap().text(),
            Some("Done.")
        );
    }
}

// D66, D68: a type, a sync closure and an async one; the outermost is asked first.
#[tokio::test]
async fn d66_d68_every_form_of_a_middleware_decides_alike() {
    struct Refuses;
    impl ToolMiddleware for Refuses {
        async fn before_tool_call(&self, _: &RunContext, _: &ToolCall) -> Decision {
            Decision::deny("no")
        }
    }
    let tools = || Recorder::new(["pay"]);
    let forms = [
        tools().layered(Refuses.into_layer()),
        tools().layered(decide_fn(|_, _| Decision::deny("no"))),
        tools().layered(from_fn(async |_, _| {
            tokio::task::yield_now().await;
            Ok::<_, BoxError>(Decision::deny("no"))
        })),
    ];
    for tools in forms {
        let report = run_one(&Turn::new(tools), large("c1")).await;
        assert_eq!((words(&report), content(&report, 0)), (vec!["denied"], json!("no")));
    }
}

// D50, D51: what has run cannot be asked about any more. No hook can make a deferral, and this is what becomes of one
// that a foreign layer has kept from another call.
#[tokio::test]
async fn d50_d51_an_executed_call_is_never_deferred_afterwards() {
    let kept = {
        let asking = Recorder::new(["pay"]).layered(decide_fn(|_, _| Decision::ask("sure?")));
        run_one(&Turn::new(asking), large("c0")).await.calls()[0].outcome().clone()
    };
    assert!(kept.is_deferred());
    let [(_, before, _), (ran, after, _), (failed, error, _)] = around(&kept);
    for tools in [before, after] {
        let report = run_one(&Turn::new(tools), large("c1")).await;
        assert_eq!((words(&report), report.deferred()), (vec!["failed"], None));
    }
    let error = Turn::new(error).run(vec![large("c1")]).await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { .. }), "the error stands: {error:?}");
    assert!(error.report().deferred().is_none());
    assert_eq!((ran.ids(), failed.ids()), (vec!["c1".to_owned()], vec!["c1".to_owned()]));
}
