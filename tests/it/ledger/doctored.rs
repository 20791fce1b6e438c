//! L8: columns, indexes, leases, bytes and files beside the log that something else than a ledger has changed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use countersign::ledger::{
    Ask, AskRecord, AskSeries, AskState, Claimed, Ledger, LedgerError, MemoryStore, NextAsk,
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::place::{Place, no, park, yes};

const KEY: &[u8] = b"the key that the attacker lacks";
const NEXT: &[u8] = b"the key that comes after it";
const LEASE: Duration = Duration::from_secs(3600);

async fn keyed(place: &Place) -> Ledger {
    place.open().await.audit_key(KEY)
}

async fn broken(ledger: &Ledger) -> String {
    match ledger.verify(&BTreeMap::new()).await {
        Err(LedgerError::Broken(broken)) => broken.problem,
        other => panic!("{other:?}"),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "a result is given as the call returns it")]
fn is_changed<T: std::fmt::Debug>(made: Result<T, LedgerError>, what: &str) {
    assert!(matches!(made, Err(LedgerError::Changed { .. })), "{what}: {made:?}");
}

#[expect(clippy::needless_pass_by_value, reason = "a result is given as the call returns it")]
fn is_refused<T: std::fmt::Debug>(made: Result<T, LedgerError>) {
    assert!(matches!(made, Err(LedgerError::AuditKey { .. })), "{made:?}");
}

async fn kind(place: &Place, id: &str, kind: &str) {
    place.sql(&format!("UPDATE countersign_rows SET kind = '{kind}' WHERE id = '{id}'")).await;
}

// L8: "A row that was changed or removed outside of the ledger is refused", also where its column says that it is none of
// those that are asked for.
async fn a_row_that_says_another_kind_is_refused_and_no_new_one(place: &Place) {
    let ledger = keyed(place).await;
    let (ask, other) = (park(&ledger, "r", "c1").await, park(&ledger, "r", "c2").await);
    let id = ask.ask.id();
    ledger.decide(id, &ask.fingerprint, "ann", no("never")).await.unwrap();
    for other_kind in ["counter", "run", "grant", "key", "junk"] {
        kind(place, id, other_kind).await;
        let ledger = keyed(place).await;
        is_changed(ledger.get(id).await, other_kind);
        is_changed(ledger.park(Ask::new("r", "c1", "pay")).await, other_kind);
        is_changed(ledger.decide(id, &ask.fingerprint, "bob", yes()).await, other_kind);
        is_changed(ledger.close(id).await, other_kind);
        let listed = [ledger.list(None, 9).await.unwrap(), ledger.list_run("r", 9).await.unwrap()];
        for listed in listed {
            assert_eq!(listed.records[0].ask.id(), other.ask.id());
            let refused: Vec<_> = listed.refused.iter().map(|row| &*row.id).collect();
            // Of a run, the rows of a kind that there is not are in no index; the list of all names them.
            assert!(refused == [id] || other_kind == "junk", "{other_kind}: {refused:?}");
        }
        assert!(broken(&ledger).await.contains(id));
    }
    kind(place, id, "ask").await;
    assert!(ledger.get(id).await.unwrap().unwrap().is_denied());
    assert!(ledger.verify(&BTreeMap::new()).await.is_ok());
}

// L8: "A list of one state finds rows by their column: one whose column was changed is refused in the list of the state that
// it says, in the list of all, and by `verify`", and is not decided.
async fn a_pending_ask_whose_column_says_another_state_is_not_hidden_silently(place: &Place) {
    let ledger = keyed(place).await;
    let (ask, other) = (park(&ledger, "r", "c1").await, park(&ledger, "r", "c2").await);
    let id = ask.ask.id();
    let set = async |state: &str| {
        let set = format!("UPDATE countersign_rows SET state = '{state}' WHERE id = '{id}'");
        place.sql(&set).await;
    };
    for (column, state) in [
        ("decided", Some(AskState::Decided)),
        ("executed", Some(AskState::Executed)),
        ("cancelled", Some(AskState::Cancelled)),
        ("junk", None),
    ] {
        set(column).await;
        let ledger = keyed(place).await;
        for listed in [ledger.list(state, 9).await, ledger.list(None, 9).await] {
            let refused: Vec<_> = listed.unwrap().refused.iter().map(|it| it.id.clone()).collect();
            assert_eq!(refused, [id], "{column}");
        }
        let pending = ledger.list(Some(AskState::Pending), 9).await.unwrap();
        assert_eq!(pending.records[0].ask.id(), other.ask.id(), "no other is hidden");
        assert!(broken(&ledger).await.contains(id), "{column}");
        is_changed(ledger.get(id).await, column);
        is_changed(ledger.decide(id, &ask.fingerprint, "bob", yes()).await, column);
        is_changed(ledger.park(Ask::new("r", "c1", "pay")).await, column);
    }
    set("pending").await;
    assert_eq!(ledger.list(Some(AskState::Pending), 9).await.unwrap().records.len(), 2);
    assert!(ledger.verify(&BTreeMap::new()).await.is_ok());
}

