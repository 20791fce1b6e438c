//! L8: a store has an audit key or none, says so, and what is read or continued was made with it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use countersign::error::with_causes;
use countersign::ledger::{
    Ask, Claimed, Decided, Draft, Entry, Ledger, LedgerError, Linker, MemoryStore, Settled,
};
use serde_json::json;
use tempfile::TempDir;

use crate::support::place::{Place, no, park, written_with_and_without, yes};

const KEY: &[u8] = b"the first key of this store";
const NEXT: &[u8] = b"the second key of this store";
const LEASE: Duration = Duration::from_secs(60);

async fn whole(ledger: &Ledger) -> Result<u64, LedgerError> {
    ledger.verify(&BTreeMap::new()).await.map(|verified| verified.entries)
}

fn is_refused<T: std::fmt::Debug>(made: Result<T, LedgerError>) -> String {
    match made {
        Err(LedgerError::AuditKey { problem }) => problem,
        other => panic!("{other:?}"),
    }
}

async fn a_process_without_the_key_is_refused_before_it_writes(place: &Place) {
    let keyed = place.open().await.audit_key(KEY);
    let ask = park(&keyed, "r", "c").await;
    for (other, says) in [
        (place.open().await, "and this process has none"),
        (place.open().await.audit_key(NEXT), "and this process has the key"),
    ] {
        let decided = other.decide(ask.ask.id(), &ask.fingerprint, "eve", yes()).await;
        let problem = is_refused(decided);
        assert!(problem.contains(says) && problem.contains("--audit-key-file"), "{problem}");
        is_refused(other.open().await);
        is_refused(other.list(None, 9).await);
        is_refused(other.park(Ask::new("r2", "c", "pay")).await);
        is_refused(other.checkpoint().await);
    }
    assert_eq!(whole(&keyed).await.unwrap(), 1, "nothing was written");
    let decided = keyed.decide(ask.ask.id(), &ask.fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(decided, Decided::Won { again: false });
}

async fn a_store_without_a_key_refuses_one_until_it_is_added(place: &Place) {
    let without = place.open().await;
    let (pending, other) = (park(&without, "r", "c1").await, park(&without, "r", "c2").await);
    without.decide(other.ask.id(), &other.fingerprint, "ann", no("no")).await.unwrap();
    let problem = is_refused(place.open().await.audit_key(KEY).open().await);
    assert!(problem.contains("countersign asks rekey"), "{problem}");

    let rekeyed = without.rekey(KEY, "ann").await.unwrap();
    assert_eq!((rekeyed.entries, rekeyed.logs), (3, 2), "the run's log, and that of the key");
    is_refused(without.list(None, 9).await);
    // L8: "earlier entries count as before", also those that are not the last of their log.
    let keyed = place.open().await.audit_key(KEY);
    assert_eq!(keyed.list(None, 9).await.unwrap().records.len(), 2);
    assert!(keyed.list(None, 9).await.unwrap().refused.is_empty());
    let by_id = place.open().await.audit_key(KEY);
    assert!(by_id.get(other.ask.id()).await.unwrap().unwrap().is_denied());
    let deciding = place.open().await.audit_key(KEY);
    let id = pending.ask.id();
    let decided = deciding.decide(id, &pending.fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(decided, Decided::Won { again: false });
    assert_eq!(keyed.claim(id, "w", LEASE).await.unwrap(), Claimed::Claimed { token: 1 });
    let lost = keyed.decide(other.ask.id(), &other.fingerprint, "bob", yes()).await.unwrap();
    assert!(matches!(lost, Decided::Lost(_)));
    assert_eq!(whole(&keyed).await.unwrap(), 6, "with the entry that added the key");

    // A second key: the first is not needed any more.
    let verified = keyed.verify(&BTreeMap::new()).await.unwrap();
    keyed.rekey(NEXT, "ann").await.unwrap();
    let next = place.open().await.audit_key(NEXT);
    assert!(next.verify(&verified.heads).await.is_ok(), "the logs go on");
    let settled = next.settle(id, 1, json!("paid")).await.unwrap();
    assert!(matches!(settled, Settled::Settled { again: false, .. }));
    assert!(whole(&place.open().await.audit_key(NEXT)).await.is_ok());
    is_refused(place.open().await.audit_key(KEY).open().await);
    is_refused(next.rekey(NEXT, "ann").await);
}

async fn what_is_older_than_the_key_is_not_changed_without_it(place: &Place) {
    let without = place.open().await;
    let (denied, _) = (park(&without, "r", "c1").await, park(&without, "r", "c2").await);
    let id = denied.ask.id();
    without.decide(id, &denied.fingerprint, "ann", no("no")).await.unwrap();
    park(&without, "r", "c3").await;
    without.rekey(KEY, "ann").await.unwrap();
    // The entry of the denial, rewritten with its hash, as anyone can without a key; and the row with it.
    let store = place.store().await;
    let mut entry = store.log("r", 2, 1).await.unwrap().remove(0);
    entry.body = entry.body.replace("\"by\":\"ann\"", "\"by\":\"eve\"");
    let hash = Linker::default().hash("r", 3, &entry.prev, &entry.body);
    let (body, sql) = (entry.body.replace('\'', "''"), "UPDATE countersign_log SET");
    place.sql(&format!("{sql} body = '{body}', hash = '{hash}' WHERE run = 'r' AND seq = 3")).await;
    place.sql(&format!("{sql} prev = '{hash}' WHERE run = 'r' AND seq = 4")).await;

    let keyed = place.open().await.audit_key(KEY);
    let error = keyed.get(id).await.unwrap_err();
    assert!(matches!(error, LedgerError::Changed { .. }), "{error}");
    assert!(matches!(whole(&keyed).await, Err(LedgerError::Broken(_))));
    is_refused(keyed.rekey(KEY, "ann").await);
    let refused = keyed.rekey(NEXT, "ann").await;
    assert!(matches!(refused, Err(LedgerError::Broken(_))), "rekey verifies first: {refused:?}");
}

/// What `about.py` and `about_run_twice.py` of the review do, in the tables of this version: the last entries about an
/// ask are hidden, and its row is put back.
async fn a_denial_that_is_hidden_is_told_by_verify(place: &Place) {
    let keyed = place.open().await.audit_key(KEY);
    let (ask, _) = (park(&keyed, "r", "c1").await, park(&keyed, "r", "c2").await);
    let id = ask.ask.id();
    let store = place.store().await;
    let before = store.get(id).await.unwrap().found().unwrap().row;
    keyed.decide(id, &ask.fingerprint, "ann", no("never")).await.unwrap();
    let put_back = format!(
        "UPDATE countersign_rows SET doc = '{}', state = 'pending' WHERE id = '{id}'",
        before.doc.replace('\'', "''")
    );
    place.sql(&put_back).await;
    for reading in [keyed.get(id).await.map(drop), whole(&keyed).await.map(drop)] {
        assert!(reading.is_err(), "the row alone is not put back");
    }
    // The text of the entry is what it is found by. It is changed, and so is not what the key has made.
    let hide = "UPDATE countersign_log SET body = replace(body, '\"about\"', '\"abnut\"')";
    let hide = format!("{hide} WHERE run = 'r' AND seq = 3");
    place.sql(&hide).await;
    let hide = "UPDATE countersign_log SET body = replace(body, '\"ask\"', '\"nsk\"')";
    place.sql(&format!("{hide} WHERE run = 'r' AND seq = 3")).await;
    let fresh = place.open().await.audit_key(KEY);
    let decided = fresh.decide(id, &ask.fingerprint, "bob", yes()).await;
    assert!(matches!(decided, Err(LedgerError::Broken(_))), "nothing is linked to it: {decided:?}");
    assert!(matches!(whole(&fresh).await, Err(LedgerError::Broken(_))));
}

/// The transitions alone tell what happened, whatever the hashes say: here they are right.
async fn a_log_of_impossible_transitions_is_broken(place: &Place) {
    let ledger = place.open().await;
    let ask = park(&ledger, "r", "c").await;
    let id = ask.ask.id();
    let store = place.store().await;
    let row = async || store.get(id).await.unwrap().found().unwrap().row;
    let pending = row().await;
    ledger.decide(id, &ask.fingerprint, "ann", yes()).await.unwrap();
    let decided = row().await;
    // Honest operations after an older state was put back: their entries are linked behind those that were there. The
    // hashes are right.
    let twice = place.entries("r").await;
    place.append(&chained(&twice, &twice[1..])).await;
    let broken = whole(&ledger).await.unwrap_err().to_string();
    assert!(broken.contains("was decided a second time, and that is no veto"), "{broken}");
    place.sql("DELETE FROM countersign_log WHERE run = 'r' AND seq > 2").await;

    ledger.claim(id, "w", LEASE).await.unwrap();
    ledger.settle(id, 1, json!("paid")).await.unwrap();
    let (end, executed) = (place.entries("r").await, row().await);
    assert!(whole(&ledger).await.is_ok());
    for (again, back, says) in [
        (1, &pending, "its token is not higher than the one before"),
        (2, &decided, "its token is not higher than the one before"),
        (3, &executed, "its ask was executed"),
    ] {
        place.append(&chained(&end, &end[again..=again])).await;
        let doc = back.doc.replace('\'', "''");
        let state = &back.state;
        let put_back =
            format!("UPDATE countersign_rows SET doc = '{doc}', state = '{state}', due_at = NULL");
        place.sql(&format!("{put_back} WHERE id = '{id}'")).await;
        let broken = whole(&ledger).await.unwrap_err().to_string();
        assert!(broken.contains(says), "{again}: {broken}");
        place.sql("DELETE FROM countersign_log WHERE run = 'r' AND seq > 4").await;
    }
    // An entry that is about the ask, and none of the transitions: the row could say anything with it.
    let last = end.last().unwrap();
    let body = last.body.replacen("\"ask\":", "\"about\":", 1).replace("settled", "noted");
    let noted = Entry { body, ..last.clone() };
    place.append(&chained(&end, &[noted])).await;
    let broken = whole(&ledger).await.unwrap_err().to_string();
    assert!(broken.contains("does not name the ask that it is about"), "{broken}");
}

/// L8: "A store whose tables have triggers is refused": a write that is swallowed is no write.
async fn a_table_that_writes_something_else_than_it_is_told_is_refused(place: &Place) {
    let ledger = place.open().await;
    let ask = park(&ledger, "r", "c").await;
    let swallows = match place {
        Place::Sqlite(_) => {
            "CREATE TRIGGER swallow BEFORE INSERT ON countersign_rows BEGIN SELECT raise(ignore); END"
        }
        Place::Postgres(_) => {
            "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; \
             CREATE TRIGGER swallow BEFORE INSERT ON countersign_rows FOR EACH ROW EXECUTE FUNCTION swallow()"
        }
    };
    place.sql(swallows).await;
    // A process that had opened the store before asks at each write.
    let refused = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", no("never")).await;
    let error = with_causes(&refused.unwrap_err());
    assert!(error.contains("`swallow`, which no ledger makes"), "{error}");
    let error = with_causes(&place.try_open().await.unwrap_err());
    assert!(error.contains("`swallow`, which no ledger makes"), "{error}");
}

/// These entries again, behind the last of a log.
fn chained(end: &[Entry], again: &[Entry]) -> Vec<Entry> {
    let mut last = end.last().unwrap().clone();
    let linker = Linker::default();
    let link = |entry: &Entry| {
        let body = serde_json::from_str(&entry.body).unwrap();
        let draft = Draft { run: entry.run.clone(), row: None, body };
        last = linker.link(Some(&last), &draft).unwrap();
        last.clone()
    };
    again.iter().map(link).collect()
}

// L8: "A store with entries that were made without its key is refused, and says what to do: a person is shown each of
// them, and takes those, and no others, under another key."
async fn entries_without_the_key_count_once_a_person_has_accepted_them(place: &Place) {
    let ask = written_with_and_without(place, KEY).await;
    let keyed = place.open().await.audit_key(KEY);
    let problem = is_refused(keyed.open().await);
    assert!(problem.contains("countersign asks rekey"), "{problem}");
    let shown = keyed.keyless_entries().await.unwrap();
    assert_eq!(shown.iter().map(|it| (&*it.run, it.seq)).collect::<Vec<_>>(), [("r", 3)]);
    assert_eq!(shown[0].about().as_deref(), Some(ask.ask.id()));
    // A person is shown what would count, and not only what the entry says.
    let asks = keyed.asks_of(&shown).await.unwrap();
    assert_eq!(asks.iter().map(|it| it.ask.id()).collect::<Vec<_>>(), [ask.ask.id()]);
    assert!(asks[0].decision.is_some() && !asks[0].is_denied());
    assert!(keyed.rekey(NEXT, "ann").await.is_err(), "no person has seen them");

    // One that was written since is not accepted with the others.
    let end = place.entries("r").await;
    let again = Ask::new("r", "c2", "pay");
    let body = end[1].body.replace("parked", "noted");
    let hash = Linker::default().hash("r", 4, &end[2].hash, &body);
    let (prev, run) = (end[2].hash.clone(), "r".to_owned());
    place.append(&[Entry { run, seq: 4, prev, hash, body }]).await;
    let refused = place.open().await.audit_key(KEY).rekey_accepting(NEXT, "ann", &shown).await;
    assert!(refused.is_err(), "{refused:?}");
    place.sql("DELETE FROM countersign_log WHERE run = 'r' AND seq = 4").await;

    let accepting = place.open().await.audit_key(KEY);
    let rekeyed = accepting.rekey_accepting(NEXT, "ann", &shown).await.unwrap();
    assert_eq!((rekeyed.entries, rekeyed.logs), (3, 1));
    let next = place.open().await.audit_key(NEXT);
    assert!(next.keyless_entries().await.unwrap().is_empty());
    assert!(whole(&next).await.is_ok());
    assert!(next.get(again.id()).await.unwrap().is_some());
    let claimed = next.claim(ask.ask.id(), "w", LEASE).await.unwrap();
    assert_eq!(claimed, Claimed::Claimed { token: 1 }, "it was decided");
    is_refused(place.open().await.audit_key(KEY).open().await);
    // An accepted entry counts as it is: it is not changed afterwards.
    place.sql("UPDATE countersign_log SET body = replace(body, 'eve', 'bob') WHERE seq = 3").await;
    assert!(whole(&place.open().await.audit_key(NEXT)).await.is_err());
}

async fn an_older_state_is_noticed_with_a_checkpoint_that_is_kept_elsewhere(place: &Place) {
    let elsewhere = TempDir::new().unwrap();
    let anchor = elsewhere.path().join("anchor.json");
    let keyed = place.open().await.audit_key(KEY).anchor(&anchor);
    let (ask, _) = (park(&keyed, "r", "c1").await, park(&keyed, "r", "c2").await);
    let id = ask.ask.id();
    let store = place.store().await;
    let before = store.get(id).await.unwrap().found().unwrap().row;
    keyed.decide(id, &ask.fingerprint, "ann", no("never")).await.unwrap();
    let kept = keyed.checkpoint().await.unwrap();
    // Row, log, end of the log and checkpoints as they were before the denial: an older genuine state.
    place
        .sql(&format!(
            "UPDATE countersign_rows SET doc = '{}', state = 'pending' WHERE id = '{id}'; \
             DELETE FROM countersign_log WHERE run = 'r' AND seq > 2; \
             DELETE FROM countersign_log WHERE run = 'countersign/checkpoints'",
            before.doc.replace('\'', "''")
        ))
        .await;
    if let Place::Postgres(_) = place {
        place
            .sql(
                "UPDATE countersign_heads AS h SET seq = l.seq, hash = l.hash FROM countersign_log AS l \
                 WHERE h.run = 'r' AND l.run = 'r' AND l.seq = 2; \
                 DELETE FROM countersign_heads WHERE run = 'countersign/checkpoints'",
            )
            .await;
    }
    // L8: "Not noticed while reading" …
    let reading = place.open().await.audit_key(KEY);
    assert!(!reading.get(id).await.unwrap().unwrap().is_denied());
    assert!(whole(&reading).await.is_ok());
    // … "`verify` notices it with a checkpoint that is kept elsewhere; `Ledger::anchor(path)` keeps the last checkpoint in a
    // file and refuses a store that is behind it."
    let verified = reading.verify(&kept.to_heads()).await.unwrap_err().to_string();
    assert!(verified.contains("the whole log is gone"), "{verified}");
    let anchored = place.open().await.audit_key(KEY).anchor(&anchor);
    for refused in [anchored.open().await, anchored.get(id).await.map(drop)] {
        let error = refused.unwrap_err();
        assert!(matches!(error, LedgerError::Behind { .. }), "{error}");
        assert!(error.to_string().contains("countersign asks verify --earlier"), "{error}");
    }
    let again = keyed.checkpoint().await.unwrap_err();
    assert!(matches!(again, LedgerError::Behind { .. }), "the file keeps what it has: {again}");
}

over_sqlite_and_postgresql!(
    a_process_without_the_key_is_refused_before_it_writes,
    a_store_without_a_key_refuses_one_until_it_is_added,
    what_is_older_than_the_key_is_not_changed_without_it,
    entries_without_the_key_count_once_a_person_has_accepted_them,
    a_denial_that_is_hidden_is_told_by_verify,
    a_log_of_impossible_transitions_is_broken,
    a_table_that_writes_something_else_than_it_is_told_is_refused,
    an_older_state_is_noticed_with_a_checkpoint_that_is_kept_elsewhere,
);

#[tokio::test]
async fn a_store_in_memory_has_one_key_too() {
    let store = MemoryStore::new();
    let without = Ledger::new(store.clone());
    let ask = park(&without, "r", "c").await;
    is_refused(Ledger::new(store.clone()).audit_key(KEY).open().await);
    without.rekey(KEY, "ann").await.unwrap();
    let keyed = Ledger::new(store).audit_key(KEY);
    let decided = keyed.decide(ask.ask.id(), &ask.fingerprint, "ann", yes()).await.unwrap();
    assert_eq!(decided, Decided::Won { again: false });
    is_refused(without.get(ask.ask.id()).await);
}

#[tokio::test]
async fn reading_says_nothing_about_a_key() {
    // L8: "A store says once whether it has an audit key": the first that writes says it, and no reader.
    let store = MemoryStore::new();
    let (reads, writes) = (Ledger::new(store.clone()), Ledger::new(store).audit_key(KEY));
    assert!(reads.list(None, 9).await.unwrap().records.is_empty());
    assert!(reads.now().await.is_ok());
    park(&writes, "r", "c").await;
    is_refused(reads.list(None, 9).await);
}

#[tokio::test]
async fn a_file_that_is_no_checkpoint_is_no_anchor() {
    let place = TempDir::new().unwrap();
    let file: &Path = &place.path().join("anchor");
    std::fs::write(file, "junk").unwrap();
    let error = Ledger::new(MemoryStore::new()).anchor(file).open().await.unwrap_err();
    assert!(error.to_string().contains("it is no checkpoint"), "{error}");
}
