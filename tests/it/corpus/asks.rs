//! Ledgers with asks in every state, and runs.

use std::collections::BTreeSet;
use std::time::Duration;

use countersign::Args;
use countersign::agent::TakeUp;
use countersign::decision::Preview;
use countersign::deferred::{Answer, metadata::GRANTABLE};
use countersign::ledger::{
    Acquired, Ask, AskRecord, AskState, Claimed, Decided, Grant, GrantScope, Ledger, Quorum, Saved,
    Settled, Verified,
};
use countersign::testing::ScriptedModel;
use serde_json::{Value, json};

use super::stack::{agent, asked, bank, one, resuming};
use super::{keeps, keys};

const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
const RUN: &str = "asks";

/// A run with a name that not every store can write as it is.
const ODD: &str = "odd \0 \u{1} é '$1";

pub(super) fn ask(name: &str) -> Ask {
    Ask::new(RUN, format!("root/{name}"), "pay")
        .with_args(Args::new().with("n", 6).with("to", "é\n"))
        .with_questions(asked().questions().to_vec())
        .with_principal("mallory")
}

/// An ask whose question has previews of every kind. Earlier versions have none.
fn previewed() -> Ask {
    let asked = asked()
        .with_preview(Preview::diff("a.txt", "one\ntwo\n", "one\n2\n"))
        .with_preview(Preview::diff("new.txt", None, "é\n"))
        .with_preview(Preview::text("app.log", "…\n").without_pin())
        .with_preview(Preview::table("transfers", ["to", "euros"], [["ann", "5"]]))
        .with_preview(Preview::text("endless.txt", &"\n".repeat(2_100)));
    ask("previewed").with_questions(asked.questions().to_vec())
}

/// An ask that a grant answers. Versions before 5 have no grant.
fn granted(name: &str) -> Ask {
    let asked = countersign::Decision::ask("sends mail").with_metadata(GRANTABLE, true);
    ask(name).with_questions(asked.questions().to_vec())
}

fn yes() -> Answer {
    Answer::Approve { args: None }
}

fn no() -> Answer {
    Answer::Deny { message: "not today".into() }
}

/// A ledger as it is filled.
struct Filling<'l>(&'l Ledger);

impl Filling<'_> {
    async fn park(&self, ask: Ask) -> AskRecord {
        self.0.park(ask).await.unwrap()
    }

    async fn decided(&self, ask: Ask, answer: Answer) -> String {
        let record = self.park(ask).await;
        self.0.decide(record.ask.id(), &record.fingerprint, "ann", answer).await.unwrap();
        record.ask.id().to_owned()
    }

    async fn claimed(&self, ask: Ask, lease: Duration) -> String {
        let id = self.decided(ask, yes()).await;
        let claimed = self.0.claim(&id, "worker-1", lease).await.unwrap();
        assert_eq!(claimed, Claimed::Claimed { token: 1 });
        id
    }
}

/// Brings asks into every state, and parks a few runs.
pub(super) async fn fill(ledger: &Ledger) {
    let it = Filling(ledger);
    it.park(ask("pending")).await;
    it.park(ask("sealed")).await;
    it.park(previewed()).await;
    it.park(ask("has time").with_expires_in(AGES).with_valid_for(AGES)).await;
    let two = Quorum { approvals: 2, not_the_requester: true };
    it.decided(ask("voted").with_quorum(two), yes()).await;
    it.decided(ask("approved"), yes()).await;
    it.decided(ask("edited"), Answer::Approve { args: Some(Args::new().with("n", 7)) }).await;
    it.decided(ask("denied"), no()).await;
    it.decided(ask("answered"), Answer::Result { value: json!({"colour": "blue"}) }).await;
    it.claimed(ask("claimed"), AGES).await;
    for (name, outcome) in [("executed", json!({"did": "pay"})), ("empty", json!(null))] {
        let id = it.claimed(ask(name), AGES).await;
        ledger.settle(&id, 1, outcome).await.unwrap();
    }
    let released = it.claimed(ask("released"), AGES).await;
    ledger.release(&released, 1).await.unwrap();
    it.claimed(ask("unknown"), Duration::ZERO).await;
    it.claimed(ask("again").with_idempotent(true), Duration::ZERO).await;
    it.park(ask("expired").with_expires_in(Duration::ZERO)).await;
    assert_eq!(ledger.expire().await.unwrap().changed.len(), 3);
    ledger.cancel(it.park(ask("cancelled")).await.ask.id(), "ann").await.unwrap();
    ledger.close(it.park(ask("closed")).await.ask.id()).await.unwrap();

    let once = Grant::of(&granted("made"), GrantScope::Run(RUN.into())).unwrap().with_uses(2);
    ledger.make_grant(once.with_valid_for(AGES), &["ann"]).await.unwrap();
    ledger.answer_by_grant(&granted("used")).await.unwrap().expect("the grant answers it");
    assert!(ledger.count_call("refunds", "the first", 2, AGES).await.unwrap());

    for (run, lease) in [("over", AGES), ("held", AGES), ("lapsed", Duration::ZERO)] {
        let state = json!({"of": run, "n": 9_007_199_254_740_993_u64});
        ledger.save_run(run, state, None).await.unwrap();
        ledger.acquire_run_as(run, "worker-1", lease).await.unwrap();
    }
    ledger.end_run("over", 1, json!("the end")).await.unwrap();
    ledger.save_run(ODD, json!(ODD), None).await.unwrap();
    let agent = agent(ScriptedModel::new([one()]), ScriptedModel::new([]), &bank());
    let run = agent.ledger(ledger.clone()).run("Pay.").await.unwrap();
    assert!(run.suspended().is_some(), "a run of an agent waits");
}

