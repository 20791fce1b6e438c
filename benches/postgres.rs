//! The cost of the ledger in PostgreSQL, on a server of its own with real commits to the disk: decisions and claims
//! beside bare updates of one row, on a fast and on a slow disk, the inbox beside a million settled asks, and the time until a
//! run that waits in another process continues.

#[path = "../tests/it/support/postgres.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod server;

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, AskState, Claimed, Decided, Ledger};
use countersign_postgres::PostgresStore;
use futures::future::join_all;
use server::Server;

const LEASE: Duration = Duration::from_secs(600);

/// Set in the environment of the process in which runs are pending.
const WAITS: &str = "COUNTERSIGN_BENCH_WAITS";

/// How often each is measured, one after the other.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() {
    if let Ok(url) = std::env::var(WAITS) {
        return waits(&url).await;
    }
    for (disk, options) in DISKS {
        let server = Server::start_with(&format!("-c shared_buffers=256MB {options}"));
        println!("{disk}");
        decisions(&server, if options.is_empty() { 600 } else { 100 }).await;
        if options.is_empty() {
            wake(&server.url().await).await;
            inbox(&server).await;
        }
    }
}

/// A slow disk is a server that waits before each flush of its log, one flush at a time. A commit that arrives while
/// it waits is flushed with the others, as a disk would flush it with the next ones.
const DISKS: [(&str, &str); 2] = [
    ("the disk as it is", ""),
    ("4 ms more for each flush", "-c commit_delay=4000 -c commit_siblings=0"),
];

/// Decisions and claims beside bare updates; so many of each for a decider.
async fn decisions(server: &Server, each: usize) {
    let url = server.url().await;
    println!("deciders | bare updates/s | decisions/s | of bare | claims/s | of bare");
    for deciders in [1, 4, 16] {
        // They take turns, and these are the medians.
        let mut rates = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            let count = each * deciders.min(4);
            rates[0].push(bare(server, &url, deciders, count).await);
            let (decided, claimed) = ledger(&url, deciders, count, round).await;
            rates[1].push(decided);
            rates[2].push(claimed);
        }
        let [bare, decided, claimed] = rates.map(|mut rates| {
            rates.sort_by(f64::total_cmp);
            rates[ROUNDS / 2]
        });
        println!(
            "{deciders:8} | {bare:14.0} | {decided:11.0} | {:7.2} | {claimed:8.0} | {:7.2}",
            decided / bare,
            claimed / bare
        );
    }
}

/// Runs `count` pieces of work in this many concurrent tasks, and returns how many were done per second.
async fn rate(at_once: usize, count: usize, work: impl AsyncFn(usize, usize)) -> f64 {
    let (next, start) = (AtomicUsize::new(0), Instant::now());
    join_all((0..at_once).map(async |who| {
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= count {
                return;
            }
            work(who, n).await;
        }
    }))
    .await;
    count as f64 / start.elapsed().as_secs_f64()
}

/// Compare-and-swap of one column, prepared, each its own transaction.
async fn bare(server: &Server, url: &str, at_once: usize, count: usize) -> f64 {
    let sql = format!(
        "DROP TABLE IF EXISTS bare; CREATE TABLE bare (id text PRIMARY KEY, state text NOT NULL);
         INSERT INTO bare SELECT 'ask-' || n, 'pending' FROM generate_series(0, {count} - 1) AS n"
    );
    server.sql(url, &sql).await;
    server.sql(url, "CHECKPOINT").await;
    let mut clients = Vec::new();
    for _ in 0..at_once {
        let (client, connection) =
            tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        let sql = "UPDATE bare SET state = $2 WHERE id = $1 AND state = 'pending'";
        let statement = client.prepare(sql).await.unwrap();
        clients.push((client, statement));
    }
    rate(at_once, count, async |who, n| {
        let (client, statement) = &clients[who];
        let done = client.execute(statement, &[&format!("ask-{n}"), &"decided"]).await.unwrap();
        assert_eq!(done, 1);
    })
    .await
}

