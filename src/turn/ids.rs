//! Ids: of runs, and of the calls of agents in their parents' batches.

/// What joins the id of a call and the ids of the calls of the agent behind it. Ids with it are replaced where a
/// response enters, so that ids of siblings never collide.
pub(crate) const JOINT: char = '/';

/// The ids of the calls of an agent, as the parent's batch has them, begin with this.
pub(super) fn prefix(id: &str) -> String {
    format!("{id}{JOINT}")
}

/// A new id for a run: unique, and in the order of time.
pub(crate) fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
