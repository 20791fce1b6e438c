//! The tables, their migrations, and the SQL statements over them.
//!
//! Invariants that the statements rely on:
//!
//! - **Heads first.** Every writer takes the heads of logs in the order of their runs, then the rows in the order of
//!   their ids.
//! - **A logged change of a row changes its run's head**, in the same transaction. So an unchanged head means that no
//!   decision was made in the run, and a lock on the head excludes all of them.
//! - **Times are the server's** `clock_timestamp()` after the locks, not the beginning of the transaction, which may be
//!   seconds earlier and before a deadline that has passed (rule L4).
//! - **Ids are compared by bytes** (`COLLATE "C"`), as the order must not depend on the locale of the server.
//! - **A list reads an index in its order** and stops at its limit. A plan that sorts would be right and slow only when
//!   the table is large, which no test sees.

use deadpool_postgres::Object;

use super::connection::Open;
use super::failure::Failure;
use super::rows::{self, encode};
use countersign::ledger::requester_of;

/// The JSON text of the id of the row that an entry is about, as [`Entry::about`](countersign::ledger::Entry::about) gives it.
/// `''` for an entry about no row.
///
/// It is an expression over the text of the entry, in the statements and in the index. A column beside the text could
/// be changed without changing a hash. And if an index or a function is replaced, that makes a statement slow and not
/// wrong (rule L8). Bodies are canonical: their keys are sorted, `about` before all others. We use only functions that
/// PostgreSQL takes for an index. Its own reader of JSON is none of them: it refuses some strings.
macro_rules! about {
    () => {
        r#"(CASE WHEN body LIKE '{"about":%' THEN substring(body from '^\{"about":("(?:[^"\\]|\\.)*")')
            WHEN body LIKE '{"ask":%' THEN substring(body from '^\{"ask":("[^"]*")')
            WHEN body LIKE '%,"event":"grant\_%' THEN '"grant:' || substring(body from ',"grant":"([^"]*"),"row":')
            WHEN body LIKE '%,"event":"call\_counted"%' THEN '"counter:' || substring(body from ',"counter":"([^"]*"),"event":')
            WHEN body LIKE '{"at":%,"event":"run\_%' THEN '"run:' || replace(replace(replace(replace(replace(replace(
                replace(replace(replace(run, '\', '\\'), '"', '\"'), chr(1) || '0', '\u0000'), chr(1) || '1', '\u0001'),
                chr(8), '\b'), chr(9), '\t'), chr(10), '\n'), chr(12), '\f'), chr(13), '\r') || '"' ELSE '' END)"#
    };
}

/// The migrations from each version of the tables to the next. An existing one is never changed (rule L7).
///
/// Never change a released migration: a table that was made by the old text would have the version of the new one. A
/// new column that this build needs is `NOT NULL` without a default. So a process of an older build that is still
/// connected while a new one migrates gets an error for its writes, and does not write rows that this build would
/// refuse (rule L7).
const MIGRATIONS: &[&str] = &[
    r#"
    CREATE TABLE countersign_rows (
        id text COLLATE "C" PRIMARY KEY,
        kind text COLLATE "C" NOT NULL,
        run text COLLATE "C" NOT NULL,
        state text COLLATE "C" NOT NULL,
        created_at bigint NOT NULL,
        due_at bigint,
        doc text NOT NULL
    );
    CREATE INDEX countersign_rows_newest ON countersign_rows (kind, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_states ON countersign_rows (kind, state, created_at DESC, id DESC);
    CREATE INDEX countersign_rows_runs ON countersign_rows (run);
    CREATE INDEX countersign_rows_due ON countersign_rows (due_at) WHERE kind = 'ask' AND due_at IS NOT NULL;
    CREATE TABLE countersign_heads (
        run text COLLATE "C" PRIMARY KEY,
        seq bigint NOT NULL,
        hash text NOT NULL
    ) WITH (fillfactor = 70);
    CREATE TABLE countersign_log (
        run text COLLATE "C" NOT NULL,
        seq bigint NOT NULL,
        prev text NOT NULL,
        hash text NOT NULL,
        body text NOT NULL,
        writer text NOT NULL,
        PRIMARY KEY (run, seq)
    );
"#,
    r#"
    -- The row that an entry is about, so that the last entry about a row is found. Bodies are canonical: their keys are
    -- sorted, so that an entry about an ask begins with its id, and one about a run with its time and event.
    ALTER TABLE countersign_log ADD COLUMN about text COLLATE "C";
    UPDATE countersign_log SET about = CASE
        WHEN body LIKE '{"ask":"%' THEN substring(body from '^\{"ask":"([^"]*)"')
        WHEN body ~ '^\{"at":-?[0-9]+,"event":"run_' THEN 'run:' || run END;
    CREATE INDEX countersign_log_by_row ON countersign_log (about, seq) WHERE about IS NOT NULL;
"#,
    r#"
    -- What an earlier build would leave out is NOT NULL without a default, so that a process of one that is still
    -- connected gets an error, in place of writing what this build refuses to read. An entry about no row is about ''.
    UPDATE countersign_log SET about = '' WHERE about IS NULL;
    ALTER TABLE countersign_log ALTER COLUMN about SET NOT NULL;
    ALTER TABLE countersign_rows ADD COLUMN requester text COLLATE "C" NOT NULL DEFAULT '';
    ALTER TABLE countersign_rows ALTER COLUMN requester DROP DEFAULT;
    CREATE INDEX countersign_rows_requesters ON countersign_rows (requester, due_at)
        WHERE kind = 'ask' AND state = 'pending';
"#,
    concat!(
        "
    -- The last entry about a row is found by the text of the entries. A process of an earlier build that is still
    -- connected names the column, and gets an error.
    ALTER TABLE countersign_log DROP COLUMN about;
    CREATE INDEX countersign_log_by_row ON countersign_log (",
        about!(),
        ", seq);
"
    ),
];

/// The index of the migration that adds the column `requester`, which is then filled from the documents.
const REQUESTERS: usize = 2;

/// Locks the heads of the rows' runs in order, and then the rows in the order of their ids. Every writer takes its locks
/// in this order, so there are no deadlocks. We read the time after the locks.
pub(super) const LOCK: &str = "
    WITH h AS MATERIALIZED (
        SELECT * FROM countersign_heads
        WHERE run = ANY(ARRAY(SELECT run FROM countersign_rows WHERE id = ANY($1))) ORDER BY run FOR UPDATE
    ), r AS MATERIALIZED (
        SELECT * FROM countersign_rows WHERE id = ANY($1) AND (SELECT count(*) FROM h) >= 0 ORDER BY id FOR UPDATE
    )
    SELECT r.id, r.kind, r.run, r.state, r.created_at, r.due_at, r.doc, r.requester, h.seq, h.hash,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM r LEFT JOIN h ON h.run = r.run";

/// Takes locks for reading rows that every transaction reads and almost none writes: any number of transactions have them
/// at once, and [`RESERVE`] waits for them. A lock on the row would let them wait for each other.
pub(super) const SHARE: &str = "
    SELECT pg_advisory_xact_lock_shared(hashtextextended(id, 20877)) FROM unnest($1::text[]) AS id";

/// Reads the rows of [`SHARE`], by a statement after it, with the columns of [`LOCK`].
pub(super) const SHARED: &str = "
    SELECT id, kind, run, state, created_at, due_at, doc, requester, NULL::bigint, NULL::text,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint
    FROM countersign_rows WHERE id = ANY($1)";

/// The last entries about these rows, whose ids are in `$1`, and in `$2` as JSON text; beside each the last entry of its
/// log where that is a later one. Read by a statement after `LOCK`, as the snapshot of `LOCK` may be older than the entry
/// of the transaction that it waited for.
pub(super) const ENTRIES: &str = concat!(
    "SELECT i.id, l.run, l.seq, l.prev, l.hash, l.body, e.run, e.seq, e.prev, e.hash, e.body
    FROM unnest($1::text[], $2::text[]) AS i (id, about) CROSS JOIN LATERAL (
        SELECT run, seq, prev, hash, body FROM countersign_log WHERE ",
    about!(),
    " = i.about ORDER BY seq DESC LIMIT 1
    ) AS l LEFT JOIN LATERAL (
        SELECT run, seq, prev, hash, body FROM countersign_log
        WHERE run = l.run AND seq > l.seq ORDER BY seq DESC LIMIT 1
    ) AS e ON true"
);

/// The last entries of these logs. Read by a statement after the locks, as [`ENTRIES`].
pub(super) const LAST: &str = "
    SELECT l.* FROM unnest($1::text[]) AS i (run) CROSS JOIN LATERAL (
        SELECT run, seq, prev, hash, body FROM countersign_log WHERE run = i.run ORDER BY seq DESC LIMIT 1
    ) AS l";

/// Takes advisory locks for ids without a row, so that no two transactions create the same row.
///
/// A row that does not exist cannot be locked. Without these locks, two processes that park one call at the same time
/// would both see nothing and both write: one would get a unique violation and the other's ask under its own
/// fingerprint. The keys are 64-bit hashes, so two ids may share a lock, which costs a wait and nothing else.
pub(super) const RESERVE: &str = "
    SELECT pg_advisory_xact_lock(key) FROM (
        SELECT DISTINCT hashtextextended(id, 20877) AS key FROM unnest($1::text[]) AS id ORDER BY key
    ) AS keys";

/// The server's time, in milliseconds since 1970.
pub(super) const NOW: &str = "SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// Creates the heads of empty logs, where they do not exist.
///
/// `ON CONFLICT DO NOTHING` waits for another transaction that is creating the same head, and then finds it.
pub(super) const BEGIN_LOGS: &str = "
    INSERT INTO countersign_heads (run, seq, hash)
    SELECT run, 0, '' FROM unnest($1::text[]) AS run ORDER BY run COLLATE \"C\" ON CONFLICT DO NOTHING";

/// Locks and reads the heads of logs.
pub(super) const LOCK_LOGS: &str = "
    SELECT run, seq, hash FROM countersign_heads WHERE run = ANY($1) ORDER BY run FOR UPDATE";

/// Makes all writes of a transaction but removals: rows, log entries, and heads. If the server's time is not between
/// `$18` and `$19`, the division by zero fails the statement and with it the transaction.
pub(super) const WRITE: &str = "
    WITH r AS (
        INSERT INTO countersign_rows (id, kind, run, state, created_at, due_at, doc, requester)
        SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[],
            $17::text[])
        WHERE (SELECT 1 / (floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint BETWEEN $18 AND $19)::int) = 1
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, run = excluded.run, state = excluded.state,
            created_at = excluded.created_at, due_at = excluded.due_at, doc = excluded.doc,
            requester = excluded.requester
    ), l AS (
        INSERT INTO countersign_log (run, seq, prev, hash, body, writer)
        SELECT n.*, $16 FROM unnest($8::text[], $9::bigint[], $10::text[], $11::text[], $12::text[]) AS n
    )
    UPDATE countersign_heads AS h SET seq = n.seq, hash = n.hash
    FROM unnest($13::text[], $14::bigint[], $15::text[]) AS n (run, seq, hash) WHERE h.run = n.run";

/// Removes rows, and the entries of their run's log up to a place.
pub(super) const DROP: &str = "
    WITH r AS (DELETE FROM countersign_rows WHERE id = ANY($1))
    DELETE FROM countersign_log WHERE run = $2 AND seq <= $3";

/// Notifies listeners of these runs, if there is a listener at all: each listener has a shared advisory lock, so the
/// exclusive one cannot be taken. The check is worth it, as a transaction that notifies is written to the disk.
pub(super) const NOTIFY: &str = "
    SELECT pg_notify('countersign_changes', run) FROM unnest($1::text[]) AS run
    WHERE NOT (SELECT pg_try_advisory_xact_lock(hashtextextended('countersign_changes', 20877)))";

/// Listens, and then takes the shared lock that shows this to writers. A writer that has notified no one, as it saw no
/// lock, had committed before, so a listener that reads the log after these statements misses nothing.
pub(super) const LISTEN: [&str; 2] = [
    "LISTEN countersign_changes",
    "SELECT pg_advisory_lock_shared(hashtextextended('countersign_changes', 20877))",
];

/// Reads the name of the transaction that wrote an entry.
pub(super) const WRITER: &str = "SELECT writer FROM countersign_log WHERE run = $1 AND seq = $2";

/// Joins the last entry about each row, whose id as JSON text is in `$about`.
macro_rules! with_last {
    ($about:expr) => {
        concat!(
            " LEFT JOIN LATERAL (SELECT run, seq, prev, hash, body FROM countersign_log WHERE ",
            about!(),
            " = ",
            $about,
            " ORDER BY seq DESC LIMIT 1) AS l ON true "
        )
    };
}

/// The id of a row as JSON text.
macro_rules! json_id {
    () => {
        r"replace(replace(to_json(r.id)::text, '\u00010', '\u0000'), '\u00011', '\u0001')"
    };
}

/// Looks an id up: the row, or `NULL`s where there is none, and the last entry about it.
pub(super) const GET: &str = concat!(
    "SELECT r.id, r.kind, r.run, r.state, r.created_at, r.due_at, r.doc, r.requester, l.run, l.seq, l.prev, l.hash, l.body
    FROM (SELECT $1::text AS id, $2::text AS about) AS i LEFT JOIN countersign_rows AS r ON r.id = i.id",
    with_last!("i.about")
);

pub(super) const HEAD: &str = "SELECT seq FROM countersign_heads WHERE run = $1";

pub(super) const LIST_RUN: &str = concat!(
    "SELECT r.id, r.kind, r.run, r.state, r.created_at, r.due_at, r.doc, r.requester, l.* FROM (
        SELECT * FROM countersign_rows
        WHERE kind = ANY($1) AND run = $2 AND ($3::text[] IS NULL OR state = ANY($3))
        ORDER BY created_at DESC, id DESC LIMIT $4
    ) AS r",
    with_last!(json_id!()),
    "ORDER BY r.created_at DESC, r.id DESC"
);

/// Reads the newest rows of each kind in the order of an index, and merges them.
pub(super) const LIST_ALL: &str = concat!(
    "SELECT r.*, l.* FROM (SELECT n.* FROM unnest($1::text[]) AS k (kind) CROSS JOIN LATERAL (
        SELECT id, kind, run, state, created_at, due_at, doc, requester FROM countersign_rows
        WHERE kind = k.kind ORDER BY created_at DESC, id DESC LIMIT $2
    ) AS n ORDER BY n.created_at DESC, n.id DESC LIMIT $2) AS r",
    with_last!(json_id!()),
    "ORDER BY r.created_at DESC, r.id DESC"
);

/// Reads the newest rows of each kind and state in the order of an index, and merges them.
pub(super) const LIST_STATES: &str = concat!(
    "SELECT r.*, l.* FROM (SELECT n.* FROM unnest($1::text[]) AS k (kind) CROSS JOIN unnest($2::text[]) AS s (state)
        CROSS JOIN LATERAL (
        SELECT id, kind, run, state, created_at, due_at, doc, requester FROM countersign_rows
        WHERE kind = k.kind AND state = s.state ORDER BY created_at DESC, id DESC LIMIT $3
    ) AS n ORDER BY n.created_at DESC, n.id DESC LIMIT $3) AS r",
    with_last!(json_id!()),
    "ORDER BY r.created_at DESC, r.id DESC"
);

