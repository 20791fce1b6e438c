//! Toolset wrappers. Row ids (I133) are those of group I in PydanticAI's conformance table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use countersign::call::ToolKind;
use countersign::handler::danger_approve_all;
use countersign::outcome::{ModelRetry, ToolReturn};
use countersign::toolset::ExternalToolset;
use countersign::{
    Args, BoxError, Error, FunctionToolset, Permit, RunContext, ToolCall, ToolDefinition,
    ToolError, Tools, ToolsExt, Toolset, Turn, UserError, decide_fn, tool_fn,
};
use serde_json::{Value, json};
use tower::ServiceBuilder;

use crate::support::{Recorder, call, content, run_one, words};

/// The names the model is told.
async fn names(tools: &Tools) -> Vec<String> {
    let cx = call("c", "t", json!({})).context().clone();
    let definitions = tools.definitions(&cx).await.unwrap();
    definitions.iter().map(|definition| definition.name().to_owned()).collect()
}

/// Why the tools cannot be listed.
async fn problem(tools: Tools) -> String {
    let error = Turn::new(tools).run(vec![call("c1", "a", json!({}))]).await.unwrap_err();
    assert!(matches!(error.error(), Error::User(_)), "{error:?}");
    assert!(error.report().calls().is_empty(), "nothing may have run");
    error.to_string()
}

fn kind(kind: ToolKind) -> impl Fn(&RunContext, Vec<ToolDefinition>) -> Vec<ToolDefinition> {
    move |_, given| given.into_iter().map(|it| it.with_kind(kind)).collect()
}

// --- layered

#[tokio::test]
async fn the_layer_that_the_builder_is_given_first_is_outermost() {
    let layers = ServiceBuilder::new()
        .layer(decide_fn(|_, _| countersign::Decision::allow()).named("outer"))
        .layer(decide_fn(|_, _| countersign::Decision::allow()).named("inner"));
    let tools = Recorder::new(["a"]).layered(layers);
    let outermost = tools.layered(decide_fn(|_, _| countersign::Decision::allow()).named("last"));
    let report = run_one(&Turn::new(outermost).explain(), call("c1", "a", json!({}))).await;
    let said: Vec<_> = report.calls()[0].said().iter().map(|said| said.layer.as_str()).collect();
    assert_eq!(said, ["last", "outer", "inner"]);
}

#[tokio::test]
async fn a_layer_sees_the_names_at_its_own_level() {
    let denies = |name| decide_fn(move |_, call: &ToolCall| deny_if(call.name() == name));
    let recorder = Recorder::new(["a"]);
    let inside = recorder.clone().layered(denies("a")).prefixed("p");
    let outside = recorder.clone().prefixed("p").layered(denies("p_a"));
    for tools in [inside, outside] {
        let report = run_one(&Turn::new(tools), call("c1", "p_a", json!({}))).await;
        assert_eq!(words(&report), ["denied"]);
    }
    assert!(recorder.ran().is_empty());
}

fn deny_if(yes: bool) -> countersign::Decision {
    if yes { countersign::Decision::deny("no") } else { countersign::Decision::allow() }
}

// --- approval_required

