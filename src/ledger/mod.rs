//! The ledger: asks are parked, decided once, claimed and settled, across processes and crashes (rules L0 to L4).
//!
//! ```text
//!  park ──► pending ──► decide ──► decided ──► claim ──► claimed ──► settle ──► executed
//!              │  │                                        └── its worker dies ──► unknown
//!              │  └── time passes ──► expired
//!              └── cancel ──► cancelled
//! ```
//!
//! Of any number of processes that decide or claim an ask one wins, and the results of the others name the decision or
//! the worker that won. The state transitions of an ask are the same for every store: a [`Store`] only runs
//! transactions over rows, and appends to a log in which each entry is chained to the one before it.
//!
//! `cargo run --example approvals` is a service around a ledger: an inbox in the browser, an API, and workers.

mod ask;
mod audit;
mod change;
mod checkpoint;
mod codec;
mod decisions;
mod durability;
mod listing;
mod memory;
mod names;
mod operations;
mod record;
mod requesters;
mod rerun;
mod results;
mod retention;
mod rules;
mod runs;
mod store;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::RunContext;
pub use crate::deferred::Answer;

pub use ask::{Ask, Millis, Quorum};
pub use audit::{Broken, Verified};
use change::Change;
pub use checkpoint::Checkpoint;
use codec::{read, there};
pub(crate) use decisions::recorded;
pub use listing::{Listed, RefusedRow};
pub use memory::MemoryStore;
use names::Names;
pub use operations::Expired;
pub use record::{AskState, ClaimRecord, LedgerDecision, Record, Vote};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use requesters::requester_of;
pub use results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
pub(crate) use runs::RunWrite;
pub use runs::{RunRecord, Saved, Taken};
pub use store::{
    Draft, Dropped, Entry, Filter, Found, Linker, Lookup, Row, RowKind, Store, StoreError, Work,
    Writes,
};

/// The default lease of a turn's claims: how long a claim lasts after its worker has died.
const LEASE: Duration = Duration::from_secs(30);

/// How long an approval is valid by default.
const VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// A handle on the asks and runs in a store. Cheap to clone; all handles over one store, in all processes, are one
/// ledger.
///
/// ```
/// use countersign::ledger::{Ask, Claimed, Decided, Ledger, MemoryStore, Answer};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file").with_args(countersign::Args::new().with("path", "a"))).await?;
///
/// let yes = Answer::Approve { args: None };
/// let first = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", yes.clone()).await?;
/// assert_eq!(first, Decided::Won { again: false });
/// let second = ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", yes).await?;
/// assert!(matches!(second, Decided::Lost(winner) if winner.by == ["ann"]));
///
/// let lease = std::time::Duration::from_secs(30);
/// let Claimed::Claimed { token } = ledger.claim(ask.ask.id(), "worker-1", lease).await? else { panic!() };
/// ledger.settle(ask.ask.id(), token, json!("deleted")).await?;
/// let again = ledger.claim(ask.ask.id(), "worker-2", lease).await?;
/// assert_eq!(again, Claimed::Settled { outcome: json!("deleted") });
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct Ledger {
    store: Arc<dyn Store>,
    linker: Linker,
    worker: Arc<str>,
    lease: Duration,
    policy: Arc<Policy>,
    asks_before_repeating: bool,
    names: Names,
    valid_for: Option<Millis>,
}

/// Sets the requester, the deadline and the quorum of an ask before it is parked.
type Policy = dyn Fn(&RunContext, Ask) -> Ask + Send + Sync;

/// An error of the ledger or of its store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store could not be reached, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A row cannot be read, as when another version of this crate wrote it.
    #[error("row `{}` of the store cannot be read: {problem}", id.escape_debug())]
    Unreadable {
        /// The id of the row.
        id: String,
        /// Why the row cannot be read.
        problem: String,
    },
    /// A row does not match its log: something else than a ledger has written it, removed it, or restored an older copy
    /// of it. It is not decided, claimed or resumed, and a removed one is not created anew (rule L8).
    #[error(
        "row `{}` was changed outside of the ledger: {problem}. Restore the store from a backup; `Ledger::verify` says what else differs",
        id.escape_debug()
    )]
    Changed {
        /// The id of the row.
        id: String,
        /// How the row differs from its log.
        problem: String,
    },
    /// The ask or run is refused because it could not be stored so that every store can read it again, or because its
    /// id is reserved or its run was dropped. Nothing has changed.
    #[error("`{}` cannot be kept: {problem}", id.escape_debug())]
    Unkeepable {
        /// The id of the ask or the run.
        id: String,
        /// Why it cannot be stored, and what to do about that.
        problem: String,
    },
}

impl LedgerError {
    fn unreadable(id: &str, problem: &(impl fmt::Display + ?Sized)) -> Self {
        Self::Unreadable { id: id.to_owned(), problem: problem.to_string() }
    }

