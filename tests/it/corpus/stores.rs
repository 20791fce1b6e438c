//! The same ledger as rows and a log, as an SQLite file, and as SQL for PostgreSQL.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use countersign::ledger::{
    Draft, Entry, Filter, Ledger, Linker, MemoryStore, Row, RowKind, Store, Writes,
};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::asks::{ask, check, fill, standing};
use super::{in_the_year_9999, keys, read, write};

/// The first time of the clock of written stores: in the past for every machine that runs the tests.
const LONG_AGO: i64 = 1_500_000_000_000;

/// The key of one log; the others have none.
const KEY: &[u8] = b"corpus";

/// A store whose clock advances by a millisecond with each reading.
fn store() -> MemoryStore {
    let clock = AtomicI64::new(LONG_AGO);
    MemoryStore::with_clock(move || clock.fetch_add(1, Ordering::Relaxed))
}

pub(super) async fn write_all(to: &Path) {
    let store = store();
    // Approvals as old as its clock are still used.
    let ledger = Ledger::new(store.clone()).approvals_valid_for(None);
    fill(&ledger).await;
    let rows = store.list(&Filter::default()).await.unwrap();
    write(to, "rows.json", &rows.iter().map(|found| row_as_json(&found.row)).collect());
    write_log(to, "log.jsonl", &ledger, &store).await;
    write(to, "stands.json", &standing(&ledger, &Default::default()).await);
    let sealed = ledger.get(ask("sealed").id()).await.unwrap().unwrap();
    let token = keys().seal_ask(&sealed, "ann", in_the_year_9999()).unwrap();
    std::fs::write(to.join("ask.token"), format!("{token}\n")).unwrap();

    let store = self::store();
    let keyed = Ledger::new(store.clone()).audit_key(KEY);
    keyed.park(ask("pending")).await.unwrap();
    keyed.cancel(ask("pending").id(), "ann").await.unwrap();
    write_log(to, "log.keyed.jsonl", &keyed, &store).await;

    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.db");
    load(&SqliteStore::open(&path).await.unwrap(), to).await;
    let copy = to.join("ledger.db").display().to_string();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute("VACUUM INTO ?1", [copy]).unwrap();

    super::dump::write_all(to).await;
}

/// The log as it is exported, and what the store says about its key.
async fn write_log(to: &Path, file: &str, ledger: &Ledger, store: &MemoryStore) {
    let mut log = String::new();
    ledger.export(|entry| log.push_str(&format!("{}\n", json!(entry)))).await.unwrap();
    for entry in store.log("countersign/key", 0, 9).await.unwrap() {
        log.push_str(&format!("{}\n", json!(entry)));
    }
    std::fs::write(to.join(file), log).unwrap();
}

fn entries(version: &Path, file: &str) -> Vec<Entry> {
    let log = read(version, file);
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row_as_json(row: &Row) -> Value {
    let Row { id, kind, run, state, created_at, due_at, doc, requester } = row;
    json!({
        "id": id, "kind": kind.as_str(), "run": run, "state": state,
        "created_at": created_at, "due_at": due_at, "doc": doc, "requester": requester,
    })
}

/// Earlier versions had it in the document alone.
fn requester(row: &Value) -> String {
    let doc: Value = serde_json::from_str(row["doc"].as_str().unwrap()).unwrap();
    let said = row["requester"].as_str().or(doc["ask"]["ask"]["principal"].as_str());
    said.unwrap_or_default().to_owned()
}

fn row_of(json: &Value) -> Row {
    let text = |name: &str| json[name].as_str().unwrap().to_owned();
    Row {
        id: text("id"),
        kind: RowKind::parse(&text("kind")).unwrap(),
        run: text("run"),
        state: text("state"),
        created_at: json["created_at"].as_i64().unwrap(),
        due_at: json["due_at"].as_i64(),
        doc: text("doc"),
        requester: requester(json),
    }
}

/// Puts the rows and the log into an empty store. The log is chained again, with the same hashes.
pub(super) async fn load(store: &impl Store, version: &Path) {
    let rows: Vec<Value> = serde_json::from_str(&read(version, "rows.json")).unwrap();
    let rows: Vec<Row> = rows.iter().map(row_of).collect();
    let entries = entries(version, "log.jsonl");
    let drafts = entries.iter().map(|entry| {
        let body: Value = serde_json::from_str(&entry.body).unwrap();
        Draft { run: entry.run.clone(), row: None, body }
    });
    let ids: Vec<_> = rows.iter().map(|row| row.id.clone()).collect();
    let writes = Writes { rows, log: drafts.collect(), ..Writes::default() };
    let mut work = |_, _| writes.clone();
    store.transact(&ids, &Linker::default(), &mut work).await.unwrap();
    for entry in entries {
        let found = store.log(&entry.run, entry.seq - 1, 1).await.unwrap();
        assert!(found == [entry], "every entry has the hash that it had");
    }
}

/// Checks that the stored ledger loads from this store and continues.
pub(super) async fn check_continues(store: impl Store, version: &Path) {
    let stood = serde_json::from_str(&read(version, "stands.json")).unwrap();
    check(&Ledger::new(store), &stood, &token(version)).await;
}

pub(super) fn token(version: &Path) -> String {
    read(version, "ask.token").trim_end().to_owned()
}

pub(super) async fn check_memory(version: &Path) {
    let store = MemoryStore::new();
    load(&store, version).await;
    check_continues(store, version).await;
    let keyed = entries(version, "log.keyed.jsonl");
    assert!(!keyed.is_empty());
    for it in keyed {
        assert_eq!(Linker::with_key(KEY).hash(&it.run, it.seq, &it.prev, &it.body), it.hash);
    }
}

/// A copy of the file: the one in the corpus is never opened, as that writes.
pub(super) async fn sqlite(version: &Path, place: &TempDir) -> SqliteStore {
    let path = place.path().join("ledger.db");
    std::fs::copy(version.join("ledger.db"), &path).unwrap();
    SqliteStore::open(&path).await.unwrap()
}

pub(super) async fn check_sqlite(version: &Path) {
    let place = TempDir::new().unwrap();
    check_continues(sqlite(version, &place).await, version).await;
}

/// The tables of an SQLite file.
pub(super) fn tables(version: &Path) -> Vec<String> {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.db");
    std::fs::copy(version.join("ledger.db"), &path).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let mut sql = connection
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    sql.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}
