//! Calls that ran although no one had approved them (rule L10).

use serde_json::{Value, json};

use super::{LONG, SharedStore, approve, ask, deny, ok};
use crate::ledger::{Ask, AskRecord, AskState, Claimed, Decided, Ledger, Renewed, Settled};

pub(super) async fn check(place: &SharedStore) {
    open_asks(place).await;
    new_asks(place).await;
    other_asks(place).await;
    at_the_same_time(place).await;
}

fn about() -> Value {
    json!({"ended": "returned"})
}

async fn ran(ledger: &Ledger, ask: &Ask) -> Option<AskRecord> {
    ok(ledger.ran_unapproved(ask.clone(), "watcher", about()).await)
}

/// No operation makes anything of an ask that ran unapproved.
async fn is_over(ledger: &Ledger, record: &AskRecord) {
    let (id, fingerprint) = (record.ask.id(), &record.fingerprint);
    assert_eq!((record.state, record.ran_unapproved()), (AskState::Closed, Some(&about())));
    assert_eq!(ok(ledger.get(id).await).as_ref(), Some(record), "L10: it is stored");
    assert!(
        matches!(
            ok(ledger.decide(id, fingerprint, "eve", approve()).await),
            Decided::Cancelled | Decided::Lost(_)
        ),
        "L10: it is no approval, and none comes later"
    );
    let claimed = ok(ledger.claim(id, "w", LONG).await);
    assert_eq!(claimed, Claimed::Denied { state: AskState::Closed }, "L10: nothing runs by it");
    for token in [0, 1] {
        assert_eq!(ok(ledger.settle(id, token, json!(1)).await), Settled::StaleToken);
        assert_eq!(ok(ledger.renew(id, token, LONG).await), Renewed::StaleToken);
    }
    assert_eq!(ran(ledger, &record.ask).await, None, "L10: it is recorded once");
    assert_eq!(ok(ledger.get(id).await).as_ref(), Some(record), "L10: nothing has changed it");
}

async fn open_asks(place: &SharedStore) {
    let ledger = place.ledger(1);
    let pending = place.park(ask("ran while pending")).await;
    let approved = place.approved(ask("ran before its claim")).await;
    let denied = place.park(ask("ran, and was denied meanwhile")).await;
    let _ = denied.decide("ann", deny("no")).await;
    for parked in [pending, approved, denied] {
        let before = ok(ledger.get(&parked.id).await).and_then(|it| it.decision);
        let record = ran(&ledger, &parked.record.ask).await.unwrap_or_else(super::missing);
        assert_eq!(record.decision, before, "L10: what people have decided stays");
        is_over(&ledger, &record).await;
    }
    let verified = ok(place.ledger(0).verify(&Default::default()).await);
    assert_eq!(verified.ran_unapproved, 3, "L10: a verification counts them");
}

async fn new_asks(place: &SharedStore) {
    let ledger = place.ledger(0);
    let record = ran(&ledger, &ask("never asked")).await.unwrap_or_else(super::missing);
    is_over(&place.ledger(1), &record).await;
    let pending = ok(ledger.list(Some(AskState::Pending), 100).await).records;
    assert!(pending.is_empty(), "L10: no person is asked about it: {pending:?}");
}

/// An ask that was claimed, or is over, says already how it ended.
async fn other_asks(place: &SharedStore) {
    let ledger = place.ledger(0);
    let claimed = place.approved(ask("claimed")).await;
    let _ = ok(ledger.claim(&claimed.id, "w", LONG).await);
    let executed = place.approved(ask("executed")).await;
    let _ = ok(ledger.claim(&executed.id, "w", LONG).await);
    let _ = ok(ledger.settle(&executed.id, 1, json!("done")).await);
    let cancelled = place.park(ask("cancelled")).await;
    let _ = ok(ledger.cancel(&cancelled.id, "ann").await);
    let closed = place.park(ask("closed")).await;
    ok(ledger.close(&closed.id).await);
    for parked in [claimed, executed, cancelled, closed] {
        let before = ok(ledger.get(&parked.id).await);
        assert_eq!(ran(&ledger, &parked.record.ask).await, None);
        let after = ok(ledger.get(&parked.id).await);
        assert_eq!(after, before, "L10: only an open ask is closed");
        assert_eq!(after.and_then(|it| it.ran_unapproved().cloned()), None);
    }
}

async fn at_the_same_time(place: &SharedStore) {
    let parked = place.approved(ask("ran while it was claimed")).await;
    let (id, record) = (parked.id.clone(), parked.record.clone());
    let results = place
        .at_once(|n, ledger| {
            let (id, record) = (id.clone(), record.clone());
            async move {
                match n % 2 {
                    0 => ran(&ledger, &record.ask).await.is_some(),
                    _ => matches!(ok(ledger.claim(&id, "w", LONG).await), Claimed::Claimed { .. }),
                }
            }
        })
        .await;
    assert_eq!(
        results.into_iter().filter(|won| *won).count(),
        1,
        "L10: a call is claimed, or ran unapproved, and never both"
    );
    let whole = place.ledger(0).verify(&Default::default()).await;
    assert!(whole.is_ok(), "L8: the log says the same as the rows: {whole:?}");
}
