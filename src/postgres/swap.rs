//! The short way of a transaction over one row: look without a lock, let the ledger say what to write, write if the row
//! is still as it was. Where it is not, or not there yet, nothing was written, and the long way begins from the start.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use futures::future::{BoxFuture, Either, select};
use tokio_postgres::types::ToSql;

use super::columns::{LogColumns, RowColumns, notified};
use super::failure::Failure;
use super::rows::{self, encode};
use super::transaction::{Lost, append};
use super::{PostgresStore, connection, schema};
use crate::ledger::{Draft, Entry, Found, Linker, Lookup, Millis, Row, Work, Writes};

/// A longer document goes the long way, alone.
const LONGEST: usize = 256 << 10;

/// How far the server's clock may be from what it was, in milliseconds.
const CLOCK: Millis = 5_000;

/// A row as it was seen.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    found: Found,
    version: String,
    /// The last entry of its run's log.
    end: (i64, String),
    at: Millis,
}

/// What becomes of a row, if it still is what was seen.
#[derive(Debug)]
pub(super) struct Swap {
    seen: Seen,
    row: Row,
    writes: Writes,
    entries: Vec<Entry>,
    end: (i64, String),
    writer: String,
}

/// What became of a swap.
#[derive(Debug, Clone)]
pub(super) enum Swapped {
    Done,
    /// It was not what was seen any more.
    Not,
    /// The connection was lost, and nobody knows.
    Unknown(String),
}

impl Seen {
    /// When the server may still write what was decided: its clock is no more than five seconds off, what becomes of the
    /// row by itself has not become of it meanwhile, and what was decided still holds (rule L4).
    fn holds(&self, until: Option<Millis>) -> (Millis, Millis) {
        let due = self.found.row.due_at.filter(|due| *due > self.at).map(|due| due - 1);
        let (from, to) = (self.at.saturating_sub(CLOCK), self.at.saturating_add(CLOCK));
        (from, due.into_iter().chain(until).fold(to, Millis::min))
    }

    /// `None` for what needs the long way.
    fn swap(self, writes: Writes, linker: &Linker) -> Option<Swap> {
        let [row] = &writes.rows[..] else { return None };
        let before = &self.found.row;
        // What a statement of the short way does not write.
        let same =
            (&row.id, &row.run, &row.requester) == (&before.id, &before.run, &before.requester);
        let about = |draft: &Draft| draft.run == row.run && draft.row.as_ref() == Some(&row.id);
        let plain = writes.drop.is_none() && writes.log.iter().all(about);
        if !same || !plain || row.doc.len() > LONGEST {
            return None;
        }
        let (row, mut end) = (row.clone(), self.end.clone());
        let entries = writes.log.iter().map(|draft| append(&mut end, draft, linker)).collect();
        let writer = uuid::Uuid::now_v7().to_string();
        Some(Swap { seen: self, row, writes, entries, end, writer })
    }
}

impl Swap {
    fn holds(&self) -> (Millis, Millis) {
        self.seen.holds(self.writes.until)
    }
}

impl PostgresStore {
    /// Whether it is done. Otherwise nothing was written.
    pub(super) async fn swap(
        &self,
        ids: &[String],
        linker: &Linker,
        work: &mut Work<'_>,
    ) -> Result<bool, Failure> {
        let [id] = ids else { return Ok(false) };
        let ended = "the runtime that had asked the server has ended";
        let looked = self.looks.ask(id.clone()).await;
        let looked = looked.ok_or_else(|| Failure::Unreachable(ended.into()))?;
        let Some(seen) = looked? else { return Ok(false) };
        let writes = work(seen.at, vec![Lookup::Found(seen.found.clone())]);
        if writes.rows.is_empty() && writes.log.is_empty() {
            return Ok(true);
        }
        let Some(swap) = seen.swap(writes, linker).map(Arc::new) else { return Ok(false) };
        let swapped = self.swaps.ask(swap.clone()).await;
        match swapped.unwrap_or_else(|| Ok(Swapped::Unknown(ended.into())))? {
            Swapped::Done => Ok(true),
            Swapped::Not => Ok(false),
            Swapped::Unknown(why) => {
                let Swap { seen, writes, entries, writer, .. } = &*swap;
                let before = BTreeMap::from([(id.clone(), seen.found.clone())]);
                let (writes, entries, writer) = (writes.clone(), entries.clone(), writer.clone());
                let lost = Lost { before, writes, entries, writer, why };
                self.outcome(ids, &lost).await.map(|()| true)
            }
        }
    }
}

/// Looks at the rows of these ids. `None` for those that are not there.
pub(super) fn look(
    pool: Pool,
    ids: Vec<String>,
) -> BoxFuture<'static, Vec<Result<Option<Seen>, Failure>>> {
    Box::pin(async move {
        match look_once(&pool, &ids).await {
            Ok(seen) => ids.iter().map(|id| Ok(seen.get(id).cloned())).collect(),
            Err(failure) => ids.iter().map(|_| Err(failure.clone())).collect(),
        }
    })
}

async fn look_once(pool: &Pool, ids: &[String]) -> Result<BTreeMap<String, Seen>, Failure> {
    let client = connection::checked_out(pool).await?;
    let statement = client.prepare_cached(schema::LOOK).await?;
    let ids: Vec<_> = ids.iter().map(|id| encode(id)).collect();
    let mut all = BTreeMap::new();
    for found in client.query(&statement, &[&ids]).await? {
        let end = (found.try_get(9)?, found.try_get(10)?);
        let (at, version) = (found.try_get(11)?, found.try_get(12)?);
        let found = rows::found(&found)?;
        all.insert(found.row.id.clone(), Seen { found, version, end, at });
    }
    Ok(all)
}

