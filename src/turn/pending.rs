//! The batch of what waits: calls of this response, and calls of the agents behind them.

use super::SuspendedTurn;
use super::child::prefix;
use super::slot::{Slot, State};
use crate::deferred::{BatchEntry, DeferredToolRequests, batch_id};

/// The batch of what waits among these calls.
pub(super) fn requests(run_id: &str, response: u32, slots: &[Slot]) -> DeferredToolRequests {
    let pending = pending(slots);
    let ids = pending
        .iter()
        .map(|it| (it.call.id(), it.pending.fingerprint.as_str(), it.pending.deferrals));
    let batch = batch_id(run_id, response, ids);
    DeferredToolRequests::of(batch, pending)
}

/// What waits, in model order; the calls of an agent stand in the place of the call that it works on.
fn pending(slots: &[Slot]) -> Vec<BatchEntry> {
    let mut all = Vec::new();
    for slot in slots {
        match &slot.state {
            State::Pending(it) => {
                let call = slot.call.clone().with_args(it.shown.clone());
                all.push(BatchEntry { call, agent: None, pending: it.clone() });
            }
            State::Delegated(_) => all.extend(of_agent(slot)),
            State::Planned(_) | State::Settled(_) | State::Broken(_) => {}
        }
    }
    all
}

fn of_agent(slot: &Slot) -> Vec<BatchEntry> {
    let Some(turn) = slot.child.run.as_ref().and_then(|run| run.turn()) else { return Vec::new() };
    let (prefix, agent) = (prefix(slot.call.id()), turn.path().join("/"));
    let lift = |it: BatchEntry| BatchEntry {
        call: it.call.with_id(format!("{prefix}{}", it.call.id())),
        agent: Some(it.agent.unwrap_or_else(|| agent.clone())),
        ..it
    };
    pending(&turn.slots()).into_iter().map(lift).collect()
}

impl SuspendedTurn {
    /// The calls that were answered and have deferred again, by their ids in the batch.
    pub(crate) fn deferred_again(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for slot in self.slots() {
            let id = slot.call.id();
            match &slot.child.run {
                None if slot.pending().is_some() && slot.answered.is_some() => {
                    ids.push(id.to_owned());
                }
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
