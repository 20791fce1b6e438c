//! Rows that were changed outside of the ledger are refused (rule L8).
//!
//! We change each field that decides once, in the stored document, as another program with access to the store could.
//! A check that only the digest differs would pass with a digest over nothing, so we try every operation on every
//! changed row.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{LONG, OVER, Parked, SharedStore, approve, ask, deny, ok};
use crate::ledger::{
    Acquired, Ask, Claimed, Draft, Dropped, LedgerError, Linker, Listed, Lookup, Quorum, Row,
    Saved, Writes,
};

pub(super) async fn check(place: &SharedStore) {
    asks(place).await;
    an_older_copy(place).await;
    runs(place).await;
    leases(place).await;
    without_an_entry(place).await;
    removed_asks(place).await;
    removed_runs(place).await;
    lists(place).await;
    expiring(place).await;
}

/// Writes a row without a log entry, which the library never does.
async fn overwrite(place: &SharedStore, row: &Row) {
    let mut work = |_, _| Writes { rows: vec![row.clone()], ..Writes::default() };
    ok(place.store(0).transact(&[], &Linker::default(), &mut work).await);
}

async fn stored(place: &SharedStore, id: &str) -> Row {
    let found = ok(place.store(0).get(id).await).found();
    found.unwrap_or_else(super::missing).row
}

/// Removes a row and leaves the entry about it, which the library never does.
async fn remove(place: &SharedStore, row: &Row) {
    let log = ok(place.store(0).log(&row.run, 0, 100).await);
    let end = log.last().map(|end| (end.seq, end.hash.clone())).unwrap_or_default();
    let last = ok(place.store(0).get(&row.id).await).found().and_then(|found| found.entry);
    let body = ok(serde_json::from_str(&last.map(|last| last.body).unwrap_or_default()));
    let writes = Writes {
        log: vec![Draft { run: row.run.clone(), row: Some(row.id.clone()), body }],
        drop: Some(Dropped { run: row.run.clone(), end, rows: vec![row.id.clone()] }),
        ..Writes::default()
    };
    let mut work = |_, _| writes.clone();
    ok(place.store(0).transact(&[], &Linker::default(), &mut work).await);
    assert_eq!(
        ok(place.store(0).get(&row.id).await),
        Lookup::Removed { id: row.id.clone() },
        "L8: a row that was removed without its entries is noticed"
    );
}

/// The row with another value at this JSON pointer of its document.
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

/// Checks that the list refuses exactly this row.
#[track_caller]
fn left_out<T>(listed: Result<Listed<T>, LedgerError>, id: &str, what: &str) {
    let refused_rows = ok(listed).refused;
    let ids: Vec<_> = refused_rows.iter().map(|row| &*row.id).collect();
    assert_eq!(ids, [id], "L8: {what} was changed, and its list says so");
    for row in refused_rows {
        refused(Err::<(), _>(row.error), what);
    }
}

async fn broken(place: &SharedStore, what: &str) {
    let whole = place.ledger(0).verify(&Default::default()).await;
    assert!(
        matches!(whole, Err(LedgerError::Broken(_))),
        "L8: {what} was changed, and `verify` says so"
    );
}

async fn whole(place: &SharedStore) {
    let whole = place.ledger(0).verify(&Default::default()).await;
    assert!(whole.is_ok(), "L8: the restored row verifies: {whole:?}");
}

/// An ask with a quorum and one vote, so that these fields can be tampered with as well.
async fn parked(place: &SharedStore) -> Parked {
    let quorum = Quorum { approvals: 2, not_the_requester: true };
    let it = place.park(ask("tampered with").with_quorum(quorum)).await;
    let _ = it.decide("ann", approve()).await;
    it
}

async fn asks(place: &SharedStore) {
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
        left_out(it.ledger.list(None, 10).await, &it.id, what);
        left_out(it.ledger.list_run(it.record.ask.run(), 10).await, &it.id, what);
        let (id, fingerprint) = (&*it.id, &it.record.fingerprint);
        refused(it.ledger.decide(id, fingerprint, "bob", approve()).await, what);
        refused(it.ledger.claim(id, "w", LONG).await, what);
        refused(it.ledger.cancel(id, "bob").await, what);
        refused(it.ledger.close(id).await, what);
        assert_eq!(stored(place, id).await, changed, "L8: a refused row stays unchanged");
        broken(place, what).await;
    }
    overwrite(place, &row).await;
    assert!(it.now().await.decision.is_none(), "L8: the restored row is read");
    whole(place).await;
}

