//! A call's one result, and the end of its ask, are one transaction (rule L5).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use countersign::agent::{TakeUp, text};
use countersign::call::Phase;
use countersign::deferred::Answer;
use countersign::ledger::{AskRecord, AskState, Ledger, MemoryStore};
use countersign::message::RequestPart;
use countersign::model::ModelResponse;
use countersign::testing::ScriptedModel;
use countersign::{
    Agent, Decision, FunctionToolset, Message, RunContext, SuspendedRun, ToolCall, ToolMiddleware,
    ToolMiddlewareExt, ToolsExt,
};
use serde_json::{Value, json};

use crate::support::failing_store::{Failing, How};
use crate::support::{Recorder, call};

/// The fate of a call before its run is resumed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fate {
    Approved,
    Denied,
    /// Approved, and then denied by a layer.
    Refused,
    /// There is no decision.
    Waits,
    Withdrawn,
    /// There was no decision in time.
    Late,
}

const FATES: [Fate; 6] =
    [Fate::Approved, Fate::Denied, Fate::Refused, Fate::Waits, Fate::Withdrawn, Fate::Late];

/// Denies what was approved.
struct Refuses;

impl ToolMiddleware for Refuses {
    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let refused = call.args().get("fate").is_some_and(|fate| fate == "Refused");
        match cx.phase() {
            Phase::Approved if refused => Decision::deny("not this one"),
            _ => Decision::allow(),
        }
    }
}

/// The ids of the calls whose results are in a history.
fn results(history: &[Message]) -> Vec<String> {
    let parts = history.iter().filter_map(|message| match message {
        Message::Request { parts } => Some(parts),
        Message::Response { .. } => None,
    });
    let ids = parts.flatten().filter_map(|part| match part {
        RequestPart::ToolReturn { tool_call_id, .. } => Some(tool_call_id.clone()),
        _ => None,
    });
    ids.collect()
}

/// A store, its clock, and what ran.
pub(super) struct World {
    pub(super) store: MemoryStore,
    pub(super) time: Arc<AtomicI64>,
    pub(super) recorder: Recorder,
}

impl World {
    pub(super) fn new() -> Self {
        let time = Arc::new(AtomicI64::new(1_000));
        let clock = Arc::clone(&time);
        let store = MemoryStore::with_clock(move || clock.load(Ordering::SeqCst));
        Self { store, time, recorder: Recorder::new(["pay"]) }
    }

    pub(super) fn ledger(&self) -> Ledger {
        Ledger::new(self.store.clone())
    }

    pub(super) fn pass(&self, seconds: i64) {
        self.time.fetch_add(seconds * 1_000, Ordering::SeqCst);
    }

    /// An agent that may pay, and asks before it does.
    pub(super) fn agent(&self, ledger: Ledger, model: ScriptedModel) -> Agent {
        let tools = self.recorder.clone().approval_required().layered(Refuses.into_layer());
        Agent::new(model, tools).output(text().or_deferred()).ledger(ledger)
    }

    /// Parks a run whose calls have these fates.
    pub(super) async fn parked(&self, fates: &[Fate]) -> String {
        let calls = fates
            .iter()
            .enumerate()
            .map(|(n, fate)| call(&format!("c{n}"), "pay", json!({"fate": format!("{fate:?}")})));
        let ledger = self.ledger().ask_policy(|_, ask| {
            let late = ask.args()["fate"] == "Late";
            if late { ask.with_expires_in(std::time::Duration::from_secs(5)) } else { ask }
        });
        let model = ScriptedModel::new([ModelResponse::calls(calls)]);
        let run = self.agent(ledger, model).run("go").await.unwrap();
        for record in self.asks().await {
            self.decide(&record).await;
        }
        self.pass(10);
        run.run_id().to_owned()
    }

    async fn decide(&self, record: &AskRecord) {
        let (ledger, id) = (self.ledger(), record.ask.id());
        let yes = Answer::Approve { args: None };
        let answer = match record.ask.args()["fate"].as_str().unwrap() {
            "Approved" | "Refused" => yes,
            "Denied" => Answer::Deny { message: "no".into() },
            "Withdrawn" => {
                ledger.cancel(id, "ann").await.unwrap();
                return;
            }
            _ => return,
        };
        ledger.decide(id, &record.fingerprint, "ann", answer).await.unwrap();
    }