    fn changed(id: &str, problem: &str) -> Self {
        Self::Changed { id: id.to_owned(), problem: problem.to_owned() }
    }
}

impl Ledger {
    /// A ledger over this store, with the default settings.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self {
            store: Arc::new(store),
            linker: Linker::default(),
            worker: uuid::Uuid::now_v7().to_string().into(),
            lease: LEASE,
            policy: Arc::new(|_, ask| ask),
            asks_before_repeating: false,
            names: Names::default(),
            valid_for: Some(millis(VALID_FOR)),
        }
    }

    /// Sets the name of this process in claims, which people are shown; by default a random one for each ledger value.
    #[must_use]
    pub fn worker(mut self, name: impl Into<Arc<str>>) -> Self {
        self.worker = name.into();
        self
    }

    /// Sets the lease of a turn's claims, which is how long a claim lasts after its worker has died; 30 seconds by
    /// default. While a tool body runs, its lease is renewed.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets a function that is called with each ask of a turn before it is parked, to set its principal, deadline and
    /// quorum.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new())
    ///     .asks(|_cx, ask: Ask| ask.with_principal("ann").with_expires_in(Duration::from_secs(3600)));
    /// # let _ = ledger;
    /// ```
    #[must_use]
    pub fn asks(
        mut self,
        policy: impl Fn(&RunContext, Ask) -> Ask + Send + Sync + 'static,
    ) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    /// Whether both ledgers write to the same store value.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    pub(crate) fn worker_name(&self) -> &str {
        &self.worker
    }

    pub(crate) fn lease_time(&self) -> Duration {
        self.lease
    }

    pub(crate) fn with_policy(&self, cx: &RunContext, ask: Ask) -> Ask {
        (self.policy)(cx, ask)
    }

    /// Sets the key by which the log is chained by HMAC, in place of a plain hash: without the key, no one can make a
    /// log that [verifies](Self::verify). All processes over one store need the same key.
    #[must_use]
    pub fn audit_key(mut self, key: &[u8]) -> Self {
        self.linker = Linker::with_key(key);
        self
    }

    /// Parks an ask: records it in the store, before any person is asked (rule L3). An ask that is parked already is
    /// returned as it is.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing has changed.
    pub async fn park(&self, ask: Ask) -> Result<Record, LedgerError> {
        let id = ask.id().to_owned();
        checkpoint::refuse_name(ask.run(), &id)?;
        // Without a transaction, which would also read the row of the run: most asks that are parked again exist
        // already.
        if let Some(record) = self.load_current(&id).await? {
            return Ok(record);
        }
        let change = Change { by: None, new: Some(ask) };
        let parked = self.change(&id, change, |record, _| record.clone(), |_| None).await?;
        let missing = "the row with its id is the row of a run, not of an ask";
        parked.map(|(record, _)| record).ok_or_else(|| LedgerError::unreadable(&id, missing))
    }

    /// Decides an ask. The fingerprint is the one of the ask that was shown to the person; an ask with another one is
    /// not decided. An edit is an approval with other arguments; a quorum has to agree on the same arguments.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn decide(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        answer: Answer,
    ) -> Result<Decided, LedgerError> {
        let any = |_: &Record, _| Ok::<_, std::convert::Infallible>(());
        Ok(match self.decide_if(id, fingerprint, by, answer, any).await? {
            Some(Ok(decided)) => decided,
            None => Decided::UnknownAsk,
        })
    }

    /// Cancels an ask that is pending, or approved and not claimed yet. Its call will not run.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask is unchanged.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<Cancelled, LedgerError> {
        let cancel = |record: &mut Record, now| rules::cancel(record, by, now);
        let event = |result: &Cancelled| {
            matches!(result, Cancelled::Cancelled { again: false }).then_some("cancelled")
        };
        let made = self.change(id, Change::by(by), cancel, event).await?;
        Ok(made.map_or(Cancelled::UnknownAsk, |(cancelled, _)| cancelled))
    }

    /// The stored record of an ask; `None` when there is no ask with this id. A deadline that has passed may not be
    /// recorded yet: see [`expire`](Self::expire).
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn get(&self, id: &str) -> Result<Option<Record>, LedgerError> {
        let found = there(self.store.get(id).await?)?;
        let found = found.filter(|found| found.row.kind == RowKind::Ask);
        found.map(|found| read(&found)).transpose()
    }

    /// The stored record of an ask, after a deadline or lease that has passed was recorded.
    pub(crate) async fn load_current(&self, id: &str) -> Result<Option<Record>, LedgerError> {
        match self.get(id).await? {
            Some(record) if record.due_at().is_some() => {
                let look = |record: &mut Record, _| record.clone();
                let looked = self.change(id, Change::default(), look, |_| None).await?;
                Ok(looked.map(|(record, _)| record))
            }
            found => Ok(found),
        }
    }
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("linker", &self.linker).finish_non_exhaustive()
    }
}