async fn a_run_that_says_another_kind_is_refused_and_no_new_one(place: &Place) {
    let ledger = keyed(place).await;
    ledger.save_run("r", json!({"step": 1}), None).await.unwrap();
    for other_kind in ["counter", "ask", "junk"] {
        kind(place, "run:r", other_kind).await;
        is_changed(ledger.load_run("r").await, other_kind);
        is_changed(ledger.save_run("r", json!({}), None).await, other_kind);
        is_changed(ledger.acquire_run("r").await, other_kind);
        is_changed(ledger.park(Ask::new("r", "c", "pay")).await, other_kind);
    }
}

// L8: "a process without it, or with another one, is refused when it opens the store" and, where it was running when the
// key was added, with its next change.
async fn a_process_that_ran_when_the_key_was_added_changes_nothing_more(place: &Place) {
    for (before, after) in [(None, KEY), (Some(KEY), NEXT)] {
        let running = place.open().await;
        let running = before.into_iter().fold(running, |ledger, key| ledger.audit_key(key));
        let again = running.clone();
        let run = if before.is_none() { "r1" } else { "r2" };
        let (asked, approved) = (park(&running, run, "c1").await, park(&running, run, "c2").await);
        running.decide(approved.ask.id(), &approved.fingerprint, "ann", yes()).await.unwrap();
        let rekeying = place.open().await;
        let rekeying = before.into_iter().fold(rekeying, |ledger, key| ledger.audit_key(key));
        rekeying.rekey(after, "ann").await.unwrap();

        is_refused(running.decide(asked.ask.id(), &asked.fingerprint, "bob", yes()).await);
        is_refused(running.list(None, 9).await);
        is_refused(again.claim(approved.ask.id(), "w", LEASE).await);
        let keyed = place.open().await.audit_key(after);
        assert!(keyed.verify(&BTreeMap::new()).await.is_ok(), "nothing was written");
        let claimed = keyed.claim(approved.ask.id(), "w", LEASE).await.unwrap();
        assert_eq!(claimed, Claimed::Claimed { token: 1 });
    }
}

async fn claimed(ledger: &Ledger, run: &str) -> AskRecord {
    let ask = Ask::new(run, "c", "pay").with_idempotent(true);
    let ask = ledger.park(ask).await.unwrap();
    let id = ask.ask.id();
    ledger.decide(id, &ask.fingerprint, "ann", yes()).await.unwrap();
    ledger.claim(id, "w", LEASE).await.unwrap();
    ledger.get(id).await.unwrap().unwrap()
}

async fn lease(place: &Place, record: &AskRecord, until: i64) {
    let (id, was) = (record.ask.id(), record.claim.as_ref().unwrap().until);
    place
        .sql(&format!(
            "UPDATE countersign_rows SET doc = replace(doc, '\"until\":{was},', '\"until\":{until},'), due_at = {until} WHERE id = '{id}'"
        ))
        .await;
}

