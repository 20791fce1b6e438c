//! The rules of the ledger, over every store there is.

use std::sync::Arc;

use countersign::ledger::{Ledger, LedgerError, MemoryStore, Store};
use countersign::testing::ledger_contract;
use countersign_sqlite::SqliteStore;
use serde_json::json;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory() {
    ledger_contract::check(async || vec![Arc::new(MemoryStore::new()) as Arc<dyn Store>]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_an_sqlite_file() {
    let place = TempDir::new().unwrap();
    let number = std::sync::atomic::AtomicUsize::new(0);
    ledger_contract::check(async || {
        let n = number.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = place.path().join(format!("{n}.db"));
        let mut handles = Vec::new();
        for _ in 0..3 {
            handles.push(Arc::new(SqliteStore::open(&path).await.unwrap()) as Arc<dyn Store>);
        }
        handles
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_postgresql() {
    use countersign_postgres::PostgresStore;

    use crate::support::postgres::Server;

    ledger_contract::check(async || {
        let url = Server::shared().url().await;
        let mut handles = Vec::new();
        for _ in 0..3 {
            handles.push(Arc::new(PostgresStore::connect(&url).await.unwrap()) as Arc<dyn Store>);
        }
        handles
    })
    .await;
}

/// The contract tries how deep values may be; this is how large.
#[tokio::test]
async fn a_run_that_is_too_large_for_a_store_is_refused_and_nothing_is_written() {
    let ledger = Ledger::new(MemoryStore::new());
    let large = json!("x".repeat(64 << 20));
    let error = ledger.save_run("r", large, None).await.unwrap_err();
    assert!(matches!(error, LedgerError::Unkeepable { .. }));
    assert!(error.to_string().contains("at most 67108864 are kept"), "{error}");
    assert_eq!(ledger.waiting_runs(10).await.unwrap().records, []);
    assert_eq!(ledger.export(|_| ()).await.unwrap(), 0);
}
