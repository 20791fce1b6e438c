//! The execution cell: of several attempts of a pass, at most one runs the tool body at a time.
//!
//! `tests/loom` checks this file over all interleavings of three attempts, one of them dropped, and a close. So it has
//! wakers of its own, under the mutex that holds the state: the state cannot change between the check and the
//! registration of a waker.
//!
//! # States
//!
//! ```text
//!                  claim                     end(result)
//!  NotStarted ────────────► Running ─────────────────────► Finished(result)
//!       ▲                    │    │                              │
//!       └──── give_up ───────┘    └── dropped ──► Unknown        │ claim, if the result may be repeated
//!                                                   │            │ and the attempt did not wait
//!                            Running ◄──────────────┴────────────┘
//! ```
//!
//! `closed` is a flag beside the state: a body that has begun before the close still ends, and its end is recorded,
//! while no further attempt gets the right to execute.
//!
//! # What each attempt is told
//!
//! | state | an attempt that arrives | an attempt that waited |
//! |---|---|---|
//! | `NotStarted` | runs | runs, where the first one gave up |
//! | `Running` | waits | waits |
//! | `Finished`, may be repeated | runs | gets the recorded result |
//! | `Finished`, otherwise | gets the recorded result | gets the recorded result |
//! | `Unknown`, idempotent | runs | runs |
//! | `Unknown`, otherwise | is told that it may have run | is told that it may have run |
//! | closed | is refused | is refused |
//!
//! The column on the right makes `hedge` safe. A hedging layer sends a second attempt while the first one runs. The
//! second waits here and gets the result of the first, also if that is a failure which a retry would repeat: the second
//! attempt was not sent because of that failure.
//!
//! # Why there are two counters beside the state
//!
//! `started` can be read without the lock, by layers that ask for each outcome. `bodies` counts running bodies, which
//! may be more than zero in every state: blocking code continues after its future was dropped. A sequential tool waits
//! for `bodies` to fall to zero (rule T1), not for the state.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::{Context, Poll, Waker};

use super::sync::{Arc, AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering};

/// The state of an execution. `T` is the result of an attempt.
pub(crate) enum ExecutionState<T> {
    NotStarted,
    Running,
    Finished(T),
    /// An attempt was started and dropped, so that its end was not seen.
    Unknown,
}

/// The state of a call's execution, shared by all attempts of a pass. `T` is the result of an attempt, `E` an error that
/// is kept beside it.
pub(crate) struct ExecutionCell<T, E> {
    inner: Mutex<Inner<T, E>>,
    bodies: AtomicUsize,
    /// `true` once an attempt has begun to execute, for layers to see without the lock.
    started: AtomicBool,
}

pub(super) struct Inner<T, E> {
    pub(super) state: ExecutionState<T>,
    /// The error of the latest execution, if it failed with one whose text the model gets.
    pub(super) error: Option<E>,
    closed: bool,
    /// Woken when an attempt has ended, when the pass is closed, and when the last body has ended.
    waiting: Vec<Waker>,
}

/// A value with an execution cell, which a guard keeps alive.
pub(crate) trait HasCell {
    type Ended: Clone;
    type Error;

    fn cell(&self) -> &ExecutionCell<Self::Ended, Self::Error>;
}

/// The answer to an attempt that reaches the gate.
pub(crate) enum Claim<O: HasCell> {
    /// The attempt may run the tool body.
    Go(ExecutionGuard<O>),
    /// An earlier attempt has ended with this result, which counts for this attempt too.
    Recorded(O::Ended),
    /// An earlier attempt started the body and was dropped before the end was seen.
    Unknown,
    /// The pass is closed: it has ended or was dropped, and nothing of it may run any more.
    Closed,
}

/// The right to execute once. If it is dropped before the body has ended, the execution is recorded as unknown.
pub(crate) struct ExecutionGuard<O: HasCell> {
    owner: Arc<O>,
    ended: bool,
    first: bool,
}

/// Claims the execution for one attempt, or returns the result of an earlier one. Waits while another attempt runs.
/// `repeats` says whether the attempt may run after one with this result, or, without a result, after one whose end was
/// not seen.
pub(super) async fn claim<O: HasCell>(
    owner: &Arc<O>,
    repeats: impl Fn(Option<&O::Ended>) -> bool,
) -> Claim<O> {
    let mut waited = false;
    poll_fn(|cx| {
        let claim = owner.cell().try_claim(owner, &repeats, waited, cx);
        waited = claim.is_pending();
        claim
    })
    .await
}

