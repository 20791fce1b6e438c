//! Hundreds of asks, decided and executed by processes at random, some of which are killed. What must hold is checked
//! from what the processes were told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Parked, Said, Shell};
use crate::support::Dice;

/// How many asks. `COUNTERSIGN_STORM=1000` for more.
fn asks() -> usize {
    std::env::var("COUNTERSIGN_STORM").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

const WORKERS: usize = 8;

/// So many of the workers take each ask.
const TAKERS: usize = 3;

/// The events, by the output of the processes.
#[derive(Default)]
struct History {
    /// Ask, person, answer, and the result for the process; none when it was killed.
    decisions: Vec<(usize, String, &'static str, Option<Said>)>,
    /// Ask and token of each execution.
    executed: Vec<(usize, u64)>,
    /// Ask, outcome, and what the process was told.
    settled: Vec<(usize, Value, Option<Said>)>,
}

/// Runs commands. `None` where the result of a command was lost.
pub(super) trait Hands {
    fn run(&mut self, args: &[&str]) -> Option<Said>;

    fn run_and_kill(&mut self, args: &[&str], after: Duration) -> Option<Said>;

    /// One of so many commands is killed.
    fn odds(&self) -> u64;
}

/// A process for each command.
impl Hands for &Shell {
    fn run(&mut self, args: &[&str]) -> Option<Said> {
        Some(Shell::run(self, args))
    }

    fn run_and_kill(&mut self, args: &[&str], after: Duration) -> Option<Said> {
        Shell::run_and_kill(self, args, after)
    }

    fn odds(&self) -> u64 {
        6
    }
}

/// Runs a command, and kills it at times.
fn run(hands: &mut impl Hands, dice: &mut Dice, args: &[&str]) -> Option<Said> {
    match dice.roll(hands.odds()) {
        0 => hands.run_and_kill(args, Duration::from_micros(dice.roll(15_000))),
        _ => hands.run(args),
    }
}

/// One worker takes its asks, one after the other, and dies now and then. It begins no ask while the server is down: on a
/// slow machine it would be through with all of them before the server is back.
fn work(
    hands: &mut impl Hands,
    all: &[Parked],
    worker: usize,
    history: &Mutex<History>,
    is_down: &AtomicBool,
) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (worker as u64 + 1));
    let mut mine: Vec<_> = (0..all.len()).filter(|n| (n * 7 + worker) % WORKERS < TAKERS).collect();
    for n in (1..mine.len()).rev() {
        mine.swap(n, usize::try_from(dice.roll(n as u64 + 1)).unwrap());
    }
    for n in mine {
        while is_down.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        let (ask, who) = (&all[n], format!("person {worker}"));
        let no = dice.roll(4) == 0;
        let decide = ["decide", &ask.id, "--fingerprint", &ask.fingerprint, "--as", &who];
        let answer: &[&str] = if no { &["--deny", "no"] } else { &["--approve"] };
        let told = run(hands, &mut dice, &[&decide[..], answer].concat());
        let word = if no { "deny" } else { "approve" };
        history.lock().unwrap().decisions.push((n, who, word, told));

        let claim = ["claim", &ask.id, "--worker", &worker.to_string(), "--lease-s", "0.5"];
        let Some(claimed) = run(hands, &mut dice, &claim).filter(|said| said.status == 0) else {
            continue;
        };
        let token = claimed.line()["token"].as_u64().unwrap();
        history.lock().unwrap().executed.push((n, token));
        if dice.roll(8) == 0 {
            continue; // It dies after the tool, before it settles.
        }
        let outcome = json!(format!("by {worker}, {token}"));
        let (token, text) = (token.to_string(), outcome.to_string());
        let settle = ["settle", &ask.id, "--token", &token, "--outcome", &text];
        let told = run(hands, &mut dice, &settle);
        history.lock().unwrap().settled.push((n, outcome, told));
    }
}

#[test]
fn a_storm_of_processes_and_kills_decides_and_executes_each_ask_at_most_once() {
    let shell = Shell::sqlite();
    let all: Vec<_> = (0..asks())
        .map(|n| {
            let idempotent = n % 4 == 0;
            let (args, key) = (json!({"n": n}), format!("ask {n}"));
            let ask = json!({"tool": "t", "args": args, "questions": [], "key": key, "idempotent": idempotent});
            shell.park(&ask)
        })
        .collect();
    let history = Mutex::new(History::default());
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (mut shell, all, history) = (&shell, &all, &history);
            scope.spawn(move || work(&mut shell, all, worker, history, &AtomicBool::new(false)));
        }
    });
    check(&shell, &all, &history.into_inner().unwrap());
}

