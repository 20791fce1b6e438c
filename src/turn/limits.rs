//! The limits on questions to people: repeats of a denied call, and the number of pending calls (rule D11).
//!
//! Both limits protect the approver's attention, which is the resource that a model can use up. They apply to *new*
//! questions only: a call that is pending already is asked about until it is answered, also when the limit was lowered
//! since.

use super::call_state::{CallState, State};
use crate::call::{AskHistory, call_key};
use crate::outcome::{DeferralKind, Outcome};

/// The number of times people may deny the same call before it is denied without asking, by default.
const MAX_REPEATS: u32 = 3;

/// The number of calls of a run, and of a requester, that may be pending at the same time, by default.
const MAX_PENDING: u32 = 1_000;

/// The limits on questions to people in one run.
#[derive(Clone, Copy)]
pub(crate) struct AskLimits {
    pub(super) max_repeats: u32,
    pub(super) max_pending: u32,
}

impl Default for AskLimits {
    fn default() -> Self {
        Self { max_repeats: MAX_REPEATS, max_pending: MAX_PENDING }
    }
}

impl AskLimits {
    /// The smaller of each limit, as a sub-agent cannot raise those of its parent.
    pub(super) fn within(self, parent: Self) -> Self {
        Self {
            max_repeats: self.max_repeats.min(parent.max_repeats),
            max_pending: self.max_pending.min(parent.max_pending),
        }
    }
}

impl CallState {
    /// Denies a call because of a limit, without asking.
    pub(super) fn deny_unasked(&mut self, limit: &str, mut text: String) {
        if self.child.run.is_none() && self.execution.started() && !self.may_have_run() {
            text.insert_str(0, "The tool had begun its work, and asked before continuing. ");
        }
        self.settle_unrun(Outcome::denied(text));
        self.denied_by = Some(limit.to_owned());
    }
}

/// Counts a call that was deferred just now. If it exceeds a limit, returns the limit's name and the text for the
/// model.
pub(super) fn limit_asking(
    call: &mut CallState,
    asks: &AskHistory,
    limits: AskLimits,
) -> Option<(&'static str, String)> {
    let State::Pending(pending) = &mut call.state else { return None };
    if pending.kind == DeferralKind::Approval {
        let before = asks.denied_before(|| call_key(&pending.tool, &pending.shown));
        if let Some(before) = before.as_ref().filter(|it| it.times() >= limits.max_repeats) {
            return Some(("max_repeats", format!("Denied without asking again: {before}")));
        }
        pending.denied_before = before;
    }
    if asks.ask(limits.max_pending) {
        call.newly_pending = true;
        return None;
    }
    let text = format!(
        "Denied without asking: {} calls of this run are pending already.",
        limits.max_pending
    );
    Some(("max_pending", text))
}
