//! Rows that were changed outside of the ledger are refused (rule L8).

use serde_json::{Value, json};

use super::{LONG, Parked, Place, approve, ask, ok};
use crate::ledger::{Ask, Claimed, Found, LedgerError, Linker, Quorum, Row, Saved, Taken, Writes};

pub(super) async fn check(place: &Place) {
    asks(place).await;
    an_older_copy(place).await;
    runs(place).await;
    leases(place).await;
    without_an_entry(place).await;
}

/// Writes a row without a log entry, which the library never does.
async fn overwrite(place: &Place, row: &Row) {
    let mut work = |_, _| Writes { rows: vec![row.clone()], ..Writes::default() };
    ok(place.store(0).transact(&[], &Linker::default(), &mut work).await);
}

async fn stored(place: &Place, id: &str) -> Row {
    let found: Option<Found> = ok(place.store(0).get(id).await);
    found.unwrap_or_else(super::missing).row
}

/// The row with one value of its document replaced.
fn with(row: &Row, pointer: &str, value: &Value) -> Row {
    let mut doc: Value = ok(serde_json::from_str(&row.doc));
    let there = doc.pointer_mut(pointer);
    assert!(there.as_deref().is_some_and(|it| it != value), "{pointer} is there, and another");
    if let Some(there) = there {
        *there = value.clone();
    }
    Row { doc: doc.to_string(), ..row.clone() }
}

#[track_caller]
fn refused<T>(result: Result<T, LedgerError>, what: &str) {
    let said = result.err().map(|error| error.to_string()).unwrap_or_default();
    let fits = said.contains("was changed outside of the ledger") && !said.contains("version");
    assert!(fits, "L8: {what} was changed, and is refused: `{said}`");
}

async fn broken(place: &Place, what: &str) {
    let whole = ok(place.ledger(0).verify(&Default::default()).await);
    assert!(whole.is_err(), "L8: {what} was changed, and `verify` says so");
}

async fn whole(place: &Place) {
    let whole = ok(place.ledger(0).verify(&Default::default()).await);
    assert!(whole.is_ok(), "L8: as it was written, it verifies: {whole:?}");
}

/// An ask with a quorum and one vote, so that these fields can be tampered with as well.
async fn parked(place: &Place) -> Parked {
    let quorum = Quorum { approvals: 2, not_the_requester: true };
    let it = place.park(ask("tampered with").quorum(quorum)).await;
    let _ = it.decide("ann", approve()).await;
    it
}

async fn asks(place: &Place) {
    let it = parked(place).await;
    let row = stored(place, &it.id).await;
    let changes = [
        ("/ask/ask/tool", json!("read_file")),
        ("/ask/ask/args/path", json!("harmless")),
        ("/ask/ask/principal", json!("ann")),
        ("/ask/ask/quorum/approvals", json!(1)),
        ("/ask/ask/quorum/not_the_requester", json!(false)),
        ("/ask/ask/idempotent", json!(true)),
        ("/ask/ask/path", json!("root/other")),
        ("/ask/votes/0/by", json!("bob")),
        ("/ask/fingerprint", json!("another")),
        ("/version", json!(1)),
        ("/version", json!(99)),
    ];
    let mut rows: Vec<_> = changes.iter().map(|(at, value)| (*at, with(&row, at, value))).collect();
    let doc = row.doc.replacen("\"idempotent\"", "\"metadata\":{\"why\":\"\"},\"idempotent\"", 1);
    rows.push(("the metadata", Row { doc, ..row.clone() }));
    rows.push(("its state", Row { state: "decided".to_owned(), ..row.clone() }));
    rows.push(("its age", Row { created_at: 0, ..row.clone() }));
    rows.push(("its deadline", Row { due_at: Some(i64::MAX), ..row.clone() }));
    for (what, changed) in rows {
        overwrite(place, &changed).await;
        refused(it.ledger.get(&it.id).await, what);
        refused(it.ledger.list(None, 10).await, what);
        refused(it.ledger.list_run(it.record.ask.run(), 10).await, what);
        let (id, fingerprint) = (&*it.id, &it.record.fingerprint);
        refused(it.ledger.decide(id, fingerprint, "bob", approve()).await, what);
        refused(it.ledger.claim(id, "w", LONG).await, what);
        refused(it.ledger.cancel(id, "bob").await, what);
        refused(it.ledger.close(id).await, what);
        assert_eq!(stored(place, id).await, changed, "L8: what is refused stays as it is");
        broken(place, what).await;
    }
    overwrite(place, &row).await;
    assert!(it.now().await.decision.is_none(), "L8: as it was written, it is read");
    whole(place).await;
}