/// Parks asks, three of them in each run, so that decisions about different asks meet in one log.
fn park(url: &str, count: usize) -> Vec<Parked> {
    use countersign::Args;
    use countersign::ledger::{Ask, Ledger};
    use countersign_postgres::PostgresStore;
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let ledger = Ledger::new(PostgresStore::connect(url).await.unwrap());
        let park = async |n: usize| {
            let ask = Ask::new(format!("run {}", n / 3), format!("root/c{n}"), "t");
            let ask = ask.with_args(Args::new().with("n", n)).with_idempotent(n.is_multiple_of(4));
            let record = ledger.park(ask).await.unwrap();
            Parked { id: record.ask.id().to_owned(), fingerprint: record.fingerprint }
        };
        let mut all = Vec::new();
        for chunk in (0..count).collect::<Vec<_>>().chunks(16) {
            all.extend(futures::future::join_all(chunk.iter().map(|n| park(*n))).await);
        }
        all
    })
}

#[test]
fn a_storm_over_postgresql_survives_kills_of_processes_and_of_the_server() {
    use super::session::Session;

    let server = crate::support::postgres::Server::start();
    let shell = Shell::on(&server);
    let all = park(&shell.url, 1_000);
    let (history, kills) = (Mutex::new(History::default()), Mutex::new(0));
    let is_down = AtomicBool::new(false);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (mut session, all, history, kills) = (Session::new(&shell), &all, &history, &kills);
            let is_down = &is_down;
            scope.spawn(move || {
                work(&mut session, all, worker, history, is_down);
                *kills.lock().unwrap() += session.kills;
            });
        }
        // In the middle of it.
        let decided = || history.lock().unwrap().decisions.len();
        while decided() < all.len() * TAKERS / 3 {
            thread::sleep(Duration::from_millis(10));
        }
        server.kill();
        is_down.store(true, Ordering::Relaxed);
        server.start_again();
        is_down.store(false, Ordering::Relaxed);
        assert!(decided() < all.len() * TAKERS, "it was in the middle");
    });
    let history = history.into_inner().unwrap();
    assert!(kills.into_inner().unwrap() > WORKERS, "processes were killed");
    assert!(history.executed.len() > all.len() / 4, "and some came to their end");
    check(&shell, &all, &history);
}

/// What must hold after every course of events.
fn check(shell: &Shell, all: &[Parked], history: &History) {
    thread::sleep(Duration::from_millis(600));
    assert_eq!(shell.run(&["expire"]).status, 0);
    let listed = shell.run(&["list"]).lines;
    let shown: BTreeMap<&str, &Value> =
        listed.iter().map(|shown| (shown["id"].as_str().unwrap(), shown)).collect();
    assert_eq!(shown.len(), all.len(), "nothing is lost");
    for (n, ask) in all.iter().enumerate() {
        let shown = shown[ask.id.as_str()];
        assert_eq!(shown["args"]["n"], n);
        decided_once(shown, history.decisions.iter().filter(|it| it.0 == n));
        let executed = history.executed.iter().filter(|it| it.0 == n).map(|it| it.1);
        executed_once(shown, n % 4 == 0, &executed.collect::<Vec<_>>());
        let settled: Vec<_> = history.settled.iter().filter(|it| it.0 == n).collect();
        for (_, outcome, told) in &settled {
            if let Some(told) = told.as_ref().filter(|told| told.status == 0) {
                assert_eq!(told.line()["outcome"], *outcome, "what was told was recorded");
                assert_eq!(shown["outcome"], *outcome, "and is not changed any more");
            }
        }
        let outcome = &shown["outcome"];
        assert!(outcome.is_null() || settled.iter().any(|it| it.1 == *outcome), "{shown}");
    }
    shell.verify();
}

fn decided_once<'a>(
    shown: &Value,
    decisions: impl Iterator<Item = &'a (usize, String, &'static str, Option<Said>)>,
) {
    let mut winners = 0;
    for (_, who, word, told) in decisions {
        let won = shown["decided_by"] == who.as_str();
        match told {
            None => {}
            // It may have been killed after it had told.
            Some(said) if said.line()["result"] == "won" => {
                assert!(won, "the answer that won is the decision: {shown}");
                assert_eq!(shown["decision"], *word);
                winners += 1;
            }
            Some(said) => {
                assert_eq!(said.line()["result"], "lost", "each loser is told");
                let winner = &said.line()["winner"];
                assert_eq!(winner["by"], shown["decided_by"], "who won");
                assert_eq!(winner["decision"], shown["decision"], "and what");
                assert!(!won);
            }
        }
    }
    assert!(winners <= 1, "one decision, one winner: {shown}");
}

fn executed_once(shown: &Value, idempotent: bool, tokens: &[u64]) {
    if shown["decision"] != "approve" {
        assert_eq!(tokens, [0; 0], "nothing ran that was not approved: {shown}");
    }
    let different: BTreeSet<_> = tokens.iter().collect();
    assert_eq!(different.len(), tokens.len(), "no token is given twice: {tokens:?}");
    assert!(idempotent || tokens.len() <= 1, "executed at most once: {tokens:?} {shown}");
}
