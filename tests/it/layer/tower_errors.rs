//! Errors of layers (rule T8), and the calls that run again after them.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::call::Execution;
use countersign::handler::{danger_approve_all, handler_fn_sync};
use countersign::middleware::ToolCallError;
use countersign::outcome::ModelRetry;
use countersign::outcome::ToolFailed;
use countersign::{
    BoxError, FunctionToolset, Outcome, RunContext, ToolCall, ToolDefinition, ToolError, Tools,
    ToolsExt as _, Turn, TurnReport, decide_fn, from_fn, tool_fn,
};
use countersign::{Decision, Error};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tower::ServiceBuilder;
use tower::limit::{ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer};
use tower::load_shed::LoadShedLayer;
use tower::retry::RetryLayer;
use tower::timeout::TimeoutLayer;
use tower::timeout::error::Elapsed;
use tower::util::{AndThenLayer, MapErrLayer, MapResultLayer};

use crate::support::{Recorder, Retries, call, content, run_one, words};

const SECOND: Duration = Duration::from_secs(1);

fn text(report: &TurnReport, at: usize) -> String {
    content(report, at).as_str().unwrap().to_owned()
}

// --- which of the three it was

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_before_its_body_did_not_run() {
    let recorder = Recorder::new(["a"]);
    let slots = Arc::new(Semaphore::new(0));
    // Waits for its slot inside the timeout, as our async layer is always ready.
    let stack = ServiceBuilder::new()
        .timeout(SECOND)
        .layer(from_fn(async |_, _| Decision::allow()))
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&slots)));
    let turn = Turn::new(recorder.clone().layered(stack));
    let report = run_one(&turn, call("c1", "a", json!({}))).await;
    assert_eq!(words(&report), ["failed"]);
    assert_eq!(text(&report, 0), "The tool did not run: it took too long.");
    assert_eq!(*report.calls()[0].execution(), Execution::NotStarted);
    // T6: its place in the queue is gone: nothing runs late.
    slots.add_permits(1);
    assert_eq!(words(&run_one(&turn, call("c2", "a", json!({}))).await), ["returned"]);
    assert_eq!(recorder.ids(), ["c2"]);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_cut_off_is_unknown_and_was_run_once() {
    let recorder = Recorder::new(["a"]).taking(SECOND);
    let turn = Turn::new(recorder.clone().layered(TimeoutLayer::new(SECOND / 2)));
    let report = run_one(&turn, call("c1", "a", json!({}))).await;
    assert_eq!(words(&report), ["unknown"]);
    assert!(text(&report, 0).contains("may have run"), "{}", text(&report, 0));
    assert_eq!(*report.calls()[0].execution(), Execution::Unknown);
    assert_eq!(recorder.ids(), ["c1"]);
    assert!(recorder.ended().is_empty());
}