/// Swaps what still is as it was seen.
pub(super) fn swap(
    pool: Pool,
    swaps: Vec<Arc<Swap>>,
) -> BoxFuture<'static, Vec<Result<Swapped, Failure>>> {
    Box::pin(async move {
        // One of each run, as a log has one end.
        let first: BTreeMap<_, _> =
            swaps.iter().rev().map(|swap| (&*swap.row.run, &**swap)).collect();
        let done = match swap_once(&pool, first.into_values().collect()).await {
            Ok(Ok(done)) => done,
            Ok(Err(why)) => {
                return swaps.iter().map(|_| Ok(Swapped::Unknown(why.clone()))).collect();
            }
            Err(failure @ Failure::Unreachable(_)) => {
                return swaps.iter().map(|_| Err(failure.clone())).collect();
            }
            // One of them is refused: each finds out on the long way whether it is.
            Err(_) => Vec::new(),
        };
        let is_done = |swap: &Swap| done.contains(&swap.writer);
        let told = |swap: &Arc<Swap>| if is_done(swap) { Swapped::Done } else { Swapped::Not };
        swaps.iter().map(|swap| Ok(told(swap))).collect()
    })
}

/// The writers of what was swapped. The inner error is a connection that was lost, so that nobody knows.
async fn swap_once(pool: &Pool, swaps: Vec<&Swap>) -> Result<Result<Vec<String>, String>, Failure> {
    let client = connection::checked_out(pool).await?;
    let runs: Vec<_> = swaps.iter().map(|swap| encode(&swap.row.run)).collect();
    let notified = notified(&runs);
    // All are prepared before the first is sent, so that they are sent in this order.
    for statement in [schema::SWAP_ONE, schema::SWAP] {
        client.prepare_cached(statement).await?;
    }
    let notify = client.prepare_cached(schema::NOTIFY).await?;
    let told: [&(dyn ToSql + Sync); 1] = [&notified];
    let (written, told) = (write(&client, swaps), client.execute(&notify, &told));
    // Right behind the commit: commits that notify wait for each other, with what they write to the disk. Nobody waits
    // for the answer, as whoever waits for a run looks again from time to time.
    let written = match select(pin!(written), pin!(told)).await {
        Either::Left((written, _)) => written,
        Either::Right((_, written)) => written.await,
    };
    match written {
        Ok(done) => Ok(Ok(done)),
        Err(Failure::Unreachable(why)) => Ok(Err(why)),
        Err(failure) => Err(failure),
    }
}

async fn write(client: &Object, mut swaps: Vec<&Swap>) -> Result<Vec<String>, Failure> {
    if let [swap] = swaps[..]
        && let [entry] = &swap.entries[..]
    {
        return write_one(client, swap, entry).await;
    }
    // As the rows are.
    swaps.sort_by_key(|swap| &swap.row.id);
    let row = RowColumns::of(swaps.iter().map(|swap| &swap.row));
    let log = LogColumns::of(swaps.iter().flat_map(|swap| &swap.entries));
    let text = |get: fn(&Swap) -> &str| swaps.iter().map(|swap| get(swap)).collect::<Vec<_>>();
    let number = |get: fn(&Swap) -> i64| swaps.iter().map(|swap| get(swap)).collect::<Vec<_>>();
    let writers = swaps.iter().flat_map(|it| it.entries.iter().map(|_| &*it.writer));
    let values: [&(dyn ToSql + Sync); 21] = [
        &row.ids,
        &row.kinds,
        &row.runs,
        &row.states,
        &row.created,
        &row.due,
        &row.docs,
        &text(|it| &it.seen.version),
        &number(|it| it.holds().0),
        &number(|it| it.seen.end.0),
        &text(|it| &it.seen.end.1),
        &number(|it| it.end.0),
        &text(|it| &it.end.1),
        &text(|it| &it.writer),
        &number(|it| it.holds().1),
        &log.runs,
        &log.seqs,
        &log.prevs,
        &log.hashes,
        &log.bodies,
        &writers.collect::<Vec<_>>(),
    ];
    let statement = client.prepare_cached(schema::SWAP).await?;
    let done = client.query(&statement, &values).await?;
    Ok(done.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

async fn write_one(client: &Object, swap: &Swap, entry: &Entry) -> Result<Vec<String>, Failure> {
    let Swap { seen, row, end, writer, .. } = swap;
    let kind = row.kind.as_str();
    let (from, to) = swap.holds();
    let values: [&(dyn ToSql + Sync); 16] = [
        &encode(&row.id),
        &kind,
        &encode(&row.run),
        &encode(&row.state),
        &row.created_at,
        &row.due_at,
        &encode(&row.doc),
        &seen.version,
        &from,
        &seen.end.0,
        &seen.end.1,
        &end.0,
        &end.1,
        &encode(&entry.body),
        writer,
        &to,
    ];
    let statement = client.prepare_cached(schema::SWAP_ONE).await?;
    let done = client.query(&statement, &values).await?;
    Ok(done.iter().map(|_| writer.clone()).collect())
}
