//! The errors of the ledger.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::broken::Broken;
use super::stores::store::StoreError;

/// An error of the ledger or of its store.
///
/// | error | retry? | do |
/// |---|---|---|
/// | [`Store`](Self::Store) | yes | wait for the server or the disk |
/// | [`Unreadable`](Self::Unreadable) | no | use the version of the crate that wrote the row |
/// | [`Changed`](Self::Changed) | no | restore from a backup, and find out what wrote the row |
/// | [`Unkeepable`](Self::Unkeepable) | no | make the value smaller, or the id shorter |
/// | [`Broken`](Self::Broken) | no | keep the store as it is, and compare it with an export |
/// | [`AuditKey`](Self::AuditKey) | no | give the process the store's key, or change that with [`rekey`](super::Ledger::rekey) |
/// | [`Ahead`](Self::Ahead) | no | set the clocks right, or cancel the ask |
/// | [`Behind`](Self::Behind) | no | find out what has put the store back; remove the file if you did |
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
        /// The reason why the row cannot be read.
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
        /// The difference of the row from its log.
        problem: String,
    },
    /// The ask or run is refused because it could not be stored so that every store can read it again, or because its
    /// id is reserved or its run was dropped. Nothing has changed.
    #[error("`{}` cannot be kept: {problem}", id.escape_debug())]
    Unkeepable {
        /// The id of the ask or the run.
        id: String,
        /// The reason why it cannot be stored, and what to do about that.
        problem: String,
    },
    /// A log, or a row beside it, is not as the ledger wrote it: see [`Ledger::verify`](super::Ledger::verify).
    #[error("{0}")]
    Broken(Broken),
    /// The store has another audit key than this process, or one of them has none. Nothing was read or written (rule
    /// L8).
    #[error("{problem}")]
    AuditKey {
        /// The keys of the store and of the process, and what to do.
        problem: String,
    },
    /// The ask was written at a time far ahead of the clock that reads it, so that its age is not known: it is neither
    /// decided nor claimed (rule L4). Nothing has changed.
    #[error(
        "ask `{}` is dated {} minutes ahead of this clock: its deadlines and the age of its approval cannot be told. Set the clocks of all machines that use the store right; where the one that wrote it was wrong, cancel the ask and ask again",
        id.escape_debug(),
        ahead.as_secs() / 60
    )]
    Ahead {
        /// The id of the ask.
        id: String,
        /// The time by which the ask is dated ahead of the store's clock.
        ahead: Duration,
    },
    /// The store is behind the checkpoint that an [anchor](super::Ledger::anchor) keeps, or the file of the anchor cannot
    /// be used.
    #[error(
        "`{}` keeps the last checkpoint of the store, and {problem}. `countersign asks verify --earlier` compares the two; if \
         you have restored an earlier copy of the store yourself, remove the file", path.display()
    )]
    Behind {
        /// The file of the anchor.
        path: PathBuf,
        /// The difference of the store or the file from what it should be.
        problem: String,
    },
}

impl LedgerError {
    pub(super) fn unreadable(id: &str, problem: &(impl fmt::Display + ?Sized)) -> Self {
        Self::Unreadable { id: id.to_owned(), problem: problem.to_string() }
    }

    pub(super) fn changed(id: &str, problem: &str) -> Self {
        Self::Changed { id: id.to_owned(), problem: problem.to_owned() }
    }
}
