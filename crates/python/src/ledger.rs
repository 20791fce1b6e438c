//! The class `Ledger`, as the classes of Python use it.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use countersign::Outcome;
use countersign::decision::Decision;
use countersign::deferred::Answer;
use countersign::ledger::{
    Approver, AskRecord, AskState, Broken, Claimed, Ledger, LedgerError, Listed, Presented, Quorum,
    Renewed, Surface,
};
use countersign::outcome::ToolReturn;
use countersign_cli::config::{Config, ConfigError, Directories};
use countersign_stores::StoreUrl;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::bridge::{self, Done, Orphan};
use crate::errors::OperationError;
use crate::parking::{self, AskedCall};
use crate::rules::PyDecision;
use crate::{json, shown};

/// How long a deadline is waited for before it is looked at again.
const TICK: Duration = Duration::from_secs(1);

/// A ledger over a store.
///
/// Each method takes whether it `waits`: then it returns its result, and else a future of the running event loop.
#[pyclass(frozen, name = "Ledger", module = "countersign._countersign")]
pub(crate) struct PyLedger {
    /// Taken only when the value ends.
    ledger: Option<Ledger>,
    url: String,
    process: u32,
}

impl Drop for PyLedger {
    fn drop(&mut self) {
        // A connection of SQLite must not be closed by another process than the one that has opened it.
        if self.process != std::process::id() {
            std::mem::forget(self.ledger.take());
        }
    }
}

impl PyLedger {
    fn run<F>(
        &self,
        py: Python<'_>,
        waits: bool,
        orphan: Orphan,
        operation: impl FnOnce(Ledger) -> F,
    ) -> PyResult<Py<PyAny>>
    where
        F: Future<Output = Done> + Send + 'static,
    {
        bridge::run(py, waits, operation(self.ledger()?), orphan)
    }

    fn ledger(&self) -> PyResult<Ledger> {
        bridge::check_process(self.process)?;
        self.ledger.clone().ok_or_else(|| PyValueError::new_err("the ledger is closed"))
    }
}

#[pymethods]
impl PyLedger {
    /// Opens the store that the program `countersign` opens with the same URL, or without one.
    #[staticmethod]
    #[pyo3(signature = (url, audit_key, session))]
    fn open(
        py: Python<'_>,
        url: Option<&str>,
        audit_key: Option<Vec<u8>>,
        session: Option<String>,
    ) -> PyResult<Self> {
        let runtime = bridge::runtime(py)?;
        let url = url.map(|url| url.parse::<StoreUrl>()).transpose();
        let url = url.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let opening = open(url, audit_key);
        let (ledger, url) = py.detach(|| runtime.block_on(opening))?;
        let ledger = match session {
            Some(session) => ledger.session(session),
            None => ledger,
        };
        Ok(Self { ledger: Some(ledger), url, process: std::process::id() })
    }

    /// The URL of the store, without a password.
    #[getter]
    fn url(&self) -> &str {
        &self.url
    }

