//! Rule D9, "no layer is skipped": which ways to a gate are refused, and which keep working.

use std::sync::{Arc, Mutex, OnceLock};

use countersign::call::Execution;
use countersign::handler::danger_approve_all;
use countersign::outcome::ToolReturn;
use countersign::turn::TurnError;
use countersign::{
    BoxError, Decision, Error, Outcome, Permit, RunContext, ToolCall, ToolDefinition, ToolError,
    ToolMiddleware, ToolMiddlewareExt as _, Tools, ToolsExt as _, Toolset, Turn, UserError,
    decide_fn, from_fn,
};
use futures::FutureExt as _;
use serde_json::json;
use tokio::sync::{Notify, oneshot};
use tower::buffer::BufferLayer;
use tower::layer::layer_fn;
use tower::retry::RetryLayer;
use tower::steer::Steer;
use tower::util::{BoxCloneSyncService, MapRequestLayer};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _};

use crate::support::{Inside, Recorder, Retries, call, content, relay, words};

fn refund(id: &str) -> ToolCall {
    call(id, "refund", json!({"amount": 9}))
}

/// Denies refunds.
fn never(_: &RunContext, call: &ToolCall) -> Decision {
    if call.name() == "refund" { Decision::deny("never") } else { Decision::allow() }
}

fn recorder() -> Recorder {
    Recorder::new(["refund", "list"])
}

/// The middleware that the host is told was skipped.
fn skipped(error: &TurnError) -> (&str, &str, &str) {
    match error.error() {
        Error::User(UserError::LayerSkipped { id, tool, layer }) => (id, tool, layer),
        other => panic!("no layer was skipped: {other:?}"),
    }
}

/// What is refused is an error for the host, which names the call, its tool and the layer, and the report says that
/// nothing ran.
async fn is_refused(turn: &Turn, recorder: &Recorder, layer: &str) {
    let error = turn.run(vec![refund("b")]).await.unwrap_err();
    assert_eq!(skipped(&error), ("b", "refund", layer));
    assert_eq!(recorder.ids(), [""; 0], "D9: nothing runs");
    let report = &error.report().calls()[0];
    assert_eq!(report.execution(), &Execution::NotStarted);
    assert_eq!(words(error.report()), ["failed"]);
    assert_eq!(content(error.report(), 0), "The tool did not run: an error stopped it.");
}

// --- ways that are refused

// D9: "a layer that kept a clone of inner `Tools`".
#[tokio::test]
async fn a_layer_cannot_skip_middleware_by_captured_tools() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let captured = inner.clone();
    let tools = inner
        .layered(decide_fn(never).named("never"))
        .layered(relay(move |call, _| captured.clone().oneshot(call)));
    is_refused(&Turn::new(tools), &recorder, "never").await;
}

