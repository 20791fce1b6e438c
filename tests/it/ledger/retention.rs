//! Runs that are over are dropped, and nothing of them runs again.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{
    Acquired, Ask, AskRecord, AskState, Claimed, Ledger, LedgerError, MemoryStore, Store,
};
use countersign_sqlite::SqliteStore;
use serde_json::json;
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(60);

async fn approved(ledger: &Ledger, run: &str, path: &str) -> AskRecord {
    let ask = ledger.park(Ask::new(run, path, "delete_file")).await.unwrap();
    let yes = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
    ask
}

async fn executed(ledger: &Ledger, run: &str, path: &str) -> AskRecord {
    let ask = approved(ledger, run, path).await;
    let Claimed::Claimed { token } = ledger.claim(ask.ask.id(), "w", LEASE).await.unwrap() else {
        panic!()
    };
    ledger.settle(ask.ask.id(), token, json!("done")).await.unwrap();
    ask
}

async fn finished_runs_are_dropped_and_stay_over(store: Arc<dyn Store>) {
    let ledger = Ledger::new(store);
    // A run of its own with two asks, and one that ended in the ledger.
    let own = executed(&ledger, "own", "a").await;
    ledger.cancel(approved(&ledger, "own", "b").await.ask.id(), "ann").await.unwrap();
    let ended = executed(&ledger, "ended", "a").await;
    ledger.save_run("ended", json!({"at": 1}), None).await.unwrap();
    let Acquired::Lease(lease) = ledger.acquire_run_as("ended", "w", LEASE).await.unwrap() else {
        panic!()
    };
    lease.end(json!("the end"), &[]).await.unwrap();
    // Runs that are not over.
    let open = [
        ledger.park(Ask::new("pending", "a", "t")).await.unwrap(),
        approved(&ledger, "approved", "a").await,
        executed(&ledger, "waiting", "a").await,
    ];
    ledger.save_run("waiting", json!({"at": 1}), None).await.unwrap();
    let before = ledger.verify(&Default::default()).await.unwrap();
    ledger.checkpoint().await.unwrap();

    assert_eq!(ledger.prune(LEASE).await.unwrap(), 0, "nothing is as old as that");
    assert_eq!(ledger.prune(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(ledger.prune(Duration::ZERO).await.unwrap(), 0, "once");
    for ask in [&own, &ended] {
        assert_eq!(ledger.get(ask.ask.id()).await.unwrap(), None);
        let claimed = ledger.claim(ask.ask.id(), "w", LEASE).await.unwrap();
        assert_eq!(claimed, Claimed::UnknownAsk);
        let again = ledger.park(ask.ask.clone()).await.unwrap_err();
        assert!(matches!(&again, LedgerError::Unkeepable { .. }), "at most once: {again}");
        assert!(again.to_string().contains("was over long ago"), "{again}");
    }
    for ask in &open {
        assert!(ledger.get(ask.ask.id()).await.unwrap().is_some());
    }
    let taken = ledger.acquire_run_as("ended", "w", LEASE).await.unwrap();
    assert!(matches!(taken, Acquired::Over { result } if result == "the end"), "the result stays");
    assert_eq!(ledger.list(Some(AskState::Executed), 10).await.unwrap().records.len(), 1);

    let after = ledger.verify(&before.heads).await.expect("the log verifies");
    let there = ledger.export(|_| ()).await.unwrap();
    assert_eq!(after.entries, there, "entries that were removed are not counted");
    ledger.checkpoint().await.unwrap();
    assert!(ledger.verify(&after.heads).await.is_ok(), "the log continues");
    let mut entries = 0;
    let of_ended = |entry: &countersign::ledger::Entry| entry.run == "ended";
    ledger.export(|entry| entries += usize::from(of_ended(&entry))).await.unwrap();
    assert_eq!(entries, 1, "one entry of its log stays");
}

#[tokio::test]
async fn in_memory() {
    finished_runs_are_dropped_and_stay_over(Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn in_an_sqlite_file() {
    let place = TempDir::new().unwrap();
    let store = SqliteStore::open(place.path().join("asks.db")).await.unwrap();
    finished_runs_are_dropped_and_stay_over(Arc::new(store)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_postgresql() {
    let store = crate::support::postgres::Server::shared().store().await;
    finished_runs_are_dropped_and_stay_over(Arc::new(store)).await;
}

#[tokio::test]
async fn a_store_in_memory_frees_dropped_runs() {
    let clock = Arc::new(AtomicI64::new(0));
    let time = Arc::clone(&clock);
    let store = MemoryStore::with_clock(move || time.load(Ordering::Relaxed));
    let ledger = Ledger::new(store.clone());
    for day in 0..10 {
        clock.store(day * 86_400_000, Ordering::Relaxed);
        for n in 0..10 {
            executed(&ledger, &format!("run {day} {n}"), "a").await;
        }
        ledger.prune(Duration::from_secs(3 * 86_400)).await.unwrap();
    }
    assert_eq!(ledger.list(None, 1000).await.unwrap().records.len(), 30, "three days of ten");
    let mut entries = 0;
    ledger.export(|_| entries += 1).await.unwrap();
    assert_eq!(entries, 30 * 4 + 70, "and one entry of each run that was dropped");
}
