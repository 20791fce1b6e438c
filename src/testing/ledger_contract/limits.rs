//! Limits of ids and nesting: a value within them is read back unchanged, and one beyond them is refused by every store
//! in the same way, with nothing written.
//!
//! If one store refused a text that another keeps, a program that works with SQLite would fail after its move to
//! PostgreSQL. So the limits are those of the ledger and not of the store.

use serde_json::{Value, json};

use super::{LONG, SharedStore, ask, ok};
use crate::args::Args;
use crate::deferred::Answer;
use crate::ledger::{Acquired, Ask, Decided, Ledger, LedgerError, Saved};

pub(super) async fn check(place: &SharedStore) {
    ids(place).await;
    asks(place).await;
    runs(place).await;
}

/// The number of rows and of log entries in the store.
async fn written(place: &SharedStore) -> (usize, u64) {
    let ledger = place.ledger(0);
    let asks = ok(ledger.list(None, 1000).await).records.len();
    (asks + ok(ledger.waiting_runs(1000).await).records.len(), ok(ledger.export(|_| ()).await))
}

fn refused<T>(result: Result<T, LedgerError>, says: &str) {
    let said = match result {
        Err(error @ LedgerError::Unkeepable { .. }) => error.to_string(),
        _ => String::new(),
    };
    let fits = said.contains(says) && said.len() < 300;
    assert!(fits, "a value beyond a limit is refused with the reason ({says}): `{said}`");
}

async fn ids(place: &SharedStore) {
    let says = "the id of its run has 1025 bytes, and at most 1024 are kept";
    // Ids that some store has to escape (control characters), and one that does not compress.
    let noise =
        (0..1024_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 24) as u8 % 26));
    for longest in ["\0".repeat(1024), "\u{1}".repeat(1024), "é".repeat(512), noise.collect()] {
        let too_long = format!("{longest}x");
        let before = written(place).await;
        refused(place.ledger(0).park(Ask::new(&*too_long, "root/c1", "pay")).await, says);
        refused(place.ledger(0).save_run(&too_long, json!(1), None).await, says);
        assert_eq!(written(place).await, before, "a refused write changes nothing");

        let parked = place.park(Ask::new(&*longest, "root/c1", "pay")).await;
        let yes = Answer::Approve { args: None };
        assert_eq!(parked.decide("ann", yes).await, Decided::Won { again: false });
        assert_eq!(ok(place.ledger(1).save_run(&longest, json!(1), None).await), Saved::Saved);
        let taken = ok(place.ledger(0).acquire_run_as(&longest, "w", LONG).await);
        assert_eq!(leased(taken), (1, json!(1)), "an id within the limit is found");
        let whole = place.ledger(1).verify(&Default::default()).await;
        assert!(whole.is_ok(), "the log of an id within the limit verifies: {whole:?}");
    }
}

/// The token and the state of a lease.
fn leased(acquired: Acquired) -> (u64, Value) {
    let Acquired::Lease(lease) = acquired else {
        super::fail("L5: what no worker has is acquired")
    };
    (lease.keeper().token(), lease.state().clone())
}

/// A value that is nested `levels` deep.
fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(null), |value, _| json!([value]))
}

async fn asks(place: &SharedStore) {
    let deep =
        |levels| ask(&format!("deep {levels}")).with_args(Args::new().with("deep", nested(levels)));
    let before = written(place).await;
    refused(place.ledger(0).park(deep(200)).await, "nested more than 160 levels deep");
    assert_eq!(written(place).await, before, "a refused write changes nothing");
    let parked = place.park(deep(150)).await;
    assert_eq!(parked.now().await, parked.record, "a value within the limit is read back");
}

async fn runs(place: &SharedStore) {
    let save =
        async |ledger: &Ledger, state, token| ledger.save_run("a deep run", state, token).await;
    let (ledger, before) = (place.ledger(0), written(place).await);
    let says = "nested more than 160 levels deep";
    refused(save(&ledger, nested(160), None).await, says);
    assert_eq!(written(place).await, before, "a refused write changes nothing");
    assert_eq!(ok(save(&ledger, nested(159), None).await), Saved::Saved);
    let taken = ok(ledger.acquire_run_as("a deep run", "w", LONG).await);
    assert_eq!(leased(taken), (1, nested(159)), "a value within the limit is read back");

    let before = written(place).await;
    refused(save(&ledger, nested(160), Some(1)).await, says);
    refused(ledger.end_run("a deep run", 1, nested(160)).await, says);
    assert_eq!(written(place).await, before, "a refused write changes nothing");
    let held = ok(place.ledger(1).acquire_run_as("a deep run", "v", LONG).await);
    assert!(matches!(held, Acquired::Held { by, .. } if by == "w"), "the lease is unchanged");
    assert_eq!(ok(ledger.end_run("a deep run", 1, json!("done")).await), Saved::Saved);
}
