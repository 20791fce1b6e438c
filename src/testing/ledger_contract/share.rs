//! The share of a requester: how many of their asks may be pending (rule D11).

use std::time::Duration;

use super::{SharedStore, deny, ok};
use crate::ledger::{Ask, AskRecord, Ledger};

/// The share in these checks.
const SHARE: u32 = 3;

pub(super) async fn check(place: &SharedStore) {
    others_take_nothing(place).await;
    spellings_are_one_requester(place).await;
    at_once(place).await;
}

fn asked(name: &str, n: usize) -> Ask {
    Ask::new(format!("share {name} {n}"), "root/c1", "pay").with_principal(name)
}

async fn park(ledger: &Ledger, ask: Ask) -> Option<AskRecord> {
    ok(ledger.park_within(ask, SHARE).await)
}

async fn others_take_nothing(place: &SharedStore) {
    let (one, other) = (place.ledger(0), place.ledger(1));
    for n in 0..3 {
        assert!(park(&one, asked("ann", n)).await.is_some(), "D11: ask {n} is within the share");
    }
    // Newer asks of another requester neither use up the share nor hide those who do.
    for n in 0..20 {
        ok(other.park(asked("bob", n)).await);
    }
    assert!(park(&other, asked("ann", 3)).await.is_none(), "D11: the share is used up");
    assert!(ok(one.get(asked("ann", 3).id()).await).is_none(), "D11: nothing was parked");
    assert!(park(&other, asked("ann", 2)).await.is_some(), "D11: a pending ask is not new");
    assert!(park(&other, asked("carol", 0)).await.is_some(), "D11: each requester has a share");
    assert_eq!(ok(other.pending_of("ann").await), 3);

    let open = ok(one.get(asked("ann", 0).id()).await).unwrap_or_else(super::missing);
    ok(one.decide(open.ask.id(), &open.fingerprint, "dora", deny("no")).await);
    let late = asked("ann", 4).with_expires_in(Duration::ZERO);
    assert!(park(&other, late).await.is_some(), "D11: a decided ask is not pending");
    assert!(park(&other, asked("ann", 5)).await.is_some(), "D11: an expired ask does not count");
    assert!(park(&one, asked("ann", 6)).await.is_none(), "D11: the share is used up again");
}

async fn spellings_are_one_requester(place: &SharedStore) {
    let ledger = place.ledger(1);
    for (n, name) in ["Eve", "EVE ", "\teve"].into_iter().enumerate() {
        assert!(park(&ledger, asked(name, n)).await.is_some());
    }
    assert!(park(&ledger, asked("eve", 3)).await.is_none(), "D11: spellings are one requester");
    assert_eq!(ok(ledger.pending_of(" eVe").await), 3);
}

/// Asks at the same moment. The clones of one handle are exact; each further process may exceed the share by one.
async fn at_once(place: &SharedStore) {
    let parked = place
        .at_once(|n, ledger| async move { park(&ledger, asked("frank", n)).await.is_some() })
        .await;
    let parked = parked.into_iter().filter(|parked| *parked).count();
    let most = SHARE as usize + place.ledgers.len() - 1;
    assert!((SHARE as usize..=most).contains(&parked), "D11: {parked} asks are pending");
}
