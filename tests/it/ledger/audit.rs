//! The log reveals changes behind the ledger's back.

use std::collections::BTreeMap;
use std::path::Path;

use countersign::Args;
use countersign::deferred::Answer;
use countersign::ledger::{
    Acquired, Ask, AskRecord, Broken, Claimed, Draft, Entry, Ledger, LedgerError, Linker, Verified,
};
use countersign_sqlite::SqliteStore;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

type Heads = BTreeMap<String, (i64, String)>;

/// Two runs with three asks.
async fn ledger(path: &Path) -> Ledger {
    let ledger = Ledger::new(SqliteStore::open(path).await.unwrap());
    for (run, call) in [("r1", "c1"), ("r1", "c2"), ("r2", "c1")] {
        let ask = Ask::new(run, call, "rm").with_args(Args::new().with("path", "MARKER"));
        let parked = ledger.park(ask).await.unwrap();
        let yes = Answer::Approve { args: None };
        ledger.decide(parked.ask.id(), &parked.fingerprint, "ann", yes).await.unwrap();
    }
    ledger
}

async fn verify(ledger: &Ledger, earlier: &Heads) -> Result<Verified, Broken> {
    match ledger.verify(earlier).await {
        Err(LedgerError::Broken(broken)) => Err(broken),
        verified => Ok(verified.unwrap()),
    }
}

/// The result of `verify` after this SQL was run on the file.
async fn after(sql: &str) -> String {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let ledger = ledger(&path).await;
    let verified = verify(&ledger, &Heads::new()).await.unwrap();
    assert_eq!(verified.entries, 6);
    rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    match verify(&ledger, &verified.heads).await {
        Ok(_) => "whole".to_owned(),
        Err(broken) => broken.to_string(),
    }
}

#[tokio::test]
async fn verify_finds_every_change_of_the_file() {
    assert_eq!(after("").await, "whole");
    for (sql, says) in [
        (
            "UPDATE countersign_log SET body = replace(body, 'ann', 'bob') WHERE run = 'r1' AND seq = 2",
            "at entry 2: it was changed",
        ),
        (
            "UPDATE countersign_log SET hash = 'x' WHERE run = 'r1' AND seq = 1",
            "at entry 1: it was changed",
        ),
        (
            "UPDATE countersign_log SET prev = 'x' WHERE run = 'r1' AND seq = 2",
            "at entry 2: it is not linked",
        ),
        (
            "DELETE FROM countersign_log WHERE run = 'r1' AND seq = 2",
            "at entry 3: an entry is missing",
        ),
        ("DELETE FROM countersign_log WHERE run = 'r1' AND seq = 4", "the end of the log is gone"),
        ("DELETE FROM countersign_log WHERE run = 'r2'", "the end of the log is gone"),
        (
            "DELETE FROM countersign_log WHERE run = 'r2'; DELETE FROM countersign_rows WHERE run = 'r2'",
            "the whole log is gone",
        ),
        ("DELETE FROM countersign_rows WHERE run = 'r2'", "is gone"),
        (
            "UPDATE countersign_rows SET doc = replace(doc, 'MARKER', 'other') WHERE run = 'r2'",
            "is not in the state that the log says",
        ),
        (
            "UPDATE countersign_rows SET doc = replace(doc, '\"ann\"', '\"bob\"') WHERE run = 'r2'",
            "is not in the state that the log says",
        ),
        (
            "UPDATE countersign_rows SET doc = 'junk' WHERE run = 'r2'",
            "is not in the state that the log says",
        ),
        (
            "UPDATE countersign_rows SET state = 'pending' WHERE run = 'r2'",
            "is not in the state that the log says",
        ),
        (
            "UPDATE countersign_rows SET due_at = 1 WHERE run = 'r2'",
            "is not in the state that the log says",
        ),
        ("UPDATE countersign_rows SET run = 'r1' WHERE run = 'r2'", "is not in the log"),
        (
            "INSERT INTO countersign_rows SELECT 'smuggled', kind, 'r3', state, created_at, due_at, doc, requester FROM countersign_rows WHERE run = 'r2'",
            "is not in the log",
        ),
        (
            "INSERT INTO countersign_rows SELECT 'smuggled', kind, run, state, created_at, due_at, doc, requester FROM countersign_rows WHERE run = 'r2'",
            "is not in the log",
        ),
    ] {
        let said = after(sql).await;
        assert!(said.starts_with("the log of run `r") && said.contains(says), "{sql}: {said}");
    }
}