/// The ids of asks whose column says another kind.
pub(super) const HIDDEN_ASKS: &str = "
    SELECT id FROM countersign_rows WHERE (kind < 'ask' OR kind > 'ask')
        AND id NOT LIKE 'run:%' AND id NOT LIKE 'grant:%' AND id NOT LIKE 'counter:%' AND id <> 'countersign/key'
    LIMIT $1";

/// By the server's time at the beginning of the statement, which never runs ahead: an ask is due a little late and
/// never early.
pub(super) const DUE: &str = "
    SELECT id FROM countersign_rows WHERE kind = 'ask' AND due_at IS NOT NULL
        AND due_at <= floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint
    ORDER BY due_at LIMIT $1";

/// Counts the pending asks of each requester that have not expired.
pub(super) const REQUESTED: &str = "
    SELECT requester, count(*) FROM countersign_rows WHERE kind = 'ask' AND state = 'pending'
        AND (due_at IS NULL OR due_at > floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint)
    GROUP BY requester";

pub(super) const LOG: &str = "
    SELECT run, seq, prev, hash, body FROM countersign_log WHERE run = $1 AND seq > $2 ORDER BY seq LIMIT $3";

/// The last entry of each log, read from the log itself and not from its head.
pub(super) const LAST_ENTRIES: &str = "
    SELECT h.run, l.seq, l.prev, l.hash, l.body FROM countersign_heads AS h CROSS JOIN LATERAL (
        SELECT seq, prev, hash, body FROM countersign_log WHERE run = h.run ORDER BY seq DESC LIMIT 1
    ) AS l WHERE h.run > $1 ORDER BY h.run LIMIT $2";

