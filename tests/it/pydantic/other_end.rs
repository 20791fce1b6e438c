//! The real PydanticAI at the other end of an approval, which `.ci/pydantic` installs: requests, answers and histories
//! go from one language to the other as text.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use countersign::agent::text;
use countersign::call::ToolKind;
use countersign::message::ReturnKind;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Args, DeferredToolRequests, DeferredToolResults, Message, SuspendedRun, SuspendedTurn,
    ToolCall, ToolDefinition, Turn, schemars,
};
use serde_json::{Value, json};

use crate::support::{Recorder, results};

/// The Python in which PydanticAI is installed.
pub(crate) fn python() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let folder = built.ancestors().nth(3).unwrap().join("pydantic");
    assert!(folder.join(".installed").exists(), "run `.ci/pydantic` first");
    folder.join("venv/bin/python")
}

/// Lets PydanticAI do its part.
fn other_end(part: &str, given: &Value) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("pydantic/other_end.py");
    let mut run = Command::new(python())
        .arg(script)
        .arg(part)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    run.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = run.wait_with_output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{part}: {problem}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The Python of the documentation: the first such block of the page.
fn recipe() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs/pydantic.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```python\n").nth(1).expect("the page has a block of Python");
    block.split("```").next().unwrap().to_owned()
}

fn read<T: serde::de::DeserializeOwned>(made: &Value, key: &str) -> T {
    serde_json::from_str(made[key].as_str().unwrap()).unwrap()
}

// "Requests, answers and calls have PydanticAI's JSON, so that the two ends of one approval may be in two languages":
// Python asks, Rust answers, Python resumes.
#[test]
fn python_asks_rust_answers_and_python_resumes() {
    let asked = other_end("ask", &json!({}));
    assert_eq!(asked["ran"], json!([["price", "Äpfel"]]));
    let requests: DeferredToolRequests = read(&asked, "requests");
    let ids: Vec<_> = requests.iter().map(ToolCall::id).collect();
    assert_eq!(ids, ["c1", "c2", "c3", "c4"]);
    assert_eq!(requests.get("c2").unwrap().args().str("to"), Some("bob"), "arguments as text");
    assert_eq!(requests.metadata["c4"]["queue"], "gpu");
    assert_eq!(requests.batch(), None);

    let answers = requests
        .answer()
        .approve("c1")
        .approve_with("c2", Args::new().with("euros", 2).with("to", "bob"))
        .deny("c3", "too much for eve")
        .result("c4", json!({"frames": 3}))
        .answered_by("ann")
        .build()
        .unwrap();
    let results = serde_json::to_string(&answers).unwrap();
    let resumed = other_end("resume", &json!({"history": asked["history"], "results": results}));
    assert_eq!(resumed["ran"], json!([["pay", 2.0, "bob"], ["pay", 5.0, "Zoë"]]));
    let told = [
        "c0 success: 2 euros",
        "c1 success: paid Zoë",
        "c2 success: paid bob",
        "c3 denied: too much for eve",
        "c4 success: {'frames': 3}",
    ];
    assert_eq!(resumed["text"], told.join("\n"));
}

#[derive(serde::Deserialize, serde::Serialize, schemars::JsonSchema)]
struct Pay {
    euros: f64,
    to: String,
}

/// The same tools in Rust, and their record.
fn turn() -> (Turn, Recorder) {
    let pay = schemars::schema_for!(Pay).to_value();
    let pay = ToolDefinition::new("pay", pay).with_kind(ToolKind::Unapproved);
    let render = ToolDefinition::new("render", json!({"type": "object"}));
    let render = render.with_kind(ToolKind::External);
    let recorder = Recorder::of([pay, render]);
    (Turn::new(recorder.clone()), recorder)
}

async fn suspended() -> SuspendedTurn {
    let pay = |id: &str, euros: f64, to: &str| {
        ToolCall::new(id, "pay", json!({"euros": euros, "to": to}))
    };
    let render = ToolCall::new("c4", "render", json!({}));
    let calls = vec![pay("c1", 5.0, "Zoë"), pay("c2", 2.5, "bob"), pay("c3", 900.0, "eve"), render];
    turn().0.of_run("run-1", 0).run(calls).await.unwrap().into_suspended().unwrap()
}

/// The answers of a Python service to these requests.
fn answered(requests: &DeferredToolRequests) -> Value {
    let requests = serde_json::to_string(requests).unwrap();
    other_end(
        "answer",
        &json!({
            "requests": requests, "recipe": recipe(), "approve": ["c1"], "calls": {"c4": {"frames": 3}},
            "edit": {"c2": {"euros": 2, "to": "bob"}}, "deny": {"c3": "too much for eve"},
        }),
    )
}

