//! Ids: of runs, and of the calls of agents in their parents' batches.

/// Joins the id of a call and the ids of the calls of the agent behind it. [`admit`](super::admit()) replaces ids that
/// contain it, so that no other call of the response looks like one of the agent's.
pub(crate) const JOINT: char = '/';

/// The prefix of the ids of an agent's calls in the parent's batch, given the id of the call that the agent works on.
pub(super) fn prefix(id: &str) -> String {
    format!("{id}{JOINT}")
}

/// A new id for a run: unique, and later ones sort after earlier ones.
pub(crate) fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
