//! Runs that several workers, deciders and clocks reach for at once (rules L1 to L5).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::ledger::{AskState, Claimed, Ledger};
use countersign::{
    Agent, BoxError, ErrorKind, Model, ModelRequest, ModelResponse, Outcome, TakeUp, ToolsExt, text,
};
use futures::FutureExt as _;

use super::closing::{Fate, World};
use super::failing::{Failing, How};
use crate::agent::Scripted;

#[tokio::test]
async fn a_decision_that_comes_at_any_moment_of_a_take_up_is_taken_up() {
    // Whoever decides tries to take the run up, is told that it is held, and does not come back.
    let mut at = 0;
    loop {
        let world = Arc::new(World::new());
        let run = world.parked(&[Fate::Denied, Fate::Waits]).await;
        let failing = Failing::at(&world.store, None);
        let told = Arc::new(Mutex::new(None));
        let (there, name, answer) = (Arc::clone(&world), run.clone(), Arc::clone(&told));
        failing.before(move |now| {
            let (world, run, told) = (Arc::clone(&there), name.clone(), Arc::clone(&answer));
            let decides = async move {
                world.approve_all().await;
                let decider = world.agent(world.ledger().worker("decider"), Scripted::default());
                let taken = decider.take_up(&run).await.unwrap();
                *told.lock().unwrap() = Some(taken);
            };
            if now == at { decides.boxed() } else { async {}.boxed() }
        });
        let worker =
            world.agent(Ledger::new(failing.clone()).worker("worker"), Scripted::default());
        let ended = worker.take_up(&run).await.unwrap();
        if failing.count() <= at {
            assert!(at >= 2, "a run is taken, and saved");
            break;
        }
        let told = told.lock().unwrap().take().unwrap();
        match &told {
            TakeUp::Held { by, .. } => assert_eq!(by, "worker"),
            TakeUp::Resumed(Ok(_)) => {}
            other => panic!("transaction {at}: {other:?}"),
        }
        let over = world.ledger().waiting_runs(10).await.unwrap().is_empty();
        assert!(over, "transaction {at}: nobody comes back to it: {told:?}, {ended:?}");
        assert_eq!(world.recorder.ids(), ["c1"], "transaction {at}");
        world.check(&run, &format!("transaction {at}")).await;
        if let TakeUp::Resumed(Ok(ended)) = &ended {
            let told = ended.turns().iter().flat_map(|report| report.calls());
            assert!(told.count() >= 2, "what became of the calls before is told as well");
        }
        at += 1;
    }
}

#[tokio::test]
async fn time_that_is_over_is_a_denial_also_where_nobody_looks_after_the_ledger() {
    // L4: "Deadlines are compared with the store's clock … Expiry is a denial recorded as expiry".
    let world = World::new();
    let run = world.parked(&[Fate::Late]).await;
    assert_eq!(world.asks().await[0].state, AskState::Pending, "nobody has called `expire`");
    let agent = world.agent(world.ledger(), Scripted::default());
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    let late = Outcome::denied("Nobody decided in time.");
    assert_eq!(ended.turns()[0].calls()[0].outcome(), &late);
    let ask = world.asks().await.remove(0);
    assert_eq!((ask.state, ask.decision), (AskState::Expired, None));
}

#[tokio::test]
async fn what_another_worker_executes_right_now_is_left_to_it() {
    // L2: "Leases renew." Nobody says "it may have run" of a call whose worker is alive.
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    let id = world.asks().await[0].ask.id().to_owned();
    let lease = Duration::from_secs(30);
    let claimed = world.ledger().claim(&id, "busy", lease).await.unwrap();
    let Claimed::Claimed { token } = claimed else { panic!("{claimed:?}") };
    let agent = world.agent(world.ledger(), Scripted::default());
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(ended.suspended().unwrap().requests().iter().count(), 1, "it goes on waiting");
    let outcome = serde_json::to_value(Outcome::returned("paid")).unwrap();
    world.ledger().settle(&id, token, outcome).await.unwrap();
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(ended.turns()[0].calls()[0].outcome(), &Outcome::returned("paid"));
    assert!(world.recorder.ran().is_empty());
}

/// Answers when it is told to.
#[derive(Clone, Default)]
struct Waiting(Arc<tokio::sync::Notify>);

impl Model for Waiting {
    async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.0.notified().await;
        Ok(ModelResponse::text("late"))
    }
}

#[tokio::test]
async fn a_worker_that_was_away_for_too_long_is_told_that_another_has_taken_the_run() {
    // L5: "saves it only while it is still the latest to have taken it; the others are told".
    let world = World::new();
    let run = world.parked(&[Fate::Denied]).await;
    let model = Waiting::default();
    let slow = Agent::new(model.clone(), world.recorder.clone().approval_required())
        .output(text().or_deferred())
        .ledger(world.ledger().worker("slow"));
    let first = tokio::spawn({
        let run = run.clone();
        async move { slow.take_up(&run).await }
    });
    while !matches!(world.ledger().take_run(&run, "?", Duration::ZERO).await, Ok(it) if format!("{it:?}").starts_with("Held"))
    {
        tokio::task::yield_now().await;
    }
    world.pass(31);
    let second = world.agent(world.ledger(), Scripted::default());
    let TakeUp::Resumed(Ok(ended)) = second.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(ended.text(), Some("done"));
    model.0.notify_one();
    match first.await.unwrap().unwrap() {
        TakeUp::NotKept { ended: Ok(ended), error: None } => assert_eq!(ended.text(), Some("late")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(second.take_up(&run).await.unwrap(), TakeUp::Over(text) if text == "done"));
}

#[tokio::test]
async fn what_could_not_be_kept_comes_back_with_the_reason() {
    // T9: "Every error after something ran carries the state to resume from".
    let world = World::new();
    let run = world.parked(&[Fate::Denied, Fate::Waits]).await;
    let failing = Failing::at(&world.store, None);
    let whole = world.agent(Ledger::new(failing.clone()), Scripted::default());
    assert!(matches!(whole.take_up(&run).await.unwrap(), TakeUp::Resumed(Ok(_))));
    // The last transaction is the one that saves.
    let world = World::new();
    let run = world.parked(&[Fate::Denied, Fate::Waits]).await;
    let failing = Failing::at(&world.store, Some((failing.count() - 1, How::Fails)));
    let agent = world.agent(Ledger::new(failing.clone()), Scripted::default());
    match agent.take_up(&run).await.unwrap() {
        TakeUp::NotKept { ended: Ok(ended), error: Some(ErrorKind::Ledger(_)) } => {
            assert_eq!(ended.suspended().unwrap().requests().iter().count(), 1);
        }
        other => panic!("{other:?}"),
    }
}
