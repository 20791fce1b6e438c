//! The errors of the ledger.

use std::fmt;

use super::broken::Broken;
use super::store::StoreError;

/// An error of the ledger or of its store.
///
/// | error | retry? | do |
/// |---|---|---|
/// | [`Store`](Self::Store) | yes | wait for the server or the disk |
/// | [`Unreadable`](Self::Unreadable) | no | use the version of the crate that wrote the row |
/// | [`Changed`](Self::Changed) | no | restore from a backup, and find out what wrote the row |
/// | [`Unkeepable`](Self::Unkeepable) | no | make the value smaller, or the id shorter |
/// | [`Broken`](Self::Broken) | no | keep the store as it is, and compare it with an export |
///
/// ```
/// use countersign::ledger::{Ask, Ledger, LedgerError, MemoryStore};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = Ledger::new(MemoryStore::new());
/// let refused = ledger.park(Ask::new("x".repeat(2_000), "root/c1", "rm")).await.unwrap_err();
/// assert!(matches!(refused, LedgerError::Unkeepable { .. }));
/// assert!(refused.to_string().contains("use a shorter one"));
/// # });
/// ```
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
    /// A log, or a row beside it, is not as the ledger wrote it: see [`Ledger::verify`](super::Ledger::verify).
    #[error("{0}")]
    Broken(Broken),
}

impl LedgerError {
    pub(super) fn unreadable(id: &str, problem: &(impl fmt::Display + ?Sized)) -> Self {
        Self::Unreadable { id: id.to_owned(), problem: problem.to_string() }
    }

    pub(super) fn changed(id: &str, problem: &str) -> Self {
        Self::Changed { id: id.to_owned(), problem: problem.to_owned() }
    }
}