// Rust asks, Python answers, Rust resumes: by the recipe of the documentation the answers stay bound (rule A6).
#[tokio::test]
async fn rust_asks_and_the_answers_of_python_stay_bound_by_the_recipe() {
    let waiting = suspended().await;
    let requests = waiting.requests();
    let made = answered(&requests);
    let mut again: Value = read(&made, "again");
    let mut sent = serde_json::to_value(&requests).unwrap();
    assert_eq!(again["calls"][0]["args"], sent["calls"][0]["args"]);
    // PydanticAI leaves out what it has no field for, which is why the recipe is needed.
    assert!(sent.as_object_mut().unwrap().remove("_countersign").is_some());
    assert!(again.as_object_mut().unwrap().remove("_countersign").is_none());

    let bound: DeferredToolResults = read(&made, "bound");
    assert!(bound.is_bound());
    let (turn, recorder) = turn();
    let report = turn.require_bound_answers().resume(waiting, bound).await.unwrap();
    let ran: Vec<_> = recorder.ran().into_iter().map(|ran| json!(ran.args)).collect();
    assert_eq!(ran, [json!({"euros": 5.0, "to": "Zoë"}), json!({"euros": 2, "to": "bob"})]);
    assert_eq!(report.calls()[2].outcome().text().unwrap(), "too much for eve");
    assert_eq!(report.calls()[3].outcome().content(), Some(json!({"frames": 3})));
    assert_eq!(report.calls()[0].answered().unwrap().by(), Some("ann"));
}

// "Bare answers (PydanticAI's JSON) carry neither: they are matched by id, and `require_bound_answers` refuses them", and
// bound answers do not fit another batch (rule A6).
#[tokio::test]
async fn answers_of_python_without_the_recipe_are_for_any_call_of_that_id() {
    let waiting = suspended().await;
    let made = answered(&waiting.requests());
    let bare: DeferredToolResults = read(&made, "bare");
    assert!(!bare.is_bound());
    let (turn_, recorder) = turn();
    let refused = turn_.clone().require_bound_answers().resume(waiting, bare.clone()).await;
    let waiting = refused.unwrap_err().into_suspended().unwrap();
    assert!(recorder.ran().is_empty());
    assert!(turn_.resume(waiting, bare).await.unwrap().suspended().is_none());
    assert_eq!(recorder.ran().len(), 2);

    // The same calls in another response: what was shown for the first is not taken for the second.
    let calls = suspended().await.calls().map(|(call, _)| call.clone()).collect();
    let (turn_, recorder) = turn();
    let other =
        turn_.clone().of_run("run-1", 1).run(calls).await.unwrap().into_suspended().unwrap();
    let bound: DeferredToolResults = read(&made, "bound");
    turn_.resume(other, bound).await.unwrap_err();
    assert!(recorder.ran().is_empty());
}

// A conversation goes from one language to the other: the history of a suspended run, without the rest of its state.
#[tokio::test]
async fn a_run_of_python_is_resumed_in_rust_and_one_of_rust_in_python() {
    let asked = other_end("ask", &json!({}));
    let history: Vec<Message> = read(&asked, "history");
    let (done, recorder) = (ScriptedModel::new([]).then(ModelResponse::text("Done.")), turn().1);
    let agent = Agent::new(done, recorder.clone()).output(text().or_deferred());
    let run = SuspendedRun::from_trusted_history(history);
    let answers = DeferredToolResults::new().approve("c1").deny("c2", "no").deny("c3", "no");
    let run = agent.resume(run, answers.result("c4", json!(3))).await.unwrap();
    let ran: Vec<_> = recorder.ran().into_iter().map(|ran| ran.id).collect();
    assert_eq!((run.text(), ran), (Some("Done."), vec!["c1".to_owned()]));

    // `c0` had its result in Python, and has not run again; now back.
    let told: Vec<_> = results(run.history()).into_iter().map(|(id, kind, _)| (id, kind)).collect();
    let (success, denied) = (ReturnKind::Success, ReturnKind::Denied);
    let kinds = [("c0", success), ("c1", success), ("c2", denied), ("c3", denied), ("c4", success)];
    assert_eq!(told, kinds.map(|(id, kind)| (id.to_owned(), kind)));

    let model =
        ScriptedModel::calls([ToolCall::new("c1", "pay", json!({"euros": 1.5, "to": "Zoë"}))]);
    let agent = Agent::new(model, turn().1).output(text().or_deferred());
    let run = agent.run("Pay Zoë").await.unwrap().into_suspended().unwrap();
    let history = serde_json::to_string(run.history()).unwrap();
    let answers = run.requests().answer().approve("c1").build().unwrap();
    let answers = serde_json::to_string(&answers).unwrap();
    let resumed = other_end("resume", &json!({"history": history, "results": answers}));
    assert_eq!(resumed["ran"], json!([["pay", 1.5, "Zoë"]]));
    let history: Vec<Message> = read(&resumed, "history");
    assert_eq!(results(&history), [("c1".to_owned(), success, json!("paid Zoë"))]);
}
