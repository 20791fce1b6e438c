//! The `testing` module, and every layer of ours against its readiness probe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use countersign::decision::ToolDecision;
use countersign::handler::danger_approve_all;
use countersign::middleware::{Chain, danger_first_decision_wins, when};
use countersign::testing::{ReadyProbe, ReadyProbeService, decide, decide_in, rewrites_once};
use countersign::{
    Args, BoxError, Decision, Outcome, RunContext, ToolCall, ToolMiddleware,
    ToolMiddlewareExt as _, Tools, ToolsExt as _, Turn, decide_fn, from_fn,
};
use serde_json::json;
use tower::layer::layer_fn;
use tower::{Layer, Service, ServiceBuilder};

use crate::support::{Recorder, by_name, call, words};

/// Decides by the tool's name, after a while.
struct Slow;

impl ToolMiddleware for Slow {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        tokio::task::yield_now().await;
        by_name(cx, call)
    }
}

/// Takes a batch through the layer over a probe: twice as many calls as there are tools, the asked ones approved.
async fn probed<L>(name: &str, layer: impl Fn() -> L)
where
    L: Layer<ReadyProbeService<Tools>> + Send + Sync + 'static,
    L::Service: Service<ToolCall, Response = Outcome> + Clone + Send + Sync + 'static,
    <L::Service as Service<ToolCall>>::Error: Into<BoxError>,
    <L::Service as Service<ToolCall>>::Future: Send + 'static,
{
    for probe in [ReadyProbe::new(), ReadyProbe::new().pending_first()] {
        let recorder = Recorder::new(["allow", "ask", "deny"]);
        let tools =
            recorder.clone().layered(ServiceBuilder::new().layer(layer()).layer(probe.clone()));
        let turn = Turn::new(tools).deferred_tool_handler(danger_approve_all());
        let calls = ["allow", "ask", "deny", "allow", "ask", "deny"].into_iter().enumerate();
        let calls = calls.map(|(at, tool)| call(&at.to_string(), tool, json!({}))).collect();
        let report = turn.run(calls).await.unwrap();
        let expected = ["returned", "returned", "denied", "returned", "returned", "denied"];
        assert_eq!(words(&report), expected, "{name}");
        assert_eq!(recorder.ids(), ["0", "1", "3", "4"], "{name}");
        // The asked ones came through twice: when they were asked about, and approved.
        assert_eq!(probe.check(), Ok(6), "{name}");
    }
}

// Our layers never call a service that was not polled.
#[tokio::test(start_paused = true)]
async fn every_layer_of_ours_asks_for_readiness() {
    probed("decide_fn", || decide_fn(by_name)).await;
    probed("from_fn", || from_fn(async |cx, call: ToolCall| by_name(&cx, &call))).await;
    probed("into_layer", || Slow.into_layer()).await;
    probed("decide_fn.into_layer", || decide_fn(by_name).into_layer()).await;
    probed("Chain", || Chain::new().with(Slow).with(decide_fn(by_name)).into_layer()).await;
    let both = || Chain::new().with(Slow).with(decide_fn(by_name)).parallel().into_layer();
    probed("Chain, parallel", both).await;
    let when_asked = |otherwise| when(|_, call| call.name() == "ask", Slow).otherwise(otherwise);
    probed("when", || when_asked(Slow.named("otherwise")).into_layer()).await;
    probed("for_tools", || Slow.for_tools(["ask", "deny"]).into_layer()).await;
    probed("deciding_within", || Slow.deciding_within(Duration::from_secs(1)).into_layer()).await;
    probed("named", || Slow.named("slow").into_layer()).await;
    probed("Option", || Some(Slow).into_layer()).await;
    let first = || danger_first_decision_wins().member("only", by_name).into_layer();
    probed("danger_first_decision_wins", first).await;
    let all = || {
        ServiceBuilder::new()
            .layer(decide_fn(by_name))
            .layer(Slow.into_layer())
            .layer(from_fn(async |cx, call: ToolCall| by_name(&cx, &call)))
            .layer(None::<Slow>.into_layer())
            .layer(().into_layer())
    };
    probed("several", all).await;
}