async fn without_an_entry(place: &SharedStore) {
    let row = stored(place, &parked(place).await.id).await;
    let smuggled = Ask::new("a run without a log", "root/c1", "delete_file");
    let (id, run) = (smuggled.id().to_owned(), smuggled.run().to_owned());
    let doc = row.doc.replace(&row.id, &id);
    overwrite(place, &Row { id: id.clone(), run, doc, ..row }).await;
    refused(place.ledger(1).get(&id).await, "a row that no entry is about");
    refused(place.ledger(1).claim(&id, "w", LONG).await, "a row that no entry is about");
}

async fn removed_asks(place: &SharedStore) {
    let it = place.park(ask("removed")).await;
    let _ = it.decide("ann", deny("never")).await;
    let row = stored(place, &it.id).await;
    remove(place, &row).await;
    let (ledger, id, what) = (&it.ledger, &*it.id, "an ask that was removed");
    refused(ledger.park(ask("removed")).await, what);
    refused(ledger.get(id).await, what);
    refused(ledger.decide(id, &it.record.fingerprint, "bob", approve()).await, what);
    refused(ledger.claim(id, "w", LONG).await, what);
    refused(ledger.renew(id, 1, LONG).await, what);
    refused(ledger.settle(id, 1, json!(1)).await, what);
    refused(ledger.cancel(id, "bob").await, what);
    refused(ledger.close(id).await, what);
    broken(place, what).await;
    overwrite(place, &row).await;
    assert!(it.now().await.decision.is_some(), "L8: the restored row is read again");
}

async fn removed_runs(place: &SharedStore) {
    let (ledger, run, what) = (place.ledger(1), "a run that is removed", "a run that was removed");
    let _ = ok(ledger.save_run(run, json!(1), None).await);
    let _ = ok(ledger.acquire_run_as(run, "w", LONG).await);
    let row = stored(place, &format!("run:{run}")).await;
    remove(place, &row).await;
    refused(ledger.load_run(run).await, what);
    refused(ledger.save_run(run, json!(1), None).await, what);
    refused(ledger.save_run(run, json!(1), Some(1)).await, what);
    refused(ledger.acquire_run_as(run, "v", LONG).await, what);
    refused(ledger.renew_run(run, 1, LONG).await, what);
    refused(ledger.end_run(run, 1, json!(1)).await, what);
    // The run may have been over and dropped, which the store does not say any more.
    refused(ledger.park(Ask::new(run, "root/c1", "delete_file")).await, what);
    overwrite(place, &row).await;
    assert_eq!(
        ok(ledger.renew_run(run, 1, LONG).await),
        Saved::Saved,
        "L8: the restored run is renewed"
    );
}

async fn lists(place: &SharedStore) {
    let run = "a run with one row that was changed";
    let mut ids = Vec::new();
    for call in ["root/c1", "root/c2", "root/c3"] {
        ids.push(place.park(Ask::new(run, call, "delete_file")).await.id);
    }
    let Some(changed) = ids.get(1) else { return };
    let row = stored(place, changed).await;
    overwrite(place, &with(&row, "/ask/ask/tool", &json!("read_file"))).await;
    let listed = place.ledger(1).list_run(run, 10).await;
    let mut found: Vec<_> = ok(listed).records.iter().map(|it| it.ask.id().to_owned()).collect();
    found.sort_unstable();
    let mut others: Vec<_> = ids.iter().filter(|id| *id != changed).cloned().collect();
    others.sort_unstable();
    assert_eq!(found, others, "L8: the other rows are listed beside a changed one");
    left_out(place.ledger(1).list_run(run, 10).await, changed, "one of three");
}

/// More rows than one read returns.
const CROWD: usize = 300;

