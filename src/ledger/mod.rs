//! The ledger: where asks are parked, decided once, claimed and settled, across processes and crashes (rules L0 to L4).
//!
//! ```text
//!  park ──► pending ──► decide ──► decided ──► claim ──► claimed ──► settle ──► executed
//!              │  │                                        └── its worker dies ──► unknown
//!              │  └── time passes ──► expired
//!              └── cancel ──► cancelled
//! ```
//!
//! Of any number of processes that decide or claim one wins, and each of the others is told who won, and what. What may
//! become of an ask is the same for every store: a [`Store`] only runs transactions over rows, and appends to a log in
//! which each entry is chained to the one before it.
//!
//! `cargo run --example approvals` is a service around one: an inbox in the browser, an API, and workers.

mod ask;
mod audit;
mod change;
mod checkpoint;
mod closing;
mod deciding;
mod executing;
mod expiring;
mod listing;
mod memory;
mod names;
mod record;
mod repeating;
mod requesters;
mod results;
mod retention;
mod rules;
mod runs;
mod store;
mod stored;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::call::RunContext;

pub(crate) use ask::AskedCall;
pub use ask::{Ask, Millis, Quorum};
pub use audit::{Broken, Verified};
use change::Change;
pub use checkpoint::Checkpoint;
pub use expiring::Expired;
pub use listing::{Listed, RefusedRow};
pub use memory::MemoryStore;
use names::Names;
pub use record::{AskState, ClaimRecord, LedgerDecision, Record, Verdict, Vote};
#[cfg(any(feature = "sqlite", feature = "postgres"))]
pub(crate) use requesters::requester_of;
pub use results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
pub(crate) use runs::RunWrite;
pub use runs::{RunRecord, Saved, Taken};
pub use store::{
    Draft, Dropped, Entry, Filter, Found, Linker, Lookup, Row, RowKind, Store, StoreError, Work,
    Writes,
};
use stored::{read, there};

/// How long a claim of a turn lasts when its worker dies.
const LEASE: Duration = Duration::from_secs(30);

/// How long an approval holds.
const VALID_FOR: Duration = Duration::from_secs(24 * 3600);

/// Where asks live. Cheap to clone; all clones, in all processes, over one store are one ledger.
///
/// ```
/// use countersign::ledger::{Ask, Claimed, Decided, Ledger, MemoryStore, Verdict};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file").args(countersign::Args::new().with("path", "a"))).await?;
///
/// let yes = Verdict::Approve { args: None };
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

/// Sets what an ask needs: who wants it, how long it waits, who must agree.
type Policy = dyn Fn(&RunContext, Ask) -> Ask + Send + Sync;

/// Why the ledger could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store could not be reached, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something in the store cannot be read: another version of this crate wrote it.
    #[error("row `{}` of the store cannot be read: {problem}", id.escape_debug())]
    Unreadable {
        /// The row.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A row is not what its log says: something else than a ledger has written or removed it, or taken an older copy
    /// back. Nothing is decided, claimed or resumed from it, and it is not made anew (rule L8).
    #[error(
        "row `{}` was changed outside of the ledger: {problem}. Restore the store from a backup; `Ledger::verify` says what else differs",
        id.escape_debug()
    )]
    Changed {
        /// The row.
        id: String,
        /// How it differs.
        problem: String,
    },
    /// It would not be read again as it is: nothing has changed.
    #[error("`{}` cannot be kept: {problem}", id.escape_debug())]
    Unkeepable {
        /// The ask, or the run.
        id: String,
        /// What is wrong with it, and what to do.
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
    /// A ledger over this store.
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

    /// Names this process in claims, for people; by default each ledger value has a name of its own.
    #[must_use]
    pub fn worker(mut self, name: impl Into<Arc<str>>) -> Self {
        self.worker = name.into();
        self
    }

    /// How long a claim of a turn lasts when its worker dies; 30 seconds by default. While a body runs, its claim is
    /// renewed.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets what each ask of a turn needs before it is parked: its principal, deadline, quorum.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// let ledger = Ledger::new(MemoryStore::new())
    ///     .asks(|_cx, ask: Ask| ask.principal("ann").expires_in(Duration::from_secs(3600)));
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

    /// Whether both write to the same store.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }

    pub(crate) fn get_worker(&self) -> &str {
        &self.worker
    }

    pub(crate) fn get_lease(&self) -> Duration {
        self.lease
    }

    pub(crate) fn with_policy(&self, cx: &RunContext, ask: Ask) -> Ask {
        (self.policy)(cx, ask)
    }

    /// Chains the log by HMAC with this key, in place of a plain hash.
    #[must_use]
    pub fn audit_key(mut self, key: &[u8]) -> Self {
        self.linker = Linker::with_key(key);
        self
    }

    /// Writes an ask down, before anybody is asked (rule L3). One that is there already stays as it is.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing has changed.
    pub async fn park(&self, ask: Ask) -> Result<Record, LedgerError> {
        let id = ask.id().to_owned();
        checkpoint::refuse_name(ask.run(), &id)?;
        // Before its run is looked at: most asks that are parked again are there.
        if let Some(record) = self.get_now(&id).await? {
            return Ok(record);
        }
        let change = Change { by: None, new: Some(ask) };
        let parked = self.change(&id, change, |record, _| record.clone(), |_| None).await?;
        let missing = "it is there and is not: the store did not do the work it was given";
        parked.map(|(record, _)| record).ok_or_else(|| LedgerError::unreadable(&id, missing))
    }

    /// Decides about an ask, for exactly what was shown. An edit is an approval with other arguments; where several have
    /// to agree, they have to agree on the same arguments.
    ///
    /// # Errors
    /// [`LedgerError`]; what waits waits.
    pub async fn decide(
        &self,
        id: &str,
        fingerprint: &str,
        by: &str,
        verdict: Verdict,
    ) -> Result<Decided, LedgerError> {
        let any = |_: &Record, _| Ok::<_, std::convert::Infallible>(());
        Ok(match self.decide_if(id, fingerprint, by, verdict, any).await? {
            Some(Ok(decided)) => decided,
            None => Decided::UnknownAsk,
        })
    }

    /// Withdraws an ask that nobody executes yet.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask stands as it was.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<Cancelled, LedgerError> {
        let cancel = |record: &mut Record, now| rules::cancel(record, by, now);
        let event = |result: &Cancelled| {
            matches!(result, Cancelled::Cancelled { again: false }).then_some("cancelled")
        };
        let made = self.change(id, Change::by(by), cancel, event).await?;
        Ok(made.map_or(Cancelled::UnknownAsk, |(cancelled, _)| cancelled))
    }

    /// An ask, and what has become of it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn get(&self, id: &str) -> Result<Option<Record>, LedgerError> {
        let found = there(self.store.get(id).await?)?;
        let found = found.filter(|found| found.row.kind == RowKind::Ask);
        found.map(|found| read(&found)).transpose()
    }

    /// An ask as it is now: after the time that has passed has taken effect.
    pub(crate) async fn get_now(&self, id: &str) -> Result<Option<Record>, LedgerError> {
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