/// The states of all asks and runs.
pub(super) async fn standing(ledger: &Ledger, earlier: &Verified) -> Value {
    let asks = ledger.list(None, 1000).await.unwrap().records;
    let states: BTreeSet<_> = asks.iter().map(|record| record.state.as_str()).collect();
    assert_eq!(states.len(), AskState::ALL.len(), "there is one in every state");
    let verified = ledger.verify(&earlier.heads).await.expect("the log verifies");
    let runs = ledger.waiting_runs(1000).await.unwrap().records;
    json!({"asks": asks, "runs": runs, "verified": verified})
}

/// Checks that everything is in its stored state, and continues from it.
pub(super) async fn check(ledger: &Ledger, stood: &Value, token: &str) {
    let earlier: Verified = serde_json::from_value(stood["verified"].clone()).unwrap();
    assert!(earlier.entries > 30, "it is the log of all of them");
    let stands = standing(ledger, &earlier).await;
    if let Err(place) = keeps(stood, &stands) {
        panic!("{place} differs from its written form");
    }
    decide(ledger, token).await;
    execute(ledger).await;
    grants(ledger).await;
    runs(ledger).await;
    ledger.verify(&earlier.heads).await.expect("the log continues after its earlier end");
}

async fn record(ledger: &Ledger, name: &str) -> AskRecord {
    ledger.get(ask(name).id()).await.unwrap().expect("the id of an ask is what it was")
}

async fn decides(ledger: &Ledger, name: &str, by: &str, answer: Answer) -> Decided {
    // The fingerprint as it is worked out today.
    ledger.decide(ask(name).id(), &ask(name).fingerprint(), by, answer).await.unwrap()
}

async fn decide(ledger: &Ledger, token: &str) {
    let won = Decided::Won { again: false };
    assert_eq!(decides(ledger, "pending", "ann", no()).await, won);
    assert_eq!(decides(ledger, "has time", "ann", yes()).await, won);
    assert_eq!(decides(ledger, "voted", "bob", yes()).await, won, "the other vote counts");
    assert_eq!(record(ledger, "voted").await.decision.unwrap().by, ["ann", "bob"]);
    assert_eq!(decides(ledger, "expired", "ann", yes()).await, Decided::Expired);
    for gone in ["cancelled", "closed"] {
        assert_eq!(decides(ledger, gone, "ann", yes()).await, Decided::Cancelled);
    }
    for name in ["approved", "edited", "denied", "answered", "claimed", "executed", "unknown"] {
        let Decided::Lost(first) = decides(ledger, name, "bob", no()).await else {
            panic!("{name} was decided")
        };
        assert_eq!(first.by, ["ann"]);
    }
    if let Some(stored) = ledger.get(previewed().id()).await.unwrap() {
        assert_eq!(stored.ask, previewed(), "the previews are what they were");
        let of_today = previewed().fingerprint();
        assert_eq!(ledger.decide(stored.ask.id(), &of_today, "ann", no()).await.unwrap(), won);
    }
    assert_eq!(ledger.decide_sealed(&keys(), token, yes()).await.unwrap(), won);
    assert!(matches!(
        ledger.decide_sealed(&keys(), token, no()).await.unwrap(),
        Decided::Lost(first) if first.by == ["ann"]
    ));
}

