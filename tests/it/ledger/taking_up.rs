//! Concurrent workers, deciders and clocks on one run (rules L1 to L5).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use countersign::agent::{TakeUp, text};
use countersign::call::Phase;
use countersign::deferred::Answer;
use countersign::ledger::{AskState, Claimed, Decided, Ledger};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::testing::ScriptedModel;
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, BoxError, Decision, Error, Model, Outcome, RunContext, ToolCall, ToolDefinition,
    ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn,
};
use futures::FutureExt as _;
use serde_json::json;

use super::closing::{Fate, World};
use crate::support::failing_store::{Failing, How};
use crate::support::{Recorder, call};

#[tokio::test]
async fn a_decision_at_any_moment_of_a_resume_is_not_missed() {
    // The decider tries to resume the run, gets `Held`, and does not try again.
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
                let decider = world.agent(world.ledger().worker("decider"), ScriptedModel::new([]));
                let taken = decider.take_up(&run).await.unwrap();
                *told.lock().unwrap() = Some(taken);
            };
            if now == at { decides.boxed() } else { async {}.boxed() }
        });
        let worker =
            world.agent(Ledger::new(failing.clone()).worker("worker"), ScriptedModel::new([]));
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
        let over = world.ledger().waiting_runs(10).await.unwrap().records.is_empty();
        assert!(over, "transaction {at}: the decision was missed: {told:?}, {ended:?}");
        assert_eq!(world.recorder.ids(), ["c1"], "transaction {at}");
        world.check(&run, &format!("transaction {at}")).await;
        if let TakeUp::Resumed(Ok(ended)) = &ended {
            let told = ended.turns().iter().flat_map(|report| report.calls());
            assert!(told.count() >= 2, "the results of earlier calls are included");
        }
        at += 1;
    }
}

#[tokio::test]
async fn an_expired_ask_is_a_denial_without_a_call_of_expire() {
    // L4: "Deadlines are compared with the store's clock … Expiry is a denial recorded as expiry".
    let world = World::new();
    let run = world.parked(&[Fate::Late]).await;
    assert_eq!(world.asks().await[0].state, AskState::Pending, "`expire` was not called");
    let agent = world.agent(world.ledger(), ScriptedModel::new([]));
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    let late = Outcome::denied("No decision was made in time.");
    assert_eq!(ended.turns()[0].calls()[0].outcome(), &late);
    let ask = world.asks().await.remove(0);
    assert_eq!((ask.state, ask.decision), (AskState::Expired, None));
}

