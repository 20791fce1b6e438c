//! Deciding: D1, D2, D4, D6, D8.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::decision::{ToolBlocked, ToolDecision};
use countersign::middleware::{Chain, ToolCallError, danger_first_decision_wins, when};
use countersign::outcome::ToolFailed;
use countersign::{
    Args, BoxError, Decision, Outcome, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt,
    Tools, ToolsExt, Turn, TurnReport, decide_fn, from_fn,
};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{Recorder, call, content, words};

async fn run(tools: impl Into<Tools>) -> TurnReport {
    Turn::new(tools).explain().run(vec![call("c1", "read", json!({"n": 1}))]).await.unwrap()
}

fn decision(kind: ToolDecision) -> Decision {
    match kind {
        ToolDecision::Allow => Decision::allow(),
        ToolDecision::Ask => Decision::ask("sure?"),
        ToolDecision::Deny => Decision::deny("no"),
    }
}

fn word(kind: ToolDecision) -> &'static str {
    match kind {
        ToolDecision::Allow => "returned",
        ToolDecision::Ask => "deferred",
        ToolDecision::Deny => "denied",
    }
}

fn kind() -> impl Strategy<Value = ToolDecision> {
    prop_oneof![Just(ToolDecision::Allow), Just(ToolDecision::Ask), Just(ToolDecision::Deny)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // D1: The strictest decision of all middleware wins, in any order. ALLOW passes on; it never switches another
    // layer off.
    #[test]
    fn the_strictest_decision_wins_in_any_order_and_in_every_composite(
        kinds in prop::collection::vec(kind(), 0..6),
        parallel: bool,
    ) {
        let strictest = kinds.iter().copied().max().unwrap_or(ToolDecision::Allow);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let recorder = Recorder::new(["read"]);
        let named = || kinds.iter().enumerate().map(|(at, kind)| (format!("layer {at}"), *kind));
        let layers = named().fold(recorder.clone().into(), |tools: Tools, (name, kind)| {
            tools.layered(decide_fn(move |_, _| decision(kind)).named(name))
        });
        let chain = named().fold(Chain::new(), |chain, (name, kind)| {
            chain.with(from_fn(move |_, _| std::future::ready(decision(kind))).named(name))
        });
        let chain = if parallel { chain.parallel() } else { chain };
        for tools in [layers, recorder.clone().layered(chain.into_layer())] {
            let report = runtime.block_on(run(tools));
            prop_assert_eq!(words(&report), [word(strictest)]);
        }
        let runs = if strictest == ToolDecision::Allow { 2 } else { 0 };
        prop_assert_eq!(recorder.ran().len(), runs, "D2: a DENY runs nothing inside it; an ASK runs nothing either");
    }
}

#[tokio::test]
async fn a_denial_reaches_the_model_verbatim_without_asking() {
    // D2: Its reason reaches the model verbatim, as a denied result, and the handler is not asked.
    let tools = Recorder::new(["read"])
        .layered(decide_fn(|_, _| Decision::ask("outer")))
        .layered(decide_fn(|_, _| Decision::deny("  Not \u{1b}[31mtoday.\n")));
    let handler = countersign::handler::handler_fn_sync(|_, _| {
        Err::<countersign::DeferredToolResults, _>("must not be asked")
    });
    let report = Turn::new(tools)
        .deferred_tool_handler(handler)
        .run(vec![call("c1", "read", json!({}))])
        .await
        .unwrap();
    assert_eq!(content(&report, 0), "  Not \u{1b}[31mtoday.\n");
    assert!(report.calls()[0].denied_by().is_some());
}

#[tokio::test]
async fn an_empty_reason_gives_the_default_text() {
    let report = run(Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::deny("")))).await;
    assert_eq!(content(&report, 0), "The tool call was denied.");
}

struct Hangs;