    /// Approves all pending calls.
    pub(super) async fn approve_all(&self) {
        for record in self.ledger().list(Some(AskState::Pending), 100).await.unwrap().records {
            let (yes, ask) = (Answer::Approve { args: None }, record.ask.id());
            self.ledger().decide(ask, &record.fingerprint, "ann", yes).await.unwrap();
        }
    }

    pub(super) async fn asks(&self) -> Vec<AskRecord> {
        self.ledger().list(None, 100).await.unwrap().records
    }

    /// The calls that have their results, as the ledger keeps the run.
    async fn settled(&self, run: &str) -> Settled {
        let runs = self.ledger().waiting_runs(10).await.unwrap().records;
        let Some(record) = runs.into_iter().find(|record| record.run == run) else {
            return Settled::All;
        };
        let state: SuspendedRun = serde_json::from_value(record.state).unwrap();
        let mut settled: BTreeSet<_> = results(state.history()).into_iter().collect();
        for (call, outcome) in state.turn().into_iter().flat_map(|turn| turn.calls()) {
            settled.extend(outcome.map(|_| call.id().to_owned()));
        }
        Settled::These(settled)
    }

    /// Rule L5: "Giving a call its one result closes its ask in the same transaction."
    pub(super) async fn check(&self, run: &str, when: &str) {
        let settled = self.settled(run).await;
        for record in self.asks().await {
            let id = record.ask.path().rsplit('/').next().unwrap().to_owned();
            let is_open = matches!(record.state, AskState::Pending | AskState::Decided);
            let is_settled = settled.has(&id);
            assert!(
                !(is_settled && is_open),
                "{when}: {id} has its result, and its ask is {:?}",
                record.state
            );
            let is_closed = record.state == AskState::Closed;
            assert!(is_settled || !is_closed, "{when}: {id} has no result, and its ask is closed");
        }
    }
}

enum Settled {
    All,
    These(BTreeSet<String>),
}

impl Settled {
    fn has(&self, id: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(these) => these.contains(id),
        }
    }
}

/// Resumes the run with one transaction that fails. Returns whether there was one.
async fn goes_wrong(fates: &[Fate], at: usize, how: How, give_up: bool) -> bool {
    let when = format!("{fates:?}, transaction {at} {how:?}, give_up: {give_up}");
    let world = World::new();
    let run = world.parked(fates).await;
    world.check(&run, &when).await;
    let failing = Failing::at(&world.store, Some((at, how)));
    let agent = world.agent(Ledger::new(failing.clone()).worker("first"), ScriptedModel::new([]));
    let first = async {
        match give_up {
            true => agent.give_up(&run, "something else is more important").await,
            false => agent.take_up(&run).await,
        }
    };
    let ended = failing.work(first).await;
    world.check(&run, &when).await;
    if let Some(Ok(TakeUp::Resumed(ended))) = &ended {
        let kept = ended.as_ref().is_ok_and(|run| run.text().is_none()) || ended.is_err();
        assert_eq!(
            kept,
            matches!(world.settled(&run).await, Settled::These(_)),
            "{when}: {ended:?}"
        );
    }
    // Another worker resumes it, and the run ends.
    world.pass(60);
    let second = world.agent(world.ledger().worker("second"), ScriptedModel::new([]));
    let ended = second.take_up(&run).await.unwrap();
    assert!(matches!(ended, TakeUp::Resumed(_) | TakeUp::Over(_)), "{when}: {ended:?}");
    world.check(&run, &when).await;
    world.approve_all().await;
    let ended = second.take_up(&run).await.unwrap();
    assert!(matches!(world.settled(&run).await, Settled::All), "{when}: {ended:?}");
    world.check(&run, &when).await;
    let verified = world.ledger().verify(&Default::default()).await;
    assert!(verified.is_ok(), "{when}: {verified:?}");
    let ran = world.recorder.ids();
    let once: BTreeSet<_> = ran.iter().collect();
    assert_eq!(once.len(), ran.len(), "{when}: {ran:?} ran");
    for (n, fate) in fates.iter().enumerate() {
        let may_run = matches!(fate, Fate::Approved | Fate::Waits);
        assert!(may_run || !ran.contains(&format!("c{n}")), "{when}: {ran:?} ran");
    }
    failing.count() > at
}

