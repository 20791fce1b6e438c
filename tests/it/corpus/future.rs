//! Data that a later version has stored is refused by its number, and not changed.

use countersign::deferred::Answer;
use countersign::ledger::{
    Ask, Draft, Filter, Ledger, LedgerError, Linker, MemoryStore, Row, Store, Writes,
};
use countersign::seal::SealError;
use countersign::{SuspendedRun, SuspendedTurn};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::asks::ask;
use super::stores::{load, sqlite, token};
use super::{in_the_year_9999, keys, read, versions};

/// The value with another version, and with another version and an unknown form.
fn later(stored: &str) -> [String; 2] {
    let mut value: Value = serde_json::from_str(stored).unwrap();
    value["version"] = json!(99);
    [value.to_string(), json!({"version": 99, "anything": "else"}).to_string()]
}

#[test]
fn runs_and_turns_of_a_later_version_are_refused_by_its_number() {
    let version = versions().pop().unwrap();
    for stored in later(&read(&version, "every_way.run.json")) {
        let error = serde_json::from_str::<SuspendedRun>(&stored).unwrap_err().to_string();
        assert!(error.contains("it has version 99, and this build reads version"), "{error}");
        let value = serde_json::from_str(&stored).unwrap();
        let error = serde_json::from_value::<SuspendedRun>(value).unwrap_err().to_string();
        assert!(error.contains("it has version 99, and this build reads version"), "{error}");
    }
    for stored in later(&read(&version, "turn.json")) {
        let error = serde_json::from_str::<SuspendedTurn>(&stored).unwrap_err().to_string();
        assert!(error.contains("it has version 99, and this build reads version"), "{error}");
    }
}

#[test]
fn a_token_of_a_later_form_is_refused_by_its_number() {
    let token = token(&versions().pop().unwrap()).replacen("cs1.", "cs99.", 1);
    let error = keys().open_ask(&token, in_the_year_9999()).unwrap_err();
    assert!(matches!(error, SealError::UnknownVersion { version } if version == "cs99"));
}

/// All operations on a row.
async fn tried(ledger: &Ledger, row: &Row) -> Vec<LedgerError> {
    let (id, lease) = (&row.id, std::time::Duration::from_secs(60));
    let yes = Answer::Approve { args: None };
    if let Some(run) = id.strip_prefix("run:") {
        return vec![
            ledger.acquire_run_as(run, "w", lease).await.unwrap_err(),
            ledger.renew_run(run, 1, lease).await.unwrap_err(),
            ledger.save_run(run, json!(1), None).await.unwrap_err(),
            ledger.save_run(run, json!(1), Some(1)).await.unwrap_err(),
            ledger.end_run(run, 1, json!(1)).await.unwrap_err(),
            ledger.waiting_runs(100).await.unwrap().refused.remove(0).error,
        ];
    }
    vec![
        ledger.park(ask("pending")).await.map(drop).unwrap_err(),
        ledger.decide(id, &ask("pending").fingerprint(), "ann", yes).await.unwrap_err(),
        ledger.claim(id, "w", lease).await.unwrap_err(),
        ledger.renew(id, 1, lease).await.unwrap_err(),
        ledger.settle(id, 1, json!(1)).await.unwrap_err(),
        ledger.release(id, 1).await.unwrap_err(),
        ledger.cancel(id, "ann").await.unwrap_err(),
        ledger.close(id).await.unwrap_err(),
        ledger.get(id).await.unwrap_err(),
        ledger.list(None, 100).await.unwrap().refused.remove(0).error,
    ]
}

async fn rows(store: impl Store + Clone) {
    let all = || async { store.list(&Filter::default()).await.unwrap() };
    for id in [ask("pending").id().to_owned(), "run:lapsed".to_owned()] {
        let found = store.get(&id).await.unwrap().found().unwrap();
        let (before, said) = (found.row, serde_json::from_str(&found.entry.unwrap().body).unwrap());
        for doc in later(&before.doc) {
            let row = Row { doc, ..before.clone() };
            let put = async |row: &Row, body: &Value| {
                let (run, about) = (row.run.clone(), Some(row.id.clone()));
                let log = vec![Draft { run, row: about, body: body.clone() }];
                let mut work = |_, _| Writes {
                    rows: vec![row.clone()],
                    log: log.clone(),
                    ..Writes::default()
                };
                let ids = [row.id.clone()];
                store.transact(&ids, &Linker::default(), &mut work).await.unwrap();
            };
            put(&row, &json!({"event": "something later"})).await;
            let (ledger, rows) = (Ledger::new(store.clone()), all().await);
            let entries = ledger.export(|_| ()).await.unwrap();
            for error in tried(&ledger, &row).await {
                let said = error.to_string();
                assert!(matches!(error, LedgerError::Unreadable { id, .. } if id == row.id));
                assert!(
                    said.contains("it is of version 99, and this build reads versions up to"),
                    "{said}"
                );
            }
            assert_eq!(ledger.expire().await.unwrap().changed, [""; 0]);
            assert!(all().await == rows, "nothing has changed");
            assert_eq!(ledger.export(|_| ()).await.unwrap(), entries, "nothing is in the log");
            // Rows of this version work beside it.
            let beside = Ask::new("beside", format!("{id}{}", row.doc.len()), "pay");
            ledger.park(beside).await.unwrap();
            put(&before, &said).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_later_version_are_refused_by_its_number_and_unchanged() {
    let version = versions().pop().unwrap();
    let memory = MemoryStore::new();
    load(&memory, &version).await;
    rows(memory).await;
    let place = TempDir::new().unwrap();
    rows(sqlite(&version, &place).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_a_later_version_is_refused_by_its_number_and_unchanged() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("ledger.db");
    drop(SqliteStore::open(&path).await.unwrap());
    {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute("UPDATE countersign_version SET version = 99", []).unwrap();
        connection
            .execute("ALTER TABLE countersign_rows RENAME TO countersign_things", [])
            .unwrap();
    }
    // The last connection that closes writes what is in the other file back.
    while place.path().join("ledger.db-wal").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let before = std::fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).await.unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("it is of version 99, and this build knows versions up to"), "{cause}");
    assert!(std::fs::read(&path).unwrap() == before, "not a byte has changed");
}