impl ToolMiddleware for Hangs {
    async fn before_tool_call(&self, _: &RunContext, _: &ToolCall) -> Decision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_fails_open() {
    // D4: A middleware that errors, panics or times out (`deciding_within`) …: the call is denied with a text that
    // names the layer.
    let recorder = Recorder::new(["read"]);
    let fails = || Err::<Decision, BoxError>("the rules cannot be read".into());
    let stacks: Vec<(&str, Tools)> = vec![
        ("errs", recorder.clone().layered(decide_fn(move |_, _| fails()).named("errs"))),
        (
            "errs",
            recorder
                .clone()
                .layered(from_fn(move |_, _| std::future::ready(fails())).named("errs")),
        ),
        (
            "panics",
            recorder
                .clone()
                .layered(decide_fn(|_, _| -> Decision { panic!("oh") }).named("panics")),
        ),
        (
            "panics",
            recorder
                .clone()
                .layered(from_fn(async |_, _| -> Decision { panic!("oh") }).named("panics")),
        ),
        (
            "Hangs",
            recorder.clone().layered(Hangs.deciding_within(Duration::from_secs(1)).into_layer()),
        ),
        (
            "errs",
            recorder.clone().layered(
                Chain::new().with(decide_fn(move |_, _| fails()).named("errs")).into_layer(),
            ),
        ),
        (
            "panics",
            recorder.clone().layered(
                Chain::new()
                    .with(decide_fn(|_, _| -> Decision { panic!("oh") }).named("panics"))
                    .parallel()
                    .into_layer(),
            ),
        ),
        (
            "first",
            recorder.clone().layered(
                danger_first_decision_wins()
                    .member("first", |_, _| -> Decision { panic!("oh") })
                    .into_layer(),
            ),
        ),
        (
            "when(DecideFn, nothing)",
            recorder.clone().layered(
                when(|_, _| panic!("oh"), decide_fn(|_, _| Decision::allow()).named("DecideFn"))
                    .into_layer(),
            ),
        ),
    ];
    for (name, tools) in stacks {
        let report = run(tools).await;
        assert_eq!(words(&report), ["denied"], "{name}");
        let told = content(&report, 0).to_string();
        assert!(told.contains(&format!("`{name}`")), "{name}: {told}");
        assert!(!told.contains("cannot be read"), "details go to the host: {told}");
    }
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn a_parallel_member_may_not_change_arguments() {
    let rewrites = decide_fn(|_, call: &ToolCall| Decision::from(call.args().clone().with("n", 2)))
        .named("rewrites");
    let allows = decide_fn(|_, _| Decision::allow());
    let recorder = Recorder::new(["read"]);
    let report = run(recorder
        .clone()
        .layered(Chain::new().with(allows).with(rewrites).parallel().into_layer()))
    .await;
    assert_eq!(words(&report), ["denied"]);
    assert!(content(&report, 0).as_str().unwrap().contains("`rewrites`"));
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn a_parallel_denial_is_not_masked_and_all_members_decide() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let member = |name: &'static str, kind: ToolDecision, yields: usize| {
        let heard = Arc::clone(&heard);
        from_fn(move |_, _| {
            let heard = Arc::clone(&heard);
            async move {
                for _ in 0..yields {
                    tokio::task::yield_now().await;
                }
                heard.lock().unwrap().push(name);
                decision(kind)
            }
        })
    };
    let chain = Chain::new()
        .with(member("fast allow", ToolDecision::Allow, 0))
        .with(member("slow deny", ToolDecision::Deny, 5))
        .with(member("slower ask", ToolDecision::Ask, 9));
    let report = run(Recorder::new(["read"]).layered(chain.parallel().into_layer())).await;
    assert_eq!(words(&report), ["denied"]);
    assert_eq!(*heard.lock().unwrap(), ["fast allow", "slow deny", "slower ask"]);
}

#[tokio::test]
async fn a_chain_decides_again_when_a_member_changes_what_earlier_ones_saw() {
    // D3, inside one chain.
    let guard = decide_fn(|_, call: &ToolCall| match call.args()["n"].as_u64() {
        Some(9) => Decision::deny("not nine"),
        _ => Decision::allow(),
    });
    let rewrite = decide_fn(|_, call: &ToolCall| Decision::from(call.args().clone().with("n", 9)));
    let recorder = Recorder::new(["read"]);
    let report =
        run(recorder.clone().layered(Chain::new().with(guard).with(rewrite).into_layer())).await;
    assert_eq!(content(&report, 0), "not nine");

    let counts = decide_fn(|_, call: &ToolCall| {
        Decision::from(call.args().clone().with("n", call.args()["n"].as_u64().unwrap_or(0) + 1))
    });
    let chain = Chain::new().with(decide_fn(|_, _| Decision::allow())).with(counts.named("counts"));
    let report = run(recorder.clone().layered(chain.into_layer())).await;
    assert_eq!(words(&report), ["denied"]);
    assert!(content(&report, 0).as_str().unwrap().contains("`counts`"));
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn return_values_convert_to_a_decision() {
    // D6: Plain args convert to ALLOW with those args, `ToolBlocked` to DENY.
    let recorder = Recorder::new(["read"]);
    run(recorder
        .clone()
        .layered(decide_fn(|_, call: &ToolCall| call.args().clone().with("audit", true))))
    .await;
    assert_eq!(recorder.ran()[0].args, Args::new().with("n", 1).with("audit", true));
    let report =
        run(recorder.clone().layered(decide_fn(|_, _| ToolBlocked::new("Not allowed")))).await;
    assert_eq!(content(&report, 0), "Not allowed");
    let report = run(
        recorder.layered(decide_fn(|_, _| Err::<Decision, _>(ToolBlocked::new("Not allowed"))))
    )
    .await;
    assert_eq!(content(&report, 0), "Not allowed");
}

#[tokio::test]
async fn the_first_decision_ends_its_own_chain_and_nothing_else() {
    // D6: `None` and plain args continue with the next member; a decision ends this chain only.
    let first = || {
        danger_first_decision_wins()
            .member("silent", |_, _| None::<Decision>)
            .member("args", |_, call: &ToolCall| call.args().clone().with("seen", true))
            .member_async("allows", async |_, _| Decision::allow())
            .member("denies", |_, _| Decision::deny("never reached"))
    };
    let recorder = Recorder::new(["read"]);
    let report = run(recorder.clone().layered(first().into_layer())).await;
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(recorder.ran()[0].args["seen"], true);
    let report = run(recorder
        .clone()
        .layered(decide_fn(|_, _| Decision::deny("inside")))
        .layered(first().into_layer()))
    .await;
    assert_eq!(content(&report, 0), "inside", "an ALLOW of the chain switches no other layer off");
}

#[tokio::test]
async fn any_middleware_can_be_a_member_where_the_first_decision_wins() {
    // D6: a member that has not decided passes the call on to the next one; a decision ends the chain, an ALLOW too.
    let hooks = Hooks::default();
    let only_a_result_hook = ResultHook(hooks.clone());
    let absent: Option<Hangs> = None;
    let rules = danger_first_decision_wins()
        .with(only_a_result_hook)
        .with(absent)
        .with(decide_fn(|_, _| Decision::deny("for writes")).for_tools(["write"]))
        .with(when(|_, call| call.name() == "list", decide_fn(|_, _| Decision::deny("for lists"))))
        .with(Chain::new().with(decide_fn(|_, _| Decision::allow()).named("no objection")))
        .with(decide_fn(|_, call: &ToolCall| call.args().clone().with("seen", true)).named("plain"))
        .with(decide_fn(|_, _| Decision::allow()).named("allows").for_tools(["read"]))
        .with(decide_fn(|_, _| Decision::deny("the rest")).named("denies"));
    let recorder = Recorder::new(["read", "write", "list", "delete"]);
    let turn = Turn::new(recorder.clone().layered(rules.into_layer()));
    let calls = ["read", "write", "list", "delete"].map(|name| call(name, name, json!({})));
    let report = turn.run(calls.to_vec()).await.unwrap();
    assert_eq!(words(&report), ["returned", "denied", "denied", "denied"]);
    let told: Vec<_> = (1..4).map(|n| content(&report, n)).collect();
    assert_eq!(told, ["for writes", "for lists", "the rest"]);
    assert_eq!(report.calls()[3].denied_by(), Some("denies"));
    assert_eq!(recorder.ran()[0].args, Args::new().with("seen", true));
    assert_eq!(hooks.take(), ["after returned"], "the other hooks of a member run, too");
}

#[tokio::test]
async fn composites_are_layers() {
    let deny = |name: &'static str| {
        decide_fn(move |_, call: &ToolCall| match call.name() == name {
            true => Decision::deny(name),
            false => Decision::allow(),
        })
    };
    let stack = tower::ServiceBuilder::new()
        .layer(Chain::new().with(deny("chained")))
        .layer(when(|_, call| call.name() == "when", deny("when")))
        .layer(decide_fn(|_, _| Decision::deny("for")).for_tools(["for"]))
        .layer(danger_first_decision_wins().with(deny("first").named("first")))
        .timeout(Duration::from_secs(1));
    let names = ["chained", "when", "for", "first", "read"];
    let tools = Recorder::new(names).layered(stack).layered(Chain::new());
    let calls = names.map(|name| call(name, name, json!({})));
    let report = Turn::new(tools).run(calls.to_vec()).await.unwrap();
    assert_eq!(words(&report), ["denied", "denied", "denied", "denied", "returned"]);
}

/// Middleware without `before_tool_call`.
struct ResultHook(Hooks);

impl ToolMiddleware for ResultHook {
    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        let _ = self.0.after_tool_call(cx, call, outcome.clone()).await;
        outcome
    }
}

