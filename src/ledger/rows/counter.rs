//! Counters of calls within a span of time, which all processes over one store share.
//!
//! A counter is a row like any other: with an entry in a log of its own for each call that was counted, and the digest
//! of the row in it (rule L8).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::change::transact;
use super::codec::{VERSION, Writing, digest, keepable, logged, there};
use crate::ledger::asks::ask::Millis;
use crate::ledger::error::LedgerError;
use crate::ledger::handle::{Ledger, millis};
use crate::ledger::logs::events::COUNTERS;
use crate::ledger::stores::linker::Linker;
use crate::ledger::stores::store::{Found, Row, RowKind};

/// The calls that a counter holds, as they are stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(in crate::ledger) struct Counter {
    name: String,
    begun_at: Millis,
    /// The digest of each call, with the time at which it was counted, oldest first.
    calls: Vec<(Millis, String)>,
}

impl Ledger {
    /// The number of calls that a counter holds at most, so that its row stays small.
    pub const MAX_COUNTED_CALLS: u32 = 10_000;

    /// Counts a call, and returns whether it is within the limit: at most `most` calls, and never more than 10 000,
    /// within this span of time. A call beyond the limit is not counted. A call that is counted already, by the same
    /// `call`, is within it. Check and count are one transaction, in the time of the store's clock, so that of any
    /// number of processes no two take the last place.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let count = |call| ledger.count_call("refunds of ann", call, 1, Duration::from_secs(3600));
    /// assert!(count("call 1").await?);
    /// assert!(count("call 1").await?, "it was counted before");
    /// assert!(!count("call 2").await?);
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; nothing was counted.
    pub async fn count_call(
        &self,
        counter: &str,
        call: &str,
        most: u32,
        within: Duration,
    ) -> Result<bool, LedgerError> {
        let id = crate::args::digest(&json!(["counter", 1, counter]));
        let call = crate::args::digest(&json!(["counted call", 1, call]));
        let most = usize::try_from(most.min(Self::MAX_COUNTED_CALLS)).unwrap_or_default();
        transact(self, &[row_id(&id)], |writing, rows| {
            let now = writing.now;
            let mut rows = rows.into_iter();
            let found = rows.next().map_or(Ok(None), there)?;
            let mut counted = match found {
                Some(found) => read(&found, writing.linker())?,
                None => Counter { name: counter.to_owned(), begun_at: now, calls: Vec::new() },
            };
            let over = now.saturating_sub(millis(within));
            counted.calls.retain(|(at, _)| *at > over);
            if counted.calls.iter().any(|(_, known)| *known == call) {
                return Ok(true);
            }
            if counted.calls.len() >= most {
                return Ok(false);
            }
            counted.calls.push((now, call.clone()));
            note(writing, &id, &counted, &call)?;
            Ok(true)
        })
        .await
    }
}

/// The id of the row of a counter.
pub(in crate::ledger) fn row_id(id: &str) -> String {
    format!("counter:{id}")
}

fn note(
    writing: &mut Writing<'_>,
    id: &str,
    counter: &Counter,
    call: &str,
) -> Result<(), LedgerError> {
    let row = keepable(Row {
        id: row_id(id),
        kind: RowKind::Counter,
        run: format!("{COUNTERS}{id}"),
        state: "counting".to_owned(),
        created_at: counter.begun_at,
        due_at: None,
        requester: String::new(),
        doc: json!({"version": VERSION, "counter": counter}).to_string(),
    })?;
    let body = json!({
        "at": writing.now,
        "call": call,
        "counter": id,
        "event": "call_counted",
        "name": counter.name,
        "row": digest(&row),
    });
    writing.append(row, body);
    Ok(())
}

/// Reads a counter from its row, after the row was compared with the last log entry about it (rule L8).
pub(in crate::ledger) fn read(found: &Found, by: &Linker) -> Result<Counter, LedgerError> {
    let (row, counter) = (&found.row, logged::<Counter>(found, RowKind::Counter, by)?);
    let id = crate::args::digest(&json!(["counter", 1, counter.name]));
    let own = (row_id(&id), format!("{COUNTERS}{id}"), counter.begun_at);
    if own != (row.id.clone(), row.run.clone(), row.created_at)
        || row.due_at.is_some()
        || !row.requester.is_empty()
    {
        return Err(LedgerError::changed(&row.id, "it holds another counter"));
    }
    Ok(counter)
}
