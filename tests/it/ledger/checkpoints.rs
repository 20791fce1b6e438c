//! Checkpoints reveal what the logs by themselves cannot: that one was cut, rewritten, or removed with its run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, AskRecord, Checkpoint, Entry, Ledger, LedgerError, Linker, MemoryStore,
};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::Shell;

async fn open(path: &Path, key: Option<&[u8]>) -> Ledger {
    let ledger = Ledger::new(SqliteStore::open(path).await.unwrap());
    key.iter().fold(ledger, |ledger, key| ledger.audit_key(key))
}

async fn park(ledger: &Ledger, run: &str) -> AskRecord {
    ledger.park(Ask::new(run, "c", "rm")).await.unwrap()
}

async fn decide(ledger: &Ledger, ask: &AskRecord, who: &str) {
    let yes = Answer::Approve { args: None };
    ledger.decide(ask.ask.id(), &ask.fingerprint, who, yes).await.unwrap();
}

async fn checkpoint(ledger: &Ledger) -> Checkpoint {
    ledger.checkpoint().await.unwrap()
}

/// What verify says.
async fn verify(ledger: &Ledger, kept: Option<&Checkpoint>) -> String {
    let heads = kept.map(Checkpoint::to_heads).unwrap_or_default();
    match ledger.verify(&heads).await {
        Ok(_) => "whole".to_owned(),
        Err(broken) => broken.to_string(),
    }
}

/// The changes of a program that can write the file.
const CUT: &str = "
    DELETE FROM countersign_log WHERE run = 'r2' AND seq = 2;
    DELETE FROM countersign_rows WHERE run = 'r2';
    INSERT INTO countersign_rows SELECT * FROM rows_before WHERE run = 'r2';";
const REMOVED: &str = "
    DELETE FROM countersign_log WHERE run = 'r2';
    DELETE FROM countersign_rows WHERE run = 'r2';";
const WRITTEN_ANEW: &str = "
    DELETE FROM countersign_log WHERE run = 'r2';
    DELETE FROM countersign_rows WHERE run = 'r2';
    INSERT INTO countersign_log SELECT * FROM other.countersign_log WHERE run = 'r2';
    INSERT INTO countersign_rows SELECT * FROM other.countersign_rows WHERE run = 'r2';";
const NO_CHECKPOINTS: &str = "DELETE FROM countersign_log WHERE run = 'countersign/checkpoints';";

/// What verify says of a file with this done to it, with and without a checkpoint made before, and with the checkpoint
/// that was kept elsewhere.
async fn after(sql: &str, key: Option<&[u8]>) -> [String; 3] {
    let mut said = Vec::new();
    for (checkpoints, kept) in [(false, false), (true, false), (true, true)] {
        let place = TempDir::new().unwrap();
        let (path, other) = (place.path().join("asks.db"), place.path().join("other.db"));
        // The same run, decided by another person. The program that makes it has no key.
        let eve = open(&other, None).await;
        decide(&eve, &park(&eve, "r2").await, "eve").await;
        let ledger = open(&path, key).await;
        let (first, second) = (park(&ledger, "r1").await, park(&ledger, "r2").await);
        let file = rusqlite::Connection::open(&path).unwrap();
        file.execute_batch("CREATE TABLE rows_before AS SELECT * FROM countersign_rows").unwrap();
        let before = checkpoint(&ledger).await;
        decide(&ledger, &first, "ann").await;
        decide(&ledger, &second, "ann").await;
        let made = if checkpoints { checkpoint(&ledger).await } else { before };
        if !checkpoints {
            file.execute_batch(NO_CHECKPOINTS).unwrap();
        }
        file.execute("ATTACH ?1 AS other", [other.to_str().unwrap()]).unwrap();
        file.execute_batch(sql).unwrap();
        said.push(verify(&ledger, kept.then_some(&made)).await);
    }
    said.try_into().unwrap()
}

