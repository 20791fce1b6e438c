//! The [`Store`] trait: rows by id, transactions over a few rows, and an append-only log for each run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

pub(in crate::ledger) use super::entry::{Draft, Entry};
use super::linker::{Linker, Unlinked};
use crate::error::BoxError;
use crate::ledger::asks::ask::Millis;
use crate::ledger::asks::record::AskState;

/// One row: a JSON document (of an ask, a run, a grant, a counter, or the store's key), with the columns that lists filter
/// and sort by.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    /// The unique key of the row.
    pub id: String,
    /// The kind of the row: an ask, a run, a grant, a counter, or the store's key.
    pub kind: RowKind,
    /// The run it belongs to.
    pub run: String,
    /// The state of the ask ([`AskState::as_str`]), of the run (`waiting`, `over` or `chat`), or of
    /// the grant: a standing one has its key, by which it is found.
    pub state: String,
    /// The time when it was first written, by the store's clock.
    pub created_at: Millis,
    /// The time of the next change that time alone makes to an ask ([`AskRecord::due_at`](crate::ledger::AskRecord::due_at));
    /// `None` for runs.
    pub due_at: Option<Millis>,
    /// The requester of an ask: at most the first 512 bytes of its [`principal`](crate::ledger::Ask::principal). Empty for asks
    /// without a principal, and for runs.
    pub requester: String,
    /// The complete ask or run, as JSON text. A store keeps it byte for byte.
    pub doc: String,
}

/// A row, with the last log entry about it.
///
/// Read the row and its last entry in one snapshot. The ledger compares the digest in the entry with the row, and two
/// reads could see a change between them and take it for tampering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The row as it is stored.
    pub row: Row,
    /// The last log entry about the row ([`Entry::about`]), read in the same snapshot. The ledger refuses an entry that
    /// was not made with its key, and a row that does not match the digest in it (rule L8).
    pub entry: Option<Entry>,
}

/// The result of looking an id up, read in one snapshot.
///
/// Exhaustive on purpose: a row that was removed must not be taken for one that never was.
///
/// ```
/// use countersign::ledger::{Lookup, MemoryStore, Store as _};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// assert_eq!(MemoryStore::new().get("no such row").await?, Lookup::Nothing);
/// # Ok::<(), countersign::ledger::StoreError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// There is a row with this id.
    Found(Found),
    /// There is no row, but the log has an entry about it ([`Entry::about`]). A ledger removes rows together with their
    /// entries ([`Dropped`]), so something else has removed this row. The ledger does not create it anew (rule L8).
    Removed {
        /// The id that was looked up.
        id: String,
    },
    /// There is neither a row nor a log entry about one.
    Nothing,
}

impl Lookup {
    /// The row, if there is one.
    #[must_use]
    pub fn found(self) -> Option<Found> {
        match self {
            Self::Found(found) => Some(found),
            Self::Removed { .. } | Self::Nothing => None,
        }
    }
}

/// The id of the row about the store's audit key, which is also the name of its log.
pub(in crate::ledger) const KEY: &str = "countersign/key";

/// The kind of a row: an ask, a run, a grant, a counter, or what the store says about its key.
///
/// Exhaustive on purpose: a store has to keep rows of every kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// The row is an ask.
    Ask,
    /// The row is a run or a chat.
    Run,
    /// The row is a grant.
    Grant,
    /// The row is a counter of calls.
    Counter,
    /// The row says whether the store has an audit key, and which one. There is one such row.
    Key,
}

impl RowKind {
    /// All kinds, which a filter without a kind selects.
    pub const ALL: [Self; 5] = [Self::Ask, Self::Run, Self::Grant, Self::Counter, Self::Key];

    /// The kind of the row with this id. The id says it, and not the column beside it: a row whose column says another
    /// kind was changed, and is refused (rule L8).
    ///
    /// ```
    /// use countersign::ledger::{Ask, RowKind};
    /// assert_eq!(RowKind::of_id("run:run-1"), RowKind::Run);
    /// assert_eq!(RowKind::of_id(Ask::new("run-1", "root/c1", "rm").id()), RowKind::Ask);
    /// ```
    #[must_use]
    pub fn of_id(id: &str) -> Self {
        match id.split_once(':') {
            Some(("run", _)) => Self::Run,
            Some(("grant", _)) => Self::Grant,
            Some(("counter", _)) => Self::Counter,
            None if id == KEY => Self::Key,
            _ => Self::Ask,
        }
    }

