//! Batching: requests of many tasks at the same time go to the server in one statement.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Pool;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

/// The largest number of requests in one batch.
const MOST: usize = 64;

/// Sends a batch of requests to the server, and returns an answer for each, in their order.
type SendBatch<T, R> = fn(Pool, Vec<T>) -> BoxFuture<'static, Vec<R>>;

/// A queue of requests, sent in batches: while one batch is in flight, further requests gather for the next. No request
/// waits for others to join it, so a single request is a batch of one.
pub(super) struct Together<T, R> {
    pool: Pool,
    send: SendBatch<T, R>,
    /// How many batches may be in flight at the same time.
    lanes: usize,
    queue: Mutex<Queue<T, R>>,
}

struct Queue<T, R> {
    waiting: VecDeque<(T, oneshot::Sender<R>)>,
    under_way: usize,
}

impl<T, R> Together<T, R> {
    pub(super) fn new(pool: Pool, lanes: usize, send: SendBatch<T, R>) -> Arc<Self> {
        let queue = Queue { waiting: VecDeque::new(), under_way: 0 };
        Arc::new(Self { pool, send, lanes, queue: Mutex::new(queue) })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T, R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request with the next batch, and returns its answer. `None` when the runtime of the task that sends the
    /// batch has ended: whether the request was sent is unknown.
    pub(super) async fn ask(self: &Arc<Self>, item: T) -> Option<R>
    where
        T: Send + 'static,
        R: Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        if self.enqueue(item, sender) {
            tokio::spawn(Task { all: self.clone(), over: false }.work());
        }
        receiver.await.ok()
    }

    /// Queues a request. Returns whether a task has to be started to send it, as a lane is free.
    fn enqueue(&self, item: T, sender: oneshot::Sender<R>) -> bool {
        let mut queue = self.queue();
        queue.waiting.push_back((item, sender));
        let more = queue.under_way < self.lanes;
        queue.under_way += usize::from(more);
        more
    }

    /// Takes the next batch from the queue. When it is empty, the lane of the caller is free again.
    fn next(&self) -> Vec<(T, oneshot::Sender<R>)> {
        let mut queue = self.queue();
        let mut next = Vec::new();
        while next.len() < MOST
            && let Some(item) = queue.waiting.pop_front()
        {
            // A request whose caller was dropped meanwhile is not sent.
            if !item.1.is_closed() {
                next.push(item);
            }
        }
        if next.is_empty() {
            queue.under_way -= 1;
        }
        next
    }
}

/// A task that sends batches in one lane until the queue is empty.
struct Task<T, R> {
    all: Arc<Together<T, R>>,
    over: bool,
}

impl<T, R> Task<T, R> {
    async fn work(mut self) {
        loop {
            // The callers of the last batch were all woken at once: those that send another request now join this
            // batch.
            tokio::task::yield_now().await;
            let (items, senders): (Vec<_>, Vec<_>) = self.all.next().into_iter().unzip();
            if items.is_empty() {
                self.over = true;
                return;
            }
            let answers = (self.all.send)(self.all.pool.clone(), items).await;
            for (sender, answer) in senders.into_iter().zip(answers) {
                // Fails only when the caller was dropped.
                let _ = sender.send(answer);
            }
        }
    }
}

impl<T, R> Drop for Task<T, R> {
    /// A task that is dropped before it is over has lost its runtime: its lane becomes free, and the queue is cleared,
    /// so that the callers in it get `None`.
    fn drop(&mut self) {
        if !self.over {
            let mut queue = self.all.queue();
            queue.under_way -= 1;
            queue.waiting.clear();
        }
    }
}
