//! The word of a store about its audit key: whether it has one, and which (rule L8).
//!
//! It is a row like any other, with an entry in a log of its own. So if two processes open a new store at the same time,
//! one of them writes the row, and a key is added in the same transaction as its entry. The row has the id of the key,
//! which is a digest, and never the key itself.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::codec::{VERSION, Writing, digest, keepable, logged, value};
use crate::ledger::error::LedgerError;
use crate::ledger::logs::events::KEY;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Found, Row, RowKind};

/// The id of the row, which is also the name of its log.
pub(in crate::ledger) const ROW: &str = KEY;

/// The problem of a store that does not say any more which key it has.
pub(in crate::ledger) const GONE: &str =
    "the store does not say any more whether it has an audit key";

/// The word of a store about its audit key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::ledger) struct StoreKey {
    /// The id of the key; `None` when the store has none.
    pub(in crate::ledger) id: Option<String>,
}

/// Writes the row and its entry.
pub(in crate::ledger) fn note(writing: &mut Writing<'_>, by: &str) -> Result<(), LedgerError> {
    let said = StoreKey { id: writing.linker().key_id() };
    let row = keepable(Row {
        id: ROW.to_owned(),
        kind: RowKind::Key,
        run: KEY.to_owned(),
        state: "said".to_owned(),
        // The oldest row, so that it comes last wherever rows of all kinds are listed.
        created_at: 0,
        due_at: None,
        requester: String::new(),
        doc: json!({"version": VERSION, "key": said}).to_string(),
    })?;
    let body = json!({
        "at": writing.now,
        "by": by,
        "event": "key_said",
        "key": said.id,
        "row": digest(&row),
    });
    writing.append(row, body);
    Ok(())
}

/// Reads the row, after it was compared with the last log entry about it.
pub(in crate::ledger) fn read(found: &Found, by: &Linker) -> Result<StoreKey, LedgerError> {
    let (row, said) = (&found.row, logged::<StoreKey>(found, RowKind::Key, by)?);
    let is_own = row.id == ROW && row.run == KEY && row.due_at.is_none();
    if !is_own || !row.requester.is_empty() {
        return Err(LedgerError::changed(&row.id, "it holds another word about the key"));
    }
    Ok(said)
}

/// Reads the row as it is: a process with another key cannot tell whether the entry about it is genuine.
pub(in crate::ledger) fn said(found: &Found) -> Result<StoreKey, LedgerError> {
    let mut doc = value(&found.row, "/no-claim")?;
    let said = doc.get_mut("key").map(serde_json::Value::take).unwrap_or_default();
    serde_json::from_value(said).map_err(|error| LedgerError::unreadable(ROW, &error))
}