/// The runs that have a log, and those that have rows, so that rows that were inserted without a log entry are found.
pub(super) const LOGS: &str = "
    (SELECT run FROM countersign_heads WHERE run > $1 AND seq > 0 ORDER BY run LIMIT $2)
    UNION (SELECT DISTINCT run FROM countersign_rows WHERE run > $1 ORDER BY run LIMIT $2)
    ORDER BY run LIMIT $2";

/// Creates the tables, or migrates them to the current version. Of several processes one does this, and the others
/// wait.
///
/// All migrations are one transaction. A process that is killed in the middle leaves the old version, and a process
/// that waited for the lock reads the version again and has nothing to do.
pub(super) async fn migrate(client: Object, new: bool) -> Result<(), Failure> {
    // Without a lock or a transaction first: a role without the right to create tables can use current ones.
    let there =
        client.query_one("SELECT to_regclass('countersign_version') IS NOT NULL", &[]).await?;
    let there = there.try_get::<_, bool>(0)?;
    if there {
        refuse_triggers(&client).await?;
        if is_current(version(&client).await?)? {
            return Ok(());
        }
    }
    if !there && !new {
        return Err(Failure::Refused("it has no tables of a ledger".into()));
    }
    let open = Open::new(client);
    let client = open.client()?;
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    client
        .batch_execute("SELECT pg_advisory_xact_lock(hashtextextended('countersign', 20877))")
        .await?;
    client
        .batch_execute("CREATE TABLE IF NOT EXISTS countersign_version (version integer NOT NULL)")
        .await?;
    let version = version(client).await?;
    if !is_current(version)? {
        for (n, migration) in MIGRATIONS.iter().enumerate().skip(version) {
            client.batch_execute(migration).await?;
            if n == REQUESTERS {
                fill_requesters(client).await?;
            }
        }
        let current = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
        client.batch_execute("DELETE FROM countersign_version").await?;
        client.execute("INSERT INTO countersign_version VALUES ($1)", &[&current]).await?;
    }
    client.batch_execute("COMMIT").await?;
    open.finished();
    Ok(())
}

