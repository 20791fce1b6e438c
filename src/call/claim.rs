//! Claiming the execution of a call: of several attempts at the gate, one gets the right to run the tool body.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::execution::{Ended, State};
use super::record::CallRecord;
use crate::outcome::Outcome;

/// The answer to an attempt that reaches the gate.
pub(crate) enum Claim {
    /// The attempt may run the tool body.
    Go(ExecutionGuard),
    /// An earlier attempt has ended with this result, which counts for this attempt too.
    Recorded(Ended),
    /// An earlier attempt started the body and was dropped before the end was seen.
    Unknown,
    /// The pass is closed: it has ended or was dropped, and nothing of it may run any more.
    Closed,
}

/// Which attempts may execute after an earlier one.
#[derive(Clone, Copy)]
pub(crate) struct Rerun {
    /// The tool is idempotent: an attempt that did not return a value may be repeated, also one with an unknown end.
    pub(crate) idempotent: bool,
    /// No person was asked about the call: a retry layer of the host may repeat an attempt that ended with an error.
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
    /// Claims the execution for one attempt, or returns the result of an earlier one. Waits while another attempt runs.
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
                    // An attempt that waited was sent before the other one failed, so it is no retry of it.
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

/// The right to execute once. If it is dropped before the body has ended, the execution is recorded as unknown.
pub(crate) struct ExecutionGuard {
    record: Arc<CallRecord>,
    ended: bool,
    first: bool,
}

impl ExecutionGuard {
    /// Whether no attempt of this pass was started before.
    pub(crate) fn is_first(&self) -> bool {
        self.first
    }

    /// Gives the right back without having started the body, so that another attempt may claim it.
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

/// Counts a running tool body, for [`CallRecord::idle`]. It moves into the body, so that blocking code whose future was
/// dropped is still counted.
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
