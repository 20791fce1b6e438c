//! A8: approvals age.

use std::sync::atomic::Ordering;
use std::time::Duration;

use countersign::agent::TakeUp;
use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, AskState, Claimed, Decided, Ledger, Quorum};
use countersign::testing::ScriptedModel;
use countersign::{ToolDefinition, Turn};
use serde_json::json;

use super::closing::{Fate, World};
use crate::support::failing_store::{Failing, How};
use crate::support::{Recorder, call};

const HOUR: Duration = Duration::from_secs(3600);
const LEASE: Duration = Duration::from_secs(30);

/// Sets how long an approval of an ask holds.
type Setting = fn(Ask) -> Ask;

fn yes() -> Answer {
    Answer::Approve { args: None }
}

fn ask(name: &str) -> Ask {
    Ask::new(format!("run of {name}"), "root/c1", "delete_file").with_principal("mallory")
}

async fn parked(ledger: &Ledger, ask: Ask) -> AskRecord {
    ledger.park(ask).await.unwrap()
}

async fn decide(ledger: &Ledger, ask: &AskRecord, by: &str) -> Decided {
    ledger.decide(ask.ask.id(), &ask.fingerprint, by, yes()).await.unwrap()
}

async fn claim(ledger: &Ledger, ask: &AskRecord) -> Claimed {
    ledger.claim(ask.ask.id(), "w", LEASE).await.unwrap()
}

fn hours(world: &World, hours: i64) {
    world.time.fetch_add(hours * 3_600_000, Ordering::Relaxed);
}

/// A8: "An approval that is dated in the future counts for nothing": a store that was prepared with a clock ahead.
#[tokio::test]
async fn an_approval_of_the_future_counts_for_nothing() {
    for ages in [true, false] {
        let world = World::new();
        let ledger = match ages {
            true => world.ledger(),
            false => world.ledger().approvals_valid_for(None),
        };
        for (ahead, counts) in [(0, true), (30, true), (120, false), (365 * 86_400, false)] {
            world.time.fetch_add(ahead * 1000, Ordering::Relaxed);
            let it = parked(&ledger, ask(&format!("{ahead} s ahead"))).await;
            assert!(matches!(decide(&ledger, &it, "ann").await, Decided::Won { .. }));
            world.time.fetch_sub(ahead * 1000, Ordering::Relaxed);
            let it = ledger.get(it.ask.id()).await.unwrap().unwrap();
            assert_eq!(
                it.counting_votes(ledger.now().await.unwrap()).count() == 1,
                counts,
                "{ahead}"
            );
            let claimed = ledger.claim(it.ask.id(), "w", LEASE).await;
            assert_eq!(
                matches!(claimed, Ok(Claimed::Claimed { .. })),
                counts,
                "{ahead}: {claimed:?}"
            );
            // An ask that is dated by more than an hour ahead is an error for the host.
            assert_eq!(claimed.is_err(), ahead > 3600, "{ahead}: {claimed:?}");
        }
        // Nor does one whose second vote is of the future.
        let two = Quorum { approvals: 2, not_the_requester: false };
        let it = parked(&ledger, ask("of two").with_quorum(two)).await;
        decide(&ledger, &it, "ann").await;
        world.time.fetch_add(600_000, Ordering::Relaxed);
        decide(&ledger, &it, "bob").await;
        world.time.fetch_sub(600_000, Ordering::Relaxed);
        assert!(!matches!(claim(&ledger, &it).await, Claimed::Claimed { .. }));
    }
}

#[tokio::test]
async fn an_approval_is_used_within_its_time_and_not_after_it() {
    // A8: "Ledger default 24 h, configurable, `None` allowed".
    let world = World::new();
    let (day, hour, ever) = (
        world.ledger(),
        world.ledger().approvals_valid_for(HOUR),
        world.ledger().approvals_valid_for(None),
    );
    let cases: [(&str, &Ledger, Setting, i64); 4] = [
        ("by default", &day, |ask| ask, 24),
        ("of the ledger", &hour, |ask| ask, 1),
        ("of the ask", &day, |ask| ask.with_valid_for(2 * HOUR), 2),
        ("of the ask, where the ledger's is for ever", &ever, |ask| ask.with_valid_for(HOUR), 1),
    ];
    for (what, ledger, set, holds) in cases {
        let it = parked(ledger, set(ask(what))).await;
        let early = parked(ledger, set(ask(&format!("early {what}")))).await;
        for ask in [&it, &early] {
            assert_eq!(decide(ledger, ask, "ann").await, Decided::Won { again: false });
        }
        let since = world.time.load(Ordering::Relaxed);
        world.time.fetch_add(holds * 3_600_000 - 1, Ordering::Relaxed);
        assert_eq!(claim(ledger, &early).await, Claimed::Claimed { token: 1 }, "{what}");
        world.time.fetch_add(1, Ordering::Relaxed);
        let aged = Claimed::Aged { since, may_have_run: false };
        assert_eq!(claim(ledger, &it).await, aged, "A8: {what}");
        assert_eq!(claim(ledger, &it).await, aged, "each time: {what}");
        let now = ledger.get(it.ask.id()).await.unwrap().unwrap();
        assert_eq!((now.state, now.token), (AskState::Expired, 0), "nothing of it runs");
        assert!(ledger.verify(&Default::default()).await.is_ok());
    }
    for (what, ledger, ask) in [
        ("of the ledger", &ever, ask("for ever")),
        ("of the ask", &day, ask("own, for ever").with_valid_for(None)),
    ] {
        let it = parked(ledger, ask).await;
        decide(ledger, &it, "ann").await;
        hours(&world, 24 * 400);
        assert_eq!(claim(ledger, &it).await, Claimed::Claimed { token: 1 }, "{what}");
    }
}

