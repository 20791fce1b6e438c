//! The example against a real server of Restate, which `.ci/restate` installs: killed at each step, decided by many at
//! once, expired, and finished by another version.

#[cfg(feature = "postgres")]
#[allow(dead_code, reason = "the tests of the crate use the rest of it")]
#[path = "../../../../tests/it/support/postgres.rs"]
mod postgres;
#[path = "../src/stage.rs"]
mod stage;

use std::path::Path;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{AskState, Ledger};
use countersign_sqlite::SqliteStore;
use futures::future::join_all;
use serde_json::{Value, json};
use stage::{Stage, until};
use tempfile::TempDir;

const REFUND: &str = r#"refund {"order": "A-17", "euros": 60}"#;
const SQLITE: &str = "sqlite:ledger.db";

async fn stage() -> (TempDir, Stage) {
    let folder = tempfile::tempdir().unwrap();
    let service = Path::new(env!("CARGO_BIN_EXE_restate"));
    let stage = Stage::start(folder.path(), service).await.unwrap();
    (folder, stage)
}

fn yes() -> Value {
    json!({"verdict": "approve"})
}

fn no() -> Value {
    json!({"verdict": "deny", "message": "ask the shop first"})
}

/// The number of times a step was reached.
fn count(stage: &Stage, step: &str) -> usize {
    stage.steps().iter().filter(|it| *it == step).count()
}

/// The ledger of the service, as another process opens it.
async fn ledger(stage: &Stage, store: &str) -> Ledger {
    match store.strip_prefix("sqlite:") {
        Some(file) => Ledger::new(SqliteStore::open(stage.folder.join(file)).await.unwrap()),
        #[cfg(feature = "postgres")]
        None => Ledger::new(countersign_postgres::PostgresStore::connect(store).await.unwrap()),
        #[cfg(not(feature = "postgres"))]
        None => panic!("{store} needs the feature `postgres`"),
    }
}

/// The steps that a kill may repeat, and the end of the run.
struct Killed {
    step: &'static str,
    /// The number of times the model was asked for the first response, and how often the refund was paid.
    counts: (usize, usize),
    result: &'static str,
}

const REFUNDED: &str = "refunded 60 euros for order A-17";

/// "Kill -9 of service and server at any of the steps: the run ends; no model call is repeated after its journal entry;
/// no body runs twice silently. Body killed in the middle: outcome unknown, as our rule says, not a repeat."
#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_as_it_must_whichever_step_its_processes_are_killed_in() {
    kill_in_each_step(SQLITE).await;
}

/// "Same results with the ledger on SQLite and PostgreSQL."
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn the_same_runs_end_alike_with_the_ledger_in_postgresql() {
    let server = postgres::Server::start();
    kill_in_each_step(&server.url().await).await;
}

async fn kill_in_each_step(store: &str) {
    let (_folder, mut stage) = stage().await;
    // A lease that a test can wait for.
    let options = ["--lease-s", "2", "--store", store];
    let killed = |step, counts, result| Killed { step, counts, result };
    let unknown = "may have run";
    for Killed { step, counts, result } in [
        killed("model", (2, 1), REFUNDED),
        killed("asked", (1, 1), REFUNDED),
        killed("decided", (1, 1), REFUNDED),
        killed("started", (1, 0), unknown),
        killed("done", (1, 1), unknown),
        killed("settled", (1, 1), REFUNDED),
        killed("ended", (1, 1), REFUNDED),
    ] {
        let before = |step: &str| count(&stage, step);
        let (model, done, looked_up) = (before("model"), before("done"), before("looked_up"));
        let reached = before(step);
        stage.start_service(&[&options[..], &["--stop-at", step]].concat()).await.unwrap();
        let task = format!("look_up {{\"order\": \"A-17\"}}\n{REFUND}");
        stage.begin(step, &task).await.unwrap();
        let before_kill = !matches!(step, "model" | "asked");
        let pending =
            if before_kill { Some(decide_before_kill(&stage, store, step).await) } else { None };
        until("a step is reached", async || Ok((count(&stage, step) > reached).then_some(())))
            .await
            .unwrap();
        stage.kill(true);

        stage.start_server().await.unwrap();
        stage.start_service(&options).await.unwrap();
        // The same request, under the same key, is answered by what was decided before.
        let ask = match pending {
            Some(ask) => ask,
            None => stage.pending(step, 1).await.unwrap().remove(0),
        };
        let told = stage.decide(&ask, "ann", yes()).await.unwrap();
        assert_eq!(told["result"], "won", "{step}: {told}");
        let text = stage.result(step).await.unwrap();
        assert!(
            text.contains("was paid and not delivered") && text.contains(result),
            "{step}: {text}"
        );
        let counted = (count(&stage, "model") - model, count(&stage, "done") - done);
        assert_eq!(counted, counts, "{step}: {:?}", stage.steps());
        assert_eq!(count(&stage, "looked_up") - looked_up, 1, "{step}: an allowed call, too");
        stage.kill(false);
    }
}

