//! Adding an audit key to a store, or exchanging it (rule L8).
//!
//! We never write an entry anew. We verify the whole store with the key that it has, and write one entry under the new
//! key, which names the end of every log and a digest of all that is in it. From then on we know an entry under the new
//! key by its hash, and an older one by that digest: we read its log once, from its beginning to the end that was named,
//! and keep what we read in memory. You do not need the old key any more.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::audit;
use super::audit::Whole;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::Ledger;
use crate::ledger::logs::events::{KEY, PAGE, REKEYS};
use crate::ledger::logs::vouching;
use crate::ledger::logs::vouching::{LEASES, REKEYED, entries_of};
use crate::ledger::rows::codec::Writing;
use crate::ledger::rows::key;
use crate::ledger::stores::ends::LogEnds;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Entry, Lookup, Writes};

/// The result of [`Ledger::rekey`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rekeyed {
    /// The id of the new key.
    pub key: String,
    /// The number of logs whose ends are named.
    pub logs: u64,
    /// The number of entries that were verified.
    pub entries: u64,
}

/// Adds or exchanges the key. See [`Ledger::rekey`].
pub(in crate::ledger) async fn rekey(
    ledger: &Ledger,
    key: &[u8],
    by: &str,
) -> Result<Rekeyed, LedgerError> {
    let linker = Linker::with_key(key);
    let new = linker.key_id().unwrap_or_default();
    if ledger.linker.key_id().as_ref() == Some(&new) {
        return Err(problem(format!("the store has the audit key `{new}` already")));
    }
    ledger.open().await?;
    let Whole { verified, ends, leased } =
        audit::verified(ledger, &BTreeMap::new()).await?.map_err(LedgerError::Broken)?;
    if has_grown(ledger, &ends).await? {
        return Err(problem(format!("the store was written to while it was verified: {REPEAT}")));
    }
    // The two logs that get entries under the new key: they were verified with the others.
    for run in [KEY, REKEYS] {
        linker.vouched().add(run, &entries_of(ledger, run).await?);
    }
    let mut body = json!({
        "by": by,
        "ends": ends,
        "event": REKEYED,
        "from": ledger.linker.key_id(),
        "key": new,
    });
    if let (accepted @ 1.., Some(body)) = (ledger.linker.taken(), body.as_object_mut()) {
        body.insert("accepted".to_owned(), accepted.into());
    }
    write_key(ledger, &linker, (body, leased), by).await?;
    ledger.opening.set_opened(false);
    if has_grown(ledger, &ends).await? {
        return Err(problem(format!(
            "the store has the audit key `{new}` now, and another process has written to it with the earlier key: what \
             it has written last is refused. End such processes"
        )));
    }
    let logs = u64::try_from(ends.len()).unwrap_or(u64::MAX);
    Ok(Rekeyed { key: new, logs, entries: verified.entries })
}

/// The entries that were made without the key. See [`Ledger::keyless_entries`].
pub(super) async fn keyless_entries(ledger: &Ledger) -> Result<Vec<Entry>, LedgerError> {
    let (mut keyless, mut after) = (Vec::new(), String::new());
    loop {
        let runs = ledger.unopened.logs(&after, PAGE).await?;
        let Some(last) = runs.last() else { return Ok(keyless) };
        after.clone_from(last);
        // The older entries of a log are known once they were compared with what the key was added to.
        vouching::vouch(ledger, &runs).await?;
        for run in runs.into_iter().filter(|run| run != KEY && run != REKEYS) {
            let entries = entries_of(ledger, &run).await?;
            keyless.extend(entries.into_iter().filter(|it| ledger.linker.is_keyless(it)));
        }
    }
}

/// Writes the entry, and what the store says, unless another process has changed that. The ends of the leases are those of
/// this moment, as no entry says when one is renewed.
async fn write_key(
    ledger: &Ledger,
    linker: &Linker,
    (body, leased): (Value, Vec<String>),
    by: &str,
) -> Result<(), LedgerError> {
    let ids: Vec<_> = [key::ROW.to_owned()].into_iter().chain(leased).collect();
    let mut noted = Ok(());
    let mut work = |now, found: Vec<Lookup>| {
        let lease = |lookup: &Lookup| match lookup {
            Lookup::Found(found) => {
                Some((found.row.id.clone(), audit::open_lease(found, &ledger.linker)?))
            }
            _ => None,
        };
        let leases: BTreeMap<_, _> = found.iter().skip(1).filter_map(lease).collect();
        let said = match found.first() {
            Some(Lookup::Found(found)) => key::read(found, &ledger.linker).map(|said| said.id),
            Some(Lookup::Removed { id }) => Err(LedgerError::changed(id, "it was removed")),
            Some(Lookup::Nothing) | None => Ok(ledger.linker.key_id()),
        };
        noted = match said {
            Ok(said) if said == ledger.linker.key_id() => Ok(()),
            Ok(_) => Err(problem(format!("another process has changed the audit key: {REPEAT}"))),
            Err(error) => Err(error),
        };
        let mut writing = Writing::new(linker, now);
        let mut body = body.clone();
        if let Some(body) = body.as_object_mut() {
            body.insert("at".to_owned(), now.into());
            body.insert(LEASES.to_owned(), json!(leases));
        }
        writing.entry(REKEYS, body);
        if noted.is_ok() {
            noted = key::note(&mut writing, by);
        }
        if noted.is_ok() { writing.finish().0 } else { Writes::default() }
    };
    ledger.opened().await?.transact(&ids, linker, &mut work).await?;
    noted
}

/// Returns whether a log has another end than when it was verified, except the logs of the key itself.
async fn has_grown(ledger: &Ledger, ends: &LogEnds) -> Result<bool, LedgerError> {
    let mut after = String::new();
    loop {
        let page = ledger.unopened.heads(&after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(false) };
        after.clone_from(&last.run);
        let is_other = |head: &Entry| {
            let end = ends.get(&head.run);
            end.is_none_or(|end| (end.seq, &end.hash) != (head.seq, &head.hash))
        };
        let of_others = page.iter().filter(|head| head.run != KEY && head.run != REKEYS);
        if of_others.into_iter().any(is_other) {
            return Ok(true);
        }
    }
}

const REPEAT: &str = "end the processes that use it, and run `countersign asks rekey` again";

fn problem(problem: String) -> LedgerError {
    LedgerError::AuditKey { problem }
}