async fn execute(ledger: &Ledger) {
    let claim = async |name: &str| ledger.claim(ask(name).id(), "worker-2", AGES).await.unwrap();
    let settle = async |name: &str, token| {
        ledger.settle(ask(name).id(), token, json!("done")).await.unwrap()
    };
    let done = Settled::Settled { outcome: json!("done"), again: false };
    for (name, token) in [("approved", 1), ("edited", 1), ("voted", 1), ("again", 2)] {
        assert_eq!(claim(name).await, Claimed::Claimed { token }, "{name}");
        assert_eq!(settle(name, token).await, done, "{name}");
    }
    assert_eq!(record(ledger, "edited").await.args_to_run()["n"], 7);
    assert!(matches!(claim("claimed").await, Claimed::Held { by, .. } if by == "worker-1"));
    for name in ["claimed", "unknown"] {
        assert_eq!(settle(name, 1).await, done, "{name}: its worker comes back");
    }
    for (name, outcome) in [
        ("executed", json!({"did": "pay"})),
        ("empty", json!(null)),
        ("answered", json!({"colour": "blue"})),
        ("unknown", json!("done")),
    ] {
        assert_eq!(claim(name).await, Claimed::Settled { outcome }, "{name}");
    }
    for name in ["pending", "denied", "released", "expired", "cancelled", "closed"] {
        assert!(matches!(claim(name).await, Claimed::Denied { .. }), "{name}");
    }
}

/// The grant has one use left, and the counter one place.
async fn grants(ledger: &Ledger) {
    if ledger.grants(9).await.unwrap().records.is_empty() {
        return;
    }
    let used = ledger.answer_by_grant(&granted("later")).await.unwrap().expect("its last use");
    assert!(used.decision.unwrap().by_line().contains(" of ann"));
    assert!(ledger.answer_by_grant(&granted("too late")).await.unwrap().is_none());
    let counted = async |call| ledger.count_call("refunds", call, 2, AGES).await.unwrap();
    assert!(counted("the first").await && counted("the second").await);
    assert!(!counted("a third").await);
}

/// The token and the state of a lease.
fn leased(acquired: Acquired) -> (u64, Value) {
    let Acquired::Lease(lease) = acquired else { panic!("{acquired:?}") };
    (lease.keeper().token(), lease.state().clone())
}

async fn runs(ledger: &Ledger) {
    let take = async |run: &str| ledger.acquire_run_as(run, "worker-2", AGES).await.unwrap();
    assert!(matches!(take("over").await, Acquired::Over { result } if result == "the end"));
    assert!(matches!(take("held").await, Acquired::Held { by, .. } if by == "worker-1"));
    let state = json!({"of": "lapsed", "n": 9_007_199_254_740_993_u64});
    assert_eq!(leased(take("lapsed").await), (2, state));
    let stale = ledger.save_run("lapsed", json!(1), Some(1)).await.unwrap();
    assert_eq!(stale, Saved::StaleToken);

    assert_eq!(leased(take(ODD).await), (1, json!(ODD)));

    // The run of the agent, with what is decided about its call meanwhile.
    let waiting = ledger.waiting_runs(100).await.unwrap().records;
    let run = waiting.iter().find(|run| run.state["turn"].is_object()).unwrap();
    let asks = ledger.list(Some(AskState::Pending), 100).await.unwrap().records;
    let of_run = asks.iter().find(|record| record.ask.run() == run.run).unwrap();
    let (id, fingerprint) = (of_run.ask.id(), &of_run.fingerprint);
    ledger.decide(id, fingerprint, "ann", yes()).await.unwrap();
    let bank = bank();
    let agent = resuming(&bank).ledger(ledger.clone());
    let TakeUp::Resumed(ended) = agent.take_up(&run.run).await.unwrap() else { panic!("free") };
    assert_eq!(ended.unwrap().text(), Some("Done."));
    assert_eq!(bank.ids(), ["b1"], "it ran, and once");
    assert!(matches!(agent.take_up(&run.run).await.unwrap(), TakeUp::Over(end) if end == "Done."));
    assert_eq!(ledger.get(id).await.unwrap().unwrap().state, AskState::Executed);
}