/// The beginning of the text of an error that names a trigger or a rule.
const TRIGGER: &str = "countersign trigger or rule: ";

/// Fails if a table has a trigger or a rule, with its name in the error. Behind the writes of a transaction no other
/// transaction can make one before it ends: their locks exclude each other.
pub(super) const NO_TRIGGERS: &str = "
    SELECT (SELECT 'countersign trigger or rule: ' || name FROM (
        SELECT tgname::text AS name, tgrelid AS of FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT rulename::text, ev_class FROM pg_rewrite
    ) AS t WHERE of IN (to_regclass('countersign_rows'), to_regclass('countersign_log'),
        to_regclass('countersign_heads')) LIMIT 1)::integer";

/// Refuses tables that write something else than they are told. A trigger or a rule could leave out a claim or a denial. As
/// that was never written, no checkpoint would miss it (rule L8).
async fn refuse_triggers(client: &Object) -> Result<(), Failure> {
    client.query_one(NO_TRIGGERS, &[]).await.map(drop).map_err(of_trigger)
}

/// The failure of a look for triggers and rules.
pub(super) fn of_trigger(error: tokio_postgres::Error) -> Failure {
    let text = error.as_db_error().map(|error| error.message().to_owned());
    let found = text.as_deref().and_then(|text| text.split_once(TRIGGER));
    match found {
        Some((_, name)) => Failure::Refused(format!(
            "its tables have the trigger or rule `{}`, which no ledger makes: what is written may not be what is stored. Look \
             at who made it, and remove it",
            name.trim_end_matches('"').escape_debug()
        )),
        None => Failure::from(error),
    }
}

