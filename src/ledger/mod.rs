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
//! | one decision per ask, one winner per claim | one transaction per transition, a pure function in `asks::transitions` |
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
//! If you give a turn or an agent a ledger ([`Turn::ledger`](crate::Turn::ledger), [`Agent::ledger`](crate::Agent::ledger)),
//! it makes all the steps of the drawing by itself. If you build a place where people decide, use a [`Surface`]: it finds
//! the asks that a person may see, and makes every check around a decision. If your program is no agent, and wants a
//! question answered once, call the methods of [`Ledger`].

mod approver;
mod asks;
mod broken;
mod error;
mod grants;
mod handle;
mod logs;
mod operations;
mod rerun;
mod rows;
mod runs;
mod scope;
mod series;
mod share;
mod stores;
mod surface;
mod verifying;

pub use approver::Approver;
pub use asks::ask::{Ask, Millis, Quorum, date_and_time, millis_of, utc};
pub use asks::record::{AskRecord, AskState, ClaimRecord, GrantUse, LedgerDecision, Vote};
pub use asks::results::{Cancelled, Claimed, Decided, Renewed, Settled, Winner};
pub use broken::Broken;
pub use error::LedgerError;
pub use grants::grant::Grant;
pub use grants::granting::RevokedGrant;
pub use grants::offer::{GrantOffer, GrantPlace};
pub use grants::offers::{GrantOutcome, Offers};
pub use grants::pattern::FieldPattern;
pub use grants::record::{GrantRecord, GrantState};
pub use grants::time::GrantTime;
pub use handle::Ledger;
pub use operations::Expired;
pub use rows::codec::requester_of;
pub use rows::listing::{Listed, RefusedRow};
pub use rows::run_record::RunRecord;
pub(crate) use runs::decisions::recorded;
pub use runs::lease::{Acquired, Lease, LeaseKeeper};
pub use runs::saving::Saved;
pub use scope::{GrantError, GrantScope, Project};
pub use series::{AskSeries, LastAsk, NextAsk};
pub use stores::entry::{Draft, Entry};
pub use stores::linker::{Linker, Unlinked};
pub use stores::memory::MemoryStore;
pub use stores::store::{
    Dropped, Filter, Found, Lookup, Row, RowKind, Store, StoreError, Work, Writes,
};
pub use surface::{Presented, Surface};
pub use verifying::audit::Verified;
pub use verifying::checkpoint::Checkpoint;
pub use verifying::rekey::Rekeyed;
