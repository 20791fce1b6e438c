//! Leases: exclusive, expiring holds on stored runs and chats (rule L5).
//!
//! # What a lease promises, and what it does not
//!
//! A lease keeps two *living* processes from doing the same work. It cannot keep a process from acting after its lease
//! is over, as no clock can. The token does: each acquisition has a higher token, every write names its token, and a
//! write with an old one changes nothing ([`Saved::StaleToken`]). So the worst that a slow process can do is to work
//! in vain.
//!
//! | moment | with the lease | after another process has acquired it |
//! |---|---|---|
//! | [`save`](Lease::save), [`end`](Lease::end) | recorded | `StaleToken`, nothing recorded |
//! | [`renew`](LeaseKeeper::renew) | extended | `StaleToken`, [`is_lost`](LeaseKeeper::is_lost) from now on |
//! | [`release`](LeaseKeeper::release) | ends at once | nothing: the new lease is not touched |
//! | tool calls | claimed by their own asks | refused by their own claims (rule L2) |
//!
//! A lease that is merely over, and that no other process has acquired, can still be renewed and saved with: the work
//! was done, and no one else has begun it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::Value;

use super::saving;
use super::saving::{RunWrite, Saved};
use crate::call::keeping;
use crate::ledger::asks::ask::Millis;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;

/// An exclusive, expiring hold on a run or a chat, with the state that was stored when the lease was acquired.
///
/// As long as the lease is valid, no other process acquires it. Its length is the one of the
/// [ledger](crate::ledger::Ledger::lease); [`keep`](LeaseKeeper::keep) renews it in the background. A process that was stopped
/// for longer than the lease finds it lost: nothing that it saves counts any more.
///
/// A lease that is dropped stays valid until it expires. [Release](LeaseKeeper::release) it where nothing is to be
/// saved, so that the next process need not wait.
///
/// ```
/// use countersign::ledger::{Acquired, Ledger, MemoryStore, Saved};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// ledger.save_run("run-1", json!({"step": 1}), None).await?;
///
/// let Acquired::Lease(lease) = ledger.acquire_run("run-1").await? else { panic!() };
/// assert!(matches!(ledger.acquire_run("run-1").await?, Acquired::Held { .. }), "one process at a time");
///
/// let step = lease.keeper().keep(async { lease.state()["step"].as_u64() }).await;
/// let next = json!({"step": step.unwrap() + 1});
/// assert_eq!(lease.save_and_release(next, &[]).await?, Saved::Saved);
/// assert!(matches!(ledger.acquire_run("run-1").await?, Acquired::Lease(lease) if lease.state()["step"] == 2));
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Lease<T = Value> {
    keeper: LeaseKeeper,
    state: T,
}

/// Renews and releases a lease, and knows whether it was lost. Cheap to clone; all clones are about the same lease.
///
/// ```
/// use countersign::ledger::{Acquired, Ledger, MemoryStore, Saved};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// ledger.save_run("run-1", json!({}), None).await?;
/// let Acquired::Lease(first) = ledger.acquire_run("run-1").await? else { panic!() };
/// first.keeper().release().await; // nothing to save
///
/// let Acquired::Lease(_second) = ledger.acquire_run("run-1").await? else { panic!() };
/// assert_eq!(first.keeper().renew().await?, Saved::StaleToken);
/// assert!(first.keeper().is_lost());
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct LeaseKeeper {
    ledger: Arc<Ledger>,
    /// The id of the run, or the run that a chat is stored as.
    key: Arc<str>,
    token: u64,
    time: Duration,
    /// `true` once another process has acquired the lease.
    lost: Arc<AtomicBool>,
}

/// The result of acquiring the lease on a run or a chat.
///
/// ```
/// use countersign::ledger::{Acquired, Ledger, MemoryStore};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new()).worker("worker-1");
/// assert!(matches!(ledger.acquire_run("run-1").await?, Acquired::UnknownRun));
/// ledger.save_run("run-1", json!({}), None).await?;
/// let Acquired::Lease(lease) = ledger.acquire_run("run-1").await? else { panic!() };
/// assert!(matches!(ledger.acquire_run("run-1").await?, Acquired::Held { by, .. } if by == "worker-1"));
/// lease.end(json!("done"), &[]).await?;
/// assert!(matches!(ledger.acquire_run("run-1").await?, Acquired::Over { result } if result == "done"));
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Acquired {
    /// This process has the lease.
    Lease(Lease),
    /// Another worker has a lease that has not expired.
    Held {
        /// The name of that worker.
        by: String,
        /// The time when it acquired the lease, by the store's clock; `None` in claims that earlier versions wrote.
        since: Option<Millis>,
        /// The end of its lease unless it is renewed, by the store's clock.
        until: Millis,
    },
    /// The run has ended, and is not resumed any more. A chat never ends.
    Over {
        /// The result that was recorded for the run.
        result: Value,
    },
    /// There is no run with this id. A chat is created instead.
    UnknownRun,
}

