//! Claiming, renewing, settling and releasing: an ask is executed once (rule L2).

use serde_json::json;

use super::{LONG, OVER, Parked, SharedStore, approve, ask, ok};
use crate::ledger::{AskState, Claimed, Decided, Renewed, Settled};

pub(super) async fn check(place: &SharedStore) {
    one_claims(place).await;
    not_before_its_decision(place).await;
    a_lost_worker(place).await;
    an_idempotent_tool(place).await;
    renewing(place).await;
    settled_once(place).await;
    released(place).await;
}

async fn claim(parked: &Parked, worker: &str, lease: std::time::Duration) -> Claimed {
    ok(parked.ledger.claim(&parked.id, worker, lease).await)
}

async fn settle(parked: &Parked, token: u64, outcome: &str) -> Settled {
    ok(parked.ledger.settle(&parked.id, token, json!(outcome)).await)
}

fn settled(outcome: &str, again: bool) -> Settled {
    Settled::Settled { outcome: json!(outcome), again }
}

async fn one_claims(place: &SharedStore) {
    for round in 0..8 {
        let parked = place.approved(ask(&format!("claimed at once {round}"))).await;
        let id = parked.id.clone();
        let results = place
            .at_once(|n, ledger| {
                let id = id.clone();
                async move {
                    let worker = format!("worker {n}");
                    let claimed = ok(ledger.claim(&id, &worker, LONG).await);
                    (worker, claimed)
                }
            })
            .await;
        let mut won = results.iter().filter(|(_, it)| *it == Claimed::Claimed { token: 1 });
        let (Some((worker, _)), None) = (won.next(), won.next()) else {
            super::fail("L1: exactly one of many concurrent claims succeeds")
        };
        for (loser, made) in results.iter().filter(|(it, _)| it != worker) {
            let told = matches!(made, Claimed::Held { by, .. } if by == worker);
            assert!(told, "L1: {loser} gets the name of the owner {worker}, not {made:?}");
        }
    }
}

async fn not_before_its_decision(place: &SharedStore) {
    let parked = place.park(ask("not decided")).await;
    assert_eq!(claim(&parked, "w", LONG).await, Claimed::NotDecided, "L1: decided, then claimed");
    assert_eq!(parked.now().await, parked.record, "L1: a claim that fails changes nothing");
    for token in [0, 1, u64::MAX] {
        let stale = settle(&parked, token, "forged").await;
        assert_eq!(stale, Settled::StaleToken, "L2: an ask without a claim cannot be settled");
        let stale = ok(parked.ledger.renew(&parked.id, token, LONG).await);
        assert_eq!(stale, Renewed::StaleToken, "L2: an ask without a claim cannot be renewed");
    }
    let unknown = ok(parked.ledger.claim("never-parked", "w", LONG).await);
    assert_eq!(unknown, Claimed::UnknownAsk);
    let unknown = ok(parked.ledger.settle("never-parked", 1, json!(1)).await);
    assert_eq!(unknown, Settled::UnknownAsk);
    let unknown = ok(parked.ledger.renew("never-parked", 1, LONG).await);
    assert_eq!(unknown, Renewed::UnknownAsk);
}

async fn a_lost_worker(place: &SharedStore) {
    let parked = place.approved(ask("its worker died")).await;
    assert_eq!(claim(&parked, "w1", OVER).await, Claimed::Claimed { token: 1 });
    let second = claim(&parked, "w2", LONG).await;
    assert_eq!(
        second,
        Claimed::Unknown,
        "L2: a call that may have run is never silently run again"
    );
    assert_eq!(parked.now().await.state, AskState::Unknown, "L2: it is recorded as unknown");
    assert_eq!(parked.decide("ann", approve()).await, Decided::Won { again: true });
    let late = settle(&parked, 1, "late").await;
    assert_eq!(late, settled("late", false), "L2: the latest claim settles, also late");
    let outcome = json!("late");
    assert_eq!(claim(&parked, "w2", LONG).await, Claimed::Settled { outcome });
}