// The same for the layers that the wrappers are made of, and for `Tools` between the layers.
#[tokio::test]
async fn every_wrapper_of_ours_asks_for_readiness() {
    let probe = ReadyProbe::new().pending_first();
    let inside = Recorder::new(["a"]).layered(probe.clone());
    let tools = Tools::combined([inside.approval_required().prefixed("p")])
        .layered(probe.clone())
        .approval_required_if(|_, _| true)
        .layered(probe.clone())
        .approval_required_if_async(async |_, _| true)
        .renamed([("z", "p_a")])
        .filtered(|_, _| true)
        .layered(probe.clone());
    let turn = Turn::new(tools).deferred_tool_handler(danger_approve_all());
    let report = turn.run(vec![call("c1", "z", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(probe.check(), Ok(8), "four probes, two passes");
}

/// The classic mistake: calls a clone that was not polled.
#[derive(Clone)]
struct CallsAClone<S>(S);

impl<S: Service<ToolCall> + Clone> Service<ToolCall> for CallsAClone<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> S::Future {
        self.0.clone().call(call)
    }
}

/// Polls, and does not look at the answer.
#[derive(Clone)]
struct DoesNotWait<S>(S);

impl<S: Service<ToolCall> + Clone> Service<ToolCall> for DoesNotWait<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        let _ = self.0.poll_ready(cx)?;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> S::Future {
        self.0.call(call)
    }
}

// T6: the panic fails its own call; the probe still tells.
#[tokio::test]
async fn the_probe_finds_a_layer_that_calls_an_unpolled_service() {
    let probe = ReadyProbe::new();
    let recorder = Recorder::new(["a"]);
    let tools = recorder.clone().layered(probe.clone()).layered(layer_fn(CallsAClone));
    assert_eq!(probe.check(), Ok(0));
    // `Tools` is always ready, and asks its layers itself: put the probe into one stack with the layer under test.
    let report = Turn::new(tools).run(vec![call("c1", "a", json!({}))]).await.unwrap();
    assert_eq!((words(&report), probe.check()), (vec!["returned"], Ok(1)));

    let stack = ServiceBuilder::new().layer(layer_fn(CallsAClone)).layer(probe.clone());
    let tools = recorder.clone().layered(stack);
    let report = Turn::new(tools).run(vec![call("c2", "a", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["failed"]);
    assert_eq!(probe.check(), Err("1 calls came without `poll_ready`".into()));
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn the_probe_finds_a_layer_that_polls_and_does_not_wait() {
    for (probe, found) in [(ReadyProbe::new(), false), (ReadyProbe::new().pending_first(), true)] {
        let stack = ServiceBuilder::new().layer(layer_fn(DoesNotWait)).layer(probe.clone());
        let turn = Turn::new(Recorder::new(["a"]).layered(stack));
        turn.run(vec![call("c1", "a", json!({}))]).await.unwrap();
        assert_eq!(probe.check().is_err(), found);
    }
}

#[tokio::test]
async fn a_clone_of_a_ready_service_is_unready_again() {
    let echo = tower::service_fn(|n: u32| std::future::ready(Ok::<_, BoxError>(n)));
    let mut service = ReadyProbe::new().layer(echo);
    std::future::poll_fn(|cx| Service::<u32>::poll_ready(&mut service, cx)).await.unwrap();
    let mut clone = service.clone();
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(clone.call(1)))).is_err()
    );
    assert_eq!(service.call(2).await.unwrap(), 2);
    // Readiness is for one call.
    assert!(
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(service.call(3)))).is_err()
    );
}

// --- rewrites_once

fn path(call: &ToolCall) -> &str {
    call.args().str("path").unwrap_or_default()
}

fn moved(_: &RunContext, call: &ToolCall) -> Args {
    call.args().clone().with("path", format!("box/{}", path(call)))
}

#[tokio::test]
async fn rewrites_once_accepts_middleware_that_leaves_its_own_result_unchanged() {
    let read = call("c1", "read", json!({"path": "a"}));
    let settles = from_fn(async |cx, call: ToolCall| {
        if path(&call).starts_with("box/") { Decision::allow() } else { moved(&cx, &call).into() }
    });
    assert_eq!(rewrites_once(&settles, &RunContext::default(), &read).await, Ok(()));
    assert_eq!(
        rewrites_once(&decide_fn(by_name), &RunContext::default(), &call("c1", "ask", json!({})))
            .await,
        Ok(())
    );
    assert_eq!(
        rewrites_once(&decide_fn(by_name), &RunContext::default(), &call("c1", "deny", json!({})))
            .await,
        Ok(())
    );
    assert_eq!(rewrites_once(&(), &RunContext::default(), &read).await, Ok(()));
    // A reason that changes under a stable key is the same question (A1).
    let count = AtomicUsize::new(0);
    let asks = decide_fn(move |_, _| {
        Decision::ask(count.fetch_add(1, Ordering::Relaxed).to_string()).with_key("count")
    });
    assert_eq!(rewrites_once(&asks, &RunContext::default(), &read).await, Ok(()));
}

