//! How asks and runs are stored, and what the log says about an ask (rule L7).

use serde::Deserialize as _;
use serde_json::{Value, json};

use super::ask::Millis;
use super::record::Record;
use super::store::{Draft, Row, RowKind};
use super::{LedgerError, audit};
use crate::args::depth;

/// The version of the stored form.
const VERSION: u64 = 1;

/// How many bytes an ask or a run may have, with everything that has become of it: what every store can keep.
const MAX_BYTES: usize = 64 << 20;

/// How deep its values may be nested. serde_json reads 128 levels, so that whatever was read from a text fits, in here
/// too.
const MAX_DEPTH: usize = 160;

/// How many bytes the id of a run may have. It is in indexes, of which PostgreSQL has the strictest: 2704 bytes for all
/// columns, and a byte that it cannot keep takes two.
const MAX_ID: usize = 1 << 10;

/// The row of an ask, as it is written.
pub(super) fn row_of(record: &Record) -> Row {
    Row {
        id: record.ask.id().to_owned(),
        kind: RowKind::Ask,
        run: record.ask.run().to_owned(),
        state: record.state.as_str().to_owned(),
        created_at: record.parked_at,
        due_at: record.due_at(),
        doc: json!({"version": VERSION, "ask": record}).to_string(),
    }
}

/// A row, if it can be read again.
pub(super) fn keepable(row: Row) -> Result<Row, LedgerError> {
    let problem = if row.doc.len() > MAX_BYTES {
        let bytes = row.doc.len();
        format!("it has {bytes} bytes, and at most {MAX_BYTES} are kept: keep the value elsewhere")
    } else if depth::of_text(&row.doc) > MAX_DEPTH {
        format!("its values are nested more than {MAX_DEPTH} levels deep: flatten them")
    } else {
        return Ok(row);
    };
    Err(LedgerError::Unkeepable { id: row.id, problem })
}

/// Refuses the id of a run that not every store can find again.
pub(super) fn check_run(run: &str) -> Result<(), LedgerError> {
    if run.len() <= MAX_ID {
        return Ok(());
    }
    let problem = format!(
        "the id of its run has {} bytes, and at most {MAX_ID} are kept: use a shorter one, or its digest",
        run.len()
    );
    let id = run.chars().take(32).chain(['…']).collect();
    Err(LedgerError::Unkeepable { id, problem })
}

/// An ask as it was stored.
pub(super) fn read(row: &Row) -> Result<Record, LedgerError> {
    let unreadable = |problem: &dyn std::fmt::Display| LedgerError::unreadable(&row.id, problem);
    let mut doc = value(row, VERSION)?;
    let ask = doc.get_mut("ask").map(Value::take).unwrap_or_default();
    let record: Record = serde_json::from_value(ask).map_err(|error| unreadable(&error))?;
    if record.ask.id() != row.id {
        return Err(unreadable(&"it holds another ask"));
    }
    Ok(record)
}

/// What a row holds. The version is looked at before anything else: another one may look in any way.
pub(super) fn value(row: &Row, known: u64) -> Result<Value, LedgerError> {
    let unreadable = |problem: &dyn std::fmt::Display| LedgerError::unreadable(&row.id, problem);
    if depth::of_text(&row.doc) > MAX_DEPTH {
        return Err(unreadable(&"it is nested too deep"));
    }
    let mut reader = serde_json::Deserializer::from_str(&row.doc);
    reader.disable_recursion_limit();
    let doc = Value::deserialize(&mut reader).map_err(|error| unreadable(&error))?;
    reader.end().map_err(|error| unreadable(&error))?;
    match doc.get("version").and_then(Value::as_u64) {
        Some(found) if found == known => Ok(doc),
        Some(found) => Err(unreadable(&format_args!(
            "it is of version {found}, and this build reads version {known}: use the version that wrote it"
        ))),
        None => Err(unreadable(&"it does not say of which version it is")),
    }
}

/// What the log says about a change: the event, and a digest of what the ask became.
pub(super) fn draft(record: &Record, event: &str, by: Option<&str>, now: Millis) -> Draft {
    let body = json!({
        "ask": record.ask.id(),
        "at": now,
        "by": by,
        "event": event,
        "fingerprint": record.fingerprint,
        "record": audit::digest_of(record),
        "state": record.state,
        "token": record.token,
        "tool": record.ask.tool(),
    });
    Draft { run: record.ask.run().to_owned(), body }
}
