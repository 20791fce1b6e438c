//! The ends of passes: each is audited once, and what ends badly ends its own call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::agent::text;
use countersign::call::{ToolDefinition, ToolKind};
use countersign::decision::{Preview, PreviewContent, Question};
use countersign::handler::{DenyAll, danger_approve_all};
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::message::ResponsePart;
use countersign::model::ModelResponse;
use countersign::outcome::ToolReturn;
use countersign::testing::ScriptedModel;
use countersign::turn::{PassEnd, TurnError};
use countersign::{
    Agent, Args, BoxError, Decision, DeferredToolHandler, DeferredToolRequests,
    DeferredToolResults, FunctionToolset, Message, Permit, RunContext, SuspendedRun, ToolCall,
    ToolError, Tools, ToolsExt, Toolset, Turn, decide_fn, schemars, tool_fn,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Recorder, call, content, stored, words};

/// The audited ends of each call, by its id.
type Ends = Arc<Mutex<BTreeMap<String, Vec<String>>>>;

fn audited(tools: Tools) -> (Turn, Ends) {
    let ends = Ends::default();
    let log = Arc::clone(&ends);
    let turn = Turn::new(tools).audit(move |_: &RunContext, end: &PassEnd<'_>| {
        let line = end.outcome().word().to_owned();
        log.lock().unwrap().entry(end.call().id().to_owned()).or_default().push(line);
    });
    (turn, ends)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// D8: "An audit sees the end of every pass, once: of a call that ran, was denied, is deferred, or has no tool."
    #[test]
    fn every_pass_of_every_call_is_audited_once(kinds in proptest::collection::vec(0_u8..5, 1..12), yes in any::<bool>()) {
        let calls: Vec<_> = kinds.iter().enumerate().map(|(n, kind)| {
            let tool = if *kind == 4 { "nothing" } else { "act" };
            call(&format!("c{n}"), tool, json!({"kind": kind}))
        }).collect();
        let policy = decide_fn(|_, call: &ToolCall| match call.args()["kind"].as_u64() {
            Some(0) => Decision::allow(),
            Some(1) => Decision::deny("no"),
            Some(2) => Decision::ask("sure?"),
            _ => Decision::allow().with_args(Args::new().with("kind", 0)),
        });
        let (turn, ends) = audited(Recorder::new(["act"]).layered(policy.named("policy")));
        tokio::runtime::Runtime::new().unwrap().block_on(async {
            let report = turn.run(calls).await.unwrap();
            if let Some(suspended) = report.into_suspended() {
                let requests = suspended.requests();
                let answer = requests.approvals.iter().fold(requests.answer(), |answer, call| match yes {
                    true => answer.approve(call.id()),
                    false => answer.deny(call.id(), "no"),
                });
                let answers = answer.answered_by("ann").build().unwrap();
                turn.resume(suspended, answers).await.unwrap();
            }
        });
        let ends = ends.lock().unwrap();
        for (n, kind) in kinds.iter().enumerate() {
            let expected: &[&str] = match (kind, yes) {
                (1, _) => &["denied"],
                // A person's no makes no pass.
                (2, false) => &["deferred"],
                (2, true) => &["deferred", "returned"],
                (4, _) => &["retry"],
                _ => &["returned"],
            };
            prop_assert_eq!(&ends[&format!("c{n}")], expected, "call {} of kind {}", n, kind);
        }
    }
}

/// A value that is nested this many levels deep.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!("end"), |inner, _| json!([inner]))
}

/// T5: "A stored result that is nested deeper is stored as its JSON text, with a note for the model."
#[tokio::test]
async fn a_deep_result_is_stored_as_its_text_and_the_run_suspends() {
    let tools = Recorder::new(["read", "pay"]).body(|_, _| Ok(nested(300)));
    let asks = decide_fn(|_, call: &ToolCall| match call.name() {
        "pay" => Decision::ask("sure?"),
        _ => Decision::allow(),
    });
    let turn = Turn::new(tools.layered(asks.named("asks")));
    let calls = vec![call("c1", "read", json!({})), call("c2", "pay", json!({}))];
    let suspended = stored(&turn.run(calls).await.unwrap().into_suspended().unwrap());
    let answers = suspended.requests().answer().approve("c2").answered_by("ann").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["returned", "returned"]);
    let told = content(&report, 0);
    let told = told.as_str().unwrap();
    assert!(told.starts_with("(Nested more than 64 levels deep"), "{told:.80}");
    assert!(told.ends_with(&nested(300).to_string()), "it loses nothing");
}

