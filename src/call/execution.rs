//! The state of a call's execution, shared by all attempts of a pass: at most one runs the tool body at a time.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::error::BoxError;
use crate::outcome::Outcome;

/// What the gate knows about the execution of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Execution {
    /// The tool body was never started.
    NotStarted,
    /// The tool body was started, and its end was not seen: it may have run.
    Unknown,
    /// The tool body ended with this outcome.
    Finished(Outcome),
    /// The tool body ended with an error that is not for the model.
    FinishedWithError,
}

impl Execution {
    /// Whether the tool body was started.
    #[must_use]
    pub fn started(&self) -> bool {
        !matches!(self, Self::NotStarted)
    }
}

/// An error that several attempts of one pass return, and that therefore can be cloned.
#[derive(Clone)]
pub(crate) struct SharedError(pub(crate) Arc<BoxError>);

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for SharedError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}

pub(super) type Ended = Result<Outcome, SharedError>;

pub(super) enum State {
    NotStarted,
    Running,
    Finished(Ended),
    Unknown,
}

pub(super) struct ExecutionCell {
    inner: Mutex<Inner>,
    /// Notified when an attempt has ended, and when the pass is closed.
    pub(super) changed: Notify,
    pub(super) bodies: AtomicUsize,
    pub(super) idle: Notify,
    /// Whether an attempt has begun to execute, for layers to see without the lock.
    pub(super) started: AtomicBool,
}

pub(super) struct Inner {
    pub(super) state: State,
    /// The error of the latest execution, if it failed with one whose text the model gets.
    pub(super) error: Option<SharedError>,
    pub(super) closed: bool,
}

impl ExecutionCell {
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner { state: State::NotStarted, error: None, closed: false }),
            changed: Notify::new(),
            bodies: AtomicUsize::new(0),
            idle: Notify::new(),
            started: AtomicBool::new(false),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Closes the pass: no attempt may claim the execution any more, and waiting ones return.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_waiters();
    }

    pub(super) fn execution(&self) -> Execution {
        match &self.lock().state {
            State::NotStarted => Execution::NotStarted,
            State::Running | State::Unknown => Execution::Unknown,
            State::Finished(Ok(outcome)) => Execution::Finished(outcome.clone()),
            State::Finished(Err(_)) => Execution::FinishedWithError,
        }
    }

    pub(super) fn ended(&self) -> Option<Ended> {
        match &self.lock().state {
            State::Finished(ended) => Some(ended.clone()),
            State::NotStarted | State::Running | State::Unknown => None,
        }
    }

    pub(super) fn error(&self) -> Option<SharedError> {
        self.lock().error.clone()
    }

    pub(super) fn failed(&self, error: SharedError) {
        self.lock().error = Some(error);
    }

    /// Waits until no attempt is executing: it has ended or was dropped.
    pub(super) async fn settled(&self) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if !matches!(self.lock().state, State::Running) {
                return;
            }
            changed.await;
        }
    }

    pub(super) fn end(&self, state: State) {
        self.lock().state = state;
        self.changed.notify_waiters();
    }

    /// Waits until no tool body of this pass runs any more, also not in blocking code whose future was dropped.
    pub(super) async fn idle(&self) {
        loop {
            let mut idle = pin!(self.idle.notified());
            idle.as_mut().enable();
            if self.bodies.load(Ordering::Acquire) == 0 {
                return;
            }
            idle.await;
        }
    }
}