// The error says what went wrong, on which call, and what to do.
#[tokio::test]
async fn the_error_names_call_tool_and_layer_and_says_what_to_do() {
    let inner = Tools::from(recorder());
    let captured = inner.clone();
    let tools = inner
        .prefixed("shop")
        .layered(decide_fn(never).named("never"))
        .layered(relay(move |call, _| captured.clone().oneshot(call)));
    // Under another name the captured tools do not know the call: as before, the gate refuses it.
    let turn = Turn::new(tools);
    let report = turn.run(vec![call("b", "shop_refund", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["denied"]);

    let error = UserError::LayerSkipped { id: "b".into(), tool: "r".into(), layer: "never".into() };
    assert_eq!(
        error.to_string(),
        "call `b` of tool `r` did not pass the layer `never`, and nothing was run: a layer sends a call inward only by \
         the service it wraps; one that chooses between several builds each of them from that service, with \
         `inner.clone().layered(…)`"
    );
    assert_eq!(error.ids(), ["b"]);
}

// D9: the outermost layer that was skipped is named, over several levels, whether or not they were ever applied.
#[tokio::test]
async fn the_outermost_skipped_middleware_is_named() {
    for (captured_at, expected) in [(0, "b"), (1, "b"), (2, "b")] {
        let recorder = recorder();
        let gate = Tools::from(recorder.clone());
        let empty = gate.clone().layered(tower::layer::util::Identity::new());
        let one = empty.clone().layered(decide_fn(|_, _| Decision::allow()).named("a"));
        let captured = [gate, empty, one.clone()][captured_at].clone();
        let two = ServiceBuilder::new()
            .layer(decide_fn(|_, _| Decision::allow()).named("b"))
            .layer(from_fn(async |_, _| Decision::allow()).named("c"));
        let route = relay(move |call, _| captured.clone().oneshot(call));
        is_refused(&Turn::new(one.layered(two).layered(route)), &recorder, expected).await;
    }
}

// D9, in the middle of one level: what is outside of the layer has been passed, what is inside has not.
#[tokio::test]
async fn within_one_level_the_first_skipped_middleware_is_named() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let captured = inner.clone();
    let tools = inner.layered(
        ServiceBuilder::new()
            .layer(decide_fn(|_, _| Decision::allow()).named("outside"))
            .layer(relay(move |call, _| captured.clone().oneshot(call)))
            .layer(decide_fn(never).named("inside")),
    );
    is_refused(&Turn::new(tools), &recorder, "inside").await;
}

// D9: a dry run or a prefetch; that the layer swallows the error and then sends the call properly changes nothing.
#[tokio::test]
async fn a_call_that_skipped_a_layer_once_does_not_run_by_the_proper_way() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let captured = inner.clone();
    let dry_run = relay(move |call: ToolCall, inside: Inside| {
        let captured = captured.clone();
        async move {
            assert!(captured.oneshot(call.clone()).await.is_err());
            inside.oneshot(call).await
        }
    });
    let tools = inner.approval_required().layered(dry_run);
    is_refused(
        &Turn::new(tools.clone()).deferred_tool_handler(danger_approve_all()),
        &recorder,
        "approval_required",
    )
    .await;
    // The host's own mapping of errors is for those of calls, not for this one.
    let hushed = Turn::new(tools).error_outcome(|_, _, _| Some(Outcome::failed("hushed")));
    is_refused(&hushed, &recorder, "approval_required").await;
}

// D9: the report says what happened: a call that has returned before an attempt skipped a layer has run.
#[tokio::test]
async fn a_call_that_ran_before_an_attempt_skipped_a_layer_has_not_failed() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let captured = inner.clone();
    let again = relay(move |call: ToolCall, inside: Inside| {
        let captured = captured.clone();
        async move {
            let outcome = inside.oneshot(call.clone()).await;
            assert!(captured.oneshot(call).await.is_err());
            outcome
        }
    });
    let tools = inner.layered(decide_fn(|_, _| Decision::allow()).named("watches")).layered(again);
    let error = Turn::new(tools).run(vec![refund("b")]).await.unwrap_err();
    assert_eq!(skipped(&error), ("b", "refund", "watches"));
    assert_eq!(recorder.ids(), ["b"]);
    assert_eq!(
        content(error.report(), 0),
        "The tool ran. Its result is withheld: an error ended the response."
    );
}

/// Calls the tools from its hook.
struct Prefetch(Tools);

impl ToolMiddleware for Prefetch {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        "prefetch".into()
    }

    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        let _ = self.0.clone().oneshot(call.clone()).await;
        Decision::allow()
    }
}

// D9: "a hook that calls the tools itself"; it has not decided itself yet, so that it is the layer that was skipped.
#[tokio::test]
async fn a_hook_that_calls_the_tools_runs_nothing() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let hook = Prefetch(inner.clone()).into_layer();
    is_refused(&Turn::new(inner.clone().layered(hook)), &recorder, "prefetch").await;
    let captured = inner.clone();
    let hook = decide_fn(move |_, call: &ToolCall| {
        let sent = captured.clone().oneshot(call.clone()).now_or_never();
        assert!(sent.unwrap().is_err());
        Decision::allow()
    });
    is_refused(&Turn::new(inner.layered(hook.named("hook"))), &recorder, "hook").await;
}

