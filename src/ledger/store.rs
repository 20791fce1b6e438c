//! What a ledger needs of a store: rows by id, transactions over a few of them, and an appended log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

use super::ask::Millis;
use super::record::AskState;
use crate::error::BoxError;

/// One row: an ask or a run, as JSON, and what lists go by.
#[derive(Clone, PartialEq, Eq)]
pub struct Row {
    /// Its key.
    pub id: String,
    /// Whether it is an ask or a run.
    pub kind: RowKind,
    /// The run it belongs to.
    pub run: String,
    /// Where it stands.
    pub state: String,
    /// When it was first written, by the store's clock.
    pub created_at: Millis,
    /// When something becomes of it by itself.
    pub due_at: Option<Millis>,
    /// Who wants an ask: its [`principal`](super::Ask::principal), or the first 512 bytes of it. Empty where it does not
    /// say, and for runs.
    pub requester: String,
    /// The whole of it, as JSON.
    pub doc: String,
}

/// A row as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The row.
    pub row: Row,
    /// The body of the last entry about it ([`Draft::row`]), read in the same snapshot. The ledger refuses a row that is
    /// not what this entry says (rule L8).
    pub entry: Option<String>,
}

/// What there is under an id, read in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// A row.
    Found(Found),
    /// No row, though the log has an entry about it ([`Draft::row`]). A ledger removes rows with their entries
    /// ([`Dropped`]), so that something else has removed this one: the ledger refuses to make it anew (rule L8).
    Removed {
        /// The id.
        id: String,
    },
    /// Neither a row nor an entry.
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

/// What a row holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// An ask.
    Ask,
    /// A suspended run.
    Run,
}

impl RowKind {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Run => "run",
        }
    }

    /// As it was written.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ask, Self::Run].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// What happened to a row, before it is linked into the log of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    /// Whose log.
    pub run: String,
    /// The id of the row that it is about; none when it is about no row, as in a checkpoint.
    pub row: Option<String>,
    /// What happened, as JSON.
    pub body: Value,
}

/// One link of the log of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Whose log.
    pub run: String,
    /// Its place, from 1.
    pub seq: i64,
    /// The hash of the entry before it; empty for the first.
    pub prev: String,
    /// The hash of run, place, the hash before, and the body.
    pub hash: String,
    /// What happened, as canonical JSON text.
    pub body: String,
}

/// What a transaction writes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Writes {
    /// Rows, new or in place of the ones that were read.
    pub rows: Vec<Row>,
    /// What is appended to logs, in this order.
    pub log: Vec<Draft>,
    /// What is removed after that.
    pub drop: Option<Dropped>,
    /// When this may still be written, by the store's clock; at any time when there is none. A store that writes some time
    /// after it has read does not write later than that: it runs the work again.
    pub until: Option<Millis>,
}

/// Rows that are removed, with the part of their run's log that is about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The run.
    pub run: String,
    /// The last entry of its log, by its place and hash: this one and the ones before it are removed. When the log no
    /// longer ends there, the whole transaction writes nothing.
    pub end: (i64, String),
    /// The ids of the rows.
    pub rows: Vec<String>,
}

/// What a transaction does: given the store's time and what there is under each of its ids, in order, it says what to
/// write. It may be run again, when the store has to repeat the transaction; nothing of a run that is repeated stays.
pub type Work<'w> = dyn FnMut(Millis, Vec<Lookup>) -> Writes + Send + 'w;

/// Which rows to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Of this kind.
    pub kind: Option<RowKind>,
    /// In one of these states; all when empty.
    pub states: Vec<String>,
    /// Of this run.
    pub run: Option<String>,
    /// So many at most.
    pub limit: Option<u32>,
}

/// Where a ledger keeps its rows and its log.
///
/// Two transactions over the same row never interleave: the later one reads what the earlier one wrote. What a
/// transaction writes is there as a whole or not at all, and stays there when the process is killed. Logs have no gaps:
/// entry `n + 1` of a run is written after entry `n`, linked to it by [`Linker`].
pub trait Store: Send + Sync + 'static {
    /// Reads the rows of these ids and writes what `work` says, in one transaction.
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// What there is under this id.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>>;

    /// The rows that fit, newest first.
    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>>;

    /// The ids of asks whose time is over by the store's clock, the longest over first, so many at most.
    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Each requester of pending asks, and how many of theirs there are whose time is not over by the store's clock, in
    /// any order. Without this method, the pending asks are read.
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

    /// The log of a run behind this place, in order, so many at most.
    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>>;

    /// The runs that have a log or rows, in the order of their bytes, behind this one, so many at most. A run with rows
    /// and no log is what somebody has smuggled in.
    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>>;

    /// The last entry of each log of the runs behind this one, in the order of the bytes of their runs, so many at most;
    /// none when there is no log behind it. Without this method, the logs are read.
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

    /// Waits until the log of a run goes on behind this place, and gives its last place. `-1` is behind no log at all,
    /// and so never waits. A store that is told of changes wakes at once; without this method, the log is looked at ten
    /// times a second.
    fn changed<'a>(&'a self, run: &'a str, after: i64) -> BoxFuture<'a, Result<i64, StoreError>> {
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

    fn changed<'a>(&'a self, run: &'a str, after: i64) -> BoxFuture<'a, Result<i64, StoreError>> {
        (**self).changed(run, after)
    }
}

/// The store could not be reached, read or written.
#[derive(Debug, thiserror::Error)]
#[error("the store could not {what}")]
pub struct StoreError {
    what: String,
    #[source]
    source: BoxError,
}

impl StoreError {
    /// What could not be done, and why.
    pub fn new(what: impl Into<String>, source: impl Into<BoxError>) -> Self {
        Self { what: what.into(), source: source.into() }
    }
}

/// Links entries of a log: by SHA-256, or with a key by HMAC.
#[derive(Clone, Default)]
pub struct Linker {
    key: Option<Arc<[u8]>>,
}

impl Linker {
    /// With a key: whoever does not have it cannot make a log that verifies.
    #[must_use]
    pub fn with_key(key: &[u8]) -> Self {
        Self { key: Some(key.into()) }
    }

    /// The next entry of a log.
    #[must_use]
    pub fn link(&self, last: Option<(i64, &str)>, draft: &Draft) -> Entry {
        let (seq, prev) = last.map_or((1, ""), |(seq, hash)| (seq + 1, hash));
        let body = crate::args::canonical(&draft.body);
        let hash = self.hash(&draft.run, seq, prev, &body);
        Entry { run: draft.run.clone(), seq, prev: prev.to_owned(), hash, body }
    }

    /// The seal of a lease, which is renewed without an entry of its own.
    pub(super) fn lease(&self, row: &str, token: u64, until: Millis) -> String {
        self.digest(&serde_json::json!(["lease", 1, row, token, until]))
    }

    /// The hash that an entry must have.
    #[must_use]
    pub fn hash(&self, run: &str, seq: i64, prev: &str, body: &str) -> String {
        self.digest(&serde_json::json!([1, run, seq, prev, body]))
    }

    fn digest(&self, all: &Value) -> String {
        match &self.key {
            None => crate::args::digest(all),
            Some(key) => keyed_digest(key, all),
        }
    }
}

impl fmt::Debug for Linker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linker(keyed: {})", self.key.is_some())
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

/// The HMAC-SHA256 of the canonical text, in hexadecimal.
fn keyed_digest(key: &[u8], value: &Value) -> String {
    match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => crate::args::hex(
            &mac.chain_update(crate::args::canonical(value).as_bytes()).finalize().into_bytes(),
        ),
        // A key may have any length.
        Err(_) => String::new(),
    }
}
