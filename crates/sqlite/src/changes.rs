//! Waiting for a change of a run.
//!
//! SQLite notifies no other process of a commit, but it counts them: `data_version` differs for a connection once any
//! other one has committed, and to read it reads no table. One of the waiting tasks reads it for all of them, on the
//! connection for reads, which never commits. Then each task looks into its log.

use std::time::Duration;

use futures::future::{Either, select};
use tokio::sync::{Mutex, watch};

use super::database::Database;
use super::rows;
use countersign::ledger::StoreError;

/// The pause between two readings. On average we act on a person's decision after half of it.
const POLL: Duration = Duration::from_millis(5);
/// The pause of a task after another run has changed. Without it, many tasks would read all the time beside a process
/// that writes all the time.
const OTHERS: Duration = Duration::from_millis(20);

/// The commits of one file, as the tasks that wait have seen them.
pub(super) struct Changes {
    version: watch::Sender<i64>,
    /// Held by the task that reads for all.
    reading: Mutex<()>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { version: watch::Sender::new(0), reading: Mutex::new(()) }
    }
}

impl Changes {
    /// Waits until the log of a run has an entry behind a place, and returns the place of its last entry.
    pub(super) async fn wait(
        &self,
        reader: &Database,
        run: &str,
        after: i64,
    ) -> Result<i64, StoreError> {
        let mut woken = false;
        loop {
            // Before the reading, so that no later version is missed.
            let others = self.version.subscribe();
            let name = run.to_owned();
            // The version first: a commit between the two is seen again, and not missed.
            let read = reader.read(move |it| Ok((rows::version(it)?, rows::end(it, &name)?)));
            let (version, end) = read.await?;
            if end > after {
                return Ok(end);
            }
            if woken {
                tokio::time::sleep(OTHERS).await;
            }
            self.differs(reader, version, others).await?;
            woken = true;
        }
    }

    /// Waits until the file has another version.
    async fn differs(
        &self,
        reader: &Database,
        known: i64,
        mut others: watch::Receiver<i64>,
    ) -> Result<(), StoreError> {
        let told = std::pin::pin!(async {
            // The sender lives as long as this value.
            while others.changed().await.is_ok() && *others.borrow() == known {}
        });
        let read = std::pin::pin!(async {
            let _reading = self.reading.lock().await;
            loop {
                let version = reader.read(|it| rows::version(it)).await?;
                self.version.send_if_modified(|it| std::mem::replace(it, version) != version);
                if version != known {
                    return Ok(());
                }
                tokio::time::sleep(POLL).await;
            }
        });
        match select(told, read).await {
            Either::Left(((), _)) => Ok(()),
            Either::Right((read, _)) => read,
        }
    }
}