/// Two layers, one on each side of a level: the outer one keeps `refund` back, and the inner one sends it in the pass of
/// `list`.
fn smuggled(tools: Tools, level: fn(Tools) -> Tools) -> Tools {
    let kept: Arc<Mutex<Option<ToolCall>>> = Arc::default();
    let sent = Arc::new(Notify::new());
    let (keep, wait) = (Arc::clone(&kept), Arc::clone(&sent));
    let outer = relay(move |call: ToolCall, inside: Inside| {
        let (keep, wait) = (Arc::clone(&keep), Arc::clone(&wait));
        async move {
            if call.name() != "refund" {
                return inside.oneshot(call).await;
            }
            keep.lock().unwrap().replace(call);
            wait.notified().await;
            Ok(Outcome::failed("kept back"))
        }
    });
    let inner = relay(move |call: ToolCall, inside: Inside| {
        let kept = kept.lock().unwrap().take();
        let sent = Arc::clone(&sent);
        async move {
            let result = inside.oneshot(kept.unwrap_or(call)).await;
            sent.notify_one();
            result
        }
    });
    level(tools.layered(inner)).layered(outer)
}

// D9: "one that forwards another call's clone". The call in whose pass it was sent fails by itself.
#[tokio::test]
async fn a_call_that_is_sent_in_the_pass_of_another_does_not_run() {
    let levels: [fn(Tools) -> Tools; 2] = [
        |tools| tools.layered(decide_fn(never).named("never")),
        |tools| tools.layered(from_fn(async |cx, call: ToolCall| never(&cx, &call)).named("never")),
    ];
    for level in levels {
        let recorder = recorder();
        let tools = smuggled(recorder.clone().into(), level);
        let batch = vec![refund("b"), call("a", "list", json!({}))];
        let error = Turn::new(tools).run(batch).await.unwrap_err();
        assert_eq!(skipped(&error), ("b", "refund", "never"));
        assert_eq!(recorder.ids(), [""; 0]);
        assert_eq!(words(error.report()), ["failed", "failed"]);
        assert_eq!(
            content(error.report(), 1),
            "The tool did not run: a layer sent another call in its place."
        );
    }
}

// D9: alternatives that one layer makes of middleware cannot be told from a chain, and are refused.
#[tokio::test]
async fn middleware_as_alternatives_within_one_layer_is_refused_and_as_tools_of_their_own_is_not() {
    let strict = || decide_fn(|_, _| Decision::ask("strict?")).named("strict");
    let lax = || decide_fn(|_, _| Decision::allow()).named("lax");
    let pick = |call: &ToolCall, _: &[Boxed]| usize::from(call.name() == "list");

    let recorder = recorder();
    let alternatives = layer_fn(move |inner: Tools| {
        let strict = Boxed::new(strict().layer(inner.clone()));
        Steer::new([strict, Boxed::new(lax().layer(inner))], pick)
    });
    is_refused(&Turn::new(recorder.clone().layered(alternatives)), &recorder, "lax").await;

    let of_their_own = layer_fn(move |inner: Tools| {
        let strict = Boxed::new(inner.clone().layered(strict()));
        Steer::new([strict, Boxed::new(inner.layered(lax()))], pick)
    });
    let tools = recorder.clone().layered(decide_fn(|_, _| Decision::allow())).layered(of_their_own);
    let report = Turn::new(tools).run(vec![refund("b"), call("a", "list", json!({}))]).await;
    assert_eq!(words(&report.unwrap()), ["deferred", "returned"]);
    assert_eq!(recorder.ids(), ["a"]);
}

// --- ways that keep working

type Boxed = BoxCloneSyncService<ToolCall, Outcome, BoxError>;

fn allow(
    name: &'static str,
) -> countersign::middleware::DecideFn<impl Fn(&RunContext, &ToolCall) -> Decision + Clone> {
    decide_fn(|_, _| Decision::allow()).named(name)
}

async fn runs(what: &str, tools: Tools, recorder: &Recorder) {
    let turn = Turn::new(tools);
    for id in ["b", "c"] {
        let report = turn.run(vec![refund(id)]).await;
        assert_eq!(words(&report.unwrap()), ["returned"], "{what}");
    }
    assert_eq!(recorder.ids(), ["b", "c"], "{what}");
}

