//! Any tower layer composes, above and between ours; and the limits that tower itself sets.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use countersign::handler::danger_approve_all;
use countersign::{
    BoxError, Decision, Error, Outcome, RunContext, ToolCall, ToolMiddleware,
    ToolMiddlewareExt as _, Tools, ToolsExt as _, Turn, UserError, decide_fn, from_fn, handler_fn,
};
use serde_json::json;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tower::buffer::{Buffer, BufferLayer};
use tower::filter::{AsyncFilterLayer, FilterLayer};
use tower::hedge::Hedge;
use tower::layer::layer_fn;
use tower::limit::{
    ConcurrencyLimit, ConcurrencyLimitLayer, GlobalConcurrencyLimitLayer, RateLimit,
};
use tower::load_shed::LoadShedLayer;
use tower::retry::RetryLayer;
use tower::steer::Steer;
use tower::timeout::TimeoutLayer;
use tower::timeout::error::Elapsed;
use tower::util::{
    BoxCloneSyncService, BoxCloneSyncServiceLayer, MapRequestLayer, MapResponseLayer, option_layer,
};
use tower::{Layer, Service, ServiceBuilder};

use crate::support::{Recorder, Retries, by_name, call, content, run_one, words};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// Allows, after a while.
struct Slow;

impl ToolMiddleware for Slow {
    async fn before_tool_call(&self, _: &RunContext, _: &ToolCall) -> Decision {
        tokio::task::yield_now().await;
        Decision::allow()
    }
}

/// Denies what [`by_name`] denies, and asks nothing.
fn denies(_: &RunContext, call: &ToolCall) -> Decision {
    if call.name() == "deny" { Decision::deny("no") } else { Decision::allow() }
}

fn calls() -> Vec<ToolCall> {
    ["allow", "ask", "deny"].map(|tool| call(tool, tool, json!({}))).to_vec()
}

/// `n` calls of one tool.
fn batch(tool: &str, n: usize) -> Vec<ToolCall> {
    (0..n).map(|at| call(&format!("{tool}-{at}"), tool, json!({}))).collect()
}