#[tokio::test]
async fn a_checkpoint_reveals_a_cut_removed_or_rewritten_log() {
    for (sql, says) in [
        ("", "whole"),
        (CUT, "the log of run `r2` is broken at entry 2: the end of the log is gone"),
        (REMOVED, "the log of run `r2` is broken at entry 2: the whole log is gone"),
        (
            WRITTEN_ANEW,
            "the log of run `r2` is broken at entry 1: it is not the entry that was there before",
        ),
    ] {
        let [without, with, kept] = after(sql, None).await;
        assert_eq!(without, "whole", "each log by itself is whole: {sql}");
        assert_eq!((&*with, &*kept), (says, says), "{sql}");
    }
    // Removing the checkpoints, too, is found by the one that is stored elsewhere.
    for sql in [CUT, REMOVED, WRITTEN_ANEW] {
        let [_, with, kept] = after(&format!("{sql}{NO_CHECKPOINTS}"), None).await;
        let gone =
            "the log of run `countersign/checkpoints` is broken at entry 2: the whole log is gone";
        assert_eq!((&*with, &*kept), ("whole", gone), "{sql}");
    }
    let cut = "DELETE FROM countersign_log WHERE run = 'countersign/checkpoints' AND seq = 2;";
    let [_, with, kept] = after(&format!("{CUT}{cut}"), None).await;
    assert_eq!(with, "whole");
    assert!(kept.contains("at entry 2: the end of the log is gone"), "{kept}");
}

#[tokio::test]
async fn a_forged_drop_before_a_noted_end_is_found() {
    // L1: entries that a program can write without the key. The run of another file was dropped there.
    let place = TempDir::new().unwrap();
    let (path, other) = (place.path().join("asks.db"), place.path().join("other.db"));
    let eve = open(&other, None).await;
    eve.cancel(park(&eve, "r2").await.ask.id(), "eve").await.unwrap();
    assert_eq!(eve.prune(std::time::Duration::ZERO).await.unwrap(), 1);
    let ledger = open(&path, None).await;
    decide(&ledger, &park(&ledger, "r2").await, "ann").await;
    checkpoint(&ledger).await;
    let file = rusqlite::Connection::open(&path).unwrap();
    file.execute("ATTACH ?1 AS other", [other.to_str().unwrap()]).unwrap();
    file.execute_batch(WRITTEN_ANEW).unwrap();
    let says = "the log of run `r2` is broken at entry 3: the removed part of the log ended with another entry than was noted earlier";
    assert_eq!(verify(&ledger, None).await, says);
}

#[tokio::test]
async fn only_the_holder_of_the_key_writes_logs_and_checkpoints() {
    let key = Some(&b"a key"[..]);
    let [without, with, _] = after(WRITTEN_ANEW, key).await;
    assert_eq!(without, with, "with a key the log itself shows it");
    assert!(
        with.contains("run `r2` is broken at entry 1: it was made without the audit key"),
        "{with}"
    );
    let [_, with, _] = after(CUT, key).await;
    assert!(with.contains("the end of the log is gone"), "{with}");

    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let keyed = open(&path, key).await;
    park(&keyed, "r1").await;
    checkpoint(&keyed).await;
    // Without the key no checkpoint can be made, and entries written by hand are found.
    let other = open(&path, None).await;
    let refused = other.checkpoint().await;
    assert!(matches!(refused, Err(LedgerError::AuditKey { .. })), "{refused:?}");
    let name = "countersign/checkpoints";
    let body = json!({"heads": {}}).to_string();
    let hash = Linker::default().hash(name, 1, "", &body);
    let file = rusqlite::Connection::open(&path).unwrap();
    let sql = "UPDATE countersign_log SET body = ?1, hash = ?2 WHERE run = ?3";
    file.execute(sql, [&body, &hash, name]).unwrap();
    assert!(verify(&keyed, None).await.contains("at entry 1: it was made without the audit key"));
}

