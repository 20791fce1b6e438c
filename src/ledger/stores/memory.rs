//! A store in memory: for tests, and for programs whose approvals need not outlive them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Bound;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, ready};

use super::linker::{Linker, Unlinked};
use super::store::{
    Dropped, Entry, Filter, Found, Lookup, Row, RowKind, Store, StoreError, Work, Writes,
};
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::AskState;

/// A store of rows and logs in memory. Cheap to clone; all clones are one store.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::ledger::{Ask, AskState, Ledger, MemoryStore};
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicI64, Ordering};
/// use std::time::Duration;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let time = Arc::new(AtomicI64::new(0));
/// let clock = Arc::clone(&time);
/// let ledger = Ledger::new(MemoryStore::with_clock(move || clock.load(Ordering::Relaxed)));
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "rm").with_expires_in(Duration::from_secs(60))).await?;
///
/// time.store(60_000, Ordering::Relaxed); // a minute later
/// assert_eq!(ledger.expire().await?.changed, [ask.ask.id()]);
/// assert_eq!(ledger.get(ask.ask.id()).await?.unwrap().state, AskState::Expired);
/// # let _ = Answer::Approve { args: None };
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct MemoryStore {
    rows: Arc<Mutex<Rows>>,
    clock: Arc<dyn Fn() -> Millis + Send + Sync>,
    changes: Arc<tokio::sync::Notify>,
}

#[derive(Default)]
struct Rows {
    rows: BTreeMap<String, Row>,
    logs: BTreeMap<String, Vec<Entry>>,
    /// The last entry about each row.
    last: BTreeMap<String, Entry>,
}

impl Rows {
    fn find(&self, id: &str) -> Lookup {
        match self.rows.get(id) {
            Some(row) => Lookup::Found(self.found(row.clone())),
            None if self.last.contains_key(id) => Lookup::Removed { id: id.to_owned() },
            None => Lookup::Nothing,
        }
    }

    fn found(&self, row: Row) -> Found {
        let entry = self.last.get(&row.id).cloned();
        Found { row, entry }
    }

    /// Returns `true` if a log still ends with the entry that it ended with when the drop was prepared.
    fn ends_at(&self, drop: &Dropped) -> bool {
        let last = self.logs.get(&drop.run).and_then(|log| log.last());
        last.is_some_and(|last| (last.seq, &last.hash) == (drop.end.0, &drop.end.1))
    }

    /// The order is that of every store. A drop is refused first, if the log has grown since it was prepared. Then
    /// rows and entries are written. The removal comes last: the entry that records it is appended to the log that it
    /// shortens.
    fn write(&mut self, writes: Writes, linker: &Linker) -> Result<(), Unlinked> {
        if writes.drop.as_ref().is_some_and(|drop| !self.ends_at(drop)) {
            return Ok(());
        }
        let last = |run: &str| Ok(self.logs.get(run).and_then(|log| log.last()).cloned());
        let entries = linker.link_all::<Unlinked>(&writes.log, last)?;
        for row in writes.drop.iter().flat_map(|drop| &drop.rows) {
            self.last.remove(row);
        }
        for row in writes.rows {
            self.rows.insert(row.id.clone(), row);
        }
        for entry in entries {
            if let Some(row) = entry.about() {
                self.last.insert(row, entry.clone());
            }
            self.logs.entry(entry.run.clone()).or_default().push(entry);
        }
        if let Some(drop) = writes.drop {
            for row in &drop.rows {
                self.rows.remove(row);
            }
            if let Some(log) = self.logs.get_mut(&drop.run) {
                log.retain(|entry| entry.seq > drop.end.0);
                log.shrink_to_fit();
            }
        }
        Ok(())
    }
}

