//! Waking whoever waits for a run (`LISTEN`).

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

/// How long to wait before the next try, after the connection was lost.
const PAUSE: Duration = Duration::from_millis(200);

type Wakers = Arc<Mutex<HashMap<String, watch::Sender<()>>>>;

fn lock(wakers: &Wakers) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
    wakers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(sender: &watch::Sender<()>) {
    sender.send_replace(());
}

/// One connection that listens for all runs, made when somebody first waits, and made again when it is lost.
pub(super) struct Listener {
    wakers: Wakers,
    task: Mutex<Option<JoinHandle<()>>>,
    session: Box<dyn Fn(Wakers) -> BoxFuture<'static, ()> + Send + Sync>,
}

/// Wakes when a run may have changed.
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

    /// Notices from now on whatever may have changed a run.
    pub(super) fn waker(&self, run: &str) -> Waker {
        let receiver = lock(&self.wakers)
            .entry(run.to_owned())
            .or_insert_with(|| watch::channel(()).0)
            .subscribe();
        self.start();
        Waker { run: run.to_owned(), wakers: self.wakers.clone(), receiver }
    }

    /// A task may be over as its runtime is: the next one who waits starts another.
    fn start(&self) {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            let wakers = self.wakers.clone();
            let session = (self.session)(wakers.clone());
            *task = Some(tokio::spawn(session));
        }
    }
}

/// One connection, until it is lost.
async fn listen<T>(config: &Config, tls: T, wakers: &Wakers) -> Result<(), tokio_postgres::Error>
where
    T: MakeTlsConnect<Socket>,
{
    let (client, mut connection) = config.connect(tls).await?;
    let listening = async {
        for statement in schema::LISTEN {
            client.batch_execute(statement).await?;
        }
        // Whatever happened before: everybody looks once more.
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
    /// The run may have changed since this was last called, or since the waker was made.
    pub(super) async fn woken(&mut self) {
        if self.receiver.changed().await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let mut wakers = lock(&self.wakers);
        if wakers.get(&self.run).is_some_and(|sender| sender.receiver_count() <= 1) {
            wakers.remove(&self.run);
        }
    }
}
