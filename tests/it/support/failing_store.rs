//! A store in which one transaction fails, or before which another program acts.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use countersign::ledger::{Entry, Linker, MemoryStore, Store, StoreError, Work};
use futures::future::{BoxFuture, Either, select};
use tokio::sync::Notify;

/// How a transaction goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum How {
    /// It has no effect, and an error says so.
    Fails,
    /// It has its effect, and the answer is lost.
    AnswerLost,
    /// The worker dies before it.
    DiesBefore,
    /// The worker dies behind it.
    DiesBehind,
}

impl How {
    pub(crate) const ALL: [Self; 4] =
        [Self::Fails, Self::AnswerLost, Self::DiesBefore, Self::DiesBehind];
}

type Meanwhile = Box<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store in memory whose transactions are counted. One of them goes wrong.
#[derive(Clone)]
pub(crate) struct Failing {
    pub(crate) inner: MemoryStore,
    count: Arc<AtomicUsize>,
    wrong: Option<(usize, How)>,
    died: Arc<Notify>,
    before: Arc<Mutex<Option<Meanwhile>>>,
    counts_nothing: Arc<AtomicBool>,
    before_log: Arc<Mutex<Option<BoxFuture<'static, ()>>>>,
}

impl Failing {
    /// Over this store; the n-th transaction from now on, from 0, goes wrong.
    pub(crate) fn at(inner: &MemoryStore, wrong: Option<(usize, How)>) -> Self {
        let (count, died, before, counts_nothing, before_log) = Default::default();
        Self { inner: inner.clone(), count, wrong, died, before, counts_nothing, before_log }
    }

    /// Does this before each transaction, which it is told the number of.
    pub(crate) fn before(
        &self,
        what: impl Fn(usize) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        *self.before.lock().unwrap() = Some(Box::new(what));
    }

    /// Does this before a log is read for the first time from now on.
    pub(crate) fn before_log(&self, what: impl Future<Output = ()> + Send + 'static) {
        *self.before_log.lock().unwrap() = Some(Box::pin(what));
    }

    /// From now on it cannot count the pending asks.
    pub(crate) fn counts_nothing(&self) {
        self.counts_nothing.store(true, Ordering::SeqCst);
    }

    /// How many transactions there were.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// The result of a worker; `None` when it dies.
    pub(crate) async fn work<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let died = self.died.notified();
        match select(Box::pin(work), Box::pin(died)).await {
            Either::Left((ended, _)) => Some(ended),
            Either::Right(_) => None,
        }
    }
}

impl Store for Failing {
    fn transact<'a>(
        &'a self,
        ids: &'a [String],
        linker: &'a Linker,
        work: &'a mut Work<'_>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let at = self.count.fetch_add(1, Ordering::SeqCst);
            let meanwhile = self.before.lock().unwrap().as_ref().map(|what| what(at));
            if let Some(meanwhile) = meanwhile {
                meanwhile.await;
            }
            let wrong = self.wrong.filter(|(wrong, _)| *wrong == at).map(|(_, how)| how);
            if !matches!(wrong, Some(How::Fails | How::DiesBefore)) {
                self.inner.transact(ids, linker, work).await?;
            }
            match wrong {
                None => Ok(()),
                Some(How::Fails | How::AnswerLost) => {
                    Err(StoreError::new("be reached", "the line is dead"))
                }
                Some(How::DiesBefore | How::DiesBehind) => {
                    self.died.notify_one();
                    pending().await
                }
            }
        })
    }

    fn requesters(&self) -> BoxFuture<'_, Result<Vec<(String, u64)>, StoreError>> {
        match self.counts_nothing.load(Ordering::SeqCst) {
            true => Box::pin(async { Err(StoreError::new("count", "the index is broken")) }),
            false => self.inner.requesters(),
        }
    }

    fn log<'a>(
        &'a self,
        run: &'a str,
        after: i64,
        limit: u32,
    ) -> BoxFuture<'a, Result<Vec<Entry>, StoreError>> {
        Box::pin(async move {
            let what = self.before_log.lock().unwrap().take();
            if let Some(what) = what {
                what.await;
            }
            self.inner.log(run, after, limit).await
        })
    }

    crate::support::inner_store!(inner: get, list, due, logs);
}