// L8: "Reading … compares … the end of a lease with its seal".
async fn the_end_of_a_lease_is_compared_with_its_seal(place: &Place) {
    let ledger = keyed(place).await;
    let ask = claimed(&ledger, "r").await;
    ledger.save_run("run", json!(1), None).await.unwrap();
    ledger.acquire_run_as("run", "w", LEASE).await.unwrap();
    let taken = ledger.load_run("run").await.unwrap().unwrap().claim.unwrap().until;
    for rekeys in [false, true] {
        let ledger = match rekeys {
            false => ledger.clone(),
            true => {
                ledger.rekey(NEXT, "ann").await.unwrap();
                place.open().await.audit_key(NEXT)
            }
        };
        for until in [1, 4_102_444_800_000] {
            lease(place, &ask, until).await;
            is_changed(ledger.get(ask.ask.id()).await, "read");
            is_changed(ledger.claim(ask.ask.id(), "v", LEASE).await, "claimed by another worker");
            assert!(broken(&ledger).await.contains(ask.ask.id()));
            let mut changed = ask.clone();
            changed.claim.as_mut().unwrap().until = until;
            lease(place, &changed, ask.claim.as_ref().unwrap().until).await;
            let sql = |from: i64, to: i64| {
                format!(
                    "UPDATE countersign_rows SET doc = replace(doc, '\"until\":{from},', '\"until\":{to},') WHERE id = 'run:run'"
                )
            };
            place.sql(&sql(taken, until)).await;
            is_changed(ledger.load_run("run").await, "read");
            is_changed(ledger.acquire_run_as("run", "v", LEASE).await, "taken by another worker");
            place.sql(&sql(until, taken)).await;
        }
        assert!(ledger.verify(&BTreeMap::new()).await.is_ok());
        assert_eq!(ledger.load_run("run").await.unwrap().unwrap().claim.unwrap().until, taken);
        assert!(matches!(
            ledger.claim(ask.ask.id(), "v", LEASE).await.unwrap(),
            Claimed::Held { .. }
        ));
    }
    let next = place.open().await.audit_key(NEXT);
    next.renew(ask.ask.id(), 1, LEASE).await.unwrap();
    next.settle(ask.ask.id(), 1, json!("paid")).await.unwrap();
    assert!(next.verify(&BTreeMap::new()).await.is_ok());
}

// L8: "A store says once whether it has an audit key, and which", and cannot be made to have said nothing.
async fn a_store_that_does_not_say_any_more_which_key_it_has_is_broken(place: &Place) {
    let ledger = keyed(place).await;
    park(&ledger, "r", "c").await;
    assert!(ledger.verify(&BTreeMap::new()).await.is_ok());
    place
        .sql(
            "DELETE FROM countersign_rows WHERE kind = 'key'; \
             DELETE FROM countersign_log WHERE run = 'countersign/key'",
        )
        .await;
    if let Place::Postgres(_) = place {
        place.sql("DELETE FROM countersign_heads WHERE run = 'countersign/key'").await;
    }
    let fresh = keyed(place).await;
    assert!(broken(&fresh).await.contains("does not say any more"));
    is_changed(ledger.park(Ask::new("r", "c2", "pay")).await, "written");
}

over_sqlite_and_postgresql!(
    a_row_that_says_another_kind_is_refused_and_no_new_one,
    a_pending_ask_whose_column_says_another_state_is_not_hidden_silently,
    a_run_that_says_another_kind_is_refused_and_no_new_one,
    a_process_that_ran_when_the_key_was_added_changes_nothing_more,
    the_end_of_a_lease_is_compared_with_its_seal,
    a_store_that_does_not_say_any_more_which_key_it_has_is_broken,
);

/// Builds the index by which entries are found without those from a place on, and sets its text back.
async fn hide_from_the_index(place: &Place, seq: i64) {
    let text = "(SELECT sql FROM sqlite_schema WHERE name = 'countersign_log_by_row')";
    place.sql(&format!("CREATE TABLE kept AS SELECT {text} AS sql")).await;
    let about = "CASE WHEN seq < {seq} THEN body -> '$.about' ELSE '' END";
    let about = about.replace("{seq}", &seq.to_string());
    place
        .sql(&format!(
            "DROP INDEX countersign_log_by_row; \
             CREATE INDEX countersign_log_by_row ON countersign_log (({about}), seq); \
             PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = (SELECT sql FROM kept) WHERE name = 'countersign_log_by_row'; \
             PRAGMA writable_schema = OFF; DROP TABLE kept"
        ))
        .await;
}

// L8: "The last entry about a row is found by what the entries say, in every store, and not by a column or index that could
// be changed beside them".
#[tokio::test]
async fn an_index_that_hides_entries_takes_nothing_back() {
    for is_executed in [true, false] {
        let place = Place::sqlite();
        let ledger = keyed(&place).await;
        let (ask, _) = (park(&ledger, "r", "c1").await, park(&ledger, "r", "c2").await);
        let id = ask.ask.id();
        if is_executed {
            ledger.decide(id, &ask.fingerprint, "ann", yes()).await.unwrap();
        }
        let before = place.store().await.get(id).await.unwrap().found().unwrap().row;
        let hidden = if is_executed {
            ledger.claim(id, "w", LEASE).await.unwrap();
            ledger.settle(id, 1, json!("paid")).await.unwrap();
            4
        } else {
            ledger.decide(id, &ask.fingerprint, "ann", no("never")).await.unwrap();
            3
        };
        hide_from_the_index(&place, hidden).await;
        let (doc, state) = (before.doc.replace('\'', "''"), before.state);
        place.sql(&format!("UPDATE countersign_rows SET doc = '{doc}', state = '{state}', due_at = NULL WHERE id = '{id}'")).await;
        let fresh = keyed(&place).await;
        is_changed(fresh.get(id).await, "read");
        is_changed(fresh.claim(id, "v", LEASE).await, "claimed");
        assert_eq!(fresh.list(None, 9).await.unwrap().refused.len(), 1);
        // Nor is a row that was removed created anew.
        hide_from_the_index(&place, 0).await;
        place.sql(&format!("DELETE FROM countersign_rows WHERE id = '{id}'")).await;
        assert!(keyed(&place).await.park(Ask::new("r", "c1", "pay")).await.is_err());
    }
}