impl<T> Lease<T> {
    /// The state that was stored when the lease was acquired.
    pub fn state(&self) -> &T {
        &self.state
    }

    /// The state that was stored when the lease was acquired, by value, and the lease without it.
    pub fn take_state(self) -> (T, Lease<()>) {
        (self.state, Lease { keeper: self.keeper, state: () })
    }

    /// Sets the state that the lease carries, such as the stored one after it was deserialised. Nothing is stored.
    ///
    /// Use it to read a state into a type of your own, and keep the lease with it.
    pub fn with_state<U>(self, state: U) -> Lease<U> {
        Lease { keeper: self.keeper, state }
    }

    /// The handle that renews and releases the lease.
    pub fn keeper(&self) -> &LeaseKeeper {
        &self.keeper
    }

    /// Stores a state and keeps the lease, as before a long operation that may fail.
    ///
    /// # Errors
    /// [`LedgerError`]; the stored state is unchanged.
    pub async fn save(&self, state: Value) -> Result<Saved, LedgerError> {
        let LeaseKeeper { ledger, key, token, .. } = &self.keeper;
        saving::keep(ledger, key, *token, state).await
    }

    /// Stores a state, releases the lease, and closes the asks of the calls that have their results with this state
    /// ([`TurnReport::closed_asks`](crate::TurnReport::closed_asks)), in one transaction (rule L5).
    ///
    /// # Errors
    /// [`LedgerError`]; the stored state is unchanged, the asks are open, and the lease is kept until it expires.
    pub async fn save_and_release(
        &self,
        state: Value,
        closed_asks: &[String],
    ) -> Result<Saved, LedgerError> {
        self.write(state, false, closed_asks).await
    }

    /// Records the result of a run, which is over with it, and closes asks, in one transaction (rule L5).
    ///
    /// # Errors
    /// As [`save_and_release`](Self::save_and_release).
    pub async fn end(&self, result: Value, closed_asks: &[String]) -> Result<Saved, LedgerError> {
        self.write(result, true, closed_asks).await
    }

    async fn write(
        &self,
        state: Value,
        over: bool,
        closes: &[String],
    ) -> Result<Saved, LedgerError> {
        let LeaseKeeper { ledger, key, token, .. } = &self.keeper;
        saving::write(ledger, key, RunWrite { state, token: Some(*token), over, closes }).await
    }
}

impl Lease {
    pub(in crate::ledger) fn new(
        ledger: &Ledger,
        (key, token): (&str, u64),
        time: Duration,
        state: Value,
    ) -> Self {
        let keeper = LeaseKeeper {
            ledger: Arc::new(ledger.clone()),
            key: key.into(),
            token,
            time,
            lost: Arc::default(),
        };
        Self { keeper, state }
    }
}

impl LeaseKeeper {
    /// The token of the claim, higher than those of all earlier claims of the run. [`Ledger::save_run`] takes it.
    #[must_use]
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Returns `true` if the lease was found lost: another process has acquired it since, or the run has ended. It is
    /// found when the lease is renewed.
    ///
    /// We know it only after a renewal has failed. A worker that was stopped for longer than the lease learns it
    /// with its next write, which is refused.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Extends the lease, to its length from now.
    ///
    /// # Errors
    /// [`LedgerError`]; whether the lease was extended is unknown.
    pub async fn renew(&self) -> Result<Saved, LedgerError> {
        let renewed = self.extend(self.time).await?;
        if renewed == Saved::StaleToken {
            self.lost.store(true, Ordering::Release);
        }
        Ok(renewed)
    }

    /// Runs a future, and renews the lease meanwhile: every third of its length, by tokio's clock. A renewal that fails
    /// is logged and tried again; one that finds the lease lost does not stop the future, which sees
    /// [`is_lost`](Self::is_lost).
    pub async fn keep<F: Future>(&self, going: F) -> F::Output {
        let renew = async || {
            if let Err(error) = self.renew().await {
                tracing::warn!(run = %self.key, %error, "a lease could not be renewed");
            }
        };
        keeping(self.time, going, renew).await
    }

    /// Ends the lease at once without a change of the stored state, so that the next process need not wait until it
    /// expires. A failure is logged: the lease expires by itself.
    ///
    /// Dropping a lease does not release it, as that needs the store. The run can be taken again when the time of the
    /// lease is over.
    pub async fn release(&self) {
        if let Err(error) = self.extend(Duration::ZERO).await {
            tracing::warn!(run = %self.key, %error, "a lease could not be released");
        }
    }

    async fn extend(&self, time: Duration) -> Result<Saved, LedgerError> {
        saving::renew(&self.ledger, &self.key, self.token, time).await
    }
}

impl fmt::Debug for LeaseKeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeaseKeeper")
            .field("key", &self.key)
            .field("token", &self.token)
            .field("is_lost", &self.is_lost())
            .finish_non_exhaustive()
    }
}
