//! Dropping the asks and the logs of runs that are over.

use std::time::Duration;

use serde_json::Value;

use super::ask::Millis;
use super::audit::{PAGE, is_dropped};
use super::checkpoint::CHECKPOINTS;
use super::codec::{self, Writing};
use super::record::{AskState, Record};
use super::runs::{self, RunRecord};
use super::store::{Dropped, Entry, Found, RowKind, Writes};
use super::{Ledger, LedgerError, millis};
use crate::deferred::Answer;

impl Ledger {
    /// Drops the asks and the logs of runs that are over and whose last log entry is at least this old, and returns the
    /// number of these runs. The ledger drops nothing by itself; a service calls this from time to time, such as once a
    /// day.
    ///
    /// A run is over when it has ended ([`end_run`](Self::end_run), an agent's `take_up`). A run without a row, as of a
    /// turn that is used without an agent, is over when all of its asks are final. A run with an ask that is pending,
    /// approved and not claimed yet, or claimed is left out as a whole; so are chats.
    ///
    /// Two things stay of each run: its row with the result, and one log entry. So a call of the run that is parked
    /// again, from a snapshot kept elsewhere, is refused, and nothing runs twice. The log continues from that entry:
    /// [`verify`](Self::verify) and [`checkpoint`](Self::checkpoint) work as before, except that earlier heads can no
    /// longer be compared. To keep the history, [`export`](Self::export) it first.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::ledger::{Ask, Ledger, MemoryStore};
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let ledger = Ledger::new(MemoryStore::new());
    /// let ask = ledger.park(Ask::new("run-1", "root/c1", "delete_file")).await?;
    /// assert_eq!(ledger.prune(Duration::ZERO).await?, 0, "it is pending");
    /// ledger.cancel(ask.ask.id(), "ann").await?;
    /// assert_eq!(ledger.prune(Duration::ZERO).await?, 1);
    /// assert_eq!(ledger.get(ask.ask.id()).await?, None);
    /// assert!(ledger.verify(&Default::default()).await?.is_ok());
    /// # Ok::<(), countersign::ledger::LedgerError>(()) }).unwrap();
    /// ```
    ///
    /// # Errors
    /// [`LedgerError`]; runs that were dropped before the error stay dropped. A run with a row that cannot be read, or
    /// was changed outside of the ledger, is left out.
    pub async fn prune(&self, older_than: Duration) -> Result<u64, LedgerError> {
        let before = self.now().await?.saturating_sub(millis(older_than));
        let (mut count, mut after) = (0, String::new());
        loop {
            let page = self.store.heads(&after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(count) };
            after.clone_from(&last.run);
            for end in page.into_iter().filter(|end| is_older(end, before)) {
                count += u64::from(self.drop_run(end).await?);
            }
        }
    }

    /// The time of the store's clock, in milliseconds since 1970. Deadlines, leases and the age of approvals are
    /// compared with this clock (rule L4).
    ///
    /// # Errors
    /// [`LedgerError`] when the store cannot be reached.
    pub async fn now(&self) -> Result<Millis, LedgerError> {
        let mut time = 0;
        let mut look = |now, _| {
            time = now;
            Writes::default()
        };
        self.store.transact(&[], &self.linker, &mut look).await?;
        Ok(time)
    }

    /// Drops a run if it is over and its log still ends with this entry. Returns whether it was dropped.
    async fn drop_run(&self, end: Entry) -> Result<bool, LedgerError> {
        let rows = self.rows_of(&end.run).await?;
        let Some((record, asks)) = finished(&end.run, &rows) else { return Ok(false) };
        let mut refused = Ok(());
        let mut work = |now, _| {
            let writes = self.dropping(&end, record.clone(), asks.clone(), now);
            writes.unwrap_or_else(|error| {
                refused = Err(error);
                Writes::default()
            })
        };
        // The store writes nothing if the log has a newer entry by then.
        self.store.transact(&[], &self.linker, &mut work).await?;
        refused?;
        Ok(self.store.log(&end.run, 0, 1).await?.iter().all(|first| first.seq > end.seq))
    }

    fn dropping(
        &self,
        end: &Entry,
        record: Option<RunRecord>,
        rows: Vec<String>,
        now: Millis,
    ) -> Result<Writes, LedgerError> {
        let mut writing = Writing::new(&self.linker, now);
        runs::note_dropped(&mut writing, &end.run, record, self.worker_name())?;
        let drop = Dropped { run: end.run.clone(), end: (end.seq, end.hash.clone()), rows };
        Ok(Writes { drop: Some(drop), ..writing.finish() })
    }
}

/// Whether the last entry of a log is old enough, and does not say that the run was dropped before.
fn is_older(end: &Entry, before: Millis) -> bool {
    let body: Value = serde_json::from_str(&end.body).unwrap_or_default();
    let at = body.get("at").and_then(Value::as_i64);
    end.run != CHECKPOINTS && !is_dropped(&body) && at.is_some_and(|at| at <= before)
}

/// The record of a run that is over, if there is one, and the ids of the run's asks. `None` when the run is not over,
/// or has a row that is refused.
fn finished(run: &str, rows: &[Found]) -> Option<(Option<RunRecord>, Vec<String>)> {
    let (mut record, mut asks) = (None, Vec::new());
    for found in rows {
        match found.row.kind {
            RowKind::Run => record = Some(runs::read(found).ok().filter(|it| it.is_over_as(run))?),
            RowKind::Ask => asks.push(codec::read(found).ok()?),
        }
    }
    let ended = record.is_some();
    let is_settled = |ask: &Record| match (ask.state, &ask.decision) {
        (AskState::Pending | AskState::Claimed, _) => false,
        // The call may have run, and its worker may still settle it; once the run has ended, no one needs the outcome.
        (AskState::Unknown, _) => ended,
        (AskState::Decided, Some(decision)) => !matches!(decision.answer, Answer::Approve { .. }),
        (AskState::Decided, None) => false,
        _ => true,
    };
    let ids = asks.iter().map(|ask| ask.ask.id().to_owned()).collect();
    asks.iter().all(is_settled).then_some((record, ids))
}
