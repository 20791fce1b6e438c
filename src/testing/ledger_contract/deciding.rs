//! An ask is decided once, and replays give what was recorded (rules L1, L3, L4).

use std::collections::BTreeSet;

use serde_json::json;

use super::{LONG, OVER, SharedStore, answer, approve, ask, deny, edit, ok};
use crate::args::Args;
use crate::ledger::{AskState, Cancelled, Claimed, Decided, Settled, Winner};

pub(super) async fn check(place: &SharedStore) {
    parked_once(place).await;
    one_wins(place).await;
    losers_are_told(place).await;
    stale_click(place).await;
    edits_and_answers(place).await;
    replayed(place).await;
    too_late(place).await;
    withdrawn(place).await;
}

async fn parked_once(place: &SharedStore) {
    let again = place.at_once(|_, ledger| async move { ok(ledger.park(ask("once")).await) }).await;
    let parked: BTreeSet<_> = again.iter().map(|record| format!("{record:?}")).collect();
    assert_eq!(parked.len(), 1, "L3: parking twice gives one ask, which stays unchanged");
    let other =
        ok(place.ledger(0).park(ask("once").with_args(Args::new().with("path", "b"))).await);
    assert_eq!(other.ask.args()["path"], "once", "L3: an existing ask stays unchanged");
    let unknown = ok(place.ledger(0).get("never-parked").await);
    assert_eq!(unknown, None, "an ask that was never parked is not found");
    let decided = ok(place.ledger(0).decide("never-parked", "", "ann", approve()).await);
    assert_eq!(decided, Decided::UnknownAsk, "an ask that was never parked cannot be decided");
}

async fn one_wins(place: &SharedStore) {
    for round in 0..8 {
        let parked = place.park(ask(&format!("race {round}"))).await;
        let (id, fingerprint) = (parked.id.clone(), parked.record.fingerprint.clone());
        let results = place
            .at_once(|n, ledger| {
                let (id, fingerprint) = (id.clone(), fingerprint.clone());
                async move {
                    let answer = if n % 2 == 0 { approve() } else { deny("no") };
                    let who = format!("person {n}");
                    let result = ledger.decide(&id, &fingerprint, &who, answer.clone()).await;
                    (who, answer, ok(result))
                }
            })
            .await;
        let mut won = results.iter().filter(|(.., made)| *made == Decided::Won { again: false });
        let (Some((who, answer, _)), None) = (won.next(), won.next()) else {
            super::fail("L1: exactly one of many concurrent decisions wins")
        };
        let decision = parked.now().await.decision;
        let at = decision.as_ref().map(|decision| decision.at).unwrap_or_default();
        let winner = Winner { by: vec![who.clone()], decision: answer.clone(), at };
        let stands = decision.map(|it| Winner { by: it.by, decision: it.answer, at: it.at });
        assert_eq!(stands.as_ref(), Some(&winner), "L1: the winner's decision is recorded");
        for (loser, _, made) in results.iter().filter(|(it, ..)| it != who) {
            let told = Decided::Lost(winner.clone());
            assert_eq!(*made, told, "L1: {loser} gets the winner, the decision and its time");
        }
    }
}

async fn losers_are_told(place: &SharedStore) {
    let parked = place.approved(ask("approved twice")).await;
    let again = parked.decide("ann", approve()).await;
    assert_eq!(
        again,
        Decided::Won { again: true },
        "a repeated answer of the same person wins again"
    );
    let same = parked.decide("ann", edit("approved twice")).await;
    assert_eq!(
        same,
        Decided::Won { again: true },
        "an edit to the same arguments is the same answer"
    );
    for (who, answer) in
        [("bob", approve()), ("bob", deny("no")), ("ann", deny("no")), ("ann", edit("b"))]
    {
        let lost = parked.decide(who, answer.clone()).await;
        let told = matches!(&lost, Decided::Lost(winner) if winner.by == ["ann"] && winner.decision == approve());
        assert!(told, "L1: {who}'s {answer:?} gets Ann's approval, not {lost:?}");
    }
    let denied = place.park(ask("denied")).await;
    assert_eq!(denied.decide("bob", deny("no")).await, Decided::Won { again: false });
    let again = denied.decide("bob", deny("no")).await;
    assert_eq!(
        again,
        Decided::Won { again: true },
        "a repeated denial of the same person wins again"
    );
    let lost = denied.decide("ann", approve()).await;
    assert!(
        matches!(lost, Decided::Lost(_)),
        "A3: an approval does not overturn a denial: {lost:?}"
    );
    let claimed = ok(denied.ledger.claim(&denied.id, "w", LONG).await);
    let state = AskState::Decided;
    assert_eq!(claimed, Claimed::Denied { state }, "D2: a denied call does not run");
}

