//! Hooks beside and around middleware that have none: D8.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::middleware::{Chain, ToolCallError};
use countersign::{
    BoxError, Decision, Outcome, RunContext, ToolCall, ToolError, ToolMiddleware,
    ToolMiddlewareExt, Tools, ToolsExt, Turn, decide_fn,
};
use serde_json::json;

use crate::support::{Recorder, call, words};

/// Has no hook.
struct Silent;

impl ToolMiddleware for Silent {}

static SILENT: Silent = Silent;

/// Counts outcomes.
#[derive(Clone, Default)]
struct Counts(Arc<AtomicUsize>);

impl ToolMiddleware for Counts {
    async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, outcome: Outcome) -> Outcome {
        self.0.fetch_add(1, Ordering::Relaxed);
        outcome
    }
}

/// Counts outcomes, and hands them on to a middleware without a hook.
#[derive(Clone, Default)]
struct HandsOn(Arc<AtomicUsize>);

impl ToolMiddleware for HandsOn {
    fn after_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        outcome: Outcome,
    ) -> impl Future<Output = Outcome> + Send {
        self.0.fetch_add(1, Ordering::Relaxed);
        SILENT.after_tool_call(cx, call, outcome)
    }
}

// D8: what has no hook costs nothing after the first call. What has one is told of each outcome, in a chain and as a
// layer, beside middleware that have none and around a hook of such a one.
#[tokio::test]
async fn a_hook_sees_each_outcome_beside_and_around_middleware_without_one() {
    let (counts, hands_on) = (Counts::default(), HandsOn::default());
    let allow = || decide_fn(|_, _| Decision::allow());
    let chain = Chain::new()
        .with(Silent)
        .with(counts.clone())
        .with(allow())
        .with(hands_on.clone())
        .with(counts.clone().named("again"))
        .with(Silent);
    let in_chain: Tools = Recorder::new(["read"]).layered(chain.into_layer());
    let separate: Tools = Recorder::new(["read"])
        .layered(Silent.into_layer())
        .layered(counts.clone().into_layer())
        .layered(allow().into_layer())
        .layered(hands_on.clone().into_layer())
        .layered(counts.clone().named("again").into_layer())
        .layered(Silent.into_layer());
    for tools in [in_chain, separate] {
        for run in 1..=3 {
            let calls = vec![call("c1", "read", json!({})), call("c2", "read", json!({}))];
            let report = Turn::new(tools.clone()).run(calls).await.unwrap();
            assert_eq!(words(&report), ["returned", "returned"]);
            assert_eq!(counts.0.load(Ordering::Relaxed), 4 * run);
            assert_eq!(hands_on.0.load(Ordering::Relaxed), 2 * run);
        }
        counts.0.store(0, Ordering::Relaxed);
        hands_on.0.store(0, Ordering::Relaxed);
    }
}

/// Makes an outcome of an error, and has no hook for outcomes.
struct Mends;

impl ToolMiddleware for Mends {
    async fn on_tool_error(
        &self,
        _: &RunContext,
        _: &ToolCall,
        _: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        Ok(Outcome::failed("mended"))
    }
}

// D8: members further out see the outcome that a member has made of the error of a tool that was started, also where
// others between them have no hook.
#[tokio::test]
async fn a_hook_sees_each_outcome_that_a_member_has_made_of_an_error() {
    let (counts, inside) = (Counts::default(), Counts::default());
    let chain = Chain::new()
        .with(counts.clone())
        .with(Silent)
        .with(Mends)
        .with(Silent)
        .with(inside.clone().named("inside"));
    let fails = Recorder::new(["read"]).body(|_, _| Err(ToolError::fatal("broken")));
    let turn = Turn::new(fails.layered(chain.into_layer()));
    for run in 1..=3 {
        let report = turn.run(vec![call("c1", "read", json!({}))]).await.unwrap();
        assert_eq!(words(&report), ["failed"]);
        assert_eq!(counts.0.load(Ordering::Relaxed), run);
        assert_eq!(inside.0.load(Ordering::Relaxed), 0, "it saw the error");
    }
}
