//! Expiry of deadlines and leases, and the order and limits of lists (rule L4).

use std::collections::BTreeSet;

use super::{LONG, OVER, SharedStore, ask, ok};
use crate::ledger::{AskState, Claimed};

pub(super) async fn check(place: &SharedStore) {
    expiring(place).await;
    listing(place).await;
}

/// More due rows than `expire` reads at once.
///
/// A store that expires only the first page of due rows would leave the others pending for ever.
const CROWD: usize = 300;

async fn expiring(place: &SharedStore) {
    let ledger = place.ledger(0);
    let mut due = BTreeSet::new();
    for n in 0..CROWD {
        let lost = place.approved(ask(&format!("lost {n}")).with_idempotent(n % 2 == 0)).await;
        let claimed = ok(ledger.claim(&lost.id, "w", OVER).await);
        assert_eq!(claimed, Claimed::Claimed { token: 1 });
        due.insert(lost.id);
    }
    let last = place.park(ask("due last").with_expires_in(OVER)).await.id;
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    let read = ok(ledger.get(&last).await);
    due.insert(last.clone());
    let waits = place.park(ask("not due").with_expires_in(LONG)).await;
    let results = place.at_once(|_, ledger| async move { ok(ledger.expire().await).changed }).await;
    let told: Vec<_> = results.into_iter().flatten().collect();
    assert_eq!(
        told.len(),
        due.len(),
        "L4: each expiry is reported to one of many concurrent callers"
    );
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), due, "L4: every due ask changes");
    assert_eq!(ok(ledger.expire().await).changed, [""; 0], "L4: a due ask changes once");
    let stored = ok(ledger.get(&last).await);
    assert_eq!(read, stored, "L4: a due ask reads as it is stored later, dated at its deadline");
    let dates = read.map(|it| (it.state, it.expires_at == Some(it.changed_at)));
    assert_eq!(dates, Some((AskState::Expired, true)));
    assert_eq!(waits.now().await, waits.record, "L4: an ask that is not due stays");
    let unknown = ok(ledger.list(Some(AskState::Unknown), 1000).await).records;
    assert_eq!(unknown.len(), CROWD, "L2: a claim whose lease is over is unknown");
    let expired = ok(ledger.list(Some(AskState::Expired), 1000).await).records;
    assert_eq!(expired.len(), 1, "L4: an ask without a decision is expired");
    assert!(expired.iter().all(|it| it.decision.is_none()), "L4: an expired ask has no decision");
}

async fn listing(place: &SharedStore) {
    for n in 0..5 {
        place.park(ask(&format!("listed {n}"))).await;
        tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    }
    let listed = ok(place.ledger(1).list(Some(AskState::Pending), 3).await).records;
    let paths: Vec<_> = listed.iter().map(|record| record.ask.args()["path"].clone()).collect();
    assert_eq!(
        paths,
        ["listed 4", "listed 3", "listed 2"],
        "lists are newest first, and keep to the limit"
    );
    let none = ok(place.ledger(1).list(None, 0).await).records;
    assert!(none.is_empty(), "a list with the limit 0 is empty");
}
