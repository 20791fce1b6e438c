//! A stored run that a program resumes itself is under a lease meanwhile (rule L5).

use std::future::IntoFuture as _;
use std::time::Duration;

use countersign::agent::{RunError, TakeUp, text};
use countersign::ledger::{Ledger, MemoryStore};
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{Agent, DeferredToolResults, SuspendedRun, ToolsExt};
use serde_json::json;

use crate::support::{Recorder, call, stored};

fn agent(ledger: &Ledger, tools: &Recorder, says: Vec<ModelResponse>, worker: &str) -> Agent {
    Agent::new(ScriptedModel::new(says), tools.clone().approval_required())
        .output(text().or_deferred())
        .ledger(ledger.clone().worker(worker))
}

fn pays(id: &str) -> ModelResponse {
    ModelResponse::calls([call(id, "pay", json!({"n": 1}))])
}

fn yes(run: &SuspendedRun) -> DeferredToolResults {
    let id = run.requests().approvals[0].id().to_owned();
    run.requests().answer().approve(id).answered_by("ann").build().unwrap()
}

fn told(error: &RunError) -> String {
    assert!(error.error().is_conflict(), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_run_in_progress_cannot_be_resumed_by_another_worker() {
    let ledger = Ledger::new(MemoryStore::new());
    let tools = Recorder::new(["pay"]).taking(Duration::from_millis(400));
    let front = agent(&ledger, &tools, vec![pays("c1")], "front");
    let run = front.run("go").await.unwrap().into_suspended().unwrap();
    let resuming = tokio::spawn({
        let (front, run) = (front.clone(), run.clone());
        async move { front.resume(run.clone(), yes(&run)).await.map(|it| it.text().map(str::to_owned)) }
    });
    while tools.ids().is_empty() {
        tokio::task::yield_now().await;
    }
    let other = agent(&ledger, &tools, Vec::new(), "other");
    let held = other.take_up(run.run_id()).await.unwrap();
    assert!(matches!(held, TakeUp::Held { by, .. } if by == "front"));
    // L5: "the others are told".
    let error = other.resume(stored(&run), yes(&run)).await.unwrap_err();
    assert!(told(&error).contains("is being resumed by worker `front`"), "{}", told(&error));
    assert_eq!(resuming.await.unwrap().unwrap().as_deref(), Some("Done."));
    assert!(
        matches!(other.take_up(run.run_id()).await.unwrap(), TakeUp::Over(it) if it == "Done.")
    );
    assert_eq!(tools.ids(), ["c1"]);
}

#[tokio::test]
async fn an_outdated_snapshot_of_a_run_is_refused() {
    let ledger = Ledger::new(MemoryStore::new());
    let tools = Recorder::new(["pay"]);
    let agent = agent(&ledger, &tools, vec![pays("c1"), pays("c2")], "front");
    let first = agent.run("go").await.unwrap().into_suspended().unwrap();
    let again = agent.resume(first.clone(), yes(&first)).await.unwrap().into_suspended().unwrap();
    let error = agent.resume(stored(&first), yes(&first)).await.unwrap_err();
    assert!(told(&error).contains("resume it by its id"), "{}", told(&error));
    // A refused worker holds no lease: the run continues from its snapshot.
    let ended = agent.resume(stored(&again), yes(&again)).await.unwrap();
    assert_eq!(ended.text(), Some("Done."));
    assert_eq!(tools.ids(), ["c1", "c2"]);
    assert!(ledger.waiting_runs(10).await.unwrap().records.is_empty());
    // L3: once it is over, executed calls are replayed, and not executed again.
    let _ = agent.resume(stored(&again), yes(&again)).await.unwrap();
    assert_eq!(tools.ids(), ["c1", "c2"]);
    assert!(ledger.verify(&Default::default()).await.is_ok());
}

#[tokio::test]
async fn a_run_of_a_dead_worker_is_resumed_after_its_lease() {
    let ledger = Ledger::new(MemoryStore::new()).lease(Duration::from_millis(60));
    let never = Recorder::new(["pay"]).taking(Duration::from_secs(3_600));
    let front = agent(&ledger, &never, vec![pays("c1")], "front");
    let run = front.run("go").await.unwrap().into_suspended().unwrap();
    let dying = front.resume(run.clone(), yes(&run)).into_future();
    assert!(tokio::time::timeout(Duration::from_millis(30), dying).await.is_err());
    let tools = Recorder::new(["pay"]);
    let other = agent(&ledger, &tools, Vec::new(), "other");
    let ended = loop {
        match other.take_up(run.run_id()).await.unwrap() {
            TakeUp::Held { .. } => tokio::time::sleep(Duration::from_millis(20)).await,
            TakeUp::Resumed(Ok(ended)) if ended.suspended().is_some() => {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            TakeUp::Resumed(ended) => break ended.unwrap(),
            other => panic!("{other:?}"),
        }
    };
    // L2: "never silently run again".
    assert_eq!((ended.text(), tools.ids().len()), (Some("Done."), 0));
}
