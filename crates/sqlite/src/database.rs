//! A connection on a thread of its own, as SQLite blocks and the threads of an async runtime must not.
//!
//! Each connection has one thread, and we use no pool of blocking threads: a transaction in SQLite belongs to its
//! connection, and must not wait behind other programs' blocking jobs while it holds the lock of the file. Jobs run in
//! the order in which they were queued.
//!
//! The thread ends when the sender is dropped, after the jobs that are queued.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::file::File;
use super::schema;
use countersign::error::BoxError;
use countersign::ledger::StoreError;

type Job = Box<dyn FnOnce(&mut Connection, &File) + Send>;

/// A handle on a connection and its thread, which ends when the handle is dropped.
pub(super) struct Database {
    jobs: Sender<Job>,
    path: PathBuf,
}

impl Database {
    pub(super) async fn open(path: &Path, new: bool) -> Result<Self, StoreError> {
        let (jobs, incoming) = channel::<Job>();
        let (opened, is_open) = oneshot::channel();
        let this = Self { jobs, path: path.to_owned() };
        let path = path.to_owned();
        let thread = thread::Builder::new().name("countersign-sqlite".to_owned());
        let started = thread.spawn(move || match schema::open(&path, new) {
            Ok((connection, file)) => {
                if opened.send(Ok(())).is_ok() {
                    work(connection, &file, &incoming);
                }
            }
            Err(error) => drop(opened.send(Err(error))),
        });
        started.map_err(|error| this.error("open", error))?;
        match is_open.await {
            Ok(Ok(())) => Ok(this),
            Ok(Err(error)) => Err(this.error("open", error)),
            Err(_) => Err(this.error("open", ENDED)),
        }
    }

    /// Runs a job that only reads, after all earlier jobs. It is an error when the file is not at its path any more
    /// (rule L9).
    pub(super) fn read<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        self.run("read", move |connection, file| {
            file.check()?;
            Ok(job(connection)?)
        })
    }

    /// Runs a job on the connection, after all earlier jobs. The job is queued before this returns, and runs even if
    /// the returned future is dropped.
    ///
    /// To drop the future does not stop its job. A job that has begun a transaction has to end it, and the caller
    /// cannot know whether a job has begun. If a job must not write without its caller, it looks at a channel of its
    /// own ([`SqliteStore::attempt`](super::SqliteStore)).
    pub(super) fn run<T: Send + 'static>(
        &self,
        what: &'static str,
        job: impl FnOnce(&mut Connection, &File) -> Result<T, BoxError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> + Send {
        let (done, is_done) = oneshot::channel();
        let job: Job = Box::new(move |connection, file| drop(done.send(job(connection, file))));
        let sent = self.jobs.send(job).map_err(|_| self.error(what, ENDED));
        async move {
            sent?;
            match is_done.await {
                Ok(result) => result.map_err(|error| self.error(what, error)),
                Err(_) => Err(self.error(what, ENDED)),
            }
        }
    }

    /// An error that says what could not be done, with the path of the file.
    pub(super) fn error(&self, what: &str, source: impl Into<BoxError>) -> StoreError {
        StoreError::new(format!("{what} `{}`", self.path.display()), source)
    }
}

const ENDED: &str = "the thread of the database has ended";

fn work(mut connection: Connection, file: &File, jobs: &Receiver<Job>) {
    for job in jobs {
        job(&mut connection, file);
    }
}
