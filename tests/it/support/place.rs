//! Stores that tests change behind the ledger's back.

use std::path::PathBuf;

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, Entry, Ledger, Linker, Store, StoreError};
use countersign_postgres::PostgresStore;
use countersign_sqlite::SqliteStore;
use tempfile::TempDir;

use super::postgres::Server;

/// A store that SQL can change behind the ledger's back.
pub(crate) enum Place {
    Sqlite(TempDir),
    Postgres(String),
}

impl Place {
    pub(crate) fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub(crate) async fn postgres() -> Self {
        Self::Postgres(Server::shared().url().await)
    }

    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Self::Sqlite(place) => place.path().join("asks.db"),
            Self::Postgres(_) => unreachable!("it is no file"),
        }
    }

    /// A handle of its own, as another process has.
    pub(crate) async fn open(&self) -> Ledger {
        match self {
            Self::Sqlite(_) => Ledger::new(SqliteStore::open(self.path()).await.unwrap()),
            Self::Postgres(url) => Ledger::new(PostgresStore::connect(url).await.unwrap()),
        }
    }

    pub(crate) async fn try_open(&self) -> Result<(), StoreError> {
        match self {
            Self::Sqlite(_) => SqliteStore::open(self.path()).await.map(drop),
            Self::Postgres(url) => PostgresStore::connect(url).await.map(drop),
        }
    }

    pub(crate) async fn store(&self) -> Box<dyn Store> {
        match self {
            Self::Sqlite(_) => Box::new(SqliteStore::open(self.path()).await.unwrap()),
            Self::Postgres(url) => Box::new(PostgresStore::connect(url).await.unwrap()),
        }
    }

    pub(crate) async fn entries(&self, run: &str) -> Vec<Entry> {
        self.store().await.log(run, 0, 100).await.unwrap()
    }

    /// Writes these entries, as they are.
    pub(crate) async fn append(&self, entries: &[Entry]) {
        let (writer, value) = match self {
            Self::Sqlite(_) => ("", ""),
            Self::Postgres(_) => (", writer", ", 'w'"),
        };
        for Entry { run, seq, prev, hash, body } in entries {
            let body = body.replace('\'', "''");
            self.sql(&format!(
                "INSERT INTO countersign_log (run, seq, prev, hash, body{writer}) \
                 VALUES ('{run}', {seq}, '{prev}', '{hash}', '{body}'{value})"
            ))
            .await;
        }
    }

    pub(crate) async fn sql(&self, sql: &str) {
        assert!(self.try_sql(sql).await, "{sql}");
    }

    /// Runs SQL, and returns whether the store has accepted it.
    pub(crate) async fn try_sql(&self, sql: &str) -> bool {
        match self {
            Self::Sqlite(_) => {
                rusqlite::Connection::open(self.path()).unwrap().execute_batch(sql).is_ok()
            }
            Self::Postgres(url) => {
                let (client, connection) =
                    tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
                let connection = tokio::spawn(connection);
                let done = client.batch_execute(sql).await.is_ok();
                drop(client);
                connection.await.unwrap().unwrap();
                done
            }
        }
    }
}

pub(crate) fn yes() -> Answer {
    Answer::Approve { args: None }
}

pub(crate) fn no(message: &str) -> Answer {
    Answer::Deny { message: message.to_owned() }
}

pub(crate) async fn park(ledger: &Ledger, run: &str, call: &str) -> AskRecord {
    ledger.park(Ask::new(run, call, "pay")).await.unwrap()
}

/// A store as two processes have left it of which one had this key, and the other one none: the first has parked two asks,
/// and the second has decided about one of them. Returns that ask.
pub(crate) async fn written_with_and_without(place: &Place, key: &[u8]) -> AskRecord {
    let without = place.open().await;
    let (ask, _) = (park(&without, "r", "c1").await, park(&without, "r", "c2").await);
    without.decide(ask.ask.id(), &ask.fingerprint, "eve", yes()).await.unwrap();
    let (mut prev, linkers) = (String::new(), [Linker::with_key(key), Linker::default()]);
    for entry in place.entries("r").await {
        // An earlier version finds the row of an entry by the id of the ask.
        let Entry { run, seq, .. } = &entry;
        let about = format!("\"about\":\"{}\",", entry.about().unwrap());
        let body = entry.body.replace(&about, "");
        let hash = linkers[usize::from(*seq == 3)].hash(run, *seq, &prev, &body);
        let set = format!("SET prev = '{prev}', hash = '{hash}', body = '{body}'");
        place.sql(&format!("UPDATE countersign_log {set} WHERE run = 'r' AND seq = {seq}")).await;
        prev = hash;
    }
    // Nor has it a word about its key.
    place
        .sql(
            "DELETE FROM countersign_rows WHERE kind = 'key'; \
             DELETE FROM countersign_log WHERE run = 'countersign/key'",
        )
        .await;
    if let Place::Postgres(_) = place {
        let heads = "DELETE FROM countersign_heads WHERE run = 'countersign/key'";
        let head = format!("UPDATE countersign_heads SET hash = '{prev}' WHERE run = 'r'");
        place.sql(&format!("{heads}; {head}")).await;
    }
    ask
}
