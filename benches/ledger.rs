//! The cost of deciding and claiming in an SQLite file, beside bare compare-and-swap updates of one row in the same
//! run, and the cost of listing: `cargo bench -p benches --bench ledger`.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskState, Claimed, Decided, Ledger};
use countersign_sqlite::SqliteStore;
use rusqlite::{Connection, params};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Changes of each kind in one measurement.
const CHANGES: usize = 400;

/// Measurements of each kind, which take turns; the median counts.
const ROUNDS: usize = 5;

fn main() {
    // `cargo test --benches` only builds it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let runtime = Runtime::new().unwrap();
    println!("changes a second      bare    decide  of bare     claim  of bare");
    for deciders in [1, 2, 4, 8, 16] {
        let mut rates = [const { Vec::new() }; 5];
        for _ in 0..ROUNDS {
            let bare = bare(deciders);
            let (decide, claim) = runtime.block_on(ledger(deciders));
            // Each ratio is within one round, as the speed of the disk changes between rounds.
            let round = [bare, decide, decide / bare, claim, claim / bare];
            rates.iter_mut().zip(round).for_each(|(rates, rate)| rates.push(rate));
        }
        let [bare, decide, decide_of, claim, claim_of] = rates.map(median);
        println!(
            "{deciders:>2} at once      {bare:>9.0} {decide:>9.0} {decide_of:>8.2} {claim:>9.0} {claim_of:>8.2}"
        );
    }
    let [few, many] = [10_000, 1_000_000].map(|settled| runtime.block_on(listing(settled)));
    println!("newest 50 pending among 10 000 settled {few:?}, among 1 000 000 {many:?}");
    println!("{:.2} times (at most 2)", many.as_secs_f64() / few.as_secs_f64());
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn rate(start: Instant) -> f64 {
    CHANGES as f64 / start.elapsed().as_secs_f64()
}

/// Updates of one row each, by connections of their own.
fn bare(deciders: usize) -> f64 {
    let place = TempDir::new().unwrap();
    let path = place.path().join("bare.db");
    let open = |path: &Path| {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "synchronous", "FULL").unwrap();
        connection
    };
    let first = open(&path);
    first.execute_batch("CREATE TABLE asks (id INTEGER PRIMARY KEY, state TEXT)").unwrap();
    for id in 0..CHANGES as i64 {
        first.execute("INSERT INTO asks VALUES (?1, 'pending')", [id]).unwrap();
    }
    let connections: Vec<_> = (0..deciders).map(|_| open(&path)).collect();
    let start = Instant::now();
    thread::scope(|scope| {
        for (n, connection) in connections.into_iter().enumerate() {
            scope.spawn(move || {
                let sql = "UPDATE asks SET state = 'decided' WHERE id = ?1 AND state = 'pending'";
                for id in (n..CHANGES).step_by(deciders) {
                    assert_eq!(
                        connection.prepare_cached(sql).unwrap().execute([id as i64]).unwrap(),
                        1
                    );
                }
            });
        }
    });
    rate(start)
}

/// Decisions and claims, by this many concurrent tasks.
async fn ledger(deciders: usize) -> (f64, f64) {
    let place = TempDir::new().unwrap();
    let ledger = Ledger::new(SqliteStore::open(place.path().join("asks.db")).await.unwrap());
    let mut asks = Vec::new();
    for n in 0..CHANGES {
        let record = ledger.park(Ask::new(format!("run {n}"), "c", "rm")).await.unwrap();
        asks.push((record.ask.id().to_owned(), record.fingerprint));
    }
    let mut rates = [0.0; 2];
    for (claiming, rate) in rates.iter_mut().enumerate() {
        let mut tasks = JoinSet::new();
        let start = Instant::now();
        for n in 0..deciders {
            let ledger = ledger.clone();
            let mine: Vec<_> = asks.iter().skip(n).step_by(deciders).cloned().collect();
            tasks.spawn(async move {
                for (id, fingerprint) in mine {
                    if claiming == 1 {
                        let claimed = ledger.claim(&id, "w", Duration::from_secs(60)).await;
                        assert_eq!(claimed.unwrap(), Claimed::Claimed { token: 1 });
                    } else {
                        let yes = Answer::Approve { args: None };
                        let decided = ledger.decide(&id, &fingerprint, "ann", yes).await;
                        assert_eq!(decided.unwrap(), Decided::Won { again: false });
                    }
                }
            });
        }
        tasks.join_all().await;
        *rate = self::rate(start);
    }
    (rates[0], rates[1])
}

/// The time to list the newest 50 pending among so many that are settled, and 10 000 that are pending for longer.
async fn listing(settled: usize) -> Duration {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let ledger = Ledger::new(SqliteStore::open(&path).await.unwrap());
    let ask = ledger.park(Ask::new("run", "c", "rm")).await.unwrap();
    let mut connection = Connection::open(&path).unwrap();
    let transaction = connection.transaction().unwrap();
    {
        let copy = "INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc, requester)
            SELECT ?1, kind, run, ?2, ?3, due_at, replace(doc, ?4, ?1), requester
            FROM countersign_rows WHERE id = ?4";
        let mut copy = transaction.prepare(copy).unwrap();
        for n in 0..settled + 10_000 {
            let every = (settled + 10_000) / 10_000;
            let state = if n % every == 0 { "pending" } else { "executed" };
            copy.execute(params![format!("{n:032}"), state, n as i64, ask.ask.id()]).unwrap();
        }
    }
    transaction.commit().unwrap();
    // The newest asks were written by the ledger itself, as it lists no others.
    for n in 0..50 {
        ledger.park(Ask::new("run", format!("newest {n}"), "rm")).await.unwrap();
    }
    let mut times = Vec::new();
    for _ in 0..101 {
        let start = Instant::now();
        let listed = ledger.list(Some(AskState::Pending), 50).await.unwrap().records;
        times.push(start.elapsed());
        assert_eq!(listed.len(), 50);
    }
    times.sort();
    times[50]
}
