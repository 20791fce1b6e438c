//! L9: a store that vanished is noticed.

use std::error::Error as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use countersign::deferred::Answer;
use countersign::ledger::{Ask, AskRecord, Ledger, LedgerError};
use countersign_sqlite::SqliteStore;
use tempfile::TempDir;

async fn open(path: &Path) -> Ledger {
    Ledger::new(SqliteStore::open(path).await.unwrap())
}

async fn parked(ledger: &Ledger) -> AskRecord {
    ledger.park(Ask::new("run", "root/c1", "delete_file")).await.unwrap()
}

/// What an operation is refused with.
fn refused<T>(made: Result<T, LedgerError>) -> String {
    let error = made.err().expect("nothing is answered from a file that vanished");
    let LedgerError::Store(error) = error else { panic!("{error}") };
    error.source().unwrap().to_string()
}

async fn all_refused(ledger: &Ledger, ask: &AskRecord, says: &str) {
    let (id, lease) = (ask.ask.id(), Duration::from_secs(60));
    let yes = Answer::Approve { args: None };
    for said in [
        refused(ledger.decide(id, &ask.fingerprint, "ann", yes).await),
        refused(ledger.claim(id, "w", lease).await),
        refused(ledger.park(Ask::new("another", "root/c1", "delete_file")).await),
        refused(ledger.get(id).await),
        refused(ledger.list(None, 10).await),
        refused(ledger.expire().await),
    ] {
        assert!(
            said.contains("is no longer the file that was opened") && said.contains(says),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_file_that_was_removed_or_replaced_answers_nothing_more() {
    // L9: "refuses to write when its path no longer is the file it opened".
    let place = TempDir::new().unwrap();
    let beside = |path: &Path, end: &str| path.with_file_name(format!("asks.db{end}"));
    for (n, what) in ["removed", "moved", "replaced", "wal", "shm"].into_iter().enumerate() {
        let folder = place.path().join(n.to_string());
        fs::create_dir(&folder).unwrap();
        let path = folder.join("asks.db");
        let ledger = open(&path).await;
        let ask = parked(&ledger).await;
        let says = match what {
            "removed" => {
                fs::remove_file(&path).unwrap();
                "it was removed"
            }
            "moved" => {
                fs::rename(&path, folder.join("old.db")).unwrap();
                "it was removed"
            }
            "replaced" => {
                let backup = folder.join("backup.db");
                fs::copy(&path, &backup).unwrap();
                fs::rename(&backup, &path).unwrap();
                "another file is in its place"
            }
            end => {
                fs::remove_file(beside(&path, &format!("-{end}"))).unwrap();
                "it was removed"
            }
        };
        all_refused(&ledger, &ask, says).await;
    }
}

#[tokio::test]
async fn only_the_ledger_over_the_present_file_answers() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let first = open(&path).await;
    let ask = parked(&first).await;
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(place.path().join(format!("asks.db{end}"))).unwrap();
    }
    let second = open(&path).await;
    assert_eq!(parked(&second).await.ask.id(), ask.ask.id());
    all_refused(&first, &ask, "another file is in its place").await;
    let yes = Answer::Approve { args: None };
    second.decide(ask.ask.id(), &ask.fingerprint, "ann", yes).await.unwrap();
    let claimed = second.claim(ask.ask.id(), "w", Duration::from_secs(60)).await.unwrap();
    assert!(matches!(claimed, countersign::ledger::Claimed::Claimed { token: 1 }));
}

#[tokio::test]
async fn files_of_sqlite_itself_are_no_change() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    let ledger = open(&path).await;
    parked(&ledger).await;
    // Others come and go, empty the log that is written ahead, and pack the file.
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("PRAGMA wal_checkpoint(TRUNCATE); VACUUM").unwrap();
    drop(other);
    drop(open(&path).await);
    assert_eq!(ledger.list(None, 10).await.unwrap().records.len(), 1);
    ledger.park(Ask::new("another", "root/c1", "delete_file")).await.unwrap();
}

#[tokio::test]
async fn a_file_that_lost_its_version_says_so() {
    let place = TempDir::new().unwrap();
    let path = place.path().join("asks.db");
    drop(open(&path).await);
    let file = rusqlite::Connection::open(&path).unwrap();
    for sql in ["UPDATE countersign_version SET version = 0", "DELETE FROM countersign_version"] {
        file.execute_batch(sql).unwrap();
        let error = SqliteStore::open(&path).await.unwrap_err();
        let said = error.source().unwrap().to_string();
        assert!(said.contains("does not say of which version"), "{said}");
    }
}