#[tokio::test]
async fn verify_finds_an_ask_that_was_removed_and_parked_again() {
    // L8: a row that was changed outside of the ledger is found, a removed one too.
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let ledger = ledger(&path).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    let removed = "DELETE FROM countersign_rows WHERE run = 'r2' AND kind = 'ask'";
    assert_eq!(file.execute(removed, []).unwrap(), 1);
    let ask = Ask::new("r2", "c1", "rm").with_args(Args::new().with("path", "MARKER"));
    let error = ledger.park(ask.clone()).await.unwrap_err().to_string();
    assert!(error.contains("was changed outside of the ledger: it was removed"), "{error}");
    // The entries are found by their texts, and no column beside them can hide one.
    let error = file.execute("UPDATE countersign_log SET about = 'another'", []).unwrap_err();
    assert!(error.to_string().contains("no such column"), "{error}");
    // Where the texts were changed, too, nothing is linked to the last one.
    let sql = "UPDATE countersign_log SET body = replace(body, 'about', 'abnut') WHERE run = 'r2'";
    file.execute(sql, []).unwrap();
    let sql =
        "UPDATE countersign_log SET body = replace(body, '\"ask\"', '\"nsk\"') WHERE run = 'r2'";
    file.execute(sql, []).unwrap();
    let error = ledger.park(ask).await.unwrap_err().to_string();
    assert!(error.contains("at entry 2: it was changed"), "{error}");
    let broken = verify(&ledger, &Heads::new()).await.unwrap_err().to_string();
    assert!(broken.contains("at entry 1: it was changed"), "{broken}");
}

#[tokio::test]
async fn a_rewritten_log_does_not_contain_earlier_heads() {
    let place = TempDir::new().unwrap();
    let first = ledger(&place.path().join("first.db")).await;
    let verified = verify(&first, &Heads::new()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    let anew = ledger(&place.path().join("anew.db")).await;
    assert!(verify(&anew, &Heads::new()).await.is_ok(), "by itself it is whole");
    let broken = verify(&anew, &verified.heads).await.unwrap_err();
    assert_eq!(broken.problem, "it is not the entry that was there before");
}

#[tokio::test]
async fn only_the_holder_of_the_key_writes_a_log_that_verifies() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let open = async || Ledger::new(SqliteStore::open(&path).await.unwrap());
    let keyed = open().await.audit_key(b"a key");
    let ask = keyed.park(Ask::new("r", "c", "rm")).await.unwrap();
    let whole = verify(&keyed, &Heads::new()).await.unwrap();
    for other in [open().await, open().await.audit_key(b"another key")] {
        // L8: "a process without it, or with another one, is refused when it opens the store, before it writes".
        let refused = |error: LedgerError| matches!(error, LedgerError::AuditKey { .. });
        assert!(refused(other.verify(&Heads::new()).await.unwrap_err()));
        let yes = Answer::Approve { args: None };
        let decided = other.decide(ask.ask.id(), &ask.fingerprint, "eve", yes).await;
        assert!(refused(decided.unwrap_err()));
    }
    assert_eq!(verify(&keyed, &Heads::new()).await.unwrap(), whole, "nothing was written");
}

#[tokio::test]
async fn an_export_is_json_lines_that_verify_by_themselves_and_hold_no_arguments() {
    let place = TempDir::new().unwrap();
    let ledger = ledger(&place.path().join("asks.db")).await;
    let mut lines = Vec::new();
    assert_eq!(ledger.export(|entry| lines.push(json!(entry).to_string())).await.unwrap(), 6);
    assert!(!lines.concat().contains("MARKER"), "argument values are left out");
    let mut last: BTreeMap<String, Entry> = BTreeMap::new();
    for line in &lines {
        let entry: Entry = serde_json::from_str(line).unwrap();
        let before = last.get(&entry.run);
        assert_eq!(entry.prev, before.map_or("", |before| &before.hash));
        assert_eq!(entry.seq, before.map_or(1, |before| before.seq + 1));
        let hash = Linker::default().hash(&entry.run, entry.seq, &entry.prev, &entry.body);
        assert_eq!(entry.hash, hash);
        last.insert(entry.run.clone(), entry);
    }
    let heads: Heads = last.into_iter().map(|(run, it)| (run, (it.seq, it.hash))).collect();
    assert_eq!(verify(&ledger, &heads).await.unwrap().heads, heads);
}