/// Decides about the call of a run, and returns the call. Where the decision is the step to be killed in, its request gets
/// no answer before the processes are back.
async fn decide_before_kill(stage: &Stage, store: &str, step: &str) -> Value {
    let ask = stage.pending(step, 1).await.unwrap().remove(0);
    if step != "decided" {
        let told = stage.decide(&ask, "ann", yes()).await.unwrap();
        assert_eq!(told["result"], "won", "{step}: {told}");
        return ask;
    }
    let ledger = ledger(stage, store).await;
    let id = ask["ask"].as_str().unwrap().to_owned();
    tokio::select! {
        told = stage.decide(&ask, "ann", yes()) => panic!("{told:?}"),
        () = decided(&ledger, &id) => {}
    }
    ask
}

/// Waits until the ledger has a decision on the ask.
async fn decided(ledger: &Ledger, ask: &str) {
    while ledger.get(ask).await.unwrap().is_some_and(|it| it.state == AskState::Pending) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// "100 deciders at once on one ask over HTTP: one won, 99 told who won. Decide twice with the same idempotency key: same
/// answer both times. Late answers change nothing."
#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_deciders_one_wins_and_the_others_are_told_who() {
    let (_folder, mut stage) = stage().await;
    stage.start_service(&[]).await.unwrap();
    stage.begin("many", REFUND).await.unwrap();
    let ask = stage.pending("many", 1).await.unwrap().remove(0);
    let names: Vec<_> = (0..100).map(|n| format!("person {n}")).collect();
    let answers = names
        .iter()
        .enumerate()
        .map(|(n, name)| stage.decide(&ask, name, if n % 2 == 0 { yes() } else { no() }));
    let told: Vec<_> = join_all(answers).await.into_iter().map(Result::unwrap).collect();
    let won: Vec<_> = (0..100).filter(|n| told[*n]["result"] == "won").collect();
    let [winner] = won[..] else { panic!("{told:?}") };
    for (n, told) in told.iter().enumerate().filter(|(n, _)| *n != winner) {
        assert_eq!(told["result"], "lost", "{n}: {told}");
        assert_eq!(told["by"], json!([names[winner]]), "{n}: {told}");
    }
    let text = stage.result("many").await.unwrap();
    assert_eq!(text, if winner % 2 == 0 { REFUNDED } else { "ask the shop first" });

    let answer = if winner % 2 == 0 { yes() } else { no() };
    let again = stage.decide(&ask, &names[winner], answer).await.unwrap();
    assert_eq!(again, told[winner], "the same request");
    let late = stage.decide(&ask, "late", no()).await.unwrap();
    assert_eq!(late["result"], "lost", "{late}");
    assert_eq!(stage.result("many").await.unwrap(), text);
    assert_eq!(count(&stage, "done"), usize::from(winner % 2 == 0));
}

