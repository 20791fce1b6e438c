//! Suspended and stopped runs, with the answers to their pending calls.

use std::collections::BTreeSet;
use std::path::Path;

use countersign::outcome::ToolFailed;
use countersign::testing::ScriptedModel;
use countersign::{
    DeferredToolRequests, DeferredToolResults, SuspendedRun, SuspendedTurn, ToolsExt, Turn,
};
use serde_json::{Map, Value, json};

use super::stack::{agent, bank, every_way, ran, resuming, two};
use super::{read, write};
use crate::support::{Recorder, call, results};

/// The parts of each run, as `{run}.{part}.json`.
const PARTS: [&str; 4] = ["run", "requests", "answers", "ended"];

pub(super) async fn write_all(to: &Path) {
    let (says, worker_says) = every_way();
    let bank = bank();
    let agent = agent(ScriptedModel::new([says]), ScriptedModel::new([worker_says]), &bank);
    let run = agent.run("Do everything.").await.unwrap().into_suspended().unwrap();
    let answers = everything(&run.requests());
    keep(to, "every_way", run, &answers).await;

    let agent = resuming_with(ScriptedModel::new([two()]));
    let run = agent.run("Do it twice.").await.unwrap().into_suspended().unwrap();
    let first = run.requests().answer().approve("a1").leave("a2").answered_by("ann").build();
    let run = agent.resume(run, first.unwrap()).await.unwrap().into_suspended().unwrap();
    let answers = run.requests().answer().approve("a1").deny("a2", "").answered_by("bob").build();
    keep(to, "asked_again", run, &answers.unwrap()).await;

    let stopped = resuming_with(ScriptedModel::new([]).then_error("the line is dead"))
        .run("Go.")
        .await
        .unwrap_err();
    keep(to, "stopped_before", stopped.into_suspended(), &DeferredToolResults::new()).await;

    let turn = Turn::new(super::stack::bank().approval_required()).of_run("turn", 3).agent("clerk");
    let report = turn.run(vec![call("t1", "look", json!({"n": 1}))]).await.unwrap();
    write(to, "turn.json", &json!(report.into_suspended().unwrap()));
}

fn resuming_with(says: ScriptedModel) -> countersign::Agent {
    agent(says, ScriptedModel::new([]), &bank())
}

/// An answer of every kind.
fn everything(requests: &DeferredToolRequests) -> DeferredToolResults {
    let metadata = Map::from_iter([("ticket".to_owned(), json!(7))]);
    let answer = requests.answer().approve_with("c6", countersign::Args::new().with("n", 7));
    let answer = answer.deny("c7", "not today").metadata("c6", metadata).answered_by("ann");
    let answer = answer.result("c8", ToolFailed::new("the mail is down"));
    answer.result("c9", json!("blue")).approve("c10/w1").answered_by("bob").build().unwrap()
}

async fn keep(to: &Path, name: &str, run: SuspendedRun, answers: &DeferredToolResults) {
    let (stored, requests) = (json!(run), json!(run.requests()));
    let ended = resume(run, answers.clone()).await;
    for (part, value) in PARTS.into_iter().zip([&stored, &requests, &json!(answers), &ended]) {
        write(to, &format!("{name}.{part}.json"), value);
    }
}

/// Resumes a run to its end. Returns the executed calls and the results for the model.
async fn resume(run: SuspendedRun, answers: DeferredToolResults) -> Value {
    let bank: Recorder = bank();
    let run = resuming(&bank).resume(run, answers).await.unwrap();
    assert_eq!(run.text(), Some("Done."), "it comes to its end");
    json!({"ran": ran(&bank), "told": results(run.history())})
}

/// The names of the runs of a version.
fn names(of: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(of).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".run.json").map(str::to_owned)
    });
    names.collect()
}

pub(super) async fn check(version: &Path) {
    let names = names(version);
    assert!(!names.is_empty(), "there are runs in {}", version.display());
    for name in names {
        let [run, requests, answers, ended] =
            PARTS.map(|part| read(version, &format!("{name}.{part}.json")));
        let run: SuspendedRun = serde_json::from_str(&run).unwrap();
        let requests: DeferredToolRequests = serde_json::from_str(&requests).unwrap();
        let answers: DeferredToolResults = serde_json::from_str(&answers).unwrap();
        assert!(run.requests() == requests, "{name}: the pending calls are the stored ones");
        requests.check(&answers).unwrap();
        let ended: Value = serde_json::from_str(&ended).unwrap();
        assert_eq!(resume(run, answers).await, ended, "{name}: it ends as recorded");
    }
    let turn: SuspendedTurn = serde_json::from_str(&read(version, "turn.json")).unwrap();
    let answers = turn.requests().answer().approve("t1").build().unwrap();
    let bank = bank();
    let resumed = Turn::new(bank.clone().approval_required()).resume(turn, answers).await.unwrap();
    assert!(resumed.calls()[0].outcome().is_returned());
    assert_eq!(bank.ids(), ["t1"]);
}