/// A page that was open for a day shows what was asked then. The decision carries the fingerprint of what was shown, so
/// it fails, and approves nothing else.
async fn stale_click(place: &SharedStore) {
    let parked = place.park(ask("shown otherwise")).await;
    for fingerprint in ["", "0", "' OR 1=1 --", &"f".repeat(64)] {
        let made = ok(parked.ledger.decide(&parked.id, fingerprint, "ann", approve()).await);
        let fingerprint = parked.record.fingerprint.clone();
        assert_eq!(
            made,
            Decided::Mismatch { fingerprint },
            "A1: a decision is for the call that was shown"
        );
    }
    assert_eq!(
        parked.now().await,
        parked.record,
        "A1: a decision about something else changes nothing"
    );
}

async fn edits_and_answers(place: &SharedStore) {
    let parked = place.park(ask("edited")).await;
    assert_eq!(parked.decide("ann", edit("b")).await, Decided::Won { again: false });
    assert_eq!(parked.now().await.args_to_run()["path"], "b", "A2: the edited arguments run");
    let answered = place.park(ask("answered")).await;
    assert_eq!(answered.decide("ann", answer("42")).await, Decided::Won { again: false });
    let claimed = ok(answered.ledger.claim(&answered.id, "w", LONG).await);
    let outcome = json!("42");
    assert_eq!(claimed, Claimed::Settled { outcome }, "an answered call is not executed");
}

async fn replayed(place: &SharedStore) {
    let parked = place.approved(ask("replayed")).await;
    let claimed = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    assert_eq!(claimed, Claimed::Claimed { token: 1 });
    let settled = ok(parked.ledger.settle(&parked.id, 1, json!({"n": 1})).await);
    assert_eq!(settled, Settled::Settled { outcome: json!({"n": 1}), again: false });
    let before = parked.now().await;
    assert_eq!(parked.decide("ann", approve()).await, Decided::Won { again: true });
    assert!(matches!(parked.decide("bob", approve()).await, Decided::Lost(_)));
    let again = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    let outcome = json!({"n": 1});
    assert_eq!(
        again,
        Claimed::Settled { outcome },
        "L3: a repeated claim gets the recorded outcome"
    );
    assert_eq!(parked.now().await, before, "L3: a replay after the end changes nothing");
}

async fn too_late(place: &SharedStore) {
    let parked = place.park(ask("too late").with_expires_in(OVER)).await;
    let made = parked.decide("ann", approve()).await;
    assert_eq!(made, Decided::Expired, "L4: the deadline holds also without a call of `expire`");
    let record = parked.now().await;
    assert_eq!(record.state, AskState::Expired, "L4: it is recorded as expired");
    assert_eq!(record.decision, None, "L4: an expired ask has no decision");
    let claimed = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    assert_eq!(claimed, Claimed::Denied { state: AskState::Expired }, "L4: nothing runs");
    let decided = place.approved(ask("in time").with_expires_in(LONG)).await;
    assert_eq!(decided.now().await.due_at(), None, "L4: a decided ask does not expire");
}

async fn withdrawn(place: &SharedStore) {
    let parked = place.park(ask("withdrawn")).await;
    let cancel = async |who: &str| ok(parked.ledger.cancel(&parked.id, who).await);
    assert_eq!(cancel("mallory").await, Cancelled::Cancelled { again: false });
    assert_eq!(cancel("bob").await, Cancelled::Cancelled { again: true });
    let record = parked.now().await;
    assert_eq!(
        record.cancelled_by.as_deref(),
        Some("mallory"),
        "the record names the person who withdrew it"
    );
    assert_eq!(parked.decide("ann", approve()).await, Decided::Cancelled, "L1: it was withdrawn");
    let claimed = ok(parked.ledger.claim(&parked.id, "w", LONG).await);
    assert_eq!(claimed, Claimed::Denied { state: AskState::Cancelled }, "L1: nothing runs");

    let approved = place.approved(ask("withdrawn after its approval")).await;
    let cancelled = ok(approved.ledger.cancel(&approved.id, "mallory").await);
    assert_eq!(
        cancelled,
        Cancelled::Cancelled { again: false },
        "an approved ask can be withdrawn until its claim"
    );
    let by = approved.now().await.decision.map(|decision| decision.by);
    assert_eq!(by, Some(vec!["ann".to_owned()]), "L1: the record keeps the decider");

    let claimed = place.approved(ask("claimed, then withdrawn")).await;
    let _ = ok(claimed.ledger.claim(&claimed.id, "w", LONG).await);
    let late = ok(claimed.ledger.cancel(&claimed.id, "mallory").await);
    assert_eq!(
        late,
        Cancelled::TooLate { state: AskState::Claimed },
        "L1: a claimed call cannot be withdrawn"
    );
    let denied = place.park(ask("denied, then withdrawn")).await;
    let _ = denied.decide("ann", deny("no")).await;
    let late = ok(denied.ledger.cancel(&denied.id, "mallory").await);
    assert_eq!(late, Cancelled::TooLate { state: AskState::Decided }, "A3: a denial is final");
}
