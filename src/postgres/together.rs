//! What many ask for at the same time goes to the server at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deadpool_postgres::Pool;
use futures::future::BoxFuture;
use tokio::sync::oneshot;

/// How many go at once.
const MOST: usize = 64;

/// Asks the server for several at once, with an answer for each.
type Ask<T, R> = fn(Pool, Vec<T>) -> BoxFuture<'static, Vec<R>>;

/// Collects what is asked for while the server is busy with what was asked for before. Nobody waits for others to come, and
/// who asks alone is alone.
pub(super) struct Together<T, R> {
    pool: Pool,
    send: Ask<T, R>,
    /// So many are under way at the same time.
    lanes: usize,
    queue: Mutex<Queue<T, R>>,
}

struct Queue<T, R> {
    waiting: VecDeque<(T, oneshot::Sender<R>)>,
    under_way: usize,
}

impl<T, R> Together<T, R> {
    pub(super) fn new(pool: Pool, lanes: usize, send: Ask<T, R>) -> Arc<Self> {
        let queue = Queue { waiting: VecDeque::new(), under_way: 0 };
        Arc::new(Self { pool, send, lanes, queue: Mutex::new(queue) })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T, R>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer. `None` when the runtime ended that was about to get it, so that nobody knows whether it was asked for.
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

    /// Whether it takes one more task.
    fn enqueue(&self, item: T, sender: oneshot::Sender<R>) -> bool {
        let mut queue = self.queue();
        queue.waiting.push_back((item, sender));
        let more = queue.under_way < self.lanes;
        queue.under_way += usize::from(more);
        more
    }

    /// Whoever has asked next and still waits; when there is nobody, one less is under way.
    fn next(&self) -> Vec<(T, oneshot::Sender<R>)> {
        let mut queue = self.queue();
        let mut next = Vec::new();
        while next.len() < MOST
            && let Some(item) = queue.waiting.pop_front()
        {
            // Whoever was dropped meanwhile wants nothing any more.
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

/// A task that asks, as long as there is something to ask for.
struct Task<T, R> {
    all: Arc<Together<T, R>>,
    over: bool,
}

impl<T, R> Task<T, R> {
    async fn work(mut self) {
        loop {
            // Whoever is about to ask, as they were all answered at once, comes along.
            tokio::task::yield_now().await;
            let (items, senders): (Vec<_>, Vec<_>) = self.all.next().into_iter().unzip();
            if items.is_empty() {
                self.over = true;
                return;
            }
            let answers = (self.all.send)(self.all.pool.clone(), items).await;
            for (sender, answer) in senders.into_iter().zip(answers) {
                // Whoever was dropped does not hear it.
                let _ = sender.send(answer);
            }
        }
    }
}

impl<T, R> Drop for Task<T, R> {
    /// Its runtime has ended, and so whoever waits is told.
    fn drop(&mut self) {
        if !self.over {
            let mut queue = self.all.queue();
            queue.under_way -= 1;
            queue.waiting.clear();
        }
    }
}
