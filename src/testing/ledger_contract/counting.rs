//! Counters: of any number of processes, as many calls are counted as the limit allows (rule R7).

use std::collections::BTreeMap;

use super::{LONG, MANY, OVER, SharedStore, ok};

pub(super) async fn check(place: &SharedStore) {
    many_take_the_last_places(place).await;
    a_call_is_counted_once(place).await;
    let over = ok(place.ledger(0).count_call("over", "a", 1, OVER).await);
    let next = ok(place.ledger(1).count_call("over", "b", 1, OVER).await);
    assert!(over && next, "R7: calls that are older than the span do not count");
    let verified = ok(place.ledger(0).verify(&BTreeMap::new()).await);
    assert!(!verified.is_empty(), "L8: the log is over the counters, too");
}

async fn many_take_the_last_places(place: &SharedStore) {
    let counted = place
        .at_once(|n, ledger| async move {
            ok(ledger.count_call("last places", &format!("call {n}"), 5, LONG).await)
        })
        .await;
    let within = counted.into_iter().filter(|within| *within).count();
    assert_eq!(within, 5, "R7: {MANY} at once take the 5 places");
}

async fn a_call_is_counted_once(place: &SharedStore) {
    let count = async |n: usize, call: &str, counter: &str| {
        ok(place.ledger(n).count_call(counter, call, 1, LONG).await)
    };
    assert!(count(0, "a", "once").await, "R7: the first call is within the limit");
    assert!(count(1, "a", "once").await, "R7: a call counts once, in whatever process");
    assert!(!count(1, "b", "once").await, "R7: another call is beyond the limit");
    assert!(count(1, "b", "another").await, "R7: counters are separate");
}
