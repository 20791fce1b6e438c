//! A transaction: lock the ends of the logs and the rows, run the work on them, write and commit.
//!
//! Every transaction locks in the same order, so no two transactions wait for each other:
//!
//! 1. reservations of ids without a row (advisory locks, by key);
//! 2. the heads of the logs, by run;
//! 3. the rows, by id;
//! 4. the heads of logs that are appended to and whose run has no row among them, by run.
//!
//! A transaction finds out that it needs step 1 only when step 3 found a row missing. It then gives up its locks and
//! begins anew with the reservation.
//!
//! We send statements together that do not depend on each other's answers. So the usual transaction is two round trips:
//! lock and read; write, commit and notify.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join, join3, join4, join5};
use tokio_postgres::types::ToSql;

use super::columns::{LogColumns, RowColumns, notified};
use super::connection::{Open, ServerPool};
use super::failure::Failure;
use super::rows::{self, encode};
use super::schema;
use countersign::ledger::{
    Dropped, Entry, Found, Linker, Lookup, Millis, Row, RowKind, Work, Writes,
};

/// The place and the hash of the last entry of each run's log.
///
/// Place 0 with an empty hash is a log without entries.
type Heads = BTreeMap<String, (i64, String)>;

/// The last entry of each run's log, as it is in the log.
type LastEntries = BTreeMap<String, Option<Entry>>;

/// The rows and the ends of logs that a transaction has locked.
#[derive(Default)]
struct Locked {
    rows: BTreeMap<String, Found>,
    /// The ids that have no row, though the log has entries about them.
    removed: BTreeSet<String>,
    heads: Heads,
    /// The last entries of the rows' logs.
    ends: LastEntries,
    /// The server's time when everything was locked; `None` until it was read.
    at: Option<Millis>,
}

impl Locked {
    /// The entries come by another statement, see [`schema::ENTRIES`].
    fn read<'r>(found: impl IntoIterator<Item = &'r tokio_postgres::Row>) -> Result<Self, Failure> {
        let mut locked = Self::default();
        for found in found {
            let row = rows::row(found)?;
            if let Some(seq) = found.try_get(8)? {
                locked.heads.insert(row.run.clone(), (seq, found.try_get(9)?));
            }
            let now: Millis = found.try_get(10)?;
            // The time is read for each row, and the latest one is that at which everything was locked.
            locked.at = locked.at.max(Some(now));
            locked.rows.insert(row.id.clone(), Found { row, entry: None });
        }
        Ok(locked)
    }

    fn row(&self, id: &str) -> Option<&Row> {
        self.rows.get(id).map(|found| &found.row)
    }

    fn lookup(&self, id: &str) -> Lookup {
        match self.rows.get(id) {
            Some(found) => Lookup::Found(found.clone()),
            None if self.removed.contains(id) => Lookup::Removed { id: id.to_owned() },
            None => Lookup::Nothing,
        }
    }

    /// The earliest and the latest time of the server's clock at which the writes may arrive: at most a minute from
    /// the time that was read, before a deadline or lease of a row is over, and not after `until` (rule L4).
    ///
    /// If a deadline was ahead, it must still be ahead when the writes arrive. Otherwise we would write an answer after
    /// the deadline that was computed before it, though everyone who reads the row then sees it as expired.
    fn time_to_write(&self, until: Option<Millis>) -> (Millis, Millis) {
        let at = self.at.unwrap_or_default();
        let ends = self.rows.values().filter_map(|found| found.row.due_at);
        let before_ends = ends.filter(|end| *end > at).map(|end| end - 1);
        // The work knew the time, so an end that was over then is not one of its writes'.
        let ends = before_ends.chain(until.filter(|until| *until >= at));
        let latest = ends.fold(at.saturating_add(CLOCK), Millis::min);
        (at.saturating_sub(CLOCK), latest)
    }

    /// Adds the last entries about the rows, and the last ones of their logs.
    fn logged(mut self, entries: &[tokio_postgres::Row]) -> Result<Self, Failure> {
        for found in entries {
            let id = rows::text(found, 0)?;
            let Some(about) = rows::entry(found, 1)? else { continue };
            let last = rows::entry(found, 6)?.unwrap_or_else(|| about.clone());
            self.ends.insert(last.run.clone(), Some(last));
            match self.rows.get_mut(&id) {
                Some(found) => found.entry = Some(about),
                None => _ = self.removed.insert(id),
            }
        }
        Ok(self)
    }
}

