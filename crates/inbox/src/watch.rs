//! Watches the store and caches the pending asks. Pages get an event when any process has changed something.
//!
//! Three speeds, by what is known to have changed:
//!
//! | what | how soon | cost |
//! |---|---|---|
//! | a decision through this inbox | at once | none: it is put into the board |
//! | a new ask, or a run whose log has grown | 150 ms while a page is open | the newest 32 asks, or the asks of that run |
//! | anything else, deadlines among it | 1 s, or ten times as long as reading takes | all pending asks |
//!
//! # A reading that is older than a change
//!
//! Reading ten thousand asks takes a while, and a person may decide one of them meanwhile. The reading would bring
//! the decided ask back, and the page would show it again for a second. So each change has a number (the epoch), and
//! a reading remembers the number at its beginning. We apply the changes after that number to what was read.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::board::Board;
use super::notice::Notices;
use super::webhook::Webhook;
use countersign::ledger::{AskRecord, AskState, Ledger, LedgerError, RefusedRow};

/// The interval of the check for new asks, while a page is open.
const GLANCE: Duration = Duration::from_millis(150);
/// The interval of complete readings, which apply deadlines and find the changes of other processes.
const LOOK: Duration = Duration::from_secs(1);
/// The share of the time that reading may take: one tenth.
///
/// So an inbox never keeps a slow store busy by watching it.
const REST: u32 = 10;
/// If we can read the board faster than this, we read it for each request.
const QUICK: Duration = Duration::from_millis(25);
/// The number of open runs whose logs we watch, the newest ones. The next complete reading finds the changes of
/// the others.
const RUNS: u32 = 100;
/// The number of newest asks that the check for new asks reads.
const NEWEST: u32 = 32;

/// Completes when the server stops.
pub(super) struct Shutdown {
    told: watch::Sender<bool>,
    wait: Mutex<Option<BoxFuture<'static, ()>>>,
}

impl Shutdown {
    pub(super) fn new(wait: Option<BoxFuture<'static, ()>>) -> Self {
        Self { told: watch::channel(false).0, wait: Mutex::new(wait) }
    }
}

/// The board of the pending asks, the notification of its changes, and the task that keeps the board current. The task
/// ends with the hub.
pub(super) struct Hub {
    inner: Arc<Inner>,
    task: Mutex<Option<AbortHandle>>,
    begun: AtomicBool,
}

struct Inner {
    ledger: Ledger,
    kept: RwLock<Kept>,
    /// Held while the board is read, so that one task reads at a time.
    reading: tokio::sync::Mutex<()>,
    bell: watch::Sender<u64>,
    stop: Shutdown,
    webhooks: Vec<Webhook>,
}

#[derive(Default)]
struct Kept {
    board: Arc<Board>,
    /// The time and the duration of the last reading; `None` when the board is out of date.
    read: Option<(Instant, Duration)>,
    /// The asks that this process has changed, by epoch, so that a reading that began earlier does not bring back their
    /// old state.
    changed: Vec<(u64, String, Option<AskRecord>)>,
    epoch: u64,
}

impl Drop for Hub {
    fn drop(&mut self) {
        let task = self.task.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task.take() {
            task.abort();
        }
    }
}

impl Hub {
    pub(super) fn new(ledger: Ledger, webhooks: Vec<Webhook>, stop: Shutdown) -> Self {
        let inner = Inner {
            ledger,
            kept: RwLock::default(),
            reading: tokio::sync::Mutex::default(),
            bell: watch::channel(0).0,
            stop,
            webhooks,
        };
        Self { inner: Arc::new(inner), task: Mutex::default(), begun: AtomicBool::new(false) }
    }