    /// The name of the kind, as stores write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Run => "run",
            Self::Grant => "grant",
            Self::Counter => "counter",
            Self::Key => "key",
        }
    }

    /// Reads a name that [`as_str`](Self::as_str) gave; `None` for any other text.
    ///
    /// ```
    /// use countersign::ledger::RowKind;
    /// for kind in RowKind::ALL {
    ///     assert_eq!(RowKind::parse(kind.as_str()), Some(kind));
    /// }
    /// assert_eq!(RowKind::parse("other"), None);
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The writes of one transaction.
///
/// A store makes all of them or none. The order within is: the check of `drop`, rows, entries, removal. Entries of one
/// run are linked in the order of the list, each to the one before it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// Rows to insert, or to replace by their ids.
    pub rows: Vec<Row>,
    /// Entries to append to logs, in this order.
    pub log: Vec<Draft>,
    /// Rows and entries to remove, after the other writes.
    pub drop: Option<Dropped>,
    /// The last time, by the store's clock, at which these writes may be made; `None` means any time. A store that can
    /// write only later than that runs the work again with the new time.
    pub until: Option<Millis>,
}

/// Rows that are removed, with the part of their run's log that is about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The run that the rows belong to.
    pub run: String,
    /// The place and the hash of the entry that the log ended with when it was read: this entry and all before it are
    /// removed. If the log ends elsewhere when the transaction begins, the whole transaction writes nothing.
    pub end: (i64, String),
    /// The ids of the rows to remove.
    pub rows: Vec<String>,
}

/// The logic of a transaction: gets the store's time and a [`Lookup`] for each id of the transaction, in their
/// order, and returns what to write. A store that has to repeat the transaction calls it again; the writes of the
/// earlier call are then discarded.
///
/// A store may call it several times for one transaction, with what is true each time, and only the writes of the
/// last call count. So it must not send, print or count anything.
pub type Work<'w> = dyn FnMut(Millis, Vec<Lookup>) -> Writes + Send + 'w;

/// The rows to list, newest first.
///
/// ```
/// use countersign::ledger::{Filter, RowKind};
/// let pending = Filter { kind: Some(RowKind::Ask), states: vec!["pending".into()], limit: Some(50), ..Filter::default() };
/// assert_eq!(pending.run, None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only rows of this kind; `None` means all.
    pub kind: Option<RowKind>,
    /// Only rows in one of these states; empty means all.
    pub states: Vec<String>,
    /// Only rows of this run; `None` means all.
    pub run: Option<String>,
    /// The largest number of rows to list; `None` means no limit.
    pub limit: Option<u32>,
}

