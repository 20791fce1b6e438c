//! Processes, killed at any moment.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Said, Shell};

over_each_store!(
    many_processes_make_one_store_at_once,
    one_of_many_deciding_processes_wins_and_the_others_get_its_decision,
    one_of_many_workers_claims_an_ask,
    a_decision_killed_at_any_moment_is_recorded_or_not,
    a_worker_killed_at_any_moment_runs_nothing_twice,
);

/// Does the same from several processes at once.
fn at_once(count: usize, act: impl Fn(usize) -> Said + Sync) -> Vec<Said> {
    let ready = Barrier::new(count);
    thread::scope(|scope| {
        let (ready, act) = (&ready, &act);
        let threads: Vec<_> = (0..count)
            .map(|n| {
                scope.spawn(move || {
                    ready.wait();
                    act(n)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn statuses(said: &[Said]) -> Vec<i32> {
    let mut statuses: Vec<_> = said.iter().map(|said| said.status).collect();
    statuses.sort_unstable();
    statuses
}

fn many_processes_make_one_store_at_once(shell: &Shell) {
    let said = at_once(8, |_| shell.run(&["init"]));
    assert_eq!(statuses(&said), [0; 8], "{said:?}");
    assert_eq!(shell.run(&["verify"]).status, 3, "it is there, and empty");
}

fn one_of_many_deciding_processes_wins_and_the_others_get_its_decision(shell: &Shell) {
    // L1: "of any number of processes one wins, each loser is told who won and what".
    for _ in 0..4 {
        let ask = shell.ask();
        let said = at_once(4, |n| {
            let answer: &[&str] = if n % 2 == 0 { &["--approve"] } else { &["--deny", "no"] };
            shell.decide(&ask, &format!("person {n}"), answer)
        });
        assert_eq!(statuses(&said), [0, 3, 3, 3], "{said:?}");
        let shown = shell.show(&ask);
        for loser in said.iter().filter(|said| said.status == 3) {
            let winner = &loser.line()["winner"];
            assert_eq!(winner["by"], shown["decided_by"]);
            assert_eq!(winner["decision"], shown["decision"]);
        }
    }
    let ask = shell.ask();
    let said = at_once(4, |_| shell.decide(&ask, "ann", &["--approve"]));
    assert_eq!(statuses(&said), [0; 4], "who says the same twice won: {said:?}");
    let first = said.iter().filter(|said| said.line()["again"] == false);
    assert_eq!(first.count(), 1, "and decided once: {said:?}");
}

fn one_of_many_workers_claims_an_ask(shell: &Shell) {
    for _ in 0..4 {
        let ask = shell.approved(&json!({"tool": "rm", "args": {}, "questions": []}));
        let said = at_once(4, |n| shell.claim(&ask, &format!("w{n}"), "60"));
        assert_eq!(statuses(&said), [0, 3, 3, 3], "{said:?}");
    }
}

/// Moments from before a process has begun to after it has ended, by the time that one takes here and now.
fn moments(shell: &Shell) -> impl Iterator<Item = Duration> {
    let begun = Instant::now();
    shell.ask();
    let whole = begun.elapsed();
    (0..24).map(move |n| whole * n / 18)
}

fn a_decision_killed_at_any_moment_is_recorded_or_not(shell: &Shell) {
    for after in moments(shell) {
        let ask = shell.ask();
        let args =
            ["decide", &ask.id, "--fingerprint", &ask.fingerprint, "--as", "ann", "--approve"];
        let said = shell.run_and_kill(&args, after);
        let second = shell.decide(&ask, "bob", &["--deny", "no"]);
        match (said, second.told()) {
            (Some(said), (3, "lost")) => assert_eq!(said.line()["result"], "won"),
            (None, (3, "lost")) => assert_eq!(second.line()["winner"]["by"], "ann"),
            (None, (0, "won")) => {}
            other => panic!("{other:?}"),
        }
    }
    shell.verify();
}

fn a_worker_killed_at_any_moment_runs_nothing_twice(shell: &Shell) {
    // L2: "A crash between leaves unknown, never silently run again unless the tool is idempotent".
    for (n, after) in moments(shell).enumerate() {
        let idempotent = n % 2 == 0;
        let ask = json!({"tool": "rm", "args": {}, "questions": [], "idempotent": idempotent});
        let ask = shell.approved(&ask);
        let claimed =
            shell.run_and_kill(&["claim", &ask.id, "--worker", "w1", "--lease-s", "0"], after);
        let second = shell.claim(&ask, "w2", "60");
        let token = second.lines[0]["token"].as_u64();
        let expected: &[Option<u64>] = match (&claimed, idempotent) {
            (Some(_), true) => &[Some(2)],
            (Some(_), false) => &[None],
            (None, true) => &[Some(1), Some(2)],
            (None, false) => &[Some(1), None],
        };
        assert!(expected.contains(&token), "{claimed:?} {second:?}");
        let Some(token) = token else {
            assert_eq!(second.told(), (11, "unknown_outcome"));
            // The worker may be alive after all: its settlement is the latest claim's.
            assert_eq!(shell.settle(&ask, 1, "1").told(), (0, "settled"));
            continue;
        };
        let token = token.to_string();
        let settle = ["settle", &ask.id, "--token", &token, "--outcome", "\"done\""];
        let settled = shell.run_and_kill(&settle, after);
        let third = shell.claim(&ask, "w3", "60");
        match (settled, third.told()) {
            (_, (8, "settled")) => assert_eq!(third.line()["outcome"], "done"),
            (None, (3, "held")) => {
                let again = shell.run(&settle);
                assert_eq!((again.told(), &again.line()["again"]), ((0, "settled"), &json!(false)));
            }
            other => panic!("{other:?}"),
        }
    }
    shell.verify();
}
