//! What the entries of the logs have in common, and the log of the checkpoints.

use serde_json::Value;

use super::error::LedgerError;

/// How many entries, or runs, one read of the store returns at most.
pub(super) const PAGE: u32 = 512;

/// The name of the log of the checkpoints, which no run may have as its id.
pub(super) const CHECKPOINTS: &str = "countersign/checkpoints";

/// The beginning of the names of the logs of grants, which no run's id may have.
pub(super) const GRANTS: &str = "countersign/grants/";

/// The beginning of the names of the logs of counters, which no run's id may have.
pub(super) const COUNTERS: &str = "countersign/counters/";

/// Refuses ids of runs: the names of the logs of grants and counters, the name of the log of the checkpoints, and the
/// empty id, as paging through the logs begins behind the empty id and would never list it.
pub(super) fn refuse_name(run: &str, id: &str) -> Result<(), LedgerError> {
    let problem = match run {
        "" => "its run has no id: give it one".to_owned(),
        CHECKPOINTS => {
            format!("`{CHECKPOINTS}` is the log of the checkpoints: give its run another id")
        }
        _ if run.starts_with(GRANTS) => {
            format!("`{GRANTS}` begins the log of a grant: give its run another id")
        }
        _ if run.starts_with(COUNTERS) => {
            format!("`{COUNTERS}` begins the log of a counter: give its run another id")
        }
        _ => return Ok(()),
    };
    Err(LedgerError::Unkeepable { id: id.to_owned(), problem })
}

/// The event of an entry.
pub(super) fn event(body: &Value) -> Option<&str> {
    body.get("event").and_then(Value::as_str)
}

/// Whether an entry says that the run's asks, and the entries before this one, were dropped.
pub(super) fn is_dropped(body: &Value) -> bool {
    event(body) == Some(DROPPED)
}

/// The event of the entry that remains of a run's log after its asks and earlier entries were dropped.
pub(super) const DROPPED: &str = "run_dropped";
