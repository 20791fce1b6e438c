//! Transactions: lock, let the ledger say what to write, write.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use futures::future::{join, join3};
use tokio_postgres::types::ToSql;

use super::connection::Open;
use super::failure::Failure;
use super::rows::{self, encode};
use super::{PostgresStore, schema};
use crate::ledger::{Entry, Linker, Millis, Row, StoreError, Work, Writes};

/// How long a notification may be, for PostgreSQL. Whoever waits for a run of a longer name looks from time to time.
const LONGEST_NOTIFIED: usize = 7_999;

/// The last entry of the log of each run.
type Heads = BTreeMap<String, (i64, String)>;

/// What a transaction has locked.
#[derive(Default)]
struct Locked {
    rows: BTreeMap<String, Row>,
    heads: Heads,
    /// The time.
    at: Option<Millis>,
}

impl Locked {
    fn read(found: &[tokio_postgres::Row]) -> Result<Self, Failure> {
        let mut locked = Self::default();
        for found in found {
            let row = rows::row(found)?;
            if let Some(seq) = found.try_get(7)? {
                locked.heads.insert(row.run.clone(), (seq, found.try_get(8)?));
            }
            let now: Millis = found.try_get(9)?;
            // The last of them is the one at which everything was locked.
            locked.at = locked.at.max(Some(now));
            locked.rows.insert(row.id.clone(), row);
        }
        Ok(locked)
    }
}

impl PostgresStore {
    pub(super) async fn write(
        &self,
        ids: &[String],
        linker: &Linker,
        work: &mut Work<'_>,
    ) -> Result<(), StoreError> {
        let mut attempts = self.attempts();
        loop {
            let failure = match self.write_once(ids, linker, work).await {
                Ok(()) => return Ok(()),
                Err(failure) => failure,
            };
            let told = |failure: Failure| failure.into_error(format!("write to {}", self.address));
            attempts.again(failure).await.map_err(told)?;
        }
    }

    async fn write_once(
        &self,
        ids: &[String],
        linker: &Linker,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let open = Open::new(self.client().await?);
        let Locked { rows, mut heads, at } = lock(&open, ids).await?;
        let writes =
            work(at.unwrap_or_default(), ids.iter().map(|id| rows.get(id).cloned()).collect());
        if writes.rows.is_empty() && writes.log.is_empty() {
            // Nothing is written, so that it does not matter whether this arrives.
            if open.client()?.batch_execute("ROLLBACK").await.is_ok() {
                open.finished();
            }
            return Ok(());
        }
        begin_logs(&open, &writes, &mut heads).await?;
        let entries = link(&writes, &mut heads, linker)?;
        let writer = uuid::Uuid::now_v7().to_string();
        match commit(&open, &writes, &entries, &writer).await? {
            Ok(()) => {
                open.finished();
                Ok(())
            }
            Err(why) => {
                drop(open);
                self.outcome(ids, &Lost { before: rows, writes, entries, writer, why }).await
            }
        }
    }

    /// What became of a transaction whose connection was lost in its commit.
    async fn outcome(&self, ids: &[String], lost: &Lost) -> Result<(), Failure> {
        let mut attempts = self.attempts();
        loop {
            let failure = match self.was_committed(ids, lost).await {
                Ok(Some(true)) => return Ok(()),
                // From the beginning: nothing of it has stayed.
                Ok(Some(false)) => return Err(Failure::Conflict(lost.why.clone())),
                Ok(None) => return Err(Failure::Unsure(lost.why.clone())),
                Err(failure) => failure,
            };
            if attempts.again(failure).await.is_err() {
                return Err(Failure::Unsure(lost.why.clone()));
            }
        }
    }