async fn ledger(url: &str, at_once: usize, count: usize, round: usize) -> (f64, f64) {
    let ledger = Ledger::new(PostgresStore::connect(url).await.unwrap());
    let parked = park(&ledger, &format!("bench-{at_once}-{round}"), count).await;
    let decided = rate(at_once, count, async |_, n| {
        let (id, yes) = (parked[n].ask.id(), Answer::Approve { args: None });
        let decided = ledger.decide(id, &parked[n].fingerprint, "ann", yes).await.unwrap();
        assert_eq!(decided, Decided::Won { again: false });
    })
    .await;
    let claimed = rate(at_once, count, async |_, n| {
        let claimed = ledger.claim(parked[n].ask.id(), "worker", LEASE).await.unwrap();
        assert_eq!(claimed, Claimed::Claimed { token: 1 });
    })
    .await;
    (decided, claimed)
}

/// Asks of a run each, as most runs wait for one thing at a time.
async fn park(ledger: &Ledger, name: &str, count: usize) -> Vec<AskRecord> {
    let mut parked = Vec::new();
    for chunk in (0..count).collect::<Vec<_>>().chunks(16) {
        parked.extend(
            join_all(chunk.iter().map(async |n| {
                let ask = Ask::new(format!("{name}-{n}"), "root/c1", "delete_file");
                ledger.park(ask).await.unwrap()
            }))
            .await,
        );
    }
    parked
}

/// From the end of `decide` in this process to a run in another one that has read the decision.
async fn wake(url: &str) {
    let ledger = Ledger::new(PostgresStore::connect(url).await.unwrap());
    let (mut worker, said) = worker(url);
    let mut times = Vec::new();
    for record in park(&ledger, "wake", 300).await {
        writeln!(worker.stdin.as_ref().unwrap(), "{}\t{}", record.ask.run(), record.ask.id())
            .unwrap();
        said.recv().unwrap();
        // Until it waits.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let yes = Answer::Approve { args: None };
        ledger.decide(record.ask.id(), &record.fingerprint, "ann", yes).await.unwrap();
        let decided = Instant::now();
        times.push(said.recv().unwrap().saturating_duration_since(decided));
    }
    drop(worker.stdin.take());
    worker.wait().unwrap();
    times.sort();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("from the decision to the run in another process: p50 {p50:.1?}, p99 {p99:.1?}");
}

/// This program as a second process, which waits for decisions, and the times of its messages.
fn worker(url: &str) -> (Child, Receiver<Instant>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(WAITS, url).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in lines {
            line.unwrap();
            let _ = sender.send(Instant::now());
        }
    });
    (child, receiver)
}

/// Waits for a decision about each ask that it reads, and prints when the wait begins and when the decision is there.
async fn waits(url: &str) {
    let ledger = Ledger::new(PostgresStore::connect(url).await.unwrap());
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (run, id) = line.split_once('\t').unwrap();
        println!("waits");
        ledger.wait_for_change(run, 1).await.unwrap();
        let record = ledger.get(id).await.unwrap().unwrap();
        assert_eq!(record.state, AskState::Decided);
        println!("continues");
    }
}

/// The newest 50 pending asks, among many settled ones.
async fn inbox(server: &Server) {
    for settled in [10_000, 1_000_000] {
        let url = server.url().await;
        let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
        let sql = format!(
            "INSERT INTO countersign_rows SELECT 'settled-' || n, 'ask', 'run-' || n, 'executed', n, NULL,
                 repeat('x', 200), '' FROM generate_series(1, {settled}) AS n"
        );
        server.sql(&url, &sql).await;
        server.sql(&url, "ANALYZE countersign_rows").await;
        park(&ledger, "inbox", 200).await;
        let mut times = Vec::new();
        for _ in 0..200 {
            let start = Instant::now();
            let found = ledger.list(Some(AskState::Pending), 50).await.unwrap().records;
            times.push(start.elapsed());
            assert_eq!(found.len(), 50);
        }
        times.sort();
        println!("the newest 50 pending among {settled} settled: {:.1?}", times[100]);
    }
}