#[tokio::test]
async fn a_condition_picks_the_branch_and_tools_can_be_picked_by_name() {
    let by_args = |_: &RunContext, call: &ToolCall| call.args()["n"] == 1;
    let policy = || {
        when(by_args, decide_fn(|_, _| Decision::deny("then")))
            .otherwise(decide_fn(|_, _| Decision::deny("else")))
    };
    let tools = Recorder::new(["read"]).layered(policy().into_layer());
    let calls = vec![call("c1", "read", json!({"n": 1})), call("c2", "read", json!({"n": 2}))];
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!([content(&report, 0), content(&report, 1)], ["then", "else"]);

    let only = decide_fn(|_, _| Decision::deny("no")).for_tools(["write"]);
    let tools = Recorder::new(["read", "write"]).layered(only.into_layer());
    let calls = vec![call("c1", "read", json!({})), call("c2", "write", json!({}))];
    assert_eq!(words(&Turn::new(tools).run(calls).await.unwrap()), ["returned", "denied"]);
}

#[tokio::test]
async fn an_absent_middleware_allows_and_is_explained() {
    let absent: Option<Hangs> = None;
    let layer = absent.into_layer();
    assert_eq!(format!("{layer:?}"), "MiddlewareLayer(Hangs (absent))");
    let report = run(Recorder::new(["read"]).layered(layer)).await;
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(report.calls()[0].said()[0].layer, "Hangs (absent)");
}

