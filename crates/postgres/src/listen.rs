//! Notifications of changed runs (`LISTEN`), for [`Ledger::wait_for_change`](countersign::ledger::Ledger::wait_for_change).
//!
//! One connection serves all waiting tasks of a store, since a connection is memory of the server and a process may
//! wait for thousands of runs. A notification carries the id of a run and nothing of what happened: the woken task
//! reads the log. So a lost, doubled or forged notification costs one read.
//!
//! The order that makes a change impossible to miss:
//!
//! | step | the one who waits | the one who writes |
//! |---|---|---|
//! | 1 | subscribes to the run here | commits |
//! | 2 | reads the end of the log | notifies, when a connection holds the shared lock |
//! | 3 | waits | |
//!
//! If the commit comes before the read, the read finds it. If it comes after, the subscription is older than the
//! notification. After a lost connection we wake all once, as notifications that were sent meanwhile reached no
//! one.

use std::collections::HashMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, Either, pending, select};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{AsyncMessage, Config, Socket};

use super::{rows, schema};

/// The pause before the listener reconnects after it has lost its connection.
const PAUSE: Duration = Duration::from_millis(200);

type Wakers = Arc<Mutex<HashMap<String, watch::Sender<()>>>>;

fn lock(wakers: &Wakers) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
    wakers.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A `watch` channel and not a queue: a run that changes a hundred times before its task looks is one wake.
fn wake(sender: &watch::Sender<()>) {
    sender.send_replace(());
}

/// One connection that listens for all runs. It is made for the first waker, and made anew when it is lost.
pub(super) struct Listener {
    wakers: Wakers,
    task: Mutex<Option<JoinHandle<()>>>,
    session: Box<dyn Fn(Wakers) -> BoxFuture<'static, ()> + Send + Sync>,
}

/// A subscription to one run, which wakes when the run may have changed.
pub(super) struct Waker {
    run: String,
    wakers: Wakers,
    receiver: watch::Receiver<()>,
}

impl Listener {
    pub(super) fn new<T>(config: Config, tls: T) -> Self
    where
        T: MakeTlsConnect<Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let session = move |wakers: Wakers| -> BoxFuture<'static, ()> {
            let (config, tls) = (config.clone(), tls.clone());
            Box::pin(async move {
                loop {
                    if let Err(error) = listen(&config, tls.clone(), &wakers).await {
                        tracing::debug!(%error, "waiting runs are woken once the server is back");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            })
        };
        Self { wakers: Arc::default(), task: Mutex::new(None), session: Box::new(session) }
    }

    /// Subscribes to a run: changes from now on wake the waker.
    pub(super) fn waker(&self, run: &str) -> Waker {
        let receiver = lock(&self.wakers)
            .entry(run.to_owned())
            .or_insert_with(|| watch::channel(()).0)
            .subscribe();
        self.start();
        Waker { run: run.to_owned(), wakers: self.wakers.clone(), receiver }
    }

    /// Starts the task of the connection if it is not running: it ends with the runtime that it was started on.
    ///
    /// Tests, and programs with several runtimes, make and drop runtimes while a store lives. So if the task has
    /// ended with its runtime, we start it on the present one.
    fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let wakers = self.wakers.clone();
            let session = (self.session)(wakers.clone());
            *task = Some(tokio::spawn(session));
        }
    }
}

/// Listens on one connection until it is lost.
async fn listen<T>(config: &Config, tls: T, wakers: &Wakers) -> Result<(), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
{
    let (client, mut connection) = config.connect(tls).await?;
    let listening = async {
        for statement in schema::LISTEN {
            client.batch_execute(statement).await?;
        }
        // Changes from before `LISTEN` were not notified to this connection, so every waker reads its log again.
        lock(wakers).values().for_each(wake);
        pending::<Result<(), tokio_postgres::Error>>().await
    };
    let hearing = async {
        while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notification(message) = message? {
                let run = rows::decode(message.payload().to_owned());
                lock(wakers).get(&run).into_iter().for_each(wake);
            }
        }
        Ok(())
    };
    match select(pin!(hearing), pin!(listening)).await {
        Either::Left((end, _)) | Either::Right((end, _)) => end,
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Listener({} runs)", lock(&self.wakers).len())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl Waker {
    /// Waits until the run may have changed since the last call, or since the waker was made.
    pub(super) async fn woken(&mut self) {
        if self.receiver.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

/// The last waker of a run takes the entry with it. Otherwise a process that has waited for a million runs would keep
/// their ids.
impl Drop for Waker {
    fn drop(&mut self) {
        let mut wakers = lock(&self.wakers);
        if wakers.get(&self.run).is_some_and(|sender| sender.receiver_count() <= 1) {
            wakers.remove(&self.run);
        }
    }
}
