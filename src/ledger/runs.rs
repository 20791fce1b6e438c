//! Suspended runs: kept until they are over, and resumed by one worker at a time (rule L5).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask::Millis;
use super::record::ClaimRecord;
use super::store::{Draft, Filter, Row, RowKind, Writes};
use super::stored::{check_run, keepable, value};
use super::{Ledger, LedgerError, checkpoint, closing, millis};

#[cfg(feature = "ai-sdk")]
mod chats;

/// The version of the stored form (rule L7).
const VERSION: u64 = 1;

/// A run in the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunRecord {
    version: u64,
    /// The run.
    pub run: String,
    /// How often it was saved.
    pub saved: u64,
    /// Where it stands: a [`SuspendedRun`](crate::SuspendedRun) as JSON, or what it came to.
    pub state: Value,
    /// Whether it is over.
    pub over: bool,
    /// Whether it is a chat, and no run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    chat: bool,
    /// Who resumes it, or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim; 0 when there was none.
    pub token: u64,
    /// When it was first saved.
    pub saved_at: Millis,
}

impl RunRecord {
    fn new(run: &str, chat: bool, now: Millis) -> Self {
        Self {
            version: VERSION,
            run: run.to_owned(),
            saved: 0,
            state: Value::Null,
            over: false,
            chat,
            claim: None,
            token: 0,
            saved_at: now,
        }
    }

    /// Gives it to a worker, unless another one has it.
    fn take(&mut self, worker: &str, lease: Millis, now: Millis) -> Taken {
        if let Some(claim) = self.claim.as_ref().filter(|claim| now < claim.until) {
            let by = claim.worker.clone();
            return Taken::Held { by, since: claim.at, until: claim.until };
        }
        self.token += 1;
        let until = now.saturating_add(lease);
        self.claim = Some(ClaimRecord { worker: worker.to_owned(), at: Some(now), until });
        Taken::Taken { token: self.token, state: self.state.clone() }
    }
}

/// Whether a worker may resume a run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Taken {
    /// It may, and saves it with this token.
    Taken {
        /// Each claim of a run has a higher one.
        token: u64,
        /// Where it stands.
        state: Value,
    },
    /// Another worker resumes it.
    Held {
        /// Which.
        by: String,
        /// Since when.
        since: Option<Millis>,
        /// Until when, unless it renews.
        until: Millis,
    },
    /// It is over, and came to this.
    Over {
        /// What.
        result: Value,
    },
    /// There is no such run.
    UnknownRun,
}

/// Whether a run was saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Saved {
    /// It was.
    Saved,
    /// Another worker has taken it over since, or it is over.
    StaleToken,
}

impl Ledger {
    /// Keeps a run that waits, for whoever resumes it. With the token of a claim it gives the claim up; without one it
    /// only begins: a run that is there already stays as it is.
    ///
    /// # Errors
    /// [`LedgerError`]; the run stands as it was.
    pub async fn save_run(
        &self,
        run: &str,
        state: Value,
        token: Option<u64>,
    ) -> Result<Saved, LedgerError> {
        self.write_run(run, RunWrite { state, token, over: false, closes: &[] }).await
    }

    /// Notes what a run came to.
    ///
    /// # Errors
    /// [`LedgerError`]; the run stands as it was.
    pub async fn end_run(
        &self,
        run: &str,
        token: u64,
        result: Value,
    ) -> Result<Saved, LedgerError> {
        let state = result;
        self.write_run(run, RunWrite { state, token: Some(token), over: true, closes: &[] }).await
    }

    /// Takes a run to resume it. Of any number of workers one gets it, and keeps it as long as its lease.
    ///
    /// # Errors
    /// [`LedgerError`]; nothing is taken.
    pub async fn take_run(
        &self,
        run: &str,
        worker: &str,
        lease: Duration,
    ) -> Result<Taken, LedgerError> {
        let lease = millis(lease);
        self.on_run(run, None, |now, record| {
            let Some(mut record) = record else { return (Taken::UnknownRun, None) };
            if record.over {
                return (Taken::Over { result: record.state }, None);
            }
            match record.take(worker, lease, now) {
                taken @ Taken::Taken { .. } => (taken, Some((record, Some("run_taken")))),
                other => (other, None),
            }
        })
        .await
    }

    /// Keeps a run for longer.
    ///
    /// # Errors
    /// [`LedgerError`]; the claim lasts as long as before.
    pub async fn renew_run(
        &self,
        run: &str,
        token: u64,
        lease: Duration,
    ) -> Result<Saved, LedgerError> {
        let lease = millis(lease);
        self.on_run(run, None, |now, record| match record {
            Some(mut record) if record.token == token && !record.over => {
                let Some(claim) = &mut record.claim else { return (Saved::StaleToken, None) };
                claim.until = now.saturating_add(lease);
                (Saved::Saved, Some((record, None)))
            }
            _ => (Saved::StaleToken, None),
        })
        .await
    }