#[tokio::test]
async fn the_age_runs_from_the_oldest_vote_that_counted() {
    let world = World::new();
    let ledger = world.ledger();
    let two = Quorum { approvals: 2, not_the_requester: false };
    let it = parked(&ledger, ask("voted").with_quorum(two)).await;
    decide(&ledger, &it, "ann").await;
    let since = world.time.load(Ordering::Relaxed);
    hours(&world, 20);
    assert_eq!(decide(&ledger, &it, "bob").await, Decided::Won { again: false });
    hours(&world, 4);
    let aged = Claimed::Aged { since, may_have_run: false };
    assert_eq!(claim(&ledger, &it).await, aged, "A8: \"from the oldest vote that counted\"");

    let it = parked(&ledger, ask("voted too slowly").with_quorum(two)).await;
    decide(&ledger, &it, "ann").await;
    let counting = async || {
        let (ask, now) =
            (ledger.get(it.ask.id()).await.unwrap().unwrap(), ledger.now().await.unwrap());
        ask.counting_votes(now).count()
    };
    hours(&world, 23);
    assert_eq!(counting().await, 1);
    hours(&world, 1);
    assert_eq!(counting().await, 0, "also before the next vote is given");
    let one = Decided::Recorded { approvals: 1, needed: 2, again: false };
    assert_eq!(decide(&ledger, &it, "bob").await, one, "a vote that is too old no longer counts");
    assert_eq!(
        decide(&ledger, &it, "ann").await,
        Decided::Won { again: false },
        "and can be given anew"
    );
    assert_eq!(claim(&ledger, &it).await, Claimed::Claimed { token: 1 });
}

#[tokio::test]
async fn a_take_over_is_as_old_as_the_approval() {
    // A8: "to each claim, take-overs included".
    let world = World::new();
    let ledger = world.ledger();
    let it = parked(&ledger, ask("taken over").with_idempotent(true)).await;
    decide(&ledger, &it, "ann").await;
    let since = world.time.load(Ordering::Relaxed);
    hours(&world, 23);
    assert_eq!(claim(&ledger, &it).await, Claimed::Claimed { token: 1 });
    world.pass(31);
    assert_eq!(claim(&ledger, &it).await, Claimed::Claimed { token: 2 }, "within its time");
    hours(&world, 1);
    let aged = Claimed::Aged { since, may_have_run: true };
    assert_eq!(claim(&ledger, &it).await, aged);
    let now = ledger.get(it.ask.id()).await.unwrap().unwrap();
    assert_eq!(now.state, AskState::Unknown, "the worker may still settle it");
}

#[tokio::test]
async fn a_call_with_an_aged_approval_is_asked_about_anew_and_its_siblings_run() {
    let world = World::new();
    let run = world.parked(&[Fate::Approved, Fate::Waits]).await;
    hours(&world, 25);
    let fresh = world.asks().await;
    let fresh = fresh.iter().find(|it| it.state == AskState::Pending).unwrap();
    decide(&world.ledger(), fresh, "ann").await;
    let agent = world.agent(world.ledger(), ScriptedModel::new([]));
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(world.recorder.ids(), ["c1"], "the sibling runs, and the aged one does not");
    assert_eq!(ended.suspended().unwrap().requests().iter().count(), 1, "one call waits");

    let asks = world.asks().await;
    let pending = asks.iter().find(|it| it.state == AskState::Pending).expect("a new ask");
    let questions = pending.ask.questions();
    let said: Vec<_> = questions.iter().map(|it| it.reason()).collect();
    assert!(said.iter().any(|it| it.contains("which is too long ago")), "{said:?}");
    assert_eq!(decide(&world.ledger(), pending, "bob").await, Decided::Won { again: false });
    let model = ScriptedModel::new([countersign::model::ModelResponse::text("Done.")]);
    let agent = world.agent(world.ledger(), model);
    let TakeUp::Resumed(Ok(_)) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(world.recorder.ids(), ["c0", "c1"], "approved anew, it runs once");
}

/// A8: "A call that the stack allowed without asking does not age": its approval is recorded once, and a process that comes
/// days later allows the call by its own stack.
#[tokio::test]
async fn a_call_that_the_stack_allowed_without_asking_does_not_age() {
    let pay = || ToolDefinition::new("pay", json!({"type": "object"})).with_journaled(true);
    // The worker dies before the claim, or in the body of a tool that may be run again. The first two transactions are
    // those in which a new store says which key it has.
    for (idempotent, dies_at, ran) in [(false, 3, 0), (true, 4, 1)] {
        let world = World::new();
        let recorder = Recorder::of([pay().with_idempotent(idempotent)]);
        let turn = |ledger: Ledger| Turn::new(recorder.clone()).of_run("run", 0).ledger(ledger);
        let calls = || vec![call("c1", "pay", json!({"euros": 5}))];
        let failing = Failing::at(&world.store, Some((dies_at, How::DiesBefore)));
        let first = turn(Ledger::new(failing.clone()));
        assert!(failing.work(first.run(calls())).await.is_none(), "the worker dies");
        assert_eq!(recorder.ran().len(), ran);

        hours(&world, 24 * 30);
        let report = turn(world.ledger()).run(calls()).await.unwrap();
        assert!(report.calls()[0].outcome().is_returned(), "{idempotent}: {report:?}");
        assert_eq!(recorder.ran().len(), ran + 1, "no person is asked: {idempotent}");
        let [record] = &world.asks().await[..] else { panic!("one ask") };
        assert_eq!(record.state, AskState::Executed, "A8: {record:?}");
    }
}
