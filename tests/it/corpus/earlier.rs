//! Processes of earlier builds that keep writing after a newer one has migrated the tables.

use countersign::ledger::{Ask, Ledger, MemoryStore, Store as _};
use countersign_sqlite::SqliteStore;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::asks::ask;
use super::versions;

/// The writes of earlier builds: a row without its requester, and an entry with a column about its row.
const WRITES: [(&str, &str); 2] = [
    (
        "INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc)
            VALUES ('late', 'ask', 'asks', 'pending', 1, NULL, '{}')
            ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
        "requester",
    ),
    (
        "INSERT INTO countersign_log (run, seq, prev, hash, body, about WRITER)
            VALUES ('asks', 9999, 'x', 'y', '{}', '' AS_WRITER)",
        "about",
    ),
];

#[tokio::test]
async fn an_earlier_build_that_keeps_writing_to_a_file_gets_an_error() {
    for version in versions() {
        let place = TempDir::new().unwrap();
        let path = place.path().join("ledger.db");
        std::fs::copy(version.join("ledger.db"), &path).unwrap();
        let earlier = rusqlite::Connection::open(&path).unwrap();
        let ledger = Ledger::new(SqliteStore::open(&path).await.unwrap());
        for (sql, says) in WRITES {
            let sql = sql.replace(" WRITER", "").replace(" AS_WRITER", "");
            let error = earlier.execute_batch(&sql).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
            assert!(error.contains("NOT NULL") || error.contains("no column named"), "{error}");
        }
        assert!(ledger.get(ask("pending").id()).await.unwrap().is_some());
        assert!(ledger.verify(&Default::default()).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_earlier_build_that_keeps_writing_to_postgresql_gets_an_error() {
    use countersign_postgres::PostgresStore;

    for version in versions() {
        let url = super::dump::tables(&version).await;
        let ledger = Ledger::new(PostgresStore::connect(&url).await.unwrap());
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
        let connection = tokio::spawn(connection);
        for (sql, says) in WRITES {
            let sql = sql.replace(" WRITER", ", writer").replace(" AS_WRITER", ", 'w'");
            let error = client.batch_execute(&sql).await.unwrap_err();
            let error = error.as_db_error().unwrap().message().to_owned();
            assert!(error.contains(says), "{error}");
            assert!(error.contains("not-null") || error.contains("does not exist"), "{error}");
        }
        drop(client);
        connection.await.unwrap().unwrap();
        assert!(ledger.get(ask("pending").id()).await.unwrap().is_some());
        assert!(ledger.verify(&Default::default()).await.is_ok());
    }
}

/// L10: "a program that does not know what the outcome says sees a closed ask".
#[tokio::test]
async fn a_call_that_ran_unapproved_is_a_closed_ask_to_those_who_know_no_more() {
    let store = MemoryStore::new();
    let ledger = Ledger::new(store.clone());
    let closed = ledger.park(Ask::new("run", "root/c1", "rm")).await.unwrap();
    ledger.close(closed.ask.id()).await.unwrap();
    let ran = Ask::new("run", "root/c2", "rm");
    let ran = ledger.ran_unapproved(ran, "hook", json!({"reported": true})).await.unwrap().unwrap();
    let mut docs = Vec::new();
    for id in [closed.ask.id(), ran.ask.id()] {
        let row = store.get(id).await.unwrap().found().unwrap().row;
        assert_eq!((row.state.as_str(), row.due_at), ("closed", None));
        docs.push(serde_json::from_str::<Value>(&row.doc).unwrap());
    }
    let [closed, ran] = &docs[..] else { panic!("{docs:?}") };
    assert_eq!((&ran["version"], ran.get("needs")), (&closed["version"], None));
    assert_eq!(
        (&ran["ask"]["state"], &closed["ask"]["state"]),
        (&json!("closed"), &json!("closed"))
    );
}
