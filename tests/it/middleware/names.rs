//! Names: a layer is for tools that exist (D4), and no two layers share a question (D10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use countersign::call::Parts;
use countersign::middleware::{Chain, danger_first_decision_wins, when};
use countersign::testing::ScriptedModel;
use countersign::turn::TurnError;
use countersign::{
    Agent, Decision, Error, FunctionToolset, RunContext, ToolCall, ToolMiddleware,
    ToolMiddlewareExt, Tools, ToolsExt, Turn, UserError, decide_fn, from_fn,
};
use proptest::prelude::*;
use serde_json::json;
use tower::ServiceBuilder;

use crate::support::{Buffer, Recorder, call, content, stored, subscriber, words};

fn deny() -> impl ToolMiddleware + Clone {
    decide_fn(|_, _| Decision::deny("no")).named("never")
}

async fn run(tools: impl Into<Tools>) -> Result<countersign::TurnReport, TurnError> {
    Turn::new(tools).run(vec![call("c1", "refund", json!({}))]).await
}

fn unknown(error: &TurnError) -> UserError {
    let Error::User(error) = error.error() else { panic!("{error:?}") };
    error.clone()
}

#[tokio::test]
async fn a_layer_for_a_tool_that_does_not_exist_is_an_error_when_the_tools_are_listed() {
    // D4: "A layer for tools by name (`for_tools`) has to name tools that exist at its place in the stack".
    let typo = || deny().for_tools(["list", "refnud"]);
    let recorder = Recorder::new(["refund", "list", "mail", "search"]);
    let stacks: Vec<Tools> = vec![
        recorder.clone().layered(typo()),
        recorder.clone().layered(typo().into_layer()),
        recorder.clone().layered(ServiceBuilder::new().layer(typo()).layer(Chain::new())),
        recorder.clone().layered(Chain::new().with(deny()).with(typo())),
        recorder.clone().layered(when(|_, _| false, deny()).otherwise(typo())),
        recorder.clone().layered(danger_first_decision_wins().with(Some(typo()))),
        recorder.clone().layered(typo()).prefixed("shop"),
    ];
    for tools in stacks {
        let shown = format!("{tools:?}");
        let error = run(tools).await.expect_err(&shown);
        let nearest = ["refund", "search", "list"].map(str::to_owned).to_vec();
        let (layer, name) = ("never".to_owned(), "refnud".to_owned());
        assert_eq!(unknown(&error), UserError::UnknownTool { layer, name, nearest }, "{shown}");
    }
    assert!(recorder.ran().is_empty());

    let error = run(Recorder::new(["refund"]).layered(typo())).await.unwrap_err();
    assert_eq!(
        unknown(&error).to_string(),
        "the layer `never` is for a tool `list`, and there is none where it stands (the nearest is `refund`): correct \
         the name in `for_tools`, as the wrappers inside have left it; for a tool that comes and goes, use `when`"
    );
}

#[tokio::test]
async fn names_are_those_at_the_level_of_the_layer() {
    let tools = || Recorder::new(["refund", "list"]);
    let renamed = tools().renamed([("reimburse", "refund")]);
    let error = run(renamed.clone().layered(deny().for_tools(["refund"]))).await.unwrap_err();
    assert!(matches!(unknown(&error), UserError::UnknownTool { name, .. } if name == "refund"));
    run(renamed.layered(deny().for_tools(["reimburse"]))).await.unwrap();
    run(tools().layered(deny().for_tools(["refund"])).prefixed("shop")).await.unwrap();

    // A tool that a wrapper hides from the model, perhaps only in this run, exists.
    let hidden = tools().filtered(|_, tool| tool.name() != "refund");
    run(hidden.clone().layered(deny().for_tools(["refund"]))).await.unwrap();
    let hidden = Tools::combined([hidden.prefixed("a"), tools().prepared(|_, _| Vec::new())]);
    run(hidden.clone().layered(deny().for_tools(["a_refund", "list"]))).await.unwrap();
    let shown = hidden.definitions(&RunContext::default()).await.unwrap();
    assert_eq!(shown.iter().map(|tool| tool.name()).collect::<Vec<_>>(), ["a_list"]);
}