/// T5: "A report passes a deep result on as it came."
#[tokio::test]
async fn a_report_has_a_deep_result_as_it_came() {
    let tools = Recorder::new(["read"]).body(|_, _| Ok(nested(300)));
    let report = Turn::new(tools).run(vec![call("c1", "read", json!({}))]).await.unwrap();
    assert_eq!(content(&report, 0), nested(300));
}

/// A toolset whose host code is broken in one place.
#[derive(Clone, Copy, PartialEq)]
enum Broken {
    Id,
    Preview,
    Definitions,
    Nothing,
}

impl Toolset for Broken {
    fn id(&self) -> &str {
        assert!(*self != Self::Id, "no id");
        "broken"
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        if *self == Self::Definitions {
            std::future::pending::<()>().await;
        }
        Ok(vec![ToolDefinition::new("write", json!({"type": "object"}))])
    }

    async fn preview(&self, _: &RunContext, _: &str, _: &Args) -> Result<Vec<Preview>, BoxError> {
        if *self == Self::Preview {
            std::future::pending::<()>().await;
        }
        Ok(Vec::new())
    }

    async fn run(&self, _: Permit) -> Result<ToolReturn, ToolError> {
        Ok(ToolReturn::new("written"))
    }
}

fn asking(toolset: Broken) -> Tools {
    Tools::from(toolset).layered(decide_fn(|_, _: &ToolCall| Decision::ask("sure?")).named("asks"))
}

/// T6: "A `preview` or `definitions` that does not return in time ends its own call, and not the record of others."
#[tokio::test(start_paused = true)]
async fn what_does_not_return_in_time_is_given_up() {
    let write = || vec![call("c1", "write", json!({}))];
    let report = Turn::new(asking(Broken::Preview)).run(write()).await.unwrap();
    assert_eq!(words(&report), ["deferred"], "a person may decide without a preview");
    let requests = report.into_suspended().unwrap().requests();
    let previews: Vec<_> = requests.questions("c1").iter().flat_map(Question::previews).collect();
    let text = PreviewContent::Text { text: "it did not return in time".to_owned() };
    assert_eq!(previews.iter().map(|it| it.content()).collect::<Vec<_>>(), [&text]);

    let began = tokio::time::Instant::now();
    let turn = Turn::new(asking(Broken::Definitions)).describing_within(Duration::from_secs(3));
    let error = turn.run(write()).await.unwrap_err();
    let why = |error: &TurnError| std::error::Error::source(error.error()).unwrap().to_string();
    assert!(why(&error).contains("did not return in time"), "{}", why(&error));
    assert_eq!(began.elapsed().as_secs(), 3);

    let error = Turn::new(asking(Broken::Id)).run(write()).await.unwrap_err();
    assert!(why(&error).contains("panicked in place of giving its id"), "{}", why(&error));
    assert_eq!(
        words(&Turn::new(asking(Broken::Nothing)).run(write()).await.unwrap()),
        ["deferred"]
    );
}

/// A handler without a name that fails.
struct Nameless;

impl DeferredToolHandler for Nameless {
    fn name(&self) -> std::borrow::Cow<'static, str> {
        panic!("no name")
    }

    async fn handle(
        &self,
        _: &RunContext,
        _: &DeferredToolRequests,
    ) -> Result<DeferredToolResults, BoxError> {
        Err("the queue is down".into())
    }
}