/// Records which hooks ran, and changes the result for the model.
#[derive(Clone, Default)]
struct Hooks(Arc<Mutex<Vec<String>>>);

impl ToolMiddleware for Hooks {
    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        self.0.lock().unwrap().push(format!("before {:?}", cx.phase()));
        Decision::allow()
    }

    async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, outcome: Outcome) -> Outcome {
        self.0.lock().unwrap().push(format!("after {}", outcome.word()));
        Outcome::denied("rewritten")
    }

    async fn on_tool_error(
        &self,
        _: &RunContext,
        _: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.0.lock().unwrap().push(format!("error {:?}", error.execution.started()));
        Ok(Outcome::failed("mended"))
    }
}

impl Hooks {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[tokio::test]
async fn the_hook_after_a_call_sees_executions_only() {
    // D8: `after_tool_call` sees outcomes of executions only and may change what the model is told, not the record.
    // Denied and deferred pass all hooks untouched.
    let hooks = Hooks::default();
    let layer = || hooks.clone().into_layer();
    let report = run(Recorder::new(["read"]).layered(layer())).await;
    assert_eq!(hooks.take(), ["before First", "after returned"]);
    assert_eq!(words(&report), ["failed"], "an execution cannot be turned into a denial");
    assert_eq!(content(&report, 0), "The tool ran. Its result is withheld: rewritten");

    run(Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::deny("no"))).layered(layer()))
        .await;
    assert_eq!(hooks.take(), ["before First"]);

    let report =
        run(Recorder::new(["read"]).layered(decide_fn(|_, _| Decision::ask("?"))).layered(layer()))
            .await;
    assert_eq!(hooks.take(), ["before First"]);
    assert_eq!(words(&report), ["deferred"]);

    let tools = Recorder::new(["read"]).body(|_, _| Err(ToolFailed::new("broken").into()));
    run(tools.layered(layer())).await;
    assert_eq!(hooks.take(), ["before First", "after failed"]);
}

