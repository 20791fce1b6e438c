//! The common part of all logs' entries, and the log of the checkpoints.
//!
//! A log belongs to a name: the id of a run, `countersign/checkpoints`, or `countersign/grants/` and the id of a grant.
//! Runs may have any id, so those names are refused for runs; otherwise a run could append to the log of the
//! checkpoints, and a verification could not tell its entries from real ones.

use serde_json::Value;

use crate::ledger::error::LedgerError;
pub(in crate::ledger) use crate::ledger::stores::store::KEY;

/// The number of entries, or runs, that one read of the store returns at most.
pub(in crate::ledger) const PAGE: u32 = 512;

/// The name of the log of the checkpoints, which no run may have as its id.
pub(in crate::ledger) const CHECKPOINTS: &str = "countersign/checkpoints";

/// The name of the log of the entries that add an audit key.
pub(in crate::ledger) const REKEYS: &str = "countersign/rekeys";

/// The beginning of the names of the logs of grants, which no run's id may have.
pub(in crate::ledger) const GRANTS: &str = "countersign/grants/";

/// The beginning of the names of the logs of counters, which no run's id may have.
pub(in crate::ledger) const COUNTERS: &str = "countersign/counters/";

/// Refuses ids of runs: the names of the logs of grants and counters, the name of the log of the checkpoints, and the
/// empty id, as paging through the logs begins behind the empty id and would never list it.
pub(in crate::ledger) fn refuse_name(run: &str, id: &str) -> Result<(), LedgerError> {
    let problem = match run {
        "" => "its run has no id: give it one".to_owned(),
        CHECKPOINTS => {
            format!("`{CHECKPOINTS}` is the log of the checkpoints: give its run another id")
        }
        KEY | REKEYS => format!("`{run}` is a log about the audit key: give its run another id"),
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
pub(in crate::ledger) fn event(body: &Value) -> Option<&str> {
    body.get("event").and_then(Value::as_str)
}

/// Returns `true` if an entry says that the run's asks, and the entries before this one, were dropped.
pub(in crate::ledger) fn is_dropped(body: &Value) -> bool {
    event(body) == Some(DROPPED)
}

/// The event of the entry that remains of a run's log after its asks and earlier entries were dropped.
pub(in crate::ledger) const DROPPED: &str = "run_dropped";