/// "A policy that reads clock or random is journaled: replay gives the same decision", and the batch of a response is one:
/// no deferred call runs before all of them are answered (rule T1).
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_decides_nothing_anew_and_a_batch_waits_for_all_of_its_answers() {
    let (_folder, mut stage) = stage().await;
    stage.start_service(&[]).await.unwrap();
    let second = r#"refund {"order": "B-2", "euros": 7}"#;
    let third = r#"refund {"order": "C-3", "euros": 900}"#;
    stage.begin("batch", &format!("{REFUND}\n{second}\n{third}")).await.unwrap();
    let mut asks = stage.pending("batch", 2).await.unwrap();
    asks.sort_by_key(|ask| ask["args"]["order"].to_string());
    assert_eq!(count(&stage, "policy"), 3);
    stage.decide(&asks[0], "ann", yes()).await.unwrap();
    stage.pending("batch", 1).await.unwrap();
    assert_eq!(count(&stage, "started"), 0, "one of two is answered");
    for _ in 0..2 {
        stage.kill(true);
        stage.start_server().await.unwrap();
        stage.start_service(&[]).await.unwrap();
        stage.pending("batch", 1).await.unwrap();
    }
    assert_eq!((count(&stage, "policy"), count(&stage, "model")), (3, 1), "replayed twice");
    stage.decide(&asks[1], "ann", no()).await.unwrap();
    let text = stage.result("batch").await.unwrap();
    let made_by_hand = "Refunds above 500 euros are made by hand.";
    assert_eq!(text, [REFUNDED, "ask the shop first", made_by_hand].join("\n"));
    assert_eq!((count(&stage, "policy"), count(&stage, "done")), (4, 1), "and one approved pass");
}

/// "Expiry by durable timer after a server restart."
#[tokio::test(flavor = "multi_thread")]
async fn an_ask_expires_although_both_processes_were_dead_at_its_deadline() {
    let (_folder, mut stage) = stage().await;
    stage.start_service(&["--deadline-s", "4"]).await.unwrap();
    stage.begin("expiring", REFUND).await.unwrap();
    let ask = stage.pending("expiring", 1).await.unwrap().remove(0);
    stage.kill(true);
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.start_server().await.unwrap();
    stage.start_service(&["--deadline-s", "4"]).await.unwrap();
    assert_eq!(stage.result("expiring").await.unwrap(), "No decision was made in time.");
    let late = stage.decide(&ask, "ann", yes()).await.unwrap();
    assert_eq!((late["result"].as_str(), count(&stage, "done")), (Some("expired"), 0));
}

/// "Inbox page lists asks of Restate runs beside others (one ledger)": what is decided there reaches the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_in_the_ledger_itself_reaches_the_run() {
    let (_folder, mut stage) = stage().await;
    stage.start_service(&[]).await.unwrap();
    stage.begin("elsewhere", REFUND).await.unwrap();
    stage.pending("elsewhere", 1).await.unwrap();
    // An inbox, a terminal and `countersign asks decide` do the same.
    let ledger = ledger(&stage, SQLITE).await;
    let ask = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
    let edited = serde_json::from_value(json!({"order": "A-17", "euros": 30})).unwrap();
    let answer = Answer::Approve { args: Some(edited) };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", answer).await.unwrap();
    assert_eq!(stage.result("elsewhere").await.unwrap(), "refunded 30 euros for order A-17");
    ledger.verify(&Default::default()).await.unwrap();
}

/// "Code change between suspend and resume: refused with a clear error, not a journal mismatch loop."
#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_another_version_is_refused() {
    let (_folder, mut stage) = stage().await;
    stage.start_service(&[]).await.unwrap();
    stage.begin("old", REFUND).await.unwrap();
    let ask = stage.pending("old", 1).await.unwrap().remove(0);
    stage.kill(false);
    stage.start_service(&["--stack-version", "2"]).await.unwrap();
    stage.decide(&ask, "ann", yes()).await.unwrap();
    let error = stage.result("old").await.unwrap_err().to_string();
    assert!(error.contains("begun by version 1 of the stack, and this is version 2"), "{error}");
    assert_eq!(count(&stage, "started"), 0);
    stage.begin("new", REFUND).await.unwrap();
    let ask = stage.pending("new", 1).await.unwrap().remove(0);
    stage.decide(&ask, "ann", yes()).await.unwrap();
    assert_eq!(stage.result("new").await.unwrap(), REFUNDED);
}