#[tokio::test]
async fn after_any_failed_transaction_a_call_has_result_and_closed_ask_or_neither() {
    // L5: "Giving a call its one result closes its ask in the same transaction."
    for give_up in [false, true] {
        for n in (0..FATES.len()).step_by(2) {
            for how in How::ALL {
                let fates = [FATES[n], FATES[(n + 1) % FATES.len()], FATES[(n + 3) % FATES.len()]];
                let mut at = 0;
                while goes_wrong(&fates, at, how, give_up).await {
                    at += 1;
                }
                assert!(at >= 2, "a run is taken, and saved");
            }
        }
    }
}

#[tokio::test]
async fn the_asks_of_an_agent_and_of_its_calls_are_closed_with_the_run_of_its_parent() {
    let mut at = 0;
    loop {
        let world = World::new();
        let agent = |ledger: Ledger, first: [Option<Value>; 2]| {
            let calls = |tool: &str, call: Option<Value>| {
                call.map(|args| ModelResponse::calls([crate::support::call("c1", tool, args)]))
            };
            let [outer, inner] = first;
            let inner = ScriptedModel::new(calls("pay", inner));
            let worker = Agent::new(inner, world.recorder.clone().approval_required());
            let tools = FunctionToolset::new().tool(worker.as_tool("worker", "Works"));
            let model = ScriptedModel::new(calls("worker", outer));
            let agent = Agent::new(model, tools.approval_required()).output(text().or_deferred());
            agent.ledger(ledger)
        };
        let outer = Some(json!({"prompt": "pay"}));
        let first = agent(world.ledger(), [outer, None]);
        let run = first.run("go").await.unwrap().run_id().to_owned();
        let decide = async |answer: Answer| {
            for record in world.ledger().list(Some(AskState::Pending), 10).await.unwrap().records {
                let (id, ledger) = (record.ask.id(), world.ledger());
                ledger.decide(id, &record.fingerprint, "ann", answer.clone()).await.unwrap();
            }
        };
        decide(Answer::Approve { args: None }).await;
        let inner = Some(json!({"n": 1}));
        let second = agent(world.ledger(), [None, inner]);
        assert!(matches!(second.take_up(&run).await.unwrap(), TakeUp::Resumed(Ok(_))));
        decide(Answer::Deny { message: "no".into() }).await;
        let failing = Failing::at(&world.store, Some((at, How::Fails)));
        let third = agent(Ledger::new(failing.clone()), [None, None]);
        let _ = third.take_up(&run).await;
        let over = world.ledger().waiting_runs(10).await.unwrap().records.is_empty();
        let mut states: Vec<_> = world.asks().await.iter().map(|ask| ask.state).collect();
        states.dedup();
        assert_eq!(states == [AskState::Closed], over, "transaction {at}: {states:?}");
        if failing.count() <= at {
            assert!(over, "{states:?}");
            break;
        }
        at += 1;
    }
    assert!(at >= 3);
}

#[tokio::test]
async fn a_run_that_is_given_up_is_over_and_its_history_is_complete() {
    // T3: "Every call ends with one result … under … a new user message".
    let world = World::new();
    let run = world.parked(&[Fate::Waits, Fate::Denied]).await;
    let agent = world.agent(world.ledger(), ScriptedModel::new([]));
    let TakeUp::GivenUp(history) = agent.give_up(&run, "superseded").await.unwrap() else {
        panic!()
    };
    assert_eq!(results(&history), ["c0", "c1"]);
    assert_eq!(agent.run("and now?").history(history).await.unwrap().text(), Some("Done."));
    let TakeUp::Over(why) = agent.take_up(&run).await.unwrap() else { panic!() };
    assert_eq!(why, json!({"given_up": "superseded"}));
    assert!(world.asks().await.iter().all(|ask| ask.state == AskState::Closed));
    assert!(world.recorder.ran().is_empty());
}