    #[pyo3(signature = (waits, *, run, agent, call, tool, args, reason, decision, requester, idempotent, approvals,
        not_the_requester, expires_in, valid_for))]
    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python")]
    fn park(
        &self,
        py: Python<'_>,
        waits: bool,
        run: String,
        agent: String,
        call: String,
        tool: String,
        args: &Bound<'_, PyAny>,
        reason: Option<String>,
        decision: Option<&PyDecision>,
        requester: Option<String>,
        idempotent: bool,
        approvals: u32,
        not_the_requester: bool,
        expires_in: Option<f64>,
        valid_for: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let asked = match (decision, reason) {
            (Some(decision), _) => decision.asked(),
            (None, Some(reason)) => Decision::ask(reason),
            (None, None) => Decision::ask("the program asks about each call of this tool"),
        };
        let call = AskedCall {
            run,
            agent,
            call,
            tool,
            args: json::args(args)?,
            questions: asked.questions().to_vec(),
            requester,
            idempotent,
            quorum: Quorum { approvals: approvals.max(1), not_the_requester },
            expires_in: expires_in.map(seconds).transpose()?,
            valid_for: valid_for.map(seconds).transpose()?,
        };
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            Ok(shown::ask(&parking::park(&ledger, &call).await?))
        })
    }

    fn get(&self, py: Python<'_>, waits: bool, id: String) -> PyResult<Py<PyAny>> {
        self.run(py, waits, Orphan::Stop, |ledger| async move {
            Ok(ledger.get(&id).await?.as_ref().map_or(Value::Null, shown::ask))
        })
    }

    #[pyo3(signature = (waits, id, timeout))]
    fn wait(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = timeout.map(seconds).transpose()?;
        if waits {
            bridge::refuse_in_loop(py)?;
        }
        self.run(py, waits, Orphan::Stop, |ledger| async move {
            let is_pending = |record: &AskRecord| record.state == AskState::Pending;
            Ok(change(&ledger, &id, timeout, is_pending)
                .await?
                .as_ref()
                .map_or(Value::Null, shown::ask))
        })
    }

    /// Waits while a worker executes the call.
    #[pyo3(signature = (waits, id, timeout))]
    fn wait_for_end(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        timeout: Option<f64>,
    ) -> PyResult<Py<PyAny>> {
        let timeout = timeout.map(seconds).transpose()?;
        if waits {
            bridge::refuse_in_loop(py)?;
        }
        self.run(py, waits, Orphan::Stop, |ledger| async move {
            let runs = |record: &AskRecord| record.state == AskState::Claimed;
            Ok(change(&ledger, &id, timeout, runs).await?.as_ref().map_or(Value::Null, shown::ask))
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python")]
    #[pyo3(signature = (waits, id, fingerprint, answer, by, args, message))]
    fn decide(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        fingerprint: String,
        answer: &str,
        by: String,
        args: Option<&Bound<'_, PyAny>>,
        message: Option<String>,
    ) -> PyResult<Py<PyAny>> {
        let args = args.map(json::args).transpose()?;
        let answer = match (answer, args) {
            ("approve", args) => Answer::Approve { args },
            ("deny", None) => Answer::Deny { message: message.unwrap_or_default() },
            ("deny", Some(_)) => {
                return Err(PyValueError::new_err("a denial has no arguments: leave `args` out"));
            }
            _ => return Err(PyValueError::new_err("the answer is \"approve\" or \"deny\"")),
        };
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            let shown = Presented::whole(id, fingerprint);
            let decided = Surface::new(ledger).decide(&Approver::new(by), &shown, answer).await?;
            json_of(&decided)
        })
    }

    fn cancel(&self, py: Python<'_>, waits: bool, id: String, by: String) -> PyResult<Py<PyAny>> {
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            json_of(&ledger.cancel(&id, &by).await?)
        })
    }

    #[pyo3(signature = (waits, id, worker, lease))]
    fn claim(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        worker: Option<String>,
        lease: f64,
    ) -> PyResult<Py<PyAny>> {
        let (worker, lease) = (worker.unwrap_or_else(bridge::worker), seconds(lease)?);
        let (of_ask, runtime, undone) = (id.clone(), bridge::runtime(py)?, self.ledger()?);
        let undo = move |claimed: Value| {
            if let Some(token) = claimed.get("token").and_then(Value::as_u64) {
                runtime.spawn(async move { undone.release(&of_ask, token).await });
            }
        };
        self.run(py, waits, Orphan::Undo(Box::new(undo)), |ledger| async move {
            let claimed = ledger.claim(&id, &worker, lease).await?;
            let record = match ledger.get(&id).await {
                Ok(record) => record,
                Err(error) => {
                    if let Claimed::Claimed { token } = claimed {
                        ledger.release(&id, token).await?;
                    }
                    return Err(error.into());
                }
            };
            bug(shown::claimed(&claimed, record.as_ref()))
        })
    }

    /// Gives a claim back whose caller was cancelled, without waiting.
    fn give_back(&self, py: Python<'_>, id: String, token: u64) -> PyResult<()> {
        let ledger = self.ledger()?;
        bridge::runtime(py)?.spawn(async move { ledger.release(&id, token).await });
        Ok(())
    }

    /// Ends the lease of a claim whose body was given up, without waiting: the call may have run, and people see that at
    /// once. A late outcome still counts.
    fn abandon(&self, py: Python<'_>, id: String, token: u64) -> PyResult<()> {
        let ledger = self.ledger()?;
        bridge::runtime(py)?.spawn(async move { ledger.renew(&id, token, Duration::ZERO).await });
        Ok(())
    }

    /// Renews a claim in the background, until the keeper is stopped or goes.
    fn keep(&self, py: Python<'_>, id: String, token: u64, lease: f64) -> PyResult<ClaimKeeper> {
        let (ledger, lease) = (self.ledger()?, seconds(lease)?);
        let task = bridge::runtime(py)?.spawn(async move {
            loop {
                tokio::time::sleep(lease / 3).await;
                // A store that is away for a moment is no reason to stop: the lease has two thirds left.
                let renewed = ledger.renew(&id, token, lease).await;
                if let Ok(Renewed::StaleToken | Renewed::UnknownAsk) = renewed {
                    return;
                }
            }
        });
        Ok(ClaimKeeper { task: task.abort_handle() })
    }

    fn renew(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        token: u64,
        lease: f64,
    ) -> PyResult<Py<PyAny>> {
        let lease = seconds(lease)?;
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            json_of(&ledger.renew(&id, token, lease).await?)
        })
    }

    #[expect(clippy::too_many_arguments, reason = "each is a keyword of Python")]
    #[pyo3(signature = (waits, id, token, kind, value, metadata))]
    fn settle(
        &self,
        py: Python<'_>,
        waits: bool,
        id: String,
        token: u64,
        kind: &str,
        value: &Bound<'_, PyAny>,
        metadata: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let outcome = match kind {
            "returned" => {
                let metadata = metadata.map(json::value).transpose()?;
                Outcome::Returned(ToolReturn { metadata, ..ToolReturn::new(json::value(value)?) })
            }
            "failed" => Outcome::failed(value.extract::<String>()?),
            "retry" => Outcome::retry(value.extract::<String>()?),
            _ => return Err(PyValueError::new_err("the outcome is returned, failed or retry")),
        };
        let outcome = json_of(&outcome)?;
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            let mut settled = json_of(&ledger.settle(&id, token, outcome).await?)?;
            if let Some(outcome) = settled.get_mut("outcome") {
                *outcome = shown::outcome(outcome);
            }
            Ok(settled)
        })
    }

    fn release(&self, py: Python<'_>, waits: bool, id: String, token: u64) -> PyResult<Py<PyAny>> {
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            let released = json_of(&ledger.release(&id, token).await?)?;
            Ok(released.get("result").cloned().unwrap_or_default())
        })
    }

    #[pyo3(signature = (waits, state, run, limit))]
    fn list(
        &self,
        py: Python<'_>,
        waits: bool,
        state: Option<String>,
        run: Option<String>,
        limit: u32,
    ) -> PyResult<Py<PyAny>> {
        let wanted = state.as_deref().map(state_of).transpose()?;
        self.run(py, waits, Orphan::Stop, |ledger| async move {
            let listed = match &run {
                Some(run) => ledger.list_run(run, limit).await?,
                None => ledger.list(wanted, limit).await?,
            };
            let Listed { records, refused } = listed;
            let shown = records.iter().filter(|it| wanted.is_none_or(|state| it.state == state));
            let refused = refused.iter().map(|row| json!([row.id, row.error.to_string()]));
            Ok(json!({
                "asks": shown.map(shown::ask).collect::<Vec<_>>(),
                "refused": refused.collect::<Vec<_>>(),
            }))
        })
    }

    fn verify(
        &self,
        py: Python<'_>,
        waits: bool,
        earlier: BTreeMap<String, (i64, String)>,
    ) -> PyResult<Py<PyAny>> {
        self.run(py, waits, Orphan::Stop, |ledger| async move {
            match ledger.verify(&earlier).await {
                Ok(verified) => Ok(json!({
                    "entries": verified.entries,
                    "heads": verified.heads,
                    "ran_unapproved": verified.ran_unapproved,
                    "broken": null,
                })),
                Err(LedgerError::Broken(broken)) => Ok(json!({"broken": place(&broken)})),
                Err(error) => Err(error.into()),
            }
        })
    }

    fn expire(&self, py: Python<'_>, waits: bool) -> PyResult<Py<PyAny>> {
        self.run(py, waits, Orphan::Finish, |ledger| async move {
            Ok(json!(ledger.expire().await?.changed))
        })
    }
}

