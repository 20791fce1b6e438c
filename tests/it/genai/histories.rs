//! T3 over random runs: "Every call ends with one result, in model order", so that both providers take every history,
//! each also what was said to the other. And nothing runs twice.

use std::collections::BTreeSet;
use std::future::IntoFuture as _;

use countersign::agent::{RunError, RunResult, text};
use countersign::call::ToolKind;
use countersign::deferred::{CallResult, ToolApproved};
use countersign::outcome::{
    CallDeferred, DeferralKind, ModelRetry, ToolDenied, ToolFailed, ToolReturn,
};
use countersign::{
    Agent, Args, Decision, DeferredToolResults, Message, SuspendedRun, ToolCall, ToolDefinition,
    ToolError, Tools, ToolsExt, decide_fn,
};
use countersign_genai::GenaiModel;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::conversations::{done, stored};
use super::provider::{Part, Provider, Reply, Wire};
use crate::support::Recorder;

/// Tools, and names that are none.
const NAMES: [&str; 10] = [
    "read",
    "write",
    "fail",
    "again",
    "broken",
    "search",
    "hands_out",
    "lookup",
    "no tool at all",
    "",
];
const TEXTS: [&str; 5] = ["Let me see.", "", " \n", "ü\u{1f600}", "{\"error\": \"none\"}"];
/// What models make of ids. The empty one stands for one that is new.
const IDS: [&str; 6] =
    ["", "", "", "call_1", "functions.read:0", "ids of more than forty characters are none at all"];
const ARGS: [&str; 8] =
    ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "{}", "", "null", "{\"n\":", "{\"n\":1,\"n\":2}"];

/// What a layer says about the calls of each tool.
#[derive(Debug, Clone, Copy)]
enum Says {
    Allow,
    Ask,
    Deny,
    Rewrite,
}

/// The choices of one side; each is a number, taken modulo the number of options.
type Choice = u8;

#[derive(Debug, Clone)]
struct Case {
    layers: Vec<[Says; NAMES.len()]>,
    script: Vec<Reply>,
    choices: Vec<Choice>,
    streaming: bool,
}

fn part() -> impl Strategy<Value = Part> {
    let text = prop::sample::select(&TEXTS[..]).prop_map(|text| Part::Text(text.into()));
    let call = (prop::sample::select(&IDS[..]), any::<u32>(), 0..NAMES.len(), 0..ARGS.len());
    let call = call.prop_map(|(id, new, name, args)| Part::Call {
        id: if id.is_empty() && new % 8 > 0 { format!("c{new}") } else { id.into() },
        name: NAMES[name].into(),
        args: ARGS[args].into(),
    });
    let thinking = any::<bool>().prop_map(|plain| match plain {
        true => Part::Thinking { text: "hm".into(), signature: "c2ln".into() },
        false => Part::Redacted("aGlkZGVu".into()),
    });
    prop_oneof![1 => text, 5 => call, 1 => thinking]
}

fn reply() -> impl Strategy<Value = Reply> {
    let parts = || prop::collection::vec(part(), 0..8).prop_map(thoughts_first);
    prop_oneof![
        8 => parts().prop_map(Reply::Says),
        1 => Just(Reply::Fails(500, json!({"error": {"type": "api_error"}}))),
        1 => (parts(), 0..9_usize).prop_map(|(parts, n)| Reply::Ends(parts, n)),
        1 => (parts(), 0..9_usize).prop_map(|(parts, n)| Reply::GivesUp(parts, n)),
        1 => parts().prop_map(|parts| Reply::Stops(parts, "max_tokens")),
        1 => parts().prop_map(|parts| Reply::Stops(parts, "length")),
    ]
}

/// As providers send them.
fn thoughts_first(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_by_key(|part| !matches!(part, Part::Thinking { .. } | Part::Redacted(_)));
    parts
}

fn case() -> impl Strategy<Value = Case> {
    let says = prop_oneof![
        4 => Just(Says::Allow),
        3 => Just(Says::Ask),
        1 => Just(Says::Deny),
        1 => Just(Says::Rewrite),
    ];
    let table = prop::collection::vec(says, NAMES.len());
    let table = table.prop_map(|says| std::array::from_fn(|at| says[at]));
    let layers = prop::collection::vec(table, 0..3);
    let script = prop::collection::vec(reply(), 1..8);
    (layers, script, prop::collection::vec(any::<Choice>(), 1..60), any::<bool>()).prop_map(
        |(layers, script, choices, streaming)| Case { layers, script, choices, streaming },
    )
}

fn recorder() -> Recorder {
    let of = |name: &str| ToolDefinition::new(name, json!({"type": "object"}));
    let tools = NAMES[..8].iter().map(|name| match *name {
        "search" | "lookup" => of(name).with_kind(ToolKind::External),
        "write" => of(name).with_kind(ToolKind::Unapproved).with_sequential(true),
        _ => of(name),
    });
    Recorder::of(tools).body(|_, call| match call.name() {
        "fail" => Err(ToolFailed::new("failed").into()),
        "again" => Err(ModelRetry::new("again").into()),
        "broken" => Err(ToolError::fatal("broken")),
        "hands_out" => Err(CallDeferred::new().into()),
        _ => Ok(call.args().to_value()),
    })
}

