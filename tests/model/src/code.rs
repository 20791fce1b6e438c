//! The steps of the models, taken by the ledger itself: it has to give the same answers.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::Decision;
use countersign::deferred::Answer;
use countersign::deferred::metadata::GRANTABLE;
use countersign::ledger::{
    Acquired, Ask, AskRecord, AskSeries, Cancelled, Claimed, Decided, Grant, GrantScope, Ledger,
    MemoryStore, NextAsk, Quorum, Renewed, RevokedGrant, Saved, Settled,
};
use serde_json::json;

use crate::asks::Asks;
use crate::grants::Grants;
use crate::runs::Runs;
use crate::search::{Model, Random, Space, random_way};
use crate::{asks, grants, runs};

/// A tick of a model, in milliseconds.
const TICK: i64 = 10_000;

fn ticks(count: i8) -> Duration {
    Duration::from_millis(u64::try_from(i64::from(count) * TICK).unwrap())
}

/// A ledger whose clock is set by the steps.
struct Clocked {
    ledger: Ledger,
    clock: Arc<AtomicI64>,
}

const START: i64 = 1_800_000_000_000;

impl Clocked {
    fn new() -> Self {
        let clock = Arc::new(AtomicI64::new(START));
        let shared = Arc::clone(&clock);
        let store = MemoryStore::with_clock(move || shared.load(Ordering::Relaxed));
        Self { ledger: Ledger::new(store).session("s"), clock }
    }

    fn tick(&self) -> &'static str {
        self.clock.fetch_add(TICK, Ordering::Relaxed);
        ""
    }

    fn back(&self) -> &'static str {
        self.clock.store(START, Ordering::Relaxed);
        ""
    }
}

/// What takes the steps of a model with a ledger.
trait Driver<M: Model> {
    fn new(model: &M) -> impl Future<Output = Self>;

    /// The answer of the ledger, in the words of the model. `before` is the model's state.
    fn take(&mut self, before: &M::State, step: M::Step) -> impl Future<Output = &'static str>;
}

async fn follow<M: Model, D: Driver<M>>(model: &M, way: &[M::Step]) {
    let (mut driver, mut state) = (D::new(model).await, model.first());
    for (at, step) in way.iter().enumerate() {
        let (after, wanted) = model.take(&state, *step);
        let answer = driver.take(&state, *step).await;
        assert_eq!(
            answer,
            wanted,
            "the ledger and the model differ in {:?}\n{state:?}",
            &way[..=at]
        );
        state = after;
    }
}

