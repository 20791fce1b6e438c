//! The SQL statements that read and write. Values are always bound, never part of the text.

use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::{Type, Value};
use rusqlite::{
    Connection, OptionalExtension as _, Transaction, TransactionBehavior, params, params_from_iter,
};

use crate::ledger::{Dropped, Entry, Filter, Found, Linker, Lookup, Millis, Row, RowKind, Writes};

/// The columns of a row, with the body of the last entry about it.
const COLUMNS: &str =
    "id, kind, run, state, created_at, due_at, doc, requester, (SELECT body FROM countersign_log AS l
    WHERE l.about = countersign_rows.id ORDER BY l.seq DESC LIMIT 1)";

/// Looks an id up: the row, or `NULL`s where there is none, and the last entry about it. One statement, as two
/// statements would not read from one snapshot.
const GET: &str = "SELECT r.id, r.kind, r.run, r.state, r.created_at, r.due_at, r.doc, r.requester,
        (SELECT body FROM countersign_log AS l WHERE l.about = i.id AND i.id <> '' ORDER BY l.seq DESC LIMIT 1)
    FROM (SELECT ?1 AS id) AS i LEFT JOIN countersign_rows AS r ON r.id = i.id";

/// The time of the system's clock, in milliseconds since 1970: the store's clock.
pub(super) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

/// Begins a transaction as the only writer, so that no other process changes what it reads until the commit.
///
/// `IMMEDIATE` takes the lock of the writer before the first read. A transaction that reads first and upgrades later
/// could find that another has written in between, and SQLite would fail it without waiting.
pub(super) fn begin(connection: &mut Connection) -> rusqlite::Result<Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Lookup> {
    connection.prepare_cached(GET)?.query_row([id], |found| {
        if found.get::<_, Option<String>>(0)?.is_some() {
            return Ok(Lookup::Found(row(found)?));
        }
        let is_logged = found.get::<_, Option<String>>(8)?.is_some();
        Ok(if is_logged { Lookup::Removed { id: id.to_owned() } } else { Lookup::Nothing })
    })
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    let kind: String = row.get(1)?;
    let kind = RowKind::parse(&kind).ok_or_else(|| {
        let problem = format!("`{}` is not a kind of row", kind.escape_debug());
        rusqlite::Error::FromSqlConversionFailure(1, Type::Text, problem.into())
    })?;
    let found = Row {
        id: row.get(0)?,
        kind,
        run: row.get(2)?,
        state: row.get(3)?,
        created_at: row.get(4)?,
        due_at: row.get(5)?,
        doc: row.get(6)?,
        requester: row.get(7)?,
    };
    Ok(Found { row: found, entry: row.get(8)? })
}

/// Reads each kind and state by a query of its own, in the order of the index, so that SQLite sorts nothing and
/// stops at the limit.
///
/// The index is named (`INDEXED BY`), so that a missing or renamed index is an error in the first test and not a slow
/// list after a year.
pub(super) fn list(connection: &Connection, filter: &Filter) -> rusqlite::Result<Vec<Found>> {
    let mut found = Vec::new();
    let kinds = filter.kind.map_or_else(|| RowKind::ALL.to_vec(), |kind| vec![kind]);
    for kind in kinds {
        if filter.states.is_empty() {
            found.extend(list_one(connection, kind, None, filter)?);
        }
        for state in &filter.states {
            found.extend(list_one(connection, kind, Some(state), filter)?);
        }
    }
    found.sort_by(|Found { row: a, .. }, Found { row: b, .. }| {
        (b.created_at, &b.id).cmp(&(a.created_at, &a.id))
    });
    found.dedup_by(|a, b| a.row.id == b.row.id);
    found.truncate(filter.limit.map_or(usize::MAX, |limit| limit as usize));
    Ok(found)
}

fn list_one(
    connection: &Connection,
    kind: RowKind,
    state: Option<&String>,
    filter: &Filter,
) -> rusqlite::Result<Vec<Found>> {
    let index = match (&filter.run, state) {
        (Some(_), _) => "run",
        (None, Some(_)) => "state",
        (None, None) => "age",
    };
    let mut sql = format!(
        "SELECT {COLUMNS} FROM countersign_rows INDEXED BY countersign_rows_by_{index} WHERE kind = ?"
    );
    let mut values: Vec<Value> = vec![kind.as_str().to_owned().into()];
    for (column, value) in [("state", state), ("run", filter.run.as_ref())] {
        if let Some(value) = value {
            sql.push_str(&format!(" AND {column} = ?"));
            values.push(value.clone().into());
        }
    }
    sql.push_str(" ORDER BY created_at DESC, id DESC");
    if let Some(limit) = filter.limit {
        sql.push_str(" LIMIT ?");
        values.push(i64::from(limit).into());
    }
    connection.prepare_cached(&sql)?.query_map(params_from_iter(values), row)?.collect()
}

pub(super) fn due(
    connection: &Connection,
    now: Millis,
    limit: u32,
) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT id FROM countersign_rows WHERE kind = 'ask' AND due_at <= ?1 ORDER BY due_at LIMIT ?2";
    connection.prepare_cached(sql)?.query_map(params![now, limit], |row| row.get(0))?.collect()
}