/// The distance of the server's clock from the time that was read with the locks when the writes arrive, in milliseconds.
///
/// A process that is stopped in between loses its locks after ten seconds (`idle_in_transaction_session_timeout`), but
/// the server's clock may step, and a write may wait for a lock that an administrator holds. Within the bound an older
/// time is accepted, except where it crosses a deadline.
const CLOCK: Millis = 60_000;

/// Runs a transaction once. A [`Failure::Conflict`] says that nothing was written and that it can be repeated.
pub(super) async fn write_once(
    server: &ServerPool,
    ids: &[String],
    linker: &Linker,
    work: &mut Work<'_>,
) -> Result<(), Failure> {
    let open = Open::new(server.client().await?);
    let locked = lock(&open, ids).await?;
    let found = ids.iter().map(|id| locked.lookup(id)).collect();
    let writes = work(locked.at.unwrap_or_default(), found);
    let time = locked.time_to_write(writes.until);
    let Locked { rows, mut heads, mut ends, .. } = locked;
    if writes.rows.is_empty() && writes.log.is_empty() {
        // Nothing was written, so a rollback that fails is no error: the connection is closed then.
        if open.client()?.batch_execute("ROLLBACK").await.is_ok() {
            open.finished();
        }
        return Ok(());
    }
    let is_key = |row: &&Row| row.kind == RowKind::Key;
    if let Some(key) = writes.rows.iter().find(is_key) {
        // Waits for all that have read it.
        let client = open.client()?;
        let reserve = client.prepare_cached(schema::RESERVE).await?;
        client.query(&reserve, &[&[encode(&key.id)].as_slice()]).await?;
    }
    begin_logs(&open, &writes, (&mut heads, &mut ends)).await?;
    if let Some(drop) = &writes.drop {
        if heads.get(&drop.run) != Some(&drop.end) {
            // The log has a newer entry, so nothing is written. Dropping `open` closes the connection, which rolls
            // back.
            return Ok(());
        }
        remove(&open, drop).await?;
    }
    let entries = linker.link_all(&writes.log, |run| last(run, &heads, &ends))?;
    let writer = uuid::Uuid::now_v7().to_string();
    match commit(&open, &writes, &entries, &writer, time).await? {
        Ok(()) => {
            open.finished();
            Ok(())
        }
        Err(why) => {
            drop(open);
            outcome(server, ids, &Lost { before: rows, writes, entries, writer, why }).await
        }
    }
}

/// Finds out whether a transaction was committed whose connection was lost in its commit. One that was not
/// committed is a [`Failure::Conflict`], so that it is repeated.
///
/// After a lost answer to a commit we may assume neither yes nor no. "Not written" could run a call twice (two claims),
/// and "written" could lose a decision. Each transaction stores a random name with its log entries, so we look whether
/// the entry at that place has this name.
async fn outcome(server: &ServerPool, ids: &[String], lost: &Lost) -> Result<(), Failure> {
    let mut attempts = server.attempts();
    loop {
        let failure = match was_committed(server, ids, lost).await {
            Ok(Some(true)) => return Ok(()),
            // Rolled back, so the whole transaction can be repeated.
            Ok(Some(false)) => return Err(Failure::Conflict(lost.why.clone())),
            Ok(None) => return Err(Failure::Unsure(lost.why.clone())),
            Err(failure) => failure,
        };
        if attempts.again(failure).await.is_err() {
            return Err(Failure::Unsure(lost.why.clone()));
        }
    }
}

/// Locks what the lost transaction had locked, which waits for that transaction to end, and then looks for its
/// writes. Returns `None` if they cannot be told apart from those of another transaction. The transaction's number
/// (`pg_xact_status`) would not do: after a crash the server may give the same number to another one.
///
/// | found | means |
/// |---|---|
/// | an entry at the place, with our name | committed |
/// | no entry, or one with another name | rolled back: with it committed, the place would be ours |
/// | no entries were written, all rows are as we wrote them | committed |
/// | no entries were written, all rows are as before | rolled back |
/// | no entries were written, anything else | unknown: another transaction wrote afterwards |
///
/// We take the locks first. They wait for the lost transaction, which may still be committing on the server after the
/// connection has gone.
async fn was_committed(
    server: &ServerPool,
    ids: &[String],
    lost: &Lost,
) -> Result<Option<bool>, Failure> {
    let open = Open::new(server.client().await?);
    let mut locked = lock(&open, ids).await?;
    begin_logs(&open, &lost.writes, (&mut locked.heads, &mut locked.ends)).await?;
    let committed = if let Some(entry) = lost.entries.first() {
        let client = open.client()?;
        let statement = client.prepare_cached(schema::WRITER).await?;
        let found = client.query_opt(&statement, &[&encode(&entry.run), &entry.seq]).await?;
        let writer = found.map(|row| row.try_get::<_, String>(0)).transpose()?;
        Some(writer.is_some_and(|writer| writer == lost.writer))
    } else if lost.writes.rows.iter().all(|row| locked.row(&row.id) == Some(row)) {
        Some(true)
    } else {
        let before = |id: &str| lost.before.get(id).map(|found| &found.row);
        let as_before = |row: &Row| locked.row(&row.id) == before(&row.id);
        // If some row is neither, another transaction has written since, maybe over the writes of the lost one.
        lost.writes.rows.iter().all(as_before).then_some(false)
    };
    if open.client()?.batch_execute("ROLLBACK").await.is_ok() {
        open.finished();
    }
    Ok(committed)
}

