//! The SQL statements that read and write. Values are always bound, never part of the text.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use rusqlite::types::{ToSqlOutput, Type, Value, ValueRef};
use rusqlite::{
    Connection, OptionalExtension as _, Transaction, TransactionBehavior, params, params_from_iter,
};

use super::schema::{about, refuse_triggers};
use countersign::error::BoxError;
use countersign::ledger::{
    Dropped, Entry, Filter, Found, Linker, Lookup, Millis, Row, RowKind, Writes,
};

/// The last entry about the row with the id in `$id`, as one value: it is found by the text of the entries (rule L8).
macro_rules! last_about {
    ($id:literal) => {
        concat!(
            "(SELECT json_array(l.run, l.seq, l.prev, l.hash, l.body) FROM countersign_log AS l WHERE ",
            about!(),
            " = json_quote(",
            $id,
            ") ORDER BY l.seq DESC LIMIT 1)"
        )
    };
}

/// The columns of a row, with the last entry about it.
const COLUMNS: &str = concat!(
    "id, kind, run, state, created_at, due_at, doc, requester, ",
    last_about!("countersign_rows.id")
);

/// Looks an id up: the row, or `NULL`s if there is none, and the last entry about it. It is one statement, as
/// two statements would not read from one snapshot.
const GET: &str = concat!(
    "SELECT r.id, r.kind, r.run, r.state, r.created_at, r.due_at, r.doc, r.requester, ",
    last_about!("i.id"),
    " FROM (SELECT ?1 AS id) AS i LEFT JOIN countersign_rows AS r ON r.id = i.id"
);

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

/// Looks an id up. Call it within a transaction, as the statements have to read from one snapshot.
pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Lookup> {
    let mut lookup = connection.prepare_cached(GET)?.query_row([id], |found| {
        if found.get_ref(0)? != ValueRef::Null {
            return Ok(Lookup::Found(row(found)?));
        }
        let is_logged = found.get_ref(8)? != ValueRef::Null;
        Ok(if is_logged { Lookup::Removed { id: id.to_owned() } } else { Lookup::Nothing })
    })?;
    if let Lookup::Found(found) = &mut lookup {
        let behind = found.entry.as_ref().map_or(0, |entry| entry.seq);
        if let Some(later) = last_behind(connection, (&found.row.run, id), behind)? {
            found.entry = Some(later);
        }
    }
    Ok(lookup)
}

/// The last entry about a row in the log of a run, behind this place. It is read by the table itself, whose order is the
/// primary key: an index beside it may have been built over something else than its definition says (rule L8).
fn last_behind(
    connection: &Connection,
    (run, id): (&str, &str),
    behind: i64,
) -> rusqlite::Result<Option<Entry>> {
    const SQL: &str = concat!(
        "SELECT run, seq, prev, hash, body FROM countersign_log
        INDEXED BY sqlite_autoindex_countersign_log_1
        WHERE run = ?1 AND seq > ?2 AND instr(body, ?4) > 0 AND ",
        about!(),
        " = json_quote(?3) ORDER BY seq DESC LIMIT 1"
    );
    let values = params![run, behind, id, needle(id)];
    connection.prepare_cached(SQL)?.query_row(values, entry).optional()
}

/// A text that is in each entry about a row, so that few entries are parsed. An entry about a run need not have its id.
fn needle(id: &str) -> &str {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    match id.split_once(':') {
        Some(("run", _)) => "\"run_",
        Some(("grant" | "counter", name)) if name.bytes().all(is_plain) => name,
        _ if id.bytes().all(is_plain) => id,
        _ => "",
    }
}