    /// Starts the watching task once, if there is a runtime.
    pub(super) fn begin(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.begun.swap(true, Ordering::Relaxed) {
            return;
        }
        let task = runtime.spawn(watch(Arc::clone(&self.inner))).abort_handle();
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    /// The pending asks; read now, if reading is fast enough.
    pub(super) async fn board(&self) -> Result<Arc<Board>, LedgerError> {
        if self.inner.is_slow_to_read() {
            // New asks are found now; decisions of other processes, by the next complete reading.
            self.inner.glance().await?;
            return Ok(self.inner.kept());
        }
        self.inner.read().await
    }

    /// Updates the board after this process has changed these asks: their new state, if they are still pending.
    pub(super) fn changed(&self, asks: Vec<(String, Option<AskRecord>)>) {
        self.inner.changed(asks);
    }

    /// A receiver that is notified when the board has changed.
    pub(super) fn listen(&self) -> watch::Receiver<u64> {
        self.inner.bell.subscribe()
    }

    /// A receiver whose value becomes `true` when the server stops.
    pub(super) fn stopping(&self) -> watch::Receiver<bool> {
        self.inner.stop.told.subscribe()
    }
}

impl Inner {
    fn ring(&self) {
        self.bell.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    /// Replaces these asks on the board, and keeps the others.
    fn changed(&self, asks: Vec<(String, Option<AskRecord>)>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        kept.epoch += 1;
        let epoch = kept.epoch;
        kept.board = Arc::new(kept.board.with(&self.ledger, asks.iter().cloned().collect()));
        kept.changed.extend(asks.into_iter().map(|(id, now)| (epoch, id, now)));
        drop(kept);
        self.ring();
    }

    /// Returns `true` if there is a board, and reading it for each request would take too long.
    fn is_slow_to_read(&self) -> bool {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        kept.read.is_some_and(|(_, took)| took > QUICK)
    }

    /// A request may use the result of another one only if that reading has *begun* after the request came. Otherwise a
    /// client that has just decided elsewhere, and then asks, could get the state of before.
    async fn read(&self) -> Result<Arc<Board>, LedgerError> {
        let asked = Instant::now();
        let _one = self.reading.lock().await;
        let epoch = {
            let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
            // Another request has read the board meanwhile.
            if kept
                .read
                .is_some_and(|(at, took)| at.checked_sub(took).is_some_and(|begun| begun >= asked))
            {
                return Ok(Arc::clone(&kept.board));
            }
            kept.epoch
        };
        let begun = Instant::now();
        let listed = self.ledger.list(Some(AskState::Pending), u32::MAX).await;
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let listed = listed.inspect_err(|_| kept.read = None)?;
        let mut board = Board::of(&self.ledger, listed);
        kept.changed.retain(|(at, ..)| *at > epoch);
        if !kept.changed.is_empty() {
            let since = kept.changed.iter().map(|(_, id, now)| (id.clone(), now.clone())).collect();
            board = board.with(&self.ledger, since);
        }
        let is_new = board.mark() != kept.board.mark();
        kept.board = Arc::new(board);
        kept.read = Some((Instant::now(), begun.elapsed()));
        let board = Arc::clone(&kept.board);
        drop(kept);
        if is_new {
            self.ring();
        }
        Ok(board)
    }

    /// Adds the asks that are newer than the board.
    ///
    /// If all that we have read are new, there may be more. Then we read everything.
    async fn glance(&self) -> Result<(), LedgerError> {
        let newest = self.ledger.list(Some(AskState::Pending), NEWEST).await?.records;
        let board = self.kept();
        let known: HashSet<_> =
            board.items.iter().take(4 * NEWEST as usize).map(|it| it.record.ask.id()).collect();
        let mut new: Vec<_> =
            newest.into_iter().filter(|it| !known.contains(it.ask.id())).collect();
        if new.len() == NEWEST as usize {
            self.read().await?;
        } else if !new.is_empty() {
            self.changed(
                new.drain(..).map(|record| (record.ask.id().to_owned(), Some(record))).collect(),
            );
        }
        Ok(())
    }

    /// Reads the asks of a run again.
    async fn glance_at(&self, run: &str) -> Result<(), LedgerError> {
        let records = self.ledger.list_run(run, u32::MAX).await?.records;
        let now = records.into_iter().map(|record| {
            let pending = record.state == AskState::Pending;
            (record.ask.id().to_owned(), pending.then_some(record))
        });
        self.changed(now.collect());
        Ok(())
    }

    fn kept(&self) -> Arc<Board> {
        Arc::clone(&self.kept.read().unwrap_or_else(PoisonError::into_inner).board)
    }
}

/// Polls the store until the hub is dropped.
async fn watch(inner: Arc<Inner>) {
    let wait = inner.stop.wait.lock().unwrap_or_else(PoisonError::into_inner).take();
    let mut stop = wait.unwrap_or_else(|| Box::pin(std::future::pending())).fuse();
    let mut runs = Runs::default();
    let mut notices = Notices::new(inner.webhooks.clone(), &inner.ledger);
    let mut told = HashSet::new();
    let mut looked: Option<(Instant, Duration)> = None;
    loop {
        let rest = looked.map_or(Duration::ZERO, |(at, took)| {
            LOOK.max(took * REST).saturating_sub(at.elapsed())
        });
        if rest.is_zero() {
            let begun = Instant::now();
            match look(&inner, &mut runs).await {
                Ok(refused) => {
                    refused.iter().for_each(|row| tell(&mut told, row));
                    notices.look(&inner.kept()).await;
                }
                Err(error) => warn(&error),
            }
            looked = Some((Instant::now(), begun.elapsed()));
            continue;
        }
        let pages = inner.bell.receiver_count() > 0 || !inner.webhooks.is_empty();
        let pause = if pages { GLANCE.min(rest) } else { rest };
        futures::select_biased! {
            () = stop => {
                inner.stop.told.send_replace(true);
                notices.release().await;
                stop = std::future::pending().boxed().fuse();
            }
            run = runs.next().fuse() => if let Some(run) = run { warn_of(inner.glance_at(&run).await) },
            () = sleep(pause).fuse() => warn_of(inner.glance().await),
        }
    }
}

fn warn_of(result: Result<(), LedgerError>) {
    if let Err(error) = result {
        warn(&error);
    }
}

/// Reads all asks, and returns the refused rows.
async fn look(inner: &Inner, runs: &mut Runs) -> Result<Vec<Arc<RefusedRow>>, LedgerError> {
    let mut refused = inner.ledger.expire().await?.refused;
    let board = inner.read().await?;
    let waiting = inner.ledger.waiting_runs(RUNS).await?;
    refused.extend(waiting.refused);
    let mut refused: Vec<_> = refused.into_iter().map(Arc::new).collect();
    refused.extend(board.refused.iter().cloned());
    let newest = board.items.iter().take(RUNS as usize).map(|it| it.record.ask.run().to_owned());
    let open = newest.chain(waiting.records.into_iter().map(|run| run.run)).collect();
    if runs.follow(&inner.ledger, open) {
        inner.ring();
    }
    Ok(refused)
}

fn warn(error: &LedgerError) {
    tracing::warn!(error = error as &dyn std::error::Error, "the store cannot be read");
}

/// Logs each refused row once.
fn tell(told: &mut HashSet<String>, row: &RefusedRow) {
    if told.insert(row.id.clone()) {
        let error = &row.error as &dyn std::error::Error;
        tracing::error!(row = row.id, error, "a row of the store is refused: restore a backup");
    }
}

/// The runs whose logs are worth watching: those with open asks.
#[derive(Default)]
struct Runs {
    open: HashSet<String>,
    watched: HashMap<String, AbortHandle>,
    waiting: JoinSet<(Ledger, String, Result<i64, LedgerError>)>,
}

impl Runs {
    /// Watches the logs of exactly these runs. Returns whether the set has changed.
    ///
    /// We wait for at most a hundred runs: each wait is a task, and with some stores a subscription.
    fn follow(&mut self, ledger: &Ledger, open: HashSet<String>) -> bool {
        self.watched.retain(|run, waits| {
            let stays = open.contains(run);
            if !stays {
                waits.abort();
            }
            stays
        });
        for run in &open {
            if !self.watched.contains_key(run) {
                // The wait starts at the beginning of the log, so it reports a new run at once.
                self.wait(ledger.clone(), run.clone(), -1);
            }
        }
        let differs = open != self.open;
        self.open = open;
        differs
    }

    fn wait(&mut self, ledger: Ledger, run: String, after: i64) {
        let name = run.clone();
        let waits = self.waiting.spawn(async move {
            let place = ledger.wait_for_change(&name, after).await;
            (ledger, name, place)
        });
        self.watched.insert(run, waits);
    }

    /// The next run that has changed; `None` when a wait was cancelled. Pending while no run changes.
    async fn next(&mut self) -> Option<String> {
        match self.waiting.join_next().await {
            Some(Ok((ledger, run, place))) => {
                self.watched.remove(&run);
                self.wait(ledger, run.clone(), place.ok()?);
                Some(run)
            }
            Some(Err(_)) => None,
            None => std::future::pending().await,
        }
    }
}