/// Fills the column `requester` from the documents of the asks. If a document cannot be read, it gets an empty
/// requester and does not stop the migration: we refuse its row when we read it.
async fn fill_requesters(client: &Object) -> Result<(), Failure> {
    let next = "SELECT id, doc FROM countersign_rows
        WHERE kind = 'ask' AND ($1::text IS NULL OR id > $1) ORDER BY id LIMIT 100";
    let fill = "UPDATE countersign_rows AS r SET requester = n.requester
        FROM unnest($1::text[], $2::text[]) AS n (id, requester) WHERE r.id = n.id";
    let mut after: Option<String> = None;
    loop {
        let (mut ids, mut requesters) = (Vec::new(), Vec::new());
        for row in client.query(next, &[&after]).await? {
            ids.push(row.try_get::<_, String>(0)?);
            requesters.push(encode(&requester_of(&rows::text(&row, 1)?)).into_owned());
        }
        let Some(last) = ids.last() else { return Ok(()) };
        after = Some(last.clone());
        client.execute(fill, &[&ids, &requesters]).await?;
    }
}

async fn version(client: &Object) -> Result<usize, Failure> {
    let row =
        client.query_one("SELECT coalesce(max(version), 0) FROM countersign_version", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or_default())
}

fn is_current(version: usize) -> Result<bool, Failure> {
    let current = MIGRATIONS.len();
    if version > current {
        return Err(Failure::Refused(format!(
            "its tables are of version {version}, made by a newer countersign; this one knows version {current}"
        )));
    }
    Ok(version == current)
}