/// Shows an allowed, an asked and a denied call passing through a layer above, between and below ours.
async fn composes<L>(name: &str, layer: impl Fn() -> L)
where
    L: Layer<Tools> + Send + Sync + 'static,
    L::Service: Service<ToolCall, Response = Outcome> + Clone + Send + Sync + 'static,
    <L::Service as Service<ToolCall>>::Error: Into<BoxError>,
    <L::Service as Service<ToolCall>>::Future: Send + 'static,
{
    let recorder = || Recorder::new(["allow", "ask", "deny"]);
    let ours = || decide_fn(by_name);
    let (above, between, below) = (recorder(), recorder(), recorder());
    let stacks = [
        (&above, above.clone().layered(ours()).layered(layer())),
        (&between, between.clone().layered(ours()).layered(layer()).layered(Slow.into_layer())),
        (&below, below.clone().layered(layer()).layered(Slow.into_layer()).layered(ours())),
    ];
    for (at, (recorder, tools)) in stacks.into_iter().enumerate() {
        let turn = Turn::new(tools);
        let report = turn.run(calls()).await.unwrap();
        assert_eq!(words(&report), ["returned", "deferred", "denied"], "{name} {at}");
        assert_eq!(content(&report, 2), "no", "{name} {at}");
        assert_eq!(recorder.ids(), ["allow"], "{name} {at}");
        let suspended = report.into_suspended().unwrap();
        let requests = suspended.requests();
        assert_eq!(requests.questions("ask").len(), 1, "{name} {at}");
        let answers = requests.answer().approve("ask").build().unwrap();
        let report = turn.resume(suspended, answers).await.unwrap();
        assert_eq!(words(&report), ["returned", "returned", "denied"], "{name} {at}");
        assert_eq!(recorder.ids(), ["allow", "ask"], "{name} {at}");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_compose() {
    composes("timeout", || TimeoutLayer::new(SECOND)).await;
    composes("concurrency_limit", || ConcurrencyLimitLayer::new(1)).await;
    composes("global concurrency_limit", || GlobalConcurrencyLimitLayer::new(1)).await;
    composes("load_shed", LoadShedLayer::new).await;
    composes("buffer", || BufferLayer::<ToolCall>::new(4)).await;
    composes("rate_limit in buffer", || {
        ServiceBuilder::new().buffer::<ToolCall>(4).rate_limit(1, SECOND)
    })
    .await;
}

#[tokio::test]
async fn retries_compose() {
    composes("retry", || RetryLayer::new(Retries::of_failures(3))).await;
    // D1: also over several attempts, each ask is made once, and each call that ran has run once.
    composes("retry of everything", || RetryLayer::new(Retries::always(3))).await;
}

#[tokio::test]
async fn maps_filters_and_steer_compose() {
    let tag = |mut call: ToolCall| {
        call.extensions_mut().insert("tagged");
        call
    };
    composes("map_request", move || MapRequestLayer::new(tag)).await;
    composes("map_response", || MapResponseLayer::new(|outcome: Outcome| outcome)).await;
    composes("filter", || FilterLayer::new(Ok::<ToolCall, BoxError>)).await;
    composes("async filter", || {
        AsyncFilterLayer::new(async |call: ToolCall| Ok::<_, BoxError>(call))
    })
    .await;
    composes("steer", || layer_fn(|tools: Tools| by_class(&tools))).await;
}

type Limited = ConcurrencyLimit<Tools>;
type Pick = fn(&ToolCall, &[Limited]) -> usize;

/// One limit for each class of tools.
fn by_class(tools: &Tools) -> Steer<Limited, Pick, ToolCall> {
    let limited = |max| ConcurrencyLimitLayer::new(max).layer(tools.clone());
    let pick: Pick = |call, _| usize::from(call.name() == "ask");
    Steer::new([limited(1), limited(8)], pick)
}

#[tokio::test(start_paused = true)]
async fn optional_and_boxed_layers_compose() {
    composes("option_layer", || option_layer(Some(TimeoutLayer::new(SECOND)))).await;
    composes("option_layer, absent", || option_layer(None::<TimeoutLayer>)).await;
    composes("boxed layer", || {
        BoxCloneSyncServiceLayer::<Tools, ToolCall, Outcome, BoxError>::new(
            ServiceBuilder::new().timeout(SECOND).concurrency_limit(1),
        )
    })
    .await;
    composes("boxed service", BoxCloneSyncService::<ToolCall, Outcome, BoxError>::layer).await;
}

// All of them in one builder, unboxed, between layers of ours.
#[tokio::test(start_paused = true)]
async fn one_builder_takes_towers_layers_between_ours() {
    let stack = || {
        ServiceBuilder::new()
            .layer(decide_fn(denies))
            .timeout(HOUR)
            .layer(Slow.into_layer())
            .buffer::<ToolCall>(8)
            .rate_limit(100, SECOND)
            .layer(from_fn(async |_, _| Decision::allow()))
            .retry(Retries::of_failures(2))
            .map_request(|call: ToolCall| call)
            .layer(decide_fn(denies))
            .load_shed()
            .option_layer(Some(GlobalConcurrencyLimitLayer::new(4)))
            .map_response(|outcome: Outcome| outcome)
            .filter(Ok::<ToolCall, BoxError>)
            .layer(Slow.into_layer())
            .concurrency_limit(1)
    };
    composes("one builder", stack).await;
    composes("one builder, boxed", move || {
        BoxCloneSyncServiceLayer::<Tools, ToolCall, Outcome, BoxError>::new(stack())
    })
    .await;
}

// --- what layers do to calls

// D3: foreign layers count: what decided outside decides again on what `map_request` made.
#[tokio::test]
async fn a_layer_outside_of_map_request_decides_on_the_arguments_that_run() {
    let recorder = Recorder::new(["read"]);
    let etc = |call: ToolCall| {
        let args = call.args().clone().with("path", "/etc/passwd");
        call.with_args(args)
    };
    let deny_etc = |_: &RunContext, call: &ToolCall| match call.args().str("path") {
        Some(path) if path.starts_with("/etc") => Decision::deny("outside"),
        _ => Decision::allow(),
    };
    let stack = ServiceBuilder::new().layer(decide_fn(deny_etc)).map_request(etc);
    let turn = Turn::new(recorder.clone().layered(stack));
    let report = run_one(&turn, call("c1", "read", json!({"path": "a"}))).await;
    assert_eq!((words(&report), content(&report, 0)), (vec!["denied"], json!("outside")));
    assert!(recorder.ran().is_empty());
}

// A layer that builds a new call loses its pass, and the gate refuses it; the error says what to do.
#[tokio::test]
async fn a_call_that_a_layer_builds_anew_does_not_run() {
    let recorder = Recorder::new(["ask"]);
    let anew = |call: ToolCall| ToolCall::new(call.id(), call.name(), call.args().to_value());
    let stack = ServiceBuilder::new().layer(decide_fn(by_name)).map_request(anew);
    let turn =
        Turn::new(recorder.clone().layered(stack)).deferred_tool_handler(danger_approve_all());
    let report = turn.run(batch("ask", 1)).await;
    let error = match report {
        Ok(report) => panic!("{:?}", words(&report)),
        Err(error) => error,
    };
    assert!(matches!(error.error(), Error::User(UserError::NoPass { .. })), "{error:?}");
    assert!(error.to_string().contains("with_args"), "{error}");
    assert!(recorder.ran().is_empty());
}

// --- batches and limits

// "A batch larger than a limit waits, never deadlocks."
#[tokio::test(start_paused = true)]
async fn a_batch_larger_than_its_limits_waits_and_never_deadlocks() {
    for limit in [1, 3] {
        let recorder = Recorder::new(["allow", "ask", "deny"]).taking(SECOND);
        let stack = ServiceBuilder::new()
            .concurrency_limit(2 * limit)
            .layer(Slow.into_layer())
            .buffer::<ToolCall>(1)
            .layer(decide_fn(by_name))
            .concurrency_limit(limit);
        let turn =
            Turn::new(recorder.clone().layered(stack)).deferred_tool_handler(danger_approve_all());
        let all = [batch("allow", 20), batch("ask", 20), batch("deny", 20)].concat();
        let report = tokio::time::timeout(HOUR, turn.run(all)).await.unwrap().unwrap();
        assert_eq!(words(&report)[..40], ["returned"; 40]);
        assert_eq!(words(&report)[40..], ["denied"; 20]);
        assert_eq!(recorder.ids().len(), 40);
        assert_eq!(recorder.peak(), limit);
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_spreads_a_batch_over_time() {
    let recorder = Recorder::new(["allow"]);
    let stack = ServiceBuilder::new().buffer::<ToolCall>(16).rate_limit(2, SECOND);
    let begin = Instant::now();
    let report = Turn::new(recorder.clone().layered(stack)).run(batch("allow", 10)).await.unwrap();
    assert_eq!(words(&report), ["returned"; 10]);
    assert!(begin.elapsed() >= 4 * SECOND, "{:?}", begin.elapsed());
    assert_eq!(recorder.ids().len(), 10);
}

#[tokio::test(start_paused = true)]
async fn one_global_limit_holds_over_several_sets() {
    let limit = GlobalConcurrencyLimitLayer::new(2);
    let (one, two) = (Recorder::new(["a"]).taking(SECOND), Recorder::new(["b"]).taking(SECOND));
    let tools = Tools::combined([one.clone().layered(limit.clone()), two.clone().layered(limit)]);
    let begin = Instant::now();
    let all = [batch("a", 4), batch("b", 4)].concat();
    let report = Turn::new(tools).run(all).await.unwrap();
    assert_eq!(words(&report), ["returned"; 8]);
    assert_eq!(begin.elapsed().as_secs(), 4, "two at a time, whatever set they are in");
}

// A denied call does not keep the slot it was given, in or outside a buffer.
#[tokio::test(start_paused = true)]
async fn a_denied_or_asked_call_gives_its_slot_back() {
    let slots = Arc::new(Semaphore::new(1));
    let limit = GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&slots));
    let recorder = Recorder::new(["allow", "ask", "deny"]);
    let stack = ServiceBuilder::new()
        .layer(decide_fn(|_, _| Decision::allow()))
        .layer(decide_fn(by_name))
        .layer(limit);
    let turn = Turn::new(recorder.clone().layered(stack));
    for tool in ["deny", "ask", "allow"] {
        tokio::time::timeout(HOUR, run_one(&turn, call(tool, tool, json!({})))).await.unwrap();
        assert_eq!(slots.available_permits(), 1, "{tool}");
    }
    assert_eq!(recorder.ids(), ["allow"]);
}

/// Returns `true` if a denied call below a buffer leaves the only slot of a shared limit to other sets.
async fn leaves_the_slot<L>(denies: L) -> bool
where
    L: Layer<ConcurrencyLimit<Tools>> + Clone + Send + Sync + 'static,
    L::Service: Service<ToolCall, Response = Outcome> + Send + 'static,
    <L::Service as Service<ToolCall>>::Error: Into<BoxError> + Send + Sync,
    <L::Service as Service<ToolCall>>::Future: Send + 'static,
{
    let limit = GlobalConcurrencyLimitLayer::new(1);
    let (one, two) = (Recorder::new(["deny"]), Recorder::new(["allow"]));
    let stack = ServiceBuilder::new().buffer::<ToolCall>(4).layer(denies).layer(limit.clone());
    let tools = Tools::combined([one.layered(stack), two.clone().layered(limit)]);
    let turn = Turn::new(tools);
    run_one(&turn, call("c1", "deny", json!({}))).await;
    let run = tokio::time::timeout(HOUR, run_one(&turn, call("c2", "allow", json!({})))).await;
    assert_eq!(two.ids().len(), usize::from(run.is_ok()));
    run.is_ok()
}

// Tower's contract: a slot that `poll_ready` took is held until the call, or until the service is dropped, and the
// worker of a buffer keeps its service. Layers that pass readiness on and do not call keep the slot meanwhile: tower's
// own `filter`, and `decide_fn`. Our async layers take it after they have decided.
#[tokio::test(start_paused = true)]
async fn below_a_buffer_a_layer_that_passes_readiness_on_keeps_the_slot_of_a_denied_call() {
    let filter = FilterLayer::new(|_: ToolCall| Err::<ToolCall, _>(Elapsed::new()));
    assert!(!leaves_the_slot(filter).await);
    assert!(!leaves_the_slot(decide_fn(by_name)).await);
    assert!(leaves_the_slot(decide_fn(by_name).into_layer()).await);
}

// --- people

// "No layer ever waits for a person" (`docs/ordering.md`).
#[tokio::test(start_paused = true)]
async fn no_layer_measures_the_person_who_is_asked() {
    let recorder = Recorder::new(["ask"]).taking(SECOND / 2);
    let stack = ServiceBuilder::new()
        .timeout(SECOND)
        .layer(decide_fn(by_name))
        .layer(Slow.deciding_within(SECOND).into_layer())
        .retry(Retries::of_failures(3))
        .timeout(SECOND);
    let person = handler_fn(async |_: RunContext, requests: countersign::DeferredToolRequests| {
        tokio::time::sleep(HOUR).await;
        requests.answer().approve_tool("ask").build()
    });
    let turn = Turn::new(recorder.clone().layered(stack)).deferred_tool_handler(person);
    let report = run_one(&turn, call("c1", "ask", json!({}))).await;
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test(start_paused = true)]
async fn no_limit_is_held_while_a_person_is_asked() {
    let recorder = Recorder::new(["ask", "allow"]);
    let slots = Arc::new(Semaphore::new(1));
    let stack = ServiceBuilder::new()
        .concurrency_limit(1)
        .layer(GlobalConcurrencyLimitLayer::with_semaphore(Arc::clone(&slots)))
        .layer(Slow.into_layer())
        .buffer::<ToolCall>(1)
        .layer(decide_fn(by_name))
        .concurrency_limit(1);
    let tools = recorder.clone().layered(stack);
    let person = handler_fn(async |_: RunContext, requests: countersign::DeferredToolRequests| {
        tokio::time::sleep(HOUR).await;
        requests.answer().approve_tool("ask").build()
    });
    let (asking, begin) = (Turn::new(tools.clone()).deferred_tool_handler(person), Instant::now());
    let other = async {
        tokio::time::sleep(SECOND).await;
        assert_eq!(slots.available_permits(), 1);
        run_one(&Turn::new(tools), call("c2", "allow", json!({}))).await;
        assert!(begin.elapsed() < 2 * SECOND, "waited for the person of another call");
    };
    let (report, ()) = tokio::join!(run_one(&asking, call("c1", "ask", json!({}))), other);
    assert_eq!(words(&report), ["returned"]);
    assert!(begin.elapsed() >= HOUR);
    assert_eq!(recorder.ids(), ["c1", "c2"]);
}

// --- limits that tower itself sets

// `load_shed` sheds only directly above the limit it guards: our async layers are always ready.
#[tokio::test(start_paused = true)]
async fn load_shed_sheds_only_directly_above_the_limit_it_guards() {
    let count = async |tools: Tools| {
        let report = Turn::new(tools).run(batch("a", 5)).await.unwrap();
        words(&report).into_iter().filter(|word| *word == "failed").count()
    };
    let recorder = || Recorder::new(["a"]).taking(SECOND);
    let direct = recorder();
    let stack = ServiceBuilder::new().load_shed().concurrency_limit(2);
    assert_eq!(count(direct.clone().layered(stack)).await, 3);
    assert_eq!(direct.ids().len(), 2);

    let ours = recorder();
    let stack = ServiceBuilder::new().load_shed().layer(Slow.into_layer()).concurrency_limit(2);
    assert_eq!(count(ours.clone().layered(stack)).await, 0);
    assert_eq!((ours.ids().len(), ours.peak()), (5, 2));

    // A `decide_fn` passes readiness on, so that it may be between.
    let sync = recorder();
    let stack = ServiceBuilder::new()
        .load_shed()
        .layer(decide_fn(|_, _| Decision::allow()))
        .concurrency_limit(2);
    assert_eq!(count(sync.clone().layered(stack)).await, 3);
    assert_eq!(sync.ids().len(), 2);
}

/// Says whether a type is `Clone`: the inherent constant, where it applies, hides the trait's.
struct IsClone<T>(PhantomData<T>);

trait Fallback {
    const YES: bool = false;
}

impl<T> Fallback for IsClone<T> {}

impl<T: Clone> IsClone<T> {
    const YES: bool = true;
}

#[derive(Clone)]
struct HedgeAll;

impl tower::hedge::Policy<ToolCall> for HedgeAll {
    fn clone_request(&self, call: &ToolCall) -> Option<ToolCall> {
        Some(call.clone())
    }

    fn can_retry(&self, _: &ToolCall) -> bool {
        true
    }
}

// If tower ever makes these `Clone`, the documentation of `layered` is to be changed.
#[test]
fn rate_limit_and_hedge_are_not_clone_and_a_buffer_around_them_is() {
    const {
        assert!(!IsClone::<RateLimit<Tools>>::YES);
        assert!(!IsClone::<Hedge<Tools, HedgeAll>>::YES);
        assert!(IsClone::<Buffer<ToolCall, <Tools as Service<ToolCall>>::Future>>::YES);
        assert!(IsClone::<ConcurrencyLimit<Tools>>::YES);
    }
}

// Hedge retries what happened before the body; the second attempt waits for the first one's body.
#[tokio::test(start_paused = true)]
async fn a_hedge_in_a_buffer_runs_the_body_once() {
    let recorder = Recorder::new(["allow", "ask", "deny"]).taking(SECOND);
    let hedged =
        |tools: Tools| Hedge::new_with_mock_latencies(tools, HedgeAll, 1, 0.9, HOUR, &[1, 1, 1, 1]);
    let stack = ServiceBuilder::new()
        .layer(decide_fn(|_, _| Decision::allow()))
        .buffer::<ToolCall>(8)
        .layer(layer_fn(hedged));
    let tools = recorder.clone().layered(decide_fn(by_name)).layered(stack);
    let turn = Turn::new(tools).deferred_tool_handler(danger_approve_all()).explain();
    let report = turn.run(calls()).await.unwrap();
    assert_eq!(words(&report), ["returned", "returned", "denied"]);
    assert_eq!(recorder.ids(), ["allow", "ask"]);
    assert!(report.calls()[0].said().len() > 2, "the hedged attempt went through the layers");
}

// `buffer` spawns when it is layered, which is at the first call; its worker dies with that runtime.
#[test]
fn the_worker_of_a_buffer_dies_with_the_runtime_that_ran_its_first_call() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let recorder = Recorder::new(["a"]);
    // Outside a runtime: layering it spawns nothing yet.
    let turn = Turn::new(recorder.clone().layered(BufferLayer::<ToolCall>::new(4)));
    let first = runtime();
    let report = first.block_on(run_one(&turn, call("c1", "a", json!({}))));
    assert_eq!(words(&report), ["returned"]);
    drop(first);
    let report = runtime().block_on(run_one(&turn, call("c2", "a", json!({}))));
    assert_eq!(words(&report), ["failed"]);
    assert_eq!(content(&report, 0), "The tool did not run: its queue is closed.");
    assert_eq!(recorder.ids(), ["c1"]);
}

// T6: a panic in `buffer`'s worker closes that buffer for all its calls, which fail as not started.
#[tokio::test]
async fn a_panic_in_the_worker_of_a_buffer_fails_its_calls_as_not_started() {
    let recorder = Recorder::new(["a", "b"]);
    let broken = |call: ToolCall| if call.name() == "b" { panic!("in the worker") } else { call };
    let stack = ServiceBuilder::new().buffer::<ToolCall>(4).map_request(broken);
    let turn = Turn::new(recorder.clone().layered(stack));
    let mut all = batch("b", 1);
    all.extend(batch("a", 2));
    let report = turn.run(all).await.unwrap();
    assert_eq!(words(&report), ["failed"; 3]);
    for at in 0..3 {
        assert!(content(&report, at).as_str().unwrap().starts_with("The tool did not run"));
    }
    assert!(recorder.ran().is_empty());
}

// The same panic without a buffer fails its own call only.
#[tokio::test]
async fn a_panic_in_a_layer_fails_its_own_call_only() {
    let recorder = Recorder::new(["a", "b"]);
    let broken = |call: ToolCall| if call.name() == "b" { panic!("in a layer") } else { call };
    let turn = Turn::new(recorder.clone().layered(MapRequestLayer::new(broken)));
    let report = turn.run([batch("a", 1), batch("b", 1)].concat()).await.unwrap();
    assert_eq!(words(&report), ["returned", "failed"]);
    assert_eq!(recorder.ids(), ["a-0"]);
}
