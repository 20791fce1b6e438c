//! Claiming the execution of a call: the right of one attempt to run its body.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::execution::{Ended, State};
use super::record::CallRecord;
use crate::outcome::Outcome;

/// What an attempt at the gate gets.
pub(crate) enum Claim {
    /// It may execute.
    Go(ExecutionGuard),
    /// Another attempt has executed, or is known to have ended.
    Recorded(Ended),
    /// Another attempt was started and lost.
    Unknown,
    /// The call already has its outcome.
    Closed,
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

impl CallRecord {
    /// Claims the execution for one attempt, or says what became of it. Waits while another attempt runs.
    pub(crate) async fn claim(self: &Arc<Self>, rerun: Rerun) -> Claim {
        let mut waited = false;
        loop {
            let mut changed = pin!(self.cell.changed.notified());
            changed.as_mut().enable();
            {
                let mut inner = self.cell.lock();
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
                    self.cell.started.store(true, Ordering::Release);
                    return Claim::Go(ExecutionGuard {
                        record: Arc::clone(self),
                        ended: false,
                        first,
                    });
                }
            }
            waited = true;
            changed.await;
        }
    }
}

/// The right to execute once. Dropped before the body has ended, it leaves the call unknown.
pub(crate) struct ExecutionGuard {
    record: Arc<CallRecord>,
    ended: bool,
    first: bool,
}

impl ExecutionGuard {
    /// Whether nothing of the call was executed before.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Nothing was executed.
    pub(crate) fn give_up(mut self) {
        self.ended = true;
        self.record.cell.started.store(false, Ordering::Release);
        self.record.cell.end(State::NotStarted);
    }

    pub(crate) fn end(mut self, ended: Ended) {
        self.ended = true;
        self.record.cell.end(State::Finished(ended));
    }
}

impl Drop for ExecutionGuard {
    fn drop(&mut self) {
        if !self.ended {
            self.record.cell.end(State::Unknown);
        }
    }
}

/// Held as long as a tool body runs, also by blocking code whose future was dropped.
pub(crate) struct BodyToken(Arc<CallRecord>);

impl BodyToken {
    pub(crate) fn new(record: &Arc<CallRecord>) -> Self {
        record.cell.bodies.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(record))
    }
}

impl Drop for BodyToken {
    fn drop(&mut self) {
        if self.0.cell.bodies.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.cell.idle.notify_waiters();
        }
    }
}