    /// The runs that are not over, newest first.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn waiting_runs(&self, limit: u32) -> Result<Vec<RunRecord>, LedgerError> {
        let states = vec!["waiting".to_owned()];
        let filter = Filter { kind: Some(RowKind::Run), states, run: None, limit: Some(limit) };
        self.store.list(&filter).await?.iter().map(read).collect()
    }

    /// A run, as it stands.
    ///
    /// # Errors
    /// [`LedgerError`].
    pub async fn get_run(&self, run: &str) -> Result<Option<RunRecord>, LedgerError> {
        let row = self.store.get(&row_id(run)).await?.filter(|row| row.kind == RowKind::Run);
        row.map(|row| read(&row)).transpose()
    }

    /// Saves a run, and closes the asks of the calls that have got their results, in one transaction.
    pub(crate) async fn write_run(
        &self,
        run: &str,
        write: RunWrite<'_>,
    ) -> Result<Saved, LedgerError> {
        let RunWrite { state, token, over, closes } = write;
        checkpoint::refuse_name(run, run)?;
        let event = if over { "run_ended" } else { "run_saved" };
        let closing = Closing { asks: closes, by: self.get_worker(), if_made: Saved::Saved };
        self.on_run(run, Some(closing), |now, record| {
            let mut record = match (record, token) {
                (None, None) => RunRecord::new(run, false, now),
                (Some(_), None) => return (Saved::Saved, None),
                (Some(record), Some(token)) if record.token == token && !record.over => record,
                (_, Some(_)) => return (Saved::StaleToken, None),
            };
            (record.saved, record.state, record.over) = (record.saved + 1, state.clone(), over);
            record.claim = None;
            (Saved::Saved, Some((record, Some(event))))
        })
        .await
    }

    async fn on_run<T: PartialEq + Send + Sync>(
        &self,
        run: &str,
        closing: Option<Closing<'_, T>>,
        mut change: impl FnMut(
            Millis,
            Option<RunRecord>,
        ) -> (T, Option<(RunRecord, Option<&'static str>)>)
        + Send,
    ) -> Result<T, LedgerError> {
        let mut result = None;
        let asks = closing.iter().flat_map(|closing| closing.asks).cloned();
        let ids: Vec<_> = std::iter::once(row_id(run)).chain(asks).collect();
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let mut rows = rows.into_iter();
            let known = rows.next().flatten().map(|row| read(&row)).transpose();
            let made = known.and_then(|known| {
                let new = known.is_none();
                let held = known.as_ref().and_then(|record| record.claim.clone());
                let (made, written) = change(now, known);
                let mut writes = match closing.as_ref().filter(|it| it.if_made == made) {
                    Some(it) => closing::closed(rows, it.by, now)?,
                    None => Writes::default(),
                };
                if let Some((record, event)) = written {
                    if new {
                        check_run(run)?;
                    }
                    let held = record.claim.as_ref().or(held.as_ref());
                    let by = held.map_or(self.get_worker(), |claim| &claim.worker);
                    writes.log.extend(event.map(|event| draft(&record, event, by, now)));
                    writes.rows.push(keepable(row_of(&record))?);
                }
                Ok((made, writes))
            });
            let (made, writes) = match made {
                Ok((made, writes)) => (Ok(made), writes),
                Err(error) => (Err(error), Writes::default()),
            };
            result = Some(made);
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result.unwrap_or_else(|| Err(LedgerError::unreadable(&row_id(run), "it was not read")))
    }
}

/// What a run comes to, for now or for good.
pub(crate) struct RunWrite<'w> {
    pub(crate) state: Value,
    /// The claim; `None` only begins.
    pub(crate) token: Option<u64>,
    pub(crate) over: bool,
    /// The asks of calls that have got their results.
    pub(crate) closes: &'w [String],
}

/// Asks that are closed when a change comes to this.
struct Closing<'c, T> {
    asks: &'c [String],
    by: &'c str,
    if_made: T,
}

fn row_id(run: &str) -> String {
    format!("run:{run}")
}

/// What lists go by.
fn standing(record: &RunRecord) -> &'static str {
    match record {
        RunRecord { chat: true, .. } => "chat",
        RunRecord { over: true, .. } => "over",
        _ => "waiting",
    }
}

fn row_of(record: &RunRecord) -> Row {
    Row {
        id: row_id(&record.run),
        kind: RowKind::Run,
        run: record.run.clone(),
        state: standing(record).to_owned(),
        created_at: record.saved_at,
        due_at: None,
        doc: json!(record).to_string(),
    }
}

fn read(row: &Row) -> Result<RunRecord, LedgerError> {
    serde_json::from_value(value(row, VERSION)?)
        .map_err(|error| LedgerError::unreadable(&row.id, &error))
}

fn draft(record: &RunRecord, event: &str, worker: &str, now: Millis) -> Draft {
    let body = json!({
        "at": now,
        "event": event,
        "saved": record.saved,
        "state": crate::args::digest(&record.state),
        "token": record.token,
        "worker": worker,
    });
    Draft { run: record.run.clone(), body }
}
