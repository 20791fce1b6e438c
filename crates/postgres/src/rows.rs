//! Encoding and decoding rows and log entries for PostgreSQL.

use std::borrow::Cow;

use super::failure::Failure;
use countersign::ledger::{Entry, Filter, Found, Lookup, Row, RowKind};

/// Escapes NUL, which PostgreSQL's `text` cannot contain, as `\u{1}0`, and `\u{1}` itself as `\u{1}1`. The order of
/// texts stays the same.
///
/// Arguments come from a model and may hold any character, and we have to be able to record each call. The order is
/// kept since both escapes begin with the lowest character that remains: `"a\0"` < `"a\u{1}"` < `"a "` holds before
/// and after. We borrow texts without the two characters: these are nearly all.
pub(super) fn encode(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte < 2) {
        Cow::Owned(text.replace('\u{1}', "\u{1}1").replace('\0', "\u{1}0"))
    } else {
        Cow::Borrowed(text)
    }
}

/// The text that [`encode`] has escaped.
pub(super) fn decode(text: String) -> String {
    if text.contains('\u{1}') {
        text.replace("\u{1}0", "\0").replace("\u{1}1", "\u{1}")
    } else {
        text
    }
}

pub(super) fn text(row: &tokio_postgres::Row, column: usize) -> Result<String, Failure> {
    Ok(decode(row.try_get(column)?))
}

/// Reads the columns `id, kind, run, state, created_at, due_at, doc, requester`.
pub(super) fn row(row: &tokio_postgres::Row) -> Result<Row, Failure> {
    let kind: &str = row.try_get(1)?;
    Ok(Row {
        id: text(row, 0)?,
        // We read an unknown kind as one that does not fit the id, so the row is refused.
        kind: RowKind::parse(kind).unwrap_or(RowKind::Key),
        run: text(row, 2)?,
        state: text(row, 3)?,
        created_at: row.try_get(4)?,
        due_at: row.try_get(5)?,
        doc: text(row, 6)?,
        requester: text(row, 7)?,
    })
}

/// Reads the columns of [`row()`], followed by those of the last [`entry()`] about the row.
pub(super) fn found(found: &tokio_postgres::Row) -> Result<Found, Failure> {
    Ok(Found { row: row(found)?, entry: entry(found, 8)? })
}

/// Reads the columns of [`found()`], which are `NULL` where there is no row with this id.
pub(super) fn lookup(row: &tokio_postgres::Row, id: &str) -> Result<Lookup, Failure> {
    if row.try_get::<_, Option<&str>>(0)?.is_some() {
        return Ok(Lookup::Found(found(row)?));
    }
    let is_logged = row.try_get::<_, Option<&str>>(8)?.is_some();
    Ok(if is_logged { Lookup::Removed { id: id.to_owned() } } else { Lookup::Nothing })
}

/// Reads the columns `run, seq, prev, hash, body` from this one on, which are `NULL` where there is no entry.
pub(super) fn entry(row: &tokio_postgres::Row, at: usize) -> Result<Option<Entry>, Failure> {
    let Some(run) = row.try_get::<_, Option<String>>(at)? else { return Ok(None) };
    Ok(Some(Entry {
        run: decode(run),
        seq: row.try_get(at + 1)?,
        prev: text(row, at + 2)?,
        hash: text(row, at + 3)?,
        body: text(row, at + 4)?,
    }))
}

/// The id of a row as JSON text, by which the entries about it are found.
pub(super) fn about(id: &str) -> String {
    serde_json::Value::from(id).to_string()
}

/// The kinds of rows that a filter selects.
pub(super) fn kinds(filter: &Filter) -> Vec<&'static str> {
    let all = RowKind::ALL.into_iter();
    all.filter(|kind| filter.kind.is_none_or(|it| it == *kind)).map(RowKind::as_str).collect()
}

/// The states that a filter selects, each once.
pub(super) fn states(filter: &Filter) -> Vec<Cow<'_, str>> {
    let mut states: Vec<_> = filter.states.iter().map(|state| encode(state)).collect();
    states.sort();
    states.dedup();
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_survives_a_round_trip_and_the_order_stays() {
        let mut texts =
            ["", "a", "\0", "\0\0", "\u{1}", "\u{1}0", "\u{1}1", "\0a", "\u{2}", "é'\"\\"];
        texts.sort_unstable();
        let encoded: Vec<_> = texts.iter().map(|text| encode(text).into_owned()).collect();
        assert!(encoded.is_sorted() && encoded.iter().all(|text| !text.contains('\0')));
        assert_eq!(encoded.into_iter().map(decode).collect::<Vec<_>>(), texts);
    }
}
