//! The short way of a transaction over one row, a compare-and-swap: read the row without a lock, run the work on it,
//! and write if row and log are unchanged. If they have changed, or the row does not exist yet, nothing was written,
//! and the long way (`transaction`) runs from the start.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;

use deadpool_postgres::{Object, Pool};
use futures::future::{BoxFuture, Either, select};
use tokio_postgres::types::ToSql;

use super::columns::{LogColumns, RowColumns, notified};
use super::connection::ServerPool;
use super::failure::Failure;
use super::rows::{self, encode};
use super::together::Together;
use super::transaction::{Lost, append, outcome};
use super::{connection, schema};
use crate::ledger::{Draft, Entry, Found, Linker, Lookup, Millis, Row, Work, Writes};

/// The longest document that is swapped, in bytes. A longer one goes the long way, and not into a batch.
const LONGEST: usize = 256 << 10;

/// How far the server's clock may be from the time that was read with the row, in milliseconds.
const CLOCK: Millis = 5_000;

/// A row as it was read without a lock, with everything that must be unchanged when it is written.
#[derive(Debug, Clone)]
struct SeenRow {
    found: Found,
    version: String,
    /// The place and the hash of the last entry of the run's log.
    end: (i64, String),
    at: Millis,
}

/// A write of one row and its log entries, on the condition that row and log are still as they were read.
#[derive(Debug)]
struct Swap {
    seen: SeenRow,
    row: Row,
    writes: Writes,
    entries: Vec<Entry>,
    end: (i64, String),
    writer: String,
}

/// The result of a swap that was sent.
#[derive(Debug, Clone)]
enum Swapped {
    Done,
    /// The row or its log had changed, or was locked: nothing was written.
    Not,
    /// The connection was lost, so it is unknown whether the swap was committed. The reason is for errors.
    Unknown(String),
}

impl SeenRow {
    /// The earliest and the latest time of the server's clock at which the swap may be written: at most five seconds
    /// from the time that was read, before a deadline or lease of the row is over, and not after `until` (rule L4).
    fn holds(&self, until: Option<Millis>) -> (Millis, Millis) {
        let due = self.found.row.due_at.filter(|due| *due > self.at).map(|due| due - 1);
        let (from, to) = (self.at.saturating_sub(CLOCK), self.at.saturating_add(CLOCK));
        (from, due.into_iter().chain(until).fold(to, Millis::min))
    }

    /// The swap that makes these writes. `None` if they need the long way: another number of rows than one, a log of
    /// another run, a new requester, a removal, or a long document.
    fn swap(self, writes: Writes, linker: &Linker) -> Option<Swap> {
        let [row] = &writes.rows[..] else { return None };
        let before = &self.found.row;
        // The statements of the short way do not write these columns.
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

/// The batches of the short way: those that read, and those that write.
pub(super) struct ShortWay {
    looks: Arc<Together<String, Result<Option<SeenRow>, Failure>>>,
    swaps: Arc<Together<Arc<Swap>, Result<Swapped, Failure>>>,
}

impl ShortWay {
    pub(super) fn new(pool: &Pool) -> Self {
        Self {
            looks: Together::new(pool.clone(), 2, look),
            // One batch in flight: further swaps gather while the disk writes. Two at a time would each write half as
            // many.
            swaps: Together::new(pool.clone(), 1, swap),
        }
    }

    /// Tries the short way. Returns whether the transaction is done; if not, nothing was written.
    pub(super) async fn swap(
        &self,
        server: &ServerPool,
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
                outcome(server, ids, &lost).await.map(|()| true)
            }
        }
    }
}

/// Reads a batch of rows by their ids, without a lock. `None` for an id without a row.
fn look(pool: Pool, ids: Vec<String>) -> BoxFuture<'static, Vec<Result<Option<SeenRow>, Failure>>> {
    Box::pin(async move {
        match look_once(&pool, &ids).await {
            Ok(seen) => ids.iter().map(|id| Ok(seen.get(id).cloned())).collect(),
            Err(failure) => ids.iter().map(|_| Err(failure.clone())).collect(),
        }
    })
}

async fn look_once(pool: &Pool, ids: &[String]) -> Result<BTreeMap<String, SeenRow>, Failure> {
    let client = connection::checked_out(pool).await?;
    let statement = client.prepare_cached(schema::LOOK).await?;
    let ids: Vec<_> = ids.iter().map(|id| encode(id)).collect();
    let mut all = BTreeMap::new();
    for found in client.query(&statement, &[&ids]).await? {
        let end = (found.try_get(9)?, found.try_get(10)?);
        let (at, version) = (found.try_get(11)?, found.try_get(12)?);
        let found = rows::found(&found)?;
        all.insert(found.row.id.clone(), SeenRow { found, version, end, at });
    }
    Ok(all)
}

/// Sends a batch of swaps in one statement; each is written or not by itself.
fn swap(pool: Pool, swaps: Vec<Arc<Swap>>) -> BoxFuture<'static, Vec<Result<Swapped, Failure>>> {
    Box::pin(async move {
        // Only the first swap of each run, as each of them would append to the same end of the log. The others go the
        // long way.
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
            // A refused swap fails the whole statement. All go the long way, where only that one fails.
            Err(_) => Vec::new(),
        };
        let is_done = |swap: &Swap| done.contains(&swap.writer);
        let told = |swap: &Arc<Swap>| if is_done(swap) { Swapped::Done } else { Swapped::Not };
        swaps.iter().map(|swap| Ok(told(swap))).collect()
    })
}

/// The writers of the swaps that were committed. The inner error says that the connection was lost, so that it is
/// unknown which ones were.
async fn swap_once(pool: &Pool, swaps: Vec<&Swap>) -> Result<Result<Vec<String>, String>, Failure> {
    let client = connection::checked_out(pool).await?;
    let runs: Vec<_> = swaps.iter().map(|swap| encode(&swap.row.run)).collect();
    let notified = notified(&runs);
    // Prepared before the first is sent, as a round trip in between would change the order in which they are sent.
    for statement in [schema::SWAP_ONE, schema::SWAP] {
        client.prepare_cached(statement).await?;
    }
    let notify = client.prepare_cached(schema::NOTIFY).await?;
    let told: [&(dyn ToSql + Sync); 1] = [&notified];
    let (written, told) = (write(&client, swaps), client.execute(&notify, &told));
    // Notified right behind the commit and not within it, as PostgreSQL lets commits that notify wait for each other's
    // write to the disk. Its answer is not awaited: if a notification is lost, the waiting task finds the change when
    // it polls.
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
    // In the order in which `RowColumns` sorts the rows.
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
