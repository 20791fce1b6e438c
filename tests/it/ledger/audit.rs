//! The log shows what was changed behind the ledger's back.

use std::collections::BTreeMap;
use std::path::Path;

use countersign::ledger::{Ask, Broken, Entry, Ledger, Linker, Verdict, Verified};
use countersign::{Args, SqliteStore};
use serde_json::json;
use tempfile::TempDir;

type Heads = BTreeMap<String, (i64, String)>;

/// Two runs with three asks.
async fn ledger(path: &Path) -> Ledger {
    let ledger = Ledger::new(SqliteStore::open(path).await.unwrap());
    for (run, call) in [("r1", "c1"), ("r1", "c2"), ("r2", "c1")] {
        let ask = Ask::new(run, call, "rm").args(Args::new().with("path", "MARKER"));
        let parked = ledger.park(ask).await.unwrap();
        let yes = Verdict::Approve { args: None };
        ledger.decide(parked.ask.id(), &parked.fingerprint, "ann", yes).await.unwrap();
    }
    ledger
}

async fn verify(ledger: &Ledger, earlier: &Heads) -> Result<Verified, Broken> {
    ledger.verify(earlier).await.unwrap()
}

/// What verify says after this SQL was run on the file.
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
async fn what_was_changed_shows() {
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
            "does not stand where the log says",
        ),
        (
            "UPDATE countersign_rows SET doc = replace(doc, '\"ann\"', '\"bob\"') WHERE run = 'r2'",
            "does not stand where the log says",
        ),
        (
            "UPDATE countersign_rows SET doc = 'junk' WHERE run = 'r2'",
            "does not stand where the log says",
        ),
        (
            "UPDATE countersign_rows SET state = 'pending' WHERE run = 'r2'",
            "does not stand where the log says",
        ),
        (
            "UPDATE countersign_rows SET due_at = 1 WHERE run = 'r2'",
            "does not stand where the log says",
        ),
        ("UPDATE countersign_rows SET run = 'r1' WHERE run = 'r2'", "is not in the log"),
        (
            "INSERT INTO countersign_rows SELECT 'smuggled', kind, 'r3', state, created_at, due_at, doc FROM countersign_rows WHERE run = 'r2'",
            "is not in the log",
        ),
        (
            "INSERT INTO countersign_rows SELECT 'smuggled', kind, run, state, created_at, due_at, doc FROM countersign_rows WHERE run = 'r2'",
            "is not in the log",
        ),
    ] {
        let said = after(sql).await;
        assert!(said.starts_with("the log of run `r") && said.contains(says), "{sql}: {said}");
    }
}

#[tokio::test]
async fn a_log_that_was_written_anew_does_not_go_through_earlier_heads() {
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
async fn with_a_key_nobody_else_writes_a_log_that_verifies() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let open = async || Ledger::new(SqliteStore::open(&path).await.unwrap());
    let keyed = open().await.audit_key(b"a key");
    let ask = keyed.park(Ask::new("r", "c", "rm")).await.unwrap();
    assert!(verify(&keyed, &Heads::new()).await.is_ok());
    for other in [open().await, open().await.audit_key(b"another key")] {
        let broken = verify(&other, &Heads::new()).await.unwrap_err();
        assert_eq!((broken.seq, &*broken.problem), (Some(1), "it was changed"));
        let yes = Verdict::Approve { args: None };
        other.decide(ask.ask.id(), &ask.fingerprint, "eve", yes).await.unwrap();
    }
    let broken = verify(&keyed, &Heads::new()).await.unwrap_err();
    assert_eq!((broken.seq, &*broken.problem), (Some(2), "it was changed"));
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