pub(super) fn requesters(
    connection: &Connection,
    now: Millis,
) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql = "SELECT requester, count(*) FROM countersign_rows INDEXED BY countersign_rows_by_requester
        WHERE kind = 'ask' AND state = 'pending' AND (due_at IS NULL OR due_at > ?1) GROUP BY requester";
    let count = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
    };
    connection.prepare_cached(sql)?.query_map([now], count)?.collect()
}

pub(super) fn log(
    connection: &Connection,
    run: &str,
    after: i64,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let sql = "SELECT run, seq, prev, hash, body FROM countersign_log \
        WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    connection.prepare_cached(sql)?.query_map(params![run, after, limit], entry)?.collect()
}

/// The place of the last entry of a log, or 0.
pub(super) fn end(connection: &Connection, run: &str) -> rusqlite::Result<i64> {
    let sql = "SELECT coalesce(max(seq), 0) FROM countersign_log WHERE run = ?1";
    connection.prepare_cached(sql)?.query_row([run], |row| row.get(0))
}

/// A number that differs once another connection, of any process, has committed.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

fn entry(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    let (run, seq, prev) = (row.get(0)?, row.get(1)?, row.get(2)?);
    Ok(Entry { run, seq, prev, hash: row.get(3)?, body: row.get(4)? })
}

/// A jump from run to run over the primary key, so the work grows with the number of runs and not with their entries.
pub(super) fn heads(
    connection: &Connection,
    after: &str,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let sql = "SELECT run, seq, prev, hash, body FROM countersign_log \
        WHERE run = (SELECT min(run) FROM countersign_log WHERE run > ?1) ORDER BY seq DESC LIMIT 1";
    let mut next = connection.prepare_cached(sql)?;
    let mut heads: Vec<Entry> = Vec::new();
    while heads.len() < limit as usize {
        let after = heads.last().map_or(after, |last| &last.run);
        let Some(head) = next.query_row([after], entry).optional()? else { break };
        heads.push(head);
    }
    Ok(heads)
}

pub(super) fn logs(
    connection: &Connection,
    after: &str,
    limit: u32,
) -> rusqlite::Result<Vec<String>> {
    // One query for each run, which jumps to the next run in the index: a `DISTINCT` would read every entry of every
    // log.
    let sql = "SELECT min(run) FROM (
        SELECT min(run) AS run FROM countersign_log WHERE run > ?1
        UNION ALL SELECT min(run) FROM countersign_rows WHERE run > ?1)";
    let mut next = connection.prepare_cached(sql)?;
    let mut runs = Vec::new();
    let mut last = after.to_owned();
    while runs.len() < limit as usize {
        let Some(run) = next.query_row([&last], |row| row.get::<_, Option<String>>(0))? else {
            break;
        };
        last.clone_from(&run);
        runs.push(run);
    }
    Ok(runs)
}

/// A removal whose log has grown meanwhile writes nothing, as the caller has decided by the old end. Removals come
/// last, because their own entry is appended by the same transaction.
pub(super) fn write(
    transaction: &Transaction<'_>,
    linker: &Linker,
    writes: &Writes,
) -> rusqlite::Result<()> {
    if let Some(drop) = &writes.drop
        && last(transaction, &drop.run)?.as_ref() != Some(&drop.end)
    {
        return Ok(());
    }
    let sql = "INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc, requester)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, run = excluded.run, state = excluded.state,
            created_at = excluded.created_at, due_at = excluded.due_at, doc = excluded.doc,
            requester = excluded.requester";
    for row in &writes.rows {
        let Row { id, kind, run, state, created_at, due_at, requester, doc } = row;
        let values = params![id, kind.as_str(), run, state, created_at, due_at, doc, requester];
        transaction.prepare_cached(sql)?.execute(values)?;
    }
    let append = "INSERT INTO countersign_log (run, seq, prev, hash, body, about) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    for draft in &writes.log {
        let last = last(transaction, &draft.run)?;
        let entry = linker.link(last.as_ref().map(|(seq, hash)| (*seq, hash.as_str())), draft);
        let Entry { run, seq, prev, hash, body } = &entry;
        let about = draft.row.as_deref().unwrap_or_default();
        let values = params![run, seq, prev, hash, body, about];
        transaction.prepare_cached(append)?.execute(values)?;
    }
    if let Some(Dropped { run, end, rows }) = &writes.drop {
        for row in rows {
            let sql = "DELETE FROM countersign_rows WHERE id = ?1";
            transaction.prepare_cached(sql)?.execute([row])?;
        }
        let sql = "DELETE FROM countersign_log WHERE run = ?1 AND seq <= ?2";
        transaction.prepare_cached(sql)?.execute(params![run, end.0])?;
    }
    Ok(())
}

/// The place and the hash of the last entry of a log.
fn last(connection: &Connection, run: &str) -> rusqlite::Result<Option<(i64, String)>> {
    let sql = "SELECT seq, hash FROM countersign_log WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
    let mut last = connection.prepare_cached(sql)?;
    last.query_row([run], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}
