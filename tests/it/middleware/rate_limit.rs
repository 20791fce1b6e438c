//! Counting calls: the repeats of rule D3, and the limit for each tool.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::handler::danger_approve_all;
use countersign::middleware::{Chain, ToolRateLimit};
use countersign::{
    Decision, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt, Tools, ToolsExt, Turn,
    decide_fn,
};
use proptest::prelude::*;
use serde_json::json;
use tower::retry::RetryLayer;

use crate::support::{Recorder, Retries, call, content, stored, words};

/// Records at each decision whether it is a repeat, by the context and by the call.
#[derive(Clone, Default)]
struct Repeats(Arc<Mutex<Vec<(bool, bool)>>>);

impl ToolMiddleware for Repeats {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.lock().unwrap().push((cx.is_repeat(), call.context().is_repeat()));
        Decision::allow()
    }
}

impl Repeats {
    fn take(&self) -> Vec<(bool, bool)> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Changes the arguments, once.
struct Audit;

impl ToolMiddleware for Audit {
    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        call.args().clone().with("audit", true).into()
    }
}

#[tokio::test]
async fn a_middleware_knows_whether_it_has_decided_the_call_before() {
    // D3: `RunContext::is_repeat` tells a middleware that it has decided the call before.
    let (new, repeat) = ((false, false), (true, true));
    let seen = Repeats::default();
    let once = |tools: Tools| async move {
        Turn::new(tools).run(vec![call("c1", "read", json!({}))]).await
    };

    once(Recorder::new(["read"]).layered(seen.clone().into_layer())).await.unwrap();
    assert_eq!(seen.take(), [new]);
    let inside = Recorder::new(["read"]).layered(Audit.into_layer());
    once(inside.layered(seen.clone().into_layer())).await.unwrap();
    assert_eq!(seen.take(), [new, repeat], "a layer inside has changed the arguments");
    let chain = Chain::new().with(seen.clone()).with(Audit);
    once(Recorder::new(["read"]).layered(chain)).await.unwrap();
    assert_eq!(seen.take(), [new, repeat], "a member of the chain has changed the arguments");
    let outside = Recorder::new(["read"]).layered(seen.clone().into_layer());
    once(outside.layered(Audit.into_layer())).await.unwrap();
    assert_eq!(seen.take(), [new], "a layer outside changes nothing that was decided here");

    let asks = Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::ask("sure?")));
    let turn = Turn::new(asks.layered(seen.clone().into_layer()));
    let waits = turn.run(vec![call("c1", "read", json!({}))]).await.unwrap();
    assert_eq!(seen.take(), [new]);
    let waits = stored(&waits.into_suspended().unwrap());
    let answers = waits.requests().answer().approve("c1").build().unwrap();
    assert_eq!(words(&turn.resume(waits, answers).await.unwrap()), ["returned"]);
    assert_eq!(seen.take(), [repeat], "also in another process");
}

#[tokio::test]
async fn a_retry_of_a_layer_outside_is_a_repeat_only_on_the_approved_pass() {
    // D3, as `RunContext::is_repeat` says of retries outside of a middleware.
    let (new, repeat) = ((false, false), (true, true));
    let seen = Repeats::default();
    let twice = || RetryLayer::new(Retries::always(1));
    let asks = Recorder::new(["read"])
        .layered(decide_fn(|_, _| Decision::ask("sure?")))
        .layered(seen.clone().into_layer())
        .layered(twice());
    let turn = Turn::new(asks).deferred_tool_handler(danger_approve_all());
    turn.run(vec![call("c1", "read", json!({}))]).await.unwrap();
    assert_eq!(seen.take(), [new, new, repeat, repeat], "twice on each pass");

    let inside = Recorder::new(["read"]).layered(Audit.into_layer());
    let turn = Turn::new(inside.layered(seen.clone().into_layer()).layered(twice()));
    turn.run(vec![call("c1", "read", json!({}))]).await.unwrap();
    assert_eq!(seen.take(), [new, new, repeat, repeat], "twice on each pass");

    let late = Turn::new(Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::ask("sure?"))));
    let waits =
        late.run(vec![call("c1", "read", json!({}))]).await.unwrap().into_suspended().unwrap();
    let answers = waits.requests().answer().approve("c1").build().unwrap();
    let now = Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::ask("sure?")));
    let turn = Turn::new(now.layered(seen.clone().into_layer()));
    turn.resume(waits, answers).await.unwrap();
    assert_eq!(seen.take(), [repeat], "it goes by the call: this layer is new");
}

#[tokio::test(start_paused = true)]
async fn each_tool_has_a_limit_of_its_own_and_the_model_is_told_when_to_try_again() {
    let limit = ToolRateLimit::new(2, Duration::from_secs(60));
    let turn = Turn::new(Recorder::new(["read", "write"]).layered(limit));
    let run = async |names: &[&str]| {
        let calls = names.iter().enumerate();
        let calls = calls.map(|(n, name)| call(&format!("c{n}"), name, json!({}))).collect();
        turn.run(calls).await.unwrap()
    };
    assert_eq!(words(&run(&["read"]).await), ["returned"]);
    tokio::time::advance(Duration::from_millis(20_500)).await;
    let report = run(&["read", "read", "write"]).await;
    assert_eq!(words(&report), ["returned", "denied", "returned"]);
    let told = "Not executed: `read` may be called 2 times in 60s. Try again in 40 s.";
    assert_eq!(content(&report, 1), told);
    assert_eq!(report.calls()[1].denied_by(), Some("ToolRateLimit"));
    tokio::time::advance(Duration::from_secs(39)).await;
    assert_eq!(words(&run(&["read"]).await), ["denied"], "what is denied does not count");
    tokio::time::advance(Duration::from_secs(1)).await;
    let report = run(&["read", "read"]).await;
    assert_eq!(words(&report), ["returned", "denied"], "one of the two calls is 60 s old");

    let never = ToolRateLimit::new(0, Duration::from_secs(60));
    let turn = Turn::new(Recorder::new(["read"]).layered(never));
    let report = turn.run(vec![call("c1", "read", json!({}))]).await.unwrap();
    assert_eq!(content(&report, 0), "Not executed: `read` may not be called.");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    // D3: `ToolRateLimit` counts each call once, however often it is decided.
    #[test]
    fn no_call_is_counted_twice(
        max in 0..6_usize,
        calls in 1..8_usize,
        rewrites: bool,
        asks: bool,
        chained: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let limit = ToolRateLimit::new(u32::try_from(max).unwrap(), Duration::from_secs(3600));
        let audit = rewrites.then_some(Audit);
        let ask = asks.then(|| decide_fn(|_, _| Decision::ask("sure?")));
        let recorder = Recorder::new(["read"]);
        let tools: Tools = match chained {
            true => recorder.clone().layered(Chain::new().with(limit).with(audit).with(ask)),
            false => recorder
                .clone()
                .layered(ask.into_layer())
                .layered(audit.into_layer())
                .layered(limit),
        };
        let calls: Vec<_> = (0..calls).map(|n| call(&format!("c{n}"), "read", json!({}))).collect();
        let allowed = max.min(calls.len());
        let report = runtime.block_on(Turn::new(tools).deferred_tool_handler(danger_approve_all()).run(calls)).unwrap();
        let denied = words(&report).into_iter().filter(|word| *word == "denied").count();
        prop_assert_eq!(recorder.ran().len(), allowed);
        prop_assert_eq!(denied, report.calls().len() - allowed);
    }
}