/// Renews a claim for as long as it is there.
#[pyclass(frozen, module = "countersign._countersign")]
pub(crate) struct ClaimKeeper {
    task: AbortHandle,
}

#[pymethods]
impl ClaimKeeper {
    /// Stops renewing.
    fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for ClaimKeeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens a store with the settings of the user, as the program does.
async fn open(
    url: Option<StoreUrl>,
    audit_key: Option<Vec<u8>>,
) -> Result<(Ledger, String), OperationError> {
    let (directories, config) = match (Directories::of_user(), &url) {
        (Ok(directories), _) => {
            let config = Config::load(&directories, None)?;
            (directories, config)
        }
        // An account without a home directory, as in a container, has no settings.
        (Err(_), Some(_)) => (Directories::below("/"), Config::default()),
        (Err(error), None) => return Err(error.into()),
    };
    let named = config.store_url(&directories, url.as_ref()).to_string();
    let ledger = match audit_key {
        Some(key) => {
            let store = config.store_url(&directories, url.as_ref());
            let ledger = store.open().await.map_err(ConfigError::from)?.audit_key(&key);
            ledger.open().await?;
            ledger
        }
        None => config.open_store(&directories, url.as_ref()).await?,
    };
    Ok((ledger, named))
}

/// The ask once it is not in this state any more, or when the time is over.
async fn change(
    ledger: &Ledger,
    id: &str,
    timeout: Option<Duration>,
    is_waited_for: impl Fn(&AskRecord) -> bool,
) -> Result<Option<AskRecord>, LedgerError> {
    let end = timeout.map(|timeout| tokio::time::Instant::now() + timeout);
    let mut place = -1;
    loop {
        let Some(record) = ledger.get(id).await? else { return Ok(None) };
        let is_over = end.is_some_and(|end| tokio::time::Instant::now() >= end);
        if is_over || !is_waited_for(&record) {
            return Ok(Some(record));
        }
        // A deadline of the ask passes without an entry in the log.
        let left = end.map(|end| end.saturating_duration_since(tokio::time::Instant::now()));
        let slice = left.unwrap_or(TICK).min(TICK);
        let changed = tokio::time::timeout(slice, ledger.wait_for_change(record.ask.run(), place));
        if let Ok(changed) = changed.await {
            place = changed?;
        }
    }
}

fn place(broken: &Broken) -> Value {
    json!({"run": broken.run, "seq": broken.seq, "problem": broken.problem, "text": broken.to_string()})
}

fn state_of(name: &str) -> PyResult<AskState> {
    AskState::ALL.into_iter().find(|state| state.as_str() == name).ok_or_else(|| {
        let names = AskState::ALL.map(AskState::as_str).join(", ");
        PyValueError::new_err(format!("there is no state `{}`: {names}", name.escape_debug()))
    })
}

/// A time of Python, in seconds.
fn seconds(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!("{seconds} is no time in seconds: give 0 or more"))
    })
}

fn json_of(value: &impl Serialize) -> Done {
    bug(serde_json::to_value(value))
}

fn bug(value: Result<Value, serde_json::Error>) -> Done {
    value.map_err(|error| OperationError::Bug(format!("a result has no form in JSON: {error}")))
}
