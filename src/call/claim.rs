//! Claiming the execution of a call for one attempt at the gate, and counting the bodies that run.
//!
//! | result of the attempt before | idempotent tool | no question about the call | a question was answered |
//! |---|---|---|---|
//! | a value, a denial, a deferral | no | no | no |
//! | a failure, a retry, an unknown end as its outcome, an error | repeats | repeats | no |
//! | dropped, its end not seen | repeats | no | no |
//!
//! The last column is the reason for this type: a person has approved one execution. A retry layer that the host put
//! around the tool may repeat a call that no one was asked about, since the host has decided that. It may not repeat
//! an approved call, because the approver has not decided that.

use std::sync::Arc;

use super::cell::{self, Claim, ExecutionCell, HasCell};
use super::execution::{Ended, SharedError};
use super::record::CallRecord;
use crate::outcome::Outcome;

/// The attempts that may execute after an earlier one.
#[derive(Clone, Copy)]
pub(crate) struct Rerun {
    /// The tool is idempotent: an attempt that did not return a value may be repeated, also one with an unknown end.
    pub(crate) idempotent: bool,
    /// No person was asked about the call: a retry layer of the host may repeat an attempt that ended with an error.
    pub(crate) unasked: bool,
}

impl Rerun {
    /// Returns `true` if an attempt may run after one with this end; `None` is an end that was not seen.
    fn after(self, ended: Option<&Ended>) -> bool {
        match ended {
            None => self.idempotent,
            Some(Ok(Outcome::Failed(_) | Outcome::Retry(_) | Outcome::Unknown(_)) | Err(_)) => {
                self.idempotent || self.unasked
            }
            Some(Ok(Outcome::Returned(_) | Outcome::Denied(_) | Outcome::Deferred(_))) => false,
        }
    }
}

impl HasCell for CallRecord {
    type Ended = Ended;
    type Error = SharedError;

    fn cell(&self) -> &ExecutionCell<Ended, SharedError> {
        &self.cell
    }
}

impl CallRecord {
    /// Claims the execution for one attempt, or returns the result of an earlier one. Waits while another attempt runs.
    pub(crate) async fn claim(self: &Arc<Self>, rerun: Rerun) -> Claim<Self> {
        cell::claim(self, |ended| rerun.after(ended)).await
    }
}

/// Counts a running tool body, for [`CallRecord::idle`]. It moves into the body, so that blocking code whose future was
/// dropped is still counted.
pub(crate) struct BodyToken(Arc<CallRecord>);

impl BodyToken {
    pub(crate) fn new(record: &Arc<CallRecord>) -> Self {
        record.cell.body_started();
        Self(Arc::clone(record))
    }
}

impl Drop for BodyToken {
    fn drop(&mut self) {
        self.0.cell.body_ended();
    }
}