#[tokio::test]
async fn a_call_that_another_worker_executes_stays_pending() {
    // L2: a call whose worker is alive is never reported as "may have run".
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    let id = world.asks().await[0].ask.id().to_owned();
    let lease = Duration::from_secs(30);
    let claimed = world.ledger().claim(&id, "busy", lease).await.unwrap();
    let Claimed::Claimed { token } = claimed else { panic!("{claimed:?}") };
    let agent = world.agent(world.ledger(), ScriptedModel::new([]));
    let TakeUp::Resumed(Ok(ended)) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(ended.suspended().unwrap().requests().iter().count(), 1, "it stays pending");
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
async fn a_worker_that_lost_its_lease_learns_that_another_has_the_run() {
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
    while !matches!(world.ledger().acquire_run_as(&run, "?", Duration::ZERO).await, Ok(it) if format!("{it:?}").starts_with("Held"))
    {
        tokio::task::yield_now().await;
    }
    world.pass(31);
    let second = world.agent(world.ledger(), ScriptedModel::new([]));
    let TakeUp::Resumed(Ok(ended)) = second.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(ended.text(), Some("Done."));
    model.0.notify_one();
    match first.await.unwrap().unwrap() {
        TakeUp::NotKept { ended: Ok(ended), error: None } => assert_eq!(ended.text(), Some("late")),
        other => panic!("{other:?}"),
    }
    assert!(matches!(second.take_up(&run).await.unwrap(), TakeUp::Over(text) if text == "Done."));
}

#[tokio::test]
async fn a_result_that_could_not_be_saved_is_returned_with_the_reason() {
    // T9: "Every error after something ran carries the state to resume from".
    let world = World::new();
    let run = world.parked(&[Fate::Denied, Fate::Waits]).await;
    let failing = Failing::at(&world.store, None);
    let whole = world.agent(Ledger::new(failing.clone()), ScriptedModel::new([]));
    assert!(matches!(whole.take_up(&run).await.unwrap(), TakeUp::Resumed(Ok(_))));
    // The last transaction is the one that saves.
    let world = World::new();
    let run = world.parked(&[Fate::Denied, Fate::Waits]).await;
    let failing = Failing::at(&world.store, Some((failing.count() - 1, How::Fails)));
    let agent = world.agent(Ledger::new(failing.clone()), ScriptedModel::new([]));
    match agent.take_up(&run).await.unwrap() {
        TakeUp::NotKept { ended: Ok(ended), error: Some(Error::Ledger(_)) } => {
            assert_eq!(ended.suspended().unwrap().requests().iter().count(), 1);
        }
        other => panic!("{other:?}"),
    }
}

/// What becomes of a run with this call, about which this is decided in the ledger.
async fn decided(external: bool, answer: Option<Answer>) -> (Outcome, usize) {
    let world = World::new();
    let tool = |name: &str| ToolDefinition::new(name, json!({"type": "object"}));
    let tools = match external {
        true => countersign::Tools::from(ExternalToolset::new("elsewhere", [tool("pay")])),
        false => world.recorder.clone().approval_required(),
    };
    let agent = |model: ScriptedModel| {
        Agent::new(model, tools.clone()).output(text().or_deferred()).ledger(world.ledger())
    };
    let calls = ModelResponse::calls([call("c1", "pay", json!({"n": 1}))]);
    let run = agent(ScriptedModel::new([calls])).run("go").await.unwrap().run_id().to_owned();
    let ask = world.asks().await.remove(0);
    match answer {
        None => {
            world.ledger().cancel(ask.ask.id(), "ann").await.unwrap();
        }
        Some(answer) => {
            let made = world.ledger().decide(ask.ask.id(), &ask.fingerprint, "ann", answer).await;
            assert_eq!(made.unwrap(), Decided::Won { again: false });
        }
    }
    let taken = agent(ScriptedModel::new([])).take_up(&run).await.unwrap();
    let TakeUp::Resumed(Ok(ended)) = taken else { panic!("{taken:?}") };
    assert_eq!(ended.text(), Some("Done."));
    world.check(&run, "decided").await;
    (ended.turns()[0].calls()[0].outcome().clone(), world.recorder.ran().len())
}

#[tokio::test]
async fn no_decision_leaves_a_run_that_cannot_continue() {
    // D4: "an answer of the wrong type: the call is denied". A decision is final, so that an error would be, too.
    let deny = || Some(Answer::Deny { message: "no".into() });
    let approve = |args: serde_json::Value| {
        Some(Answer::Approve { args: Some(serde_json::from_value(args).unwrap()) })
    };
    let answer = |value| Some(Answer::Result { value });
    for (external, answer, word, says) in [
        (true, deny(), "failed", "no"),
        (true, None, "failed", "withdrawn"),
        (true, answer(json!({"n": 2})), "returned", "2"),
        (true, answer(json!({"kind": "tool-return"})), "failed", "could not be read"),
        (true, Some(Answer::Approve { args: None }), "failed", "needed a result"),
        (false, deny(), "denied", "no"),
        (false, None, "denied", "withdrawn"),
        (false, answer(json!(42)), "denied", "needed an approval"),
        (false, approve(json!({"invalid": 1})), "retry", "do not fit"),
        (false, approve(json!({"n": 2})), "returned", "2"),
    ] {
        let when = format!("external: {external}, {answer:?}");
        let (outcome, ran) = decided(external, answer).await;
        assert_eq!(outcome.word(), word, "{when}");
        assert!(outcome.content().unwrap().to_string().contains(says), "{when}: {outcome:?}");
        assert_eq!(ran, usize::from(!external && word == "returned"), "{when}");
    }
}

/// Asks for a call, once it is told to answer.
#[derive(Clone, Default)]
struct Calling(Arc<tokio::sync::Notify>);

impl Model for Calling {
    async fn respond(&self, _: ModelRequest) -> Result<ModelResponse, BoxError> {
        self.0.notified().await;
        Ok(ModelResponse::calls([call("c9", "pay", json!({"n": 1}))]))
    }
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_starts_nothing_more() {
    // L5: "One worker at a time takes up the run, has its lease while the run continues".
    let world = World::new();
    let run = world.parked(&[Fate::Denied]).await;
    let model = Calling::default();
    // Its calls run without a question.
    let store = Failing::at(&world.store, None);
    let slow = Agent::new(model.clone(), world.recorder.clone())
        .output(text().or_deferred())
        .ledger(Ledger::new(store.clone()).worker("slow").lease(Duration::from_millis(30)));
    let first = tokio::spawn({
        let run = run.clone();
        async move { slow.take_up(&run).await }
    });
    let second = world.agent(world.ledger(), ScriptedModel::new([]));
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        let held = world.ledger().waiting_runs(1).await.unwrap().records.remove(0).claim.is_some();
        if held {
            break;
        }
    }
    world.pass(31);
    let TakeUp::Resumed(Ok(_)) = second.take_up(&run).await.unwrap() else { panic!() };
    // It renews its lease, and finds it lost.
    let told = store.count() + 2;
    while store.count() < told {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    model.0.notify_one();
    match first.await.unwrap().unwrap() {
        TakeUp::NotKept { ended: Err(error), error: None } => {
            assert!(
                matches!(error.error(), Error::RunGoneOn { run: gone } if *gone == run),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    assert!(world.recorder.ran().is_empty());
}

/// Asks something else each time it sees an approved call, twice.
struct AsksAnew(std::sync::atomic::AtomicUsize);

impl ToolMiddleware for AsksAnew {
    async fn before_tool_call(&self, cx: &RunContext, _: &ToolCall) -> Decision {
        if cx.phase() == Phase::First {
            return Decision::allow();
        }
        match self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            n if n < 2 => Decision::ask(format!("question {n}")),
            _ => Decision::allow(),
        }
    }
}

#[tokio::test]
async fn the_ask_of_a_dead_worker_is_not_the_pending_one() {
    // A1: "changed args or a new question defers again". An approval of the one is none of the other.
    let world = World::new();
    let run = world.parked(&[Fate::Approved]).await;
    let anew = AsksAnew(Default::default()).into_layer();
    let tools = world.recorder.clone().approval_required().layered(anew);
    let agent = |ledger: Ledger| {
        let model = ScriptedModel::new([]);
        Agent::new(model, tools.clone()).output(text().or_deferred()).ledger(ledger)
    };
    // Taken, decided, parked anew; the worker dies before it saves.
    let failing = Failing::at(&world.store, Some((3, How::DiesBefore)));
    let first = agent(Ledger::new(failing.clone()));
    assert!(failing.work(first.take_up(&run)).await.is_none());
    assert_eq!(world.asks().await.len(), 2);
    world.pass(31);
    world.approve_all().await;
    let second = agent(world.ledger());
    for _ in 0..2 {
        let TakeUp::Resumed(Ok(ended)) = second.take_up(&run).await.unwrap() else { panic!() };
        let requests = ended.suspended().unwrap().requests();
        assert!(requests.questions("c0").iter().any(|it| it.reason() == "question 1"));
        assert!(world.recorder.ran().is_empty());
    }
    world.approve_all().await;
    let TakeUp::Resumed(Ok(ended)) = second.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!((ended.text(), world.recorder.ids()), (Some("Done."), vec!["c0".to_owned()]));
    world.check(&run, "at the end").await;
}

#[tokio::test]
async fn a_call_recorded_with_other_arguments_does_not_run() {
    let pay = || ToolDefinition::new("pay", json!({"type": "object"})).with_journaled(true);
    for (idempotent, lost, words) in
        [(false, false, ["failed", "returned"]), (true, true, ["unknown", "returned"])]
    {
        let world = World::new();
        // A worker dies between writing the call down and executing it, or in the middle of executing it.
        let recorder = Recorder::of([pay().with_idempotent(idempotent)]);
        // The first two transactions are those in which a new store says which key it has.
        let at = if lost { 4 } else { 3 };
        let failing = Failing::at(&world.store, Some((at, How::DiesBefore)));
        let turn = |ledger: Ledger| Turn::new(recorder.clone()).of_run("run", 0).ledger(ledger);
        let pays = |n: u32| vec![call("c1", "pay", json!({"n": n}))];
        let first = turn(Ledger::new(failing.clone()));
        assert!(failing.work(first.run(pays(1))).await.is_none());
        world.pass(31);
        let ran = recorder.ran().len();
        let mut told = Vec::new();
        for n in [2, 1] {
            let report = turn(world.ledger()).run(pays(n)).await.unwrap();
            told.push(report.calls()[0].outcome().word());
        }
        assert_eq!(told, words, "idempotent: {idempotent}");
        let later: Vec<_> = recorder.ran()[ran..].iter().map(|ran| ran.args["n"].clone()).collect();
        assert_eq!(later, [json!(1)]);
    }
}