/// Takes every step from every state up to a number of steps, and random ways behind.
async fn compare<M: Model + Debug, D: Driver<M>>(model: &M, most: usize, random_ways: usize) {
    let space = Space::of(model);
    let mut compared = 0;
    for at in 0..space.len().min(most) {
        let way = space.way(at);
        for step in model.steps(&space.states()[at]) {
            follow::<M, D>(model, &[&*way, &[step]].concat()).await;
            compared += 1;
        }
    }
    let mut random = Random(20_26);
    for _ in 0..random_ways {
        follow::<M, D>(model, &random_way(model, &mut random, 60)).await;
    }
    println!(
        "{model:?}: {compared} steps from {} of {} states",
        space.len().min(most),
        space.len()
    );
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

struct AsksDriver {
    is: Clocked,
    model: Asks,
    records: Vec<AskRecord>,
}

fn numbered(model: Asks, number: u64) -> Ask {
    let quorum = Quorum { approvals: u32::from(model.quorum), not_the_requester: false };
    let ask = Ask::new(format!("call {number}"), "root/c1", "pay");
    let ask = ask
        .with_idempotent(model.idempotent)
        .with_quorum(quorum)
        .with_valid_for(model.valid.map(ticks));
    match model.deadline {
        Some(deadline) => ask.with_expires_in(ticks(deadline)),
        None => ask,
    }
}

impl Driver<Asks> for AsksDriver {
    async fn new(model: &Asks) -> Self {
        Self { is: Clocked::new(), model: *model, records: Vec::new() }
    }

    async fn take(&mut self, before: &asks::World, step: asks::Step) -> &'static str {
        use asks::Step;
        let ledger = &self.is.ledger;
        let id = |ask: usize| self.records[ask].ask.id();
        let held = |worker: usize| {
            let (ask, token, ran) = before.workers[worker].unwrap();
            (id(ask), u64::from(token), ran)
        };
        match step {
            Step::Call => {
                let model = self.model;
                let number = |number| numbered(model, number);
                let series = AskSeries::new(ledger, &number);
                let last = series.last().await.unwrap();
                match series.next(&last, number(last.number() + 1), None).await.unwrap() {
                    NextAsk::Parked(record) => {
                        self.records.push(*record);
                        "parked"
                    }
                    NextAsk::Open(_) => "open",
                    other => panic!("{other:?}"),
                }
            }
            Step::Decide { ask, who, yes } => {
                let answer = match yes {
                    true => Answer::Approve { args: None },
                    false => Answer::Deny { message: "no".to_owned() },
                };
                let by = ["ann", "bob"][who];
                let fingerprint = &self.records[ask].fingerprint;
                match ledger.decide(id(ask), fingerprint, by, answer).await.unwrap() {
                    Decided::Won { again: false } => "won",
                    Decided::Won { again: true } => "again",
                    Decided::Lost(_) => "lost",
                    Decided::Recorded { again: false, .. } => "recorded",
                    Decided::Recorded { again: true, .. } => "recorded again",
                    Decided::Expired => "expired",
                    Decided::Cancelled => "cancelled",
                    other => panic!("{other:?}"),
                }
            }
            Step::Claim { ask, worker } => {
                let worker = ["w1", "w2"][worker];
                match ledger.claim(id(ask), worker, ticks(asks::LEASE)).await.unwrap() {
                    Claimed::Claimed { .. } => "claimed",
                    Claimed::Held { .. } => "held",
                    Claimed::Settled { .. } => "settled",
                    Claimed::NotDecided => "not decided",
                    Claimed::Denied { .. } => "denied",
                    Claimed::Aged { .. } => "aged",
                    Claimed::Unknown => "unknown",
                    other => panic!("{other:?}"),
                }
            }
            Step::Renew { worker } => {
                let (id, token, _) = held(worker);
                match ledger.renew(id, token, ticks(asks::LEASE)).await.unwrap() {
                    Renewed::Renewed { .. } => "renewed",
                    _ => "stale",
                }
            }
            Step::Settle { worker } | Step::Release { worker } => {
                let (id, token, ran) = held(worker);
                let settled = match ran {
                    true => ledger.settle(id, token, json!("ran")).await,
                    false => ledger.release(id, token).await,
                };
                match settled.unwrap() {
                    Settled::Settled { again: false, .. } => "settled",
                    Settled::Settled { again: true, .. } => "settled again",
                    _ => "stale",
                }
            }
            Step::Cancel { ask } => match ledger.cancel(id(ask), "ann").await.unwrap() {
                Cancelled::Cancelled { again: false } => "cancelled",
                Cancelled::Cancelled { again: true } => "cancelled again",
                _ => "too late",
            },
            Step::Expire => {
                let _ = ledger.expire().await.unwrap();
                ""
            }
            Step::Tick => self.is.tick(),
            Step::Back => self.is.back(),
            Step::Run { .. } | Step::Crash { .. } => "",
        }
    }
}

#[test]
fn the_ledger_decides_and_claims_as_the_model_does() {
    for model in asks::ALL {
        runtime().block_on(compare::<Asks, AsksDriver>(model, 1_500, 300));
    }
}

struct RunsDriver {
    is: Clocked,
    ask: AskRecord,
}

impl Driver<Runs> for RunsDriver {
    async fn new(_: &Runs) -> Self {
        let is = Clocked::new();
        let ask = is.ledger.park(Ask::new("run", "root/c1", "pay")).await.unwrap();
        Self { is, ask }
    }