/// T6, T9: "A panic of a name or a policy of the host ends its own call, never the record of the siblings."
#[tokio::test]
async fn a_panic_in_a_name_or_a_policy_loses_no_record() {
    let tools = Recorder::new(["read", "pay"]);
    let asks = || {
        decide_fn(|_, call: &ToolCall| match call.name() {
            "pay" => Decision::ask("sure?"),
            _ => Decision::allow(),
        })
        .named("asks")
    };
    let calls = || vec![call("c1", "read", json!({})), call("c2", "pay", json!({}))];
    let turn = Turn::new(tools.clone().layered(asks())).deferred_tool_handler(Nameless);
    let failed = turn.run(calls()).await.unwrap_err();
    assert!(failed.to_string().contains("Nameless"), "{failed}");
    assert_eq!(tools.ids(), ["c1"]);

    let ledger = Ledger::new(MemoryStore::new()).ask_policy(|_, _| panic!("no policy"));
    let turn = Turn::new(tools.layered(asks())).ledger(ledger);
    let report = turn.run(calls()).await.unwrap();
    assert_eq!(words(&report), ["returned", "denied"]);
    assert!(content(&report, 1).as_str().unwrap().contains("who may decide"));
}

/// L7: "A stored state without its turn is refused": which of its calls have run is not known.
#[tokio::test]
async fn a_stored_run_that_lost_its_turn_runs_nothing_again() {
    let history = vec![
        Message::user("tidy up"),
        Message::Response { parts: vec![ResponsePart::ToolCall(call("c1", "list", json!({})))] },
    ];
    let trusted = SuspendedRun::from_trusted_history(history);
    let mut state = serde_json::to_value(&trusted).unwrap();
    assert!(serde_json::from_value::<SuspendedRun>(state.clone()).is_ok());
    state.as_object_mut().unwrap().remove("trusted_history");
    state.as_object_mut().unwrap().remove("turn");
    let error = serde_json::from_value::<SuspendedRun>(state).unwrap_err();
    assert!(error.to_string().contains("it has no `turn`"), "{error}");
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
/// Moves a file to the bin.
struct Bin {
    #[allow(dead_code, reason = "only its schema is read")]
    path: String,
}

async fn bin(_: Bin) -> Result<String, ToolError> {
    Ok("moved".to_owned())
}

#[tokio::test]
async fn a_tool_without_a_description_has_that_of_its_arguments() {
    let tools = Tools::from(FunctionToolset::new().tool(tool_fn("bin", "", bin)));
    let listed = Turn::new(tools).definitions().await.unwrap();
    assert_eq!(listed[0].description(), "Moves a file to the bin.");
}

// Seeds: a test handler that approves everything also answers external calls; after a denial without an approver the model
// reads why it was asked about. D6.
#[tokio::test]
async fn a_handler_that_approves_all_gives_results_and_one_that_denies_all_says_why() {
    let tools = || {
        let of = |name, kind| ToolDefinition::new(name, json!({"type": "object"})).with_kind(kind);
        let tools = [of("delete", ToolKind::Function), of("render", ToolKind::External)];
        let asks = decide_fn(|_, call: &ToolCall| match call.name() {
            "delete" => Decision::ask("delete a.log?"),
            _ => Decision::allow(),
        });
        Recorder::of(tools).layered(asks.named("asks"))
    };
    let calls = || vec![call("c1", "delete", json!({})), call("c2", "render", json!({}))];
    let turn = Turn::new(tools()).deferred_tool_handler(DenyAll::default());
    let report = turn.run(calls()).await.unwrap();
    let no = "Denied: no approver is available for this call.";
    assert_eq!(content(&report, 0), format!("{no} It is asked about: delete a.log?"));
    assert_eq!(content(&report, 1), no);

    let own = Turn::new(tools()).deferred_tool_handler(DenyAll::new("not at night"));
    assert_eq!(content(&own.run(calls()).await.unwrap(), 0), "not at night");

    let approves = danger_approve_all().results_with("rendered elsewhere");
    let turn = Turn::new(tools()).deferred_tool_handler(approves);
    let report = turn.run(calls()).await.unwrap();
    assert_eq!(words(&report), ["returned", "returned"]);
    assert_eq!(content(&report, 1), "rendered elsewhere");
}

/// D8: "and of the calls of sub-agents": the call to the agent, and each call that the agent makes, under its path.
#[tokio::test]
async fn the_passes_of_agents_are_audited_with_those_of_their_parents() {
    let asks =
        Recorder::new(["rm"]).layered(decide_fn(|_, _| Decision::ask("sure?")).named("asks"));
    let rm = ModelResponse::calls([call("c1", "rm", json!({}))]);
    let cleaner = Agent::new(ScriptedModel::new([rm]), asks).output(text().or_deferred());
    let tools = FunctionToolset::new().tool(cleaner.as_tool("cleaner", "Cleans up"));
    let first = ModelResponse::calls([call("a1", "cleaner", json!({"prompt": "tidy"}))]);
    let ends = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&ends);
    let agent = Agent::new(ScriptedModel::new([first]), tools).output(text().or_deferred()).audit(
        move |cx: &RunContext, end: &PassEnd<'_>| {
            let path = cx.agent_path();
            log.lock().unwrap().push(format!(
                "{path} {} {}",
                end.call().name(),
                end.outcome().word()
            ));
        },
    );
    let run = agent.run("go").await.unwrap().into_suspended().unwrap();
    let answers = run.requests().answer().approve("a1/c1").answered_by("ann").build().unwrap();
    assert_eq!(agent.resume(run, answers).await.unwrap().text(), Some("Done."));
    let expected = [
        "root/cleaner rm deferred",
        "root cleaner deferred",
        "root/cleaner rm returned",
        "root cleaner returned",
    ];
    assert_eq!(*ends.lock().unwrap(), expected);
}