#[tokio::test]
async fn approval_required_asks_about_every_call_and_runs_none() {
    let recorder = Recorder::new(["a", "b"]);
    let turn = Turn::new(recorder.clone().approval_required());
    let report =
        turn.run(vec![call("c1", "a", json!({})), call("c2", "b", json!({}))]).await.unwrap();
    assert_eq!(words(&report), ["deferred", "deferred"]);
    assert!(recorder.ran().is_empty());

    let suspended = report.into_suspended().unwrap();
    let answers = suspended.requests().answer().approve("c1").deny("c2", "").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["returned", "denied"]);
    assert_eq!(content(&report, 1), "The tool call was denied.");
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn approval_required_if_asks_about_the_calls_that_the_predicate_picks() {
    let recorder = Recorder::new(["a"]);
    let large = |_: &RunContext, call: &ToolCall| call.args()["n"].as_u64() > Some(10);
    let turn = Turn::new(recorder.clone().approval_required_if(large));
    let calls = vec![call("c1", "a", json!({"n": 1})), call("c2", "a", json!({"n": 11}))];
    assert_eq!(words(&turn.run(calls).await.unwrap()), ["returned", "deferred"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// An async predicate is awaited; one that says no does not ask (PydanticAI always asks).
#[tokio::test]
async fn approval_required_if_async_awaits_its_predicate() {
    let recorder = Recorder::new(["a"]);
    let large = async |_: RunContext, call: ToolCall| {
        tokio::task::yield_now().await;
        call.args()["n"].as_u64() > Some(10)
    };
    let turn = Turn::new(recorder.clone().approval_required_if_async(large));
    let calls = vec![call("c1", "a", json!({"n": 1})), call("c2", "a", json!({"n": 11}))];
    assert_eq!(words(&turn.run(calls).await.unwrap()), ["returned", "deferred"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// D4: Nothing fails open.
#[tokio::test]
async fn a_predicate_that_panics_denies_its_call_and_no_other() {
    let recorder = Recorder::new(["a"]);
    let sync = recorder.clone().approval_required_if(|_, call| broken(call));
    let asynchronous =
        recorder.clone().approval_required_if_async(async |_, call: ToolCall| broken(&call));
    for tools in [sync, asynchronous] {
        let calls = vec![call("c1", "a", json!({"n": 1})), call("c2", "a", json!({}))];
        let report =
            Turn::new(tools).deferred_tool_handler(danger_approve_all()).run(calls).await.unwrap();
        assert_eq!(words(&report), ["returned", "denied"]);
        assert!(content(&report, 1).as_str().unwrap().contains("`approval_required`"));
        assert_eq!(report.calls()[1].denied_by(), Some("approval_required"));
    }
    assert_eq!(recorder.ids(), ["c1", "c1"]);
}

fn broken(call: &ToolCall) -> bool {
    call.args()["n"].as_u64().unwrap() > 10
}

#[tokio::test]
async fn two_approval_wrappers_ask_once() {
    let recorder = Recorder::new(["a"]);
    let tools =
        recorder.clone().approval_required().prefixed("p").approval_required_if(|_, _| true);
    let turn = Turn::new(tools);
    let report = run_one(&turn, call("c1", "p_a", json!({}))).await;
    let suspended = report.into_suspended().unwrap();
    assert_eq!(suspended.requests().questions("c1").len(), 1);
    let answers = suspended.requests().answer().approve("c1").build().unwrap();
    assert_eq!(words(&turn.resume(suspended, answers).await.unwrap()), ["returned"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// T5: Invalid args go back to the model before a human is bothered.
#[tokio::test]
async fn the_approval_predicate_sees_validated_arguments_only() {
    let recorder = Recorder::new(["a"]);
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let tools = recorder.clone().approval_required_if(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        true
    });
    let report = run_one(&Turn::new(tools), call("c1", "a", json!({"invalid": 1}))).await;
    assert_eq!(words(&report), ["retry"]);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn the_approval_predicate_sees_the_inner_name_and_the_context_the_models() {
    let tools = Recorder::new(["a"])
        .approval_required_if(|cx, call| call.name() == "a" && cx.tool_name() == Some("p_a"))
        .prefixed("p");
    let report = run_one(&Turn::new(tools), call("c1", "p_a", json!({}))).await;
    assert_eq!(words(&report), ["deferred"]);
    // History, requests and pages show the name the model used.
    assert_eq!(report.deferred().unwrap().approvals[0].name(), "p_a");
}

// --- prefixed, renamed

#[tokio::test]
async fn prefixed_tools_are_called_by_the_outer_name_and_run_by_their_own() {
    let recorder = Recorder::new(["a"]);
    let tools = recorder.clone().prefixed("p");
    assert_eq!(names(&tools).await, ["p_a"]);
    let calls = vec![call("c1", "p_a", json!({})), call("c2", "a", json!({}))];
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "retry"]);
    assert_eq!(content(&report, 1), "There is no tool `a`. Available: `p_a`.");
    assert_eq!(recorder.ran()[0].tool, "a");
    assert_eq!(recorder.ids(), ["c1"]);
}

#[tokio::test]
async fn renamed_tools_are_gone_under_their_old_name_and_the_others_stay() {
    let recorder = Recorder::new(["a", "b"]);
    let tools = recorder.clone().renamed([("z", "a")]);
    assert_eq!(names(&tools).await, ["z", "b"]);
    let calls = ["z", "a", "b"].map(|tool| call(tool, tool, json!({}))).to_vec();
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "retry", "returned"]);
    assert_eq!(recorder.ids(), ["b", "z"]);
}

#[tokio::test]
async fn renamed_can_swap_two_names() {
    let recorder = Recorder::new(["a", "b"]);
    let tools = recorder.clone().renamed([("a", "b"), ("b", "a")]);
    run_one(&Turn::new(tools), call("c1", "a", json!({}))).await;
    assert_eq!(recorder.ran()[0].tool, "b");
}

#[tokio::test]
async fn renaming_a_missing_tool_has_no_effect() {
    let tools = Recorder::new(["a", "b"]).filtered(|_, it| it.name() != "a").renamed([("z", "a")]);
    assert_eq!(names(&tools).await, ["b"]);
    let report = run_one(&Turn::new(tools), call("c1", "z", json!({}))).await;
    assert_eq!(words(&report), ["retry"]);
}

// I134: renaming onto a taken name is an error.
#[tokio::test]
async fn i134_renaming_onto_a_name_that_is_taken_is_an_error() {
    let text = problem(Recorder::new(["a", "b"]).renamed([("a", "b")])).await;
    assert!(text.contains("cannot rename `b` to `a`"), "{text}");
    assert!(text.contains("already a tool of that name"), "{text}");
    let text = problem(Recorder::new(["a", "b"]).renamed([("c", "a"), ("c", "b")])).await;
    assert!(text.contains("cannot rename `b` to `c`"), "{text}");
    let text = problem(Recorder::new(["a", "b"]).renamed([("c", "a"), ("d", "a")])).await;
    assert!(text.contains("each tool can be renamed once"), "{text}");
}

// --- filtered

// I136: async filters are supported; a hidden tool is an unknown tool to the model.
#[tokio::test]
async fn i136_a_filtered_tool_does_not_exist_for_the_model() {
    let recorder = Recorder::new(["a", "secret"]);
    let sync = recorder.clone().filtered(|_, it| it.name() != "secret");
    let asynchronous =
        recorder.clone().filtered_async(async |_, it: ToolDefinition| it.name() != "secret");
    for tools in [sync, asynchronous] {
        assert_eq!(names(&tools).await, ["a"]);
        let report = run_one(&Turn::new(tools), call("c1", "secret", json!({}))).await;
        assert_eq!(words(&report), ["retry"]);
        assert_eq!(content(&report, 0), "There is no tool `secret`. Available: `a`.");
    }
    assert!(recorder.ran().is_empty());
}

// I138: no shared state between concurrent runs: definitions are asked per step, with the run's own dependencies.
#[tokio::test]
async fn i138_concurrent_runs_over_one_set_see_their_own_tools() {
    let recorder = Recorder::new(["read", "write"]);
    let tools = recorder
        .clone()
        .filtered(|cx, it| it.name() == "read" || cx.deps::<bool>().is_ok_and(|admin| *admin));
    let run = |admin: bool, id: &'static str| {
        let turn = Turn::new(tools.clone()).deps(admin);
        async move { words(&run_one(&turn, call(id, "write", json!({}))).await) }
    };
    let (user, admin) = tokio::join!(run(false, "user"), run(true, "admin"));
    assert_eq!((user, admin), (vec!["retry"], vec!["returned"]));
    assert_eq!(recorder.ids(), ["admin"]);
}

// T9, A1: a tool that is hidden by the time its call is approved does not run, and the host is told, with the approval.
#[tokio::test]
async fn a_tool_that_is_hidden_after_it_was_asked_about_does_not_run() {
    let recorder = Recorder::new(["a"]);
    let tools = recorder
        .clone()
        .approval_required()
        .filtered(|cx, _| cx.deps::<bool>().is_ok_and(|shown| *shown));
    let turn = Turn::new(tools);
    let report = run_one(&turn.clone().deps(true), call("c1", "a", json!({}))).await;
    let suspended = report.into_suspended().unwrap();
    let answers = suspended.requests().answer().approve("c1").build().unwrap();
    let error = turn.deps(false).resume(suspended, answers).await.unwrap_err();
    let told = countersign::error::with_causes(&error);
    assert!(told.contains("call `c1` was approved"), "{told}");
    assert!(recorder.ran().is_empty());
}

// --- prepared

// I130: sync and async prepare functions.
#[tokio::test]
async fn i130_prepared_changes_the_definitions_for_the_model() {
    let describe = |given: Vec<ToolDefinition>| -> Vec<ToolDefinition> {
        let prepared = |it: ToolDefinition| {
            it.with_description("prepared").with_parameters(json!({"type": "object"}))
        };
        given.into_iter().skip(1).map(prepared).collect()
    };
    let sync = Recorder::new(["a", "b"]).prepared(move |_, given| describe(given));
    let asynchronous = Recorder::new(["a", "b"])
        .prepared_async(move |_, given| std::future::ready(describe(given)));
    for tools in [sync, asynchronous] {
        let cx = call("c", "t", json!({})).context().clone();
        let definitions = tools.definitions(&cx).await.unwrap();
        assert_eq!(definitions.len(), 1);
        assert_eq!(definitions[0].description(), "prepared");
        assert_eq!(definitions[0].parameters(), &json!({"type": "object"}));
        // A tool that was left out is unknown.
        let report = run_one(&Turn::new(tools), call("c1", "a", json!({}))).await;
        assert_eq!(words(&report), ["retry"]);
    }
}

// I132: "Prepare function cannot add or rename tools."
#[tokio::test]
async fn i132_prepared_cannot_add_or_rename() {
    let other = || vec![ToolDefinition::new("other", json!({}))];
    for tools in [
        Recorder::new(["a"]).prepared(move |_, given| [given, other()].concat()),
        Recorder::new(["a"]).prepared_async(move |_, _| std::future::ready(other())),
    ] {
        let text = problem(tools).await;
        assert!(text.contains("cannot add or rename tools, but gave `other`"), "{text}");
        assert!(text.contains("`renamed`"), "says what to do: {text}");
    }
}

#[tokio::test]
async fn prepared_cannot_give_one_tool_twice() {
    let twice = |_: &RunContext, given: Vec<ToolDefinition>| [given.clone(), given].concat();
    let text = problem(Recorder::new(["a"]).prepared(twice)).await;
    assert!(text.contains("`a`"), "{text}");
}

#[tokio::test]
async fn prepared_can_make_a_tool_stricter() {
    let recorder = Recorder::new(["a"]);
    let tools = recorder.clone().prepared(kind(ToolKind::Unapproved));
    assert_eq!(words(&run_one(&Turn::new(tools), call("c1", "a", json!({}))).await), ["deferred"]);
    let tools = recorder.clone().prepared(kind(ToolKind::External));
    let report = run_one(&Turn::new(tools), call("c1", "a", json!({}))).await;
    assert_eq!(report.deferred().unwrap().calls.len(), 1);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn prepared_can_never_make_a_tool_laxer() {
    let of = |kind| Recorder::of([ToolDefinition::new("a", json!({})).with_kind(kind)]);
    let anew = |_: &RunContext, _: Vec<ToolDefinition>| vec![ToolDefinition::new("a", json!({}))];
    for strict in [ToolKind::Unapproved, ToolKind::External] {
        let leaf = of(strict);
        let wrapped = Recorder::new(["a"]);
        let sets = [
            leaf.clone().prepared(kind(ToolKind::Function)),
            leaf.clone().prepared(anew),
            // An outer wrapper cannot undo the strictness of an inner one.
            wrapped.clone().prepared(kind(strict)).prepared(kind(ToolKind::Function)),
            wrapped
                .clone()
                .prepared(kind(strict))
                .prepared(anew)
                .prefixed("p")
                .renamed([("a", "p_a")]),
        ];
        for (at, tools) in sets.into_iter().enumerate() {
            let report = run_one(&Turn::new(tools), call("c1", "a", json!({}))).await;
            assert_eq!(words(&report), ["deferred"], "set {at}, {strict:?}");
        }
        assert!(leaf.ran().is_empty() && wrapped.ran().is_empty());
    }
}

// T1: `sequential` tools are barriers; a wrapper that builds the definition anew does not make them overlap.
#[tokio::test]
async fn prepared_keeps_a_sequential_tool_sequential() {
    let recorder = Recorder::of([ToolDefinition::new("a", json!({})).with_sequential(true)]);
    let anew = |_: &RunContext, _: Vec<ToolDefinition>| vec![ToolDefinition::new("a", json!({}))];
    let cx = call("c", "t", json!({})).context().clone();
    for tools in [
        recorder.clone().prepared(anew),
        recorder
            .prepared(|_, given| given.into_iter().map(|it| it.with_sequential(false)).collect()),
    ] {
        assert!(tools.definitions(&cx).await.unwrap()[0].is_sequential());
    }
}

// T5, A1: whatever the model is shown, the toolset's own check holds.
#[tokio::test]
async fn prepared_does_not_change_the_validation_of_arguments() {
    let recorder = Recorder::new(["a"]);
    let anew = |_: &RunContext, _: Vec<ToolDefinition>| vec![ToolDefinition::new("a", json!({}))];
    let turn = Turn::new(recorder.clone().prepared(anew));
    assert_eq!(words(&run_one(&turn, call("c1", "a", json!({"invalid": 1}))).await), ["retry"]);
    assert_eq!(words(&run_one(&turn, call("c2", "a", json!({"fits": 1}))).await), ["returned"]);
    assert_eq!(recorder.ids(), ["c2"]);
}

// A filter, a prepare function or a toolset that panics while it lists fails the response, before anything runs.
#[tokio::test]
async fn a_wrapper_that_panics_while_listing_is_an_error_and_nothing_runs() {
    fn fails<T>(what: &str) -> T {
        panic!("{what}")
    }
    let recorder = Recorder::new(["a"]);
    for tools in [
        recorder.clone().filtered(|_, _| fails("in a filter")),
        recorder.clone().filtered_async(async |_, _| fails("in an async filter")),
        recorder.clone().prepared(|_, _| fails("in a prepare function")),
    ] {
        let error = Turn::new(tools).run(vec![call("c1", "a", json!({}))]).await.unwrap_err();
        assert!(matches!(error.error(), Error::Tools(_)), "{error:?}");
    }
    assert!(recorder.ran().is_empty());
}

// --- combined

// I143: the error says how to resolve it.
#[tokio::test]
async fn i143_two_tools_of_one_name_are_an_error_that_says_how_to_resolve_it() {
    let text = problem(Tools::combined([
        Recorder::new(["a", "b"]).id("files").into(),
        Recorder::new(["b"]).id("web").into(),
    ]))
    .await;
    let expected = "two tools are called `b` (in toolset `files` and toolset `web`): rename one with `renamed`, or give a whole set a prefix with `prefixed`";
    assert_eq!(text, expected);
    let tool = || tool_fn("a", "A", nothing);
    let text = problem(FunctionToolset::new().tool(tool()).tool(tool()).into()).await;
    assert!(text.contains("two tools are called `a`"), "{text}");
}

async fn nothing(_: Value) -> Result<(), ModelRetry> {
    Ok(())
}

#[tokio::test]
async fn combined_with_a_prefix_has_no_conflict() {
    let (files, web) = (Recorder::new(["get"]).id("files"), Recorder::new(["get"]).id("web"));
    let tools = Tools::combined([files.clone().prefixed("files"), web.clone().prefixed("web")]);
    let report = run_one(&Turn::new(tools), call("c1", "web_get", json!({}))).await;
    assert_eq!(words(&report), ["returned"]);
    assert_eq!(web.ids(), ["c1"]);
    assert!(files.ran().is_empty());
}

#[tokio::test]
async fn one_set_under_two_prefixes_goes_through_the_layers_of_the_prefix_that_was_called() {
    let recorder = Recorder::new(["get"]);
    let shared = Tools::from(recorder.clone());
    let tools = Tools::combined([
        shared.clone().prefixed("free"),
        shared.clone().approval_required().prefixed("asked"),
    ]);
    let calls = vec![call("c1", "free_get", json!({})), call("c2", "asked_get", json!({}))];
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "deferred"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// D1: two views of one set, with layers around one of them: a call goes through the layers of the view that shows it.
#[tokio::test]
async fn a_call_never_takes_the_way_through_a_view_that_hides_its_tool() {
    for reversed in [false, true] {
        let recorder = Recorder::new(["read", "delete"]);
        let shared = Tools::from(recorder.clone());
        let reads = shared.clone().filtered(|_, it| it.name() == "read");
        let writes = shared.filtered(|_, it| it.name() != "read").approval_required();
        let mut views = vec![reads, writes];
        if reversed {
            views.reverse();
        }
        let nested = Tools::combined([Tools::combined(views), Recorder::new(["x"]).into()]);
        let calls = vec![call("c1", "read", json!({})), call("c2", "delete", json!({}))];
        let report = Turn::new(nested).run(calls).await.unwrap();
        assert_eq!(words(&report), ["returned", "deferred"], "reversed: {reversed}");
        assert_eq!(recorder.ids(), ["c1"]);
    }
}

// The same with definitions that a prepare function builds anew, or leaves out of one view.
#[tokio::test]
async fn a_call_keeps_its_way_through_wrappers_that_build_definitions_anew() {
    let recorder = Recorder::new(["a", "b"]);
    let shared = Tools::from(recorder.clone());
    let only = |name: &'static str| {
        move |_: &RunContext, _: Vec<ToolDefinition>| vec![ToolDefinition::new(name, json!({}))]
    };
    let free = shared.clone().prepared(only("a"));
    let asked = shared.approval_required().prepared(only("b"));
    let tools = Tools::combined([free, asked])
        .prepared(|_, given| {
            given.iter().map(|it| ToolDefinition::new(it.name(), json!({}))).collect()
        })
        .prefixed("p");
    let calls = vec![call("c1", "p_a", json!({})), call("c2", "p_b", json!({}))];
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!(words(&report), ["returned", "deferred"]);
    assert_eq!(recorder.ids(), ["c1"]);
}

// I133: function + prefixed + renamed + filtered + prepared + combined: names and calls route through all wrappers.
#[tokio::test]
async fn i133_names_and_calls_route_through_all_wrappers() {
    let (maths, texts) =
        (Recorder::new(["add", "sub", "mul"]).id("maths"), Recorder::new(["upper"]));
    let tools = Tools::combined([
        maths
            .clone()
            .prefixed("m")
            .renamed([("plus", "m_add")])
            .filtered(|_, it| it.name() != "m_mul")
            .prepared(|_, given| {
                given.into_iter().map(|it| it.with_description("maths")).collect()
            }),
        texts.clone().layered(decide_fn(|_, _| countersign::Decision::allow())).prefixed("t"),
    ]);
    let tools =
        Tools::combined([tools.prefixed("x"), Tools::none()]).with_metadata(|_, _| true, "k", 1);
    assert_eq!(names(&tools).await, ["x_plus", "x_m_sub", "x_t_upper"]);
    let called = ["x_plus", "x_m_sub", "x_t_upper", "x_m_mul", "m_sub", "plus", "upper"];
    let calls = called.map(|tool| call(tool, tool, json!({}))).to_vec();
    let report = Turn::new(tools).run(calls).await.unwrap();
    assert_eq!(words(&report)[..3], ["returned"; 3]);
    assert_eq!(words(&report)[3..], ["retry"; 4]);
    let ran: Vec<_> = maths.ran().into_iter().map(|ran| ran.tool).collect();
    assert_eq!(
        (ran, texts.ids()),
        (vec!["add".into(), "sub".into()], vec!["x_t_upper".to_owned()])
    );
}

/// A set that cannot be listed.
struct Unreachable;

impl Toolset for Unreachable {
    fn id(&self) -> &str {
        "unreachable"
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        Err("the server is gone".into())
    }

    async fn run(&self, _: Permit) -> Result<ToolReturn, ToolError> {
        Err(ToolError::fatal("not reachable"))
    }
}

// I139: a set that fails to list ends the response with one error, and nothing runs.
#[tokio::test]
async fn i139_a_set_that_cannot_be_listed_is_one_error_with_its_cause() {
    let recorder = Recorder::new(["a"]);
    let tools = Tools::combined([recorder.clone().into(), Unreachable.into()]);
    let error = Turn::new(tools).run(vec![call("c1", "a", json!({}))]).await.unwrap_err();
    let Error::Tools(source) = error.error() else { panic!("{error:?}") };
    assert_eq!(source.to_string(), "the server is gone");
    assert!(recorder.ran().is_empty());
}

// T9: a set that fails to list on a resume leaves the pending calls unchanged.
#[tokio::test]
async fn a_set_that_cannot_be_listed_on_a_resume_keeps_the_pending_calls() {
    let recorder = Recorder::new(["a"]);
    let report =
        run_one(&Turn::new(recorder.clone().approval_required()), call("c1", "a", json!({}))).await;
    let suspended = report.into_suspended().unwrap();
    let answers = suspended.requests().answer().approve("c1").build().unwrap();
    let gone =
        Turn::new(Tools::combined([recorder.clone().approval_required(), Unreachable.into()]));
    let error = gone.resume(suspended.clone(), answers).await.unwrap_err();
    assert!(error.suspended() == Some(&suspended));
    assert!(recorder.ran().is_empty());
}

// --- external

#[tokio::test]
async fn the_arguments_of_external_tools_are_not_validated() {
    let schema = json!({"type": "object", "required": ["url"]});
    let tools = ExternalToolset::new("browser", [ToolDefinition::new("open", schema)]);
    let turn = Turn::new(tools);
    let report = run_one(&turn, call("c1", "open", json!({"wrong": true}))).await;
    let suspended = report.into_suspended().unwrap();
    let requests = suspended.requests();
    assert_eq!(requests.calls[0].args(), &Args::new().with("wrong", true));
    assert!(requests.approvals.is_empty());
    let answers = requests.answer().result("c1", "opened").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!((words(&report), content(&report, 0)), (vec!["returned"], json!("opened")));
}

// D2, A1: layers decide about external calls too, and an open question comes before the call is handed out.
#[tokio::test]
async fn an_external_call_is_handed_out_only_when_the_layers_allow_it() {
    let browser = || ExternalToolset::new("browser", [ToolDefinition::new("open", json!({}))]);
    let denied = Turn::new(browser().layered(decide_fn(|_, _| countersign::Decision::deny("no"))));
    assert_eq!(words(&run_one(&denied, call("c1", "open", json!({}))).await), ["denied"]);

    let asked = Turn::new(browser().approval_required());
    let report = run_one(&asked, call("c1", "open", json!({}))).await;
    let suspended = report.into_suspended().unwrap();
    assert_eq!(suspended.requests().approvals.len(), 1);
    assert!(suspended.requests().calls.is_empty());
    let answers = suspended.requests().answer().approve("c1").build().unwrap();
    let report = asked.resume(suspended, answers).await.unwrap();
    let suspended = report.into_suspended().unwrap();
    assert_eq!(suspended.requests().calls.len(), 1);
    let answers = suspended.requests().answer().result("c1", 7).build().unwrap();
    assert_eq!(content(&asked.resume(suspended, answers).await.unwrap(), 0), 7);
}

// --- with_metadata

// I137: metadata is merged into the definitions that the selector picks.
#[tokio::test]
async fn i137_with_metadata_merges_into_the_tools_that_match() {
    let tools = Recorder::of([
        ToolDefinition::new("a", json!({})).with_metadata("own", 1).with_metadata("shared", "old"),
        ToolDefinition::new("b", json!({})),
    ])
    .with_metadata(|_, it| it.name() == "a", "shared", "new")
    .with_metadata(|_, _| true, "all", true);
    let cx = call("c", "t", json!({})).context().clone();
    let definitions = tools.definitions(&cx).await.unwrap();
    let metadata = |at: usize| Value::Object(definitions[at].metadata().clone());
    assert_eq!(metadata(0), json!({"own": 1, "shared": "new", "all": true}));
    assert_eq!(metadata(1), json!({"all": true}));
}

#[tokio::test]
async fn a_filter_outside_sees_the_metadata_and_one_inside_does_not() {
    let tagged = |it: &ToolDefinition| it.metadata().contains_key("safe");
    let outside = Recorder::new(["a", "b"])
        .with_metadata(|_, it| it.name() == "a", "safe", true)
        .filtered(move |_, it| tagged(it));
    assert_eq!(names(&outside).await, ["a"]);
    let inside = Recorder::new(["a", "b"]).filtered(move |_, it| tagged(it)).with_metadata(
        |_, it| it.name() == "a",
        "safe",
        true,
    );
    assert!(names(&inside).await.is_empty());
}

// A stack that is called around the turn is refused; `UserError` says what to do.
#[tokio::test]
async fn tools_that_are_called_without_a_turn_execute_nothing() {
    use tower::ServiceExt as _;
    let recorder = Recorder::new(["a"]);
    let wrapped = [
        Tools::from(recorder.clone()),
        recorder.clone().approval_required(),
        recorder.clone().prefixed("p"),
        recorder.clone().renamed([("p_a", "a")]),
        Tools::combined([recorder.clone().into()]),
        recorder.clone().filtered(|_, _| true),
    ];
    for tools in wrapped {
        for name in ["a", "p_a"] {
            let shown = format!("{tools:?} {name}");
            match tools.clone().oneshot(call("c1", name, json!({}))).await {
                Ok(outcome) => assert_eq!(outcome.word(), "retry", "{shown}"),
                Err(error) => {
                    let error = error.downcast::<UserError>().unwrap();
                    assert!(matches!(*error, UserError::NoPass { .. }), "{shown}");
                }
            }
        }
    }
    assert!(recorder.ran().is_empty());
}