    async fn take(&mut self, before: &runs::World, step: runs::Step) -> &'static str {
        use runs::Step;
        let ledger = &self.is.ledger;
        let saved = |saved: Saved| if saved == Saved::Saved { "saved" } else { "stale" };
        let token = |worker: usize| u64::from(before.workers[worker].unwrap().0);
        let lease = ticks(runs::LEASE);
        match step {
            Step::Suspend => saved(ledger.save_run("run", json!(1), None).await.unwrap()),
            Step::Answer => {
                let yes = Answer::Approve { args: None };
                let made =
                    ledger.decide(self.ask.ask.id(), &self.ask.fingerprint, "ann", yes).await;
                if made.unwrap() == (Decided::Won { again: false }) { "won" } else { "lost" }
            }
            Step::Acquire { worker } => {
                match ledger.acquire_run_as("run", ["w1", "w2"][worker], lease).await.unwrap() {
                    Acquired::Lease(_) => "acquired",
                    Acquired::Held { .. } => "held",
                    Acquired::Over { .. } => "over",
                    Acquired::UnknownRun => "unknown run",
                    other => panic!("{other:?}"),
                }
            }
            Step::Renew { worker } => {
                saved(ledger.renew_run("run", token(worker), lease).await.unwrap())
            }
            Step::Save { worker } => {
                saved(ledger.save_run("run", json!(2), Some(token(worker))).await.unwrap())
            }
            Step::End { worker } => {
                saved(ledger.end_run("run", token(worker), json!("end")).await.unwrap())
            }
            Step::Crash { .. } => "",
            Step::Tick => self.is.tick(),
            Step::Back => self.is.back(),
        }
    }
}

#[test]
fn the_ledger_keeps_runs_as_the_model_does() {
    runtime().block_on(compare::<Runs, RunsDriver>(&Runs { end: 3 }, 3_000, 500));
}

struct GrantsDriver {
    is: Clocked,
    grant: String,
    asks: Vec<Ask>,
    tokens: Vec<u64>,
}

impl Driver<Grants> for GrantsDriver {
    async fn new(model: &Grants) -> Self {
        let is = Clocked::new();
        let asked = Decision::ask("sends mail").with_metadata(GRANTABLE, true);
        let ask = |call: usize| {
            Ask::new(format!("run {call}"), "root/c1", "mail")
                .with_questions(asked.questions().to_vec())
        };
        let asks: Vec<_> = (0..model.calls).map(ask).collect();
        let grant = Grant::of(&asks[0], GrantScope::Session("s".into())).unwrap();
        let grant = grant.with_uses(u32::from(model.uses)).with_valid_for(ticks(model.valid));
        let grant = is.ledger.make_grant(grant, &["ann"]).await.unwrap().id;
        Self { is, grant, tokens: vec![0; asks.len()], asks }
    }

    async fn take(&mut self, _: &grants::World, step: grants::Step) -> &'static str {
        use grants::Step;
        let ledger = &self.is.ledger;
        match step {
            Step::Ask { call } => {
                let granted = ledger.answer_by_grant(&self.asks[call]).await.unwrap();
                if granted.is_some() { "granted" } else { "not granted" }
            }
            Step::Claim { call } => {
                match ledger.claim(self.asks[call].id(), "w1", ticks(50)).await.unwrap() {
                    Claimed::Claimed { token } => {
                        self.tokens[call] = token;
                        "claimed"
                    }
                    Claimed::Void { .. } => "void",
                    Claimed::Settled { .. } => "settled",
                    Claimed::Aged { .. } => "aged",
                    other => panic!("{other:?}"),
                }
            }
            Step::Settle { call } => {
                let settled =
                    ledger.settle(self.asks[call].id(), self.tokens[call], json!(1)).await;
                match settled.unwrap() {
                    Settled::Settled { again: false, .. } => "settled",
                    other => panic!("{other:?}"),
                }
            }
            Step::Revoke => match ledger.revoke_grant(&self.grant, "ann").await.unwrap() {
                RevokedGrant::Revoked { again: false } => "revoked",
                RevokedGrant::Revoked { again: true } => "revoked again",
                RevokedGrant::Over { .. } => "over",
                other => panic!("{other:?}"),
            },
            Step::Expire => {
                ledger.expire_grants().await.unwrap();
                ""
            }
            Step::Tick => self.is.tick(),
            Step::Back => self.is.back(),
        }
    }
}

#[test]
fn the_ledger_uses_grants_as_the_model_does() {
    for model in grants::ALL {
        runtime().block_on(compare::<Grants, GrantsDriver>(model, 2_000, 500));
    }
}