fn stack(recorder: &Recorder, layers: &[[Says; NAMES.len()]]) -> Tools {
    let start = Tools::from(recorder.clone());
    layers.iter().enumerate().fold(start, |tools, (number, table)| {
        let table = *table;
        let layer = decide_fn(move |_, call: &ToolCall| {
            let at = NAMES.iter().position(|name| *name == call.name()).unwrap_or(0);
            match table[at] {
                Says::Allow => Decision::allow(),
                Says::Ask => Decision::ask("sure?"),
                Says::Deny => Decision::deny("no"),
                Says::Rewrite => {
                    Decision::allow().with_args(call.args().clone().with("by", "a layer"))
                }
            }
        });
        tools.layered(layer.named(format!("layer {number}")))
    })
}

/// The choices of a case, in turn.
struct Choices<'a>(std::iter::Cycle<std::slice::Iter<'a, Choice>>);

impl Choices<'_> {
    fn of(&mut self, n: u8) -> u8 {
        self.0.next().copied().unwrap_or_default() % n
    }

    /// One answer for each call that waits, or none for now.
    fn answers(&mut self, run: &SuspendedRun) -> DeferredToolResults {
        let requests = run.requests();
        requests.iter().fold(DeferredToolResults::new(), |results, call| {
            let id = call.id();
            let external = requests.kind(id) != Some(DeferralKind::Approval);
            match (external, self.of(5)) {
                (_, 4) => results.leave(id),
                (false, 0 | 1) => results.approve(id),
                (false, 2) => results.approval(id, ToolDenied { message: "not now".into() }),
                (false, _) => {
                    results.approval(id, ToolApproved::with_args(Args::new().with("edited", true)))
                }
                (true, 0) => results.result(id, json!({"found": [1, 2]})),
                (true, 1) => results.result(id, ModelRetry::new("say more")),
                (true, 2) => results.result(id, ToolFailed::new("")),
                (true, _) => results.result(id, read_this()),
            }
        })
    }
}

fn read_this() -> CallResult {
    CallResult::Return(ToolReturn {
        content: Some(json!(["read", "this"])),
        ..ToolReturn::new(Value::Null)
    })
}

/// Plays a case, and gives the history it ends with.
async fn play(case: &Case, models: &[GenaiModel; 2], recorder: &Recorder) -> Vec<Message> {
    let tools = stack(recorder, &case.layers);
    let agents = models.clone().map(|model| {
        let model = model.streaming(case.streaming);
        Agent::new(model, tools.clone()).output(text().or_deferred()).max_retries(100)
    });
    let mut choices = Choices(case.choices.iter().cycle());
    let mut ended = agents[usize::from(choices.of(2))].run("go").await;
    for _ in 0..12 {
        let agent = &agents[usize::from(choices.of(2))];
        ended = match ended.map(waits) {
            Ok((Some(run), _)) => go_on(agent, stored(&run), &mut choices).await,
            Ok((None, history)) => match choices.of(3) {
                0 => return history,
                _ => agent.run("and then?").history(history).await,
            },
            Err(error) => go_on(agent, stored(&error.into_suspended()), &mut choices).await,
        };
    }
    match ended.map(waits) {
        Ok((run, history)) => run.map_or(history, |run| stored(&run).close("enough")),
        Err(error) => stored(&error.into_suspended()).close("enough"),
    }
}

fn waits(result: RunResult) -> (Option<SuspendedRun>, Vec<Message>) {
    let history = result.history().to_vec();
    (result.into_suspended(), history)
}

async fn go_on(
    agent: &Agent,
    run: SuspendedRun,
    choices: &mut Choices<'_>,
) -> Result<RunResult, RunError> {
    match choices.of(6) {
        0 => agent.run("something else").history(run.close("the user sent another message")).await,
        1 => {
            let answers = choices.answers(&run);
            agent.resume(run, answers).saying("and hurry").await
        }
        _ => {
            let answers = choices.answers(&run);
            agent.resume(run, answers).await
        }
    }
}

/// Plays every case, beginning with this provider, and sends its final history to both.
fn accepted(first: Wire, second: Wire) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let providers = runtime.block_on(async {
        let one = Provider::start(first).await;
        let two = one.beside(second).await;
        [one, two]
    });
    // One client for all cases: a new one reads all certificates of the machine.
    let models = providers.each_ref().map(Provider::model);
    let config =
        ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() };
    let played = TestRunner::new(config).run(&case(), |case| {
        let recorder = recorder();
        providers[1].again([]);
        providers[0].again(case.script.iter().cloned().chain(vec![done(); 60]));
        let history = runtime.block_on(play(&case, &models, &recorder));
        let refused = providers.each_ref().map(Provider::refused).concat();
        prop_assert_eq!(refused, Vec::<String>::new());
        let ids = recorder.ids();
        let distinct: BTreeSet<_> = ids.iter().collect();
        prop_assert_eq!(ids.len(), distinct.len(), "twice: {:?}", ids);

        providers[0].again([done(), done()]);
        for model in &models {
            let agent = Agent::new(model.clone(), recorder.clone());
            let run =
                runtime.block_on(agent.run("and finally?").history(history.clone()).into_future());
            let refused = providers.each_ref().map(Provider::refused);
            prop_assert!(run.is_ok_and(|run| run.text() == Some("done")), "{:?}", refused);
        }
        Ok(())
    });
    if let Err(error) = played {
        panic!("{error}");
    }
}

#[test]
fn openai_takes_every_history() {
    accepted(Wire::OpenAi, Wire::Anthropic);
}

#[test]
fn anthropic_takes_every_history() {
    accepted(Wire::Anthropic, Wire::OpenAi);
}