async fn expiring(place: &SharedStore) {
    let mut rows = Vec::new();
    for n in 0..CROWD {
        let it = place.park(ask(&format!("due and changed {n}")).with_expires_in(OVER)).await;
        let row = stored(place, &it.id).await;
        rows.push(with(&row, "/ask/ask/tool", &json!("read_file")));
    }
    let mut work = |_, _| Writes { rows: rows.clone(), ..Writes::default() };
    ok(place.store(0).transact(&[], &Linker::default(), &mut work).await);
    tokio::time::sleep(std::time::Duration::from_millis(3)).await;
    let last = place.park(ask("due behind them").with_expires_in(OVER)).await;
    let expired = ok(place.ledger(1).expire().await);
    assert_eq!(expired.changed, [last.id], "L4: asks that are due after refused rows expire");
    let refused: BTreeSet<_> = expired.refused.iter().map(|row| &row.id).collect();
    assert_eq!(refused.len(), CROWD, "L8: each refused row is reported once");
    assert_eq!(expired.refused.len(), CROWD, "L8: each refused row is reported once");
}

async fn an_older_copy(place: &SharedStore) {
    let it = place.approved(ask("taken back")).await;
    let before = stored(place, &it.id).await;
    let Claimed::Claimed { token } = ok(it.ledger.claim(&it.id, "w", LONG).await) else {
        super::fail("L2: an approved ask can be claimed");
    };
    let _ = ok(it.ledger.settle(&it.id, token, json!("done")).await);
    let after = stored(place, &it.id).await;
    overwrite(place, &before).await;
    refused(it.ledger.claim(&it.id, "w", LONG).await, "an older copy of a row");
    overwrite(place, &after).await;
}

async fn runs(place: &SharedStore) {
    let ledger = place.ledger(1);
    let run = "a run that is tampered with";
    let _ = ok(ledger.save_run(run, json!({"host": "db-2.internal"}), None).await);
    let _ = ok(ledger.acquire_run_as(run, "w", LONG).await);
    let id = format!("run:{run}");
    let row = stored(place, &id).await;
    for (at, value) in [
        ("/state/host", json!("db-1.prod")),
        ("/token", json!(0)),
        ("/over", json!(true)),
        ("/claim/worker", json!("v")),
    ] {
        overwrite(place, &with(&row, at, &value)).await;
        refused(ledger.load_run(run).await, at);
        left_out(ledger.waiting_runs(10).await, &id, at);
        refused(ledger.acquire_run_as(run, "v", LONG).await, at);
        refused(ledger.renew_run(run, 1, LONG).await, at);
        refused(ledger.save_run(run, json!(1), Some(1)).await, at);
        refused(ledger.end_run(run, 1, json!(1)).await, at);
    }
    overwrite(place, &row).await;
    assert_eq!(
        ok(ledger.renew_run(run, 1, LONG).await),
        Saved::Saved,
        "L8: the restored run is renewed"
    );
    assert!(matches!(ok(ledger.acquire_run_as(run, "v", LONG).await), Acquired::Held { .. }));
}

async fn leases(place: &SharedStore) {
    let it = place.approved(ask("held for ever")).await;
    let Claimed::Claimed { token } = ok(it.ledger.claim(&it.id, "w", LONG).await) else {
        super::fail("L2: an approved ask can be claimed");
    };
    let _ = ok(it.ledger.renew(&it.id, token, 2 * LONG).await);
    let row = stored(place, &it.id).await;
    let until = row.due_at.unwrap_or_default();
    let doc = row.doc.replace(&until.to_string(), &(until + 1).to_string());
    assert_ne!(doc, row.doc, "the document has the end of the lease");
    let before = verified(place).await;
    overwrite(place, &Row { doc, due_at: Some(until + 1), ..row.clone() }).await;
    let after = verified(place).await;
    assert!(
        !before.contains(&it.id) && after.contains(&it.id),
        "L8: a changed lease is noticed: {after}"
    );
    overwrite(place, &row).await;
}

/// The problem that `verify` finds, or an empty text.
async fn verified(place: &SharedStore) -> String {
    match place.ledger(0).verify(&Default::default()).await {
        Err(LedgerError::Broken(broken)) => broken.problem,
        whole => ok(whole.map(|_| String::new())),
    }
}