#[tokio::test]
async fn a_layer_around_an_agent_may_be_for_a_tool_of_the_agents() {
    // T7: every middleware around the agent decides about its calls too.
    let recorder = Recorder::new(["refund"]);
    let clerk =
        Agent::new(ScriptedModel::calls([call("c1", "refund", json!({}))]), recorder.clone());
    let tools = Tools::from(FunctionToolset::new().tool(clerk.as_tool("clerk", "Refunds")));
    let tools = tools.layered(deny().for_tools(["refund"]));
    let report =
        Turn::new(tools).run(vec![call("p1", "clerk", json!({"prompt": "go"}))]).await.unwrap();
    assert_eq!(words(&report), ["returned"]);
    assert!(recorder.ran().is_empty());
}

/// Asks the same question as every other of its kind, while it is switched on.
#[derive(Clone)]
struct Asks(Arc<AtomicBool>);

impl Asks {
    fn new(on: bool) -> Self {
        Self(Arc::new(AtomicBool::new(on)))
    }
}

impl ToolMiddleware for Asks {
    async fn before_tool_call(&self, _: &RunContext, _: &ToolCall) -> Decision {
        match self.0.load(Ordering::Relaxed) {
            true => Decision::ask("sure?"),
            false => Decision::allow(),
        }
    }
}

#[tokio::test]
async fn a_question_that_two_layers_could_ask_is_refused() {
    // D10: two middleware on the way of a call that have one name do not ask: it would be one question.
    let (first, second) = (Asks::new(true), Asks::new(false));
    let recorder = Recorder::new(["refund"]);
    let stacks: Vec<Tools> = vec![
        recorder.clone().layered(first.clone().into_layer()).layered(second.clone().into_layer()),
        recorder.clone().layered(
            ServiceBuilder::new()
                .layer(first.clone().into_layer())
                .layer(Chain::new().with(second.clone())),
        ),
        recorder.clone().layered(when(|_, _| true, first.clone()).otherwise(second.clone())),
        recorder.clone().layered(Chain::new().with(first.clone()).with(second.clone()).parallel()),
        recorder
            .clone()
            .layered(from_fn(async |_, _| Decision::ask("a")))
            .layered(decide_fn(|_, _| Decision::allow())),
    ];
    for tools in stacks {
        let log = Buffer::default();
        let _logging = tracing::subscriber::set_default(subscriber(&log));
        let report = run(tools).await.unwrap();
        assert_eq!(words(&report), ["denied"]);
        let name = report.calls()[0].denied_by().unwrap().to_owned();
        let told = format!("Not executed: the layer `{name}` failed to decide about this call.");
        assert_eq!(content(&report, 0), told.as_str(), "refused like a failed middleware (D4)");
        let warned = format!(
            "two middleware have one name: an ASK of either is refused, give them names of their own with `named` layer={name} tool=\"refund\""
        );
        assert!(log.text().contains(&warned), "the host is warned when the tools are listed");
        let refused = format!("two middleware around the tool are called `{name}`");
        assert!(log.text().contains(&refused), "the host learns why: {}", log.text());
    }
    assert!(recorder.ran().is_empty());
}

/// Passes each decision to the middleware inside, and does not list it.
struct Wrapper<M>(M);

impl<M: ToolMiddleware> ToolMiddleware for Wrapper<M> {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.before_tool_call(cx, call).await
    }
}

/// A composite that lists the members of the middleware inside.
struct Listing<M>(M);

impl<M: ToolMiddleware> ToolMiddleware for Listing<M> {
    fn parts(&self, parts: &mut Parts) {
        parts.members(|parts| self.0.parts(parts));
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        self.0.before_tool_call(cx, call).await
    }
}

#[tokio::test]
async fn a_custom_composite_asks_for_the_members_that_it_lists() {
    // D10: an answer covers a question only of the layer that asked it, also where composites hide the layers.
    let recorder = Recorder::new(["refund"]);
    let members = |on| Chain::new().with(Asks::new(on));
    let hidden = || Wrapper(members(true)).into_layer();
    let log = Buffer::default();
    let _logging = tracing::subscriber::set_default(subscriber(&log));
    for tools in [
        recorder.clone().layered(hidden()),
        recorder.clone().layered(hidden()).layered(Wrapper(members(false)).into_layer()),
    ] {
        assert_eq!(words(&run(tools).await.unwrap()), ["denied"]);
    }
    let told = "which it does not list, so that another middleware could ask under the same name: list the members in its `ToolMiddleware::parts`";
    assert!(log.text().contains(told), "the host learns what to do: {}", log.text());

    let listed = |on| Listing(members(on)).into_layer();
    assert_eq!(words(&run(recorder.clone().layered(listed(true))).await.unwrap()), ["deferred"]);
    let two = recorder.clone().layered(listed(true)).layered(listed(false));
    assert_eq!(words(&run(two).await.unwrap()), ["denied"]);
    // A wrapper around one middleware asks under its own name.
    let one = recorder.clone().layered(Wrapper(Asks::new(true)).into_layer());
    assert_eq!(words(&run(one).await.unwrap()), ["deferred"]);
    assert!(recorder.ran().is_empty());
}

