//! The batch of pending calls: those of a response, and those of the agents behind its calls.
//!
//! One batch has the calls of every agent of the run, so that a person is asked once per response of the root. The ids
//! are joined by `/`, from the outside inward, and are unique because no id of a turn has a `/` (rule T5):
//!
//! ```text
//!  response of root:  call_1 rm            → call_1
//!                     call_2 cleaner       (an agent)
//!                       its response:      call_1 rm      → call_2/call_1
//!                       its response:      call_7 sorter  (an agent)
//!                         its response:    call_1 mv      → call_2/call_7/call_1
//! ```
//!
//! The batch id is a digest of the ids, fingerprints and numbers of deferral of all of them: answers to an earlier
//! state of any call in it are answers to another batch (rule A6).

use std::borrow::Cow;

use super::ids::prefix;
use super::snapshot::{StoredCall, StoredState, SuspendedTurn};
use crate::call::ToolCall;
use crate::deferred::{BatchEntry, DeferredToolRequests, PendingCall, batch_id};

/// A call without an outcome that people are asked about, itself or through the calls of an agent.
pub(super) enum OpenCall<'a> {
    Pending(&'a ToolCall, &'a PendingCall),
    /// Calls of the agent behind the call's tool may be pending.
    Delegated(&'a ToolCall, &'a SuspendedTurn),
}

/// The batch of these calls of a response.
pub(super) fn requests<'a>(
    run_id: &str,
    response: u32,
    calls: impl Iterator<Item = OpenCall<'a>>,
) -> DeferredToolRequests {
    let entries = entries(calls);
    let ids = entries
        .iter()
        .map(|it| (it.call.id(), it.pending.fingerprint.as_str(), it.pending.deferrals));
    let batch = batch_id(run_id, response, ids);
    DeferredToolRequests::of(batch, entries)
}

/// The pending calls, in model order. The calls of an agent come in the place of the call that the agent works on.
fn entries<'a>(calls: impl Iterator<Item = OpenCall<'a>>) -> Vec<BatchEntry<'a>> {
    let mut all = Vec::new();
    for open in calls {
        match open {
            OpenCall::Pending(call, pending) => {
                let call = call.clone().with_args(pending.shown.clone());
                all.push(BatchEntry { call, agent: None, pending: Cow::Borrowed(pending) });
            }
            OpenCall::Delegated(call, turn) => {
                let (prefix, agent) = (prefix(call.id()), turn.path().join("/"));
                let lift = |it: BatchEntry<'a>| BatchEntry {
                    call: it.call.with_id(format!("{prefix}{}", it.call.id())),
                    agent: Some(it.agent.unwrap_or_else(|| agent.clone())),
                    ..it
                };
                all.extend(entries(turn.open_calls()).into_iter().map(lift));
            }
        }
    }
    all
}

impl StoredCall {
    fn open(&self) -> Option<OpenCall<'_>> {
        match &self.state {
            StoredState::Pending(pending) => Some(OpenCall::Pending(&self.call, pending)),
            StoredState::Delegated(_) => {
                let turn = self.agent.as_ref()?.turn()?;
                Some(OpenCall::Delegated(&self.call, turn))
            }
            StoredState::Settled(_) | StoredState::Planned(_) => None,
        }
    }
}

impl SuspendedTurn {
    pub(super) fn open_calls(&self) -> impl Iterator<Item = OpenCall<'_>> {
        self.0.calls.iter().filter_map(StoredCall::open)
    }

    /// The ids, as in the batch, of the calls that were deferred again after an answer.
    pub(crate) fn deferred_again(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for stored in &self.0.calls {
            let id = stored.call.id();
            let pending = matches!(stored.state, StoredState::Pending(_));
            match &stored.agent {
                None if pending && stored.answered.is_some() => ids.push(id.to_owned()),
                None => {}
                Some(run) => {
                    let again = run.turn().map(Self::deferred_again).unwrap_or_default();
                    ids.extend(again.iter().map(|own| format!("{}{own}", prefix(id))));
                }
            }
        }
        ids
    }
}