// L8: "Lists return the readable rows and, separately, the refused ones, so that one such row hides no other and stops no
// worker."
#[tokio::test]
async fn bytes_that_are_no_text_hide_no_other_row_and_stop_no_reading() {
    let row = |column: &str| {
        format!("UPDATE countersign_rows SET {column} = CAST(x'7bff7d' AS TEXT) WHERE run = 'r2'")
    };
    let entry = |column: &str| {
        format!("UPDATE countersign_log SET {column} = CAST(x'7bff7d' AS TEXT) WHERE run = 'r2'")
    };
    for sql in [
        row("doc"),
        row("state"),
        row("requester"),
        row("run"),
        entry("body"),
        entry("hash"),
        entry("prev"),
        entry("run"),
    ] {
        let place = Place::sqlite();
        let ledger = keyed(&place).await;
        for run in ["r1", "r2", "r3"] {
            park(&ledger, run, "c").await;
        }
        place.sql(&sql).await;
        let fresh = keyed(&place).await;
        let listed = fresh.list(None, 9).await.unwrap();
        assert_eq!((listed.records.len(), listed.refused.len()), (2, 1), "{sql}");
        assert!(fresh.pending_of("").await.unwrap() >= 2, "{sql}");
        let _ = fresh.expire().await.unwrap();
        assert!(!broken(&fresh).await.is_empty(), "{sql}");
        fresh.checkpoint().await.unwrap();
    }
}

// L8: "`Ledger::anchor(path)` keeps the last checkpoint in a file and refuses a store that is behind it."
#[tokio::test]
async fn an_anchor_whose_directory_is_gone_is_no_new_anchor() {
    let place = TempDir::new().unwrap();
    let elsewhere = place.path().join("mounted");
    std::fs::create_dir(&elsewhere).unwrap();
    let store = MemoryStore::new();
    let anchored = || Ledger::new(store.clone()).anchor(elsewhere.join("anchor.json"));
    park(&anchored(), "r", "c").await;
    anchored().checkpoint().await.unwrap();
    std::fs::rename(&elsewhere, place.path().join("unmounted")).unwrap();
    let error = anchored().open().await.unwrap_err();
    assert!(matches!(error, LedgerError::Behind { .. }), "{error}");
    assert!(error.to_string().contains("its directory is not there"), "{error}");
}

/// A ledger whose clock the test sets.
fn clocked() -> (Arc<AtomicI64>, Ledger) {
    let time = Arc::new(AtomicI64::new(1_000));
    let clock = Arc::clone(&time);
    (time, Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::SeqCst))))
}

fn numbered(n: u64) -> Ask {
    Ask::new(format!("r{n}"), "c", "pay").with_expires_in(Duration::from_secs(1))
}

// D11: one place for the asks of equal calls, at most one of which is open, also for processes whose clocks differ.
#[tokio::test]
async fn an_ask_that_is_over_by_one_clock_only_has_no_open_one_beside_it() {
    for is_back_before in [true, false] {
        let (time, ledger) = clocked();
        let number = |n| numbered(n);
        let series = AskSeries::new(&ledger, &number);
        let last = series.last().await.unwrap();
        series.next(&last, number(1), None).await.unwrap();
        time.store(5_000, Ordering::SeqCst);
        let last = series.last().await.unwrap();
        assert!(last.open().is_none(), "it has expired");
        if is_back_before {
            time.store(1_500, Ordering::SeqCst);
        }
        let next = series.next(&last, number(2), None).await.unwrap();
        time.store(1_500, Ordering::SeqCst);
        match is_back_before {
            true => assert!(matches!(next, NextAsk::Open(open) if open.ask.run() == "r1")),
            false => {
                assert!(matches!(next, NextAsk::Parked(_)));
                let first = ledger.get(number(1).id()).await.unwrap().unwrap();
                assert_eq!(first.state, AskState::Expired, "for every clock");
            }
        }
    }
}