/// Replaces the entries of these rows by later ones, where the log has them: one reading of the log of each run.
fn look_behind(connection: &Connection, found: &mut [Found]) -> rusqlite::Result<()> {
    const SQL: &str = concat!(
        "SELECT run, seq, prev, hash, body, ",
        about!(),
        " FROM countersign_log INDEXED BY sqlite_autoindex_countersign_log_1
        WHERE run = ?1 AND seq > ?2 ORDER BY seq"
    );
    let mut runs: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, found) in found.iter().enumerate() {
        runs.entry(found.row.run.clone()).or_default().push(at);
    }
    let seq = |found: &Found| found.entry.as_ref().map_or(0, |entry| entry.seq);
    for (run, rows) in runs {
        let mut of_run = BTreeMap::new();
        for at in rows {
            let Some(row) = found.get(at) else { continue };
            of_run.insert(serde_json::Value::from(&*row.row.id).to_string(), at);
        }
        let behind = of_run.values().filter_map(|at| found.get(*at)).map(seq).min();
        let mut statement = connection.prepare_cached(SQL)?;
        let mut entries = statement.query(params![run, behind.unwrap_or_default()])?;
        while let Some(later) = entries.next()? {
            let about = later.get_ref(5)?.as_str().unwrap_or_default();
            if let Some(row) = of_run.get(about).and_then(|at| found.get_mut(*at))
                && later.get::<_, i64>(1)? > seq(row)
            {
                row.entry = Some(entry(later)?);
            }
        }
    }
    Ok(())
}

/// A text as it is, or with U+FFFD where it is no UTF-8. A row or an entry with such a text is not what was written. We
/// refuse it when we compare it with the log, and it hides no other (rule L8).
fn text(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<String> {
    let bytes = row.get_ref(at)?.as_bytes();
    let bytes = bytes.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(at, Type::Text, Box::new(error))
    })?;
    Ok(String::from_utf8_lossy(bytes).into_owned())
}

fn row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Found> {
    let found = Row {
        id: text(row, 0)?,
        // We read an unknown kind as one that does not fit the id, so the row is refused.
        kind: RowKind::parse(&text(row, 1)?).unwrap_or(RowKind::Key),
        run: text(row, 2)?,
        state: text(row, 3)?,
        created_at: row.get(4)?,
        due_at: row.get(5)?,
        doc: text(row, 6)?,
        requester: text(row, 7)?,
    };
    let is_logged = row.get_ref(8)? != ValueRef::Null;
    let entry = if is_logged { Some(packed(&text(row, 8)?)?) } else { None };
    Ok(Found { row: found, entry })
}

/// An entry that was read as one value.
fn packed(entry: &str) -> rusqlite::Result<Entry> {
    let read = serde_json::from_str(entry);
    let (run, seq, prev, hash, body) = read.map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(8, Type::Text, Box::new(error))
    })?;
    Ok(Entry { run, seq, prev, hash, body })
}

/// Reads each kind and state by a query of its own, in the order of the index. So SQLite sorts nothing, and
/// stops at the limit.
///
/// We name the index (`INDEXED BY`). So a missing or renamed index is an error in the first test, and not a slow list
/// after a year.
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
    look_behind(connection, &mut found)?;
    Ok(found)
}

/// The ids of asks whose column says another kind, by an index that has all that is looked at.
pub(super) fn hidden_asks(connection: &Connection, limit: u32) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT id FROM countersign_rows INDEXED BY countersign_rows_by_age
        WHERE (kind < 'ask' OR kind > 'ask')
            AND id NOT GLOB 'run:*' AND id NOT GLOB 'grant:*' AND id NOT GLOB 'counter:*'
            AND id <> 'countersign/key' LIMIT ?1";
    connection.prepare_cached(sql)?.query_map([limit], |row| text(row, 0))?.collect()
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
    connection.prepare_cached(sql)?.query_map(params![now, limit], |row| text(row, 0))?.collect()
}

pub(super) fn requesters(
    connection: &Connection,
    now: Millis,
) -> rusqlite::Result<Vec<(String, u64)>> {
    let sql = "SELECT requester, count(*) FROM countersign_rows INDEXED BY countersign_rows_by_requester
        WHERE kind = 'ask' AND state = 'pending' AND (due_at IS NULL OR due_at > ?1) GROUP BY requester";
    let count = |row: &rusqlite::Row<'_>| {
        Ok((text(row, 0)?, u64::try_from(row.get::<_, i64>(1)?).unwrap_or_default()))
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
    let (run, seq, prev) = (text(row, 0)?, row.get(1)?, text(row, 2)?);
    Ok(Entry { run, seq, prev, hash: text(row, 3)?, body: text(row, 4)? })
}