#[tokio::test]
async fn checkpoints_note_only_grown_logs_in_pages() {
    const RUNS: usize = 1_300;
    let ledger = Ledger::new(MemoryStore::new());
    let mut asks = Vec::new();
    for n in 0..RUNS {
        asks.push(park(&ledger, &format!("run {n}")).await);
    }
    let made = checkpoint(&ledger).await;
    assert_eq!((made.entries, made.changed), (3, 1_300), "512 logs an entry");
    decide(&ledger, &asks[7], "ann").await;
    let made = checkpoint(&ledger).await;
    assert_eq!((made.entries, made.changed), (4, 1));
    let made = checkpoint(&ledger).await;
    assert_eq!(
        (made.entries, made.changed),
        (5, 0),
        "a checkpoint without changes is recorded, too"
    );
    let mut lines = Vec::new();
    ledger.export(|entry| lines.push(entry)).await.unwrap();
    let noted: Vec<Entry> =
        lines.into_iter().filter(|entry| entry.run == "countersign/checkpoints").collect();
    assert_eq!((noted.len(), &noted[4].hash), (5, &made.head), "exports include them");
    let runs = noted.iter().flat_map(|entry| {
        let body: Value = serde_json::from_str(&entry.body).unwrap();
        body["heads"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    });
    let mut times = BTreeMap::new();
    runs.for_each(|run| *times.entry(run).or_insert(0) += 1);
    assert_eq!((times.len(), times["run 7"], times["run 8"]), (RUNS, 2, 1));
    let verified = ledger.verify(&made.to_heads()).await.unwrap();
    assert_eq!(verified.entries, 1_300 + 1 + 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn checkpoints_are_made_while_others_decide() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..4 {
        let path = path.clone();
        tasks.spawn(async move {
            let ledger = open(&path, None).await;
            for at in 0..10 {
                let ask = park(&ledger, &format!("run {n} {at}")).await;
                decide(&ledger, &ask, "ann").await;
            }
        });
    }
    for _ in 0..2 {
        let path = path.clone();
        tasks.spawn(async move {
            let ledger = open(&path, None).await;
            for _ in 0..5 {
                let made = checkpoint(&ledger).await;
                assert_eq!(verify(&ledger, Some(&made)).await, "whole");
            }
        });
    }
    tasks.join_all().await;
    let ledger = open(&path, None).await;
    let made = checkpoint(&ledger).await;
    assert_eq!(verify(&ledger, Some(&made)).await, "whole");
    assert_eq!(ledger.verify(&made.to_heads()).await.unwrap().heads.len(), 41);
}

#[tokio::test]
async fn reserved_and_empty_run_ids_are_refused() {
    let ledger = Ledger::new(MemoryStore::new());
    for name in ["countersign/checkpoints", ""] {
        let parked = ledger.park(Ask::new(name, "c", "rm")).await;
        assert!(matches!(parked, Err(LedgerError::Unkeepable { .. })), "{name}");
        let saved = ledger.save_run(name, json!({}), None).await;
        assert!(matches!(saved, Err(LedgerError::Unkeepable { .. })), "{name}");
    }
    assert!(ledger.list(None, 10).await.unwrap().records.is_empty());
    checkpoint(&ledger).await;
    assert_eq!(verify(&ledger, None).await, "whole");
}

#[test]
fn checkpoints_are_made_and_verified_from_the_shell() {
    let shell = Shell::sqlite();
    let ask = shell.ask();
    let first = shell.run(&["checkpoint"]);
    assert_eq!(
        (first.status, &first.line()["ok"], &first.line()["entries"]),
        (0, &json!(true), &json!(1))
    );
    shell.decide(&ask, "ann", &["--approve"]);
    let second = shell.run(&["checkpoint"]);
    assert_eq!((second.status, &second.line()["entries"]), (0, &json!(2)));
    let heads = [&first, &second].map(|said| said.line()["head"].as_str().unwrap().to_owned());
    assert_eq!(BTreeSet::from(heads).len(), 2);
    let kept = shell.place.path().join("kept");
    std::fs::write(&kept, second.line().to_string()).unwrap();
    assert_eq!(shell.verify(), 4, "two about the ask, and two checkpoints");
    let earlier = ["verify", "--earlier", kept.to_str().unwrap()];
    assert_eq!(shell.run(&earlier).status, 0);
    let file = rusqlite::Connection::open(shell.place.path().join("asks.db")).unwrap();
    let runs = "DELETE FROM countersign_log WHERE run NOT LIKE 'countersign/%'; DELETE FROM countersign_rows WHERE kind <> 'key';";
    file.execute_batch(runs).unwrap();
    let said = shell.run(&["verify"]);
    assert_eq!((said.status, &said.line()["problem"]), (12, &json!("the whole log is gone")));
    file.execute_batch("DELETE FROM countersign_log; DELETE FROM countersign_rows").unwrap();
    assert_eq!(shell.run(&["verify"]).status, 3, "there is nothing left to compare with");
    let said = shell.run(&earlier);
    assert_eq!((said.status, &said.line()["ok"]), (12, &json!(false)));
}