/// A transaction whose connection was lost in its commit, with everything that is needed to look for its writes.
struct Lost {
    before: BTreeMap<String, Found>,
    writes: Writes,
    entries: Vec<Entry>,
    writer: String,
    why: String,
}

/// Begins a transaction and locks the rows of these ids. Ids without a row are reserved, so that no other transaction
/// creates these rows.
///
/// `READ COMMITTED` and not a stricter level: each statement sees what was committed before it began, so after a wait
/// for a lock the next statement reads the new state. `SERIALIZABLE` would fail after the wait, and repeat everything.
///
/// The row that says the store's key is read and not locked: every transaction reads it.
async fn lock(open: &Open, ids: &[String]) -> Result<Locked, Failure> {
    let client = open.client()?;
    let encoded: Vec<_> = ids.iter().map(|id| encode(id)).collect();
    let about: Vec<_> = ids.iter().map(|id| rows::about(id)).collect();
    let is_shared = |id: &&String| RowKind::of_id(id) == RowKind::Key;
    let (keys, own): (Vec<_>, Vec<_>) = ids.iter().partition(is_shared);
    let shared: Vec<_> = keys.iter().map(|id| encode(id)).collect();
    let owned: Vec<_> = own.iter().map(|id| encode(id)).collect();
    let share = client.prepare_cached(schema::SHARE).await?;
    let said = client.prepare_cached(schema::SHARED).await?;
    let lock = client.prepare_cached(schema::LOCK).await?;
    let entries = client.prepare_cached(schema::ENTRIES).await?;
    let (begun, is_sharing, said_first, found, logged) = join5(
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
        client.query(&share, &[&shared]),
        client.query(&said, &[&shared]),
        client.query(&lock, &[&owned]),
        client.query(&entries, &[&encoded, &about]),
    )
    .await;
    begun?;
    is_sharing?;
    let locked = Locked::read(said_first?.iter().chain(&found?))?.logged(&logged?)?;
    if ids.iter().all(|id| locked.rows.contains_key(id)) && locked.at.is_some() {
        return Ok(locked);
    }
    // Reservations come before the locks of rows in every transaction that reserves. With a row already locked, this
    // transaction and one that has reserved and waits for the row would wait for each other.
    let says = keys.iter().all(|id| locked.rows.contains_key(*id));
    if !says || own.iter().any(|id| locked.rows.contains_key(*id)) {
        client.batch_execute("ROLLBACK; BEGIN ISOLATION LEVEL READ COMMITTED").await?;
    }
    // Until the store has said which key it has, the transactions are one after the other.
    let (reserved, shared_again) = if says { (&owned, &shared) } else { (&encoded, &Vec::new()) };
    let (reserve, now) =
        (client.prepare_cached(schema::RESERVE).await?, client.prepare_cached(schema::NOW).await?);
    let ((reserved, is_sharing, said, found, logged), now) = join(
        join5(
            client.query(&reserve, &[reserved]),
            client.query(&share, &[shared_again]),
            client.query(&said, &[&shared]),
            client.query(&lock, &[&owned]),
            client.query(&entries, &[&encoded, &about]),
        ),
        client.query_one(&now, &[]),
    )
    .await;
    reserved?;
    is_sharing?;
    let now = now?;
    let mut locked = Locked::read(said?.iter().chain(&found?))?.logged(&logged?)?;
    locked.at = Some(now.try_get(0)?);
    Ok(locked)
}

/// Removes rows, and the entries of their run's log up to the noted end.
async fn remove(open: &Open, drop: &Dropped) -> Result<(), Failure> {
    let client = open.client()?;
    let rows: Vec<_> = drop.rows.iter().map(|id| encode(id)).collect();
    let statement = client.prepare_cached(schema::DROP).await?;
    client.execute(&statement, &[&rows, &encode(&drop.run), &drop.end.0]).await?;
    Ok(())
}