impl MemoryStore {
    /// An empty store, with the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(now)
    }

    /// An empty store with a clock of its own, in milliseconds since 1970, for tests of deadlines and leases.
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> Millis + Send + Sync + 'static) -> Self {
        Self { rows: Arc::default(), clock: Arc::new(clock), changes: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of the system's clock, in milliseconds since 1970.
pub(crate) fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(since.as_millis()).unwrap_or(Millis::MAX)
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

fn fits(row: &Row, filter: &Filter) -> bool {
    filter.kind.is_none_or(|kind| kind == row.kind)
        && filter.run.as_ref().is_none_or(|run| *run == row.run)
        && (filter.states.is_empty() || filter.states.contains(&row.state))
}

impl Store for MemoryStore {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let mut all = self.lock();
        let found = ids.iter().map(|id| all.find(id)).collect();
        let writes = work((self.clock)(), found);
        let written = all.write(writes, linker).map_err(|error| StoreError::new("write", error));
        self.changes.notify_waiters();
        Box::pin(ready(written))
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        Box::pin(ready(Ok(self.lock().find(id))))
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>> {
        let all = self.lock();
        let mut rows: Vec<_> = all.rows.values().filter(|row| fits(row, filter)).cloned().collect();
        rows.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        rows.truncate(filter.limit.map_or(usize::MAX, |limit| limit as usize));
        Box::pin(ready(Ok(rows.into_iter().map(|row| all.found(row)).collect())))
    }

    fn hidden_asks(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        let all = self.lock();
        let is_hidden =
            |row: &&Row| row.kind != RowKind::Ask && RowKind::of_id(&row.id) == RowKind::Ask;
        let ids = all.rows.values().filter(is_hidden).map(|row| row.id.clone());
        Box::pin(ready(Ok(ids.take(limit as usize).collect())))
    }

    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        let now = (self.clock)();
        let all = self.lock();
        let due = |row: &Row| row.due_at.filter(|due| row.kind == RowKind::Ask && *due <= now);
        let mut due: Vec<_> = all.rows.values().filter_map(|row| Some((due(row)?, row))).collect();
        due.sort_by_key(|(due, _)| *due);
        let ids = due.into_iter().take(limit as usize).map(|(_, row)| row.id.clone()).collect();
        Box::pin(ready(Ok(ids)))
    }

    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        let now = (self.clock)();
        let all = self.lock();
        let mut counts = BTreeMap::<&str, u64>::new();
        let is_pending = |row: &&Row| {
            let pending = row.state == AskState::Pending.as_str();
            row.kind == RowKind::Ask && pending && row.due_at.is_none_or(|due| due > now)
        };
        for row in all.rows.values().filter(is_pending) {
            *counts.entry(&row.requester).or_default() += 1;
        }
        let counts = counts.into_iter().map(|(who, count)| (who.to_owned(), count)).collect();
        Box::pin(ready(Ok(counts)))
    }

    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let all = self.lock();
        let log = all.logs.get(run).into_iter().flatten().filter(|entry| entry.seq > after);
        Box::pin(ready(Ok(log.take(limit as usize).cloned().collect())))
    }

    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let all = self.lock();
        let runs = all.logs.keys().chain(all.rows.values().map(|row| &row.run));
        let runs: BTreeSet<_> = runs.filter(|run| run.as_str() > after).collect();
        let runs = runs.into_iter().take(limit as usize);
        Box::pin(ready(Ok(runs.cloned().collect())))
    }

    fn heads<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let all = self.lock();
        let behind = (Bound::Excluded(after), Bound::Unbounded);
        let heads = all.logs.range::<str, _>(behind).filter_map(|(_, log)| log.last());
        Box::pin(ready(Ok(heads.take(limit as usize).cloned().collect())))
    }

    fn wait_for_change<'a>(
        &'a self,
        run: &'a str,
        after: i64,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move {
            loop {
                // Registered before the log is read, so that no entry between reading and waiting is missed.
                let mut changed = pin!(self.changes.notified());
                changed.as_mut().enable();
                let last = self.lock().logs.get(run).and_then(|log| log.last()).map(|it| it.seq);
                match last.unwrap_or(0) {
                    last if last > after => return Ok(last),
                    _ => changed.await,
                }
            }
        })
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} rows)", self.lock().rows.len())
    }
}
