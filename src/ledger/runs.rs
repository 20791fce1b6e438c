//! Suspended runs: kept until they are over, and resumed by one worker at a time (rule L5).

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ask::Millis;
use super::record::ClaimRecord;
use super::store::{Draft, Filter, Row, RowKind, Writes};
use super::{Ledger, LedgerError, millis};

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
    /// Who resumes it, or did last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimRecord>,
    /// The token of the latest claim; 0 when there was none.
    pub token: u64,
    /// When it was first saved.
    pub saved_at: Millis,
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
        self.write_run(run, state, token, false).await
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
        self.write_run(run, result, Some(token), true).await
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
        self.on_run(run, |now, record| {
            let Some(mut record) = record else { return (Taken::UnknownRun, None) };
            if record.over {
                return (Taken::Over { result: record.state }, None);
            }
            if let Some(claim) = record.claim.as_ref().filter(|claim| now < claim.until) {
                let (by, until) = (claim.worker.clone(), claim.until);
                return (Taken::Held { by, until }, None);
            }
            record.token += 1;
            let until = now.saturating_add(lease);
            record.claim = Some(ClaimRecord { worker: worker.to_owned(), until });
            let taken = Taken::Taken { token: record.token, state: record.state.clone() };
            (taken, Some((record, Some("run_taken"))))
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
        self.on_run(run, |now, record| match record {
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

    async fn write_run(
        &self,
        run: &str,
        state: Value,
        token: Option<u64>,
        over: bool,
    ) -> Result<Saved, LedgerError> {
        let event = if over { "run_ended" } else { "run_saved" };
        self.on_run(run, |now, record| {
            let mut record = match (record, token) {
                (None, None) => RunRecord {
                    version: VERSION,
                    run: run.to_owned(),
                    saved: 0,
                    state: Value::Null,
                    over: false,
                    claim: None,
                    token: 0,
                    saved_at: now,
                },
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

    async fn on_run<T: Send>(
        &self,
        run: &str,
        mut change: impl FnMut(
            Millis,
            Option<RunRecord>,
        ) -> (T, Option<(RunRecord, Option<&'static str>)>)
        + Send,
    ) -> Result<T, LedgerError> {
        let mut result = None;
        let ids = [row_id(run)];
        let mut work = |now: Millis, rows: Vec<Option<Row>>| {
            let known = rows.into_iter().flatten().next().map(|row| read(&row)).transpose();
            let known = match known {
                Ok(known) => known,
                Err(error) => {
                    result = Some(Err(error));
                    return Writes::default();
                }
            };
            let (made, written) = change(now, known);
            result = Some(Ok(made));
            let mut writes = Writes::default();
            if let Some((record, event)) = written {
                writes.log.extend(event.map(|event| draft(&record, event, now)));
                writes.rows.push(row_of(&record));
            }
            writes
        };
        self.store.transact(&ids, &self.linker, &mut work).await?;
        result.unwrap_or_else(|| Err(LedgerError::unreadable(&row_id(run), "it was not read")))
    }
}

fn row_id(run: &str) -> String {
    format!("run:{run}")
}

fn row_of(record: &RunRecord) -> Row {
    Row {
        id: row_id(&record.run),
        kind: RowKind::Run,
        run: record.run.clone(),
        state: if record.over { "over" } else { "waiting" }.to_owned(),
        created_at: record.saved_at,
        due_at: None,
        doc: json!(record).to_string(),
    }
}

fn read(row: &Row) -> Result<RunRecord, LedgerError> {
    let unreadable = |problem: &dyn std::fmt::Display| LedgerError::unreadable(&row.id, problem);
    let record: RunRecord = serde_json::from_str(&row.doc).map_err(|error| unreadable(&error))?;
    match record.version {
        VERSION => Ok(record),
        version => Err(unreadable(&format_args!("it is of version {version}, and not {VERSION}"))),
    }
}

fn draft(record: &RunRecord, event: &str, now: Millis) -> Draft {
    let body = json!({
        "at": now,
        "event": event,
        "saved": record.saved,
        "state": crate::args::digest(&record.state),
        "token": record.token,
        "worker": record.claim.as_ref().map(|claim| &claim.worker),
    });
    Draft { run: record.run.clone(), body }
}