    /// Locks what the lost transaction had locked, which waits for it to end, and looks for what it has written. Its
    /// number (`pg_xact_status`) would not do: after a crash the server may give the same number to another one.
    async fn was_committed(&self, ids: &[String], lost: &Lost) -> Result<Option<bool>, Failure> {
        let open = Open::new(self.client().await?);
        let mut locked = lock(&open, ids).await?;
        begin_logs(&open, &lost.writes, &mut locked.heads).await?;
        let committed = if let Some(entry) = lost.entries.first() {
            let client = open.client()?;
            let statement = client.prepare_cached(schema::WRITER).await?;
            let found = client.query_opt(&statement, &[&encode(&entry.run), &entry.seq]).await?;
            let writer = found.map(|row| row.try_get::<_, String>(0)).transpose()?;
            Some(writer.is_some_and(|writer| writer == lost.writer))
        } else if lost.writes.rows.iter().all(|row| locked.rows.get(&row.id) == Some(row)) {
            Some(true)
        } else {
            let as_before = |row: &Row| locked.rows.get(&row.id) == lost.before.get(&row.id);
            // Otherwise somebody else has written since, maybe over what this one wrote.
            lost.writes.rows.iter().all(as_before).then_some(false)
        };
        if open.client()?.batch_execute("ROLLBACK").await.is_ok() {
            open.finished();
        }
        Ok(committed)
    }
}

/// A transaction whose connection was lost in its commit.
struct Lost {
    before: BTreeMap<String, Row>,
    writes: Writes,
    entries: Vec<Entry>,
    writer: String,
    why: String,
}

/// Locks the rows of these ids, and whoever else would make the ones that are not there.
async fn lock(open: &Open, ids: &[String]) -> Result<Locked, Failure> {
    let client = open.client()?;
    let ids: Vec<_> = ids.iter().map(|id| encode(id)).collect();
    let lock = client.prepare_cached(schema::LOCK).await?;
    let (begun, found) = join(
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
        client.query(&lock, &[&ids]),
    )
    .await;
    begun?;
    let found = Locked::read(&found?)?;
    let missing: Vec<_> =
        ids.iter().filter(|id| !found.rows.contains_key(&rows::decode(id.to_string()))).collect();
    if missing.is_empty() && found.at.is_some() {
        return Ok(found);
    }
    let (reserve, now) =
        (client.prepare_cached(schema::RESERVE).await?, client.prepare_cached(schema::NOW).await?);
    let (reserved, found, now) = join3(
        client.query(&reserve, &[&missing]),
        client.query(&lock, &[&ids]),
        client.query_one(&now, &[]),
    )
    .await;
    reserved?;
    let (mut found, now) = (Locked::read(&found?)?, now?);
    found.at = Some(now.try_get(0)?);
    Ok(found)
}

/// Locks the ends of the logs that are appended to, as far as they are not locked yet.
async fn begin_logs(open: &Open, writes: &Writes, heads: &mut Heads) -> Result<(), Failure> {
    let runs: BTreeSet<_> = writes.log.iter().map(|draft| &*draft.run).collect();
    let new: Vec<_> =
        runs.into_iter().filter(|run| !heads.contains_key(*run)).map(encode).collect();
    if new.is_empty() {
        return Ok(());
    }
    let client = open.client()?;
    let (begin, lock) = (
        client.prepare_cached(schema::BEGIN_LOGS).await?,
        client.prepare_cached(schema::LOCK_LOGS).await?,
    );
    let (begun, locked) = join(client.execute(&begin, &[&new]), client.query(&lock, &[&new])).await;
    begun?;
    for row in locked? {
        heads.insert(rows::text(&row, 0)?, (row.try_get(1)?, row.try_get(2)?));
    }
    Ok(())
}

fn link(writes: &Writes, heads: &mut Heads, linker: &Linker) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::with_capacity(writes.log.len());
    for draft in &writes.log {
        let Some(last) = heads.get_mut(&draft.run) else {
            return Err(Failure::Refused("the end of a log is not locked".into()));
        };
        let entry = linker.link((last.0 > 0).then_some((last.0, &*last.1)), draft);
        *last = (entry.seq, entry.hash.clone());
        entries.push(entry);
    }
    Ok(entries)
}

