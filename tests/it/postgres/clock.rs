//! The server's clock steps (rule L4).

use std::sync::Arc;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, AskState, Claimed, Decided, Draft, Ledger, Linker, Row, RowKind, Store, StoreError, Work,
    Writes,
};
use countersign_postgres::PostgresStore;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::support::postgres::Server;

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
async fn a_stepping_clock_expires_nothing_early_and_revives_nothing() {
    let (store, step) = store().await;
    let ledger = Ledger::new(store);
    let ask = ledger.park(Ask::new("r", "c", "rm").with_expires_in(seconds(10))).await.unwrap();
    assert_eq!(ask.parked_at, 1_000_000_000, "the clock is the one that is set by hand");
    let (id, fingerprint) = (ask.ask.id(), ask.fingerprint.as_str());
    let yes = || Answer::Approve { args: None };
    step(-500).await;
    assert_eq!(ledger.expire().await.unwrap().changed, [""; 0], "nothing expires early");
    step(510).await;
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);
    step(-510).await;
    assert_eq!(ledger.decide(id, fingerprint, "ann", yes()).await.unwrap(), Decided::Expired);
    assert_eq!(ledger.expire().await.unwrap().changed, [""; 0]);

    let ask = ledger.park(Ask::new("r", "d", "rm").with_expires_in(seconds(10))).await.unwrap();
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

    let due = ledger.park(Ask::new("r", "e", "rm").with_expires_in(seconds(10))).await.unwrap();
    step(11).await;
    assert_eq!(ledger.expire().await.unwrap().changed, [due.ask.id()]);
    ledger.verify(&Default::default()).await.expect("the log is whole");
}

/// The rows that a transaction writes at this time.
fn writes(at: i64, due_at: Option<i64>, until: Option<i64>) -> Writes {
    let row = Row {
        id: "row".into(),
        kind: RowKind::Ask,
        run: "run".into(),
        state: "pending".into(),
        created_at: 1,
        due_at,
        requester: String::new(),
        doc: at.to_string(),
    };
    let log = vec![Draft { run: "run".into(), row: Some("row".into()), body: json!(at) }];
    Writes { rows: vec![row], log, until, ..Writes::default() }
}

/// Writes a row, and again while the clock steps between reading and writing. Gives the store, and the times that the second
/// transaction was run at.
async fn stopped_for(
    by: i64,
    writes: impl Fn(i64) -> Writes + Send + Sync,
) -> (PostgresStore, Vec<i64>) {
    let (store, step) = store().await;
    let (linker, ids) = (Linker::default(), ["row".to_owned()]);
    store.transact(&ids, &linker, &mut |at, _| writes(at)).await.unwrap();
    let mut times = Vec::new();
    let mut work = |at, _| {
        times.push(at);
        if times.len() == 1 {
            block_in_place(|| Handle::current().block_on(step(by)));
        }
        writes(at)
    };
    store.transact(&ids, &linker, &mut work).await.unwrap();
    (store, times)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_stopped_between_reading_and_writing_reads_the_time_again() {
    let (store, times) = stopped_for(3_600, |at| writes(at, None, None)).await;
    assert_eq!(times, [1_000_000_000, 1_003_600_000]);
    assert_eq!(store.get("row").await.unwrap().found().unwrap().row.doc, "1003600000");
    assert_eq!(store.log("run", 0, 10).await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_between_reading_and_writing_repeats_the_transaction() {
    // L4: "Deadlines are compared with the store's clock, within the transaction that decides or claims." The clock steps by
    // less than it may be off, and behind the deadline.
    let again = [1_000_000_000, 1_000_002_000];
    let end = Some(1_000_001_000);
    assert_eq!(stopped_for(2, |at| writes(at, end, None)).await.1, again, "it falls due");
    assert_eq!(stopped_for(2, |at| writes(at, None, end)).await.1, again, "it holds no longer");
    assert_eq!(stopped_for(1, |at| writes(at, None, end)).await.1, again[..1], "it holds");
}

/// A store whose clock steps behind each reading of a transaction.
struct Stepping<S, F> {
    store: S,
    step: F,
}

impl<S: Store, F: Fn() + Send + Sync + 'static> Store for Stepping<S, F> {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let mut stopped = |at, rows| {
                let writes = work(at, rows);
                (self.step)();
                writes
            };
            self.store.transact(ids, linker, &mut stopped).await
        })
    }

    crate::support::inner_store!(store: get, list, due, log, logs);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_that_ages_between_reading_and_writing_is_not_claimed() {
    // A8: "An approval that is too old runs nothing", by the store's clock.
    let (store, step) = store().await;
    let store = Arc::new(store);
    let ledger = Ledger::new(Arc::clone(&store)).approvals_valid_for(seconds(3));
    let ask = ledger.park(Ask::new("r", "c", "rm")).await.unwrap();
    let id = ask.ask.id();
    let yes = Answer::Approve { args: None };
    ledger.decide(id, &ask.fingerprint, "ann", yes).await.unwrap();
    let step = move || block_in_place(|| Handle::current().block_on(step(2)));
    let slow = Ledger::new(Stepping { store, step });
    // Read two seconds after the approval, and written four seconds after it.
    assert_eq!(slow.get(id).await.unwrap().unwrap().state, AskState::Decided);
    slow.cancel("none", "ann").await.unwrap();
    let claimed = slow.claim(id, "w", seconds(60)).await.unwrap();
    assert!(matches!(claimed, Claimed::Aged { may_have_run: false, .. }), "{claimed:?}");
}
