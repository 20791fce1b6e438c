//! Opening a file, and migrating its tables to the version of this build (rule L7).
//!
//! SQLite leaves this to us, and this module does it:
//!
//! - The mode is checked after it was set: on a file system without shared memory SQLite answers with another mode, and
//!   no error.
//! - `synchronous` is set to `FULL` for each connection, as the setting is not stored in the file.
//! - The identity of the file is taken before the migration and again after it, when the files beside it exist (rule
//!   L9).
//! - The tables' version is read twice, without and within a transaction, so that opening a current file needs no
//!   writer's lock.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, OptionalExtension as _, TransactionBehavior, params,
};

use super::file::File;
use countersign::error::BoxError;
use countersign::ledger::requester_of;

/// The JSON text of the id of the row that an entry is about, as [`Entry::about`](countersign::ledger::Entry::about) gives it.
/// `''` for an entry about no row.
///
/// It is an expression over the text of the entry, in the statements and in the index. A column beside the text could
/// be changed without changing a hash. And if an index or a generated column is replaced, that makes a statement slow
/// and not wrong (rule L8).
macro_rules! about {
    () => {
        r#"(CASE WHEN json_valid(body) THEN coalesce(body -> '$.about', body -> '$.ask', CASE
            WHEN body ->> '$.event' GLOB 'grant_*' THEN '"grant:' || substr(body -> '$.grant', 2)
            WHEN body ->> '$.event' = 'call_counted' THEN '"counter:' || substr(body -> '$.counter', 2)
            WHEN body ->> '$.event' GLOB 'run_*' THEN '"run:' || substr(json_quote(run), 2) END, '') ELSE '' END)"#
    };
}
pub(super) use about;