impl<T: Clone, E> ExecutionCell<T, E> {
    pub(super) fn new() -> Self {
        let inner = Inner {
            state: ExecutionState::NotStarted,
            error: None,
            closed: false,
            waiting: Vec::new(),
        };
        Self {
            inner: Mutex::new(inner),
            bodies: AtomicUsize::new(0),
            started: AtomicBool::new(false),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner<T, E>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_claim<O: HasCell<Ended = T, Error = E>>(
        &self,
        owner: &Arc<O>,
        repeats: &impl Fn(Option<&T>) -> bool,
        waited: bool,
        cx: &Context<'_>,
    ) -> Poll<Claim<O>> {
        let mut inner = self.lock();
        if inner.closed {
            return Poll::Ready(Claim::Closed);
        }
        match &inner.state {
            ExecutionState::NotStarted => {}
            ExecutionState::Running => {
                inner.wait(cx);
                return Poll::Pending;
            }
            ExecutionState::Unknown if repeats(None) => {}
            ExecutionState::Unknown => return Poll::Ready(Claim::Unknown),
            // An attempt that waited was sent before the other one failed, so it is no retry of it.
            ExecutionState::Finished(ended) if !waited && repeats(Some(ended)) => {}
            ExecutionState::Finished(ended) => return Poll::Ready(Claim::Recorded(ended.clone())),
        }
        let first = matches!(inner.state, ExecutionState::NotStarted);
        inner.state = ExecutionState::Running;
        inner.error = None;
        self.started.store(true, Ordering::Release);
        Poll::Ready(Claim::Go(ExecutionGuard { owner: Arc::clone(owner), ended: false, first }))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Closes the pass: no attempt may claim the execution any more, and waiting ones return.
    pub(super) fn close(&self) {
        self.change(|inner| inner.closed = true);
    }

    /// Waits until no attempt is executing: it has ended or was dropped.
    pub(super) async fn settled(&self) {
        self.until(|inner| !matches!(inner.state, ExecutionState::Running)).await;
    }

    /// Waits until no tool body of this pass runs any more, also not in blocking code whose future was dropped.
    pub(super) async fn idle(&self) {
        self.until(|_| self.bodies.load(Ordering::Acquire) == 0).await;
    }

    /// Counts a running tool body, until [`body_ended`](Self::body_ended).
    pub(super) fn body_started(&self) {
        self.bodies.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn body_ended(&self) {
        if self.bodies.fetch_sub(1, Ordering::AcqRel) == 1 {
            // The lock orders this after a task that has seen the body run and registers its waker.
            self.change(|_| ());
        }
    }

    async fn until(&self, is_so: impl Fn(&Inner<T, E>) -> bool) {
        poll_fn(|cx| {
            let mut inner = self.lock();
            if is_so(&inner) {
                return Poll::Ready(());
            }
            inner.wait(cx);
            Poll::Pending
        })
        .await;
    }

    /// Changes the state, and wakes all tasks that wait for a change.
    fn change(&self, change: impl FnOnce(&mut Inner<T, E>)) {
        let waiting = {
            let mut inner = self.lock();
            change(&mut inner);
            std::mem::take(&mut inner.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn end(&self, state: ExecutionState<T>) {
        self.change(|inner| inner.state = state);
    }
}

impl<T, E> Inner<T, E> {
    /// Registers a task for the next change. The waker of a task that was dropped stays until then.
    ///
    /// A task may be polled again without having been woken, so we do not store the same waker twice. The waker
    /// of a dropped task is woken once for nothing. That is cheaper than a registration that removes itself on
    /// drop.
    fn wait(&mut self, cx: &Context<'_>) {
        if !self.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            self.waiting.push(cx.waker().clone());
        }
    }
}

impl<O: HasCell> ExecutionGuard<O> {
    /// Returns `true` if no attempt of this pass was started before.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Gives the right back without having started the body, so that another attempt may claim it.
    ///
    /// Use it for a claim that you do not need after all, for example because a limit is reached, or the journal
    /// refuses. If you drop the guard instead, it records that the tool may have run.
    pub(crate) fn give_up(mut self) {
        self.ended = true;
        self.owner.cell().started.store(false, Ordering::Release);
        self.owner.cell().end(ExecutionState::NotStarted);
    }

    pub(crate) fn end(mut self, ended: O::Ended) {
        self.ended = true;
        self.owner.cell().end(ExecutionState::Finished(ended));
    }
}

impl<O: HasCell> Drop for ExecutionGuard<O> {
    fn drop(&mut self) {
        if !self.ended {
            self.owner.cell().end(ExecutionState::Unknown);
        }
    }
}