// D3: f(f(x)) = f(x), and the same answer for the same call.
#[tokio::test]
async fn rewrites_once_says_what_is_wrong() {
    let read = call("c1", "read", json!({"path": "a"}));
    let nests = decide_fn(moved).named("nests");
    let expected = r#"`nests` changes its own result: {"path":"a"} becomes {"path":"box/a"}, and then {"path":"box/box/a"}"#;
    assert_eq!(rewrites_once(&nests, &RunContext::default(), &read).await, Err(expected.into()));

    let count = AtomicUsize::new(0);
    let counts = decide_fn(move |_, call: &ToolCall| {
        call.args().clone().with("n", count.fetch_add(1, Ordering::Relaxed))
    });
    let text =
        rewrites_once(&counts.named("counts"), &RunContext::default(), &read).await.unwrap_err();
    assert!(text.contains("`counts` is not deterministic") && text.contains(r#""n":1"#), "{text}");

    let wavers = AtomicUsize::new(0);
    let wavers = decide_fn(move |_, _| match wavers.fetch_add(1, Ordering::Relaxed) {
        0 => Decision::allow(),
        _ => Decision::ask("now?"),
    });
    let text = rewrites_once(&wavers, &RunContext::default(), &read).await.unwrap_err();
    assert!(text.contains("says ALLOW") && text.contains("ASK (now?)"), "{text}");

    let refuses = decide_fn(|cx, call: &ToolCall| match path(call) {
        "a" => Decision::from(moved(cx, call)),
        _ => Decision::deny("outside"),
    });
    let text = rewrites_once(&refuses, &RunContext::default(), &read).await.unwrap_err();
    assert!(text.contains("and then denies it"), "{text}");

    let panics = decide_fn(|_, call: &ToolCall| -> Decision { panic!("{}", path(call)) });
    let text = rewrites_once(&panics, &RunContext::default(), &read).await.unwrap_err();
    assert!(text.contains("panicked"), "{text}");
}

/// Two layers with names of their own, around a tool that counts its runs.
fn two_layers(recorder: &Recorder) -> Tools {
    let outer = decide_fn(|_, call: &ToolCall| match call.args()["n"].as_i64() {
        Some(1 | 3) => Decision::ask("outer asks"),
        _ => Decision::allow(),
    });
    let inner = decide_fn(|_, call: &ToolCall| match call.args()["n"].as_i64() {
        Some(2 | 3) => {
            Decision::ask("inner asks").with_args(call.args().clone().with("seen", true))
        }
        Some(4) => Decision::deny("inner denies"),
        _ => Decision::allow(),
    });
    recorder.clone().layered(inner.named("inner")).layered(outer.named("outer"))
}

#[tokio::test]
async fn a_decision_names_the_layers_and_the_tool_never_runs() {
    let recorder = Recorder::new(["t"]);
    let tools = two_layers(&recorder);
    let text = async |n: u32| decide(&tools, call("c1", "t", json!({"n": n}))).await.unwrap();
    assert_eq!(text(0).await.to_string(), "ALLOW");
    assert_eq!(text(1).await.to_string(), "ASK by outer: outer asks");
    assert_eq!(text(2).await.to_string(), "ASK by inner: inner asks");
    assert_eq!(text(2).await.args()["seen"], true);
    assert_eq!(text(3).await.by(), ["outer", "inner"]);
    assert_eq!(text(3).await.questions().len(), 2);
    assert_eq!(text(4).await.to_string(), "DENY by inner: inner denies");
    let said = text(0).await.said().iter().map(|said| said.layer.clone()).collect::<Vec<_>>();
    assert_eq!(said, ["outer", "inner"]);
    assert_eq!(recorder.ids(), [] as [&str; 0], "the tool ran");
}

#[tokio::test]
async fn an_approval_that_a_tool_declares_is_an_ask_of_the_tool() {
    let tools = Recorder::new(["t"]).approval_required();
    let said = decide(&tools, call("c1", "t", json!({}))).await.unwrap();
    assert_eq!((said.decision(), said.by()), (ToolDecision::Ask, vec!["approval_required"]));
}

#[tokio::test]
async fn a_call_that_reaches_no_layer_is_an_error_and_no_allow() {
    let tools = two_layers(&Recorder::new(["t"]));
    let error = decide(&tools, call("c1", "no_such_tool", json!({}))).await.unwrap_err();
    assert!(error.contains("no_such_tool"), "{error}");
}

#[tokio::test]
async fn a_decision_is_made_with_the_dependencies_of_a_turn() {
    struct Freeze;
    let freeze = decide_fn(|_, call: &ToolCall| match call.context().deps::<Freeze>() {
        Ok(Freeze) => Decision::deny("freeze"),
        Err(_) => Decision::allow(),
    });
    let tools = Recorder::new(["t"]).layered(freeze.named("freeze"));
    let deploy = || call("c1", "t", json!({}));
    assert_eq!(decide(&tools, deploy()).await.unwrap().to_string(), "ALLOW");
    let frozen = decide_in(&tools, deploy(), |turn| turn.deps(Freeze)).await.unwrap();
    assert_eq!(frozen.to_string(), "DENY by freeze: freeze");
}