#[tokio::test]
async fn the_log_names_the_actor_of_every_change() {
    let place = TempDir::new().unwrap();
    let ledger = ledger(&place.path().join("asks.db")).await.worker("front");
    let lease = std::time::Duration::from_secs(60);
    let asks = ledger.list(None, 10).await.unwrap().records;
    let ids: Vec<_> = asks.iter().map(|ask| ask.ask.id()).collect();
    let claim = async |id: &str, worker: &str| match ledger.claim(id, worker, lease).await.unwrap()
    {
        Claimed::Claimed { token } => token,
        other => panic!("{other:?}"),
    };
    let token = claim(ids[0], "w1").await;
    ledger.settle(ids[0], token, json!("done")).await.unwrap();
    let token = claim(ids[1], "w2").await;
    ledger.release(ids[1], token).await.unwrap();
    ledger.close(ids[2]).await.unwrap();
    ledger.save_run("r3", json!({}), None).await.unwrap();
    let Acquired::Lease(lease) = ledger.acquire_run_as("r3", "w3", lease).await.unwrap() else {
        panic!()
    };
    lease.end(json!("done"), &[]).await.unwrap();
    let mut said = Vec::new();
    let read = |entry: Entry| {
        let body: serde_json::Value = serde_json::from_str(&entry.body).unwrap();
        let who = body.get("by").or(body.get("worker")).and_then(|who| who.as_str());
        let event = body["event"].as_str().unwrap().to_owned();
        said.push((event, who.map(str::to_owned)));
    };
    ledger.export(read).await.unwrap();
    for (event, who) in [
        ("parked", None),
        ("decided", Some("ann")),
        ("claimed", Some("w1")),
        ("settled", Some("w1")),
        ("released", Some("w2")),
        ("closed", Some("front")),
        ("run_saved", Some("front")),
        ("run_taken", Some("w3")),
        ("run_ended", Some("w3")),
    ] {
        assert!(said.contains(&(event.to_owned(), who.map(str::to_owned))), "{event}: {said:?}");
    }
    assert!(verify(&ledger, &Heads::new()).await.is_ok());
}

/// Entries of earlier versions, which did not say who settles.
#[tokio::test]
async fn earlier_logs_verify() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let ledger = Ledger::new(SqliteStore::open(&path).await.unwrap());
    let ask = ledger.park(Ask::new("r", "c", "rm")).await.unwrap();
    let yes = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
    ledger.claim(ask.ask.id(), "w", std::time::Duration::from_secs(9)).await.unwrap();
    ledger.settle(ask.ask.id(), 1, json!(1)).await.unwrap();
    // The entries in their earlier form: a settlement names no worker, and a claim has no time.
    let file = rusqlite::Connection::open(&path).unwrap();
    let doc: String = file
        .query_row("SELECT doc FROM countersign_rows WHERE kind = 'ask'", [], |it| it.get(0))
        .unwrap();
    let mut doc: serde_json::Value = serde_json::from_str(&doc).unwrap();
    doc["version"] = json!(1);
    let lease = doc.as_object_mut().unwrap().remove("lease").unwrap();
    let claim = doc["ask"]["claim"].as_object_mut().unwrap();
    claim.remove("at").unwrap();
    claim.insert("until".to_owned(), lease["until"].clone());
    let record: AskRecord = serde_json::from_value(doc["ask"].clone()).unwrap();
    file.execute("UPDATE countersign_rows SET doc = ?1 WHERE kind = 'ask'", [doc.to_string()])
        .unwrap();
    let mut entries = Vec::new();
    ledger.export(|entry| entries.push(entry)).await.unwrap();
    let mut last: Option<Entry> = None;
    for entry in entries {
        let mut body: serde_json::Value = serde_json::from_str(&entry.body).unwrap();
        if body["event"] == "settled" {
            body["by"] = serde_json::Value::Null;
        }
        body.as_object_mut().unwrap().remove("row").unwrap();
        body.as_object_mut().unwrap().remove("about").unwrap();
        body["record"] = digest(&record).into();
        let draft = Draft { run: entry.run.clone(), row: None, body };
        let entry = Linker::default().link(last.as_ref(), &draft).unwrap();
        let sql = "UPDATE countersign_log SET prev = ?1, hash = ?2, body = ?3 WHERE run = 'r' AND seq = ?4";
        file.execute(sql, rusqlite::params![entry.prev, entry.hash, entry.body, entry.seq])
            .unwrap();
        last = Some(entry);
    }
    let verified = verify(&ledger, &Heads::new()).await.unwrap();
    assert_eq!(verified.entries, 4);
    let read = ledger.get(ask.ask.id()).await.unwrap().unwrap();
    assert_eq!(read.claim.unwrap().at, None);
    let sql = "UPDATE countersign_rows SET doc = replace(doc, '\"w\"', '\"v\"')";
    file.execute_batch(sql).unwrap();
    let error = ledger.get(ask.ask.id()).await.unwrap_err().to_string();
    assert!(error.contains("was changed outside of the ledger"), "L8: {error}");
    assert!(verify(&ledger, &Heads::new()).await.is_err());
}

/// What the log says of an ask: SHA-256 over its canonical JSON, without how long its lease is.
fn digest(record: &AskRecord) -> String {
    let mut value = json!(record);
    value["claim"].as_object_mut().unwrap().remove("until");
    let canonical = Args::try_from(value).unwrap().to_string();
    let digest = Sha256::digest(canonical.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
