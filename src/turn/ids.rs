//! Ids: of runs, and of the calls of agents in their parents' batches.

/// Joins the id of a call and the ids of the calls of the agent behind it. [`admit`](super::admit()) replaces ids that
/// contain it, so that no other call of the response looks like one of the agent's.
pub(super) const JOINT: char = '/';

/// The prefix of the ids of an agent's calls in the parent's batch, given the id of the call that the agent works on.
pub(super) fn prefix(id: &str) -> String {
    format!("{id}{JOINT}")
}

/// Returns `true` if a call is one of an agent that works on the call `above`, or of an agent behind it, by the ids
/// that they have in the batch.
///
/// ```
/// use countersign::turn::is_below;
///
/// assert!(is_below("call_1/call_2", "call_1"));
/// assert!(!is_below("call_12", "call_1") && !is_below("call_1", "call_1"));
/// ```
#[must_use]
pub fn is_below(call: &str, above: &str) -> bool {
    call.strip_prefix(above).is_some_and(|rest| rest.starts_with(JOINT))
}

/// A new id for a run: unique, and later ones sort after earlier ones.
pub(crate) fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
