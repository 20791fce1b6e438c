//! The entries that are older than the audit key: the entry that has added the key vouches for them.

use serde_json::Value;

use super::events::{PAGE, REKEYS, event};
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::stores::ends::LogEnds;
use crate::ledger::stores::entry::Entry;
use crate::ledger::stores::linker::content;

/// The event of the entry that adds a key.
pub(in crate::ledger) const REKEYED: &str = "rekeyed";

/// The member of that entry with the ends of open leases.
pub(in crate::ledger) const LEASES: &str = "leases";

/// All entries of a log.
pub(in crate::ledger) async fn entries_of(
    ledger: &Ledger,
    run: &str,
) -> Result<Vec<Entry>, LedgerError> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or(0, |entry| entry.seq);
        let page = ledger.unopened.log(run, after, PAGE).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// The ends that the newest key was added to; `None` when the store had its key from the beginning, or has none.
pub(in crate::ledger) async fn ends(ledger: &Ledger) -> Result<Option<&LogEnds>, LedgerError> {
    let Some(own) = ledger.linker.key_id() else { return Ok(None) };
    let read = async {
        let Some(entry) = entries_of(ledger, REKEYS).await?.pop() else { return Ok(None) };
        let mut body: Value = serde_json::from_str(&entry.body).unwrap_or_default();
        let is_own = ledger.linker.has_made(&entry)
            && event(&body) == Some(REKEYED)
            && body.get("key").and_then(Value::as_str) == Some(&own);
        let ends = body.get_mut("ends").map(Value::take).unwrap_or_default();
        let leases = body.get_mut(LEASES).map(Value::take).map(serde_json::from_value).transpose();
        match (serde_json::from_value(ends), leases) {
            (Ok(ends), Ok(leases)) if is_own => {
                ledger.linker.vouched().set_leases(leases);
                Ok(Some(ends))
            }
            _ => Err(LedgerError::changed(
                REKEYS,
                "its last entry was not made with the audit key of this process",
            )),
        }
    };
    Ok(ledger.opening.ends.get_or_try_init(|| read).await?.as_ref())
}

/// Reads the entries of these logs that are older than the key, and compares them with what the key was added to. Returns
/// whether more entries are known than before.
pub(in crate::ledger) async fn vouch(
    ledger: &Ledger,
    runs: &[String],
) -> Result<bool, LedgerError> {
    let Some(ends) = ends(ledger).await? else { return Ok(false) };
    let vouched = ledger.linker.vouched();
    let mut more = false;
    for run in runs {
        if vouched.has_read(run) {
            continue;
        }
        let Some(end) = ends.get(run) else { continue };
        let mut entries = entries_of(ledger, run).await?;
        entries.retain(|entry| entry.seq <= end.seq);
        let is_whole = entries.last().is_some_and(|last| last.hash == end.hash)
            && entries.iter().fold(String::new(), |before, it| content(&before, it)) == end.content;
        vouched.add(run, if is_whole { &entries } else { &[] });
        more |= is_whole;
    }
    Ok(more)
}
