//! The ledger: where asks are parked, decided once, claimed and settled, across processes and crashes (rules L0 to L5).
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

mod ask;
mod audit;
mod memory;
mod record;
mod results;
mod rules;
mod store;
mod waiting;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use ask::{Ask, Millis, Quorum};
pub use audit::{Broken, Verified};
pub use memory::MemoryStore;

pub use record::{AskState, ClaimRecord, LedgerDecision, Record, Verdict, Vote};
pub use results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
use rules::Deciding;
pub use store::{Draft, Entry, Filter, Linker, Row, RowKind, Store, StoreError, Work, Writes};

/// How many asks `expire` works through in one go.
const EXPIRE_AT_ONCE: u32 = 256;

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
}

/// Why the ledger could not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The store could not be reached, read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something in the store cannot be read: another version wrote it, or somebody changed it.
    #[error("row `{id}` of the store cannot be read: {problem}")]
    Unreadable {
        /// The row.
        id: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Ledger {
    /// A ledger over this store.
    #[must_use]
    pub fn new(store: impl Store) -> Self {
        Self { store: Arc::new(store), linker: Linker::default() }
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
        self.on(&id, |now, record| match record {
            Some(record) => (record, None, None),
            None => {
                let record = Record::new(ask.clone(), now);
                (record, Some("parked"), None)
            }
        })
        .await
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
        let (fingerprint, by) = (fingerprint.to_owned(), by.to_owned());
        let deciding = Deciding { fingerprint, by, verdict };
        let event = |result: &Decided| match result {
            Decided::Won { again: false } => Some("decided"),
            Decided::Recorded { .. } => Some("voted"),
            _ => None,
        };
        let decide = |record: &mut Record, now| rules::decide(record, &deciding, now);
        Ok(self.change(id, Some(&deciding.by), decide, event).await?.unwrap_or(Decided::UnknownAsk))
    }

    /// Claims the execution of an approved ask, for as long as the lease, which can be [renewed](Self::renew).
    ///
    /// # Errors
    /// [`LedgerError`]; nothing is claimed.
    pub async fn claim(
        &self,
        id: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Claimed, LedgerError> {
        let lease = millis(lease);
        let event =
            |result: &Claimed| matches!(result, Claimed::Claimed { .. }).then_some("claimed");
        let claim = |record: &mut Record, now| rules::claim(record, worker, lease, now);
        Ok(self.change(id, Some(worker), claim, event).await?.unwrap_or(Claimed::UnknownAsk))
    }

    /// Makes a claim last longer from now on.
    ///
    /// # Errors
    /// [`LedgerError`]; the claim lasts as long as before.
    pub async fn renew(
        &self,
        id: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Renewed, LedgerError> {
        let lease = millis(lease);
        let renew = |record: &mut Record, now| rules::renew(record, token, lease, now);
        Ok(self.change(id, None, renew, |_| None).await?.unwrap_or(Renewed::UnknownAsk))
    }

    /// Records what came of an execution. Of several settlements of one claim the first counts; a worker whose claim
    /// another one has taken over cannot record over it (rule L2).
    ///
    /// # Errors
    /// [`LedgerError`]; nothing is recorded.
    pub async fn settle(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
    ) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, outcome, false).await
    }

    /// Records that the body has deferred: it did not run to its end, and is asked about anew.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing is recorded.
    pub async fn release(&self, id: &str, token: u64) -> Result<Settled, LedgerError> {
        self.settle_as(id, token, Value::Null, true).await
    }

    async fn settle_as(
        &self,
        id: &str,
        token: u64,
        outcome: Value,
        released: bool,
    ) -> Result<Settled, LedgerError> {
        let event = |result: &Settled| match result {
            Settled::Settled { again: false, .. } if released => Some("released"),
            Settled::Settled { again: false, .. } => Some("settled"),
            _ => None,
        };
        let settle =
            |record: &mut Record, now| rules::settle(record, token, &outcome, released, now);
        Ok(self.change(id, None, settle, event).await?.unwrap_or(Settled::UnknownAsk))
    }

    /// Withdraws an ask that nobody executes yet.
    ///
    /// # Errors
    /// [`LedgerError`]; the ask stands as it was.
    pub async fn cancel(&self, id: &str, by: &str) -> Result<Cancelled, LedgerError> {
        let before = |record: &mut Record, now| {
            let was = record.state;
            (was, rules::cancel(record, by, now))
        };
        let event = |(was, result): &(AskState, Cancelled)| {
            (*result == Cancelled::Cancelled && *was != AskState::Cancelled).then_some("cancelled")
        };
        let done = self.change(id, Some(by), before, event).await?;
        Ok(done.map_or(Cancelled::UnknownAsk, |(_, result)| result))
    }

    /// Lets the time take effect that has passed: asks that nobody decided expire, claims whose lease is over become
    /// unknown. Gives the ids of what has changed. Deciding and claiming look at the time by themselves.
    ///
    /// # Errors
    /// [`LedgerError`]; some may have changed.
    pub async fn expire(&self) -> Result<Vec<String>, LedgerError> {
        let mut changed = Vec::new();
        loop {
            let due = self.store.due(EXPIRE_AT_ONCE).await?;
            let mut progress = false;
            for id in due {
                let look = |record: &mut Record, _| record.state;
                let before = self.get(&id).await?.map(|record| record.state);
                let after = self.change(&id, None, look, |_| None).await?;
                if after.is_some() && after != before {
                    progress = true;
                    changed.push(id);
                }
            }
            if !progress {
                return Ok(changed);
            }
        }
    }

    /// An ask, and what has become of it.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn get(&self, id: &str) -> Result<Option<Record>, LedgerError> {
        self.store.get(id).await?.map(|row| read(&row)).transpose()
    }

    /// The asks in this state, or all, newest first.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn list(
        &self,
        state: Option<AskState>,
        limit: u32,
    ) -> Result<Vec<Record>, LedgerError> {
        let states = state.map(|state| state.as_str().to_owned()).into_iter().collect();
        let filter = Filter { kind: Some(RowKind::Ask), states, run: None, limit: Some(limit) };
        self.store.list(&filter).await?.iter().map(read).collect()
    }

    /// Changes an ask, after the time that has passed has taken effect. `None` when there is no such ask.
    async fn change<T: Send>(
        &self,
        id: &str,
        by: Option<&str>,
        mut change: impl FnMut(&mut Record, Millis) -> T + Send,
        event: impl Fn(&T) -> Option<&'static str> + Send + Sync,
    ) -> Result<Option<T>, LedgerError> {
        let mut result = Ok(None);
        let ids = [id.to_owned()];
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            result = Ok(None);
            let Some(row) = rows.into_iter().flatten().next() else { return Writes::default() };
            let mut record = match read(&row) {
                Ok(record) => record,
                Err(error) => {
                    result = Err(error);
                    return Writes::default();
                }
            };
            let (mut writes, before) = (Writes::default(), record.clone());
            if let Some(event) = rules::pass_time(&mut record, now) {
                writes.log.push(draft(&record, event, None, now));
            }
            let made = change(&mut record, now);
            if let Some(event) = event(&made) {
                writes.log.push(draft(&record, event, by, now));
            }
            result = Ok(Some(made));
            if record != before {
                writes.rows.push(row_of(&record));
            }
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result
    }

    /// Reads an ask and writes what the function makes of it.
    async fn on(
        &self,
        id: &str,
        mut make: impl FnMut(Millis, Option<Record>) -> (Record, Option<&'static str>, Option<String>)
        + Send,
    ) -> Result<Record, LedgerError> {
        let mut result =
            Err(LedgerError::Unreadable { id: id.to_owned(), problem: "it was not read".into() });
        let ids = [id.to_owned()];
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let known = rows.into_iter().flatten().next().map(|row| read(&row)).transpose();
            let known = match known {
                Ok(known) => known,
                Err(error) => {
                    result = Err(error);
                    return Writes::default();
                }
            };
            let (record, event, by) = make(now, known);
            let mut writes = Writes::default();
            if let Some(event) = event {
                writes.log.push(draft(&record, event, by.as_deref(), now));
                writes.rows.push(row_of(&record));
            }
            result = Ok(record);
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result
    }
}