/// Rows as columns, which is how one statement takes any number of them.
struct RowColumns<'w> {
    ids: Vec<Cow<'w, str>>,
    kinds: Vec<&'static str>,
    runs: Vec<Cow<'w, str>>,
    states: Vec<Cow<'w, str>>,
    created: Vec<Millis>,
    due: Vec<Option<Millis>>,
    docs: Vec<Cow<'w, str>>,
}

impl<'w> RowColumns<'w> {
    fn of(rows: &'w [Row]) -> Self {
        // Of several writes of one row the last one stays.
        let last: BTreeMap<_, _> = rows.iter().map(|row| (&*row.id, row)).collect();
        let rows = || last.values().copied();
        Self {
            ids: rows().map(|row| encode(&row.id)).collect(),
            kinds: rows().map(|row| row.kind.as_str()).collect(),
            runs: rows().map(|row| encode(&row.run)).collect(),
            states: rows().map(|row| encode(&row.state)).collect(),
            created: rows().map(|row| row.created_at).collect(),
            due: rows().map(|row| row.due_at).collect(),
            docs: rows().map(|row| encode(&row.doc)).collect(),
        }
    }
}

/// Entries of logs as columns, and the ends of these logs.
struct LogColumns<'w> {
    runs: Vec<Cow<'w, str>>,
    seqs: Vec<i64>,
    prevs: Vec<&'w str>,
    hashes: Vec<&'w str>,
    bodies: Vec<Cow<'w, str>>,
    end_runs: Vec<Cow<'w, str>>,
    end_seqs: Vec<i64>,
    end_hashes: Vec<&'w str>,
}

impl<'w> LogColumns<'w> {
    fn of(entries: &'w [Entry]) -> Self {
        let ends: BTreeMap<_, _> = entries.iter().map(|entry| (&*entry.run, entry)).collect();
        let ends = || ends.values().copied();
        Self {
            runs: entries.iter().map(|entry| encode(&entry.run)).collect(),
            seqs: entries.iter().map(|entry| entry.seq).collect(),
            prevs: entries.iter().map(|entry| &*entry.prev).collect(),
            hashes: entries.iter().map(|entry| &*entry.hash).collect(),
            bodies: entries.iter().map(|entry| encode(&entry.body)).collect(),
            end_runs: ends().map(|entry| encode(&entry.run)).collect(),
            end_seqs: ends().map(|entry| entry.seq).collect(),
            end_hashes: ends().map(|entry| &*entry.hash).collect(),
        }
    }
}

/// Writes and commits, in one round trip. The inner error is a connection that was lost, so that nobody knows what became
/// of it.
async fn commit(
    open: &Open,
    writes: &Writes,
    entries: &[Entry],
    writer: &String,
) -> Result<Result<(), String>, Failure> {
    let (row, log) = (RowColumns::of(&writes.rows), LogColumns::of(entries));
    let notified: Vec<_> = log.end_runs.iter().filter(|it| it.len() <= LONGEST_NOTIFIED).collect();
    let values: [&(dyn ToSql + Sync); 16] = [
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
    ];
    let client = open.client()?;
    let (write, notify) =
        (client.prepare_cached(schema::WRITE).await?, client.prepare_cached(schema::NOTIFY).await?);
    let (written, committed, told) = join3(
        client.execute(&write, &values),
        client.batch_execute("COMMIT"),
        // Behind the commit: commits that notify wait for each other, with what they write to the disk.
        client.execute(&notify, &[&notified]),
    )
    .await;
    // Whoever waits looks again from time to time.
    drop(told);
    match (written.map_err(Failure::from), committed) {
        (Ok(_), Ok(())) => Ok(Ok(())),
        (Err(Failure::Unreachable(why)), _) => Ok(Err(why)),
        // Refused, and so rolled back.
        (Err(failure), _) => Err(failure),
        (Ok(_), Err(error)) => match Failure::from(error) {
            Failure::Unreachable(why) => Ok(Err(why)),
            failure => Err(failure),
        },
    }
}
