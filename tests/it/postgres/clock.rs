//! The server's clock steps (rule L4).

use std::time::Duration;

use countersign::ledger::{
    Answer, Ask, Claimed, Decided, Draft, Ledger, Linker, Row, RowKind, Store as _, Writes,
};
use countersign::postgres::PostgresStore;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use super::server::Server;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A store on a server whose clock is set by hand: its functions stand before those of the system.
async fn store() -> (PostgresStore, impl AsyncFn(i64)) {
    let server = Server::shared();
    let url = server.url().await;
    let schema = url.rsplit("%3D").next().unwrap().to_owned();
    let clock = |name: &str| {
        format!(
            "CREATE FUNCTION {schema}.{name}() RETURNS timestamptz VOLATILE LANGUAGE sql AS
                 'SELECT to_timestamp(seconds) FROM {schema}.clock';"
        )
    };
    let sql = format!(
        "CREATE TABLE clock (seconds double precision); INSERT INTO clock VALUES (1000000); {} {} {} {}",
        clock("clock_timestamp"),
        clock("statement_timestamp"),
        clock("transaction_timestamp"),
        clock("now"),
    );
    server.sql(&url, &sql).await;
    let first = format!("{url},pg_catalog");
    let store = PostgresStore::connect(&first).await.unwrap();
    let step = async move |by: i64| {
        server.sql(&url, &format!("UPDATE clock SET seconds = seconds + {by}")).await;
    };
    (store, step)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_steps_expires_nothing_early_and_brings_nothing_back() {
    let (store, step) = store().await;
    let ledger = Ledger::new(store);
    let ask = ledger.park(Ask::new("r", "c", "rm").expires_in(seconds(10))).await.unwrap();
    assert_eq!(ask.parked_at, 1_000_000_000, "the clock is the one that is set by hand");
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    let yes = || Answer::Approve { args: None };
    step(-500).await;
    assert_eq!(ledger.expire().await.unwrap(), [""; 0], "nothing expires early");
    step(510).await;
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);
    step(-510).await;
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);
    assert_eq!(ledger.expire().await.unwrap(), [""; 0]);

    let ask = ledger.park(Ask::new("r", "d", "rm").expires_in(seconds(10))).await.unwrap();
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    step(9).await;
    let won = ledger.decide(id, fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(won, Decided::Won { again: false }, "in time");
    let claimed = ledger.claim(id, "w1", seconds(2)).await.unwrap();
    assert_eq!(claimed, Claimed::Claimed { token: 1 });
    step(1).await;
    assert!(matches!(ledger.claim(id, "w2", seconds(1)).await.unwrap(), Claimed::Held { .. }));
    step(3_600).await;
    assert_eq!(ledger.claim(id, "w2", seconds(1)).await.unwrap(), Claimed::Unknown);
    step(-7_200).await;
    assert_eq!(ledger.claim(id, "w2", seconds(1)).await.unwrap(), Claimed::Unknown);

    let due = ledger.park(Ask::new("r", "e", "rm").expires_in(seconds(10))).await.unwrap();
    step(11).await;
    assert_eq!(ledger.expire().await.unwrap(), [due.ask.id()]);
    ledger.verify(&Default::default()).await.unwrap().expect("the log is whole");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_stopped_between_reading_and_writing_reads_the_time_again() {
    let (store, step) = store().await;
    let (linker, ids) = (Linker::default(), ["row".to_owned()]);
    let writes = |at: i64| Writes {
        rows: vec![Row {
            id: "row".into(),
            kind: RowKind::Run,
            run: "run".into(),
            state: "made".into(),
            created_at: 1,
            due_at: None,
            doc: at.to_string(),
        }],
        log: vec![Draft { run: "run".into(), row: Some("row".into()), body: json!(at) }],
        drop: None,
    };
    store.transact(&ids, &linker, &mut |at, _| writes(at)).await.unwrap();
    let mut times = Vec::new();
    let mut work = |at, _| {
        times.push(at);
        if times.len() == 1 {
            block_in_place(|| Handle::current().block_on(step(3_600)));
        }
        writes(at)
    };
    store.transact(&ids, &linker, &mut work).await.unwrap();
    assert_eq!(times, [1_000_000_000, 1_003_600_000]);
    assert_eq!(store.get("row").await.unwrap().unwrap().row.doc, "1003600000");
    assert_eq!(store.log("run", 0, 10).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_falls_due_between_reading_and_writing_is_read_again() {
    // L4: "Deadlines are compared with the store's clock, within the transaction that decides or claims."
    let (store, step) = store().await;
    let (linker, ids) = (Linker::default(), ["row".to_owned()]);
    let writes = |at: i64| Writes {
        rows: vec![Row {
            id: "row".into(),
            kind: RowKind::Ask,
            run: "run".into(),
            state: "pending".into(),
            created_at: 1,
            due_at: Some(1_000_001_000),
            doc: at.to_string(),
        }],
        log: vec![Draft { run: "run".into(), row: Some("row".into()), body: json!(at) }],
        drop: None,
    };
    store.transact(&ids, &linker, &mut |at, _| writes(at)).await.unwrap();
    let mut times = Vec::new();
    let mut work = |at, _| {
        times.push(at);
        if times.len() == 1 {
            // Less than the clock may be off, and behind the deadline.
            block_in_place(|| Handle::current().block_on(step(2)));
        }
        writes(at)
    };
    store.transact(&ids, &linker, &mut work).await.unwrap();
    assert_eq!(times, [1_000_000_000, 1_000_002_000]);
}
