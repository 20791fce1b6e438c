//! Waking the tasks that wait for a run.

use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, Ledger, MemoryStore, Store};
use countersign_postgres::PostgresStore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::support::postgres::Server;

/// Far below how often a waiting run looks by itself.
const SOON: Duration = Duration::from_secs(20);

async fn parked(ledger: &Ledger, path: &str) -> AskRecord {
    ledger.park(Ask::new("run", path, "pay")).await.unwrap()
}

async fn approve(ledger: &Ledger, record: &AskRecord) {
    let yes = Answer::Approve { args: None };
    ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes).await.unwrap();
}

/// Waits in a task until the run's log has a new entry.
fn waiting(ledger: &Ledger, after: i64) -> JoinHandle<i64> {
    let ledger = ledger.clone();
    tokio::spawn(async move { ledger.wait_for_change("run", after).await.unwrap() })
}

async fn woken(waiting: JoinHandle<i64>) -> i64 {
    timeout(SOON, waiting).await.expect("it is woken").unwrap()
}

/// The promises of every store.
async fn wakes(here: Ledger, elsewhere: Ledger) {
    assert_eq!(
        here.wait_for_change("run", -1).await.unwrap(),
        0,
        "nothing has happened, and -1 does not wait"
    );
    let first = waiting(&here, 0);
    let record = parked(&elsewhere, "root/c1").await;
    assert_eq!(woken(first).await, 1);
    let (one, two) = (waiting(&here, 1), waiting(&here, 1));
    approve(&elsewhere, &record).await;
    assert_eq!((woken(one).await, woken(two).await), (2, 2));
    assert_eq!(
        here.wait_for_change("run", 0).await.unwrap(),
        2,
        "an existing entry is not waited for"
    );
    let other = waiting(&here, 2);
    elsewhere.park(Ask::new("another run", "root/c1", "pay")).await.unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!other.is_finished(), "another run does not end it");
    other.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_is_woken_from_another_process() {
    let url = Server::shared().url().await;
    let ledger = async || Ledger::new(PostgresStore::connect(&url).await.unwrap());
    wakes(ledger().await, ledger().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_decision_of_a_process_wakes_too() {
    let url = Server::shared().url().await;
    let here = Ledger::new(PostgresStore::connect(&url).await.unwrap());
    for round in 0..5 {
        let record = parked(&here, &format!("root/c{round}")).await;
        let waiting = waiting(&here, 2 * round + 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
        let elsewhere = Ledger::new(PostgresStore::connect(&url).await.unwrap());
        approve(&elsewhere, &record).await;
        assert_eq!(woken(waiting).await, 2 * round + 2);
    }
}

#[tokio::test]
async fn the_store_in_memory_wakes_waiting_tasks() {
    let ledger = Ledger::new(MemoryStore::new());
    wakes(ledger.clone(), ledger).await;
}

#[tokio::test]
async fn a_store_without_notifications_polls() {
    let memory = MemoryStore::new();
    wakes(Ledger::new(Looking(memory.clone())), Ledger::new(memory)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_survives_a_restart_of_the_server() {
    let server = Server::start();
    let url = server.url().await;
    let ledger = async || {
        let builder = PostgresStore::builder(&url).patience(Duration::from_secs(60));
        Ledger::new(builder.connect().await.unwrap())
    };
    let (here, elsewhere) = (ledger().await, ledger().await);
    let record = parked(&elsewhere, "root/c1").await;
    let (one, two) = (waiting(&here, 1), waiting(&here, 2));
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.kill();
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.start_again();
    approve(&elsewhere, &record).await;
    assert_eq!(woken(one).await, 2);
    parked(&elsewhere, "root/c2").await;
    assert_eq!(woken(two).await, 3, "it listens again");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_without_a_listener_are_not_missed() {
    let server = Server::shared();
    let url = server.url().await;
    let schema = url.rsplit("%3D").next().unwrap();
    let here = Ledger::new(
        PostgresStore::connect(&format!("{url}&application_name={schema}")).await.unwrap(),
    );
    let elsewhere = Ledger::new(PostgresStore::connect(&url).await.unwrap());
    for round in 0..5 {
        let waiting = waiting(&here, round);
        tokio::time::sleep(Duration::from_millis(100)).await;
        // All connections of the one who waits are cut, and while it makes new ones something happens.
        let cut = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{schema}'"
        );
        server.sql(&url, &cut).await;
        parked(&elsewhere, &format!("root/c{round}")).await;
        assert_eq!(woken(waiting).await, round + 1);
    }
}

/// A store without a way to be told.
struct Looking(MemoryStore);

impl Store for Looking {
    crate::support::inner_store!(0: transact, get, list, due, log, logs);
}