/// D8: a limit on questions denies a call at the end of its pass, and the audit is told of the denial alone.
#[tokio::test]
async fn a_call_beyond_a_limit_on_questions_is_audited_as_denied() {
    let asks = decide_fn(|_, _: &ToolCall| Decision::ask("sure?")).named("asks");
    let (turn, ends) = audited(Recorder::new(["act"]).layered(asks));
    let calls = vec![call("c1", "act", json!({"n": 1})), call("c2", "act", json!({"n": 2}))];
    turn.max_pending(1).run(calls).await.unwrap();
    let ends = ends.lock().unwrap();
    assert_eq!(
        (&*ends["c1"], &*ends["c2"]),
        (&["deferred".to_owned()][..], &["denied".to_owned()][..])
    );
}

/// T7: "A name of an agent has no `/`": `a/b` and the agent `b` behind `a` would have one path.
#[tokio::test]
async fn an_agent_whose_name_has_a_slash_is_refused_before_anything_runs() {
    let tools = Recorder::new(["rm"]);
    let inner = Agent::new(ScriptedModel::new([]), tools.clone());
    let refused =
        |error: String| error.contains("agent `a/b`") && error.contains("name without one");
    let turn = Turn::new(FunctionToolset::new().tool(inner.as_tool("a/b", "Cleans up")));
    let error = turn.run(vec![call("c1", "a/b", json!({"prompt": "tidy"}))]).await.unwrap_err();
    assert!(refused(error.to_string()), "{error}");
    let error = Turn::new(tools.clone()).agent("a/b").run(vec![call("c1", "rm", json!({}))]).await;
    assert!(refused(error.unwrap_err().to_string()));
    assert_eq!(tools.ids(), [""; 0]);
}

/// T6: where the canonical form of a name cannot be made, the name decides nothing; the record of the calls is there.
#[tokio::test]
async fn a_name_whose_canonical_form_panics_decides_nothing() {
    let tools = Recorder::new(["read", "pay"]);
    let asked = tools.clone().approval_required_if(|_, call| call.name() == "pay");
    let ledger = Ledger::new(MemoryStore::new()).canonical_names(|_| panic!("no directory"));
    let turn = Turn::new(asked).ledger(ledger.clone());
    let calls = vec![call("c1", "read", json!({})), call("c2", "pay", json!({}))];
    let suspended = turn.run(calls).await.unwrap().into_suspended().unwrap();
    let answers = suspended.requests().answer().approve("c2").answered_by("ann").build().unwrap();
    let report = turn.resume(suspended, answers).await.unwrap();
    assert_eq!(words(&report), ["returned", "deferred"]);
    assert_eq!(tools.ids(), ["c1"]);
    let record = ledger.list(Some(AskState::Pending), 1).await.unwrap().records.remove(0);
    assert_eq!(record.votes.len(), 0);
}