/// A store of a ledger: its rows and its log.
///
/// Transactions over the same row are serialized: the later one reads what the earlier one wrote. Transactions are
/// atomic, and their writes are durable when the process is killed. Logs have no gaps: entry `n + 1` of a run is
/// written after entry `n`, linked to it by [`Linker`].
///
/// # What an implementation has to get right
///
/// - **Serialisation.** Two transactions over one id must not both read the old row. Ids that do not exist yet count:
///   parking the same ask twice at the same time must make one row, which a lock on rows alone does not give.
/// - **The clock.** `now` is the store's clock, read within the transaction, so that all processes compare deadlines
///   with one clock (rule L4).
/// - **The last entry.** [`Found::entry`] is read in the same snapshot as the row. Read a moment later, it may be
///   newer, and a row that was not changed would be refused as changed. It is found by the bodies of entries
///   ([`Entry::about`]): a column beside them could be changed without changing a hash.
/// - **Linking.** A new entry is linked to the last one as it is in the log ([`Linker::link_all`]). Where that is
///   refused, nothing is written, and [`Unlinked`] is the source of the error.
/// - **Removed rows.** An id without a row and with an entry is [`Lookup::Removed`], never [`Lookup::Nothing`].
/// - **The store's key.** The row of kind [`RowKind::Key`] is read by every transaction and written by almost none: a store
///   that locks rows lets any number of transactions read it at the same time.
/// - **Bytes.** [`Row::doc`] comes back byte for byte. A column type that reorders keys would change its digest.
///
/// With the feature `testing`, `testing::ledger_contract` checks an implementation; every store of this crate passes
/// it.
pub trait Store: Send + Sync + 'static {
    /// Looks these ids up, calls `work`, and makes the writes that it returns, in one transaction.
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Looks one id up, without a transaction.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>>;

    /// The rows that match the filter, newest first.
    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>>;

    /// The ids of at most `limit` rows that are asks by their [ids](RowKind::of_id) and have another kind: something else
    /// than a ledger has changed them, and no list of asks finds them. The default implementation reads all rows.
    fn hidden_asks(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let rows = self.list(&Filter::default()).await?.into_iter().map(|found| found.row);
            let is_hidden =
                |row: &Row| row.kind != RowKind::Ask && RowKind::of_id(&row.id) == RowKind::Ask;
            let ids = rows.filter(is_hidden).map(|row| row.id);
            Ok(ids.take(limit as usize).collect())
        })
    }

    /// The ids of at most `limit` asks whose [`due_at`](Row::due_at) has passed by the store's clock, earliest first.
    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// The requesters of pending asks, in any order, each with the number of their asks that have not expired by the
    /// store's clock. The default implementation reads all pending asks.
    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        Box::pin(async move {
            let mut time = Millis::MIN;
            let mut look = |now, _| {
                time = now;
                Writes::default()
            };
            self.transact(&[], &Linker::default(), &mut look).await?;
            let states = vec![AskState::Pending.as_str().to_owned()];
            let filter = Filter { kind: Some(RowKind::Ask), states, run: None, limit: None };
            let mut counts = BTreeMap::new();
            for Found { row, .. } in self.list(&filter).await? {
                if row.due_at.is_none_or(|due| due > time) {
                    *counts.entry(row.requester).or_default() += 1;
                }
            }
            Ok(counts.into_iter().collect())
        })
    }

    /// At most `limit` entries of the log of a run, in order, from the first one behind the place `after`.
    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>>;

    /// At most `limit` ids of runs that have a log or rows, in the order of their bytes, from the first one behind
    /// `after`. Runs with rows and without a log are included, so that [`Ledger::verify`](crate::ledger::Ledger::verify) finds
    /// rows that something else than a ledger has inserted.
    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// The last entries of at most `limit` logs, in the order of the bytes of their runs, from the first run behind
    /// `after`; empty when no log is left. The default implementation reads the logs.
    fn heads<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(async move {
            let (mut heads, mut after) = (Vec::new(), after.to_owned());
            while heads.len() < limit as usize {
                let Some(run) = self.logs(&after, 1).await?.pop() else { break };
                let mut head: Option<Entry> = None;
                while let Some(entry) =
                    self.log(&run, head.as_ref().map_or(0, |it| it.seq), 512).await?.pop()
                {
                    head = Some(entry);
                }
                heads.extend(head);
                after = run;
            }
            Ok(heads)
        })
    }

    /// Waits until the log of a run has an entry behind the place `after`, and returns the place of its last entry.
    /// With `-1` it returns at once, with 0 for a run without a log. A store that gets notifications wakes at once; the
    /// default implementation polls the log ten times a second.
    fn wait_for_change<'a>(
        &'a self,
        run: &'a str,
        after: i64,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(async move {
            let mut last = after.max(0);
            loop {
                while let Some(entry) = self.log(run, last, 512).await?.last() {
                    last = entry.seq;
                }
                if last > after {
                    return Ok(last);
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        })
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        (**self).transact(ids, linker, work)
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        (**self).get(id)
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>> {
        (**self).list(filter)
    }

    fn hidden_asks(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        (**self).hidden_asks(limit)
    }

    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        (**self).due(limit)
    }

    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        (**self).requesters()
    }

    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        (**self).log(run, after, limit)
    }

    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        (**self).logs(after, limit)
    }

    fn heads<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        (**self).heads(after, limit)
    }

    fn wait_for_change<'a>(
        &'a self,
        run: &'a str,
        after: i64,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        (**self).wait_for_change(run, after)
    }
}

/// The error of a store that could not be reached, read or written.
///
/// ```
/// use countersign::ledger::{LedgerError, StoreError};
/// use std::error::Error;
///
/// let error = StoreError::new("be reached", "connection refused");
/// assert_eq!(error.to_string(), "the store could not be reached");
/// assert_eq!(error.source().unwrap().to_string(), "connection refused");
/// assert!(matches!(LedgerError::from(error), LedgerError::Store(_)));
/// ```
#[derive(Debug, thiserror::Error)]
#[error("the store could not {what}")]
pub struct StoreError {
    what: String,
    #[source]
    source: BoxError,
}

impl StoreError {
    /// An error that reads "the store could not {what}", with its source.
    pub fn new(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self { what: what.into(), source: source.into() }
    }

    /// The log that could not be appended to, if that is the reason.
    pub(in crate::ledger) fn unlinked(&self) -> Option<&Unlinked> {
        self.source.downcast_ref()
    }
}

impl fmt::Debug for Row {
    /// Names, not values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