async fn without_an_entry(place: &Place) {
    let row = stored(place, &parked(place).await.id).await;
    let smuggled = Ask::new("a run without a log", "root/c1", "delete_file");
    let (id, run) = (smuggled.id().to_owned(), smuggled.run().to_owned());
    let doc = row.doc.replace(&row.id, &id);
    overwrite(place, &Row { id: id.clone(), run, doc, ..row }).await;
    refused(place.ledger(1).get(&id).await, "a row that no entry is about");
    refused(place.ledger(1).claim(&id, "w", LONG).await, "a row that no entry is about");
}

async fn an_older_copy(place: &Place) {
    let it = place.approved(ask("taken back")).await;
    let before = stored(place, &it.id).await;
    let Claimed::Claimed { token } = ok(it.ledger.claim(&it.id, "w", LONG).await) else {
        super::fail("L2: what is approved is claimed");
    };
    let _ = ok(it.ledger.settle(&it.id, token, json!("done")).await);
    let after = stored(place, &it.id).await;
    overwrite(place, &before).await;
    refused(it.ledger.claim(&it.id, "w", LONG).await, "an older copy of a row");
    overwrite(place, &after).await;
}

async fn runs(place: &Place) {
    let ledger = place.ledger(1);
    let run = "a run that is tampered with";
    let _ = ok(ledger.save_run(run, json!({"host": "db-2.internal"}), None).await);
    let _ = ok(ledger.take_run(run, "w", LONG).await);
    let id = format!("run:{run}");
    let row = stored(place, &id).await;
    for (at, value) in [
        ("/state/host", json!("db-1.prod")),
        ("/token", json!(0)),
        ("/over", json!(true)),
        ("/claim/worker", json!("v")),
    ] {
        overwrite(place, &with(&row, at, &value)).await;
        refused(ledger.get_run(run).await, at);
        refused(ledger.waiting_runs(10).await, at);
        refused(ledger.take_run(run, "v", LONG).await, at);
        refused(ledger.renew_run(run, 1, LONG).await, at);
        refused(ledger.save_run(run, json!(1), Some(1)).await, at);
        refused(ledger.end_run(run, 1, json!(1)).await, at);
    }
    overwrite(place, &row).await;
    assert_eq!(ok(ledger.renew_run(run, 1, LONG).await), Saved::Saved, "L8: as it was, it goes on");
    assert!(matches!(ok(ledger.take_run(run, "v", LONG).await), Taken::Held { .. }));
}

async fn leases(place: &Place) {
    let it = place.approved(ask("held for ever")).await;
    let Claimed::Claimed { token } = ok(it.ledger.claim(&it.id, "w", LONG).await) else {
        super::fail("L2: what is approved is claimed");
    };
    let _ = ok(it.ledger.renew(&it.id, token, 2 * LONG).await);
    let row = stored(place, &it.id).await;
    let until = row.due_at.unwrap_or_default();
    let doc = row.doc.replace(&until.to_string(), &(until + 1).to_string());
    assert_ne!(doc, row.doc, "the end of the lease is there");
    let before = verified(place).await;
    overwrite(place, &Row { doc, due_at: Some(until + 1), ..row.clone() }).await;
    let after = verified(place).await;
    assert!(
        !before.contains(&it.id) && after.contains(&it.id),
        "L8: a longer lease shows: {after}"
    );
    overwrite(place, &row).await;
}

/// The problem that `verify` finds, or an empty text.
async fn verified(place: &Place) -> String {
    let whole = ok(place.ledger(0).verify(&Default::default()).await);
    whole.err().map(|broken| broken.problem).unwrap_or_default()
}