async fn an_idempotent_tool(place: &SharedStore) {
    let parked = place.approved(ask("its worker died, again").with_idempotent(true)).await;
    assert_eq!(claim(&parked, "w1", OVER).await, Claimed::Claimed { token: 1 });
    let second = claim(&parked, "w2", LONG).await;
    assert_eq!(
        second,
        Claimed::Claimed { token: 2 },
        "L2: an idempotent call is claimed again, with a higher token"
    );
    assert_eq!(
        settle(&parked, 1, "old").await,
        Settled::StaleToken,
        "L2: a superseded claim is stale"
    );
    let renewed = ok(parked.ledger.renew(&parked.id, 1, LONG).await);
    assert_eq!(renewed, Renewed::StaleToken, "L2: a superseded claim is not renewed");
    assert_eq!(settle(&parked, 2, "new").await, settled("new", false));
    let stale = settle(&parked, 1, "old").await;
    assert_eq!(stale, Settled::StaleToken, "L2: a superseded claim does not overwrite the outcome");
    assert_eq!(parked.now().await.outcome, Some(json!("new")), "L2: the recorded outcome stays");
}

async fn renewing(place: &SharedStore) {
    let parked = place.approved(ask("renewed")).await;
    let before = ok(parked.ledger.claim(&parked.id, "w1", LONG).await);
    assert_eq!(before, Claimed::Claimed { token: 1 });
    let renewed = ok(parked.ledger.renew(&parked.id, 1, 2 * LONG).await);
    let until = parked.now().await.claim.map(|claim| claim.until).unwrap_or_default();
    assert_eq!(renewed, Renewed::Renewed { until }, "L2: a lease can be renewed");
    let held = Claimed::Held { by: "w1".to_owned(), until };
    assert_eq!(
        claim(&parked, "w2", LONG).await,
        held,
        "L2: a second claim gets the end of the lease"
    );

    let late = place.approved(ask("renewed late")).await;
    assert_eq!(claim(&late, "w1", OVER).await, Claimed::Claimed { token: 1 });
    assert_eq!(claim(&late, "w2", LONG).await, Claimed::Unknown);
    let renewed = ok(late.ledger.renew(&late.id, 1, LONG).await);
    assert!(
        matches!(renewed, Renewed::Renewed { .. }),
        "L2: the latest claim is renewed, also late"
    );
    assert!(matches!(claim(&late, "w2", LONG).await, Claimed::Held { .. }));
    let verified = late.ledger.verify(&Default::default()).await;
    assert!(verified.is_ok(), "the log records the late renewal: {verified:?}");
}

async fn settled_once(place: &SharedStore) {
    let parked = place.approved(ask("settled at once")).await;
    assert_eq!(claim(&parked, "w", LONG).await, Claimed::Claimed { token: 1 });
    let id = parked.id.clone();
    let results = place
        .at_once(|n, ledger| {
            let id = id.clone();
            async move { ok(ledger.settle(&id, 1, json!(n)).await) }
        })
        .await;
    let outcome = parked.now().await.outcome.unwrap_or_default();
    let first = Settled::Settled { outcome: outcome.clone(), again: false };
    let again = Settled::Settled { outcome, again: true };
    let firsts = results.iter().filter(|it| **it == first).count();
    let others = results.iter().filter(|it| **it == again).count();
    assert_eq!(
        (firsts, others),
        (1, results.len() - 1),
        "L3: the first outcome stays, and all workers get it"
    );
    let renewed = ok(parked.ledger.renew(&parked.id, 1, LONG).await);
    assert_eq!(renewed, Renewed::StaleToken, "a settled claim is not renewed");

    let nothing = place.approved(ask("settled with null")).await;
    assert_eq!(claim(&nothing, "w", LONG).await, Claimed::Claimed { token: 1 });
    for again in [false, true] {
        let made = ok(nothing.ledger.settle(&nothing.id, 1, json!(null)).await);
        assert_eq!(made, Settled::Settled { outcome: json!(null), again }, "`null` is an outcome");
    }
}

async fn released(place: &SharedStore) {
    let parked = place.approved(ask("deferred by its body")).await;
    assert_eq!(claim(&parked, "w", LONG).await, Claimed::Claimed { token: 1 });
    let _ = ok(parked.ledger.release(&parked.id, 1).await);
    let state = AskState::Released;
    let denied = claim(&parked, "w", LONG).await;
    assert_eq!(denied, Claimed::Denied { state }, "L1: a released call is asked about again");
}
