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
//! `cargo run -p approvals` is a service around a ledger: an inbox in the browser, an API, and workers.
//!
//! ```
//! use countersign::deferred::Answer;
//! use countersign::ledger::{Ask, Decided, Ledger, MemoryStore};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let ledger = Ledger::new(MemoryStore::new());
//! let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
//! let yes = ledger.decide(ask.ask.id(), &ask.fingerprint, "ann", Answer::Approve { args: None }).await?;
//! assert_eq!(yes, Decided::Won { again: false });
//! let no = Answer::Deny { message: "keep it".to_owned() };
//! let late = ledger.decide(ask.ask.id(), &ask.fingerprint, "bob", no).await?;
//! assert!(matches!(late, Decided::Lost(winner) if winner.by == ["ann"]));
//! # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
//! ```
//!
//! # Which promise is kept where
//!
//! | promise | by |
//! |---|---|
//! | one decision per ask, one winner per claim | one transaction per transition, a pure function in `rules` |
//! | nothing runs twice | the token of the claim, and the recorded outcome |
//! | deadlines hold without a timer | expiry is applied in the transaction, by the store's clock |
//! | a changed row is noticed | the digest in the last entry about it (rule L8) |
//! | a changed log is noticed | the chain, the audit key, checkpoints |
//! | a run is continued by one worker | the lease ([`Lease`]) |
//!
//! # Operating one
//!
//! - [`Ledger::expire`] from time to time, so that lists show what is over.
//! - [`Ledger::prune`] once a day, for runs that are over; [`Ledger::export`] before it, if the history is to be kept.
//! - [`Ledger::checkpoint`] once an hour, with its head copied to another machine, and [`Ledger::verify`] with it.
//! - One [`Ledger::audit_key`] for all processes, and not in the database.
//!
//! # Through a turn or by hand
//!
//! [`Turn::ledger`](crate::Turn::ledger) and [`Agent::ledger`](crate::Agent::ledger) do all of the above drawing by
//! themselves. The methods of [`Ledger`] are for surfaces, which list and decide, and for programs that are not agents
//! and want a question answered once.

mod acquisition;
mod ask;
mod audit;
mod broken;
mod change;
mod checkpoint;
mod codec;
mod counter;
mod decisions;
mod durability;
mod error;
mod grant;
mod grant_error;
mod grant_offer;
mod grant_record;
mod grant_scope;
mod grants;
mod handle;
mod lease;
mod listing;
mod log;
mod memory;
mod metrics;
mod names;
mod operations;
mod pattern;
mod project;
mod record;
mod rerun;
mod results;
mod retention;
mod rules;
mod run_record;
mod runs;
mod store;

pub use ask::{Ask, Millis, Quorum, date_and_time};
pub use audit::Verified;
pub use broken::Broken;
pub use checkpoint::Checkpoint;
pub use codec::requester_of;
pub(crate) use decisions::recorded;
pub use error::LedgerError;
pub use grant::Grant;
pub use grant_error::GrantError;
pub use grant_offer::{GrantOffer, GrantPlace, GrantTime};
pub use grant_record::{GrantRecord, GrantState};
pub use grant_scope::GrantScope;
pub use grants::RevokedGrant;
pub use handle::Ledger;
pub use lease::{Acquired, Lease, LeaseKeeper};
pub use listing::{Listed, RefusedRow};
pub use memory::MemoryStore;
pub use operations::Expired;
pub use pattern::FieldPattern;
pub use project::Project;
pub use record::{AskState, ClaimRecord, GrantUse, LedgerDecision, Record, Vote};
pub use results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
pub use run_record::RunRecord;
pub use runs::Saved;
pub use store::{
    Draft, Dropped, Entry, Filter, Found, Linker, Lookup, Row, RowKind, Store, StoreError, Work,
    Writes,
};