#[tokio::test]
async fn the_error_hook_sees_errors_of_layers_inside_it_with_the_record() {
    // D8: `on_tool_error` sees errors of layers inside it, with the record.
    let hooks = Hooks::default();
    let tools = Recorder::new(["read"]).body(|_, _| Err(countersign::ToolError::fatal("broken")));
    let report = run(tools.layered(hooks.clone().into_layer())).await;
    assert_eq!(hooks.take(), ["before First", "error true"]);
    assert_eq!(content(&report, 0), "mended");

    let refuse = tower::ServiceBuilder::new()
        .layer(hooks.clone().into_layer())
        .filter(|_: ToolCall| Err::<ToolCall, BoxError>("refused".into()));
    let report = run(Recorder::new(["read"]).layered(refuse)).await;
    assert_eq!(hooks.take(), ["before First", "error false"]);
    assert_eq!(content(&report, 0), "mended");
}

#[tokio::test]
async fn an_after_hook_that_panics_withholds_the_result() {
    struct Redacts;
    impl ToolMiddleware for Redacts {
        async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, _: Outcome) -> Outcome {
            panic!("cannot redact")
        }
    }
    let report =
        run(Recorder::new(["read"]).body(|_, _| Ok(json!("secret"))).layered(Redacts.into_layer()))
            .await;
    assert_eq!(words(&report), ["failed"]);
    assert!(!content(&report, 0).to_string().contains("secret"));
}

#[tokio::test]
async fn a_layers_answer_in_the_tools_place_does_not_bypass_an_open_question() {
    // A question remains, but no person is asked about a call that was denied or failed further inside.
    let answers =
        |outcome: Outcome| tower::util::MapResponseLayer::new(move |_: Outcome| outcome.clone());
    let recorder = Recorder::new(["read"]);
    let inner = || recorder.clone().layered(decide_fn(|_, _| Decision::deny("unused")));
    let cases = [
        (Outcome::returned("from a cache"), "denied"),
        (Outcome::denied("by a foreign layer"), "denied"),
    ];
    for (outcome, word) in cases {
        let report =
            run(inner().layered(answers(outcome)).layered(decide_fn(|_, _| Decision::ask("?"))))
                .await;
        assert_eq!(words(&report), [word]);
    }
    let cache = tower::layer::layer_fn(|_: Tools| {
        tower::service_fn(async |_: ToolCall| Ok::<_, BoxError>(Outcome::returned("from a cache")))
    });
    let refuses = tower::layer::layer_fn(|_: Tools| {
        tower::service_fn(async |_: ToolCall| {
            Ok::<_, BoxError>(Outcome::denied("by a foreign layer"))
        })
    });
    let asks = || decide_fn(|_, _| Decision::ask("?"));
    assert_eq!(words(&run(recorder.clone().layered(cache).layered(asks())).await), ["deferred"]);
    assert_eq!(words(&run(recorder.clone().layered(refuses).layered(asks())).await), ["denied"]);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn predicates_and_checks_of_the_hosts_that_panic_run_nothing() {
    let recorder = Recorder::new(["read"]);
    let turn = Turn::new(recorder.clone().filtered(|_, _| panic!("oh")));
    let error = turn.run(vec![call("c1", "read", json!({}))]).await.unwrap_err();
    assert!(matches!(error.error(), countersign::Error::Tools(_)), "{error:?}");
    let report = run(recorder.clone().approval_required_if(|_, _| panic!("oh"))).await;
    assert_eq!(words(&report), ["denied"]);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn a_hook_in_a_chain_cannot_deny_an_executed_call() {
    // D8, inside one chain: the members outside see an outcome of an execution, never a denial.
    let (inner, outer) = (Hooks::default(), Hooks::default());
    let chain = Chain::new().with(outer.clone()).with(inner.clone());
    let report = run(Recorder::new(["read"]).layered(chain.into_layer())).await;
    assert_eq!(inner.take(), ["before First", "after returned"]);
    assert_eq!(outer.take(), ["before First", "after failed"]);
    assert_eq!(content(&report, 0), "The tool ran. Its result is withheld: rewritten");
}
