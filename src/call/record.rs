//! The record of a call's execution: at most once per pass.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::Pass;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// What the gate knows about the execution of a call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Execution {
    /// The tool body was never started.
    NotStarted,
    /// It was started, and its end was not seen: it may have run.
    Unknown,
    /// It ended with this outcome.
    Finished(Outcome),
    /// It ended with an error that is not for the model.
    FinishedWithError,
}

impl Execution {
    /// Whether the tool body was started.
    #[must_use]
    pub fn started(&self) -> bool {
        !matches!(self, Self::NotStarted)
    }
}

/// An error that several attempts are told.
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

type Ended = Result<Outcome, SharedError>;

enum State {
    NotStarted,
    Running,
    Finished(Ended),
    Unknown,
}

/// What an attempt at the gate gets.
pub(crate) enum Claim {
    /// It may execute.
    Go(Claimed),
    /// Another attempt has executed, or is known to have ended.
    Recorded(Ended),
    /// Another attempt was started and lost.
    Unknown,
    /// The call already has its outcome.
    Closed,
}

pub(super) struct Record {
    inner: Mutex<Inner>,
    /// Somebody's attempt ended, or the pass was closed.
    changed: Notify,
    bodies: AtomicUsize,
    idle: Notify,
    /// Whether an attempt has begun to execute, for layers to see without the lock.
    started: AtomicBool,
}

struct Inner {
    state: State,
    /// The error of the latest execution that the model is told of.
    error: Option<SharedError>,
    closed: bool,
}

impl Record {
    pub(super) fn new() -> Self {
        Self {
            inner: Mutex::new(Inner { state: State::NotStarted, error: None, closed: false }),
            changed: Notify::new(),
            bodies: AtomicUsize::new(0),
            idle: Notify::new(),
            started: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    pub(super) fn started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Closes the pass, for good.
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

    /// Waits while an attempt executes, until it has ended or was dropped.
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

    fn end(&self, state: State) {
        self.lock().state = state;
        self.changed.notify_waiters();
    }

    /// Waits until no tool body of this pass runs any more, also one whose call was given up.
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

/// Who may execute again.
#[derive(Clone, Copy)]
pub(crate) struct Rerun {
    /// The tool is idempotent: whatever did not return a value may run again.
    pub(crate) idempotent: bool,
    /// Nobody was asked about the call: a retry layer of the host's may repeat what ended with an error.
    pub(crate) unasked: bool,
}

impl Rerun {
    fn after(self, ended: &Ended) -> bool {
        let failed = match ended {
            Ok(Outcome::Failed(_) | Outcome::Retry(_) | Outcome::Unknown(_)) | Err(_) => true,
            Ok(Outcome::Returned(_) | Outcome::Denied(_) | Outcome::Deferred(_)) => false,
        };
        failed && (self.idempotent || self.unasked)
    }
}

impl Pass {
    /// Claims the execution for one attempt, or says what became of it. Waits while another attempt runs.
    pub(crate) async fn claim(self: &Arc<Self>, rerun: Rerun) -> Claim {
        let mut waited = false;
        loop {
            let mut changed = pin!(self.record.changed.notified());
            changed.as_mut().enable();
            {
                let mut inner = self.record.lock();
                if inner.closed {
                    return Claim::Closed;
                }
                let go = match &inner.state {
                    State::NotStarted => true,
                    State::Running => false,
                    State::Unknown if rerun.idempotent => true,
                    State::Unknown => return Claim::Unknown,
                    // An attempt that waited for the running one did not decide to run again after it.
                    State::Finished(ended) if !waited && rerun.after(ended) => true,
                    State::Finished(ended) => return Claim::Recorded(ended.clone()),
                };
                if go {
                    let first = matches!(inner.state, State::NotStarted);
                    inner.state = State::Running;
                    inner.error = None;
                    self.record.started.store(true, Ordering::Release);
                    return Claim::Go(Claimed { pass: Arc::clone(self), ended: false, first });
                }
            }
            waited = true;
            changed.await;
        }
    }
}

/// The right to execute once. Dropped before the body has ended, it leaves the call unknown.
pub(crate) struct Claimed {
    pass: Arc<Pass>,
    ended: bool,
    first: bool,
}

impl Claimed {
    /// Whether nothing of the call was executed before.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Nothing was executed.
    pub(crate) fn give_up(mut self) {
        self.ended = true;
        self.pass.record.started.store(false, Ordering::Release);
        self.pass.record.end(State::NotStarted);
    }

    pub(crate) fn end(mut self, ended: Ended) {
        self.ended = true;
        self.pass.record.end(State::Finished(ended));
    }
}

impl Drop for Claimed {
    fn drop(&mut self) {
        if !self.ended {
            self.pass.record.end(State::Unknown);
        }
    }
}

/// Held as long as a tool body runs, also by blocking code whose future was dropped.
pub(crate) struct BodyToken(Arc<Pass>);

impl BodyToken {
    pub(crate) fn new(pass: &Arc<Pass>) -> Self {
        pass.record.bodies.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(pass))
    }
}

impl Drop for BodyToken {
    fn drop(&mut self) {
        if self.0.record.bodies.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.record.idle.notify_waiters();
        }
    }
}