/// The migrations from each version of the tables to the next; the one at index `n` makes version `n + 1`.
///
/// Never change a released migration. Needed columns are `NOT NULL` without a default. So a process of an older build
/// that still has the file open fails, and does not write rows that this build refuses (rule L7).
const MIGRATIONS: &[&str] = &["
    CREATE TABLE countersign_rows (
        id TEXT PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        run TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        due_at INTEGER,
        doc TEXT NOT NULL
    ) STRICT;
    CREATE INDEX countersign_rows_by_state
        ON countersign_rows (kind, state, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_by_age ON countersign_rows (kind, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_by_run ON countersign_rows (run, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_due ON countersign_rows (kind, due_at) WHERE due_at IS NOT NULL;
    CREATE TABLE countersign_log (
        run TEXT NOT NULL,
        seq INTEGER NOT NULL,
        prev TEXT NOT NULL,
        hash TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
", "
    -- The row that an entry is about, so that the last entry about a row is found. Bodies are canonical: their keys are
    -- sorted, so that an entry about an ask begins with its id, and one about a run with its time and event.
    ALTER TABLE countersign_log ADD COLUMN about TEXT;
    UPDATE countersign_log SET about = CASE
        WHEN body GLOB '{\"ask\":\"*' THEN substr(body, 9, instr(substr(body, 9), '\"') - 1)
        WHEN body GLOB '{\"at\":*,\"event\":\"run_*' THEN 'run:' || run END;
    CREATE INDEX countersign_log_by_row ON countersign_log (about, seq) WHERE about IS NOT NULL;
", "
    -- What an earlier build would leave out is NOT NULL without a default, so that a process of one that still has the
    -- file open gets an error, in place of writing what this build refuses to read. An entry about no row is about ''.
    CREATE TABLE countersign_rows_new (
        id TEXT PRIMARY KEY NOT NULL,
        kind TEXT NOT NULL,
        run TEXT NOT NULL,
        state TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        due_at INTEGER,
        doc TEXT NOT NULL,
        requester TEXT NOT NULL
    ) STRICT;
    INSERT INTO countersign_rows_new
        SELECT id, kind, run, state, created_at, due_at, doc, '' FROM countersign_rows;
    DROP TABLE countersign_rows;
    ALTER TABLE countersign_rows_new RENAME TO countersign_rows;
    CREATE INDEX countersign_rows_by_state
        ON countersign_rows (kind, state, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_by_age ON countersign_rows (kind, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_by_run ON countersign_rows (run, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_due ON countersign_rows (kind, due_at) WHERE due_at IS NOT NULL;
    CREATE INDEX countersign_rows_by_requester ON countersign_rows (requester, due_at)
        WHERE kind = 'ask' AND state = 'pending';
    CREATE TABLE countersign_log_new (
        run TEXT NOT NULL,
        seq INTEGER NOT NULL,
        prev TEXT NOT NULL,
        hash TEXT NOT NULL,
        body TEXT NOT NULL,
        about TEXT NOT NULL,
        PRIMARY KEY (run, seq)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO countersign_log_new SELECT run, seq, prev, hash, body, coalesce(about, '') FROM countersign_log;
    DROP TABLE countersign_log;
    ALTER TABLE countersign_log_new RENAME TO countersign_log;
    CREATE INDEX countersign_log_by_row ON countersign_log (about, seq);
", concat!("
    -- The last entry about a row is found by the text of the entries. An earlier build that still has the file open names
    -- the column, and gets an error.
    DROP INDEX countersign_log_by_row;
    ALTER TABLE countersign_log DROP COLUMN about;
    CREATE INDEX countersign_log_by_row ON countersign_log (", about!(), ", seq);
")];

/// The index of the migration that adds the column `requester`, which is then filled from the documents.
const REQUESTERS: usize = 2;

/// The time for which to wait for other processes that open the file or write to it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens a file. One that does not exist, or has no tables of a ledger, is an error unless it may be `new`.
pub(super) fn open(path: &Path, new: bool) -> Result<(Connection, File), BoxError> {
    // Without `SQLITE_OPEN_URI`, so that a path that begins with `file:` is a path too.
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, new);
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.busy_handler(Some(wait))?;
    if !new && !patiently(|| has_table(&connection, "countersign_version"))? {
        return Err("it has no tables of a ledger".into());
    }
    let mode = patiently(|| {
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0))
    })?;
    if mode != "wal" {
        return Err(format!("it cannot be in WAL mode, but is in mode `{mode}`").into());
    }
    let opened = File::at(path)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut connection)?;
    refuse_triggers(&connection)?;
    opened.check()?;
    Ok((connection, File::at(path)?))
}

/// Refuses tables that write something else than they are told. A trigger could leave out a claim or a denial. As that
/// was never written, no checkpoint would miss it (rule L8).
pub(super) fn refuse_triggers(connection: &Connection) -> Result<(), BoxError> {
    let sql = "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index')
        AND (tbl_name COLLATE NOCASE IN ('countersign_rows', 'countersign_log')
            OR name COLLATE NOCASE IN ('countersign_rows', 'countersign_log')) LIMIT 1";
    let found: Option<String> =
        connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?;
    match found {
        Some(name) => Err(format!(
            "its tables have the trigger or view `{}`, which no ledger makes: what is written may not be what is stored. \
             Look at who made it, and remove it",
            name.escape_debug()
        )
        .into()),
        None => Ok(()),
    }
}

/// Repeats an attempt while the file is locked. SQLite does not call the busy handler if waiting could be a
/// deadlock, for example when two processes switch to WAL mode at once.
fn patiently<T>(mut attempt: impl FnMut() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
    let start = Instant::now();
    loop {
        match attempt() {
            Err(rusqlite::Error::SqliteFailure(error, _))
                if matches!(error.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
                    && start.elapsed() < PATIENCE =>
            {
                sleep(Duration::from_millis(5));
            }
            result => return result,
        }
    }
}

/// The busy handler, which waits for other writers. SQLite's own sleeps for up to a tenth of a second, while
/// transactions take a millisecond.
///
/// The steps grow from 250 µs to 5 ms, and the wait ends after twenty seconds with the error of SQLite that the file is
/// locked.
fn wait(attempts: i32) -> bool {
    let step = Duration::from_micros(u64::try_from(attempts).map_or(250, |n| 250 * n.clamp(1, 20)));
    sleep(step);
    u32::try_from(attempts).is_ok_and(|n| step * n < PATIENCE)
}

fn migrate(connection: &mut Connection) -> Result<(), BoxError> {
    let version = version(connection)?;
    let known = i64::try_from(MIGRATIONS.len())?;
    if version < known {
        // The version is read again within the transaction: another process may have migrated the tables meanwhile.
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute_batch(
            "CREATE TABLE IF NOT EXISTS countersign_version (
                one INTEGER PRIMARY KEY CHECK (one = 1), version INTEGER NOT NULL
            ) STRICT;
            INSERT OR IGNORE INTO countersign_version VALUES (1, 0);",
        )?;
        let version = self::version(&transaction)?;
        if version == 0 && has_table(&transaction, "countersign_rows")? {
            return Err("it has the tables of a ledger, and its table `countersign_version` does not say of which version: \
                something else than a ledger has changed it. Restore it from a backup".into());
        }
        for (n, migration) in MIGRATIONS.iter().enumerate().skip(usize::try_from(version)?) {
            transaction.execute_batch(migration)?;
            if n == REQUESTERS {
                fill_requesters(&transaction)?;
            }
        }
        if version < known {
            transaction.execute("UPDATE countersign_version SET version = ?1", [known])?;
        }
        transaction.commit()?;
    }
    let version = self::version(connection)?;
    if version > known {
        return Err(format!(
            "it is of version {version}, and this build knows versions up to {known}: use the version that wrote it, or a newer one"
        )
        .into());
    }
    Ok(())
}

/// Fills the column `requester` from the documents of the asks. If a document cannot be read, it gets an empty
/// requester and does not stop the migration: we refuse its row when we read it.
fn fill_requesters(connection: &Connection) -> rusqlite::Result<()> {
    let mut next = connection.prepare(
        "SELECT rowid, doc FROM countersign_rows WHERE kind = 'ask' AND rowid > ?1 ORDER BY rowid LIMIT 1",
    )?;
    let mut fill =
        connection.prepare("UPDATE countersign_rows SET requester = ?1 WHERE rowid = ?2")?;
    let mut after = i64::MIN;
    let read = |row: &rusqlite::Row<'_>| {
        let doc = row.get_ref(1)?.as_str().unwrap_or_default();
        Ok((row.get(0)?, requester_of(doc)))
    };
    while let Some((row, requester)) = next.query_row([after], read).optional()? {
        fill.execute(params![requester, row])?;
        after = row;
    }
    Ok(())
}

/// The version of the tables; 0 where there are none.
fn version(connection: &Connection) -> rusqlite::Result<i64> {
    if !has_table(connection, "countersign_version")? {
        return Ok(0);
    }
    let version =
        connection.query_row("SELECT version FROM countersign_version", [], |row| row.get(0));
    Ok(version.optional()?.unwrap_or_default())
}

fn has_table(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.query_row(sql, [name], |_| Ok(())).optional()?.is_some())
}