// D9: "a router over several `Tools` keeps working: only layers on the path of that call are demanded".
#[tokio::test]
async fn only_the_layers_on_the_path_of_a_call_are_required() {
    let recorder = recorder();
    let one = Tools::from(recorder.clone()).filtered(|_, it| it.name() == "refund");
    let other = Recorder::new(["list"]).id("other").layered(decide_fn(|_, _| Decision::deny("no")));
    let tools = Tools::combined([one.layered(allow("one")), other]).layered(allow("all"));
    runs("combined sets", tools, &recorder).await;

    let recorder = self::recorder();
    let set = Tools::from(recorder.clone());
    let views = [
        set.clone().filtered(|_, it| it.name() == "refund").layered(allow("refunds")),
        set.filtered(|_, it| it.name() == "list").layered(decide_fn(|_, _| Decision::deny("no"))),
    ];
    runs("views of one set", Tools::combined(views), &recorder).await;

    let recorder = self::recorder();
    let inner = Tools::from(recorder.clone()).layered(allow("inner"));
    let fast = inner.clone();
    let tools = inner
        .layered(tower::timeout::TimeoutLayer::new(std::time::Duration::from_secs(60)))
        .layered(relay(move |call, _| fast.clone().oneshot(call)));
    runs("round a level without middleware", tools, &recorder).await;
}

// D9 is about layers that were skipped, not about how often or where from they were passed.
#[tokio::test]
async fn layers_that_repeat_move_or_change_a_call_that_was_given_to_them_skip_nothing() {
    let between = |what: &'static str, layer: fn(Tools) -> Tools| async move {
        let recorder = recorder();
        let tools = Tools::from(recorder.clone()).layered(allow("in")).layered(allow("inner"));
        let tools = layer(tools).layered(ServiceBuilder::new().layer(allow("a")).layer(allow("b")));
        runs(what, tools, &recorder).await;
    };
    between("retry", |tools| tools.layered(RetryLayer::new(Retries::always(2)))).await;
    between("buffer", |tools| tools.layered(BufferLayer::<ToolCall>::new(4))).await;
    between("map_request", |tools| tools.layered(MapRequestLayer::new(|call: ToolCall| call)))
        .await;
    between("names and definitions", |tools| {
        tools
            .prefixed("x")
            .renamed([("refund", "x_refund"), ("list", "x_list")])
            .prepared(|_, tools| tools)
            .with_metadata(|_, _| true, "k", "v")
    })
    .await;
    between("twice at once", |tools| {
        tools.layered(relay(async |call: ToolCall, inside: Inside| {
            let both = [call.clone(), call].map(|call| inside.clone().oneshot(call));
            futures::future::join_all(both).await.remove(0)
        }))
    })
    .await;
    between("on another task", |tools| {
        tools.layered(relay(async |call: ToolCall, inside: Inside| {
            tokio::spawn(inside.oneshot(call)).await?
        }))
    })
    .await;
    between("a service that was made and thrown away", |tools| {
        tools.layered(layer_fn(|inner: Tools| {
            drop(decide_fn(|_, _| Decision::deny("never applied")).layer(inner.clone()));
            inner
        }))
    })
    .await;
}

// D9 and D3: the second pass goes through every layer anew.
#[tokio::test]
async fn a_repeated_pass_goes_through_every_layer_again() {
    let recorder = recorder();
    let rewrite = decide_fn(|_, call: &ToolCall| {
        Decision::allow().with_args(call.args().clone().with("amount", 1))
    });
    let tools = recorder.clone().layered(rewrite.named("rewrite")).layered(allow("outside"));
    runs("a rewrite", tools, &recorder).await;
}

/// What `docs/ordering.md` says is not seen: middleware that was applied by hand, outside of `layered`.
#[tokio::test]
async fn middleware_applied_outside_of_layered_is_not_required() {
    let recorder = recorder();
    let inner = Tools::from(recorder.clone());
    let by_hand = decide_fn(|_, _| Decision::allow()).layer(inner.clone());
    let tools = inner.layered(relay(move |call, _| by_hand.clone().oneshot(call)));
    runs("by hand", tools, &recorder).await;
}

// --- calls that are exchanged, replayed, or sent by their own body

