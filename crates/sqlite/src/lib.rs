//! A store of the ledger in an SQLite file: any number of processes on one machine share it, and
//! committed writes survive `kill -9` and a power cut.
//!
//! ```
//! use countersign::ledger::{Ask, Ledger};
//! use countersign_sqlite::SqliteStore;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("asks.db");
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let ledger = Ledger::new(SqliteStore::open(&path).await?);
//! let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
//!
//! let elsewhere = Ledger::new(SqliteStore::open(&path).await?);
//! assert_eq!(elsewhere.get(ask.ask.id()).await?, Some(ask));
//! # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
//! ```
//!
//! The file is in WAL mode, so readers never wait. `synchronous` is `FULL`, so the writes of a call are on the disk
//! when it returns. The two files beside it, `-wal` and `-shm`, belong to it. The names of its tables begin with
//! `countersign_`, and the file may have other tables. Put the file on a local disk: SQLite's locks do not work on
//! network file systems.
//!
//! - **The file must stay where it is** while a process has it open (rule L9). If it, or one of the two files beside it,
//!   is removed, moved or replaced, for example by a script that restores a backup, every operation returns an error
//!   from then on, and you have to open the store anew. (On systems that are not Unix, only a removal is noticed.) To
//!   take a backup, use `VACUUM INTO` or `.backup`. Before you restore one, end the processes.
//! - **Waiting** ([`Ledger::wait_for_change`](countersign::ledger::Ledger::wait_for_change)) reads two hundred times a second
//!   whether the file has a new commit, of any process, once for all waits of a store, and nothing else.
//! - **Time is the clock of the machine**, which each process reads (rule L4): SQLite has no clock of its own. A
//!   process with another clock, as under `faketime` or in a virtual machine that was stopped, expires, claims and
//!   decides by that clock.

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod changes;
mod database;
mod file;
mod rows;
mod schema;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::sync::oneshot;

use changes::Changes;
use countersign::ledger::{
    Entry, Filter, Found, Linker, Lookup, Millis, Store, StoreError, Work, Writes,
};
use database::Database;

/// The time for which the writing thread waits, inside of a transaction, for the task to say what to write. The
/// transaction blocks all other writers, so after that time we roll it back and begin it anew.
///
/// This is long enough for a task that waits for a busy runtime. And it is short enough that a stopped task (by a
/// debugger, or a laptop that sleeps) does not block the other processes of the machine.
const PATIENCE: Duration = Duration::from_secs(2);

/// The number of times a transaction is begun in all before it is an error that its task was too slow.
const ATTEMPTS: usize = 5;

/// A store of the ledger in an SQLite file. Cheap to clone; all clones share two threads, one that writes and one that
/// reads.
///
/// Reads have a thread of their own, since in WAL mode a reader does not wait for a writer: a person sees a list
/// while a transaction waits for its turn. The reads of a store see every write that has returned before.
///
/// ```
/// use countersign::ledger::{Ask, Ledger};
/// use countersign_sqlite::SqliteStore;
///
/// # let dir = tempfile::tempdir().unwrap();
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let path = dir.path().join("asks.db");
/// let store = SqliteStore::open(&path).await?;
/// let ledger = Ledger::new(store.clone());
/// ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
///
/// // The file was replaced: nothing is read or written any more (rule L9).
/// # if cfg!(unix) {
/// std::fs::rename(&path, dir.path().join("old.db")).unwrap();
/// let error = ledger.park(Ask::new("run-1", "root/c2", "delete_file")).await.unwrap_err();
/// assert!(std::error::Error::source(&error).is_some() || error.to_string().contains("removed"));
/// # }
/// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    writer: Database,
    reader: Database,
    changes: Changes,
}

impl SqliteStore {
    /// Opens a file, and creates it if it does not exist. Any number of processes may open the same file at once.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be opened, is not a database, or was written by a newer version of this
    /// crate.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_as(path.as_ref(), true).await
    }

    /// Opens a file that has a ledger already. Where there is none, it is an error, and nothing is created.
    ///
    /// ```
    /// use countersign_sqlite::SqliteStore;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let path = dir.path().join("asks.db");
    /// assert!(SqliteStore::open_existing(&path).await.is_err() && !path.exists());
    /// SqliteStore::open(&path).await?;
    /// SqliteStore::open_existing(&path).await?;
    /// # Ok::<(), countersign::ledger::StoreError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`open`](Self::open), and where there is no ledger.
    pub async fn open_existing(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_as(path.as_ref(), false).await
    }

    async fn open_as(path: &Path, new: bool) -> Result<Self, StoreError> {
        let path = path.to_owned();
        let writer = Database::open(&path, new).await?;
        let reader = Database::open(&path, new).await?;
        Ok(Self { inner: Arc::new(Inner { path, writer, reader, changes: Changes::default() }) })
    }

    /// The path that the store was opened with.
    ///
    /// It is the path as it was given, and not made absolute.
    ///
    /// ```
    /// use countersign_sqlite::SqliteStore;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let path = dir.path().join("asks.db");
    /// assert_eq!(SqliteStore::open(&path).await?.path(), path);
    /// // A file that is no database is refused, and left as it is.
    /// std::fs::write(dir.path().join("notes.txt"), "no database, but long enough to have a header of one hundred bytes \
    ///     or so, as a file that is shorter than that counts as empty").unwrap();
    /// assert!(SqliteStore::open(dir.path().join("notes.txt")).await.is_err());
    /// # Ok::<(), countersign::ledger::StoreError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }
}