/// A jump from run to run over the primary key, so the work grows with the number of runs and not with their entries.
pub(super) fn heads(
    connection: &Connection,
    after: &str,
    limit: u32,
) -> rusqlite::Result<Vec<Entry>> {
    let sql = "SELECT run, seq, prev, hash, body FROM countersign_log \
        WHERE run = (SELECT min(run) FROM countersign_log WHERE run > ?1) ORDER BY seq DESC LIMIT 1";
    each_run(connection, sql, after, limit, |row| entry(row).map(Some))
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
    each_run(connection, sql, after, limit, |row| {
        let is_last = row.get_ref(0)? == ValueRef::Null;
        if is_last { Ok(None) } else { text(row, 0).map(Some) }
    })
}

/// Reads one value for each run behind `after`, by a query for the next run, which is the first column.
///
/// The next query begins behind the bytes of a run. If a run is no UTF-8, a ledger has not written it, and its text with
/// U+FFFD may come before those bytes. So we leave it out if it does not come behind the run before.
fn each_run<T>(
    connection: &Connection,
    sql: &str,
    after: &str,
    limit: u32,
    read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<Option<T>>,
) -> rusqlite::Result<Vec<T>> {
    let (mut last, mut told) = (after.as_bytes().to_vec(), after.to_owned());
    let mut next = connection.prepare_cached(sql)?;
    let mut all = Vec::new();
    while all.len() < limit as usize {
        let mut rows = next.query([ToSqlOutput::Borrowed(ValueRef::Text(&last))])?;
        let Some(row) = rows.next()? else { break };
        let Some(value) = read(row)? else { break };
        let (run, bytes) = (text(row, 0)?, row.get_ref(0)?.as_bytes().unwrap_or_default().to_vec());
        drop(rows);
        last = bytes;
        if run > told {
            told = run;
            all.push(value);
        }
    }
    Ok(all)
}

/// If a log has grown meanwhile, its removal writes nothing, as the caller has decided by the old end. Removals
/// come last, because the same transaction appends their own entry.
pub(super) fn write(
    transaction: &Transaction<'_>,
    linker: &Linker,
    writes: &Writes,
) -> Result<(), BoxError> {
    if let Some(drop) = &writes.drop
        && last(transaction, &drop.run)?.map(|last| (last.seq, last.hash)).as_ref()
            != Some(&drop.end)
    {
        return Ok(());
    }
    refuse_triggers(transaction)?;
    let entries = linker.link_all::<BoxError>(&writes.log, |run| Ok(last(transaction, run)?))?;
    let sql = "INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc, requester)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, run = excluded.run, state = excluded.state,
            created_at = excluded.created_at, due_at = excluded.due_at, doc = excluded.doc,
            requester = excluded.requester";
    for row in &writes.rows {
        if writes.log.iter().any(|draft| draft.row.as_ref() == Some(&row.id)) {
            refuse_removed(transaction, row)?;
        }
        let Row { id, kind, run, state, created_at, due_at, requester, doc } = row;
        let values = params![id, kind.as_str(), run, state, created_at, due_at, doc, requester];
        is_one(transaction.prepare_cached(sql)?.execute(values)?)?;
    }
    let append =
        "INSERT INTO countersign_log (run, seq, prev, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)";
    for Entry { run, seq, prev, hash, body } in &entries {
        is_one(transaction.prepare_cached(append)?.execute(params![run, seq, prev, hash, body])?)?;
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

/// Refuses a statement that has not written its one row.
fn is_one(changed: usize) -> Result<(), BoxError> {
    match changed {
        1 => Ok(()),
        _ => Err("the database took a write, and did not make it".into()),
    }
}

/// Refuses a new row that the log has entries about: it was removed, and is not created anew (rule L8).
fn refuse_removed(connection: &Connection, row: &Row) -> Result<(), BoxError> {
    let sql = "SELECT 1 FROM countersign_rows WHERE id = ?1";
    if !connection.prepare_cached(sql)?.exists([&row.id])?
        && last_behind(connection, (&row.run, &row.id), 0)?.is_some()
    {
        let id = row.id.escape_debug();
        return Err(
            format!("the row `{id}` was removed, and the log still has entries about it").into()
        );
    }
    Ok(())
}

/// The last entry of a log.
fn last(connection: &Connection, run: &str) -> rusqlite::Result<Option<Entry>> {
    let sql = "SELECT run, seq, prev, hash, body FROM countersign_log WHERE run = ?1 ORDER BY seq DESC LIMIT 1";
    connection.prepare_cached(sql)?.query_row([run], entry).optional()
}