// "uses the recorded outcome for finished": a layer that fails after the body has ended.
#[tokio::test]
async fn an_error_after_the_body_has_ended_gives_the_recorded_outcome() {
    let recorder = Recorder::new(["a"]);
    let late =
        AndThenLayer::new(|_: Outcome| ready(Err::<Outcome, BoxError>(Elapsed::new().into())));
    let turn = Turn::new(recorder.clone().layered(late));
    let report = run_one(&turn, call("c1", "a", json!({"n": 1}))).await;
    assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!({"n": 1})));
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_shed_did_not_run() {
    let recorder = Recorder::new(["a"]).taking(SECOND);
    let stack =
        ServiceBuilder::new().layer(LoadShedLayer::new()).layer(ConcurrencyLimitLayer::new(1));
    let turn = Turn::new(recorder.clone().layered(stack));
    let report =
        turn.run(vec![call("c1", "a", json!({})), call("c2", "a", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["returned", "failed"]);
    assert_eq!(text(&report, 1), "The tool did not run: too many calls are running.");
    assert_eq!(recorder.ids(), ["c1"]);
}

// D1, A3: what was denied or asked stays so, whatever error a layer makes of it.
#[tokio::test]
async fn an_error_of_a_layer_hides_neither_a_denial_nor_a_question() {
    let recorder = Recorder::new(["deny", "ask"]);
    let fails = MapResultLayer::new(|_: Result<Outcome, BoxError>| {
        Err::<Outcome, BoxError>(Elapsed::new().into())
    });
    let stack = ServiceBuilder::new().layer(fails).layer(decide_fn(crate::support::by_name));
    let turn = Turn::new(recorder.clone().layered(stack));
    let report =
        turn.run(vec![call("c1", "deny", json!({})), call("c2", "ask", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["denied", "deferred"]);
    assert!(recorder.ran().is_empty());
}

// --- what runs again

// Retry × 3 over a timeout and a long body: one body, "may have run".
#[tokio::test(start_paused = true)]
async fn retry_over_a_timeout_runs_the_body_once() {
    for retries in [Retries::of_failures(3), Retries::always(3)] {
        let recorder = Recorder::new(["a"]).taking(SECOND);
        let stack = ServiceBuilder::new().retry(retries).timeout(SECOND / 2);
        let report =
            run_one(&Turn::new(recorder.clone().layered(stack)), call("c1", "a", json!({}))).await;
        assert_eq!(words(&report), ["unknown"]);
        assert_eq!(recorder.ids(), ["c1"]);
    }
}

/// An idempotent tool that hangs at its first attempts; tells the keys it was given.
fn idempotent(hangs: u32) -> (Tools, Arc<Mutex<Vec<String>>>) {
    let keys: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&keys);
    let body = move |cx: RunContext, _: Value| {
        seen.lock().unwrap().extend(cx.idempotency_key());
        async move {
            if cx.attempt() <= hangs {
                tokio::time::sleep(10 * SECOND).await;
            }
            Ok::<_, ToolError>(cx.attempt())
        }
    };
    (FunctionToolset::new().tool(tool_fn("put", "", body).idempotent()).into(), keys)
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_tool_runs_again_with_the_same_key_also_when_it_was_approved() {
    for asked in [false, true] {
        let (tools, keys) = idempotent(2);
        let tools = tools.approval_required_if(move |_, _| asked);
        let stack = ServiceBuilder::new().retry(Retries::of_failures(3)).timeout(SECOND);
        let turn = Turn::new(tools.layered(stack)).deferred_tool_handler(danger_approve_all());
        let report = run_one(&turn, call("c1", "put", json!({}))).await;
        assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!(3)));
        let keys = keys.lock().unwrap().clone();
        assert_eq!(keys.len(), 3);
        assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_idempotent_tool_whose_last_attempt_is_cut_off_is_unknown() {
    let (tools, keys) = idempotent(10);
    let stack = ServiceBuilder::new().retry(Retries::of_failures(3)).timeout(SECOND);
    let report = run_one(&Turn::new(tools.layered(stack)), call("c1", "put", json!({}))).await;
    assert_eq!(words(&report), ["unknown"]);
    assert_eq!(keys.lock().unwrap().len(), 4);
}

// Only the toolset can say that a tool is idempotent.
#[tokio::test(start_paused = true)]
async fn a_wrapper_cannot_declare_a_tool_idempotent() {
    let recorder = Recorder::new(["a"]).taking(SECOND);
    let stack = ServiceBuilder::new().retry(Retries::of_failures(3)).timeout(SECOND / 2);
    let tools = recorder
        .clone()
        .prepared(|_, given| given.into_iter().map(|it| it.with_idempotent(true)).collect())
        .layered(stack);
    assert_eq!(words(&run_one(&Turn::new(tools), call("c1", "a", json!({}))).await), ["unknown"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

type Fails = fn() -> ToolError;

/// Ends with the error the first two times.
fn flaky(fails: Fails, kind: countersign::call::ToolKind) -> Recorder {
    let tool = ToolDefinition::new("a", json!({})).with_kind(kind);
    Recorder::of([tool]).body(move |cx, _| match cx.attempt() {
        1 | 2 => Err(fails()),
        attempt => Ok(json!(attempt)),
    })
}

const FAILURES: [Fails; 3] = [
    || ToolError::fatal("broken pipe"),
    || ToolFailed::new("no such host").into(),
    || ModelRetry::new("try b").into(),
];

// A call without a question whose last attempt *finished* with an error may be retried by a layer of the host.
#[tokio::test]
async fn an_unasked_call_that_finished_with_an_error_may_be_retried() {
    for fails in FAILURES {
        let recorder = flaky(fails, countersign::call::ToolKind::Function);
        let tools = recorder.clone().layered(RetryLayer::new(Retries::of_failures(5)));
        let report = run_one(&Turn::new(tools), call("c1", "a", json!({}))).await;
        assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!(3)));
        assert_eq!(recorder.ids(), ["c1"; 3]);
    }
}

#[tokio::test]
async fn a_call_that_returned_is_not_executed_again() {
    let recorder = Recorder::new(["a"]);
    let tools = recorder.clone().layered(RetryLayer::new(Retries::always(5)));
    assert_eq!(words(&run_one(&Turn::new(tools), call("c1", "a", json!({}))).await), ["returned"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// …an approved one may not: what was approved runs at most once.
#[tokio::test]
async fn an_approved_call_that_finished_with_an_error_is_not_retried() {
    for (fails, word) in FAILURES.into_iter().zip(["", "failed", "retry"]) {
        let declared = flaky(fails, countersign::call::ToolKind::Unapproved);
        let layered = flaky(fails, countersign::call::ToolKind::Function);
        let retry = || RetryLayer::new(Retries::always(5));
        let sets = [
            (&declared, declared.clone().layered(retry())),
            (&layered, layered.clone().approval_required().layered(retry())),
            (&layered, layered.clone().layered(retry()).approval_required()),
        ];
        for (at, (recorder, tools)) in sets.into_iter().enumerate() {
            let before = recorder.ran().len();
            let turn = Turn::new(tools).deferred_tool_handler(danger_approve_all());
            match turn.run(vec![call("c1", "a", json!({}))]).await {
                Ok(report) => assert_eq!(words(&report), [word], "{at}"),
                Err(error) => {
                    assert!(matches!(error.error(), Error::Tool { .. }) && word.is_empty());
                    let said = std::error::Error::source(&error).unwrap().to_string();
                    assert_eq!(said, "broken pipe");
                }
            }
            assert_eq!(recorder.ran().len() - before, 1, "{at}");
        }
    }
}

// --- a mapping of the host's own

#[derive(Debug, thiserror::Error)]
#[error("quota exceeded")]
struct Quota;

/// A filter that refuses calls of tool `b`.
fn quota()
-> impl tower::Layer<Tools, Service = tower::filter::Filter<Tools, Check>> + Send + Sync + 'static {
    tower::filter::FilterLayer::new(check as Check)
}

type Check = fn(ToolCall) -> Result<ToolCall, Quota>;

fn check(call: ToolCall) -> Result<ToolCall, Quota> {
    if call.name() == "b" { Err(Quota) } else { Ok(call) }
}

// T8: any other error: siblings finish, the handler is not asked, then the run ends with an error that carries all.
#[tokio::test(start_paused = true)]
async fn another_error_ends_the_response_after_its_siblings_have_finished() {
    let recorder = Recorder::new(["a", "b", "ask"]).taking(SECOND);
    let unasked = handler_fn_sync(|_, _| Err::<_, BoxError>("the handler was asked".into()));
    let tools = recorder.clone().layered(decide_fn(crate::support::by_name)).layered(quota());
    let calls = || ["b", "a", "ask"].map(|tool| call(tool, tool, json!({}))).to_vec();
    let error =
        Turn::new(tools.clone()).deferred_tool_handler(unasked).run(calls()).await.unwrap_err();
    let Error::Tool { id, tool, source } = error.error() else { panic!("{error:?}") };
    assert_eq!(
        (id.as_str(), tool.as_str(), source.to_string().as_str()),
        ("b", "b", "quota exceeded")
    );
    assert_eq!(words(error.report()), ["failed", "returned", "deferred"]);
    assert_eq!(text(error.report(), 0), "The tool did not run: an error stopped it.");
    assert_eq!(recorder.ended(), ["a"]);

    // T9: resuming runs nothing twice.
    let suspended = error.suspended().unwrap().clone();
    let answers = suspended.requests().answer().approve("ask").build().unwrap();
    let report = Turn::new(tools).resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["failed", "returned", "returned"]);
    assert_eq!(recorder.ids(), ["a", "ask"]);
}

#[tokio::test(start_paused = true)]
async fn a_custom_mapping_gets_the_error_and_the_record_of_the_gate() {
    let recorder = Recorder::new(["a", "b", "c"]).taking(SECOND);
    let seen: Arc<Mutex<Vec<Execution>>> = Arc::default();
    let record = Arc::clone(&seen);
    let mapping = move |_: &RunContext, _: &ToolCall, failed: &ToolCallError| {
        record.lock().unwrap().push(failed.execution.clone());
        failed.error.is::<Quota>().then(|| Outcome::denied("Come back tomorrow."))
    };
    let late = |error: BoxError| error;
    let stack = ServiceBuilder::new()
        .layer(MapErrLayer::new(late))
        .timeout(SECOND / 2)
        .filter(check as Check);
    let turn = Turn::new(recorder.clone().layered(stack)).error_outcome(mapping);
    let report = run_one(&turn, call("c1", "b", json!({}))).await;
    assert_eq!(
        (words(&report), content(&report, 0)),
        (vec!["denied"], json!("Come back tomorrow."))
    );
    assert!(recorder.ran().is_empty());
    // Where the mapping gives nothing, the response ends with the error: also with one of tower's.
    let error = turn.run(vec![call("c2", "a", json!({}))]).await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { source, .. } if source.is::<Elapsed>()));
    assert_eq!(*seen.lock().unwrap(), [Execution::NotStarted, Execution::Unknown]);
    assert_eq!(recorder.ids(), ["c2"]);
}

// T9: what has run is not lost when the host's own mapping panics.
#[tokio::test]
async fn a_mapping_that_panics_is_an_error_of_its_call_and_siblings_finish() {
    let recorder = Recorder::new(["a", "b"]);
    let turn = Turn::new(recorder.clone().layered(quota()))
        .error_outcome(|_, _, _| panic!("in the mapping"));
    let calls = ["a", "b"].map(|tool| call(tool, tool, json!({}))).to_vec();
    let error = turn.run(calls).await.unwrap_err();
    assert!(matches!(error.error(), Error::Tool { id, .. } if id == "b"), "{error:?}");
    assert_eq!(words(error.report()), ["returned", "failed"]);
    assert_eq!(recorder.ids(), ["a"]);
}

// A mapping cannot make a question of an error.
#[tokio::test]
async fn a_mapping_cannot_defer_a_call() {
    let deferral: Arc<Mutex<Option<Outcome>>> = Arc::default();
    let given = Arc::clone(&deferral);
    let asks = Turn::new(Recorder::new(["ask"]).approval_required());
    let report = run_one(&asks, call("c0", "ask", json!({}))).await;
    *deferral.lock().unwrap() = Some(report.calls()[0].outcome().clone());

    let recorder = Recorder::new(["b"]);
    let turn = Turn::new(recorder.clone().layered(quota()))
        .error_outcome(move |_, _, _| given.lock().unwrap().clone())
        .deferred_tool_handler(danger_approve_all());
    assert!(turn.run(vec![call("c1", "b", json!({}))]).await.is_err());
    assert!(recorder.ran().is_empty());
}
