//! A contract test for ledger stores: the rules L1 to L4, L8 and L10, and what [`Store`] documents.

mod audit;
mod changed;
mod claiming;
mod counting;
mod deciding;
mod ending;
mod grants;
mod limits;
mod quorum;
mod series;
mod share;
mod store;
mod unapproved;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use crate::args::Args;
use crate::deferred::Answer;
use crate::ledger::{Ask, AskRecord, Decided, Ledger, Store};

/// Checks a store against the rules of the ledger. Run it in a runtime with several threads, so that concurrent
/// operations really run in parallel.
///
/// Each call of `make` returns handles on one new, empty store: one handle, or several, as several processes would
/// have.
///
/// ```
/// use std::sync::Arc;
/// use countersign::ledger::{MemoryStore, Store};
/// use countersign::testing::ledger_contract;
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// ledger_contract::check(async || vec![Arc::new(MemoryStore::new()) as Arc<dyn Store>]).await;
/// # });
/// ```
///
/// # Panics
/// When the store breaks a rule, with a message that names the rule.
pub async fn check(make: impl AsyncFn() -> Vec<Arc<dyn Store>>) {
    let new = async || SharedStore::new(make().await);
    store::check(&new().await).await;
    deciding::check(&new().await).await;
    quorum::check(&new().await).await;
    claiming::check(&new().await).await;
    ending::check(&new().await).await;
    limits::check(&new().await).await;
    share::check(&new().await).await;
    series::check(&new().await).await;
    grants::check(&new().await).await;
    counting::check(&new().await).await;
    unapproved::check(&new().await).await;
    audit::check(&new().await).await;
    changed::check(&new().await).await;
}

/// The number of tasks that run the same operation concurrently.
const MANY: usize = 16;

/// A lease or deadline that does not expire during a check.
const LONG: Duration = Duration::from_secs(3600);

/// A lease or deadline that expires immediately.
const OVER: Duration = Duration::ZERO;

/// One store, through all its handles.
///
/// Operations of one check go through different handles. So we find a store that keeps something in its handle.
struct SharedStore {
    stores: Vec<Arc<dyn Store>>,
    ledgers: Vec<Ledger>,
}

impl SharedStore {
    fn new(stores: Vec<Arc<dyn Store>>) -> Self {
        assert!(!stores.is_empty(), "`make` gave no handle on a store");
        let ledgers = stores.iter().map(|store| Ledger::new(Arc::clone(store))).collect();
        Self { stores, ledgers }
    }

    /// A ledger over the n-th handle, modulo the number of handles.
    fn ledger(&self, n: usize) -> Ledger {
        self.ledgers.iter().cycle().nth(n % self.ledgers.len()).cloned().unwrap_or_else(missing)
    }

    fn store(&self, n: usize) -> Arc<dyn Store> {
        self.stores.iter().cycle().nth(n % self.stores.len()).cloned().unwrap_or_else(missing)
    }

    /// Runs `act` in [`MANY`] concurrent tasks, spread over the handles.
    ///
    /// Sixteen at the same time, repeatedly, find most lost updates in a second. They prove nothing about the others;
    /// the property tests of this crate look further.
    async fn at_once<T, F>(&self, act: impl Fn(usize, Ledger) -> F) -> Vec<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let mut tasks = JoinSet::new();
        for n in 0..MANY {
            tasks.spawn(act(n, self.ledger(n)));
        }
        tasks.join_all().await
    }

    /// Parks an ask through the first handle; the later operations use the second.
    async fn park(&self, ask: Ask) -> Parked {
        let record = ok(self.ledger(0).park(ask).await);
        Parked { ledger: self.ledger(1), id: record.ask.id().to_owned(), record }
    }

    /// Parks an ask that Ann then approves.
    async fn approved(&self, ask: Ask) -> Parked {
        let parked = self.park(ask).await;
        let won = parked.decide("ann", approve()).await;
        assert_eq!(won, Decided::Won { again: false }, "L1: the first decision counts");
        parked
    }
}

/// For a value that was checked to be there one statement before.
fn missing<T>() -> T {
    unreachable!("it was there a moment ago")
}

#[track_caller]
#[allow(clippy::panic, reason = "a store that breaks a rule is reported by a panic")]
fn fail(rule: &str) -> ! {
    std::panic::panic_any(rule.to_owned())
}

/// An ask that was parked in the store.
struct Parked {
    ledger: Ledger,
    id: String,
    record: AskRecord,
}

impl Parked {
    /// Decides the parked ask.
    async fn decide(&self, who: &str, answer: Answer) -> Decided {
        ok(self.ledger.decide(&self.id, &self.record.fingerprint, who, answer).await)
    }

    async fn now(&self) -> AskRecord {
        let record = ok(self.ledger.get(&self.id).await);
        assert!(record.is_some(), "L3: a parked ask is found");
        record.unwrap_or_else(missing)
    }
}

/// An ask in a run of its own, requested by Mallory.
fn ask(name: &str) -> Ask {
    Ask::new(format!("run of {name}"), "root/c1", "delete_file")
        .with_args(Args::new().with("path", name))
        .with_principal("mallory")
}

fn approve() -> Answer {
    Answer::Approve { args: None }
}

fn edit(path: &str) -> Answer {
    Answer::Approve { args: Some(Args::new().with("path", path)) }
}

fn deny(message: &str) -> Answer {
    Answer::Deny { message: message.to_owned() }
}

fn answer(text: &str) -> Answer {
    Answer::Result { value: json!(text) }
}

#[track_caller]
fn ok<T, E: Debug>(result: Result<T, E>) -> T {
    assert!(result.is_ok(), "the store failed: {:?}", result.err());
    result.unwrap_or_else(|_| missing())
}