/// Creates and locks the ends of the logs that are appended to, as far as they are not locked yet.
async fn begin_logs(
    open: &Open,
    writes: &Writes,
    (heads, ends): (&mut Heads, &mut LastEntries),
) -> Result<(), Failure> {
    let runs: BTreeSet<_> = writes.log.iter().map(|draft| &*draft.run).collect();
    let is_new = |run: &&str| !heads.contains_key(*run) || !ends.contains_key(*run);
    let new: Vec<_> = runs.into_iter().filter(is_new).map(|run| (run, encode(run))).collect();
    if new.is_empty() {
        return Ok(());
    }
    let encoded: Vec<_> = new.iter().map(|(_, encoded)| &**encoded).collect();
    let client = open.client()?;
    let (begin, lock, last) = (
        client.prepare_cached(schema::BEGIN_LOGS).await?,
        client.prepare_cached(schema::LOCK_LOGS).await?,
        client.prepare_cached(schema::LAST).await?,
    );
    let (begun, locked, lasts) = join3(
        client.execute(&begin, &[&encoded]),
        client.query(&lock, &[&encoded]),
        client.query(&last, &[&encoded]),
    )
    .await;
    begun?;
    for row in locked? {
        heads.insert(rows::text(&row, 0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    ends.extend(new.iter().map(|(run, _)| ((*run).to_owned(), None)));
    for row in lasts? {
        let last = rows::entry(&row, 0)?;
        ends.extend(last.map(|last| (last.run.clone(), Some(last))));
    }
    Ok(())
}

/// The last entry of a log, which has to be the one that its end names.
fn last(run: &str, heads: &Heads, ends: &LastEntries) -> Result<Option<Entry>, Failure> {
    let (Some(head), Some(last)) = (heads.get(run), ends.get(run)) else {
        return Err(Failure::Refused("the end of a log is not locked".into()));
    };
    match last {
        None if head.0 == 0 => Ok(None),
        Some(last) if (last.seq, &last.hash) == (head.0, &head.1) => Ok(Some(last.clone())),
        _ => Err(Failure::Refused(
            "a log does not end with the entry that it ended with when it was last written: something else has changed \
             it. `countersign asks verify` says what"
                .into(),
        )),
    }
}

/// Writes and commits, in one round trip. The inner error says that the connection was lost, so that it is unknown
/// whether the transaction was committed.
///
/// An answer that is refused and an answer that is missing are two results: after a refusal the server has rolled back,
/// and the caller gets the error.
async fn commit(
    open: &Open,
    writes: &Writes,
    entries: &[Entry],
    writer: &String,
    (earliest, latest): (Millis, Millis),
) -> Result<Result<(), String>, Failure> {
    let (row, log) = (RowColumns::of(&writes.rows), LogColumns::of(entries));
    let notified = notified(&log.end_runs);
    let values: [&(dyn ToSql + Sync); 19] = [
        &row.ids,
        &row.kinds,
        &row.runs,
        &row.states,
        &row.created,
        &row.due,
        &row.docs,
        &log.runs,
        &log.seqs,
        &log.prevs,
        &log.hashes,
        &log.bodies,
        &log.end_runs,
        &log.end_seqs,
        &log.end_hashes,
        writer,
        &row.requesters,
        &earliest,
        &latest,
    ];
    let client = open.client()?;
    let (write, look, notify) = (
        client.prepare_cached(schema::WRITE).await?,
        client.prepare_cached(schema::NO_TRIGGERS).await?,
        client.prepare_cached(schema::NOTIFY).await?,
    );
    let (written, looked, committed, told) = join4(
        client.execute(&write, &values),
        // An error of it rolls the writes back.
        client.query_one(&look, &[]),
        client.batch_execute("COMMIT"),
        // Behind the commit, as PostgreSQL lets commits that notify wait for each other's write to the disk.
        client.execute(&notify, &[&notified]),
    )
    .await;
    // An error is ignored: if a notification is lost, the waiting task finds the change when it polls.
    drop(told);
    let looked = looked.map(drop).map_err(schema::of_trigger);
    match (written.map_err(Failure::from).and(looked), committed) {
        (Ok(_), Ok(())) => Ok(Ok(())),
        (Err(Failure::Unreachable(why)), _) => Ok(Err(why)),
        // The server has refused the statement, so the transaction was rolled back.
        (Err(failure), _) => Err(failure),
        (Ok(_), Err(error)) => match Failure::from(error) {
            Failure::Unreachable(why) => Ok(Err(why)),
            failure => Err(failure),
        },
    }
}