/// Exchanges two calls: each is sent in the pass of the other.
fn exchange(tools: Tools) -> Tools {
    type Waiting = (ToolCall, oneshot::Sender<ToolCall>);
    let first: Arc<Mutex<Option<Waiting>>> = Arc::default();
    tools.layered(relay(move |call: ToolCall, inside: Inside| {
        let (sender, receiver) = oneshot::channel();
        let mut first = first.lock().unwrap();
        match first.take() {
            None => drop(first.replace((call, sender))),
            Some((other, wants)) => {
                wants.send(call).unwrap();
                sender.send(other).unwrap();
            }
        }
        async move { inside.oneshot(receiver.await?).await }
    }))
}

// The report has the outcome of each call, and not the result that its pass returned.
#[tokio::test]
async fn the_report_is_right_about_two_calls_that_a_layer_exchanged() {
    let asks = |_: &RunContext, call: &ToolCall| match call.name() {
        "refund" => Decision::ask("refund?"),
        _ => Decision::allow(),
    };
    for asked_inside in [true, false] {
        let recorder = recorder();
        let tools = Tools::from(recorder.clone());
        let turn = Turn::new(match asked_inside {
            true => exchange(tools.layered(decide_fn(asks))),
            false => exchange(tools).layered(decide_fn(asks)),
        });
        let report = turn.run(vec![call("a", "list", json!({})), refund("b")]).await.unwrap();
        assert_eq!(words(&report), ["returned", "deferred"]);
        assert!(matches!(report.calls()[0].execution(), Execution::Finished(_)));
        assert_eq!(recorder.ids(), ["a"]);
    }
}

// T6: "a late or detached attempt runs nothing". The call in whose place it was sent fails by itself.
#[tokio::test]
async fn replaying_a_call_of_an_earlier_turn_fails_the_call_that_it_replaces() {
    let recorder = recorder();
    let earlier: Arc<OnceLock<ToolCall>> = Arc::default();
    let replay = relay(move |call: ToolCall, inside: Inside| match call.name() {
        "refund" => inside.oneshot(earlier.get_or_init(|| call).clone()),
        _ => inside.oneshot(call),
    });
    let turn = Turn::new(recorder.clone().layered(replay));
    assert_eq!(words(&turn.run(vec![refund("x")]).await.unwrap()), ["returned"]);
    let report = turn.run(vec![refund("y"), call("z", "list", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["failed", "returned"]);
    let text = "The tool did not run: a layer sent another call in its place.";
    assert_eq!(content(&report, 0), text);
    assert_eq!(report.calls()[0].execution(), &Execution::NotStarted);
    assert_eq!(recorder.ids(), ["x", "z"]);
}

/// A tool that sends its own call into the stack around it, or into itself.
#[derive(Clone, Default)]
struct Recursive(Arc<OnceLock<Tools>>);

impl Toolset for Recursive {
    fn id(&self) -> &str {
        "recursive"
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Ok(vec![ToolDefinition::new("again", json!({"type": "object"}))])
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        let call = permit.call().clone();
        assert_eq!(call.context().tool_call_id(), Some("a"), "it is still known whose call it is");
        let tools = self.0.get().expect("the stack is known").clone();
        let sent = tools.oneshot(call.with_args(json!({"n": 1}).as_object().unwrap().clone()));
        Ok(ToolReturn::new(sent.await.unwrap_err().to_string()))
    }
}

// A body that sends its own call would wait for its own end, and in a limit for its own slot: it is told instead.
#[tokio::test]
async fn a_body_that_sends_its_own_call_gets_an_error_at_once() {
    let recursive = Recursive::default();
    let inner = Tools::from(recursive.clone());
    let limited = inner.clone().layered(
        ServiceBuilder::new().layer(allow("outside")).concurrency_limit(1).layer(allow("inside")),
    );
    for into in [inner, limited.clone()] {
        let recursive = Recursive(Arc::new(OnceLock::from(into)));
        let turn = Turn::new(recursive.layered(allow("outside")));
        let report = turn.run(vec![call("a", "again", json!({}))]).await.unwrap();
        let text = content(&report, 0);
        assert!(
            text.as_str().unwrap().starts_with(
                "the body of tool `again` sent its own call `a` into a stack: a call runs once"
            ),
            "{text}"
        );
    }
    recursive.0.set(limited.clone()).unwrap_or_else(|_| panic!("it is set once"));
    let report = Turn::new(limited).run(vec![call("a", "again", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["returned"], "no deadlock");
}