impl Store for SqliteStore {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            for _ in 0..ATTEMPTS {
                if let Some(done) = self.attempt(ids, linker, work).await {
                    return done;
                }
            }
            let problem = "the task that writes was not run for too long, time after time";
            Err(self.inner.writer.error("write", problem))
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Lookup, StoreError>> {
        let id = id.to_owned();
        Box::pin(self.inner.reader.read(move |it| {
            let snapshot = it.transaction()?;
            rows::get(&snapshot, &id)
        }))
    }

    fn list<'a>(&'a self, filter: &'a Filter) -> BoxFuture<'a, Result<Vec<Found>, StoreError>> {
        let filter = filter.clone();
        Box::pin(self.inner.reader.read(move |it| {
            let snapshot = it.transaction()?;
            rows::list(&snapshot, &filter)
        }))
    }

    fn hidden_asks(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.inner.reader.read(move |it| rows::hidden_asks(it, limit)))
    }

    fn due(&self, limit: u32) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        Box::pin(self.inner.reader.read(move |it| rows::due(it, rows::now(), limit)))
    }

    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        Box::pin(self.inner.reader.read(|it| rows::requesters(it, rows::now())))
    }

    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let run = run.to_owned();
        Box::pin(self.inner.reader.read(move |it| rows::log(it, &run, after, limit)))
    }

    fn logs<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        let after = after.to_owned();
        Box::pin(self.inner.reader.read(move |it| rows::logs(it, &after, limit)))
    }

    fn heads<'a>(
        &'a self,
        after: &'a str,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        let after = after.to_owned();
        Box::pin(self.inner.reader.read(move |it| rows::heads(it, &after, limit)))
    }

    fn wait_for_change<'a>(
        &'a self,
        run: &'a str,
        after: i64,
    ) -> BoxFuture<'a, Result<i64, StoreError>> {
        Box::pin(self.inner.changes.wait(&self.inner.reader, run, after))
    }
}

impl SqliteStore {
    /// One transaction: the writing thread begins it and reads the rows, the calling task runs `work` on them, and the
    /// thread writes. `None` when the writes came after [`PATIENCE`] or after their [`until`](Writes::until); the
    /// transaction was then rolled back.
    ///
    /// The transaction and the work are on two threads: `work` borrows from the calling task and cannot be sent away,
    /// and the connection cannot leave its thread. So they talk over two channels:
    ///
    /// ```text
    /// task                              writing thread
    /// queue the job  ----------------->  BEGIN IMMEDIATE, read the rows
    /// work(now, rows) <----------------  now, rows
    /// writes  ------------------------>  write, COMMIT
    /// result  <------------------------  committed
    /// ```
    ///
    /// A task that is dropped closes its channels, so the thread writes nothing, and rolls back. It does the same
    /// if the task is too slow, and asks it again with the rows of that time.
    async fn attempt(
        &self,
        ids: &[String],
        linker: &Linker,
        work: &mut Work<'_>,
    ) -> Option<Result<(), StoreError>> {
        let (found, has_found) = oneshot::channel::<(Millis, Vec<Lookup>)>();
        let (answer, has_answer) = std::sync::mpsc::sync_channel::<Writes>(1);
        let (ids, linker) = (ids.to_vec(), linker.clone());
        let writing = self.inner.writer.run("write", move |connection, file| {
            if found.is_closed() {
                return Ok(false);
            }
            // Rolls back when it is dropped without a commit.
            let transaction = rows::begin(connection)?;
            file.check()?;
            let rows =
                ids.iter().map(|id| rows::get(&transaction, id)).collect::<Result<_, _>>()?;
            let sent = found.send((rows::now(), rows));
            let Some(writes) = sent.ok().and_then(|()| has_answer.recv_timeout(PATIENCE).ok())
            else {
                return Ok(false);
            };
            if writes.until.is_some_and(|until| until < rows::now()) {
                return Ok(false);
            }
            rows::write(&transaction, &linker, &writes)?;
            transaction.commit()?;
            // If the file was removed meanwhile, the commit is lost, and we must not report it as written.
            file.check()?;
            Ok(true)
        });
        if let Ok((now, rows)) = has_found.await {
            let _ = answer.send(work(now, rows));
        }
        match writing.await {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteStore({})", self.inner.path.display())
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
