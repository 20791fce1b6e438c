//! The server, the connection to it, or a waiting task goes away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, AskState, Claimed, Decided, Draft, Ledger, Linker, Store as _, Writes,
};
use countersign_postgres::PostgresStore;
use serde_json::json;

use super::proxy::{Cut, Proxy};
use crate::support::postgres::Server;

const LEASE: Duration = Duration::from_secs(600);

fn yes() -> Answer {
    Answer::Approve { args: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_loses_and_duplicates_nothing() {
    const ASKS: usize = 300;
    let server = Arc::new(Server::start());
    let url = server.url().await;
    let store =
        PostgresStore::builder(&url).patience(Duration::from_secs(120)).connect().await.unwrap();
    let ledger = Ledger::new(store);
    let mut parked = Vec::new();
    for n in 0..ASKS {
        let ask = Ask::new(format!("run-{}", n % 7), format!("root/c{n}"), "pay");
        parked.push(ledger.park(ask).await.unwrap());
    }
    let parked = Arc::new(parked);
    let (ran, won) = (
        Arc::new((0..ASKS).map(|_| AtomicU32::new(0)).collect::<Vec<_>>()),
        Arc::new((0..ASKS).map(|_| AtomicU32::new(0)).collect::<Vec<_>>()),
    );
    let over = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..6)
        .map(|worker| {
            let (ledger, parked) = (ledger.clone(), parked.clone());
            let (ran, won) = (ran.clone(), won.clone());
            tokio::spawn(async move {
                let name = format!("worker-{worker}");
                for (n, record) in parked.iter().enumerate() {
                    let id = record.ask.id();
                    match ledger.decide(id, &record.fingerprint, &name, yes()).await.unwrap() {
                        Decided::Won { again: false } => _ = won[n].fetch_add(1, Ordering::SeqCst),
                        Decided::Lost(winner) => assert!(!winner.by.contains(&name)),
                        other => panic!("{other:?}"),
                    }
                    match ledger.claim(id, &name, LEASE).await.unwrap() {
                        Claimed::Claimed { token } => {
                            ran[n].fetch_add(1, Ordering::SeqCst);
                            ledger.settle(id, token, json!(worker)).await.unwrap();
                        }
                        Claimed::Held { by, .. } => assert_ne!(by, name),
                        Claimed::Settled { .. } => {}
                        other => panic!("{other:?}"),
                    }
                }
            })
        })
        .collect();
    let (killer, done) = (server.clone(), over.clone());
    let kills = tokio::task::spawn_blocking(move || {
        let mut kills = 0;
        while kills < 3 && !done.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(150));
            killer.kill();
            killer.start_again();
            kills += 1;
        }
        kills
    });
    for worker in workers {
        worker.await.unwrap();
    }
    over.store(true, Ordering::SeqCst);
    assert!(kills.await.unwrap() > 0, "it was killed");
    for n in 0..ASKS {
        assert_eq!(won[n].load(Ordering::SeqCst), 1, "ask {n}: one decision won");
        assert_eq!(ran[n].load(Ordering::SeqCst), 1, "ask {n}: ran once");
    }
    let all = ledger.list(Some(AskState::Executed), 1_000).await.unwrap().records;
    assert_eq!(all.len(), ASKS);
    let verified = ledger.verify(&BTreeMap::new()).await.expect("the log is whole");
    assert_eq!(verified.entries, 4 * ASKS as u64, "parked, decided, claimed, settled: each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_cut_in_a_commit_is_resolved() {
    let server = Server::shared();
    let url = server.url().await;
    let proxy = Proxy::to(server.folder());
    let ledger =
        Ledger::new(PostgresStore::connect(&proxy.url(&url, server.folder())).await.unwrap());
    let mut cuts = 0;
    for (n, cut) in [Cut::BeforeCommit, Cut::AfterCommit].into_iter().enumerate() {
        proxy.cut(cut);
        let ask = Ask::new("run", format!("root/c{n}"), "pay");
        let record = ledger.park(ask).await.unwrap();
        let id = record.ask.id();
        proxy.cut(cut);
        let decided = ledger.decide(id, &record.fingerprint, "ann", yes()).await.unwrap();
        assert_eq!(decided, Decided::Won { again: false }, "{cut:?}");
        proxy.cut(cut);
        let claimed = ledger.claim(id, "worker", LEASE).await.unwrap();
        assert_eq!(claimed, Claimed::Claimed { token: 1 }, "{cut:?}");
        cuts += 3;
        assert_eq!(proxy.cuts(), cuts, "it was cut each time");
    }
    let verified = ledger.verify(&BTreeMap::new()).await.expect("the log is whole");
    assert_eq!(verified.entries, 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_an_error_and_changes_nothing() {
    let server = Server::start();
    let url = server.url().await;
    let builder = PostgresStore::builder(&url).patience(Duration::from_millis(300));
    let ledger = Ledger::new(builder.connect().await.unwrap());
    let record = ledger.park(Ask::new("run", "root/c1", "pay")).await.unwrap();
    server.kill();
    let error =
        ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes()).await.unwrap_err();
    assert!(error.to_string().starts_with("the store could not write to PostgreSQL"), "{error}");
    assert!(ledger.get(record.ask.id()).await.is_err());
    server.start_again();
    assert_eq!(ledger.get(record.ask.id()).await.unwrap(), Some(record), "it is pending as before");
}

/// A lock that blocks all writers until it is dropped.
async fn locked(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("BEGIN; LOCK TABLE countersign_log IN SHARE MODE").await.unwrap();
    client
}

/// The text of an error, with its cause.
fn text(error: &dyn std::error::Error) -> String {
    let cause = error.source().map(text).unwrap_or_default();
    format!("{error}: {cause}")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_that_takes_too_long_is_an_error_and_writes_nothing() {
    let url = Server::shared().url().await;
    let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
    let record = ledger.park(Ask::new("run", "root/c1", "pay")).await.unwrap();
    // Only the decision that has to fail is under the timeout: on a busy machine every other statement may be slow.
    let store = PostgresStore::connect(&format!("{url}%20-cstatement_timeout%3D3000")).await;
    let impatient = Ledger::new(store.unwrap());
    let lock = locked(&url).await;
    let error =
        impatient.decide(record.ask.id(), &record.fingerprint, "ann", yes()).await.unwrap_err();
    assert!(text(&error).contains("due to statement timeout (SQLSTATE 57014)"), "{}", text(&error));
    assert_eq!(ledger.get(record.ask.id()).await.unwrap().as_ref(), Some(&record), "as it was");
    drop(lock);
    let decided = ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes()).await;
    assert_eq!(decided.unwrap(), Decided::Won { again: false });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_pool_is_an_error_that_says_so() {
    let url = Server::shared().url().await;
    let builder = PostgresStore::builder(&url).pool_size(1).patience(Duration::from_millis(100));
    let ledger = Ledger::new(builder.connect().await.unwrap());
    let record = ledger.park(Ask::new("run", "root/c1", "pay")).await.unwrap();
    let lock = locked(&url).await;
    let (id, fingerprint) = (record.ask.id(), &record.fingerprint);
    let (decided, ()) = futures::join!(ledger.decide(id, fingerprint, "ann", yes()), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let error = ledger.get(id).await.unwrap_err();
        assert!(
            text(&error).contains("all connections of its pool are in use"),
            "{}",
            text(&error)
        );
        drop(lock);
    });
    assert_eq!(
        decided.unwrap(),
        Decided::Won { again: false },
        "the operation with the connection completes"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_operation_leaves_nothing_locked() {
    let server = Server::shared();
    let url = server.url().await;
    let name = url.rsplit("%3D").next().unwrap();
    // We close connections that the server still has open, sooner than it would by itself.
    let nothing_open = format!(
        "DO $$ BEGIN FOR i IN 1..300 LOOP
            PERFORM pg_stat_clear_snapshot();
            IF NOT EXISTS (SELECT FROM pg_stat_activity
                WHERE application_name = '{name}' AND state LIKE 'idle in transaction%') THEN RETURN; END IF;
            PERFORM pg_sleep(0.1);
        END LOOP; RAISE EXCEPTION 'a transaction is left open'; END $$"
    );
    let builder = PostgresStore::builder(&format!("{url}&application_name={name}")).pool_size(2);
    let store = builder.connect().await.unwrap();
    let ids = ["row".to_owned()];
    let linker = Linker::default();
    // It is dropped at every place where it may wait, one after the other.
    for polls in 0..40 {
        let mut work = |_, _| Writes {
            rows: Vec::new(),
            log: vec![Draft { run: "run".into(), row: Some("row".into()), body: json!(polls) }],
            ..Writes::default()
        };
        let mut transaction = store.transact(&ids, &linker, &mut work);
        for _ in 0..polls {
            if futures::poll!(&mut transaction).is_ready() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        drop(transaction);
        server.sql(&url, &nothing_open).await;
    }
    let mut work = |_, _| Writes {
        rows: Vec::new(),
        log: vec![Draft { run: "run".into(), row: Some("row".into()), body: json!("last") }],
        ..Writes::default()
    };
    let last = store.transact(&ids, &linker, &mut work);
    tokio::time::timeout(Duration::from_secs(30), last).await.expect("nothing is locked").unwrap();
    let log = store.log("run", 0, 100).await.unwrap();
    assert!(log.iter().enumerate().all(|(n, entry)| entry.seq == n as i64 + 1), "no gaps");
}