#[tokio::test]
async fn layers_with_distinct_names_ask_separately() {
    // D10: an answer covers a question only of the layer that asked it.
    let (first, second) = (Asks::new(true), Asks::new(false));
    let recorder = Recorder::new(["refund"]);
    let turn = Turn::new(
        recorder
            .clone()
            .layered(first.named("amount").into_layer())
            .layered(second.clone().named("fraud").into_layer()),
    );
    let report = turn.run(vec![call("c1", "refund", json!({}))]).await.unwrap();
    let waits = stored(&report.into_suspended().unwrap());
    second.0.store(true, Ordering::Relaxed);
    let answers = waits.requests().answer().approve("c1").build().unwrap();
    let report = turn.resume(waits, answers).await.unwrap();
    assert_eq!(words(&report), ["deferred"], "the second question was shown to no person");
    let waits = stored(&report.into_suspended().unwrap());
    let requests = waits.requests();
    let askers: Vec<_> = requests.questions("c1").iter().map(|it| it.layer()).collect();
    assert_eq!(askers, ["fraud", "amount"]);
    let answers = requests.answer().approve("c1").build().unwrap();
    assert_eq!(words(&turn.resume(waits, answers).await.unwrap()), ["returned"]);
}

#[tokio::test]
async fn equal_names_that_never_ask_or_never_meet_are_accepted() {
    // D10: names that are unique, and equal names that never ask, need nothing.
    let allows = || decide_fn(|_, _| Decision::allow()).named("policy");
    let denies = || decide_fn(|_, _| Decision::deny("no")).named("policy");
    let tools = Recorder::new(["refund"]).layered(allows()).layered(denies()).layered(allows());
    assert_eq!(content(&run(tools).await.unwrap(), 0), "no");
    let asks = || Asks::new(true).into_layer();
    let apart = Tools::combined([
        Recorder::new(["refund"]).id("a").layered(asks()),
        Recorder::new(["list"]).id("b").layered(asks()),
    ]);
    assert_eq!(words(&run(apart).await.unwrap()), ["deferred"]);
    let twice = Recorder::new(["refund"]).approval_required().approval_required_if(|_, _| true);
    let report = run(twice).await.unwrap();
    let requests = report.suspended().unwrap().requests();
    assert_eq!(requests.questions("c1").len(), 1, "these wrappers share their question on purpose");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    // D10: nothing runs that a layer asks about which has not asked before it was approved.
    #[test]
    fn no_answer_covers_the_question_of_another_layer(
        layers in prop::collection::vec((0..3_usize, any::<bool>(), any::<bool>()), 1..5),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let recorder = Recorder::new(["refund"]);
        let switches: Vec<_> = layers.iter().map(|(_, first, _)| Asks::new(*first)).collect();
        let tools = layers.iter().zip(&switches).fold(
            Tools::from(recorder.clone()),
            |tools, ((name, ..), asks)| {
                tools.layered(asks.clone().named(["a", "b", "c"][*name]).into_layer())
            },
        );
        let turn = Turn::new(tools);
        runtime.block_on(async {
            let report = turn.run(vec![call("c1", "refund", json!({}))]).await.unwrap();
            let Some(waits) = report.into_suspended() else { return };
            for ((.., second), asks) in layers.iter().zip(&switches) {
                asks.0.store(*second, Ordering::Relaxed);
            }
            let answers = waits.requests().answer().approve("c1").build().unwrap();
            turn.resume(waits, answers).await.unwrap();
        });
        let asked_before = layers.iter().any(|(_, first, _)| *first);
        let unseen = layers.iter().any(|(_, first, second)| *second && !first);
        prop_assert!(recorder.ran().is_empty() || !asked_before || !unseen, "{layers:?}");
    }
}