fn millis(time: Duration) -> Millis {
    Millis::try_from(time.as_millis()).unwrap_or(Millis::MAX)
}

/// The version of the stored form (rule L7).
const VERSION: u64 = 1;

fn row_of(record: &Record) -> Row {
    Row {
        id: record.ask.id().to_owned(),
        kind: RowKind::Ask,
        run: record.ask.run().to_owned(),
        state: record.state.as_str().to_owned(),
        created_at: record.parked_at,
        due_at: record.due_at(),
        doc: json!({"version": VERSION, "ask": record}).to_string(),
    }
}

fn read(row: &Row) -> Result<Record, LedgerError> {
    let unreadable = |problem: String| LedgerError::Unreadable { id: row.id.clone(), problem };
    let mut doc: Value =
        serde_json::from_str(&row.doc).map_err(|error| unreadable(error.to_string()))?;
    if doc.get("version").and_then(Value::as_u64) != Some(VERSION) {
        return Err(unreadable(format!("it is not of version {VERSION}")));
    }
    let ask = doc.get_mut("ask").map(Value::take).unwrap_or_default();
    serde_json::from_value(ask).map_err(|error| unreadable(error.to_string()))
}

/// What the log says about a change: the event, and a digest of what the ask became.
fn draft(record: &Record, event: &str, by: Option<&str>, now: Millis) -> Draft {
    let body = json!({
        "ask": record.ask.id(),
        "at": now,
        "by": by,
        "event": event,
        "fingerprint": record.fingerprint,
        "record": audit::digest_of(record),
        "state": record.state,
        "token": record.token,
        "tool": record.ask.tool(),
    });
    Draft { run: record.ask.run().to_owned(), body }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("linker", &self.linker).finish_non_exhaustive()
    }
}
