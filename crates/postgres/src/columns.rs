//! Rows and log entries as arrays, one for each column: one statement takes any number of them through `unnest`.
//!
//! A transaction over ten rows is one statement and not ten. Its text is the same for any number of rows, so we prepare
//! it once for each connection, and the server answers once.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::rows::encode;
use countersign::ledger::{Entry, Millis, Row};

/// PostgreSQL's limit on the payload of a notification, in bytes. We do not notify a run with a longer id: tasks
/// that wait for it poll the log.
const LONGEST_NOTIFIED: usize = 7_999;

/// The runs whose ids fit into a notification.
pub(super) fn notified<'r>(runs: &'r [Cow<'r, str>]) -> Vec<&'r str> {
    runs.iter().map(|run| &**run).filter(|run| run.len() <= LONGEST_NOTIFIED).collect()
}

/// Rows as one array for each column.
///
/// All columns have one length and one order: by id, each id once. The server locks the rows of one statement in the
/// order of the ids, so two statements over the same rows cannot wait for each other. Of several writes of one row in
/// one transaction we take the last, as `ON CONFLICT` refuses a row that is there twice.
pub(super) struct RowColumns<'w> {
    pub(super) ids: Vec<Cow<'w, str>>,
    pub(super) kinds: Vec<&'static str>,
    pub(super) runs: Vec<Cow<'w, str>>,
    pub(super) states: Vec<Cow<'w, str>>,
    pub(super) created: Vec<Millis>,
    pub(super) due: Vec<Option<Millis>>,
    pub(super) docs: Vec<Cow<'w, str>>,
    pub(super) requesters: Vec<Cow<'w, str>>,
}

impl<'w> RowColumns<'w> {
    pub(super) fn of(rows: impl IntoIterator<Item = &'w Row>) -> Self {
        // Sorted by id, and with only the last of several writes of one row.
        let last: BTreeMap<_, _> = rows.into_iter().map(|row| (&*row.id, row)).collect();
        let rows = || last.values().copied();
        Self {
            ids: rows().map(|row| encode(&row.id)).collect(),
            kinds: rows().map(|row| row.kind.as_str()).collect(),
            runs: rows().map(|row| encode(&row.run)).collect(),
            states: rows().map(|row| encode(&row.state)).collect(),
            created: rows().map(|row| row.created_at).collect(),
            due: rows().map(|row| row.due_at).collect(),
            docs: rows().map(|row| encode(&row.doc)).collect(),
            requesters: rows().map(|row| encode(&row.requester)).collect(),
        }
    }
}

/// Log entries as one array for each column, and the new ends of their logs.
///
/// The entries keep their order, as each is linked to the one before. The ends are one for each run: the last of its
/// entries.
pub(super) struct LogColumns<'w> {
    pub(super) runs: Vec<Cow<'w, str>>,
    pub(super) seqs: Vec<i64>,
    pub(super) prevs: Vec<&'w str>,
    pub(super) hashes: Vec<&'w str>,
    pub(super) bodies: Vec<Cow<'w, str>>,
    pub(super) end_runs: Vec<Cow<'w, str>>,
    pub(super) end_seqs: Vec<i64>,
    pub(super) end_hashes: Vec<&'w str>,
}

impl<'w> LogColumns<'w> {
    pub(super) fn of(entries: impl IntoIterator<Item = &'w Entry>) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let ends: BTreeMap<_, _> = entries.iter().map(|entry| (&*entry.run, *entry)).collect();
        let ends = || ends.values().copied();
        Self {
            runs: entries.iter().map(|entry| encode(&entry.run)).collect(),
            seqs: entries.iter().map(|entry| entry.seq).collect(),
            prevs: entries.iter().map(|entry| &*entry.prev).collect(),
            hashes: entries.iter().map(|entry| &*entry.hash).collect(),
            bodies: entries.iter().map(|entry| encode(&entry.body)).collect(),
            end_runs: ends().map(|entry| encode(&entry.run)).collect(),
            end_seqs: ends().map(|entry| entry.seq).collect(),
            end_hashes: ends().map(|entry| &*entry.hash).collect(),
        }
    }
}
