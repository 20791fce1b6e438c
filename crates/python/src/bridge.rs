//! The runtime of a process, and how the result of an operation reaches Python.
//!
//! An operation is a task of the runtime that no caller stops: a claim that was dropped between its commit and its answer
//! would be a claim that no one knows of. Where the result finds no one who waits for it any more, `Undelivered` gets it,
//! which gives a claim back (rule L2).
//!
//! ```text
//!  a thread   ── spawn ──► task ── oneshot ──► the thread, which looks for signals every 100 ms
//!  an event loop ── spawn ──► task ── call_soon_threadsafe ──► Delivery ──► the future
//! ```

use std::future::Future;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::errors::{Forked, OperationError};
use crate::json;

/// How long a waiting thread does not look for signals.
const SLICE: Duration = Duration::from_millis(100);

/// The result of an operation, as JSON.
pub(crate) type Done = Result<Value, OperationError>;

/// Takes a result that no caller got.
pub(crate) type Undelivered = Box<dyn FnOnce(Value) + Send>;

/// How an operation ends when its caller is gone.
pub(crate) enum Orphan {
    /// It runs to its end, and its result is given away.
    Finish,
    /// It only reads: it is stopped.
    Stop,
    /// It runs to its end, and this gets its result.
    Undo(Undelivered),
}

impl Orphan {
    fn take(self, done: Done) {
        if let (Self::Undo(undo), Ok(value)) = (self, done) {
            undo(value);
        }
    }
}

/// What belongs to one process: its runtime, and whether its interpreter still takes results.
struct Process {
    id: u32,
    runtime: Runtime,
    /// Held while a result is handed over. A thread that is attached while the interpreter ends would end the process with
    /// an error.
    is_over: RwLock<bool>,
}

/// The runtime of this process. The one of a process before `fork` has no threads here, so it is left alone.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    Ok(&process(py)?.runtime)
}

/// The lock is taken only by threads that are attached to Python and stay so, and `os.fork` is called by such a thread: a child
/// never finds it locked by a thread that it does not have.
fn process(py: Python<'_>) -> PyResult<&'static Process> {
    static PROCESS: Mutex<Option<&'static Process>> = Mutex::new(None);
    let found = || *PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    let id = std::process::id();
    if let Some(process) = found().filter(|process| process.id == id) {
        return Ok(process);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("countersign")
        .enable_all()
        .build()
        .map_err(|error| PyRuntimeError::new_err(format!("no runtime can be started: {error}")))?;
    let made: &'static Process =
        Box::leak(Box::new(Process { id, runtime, is_over: RwLock::new(false) }));
    let at_exit = Bound::new(py, EndOfProcess { process: made })?;
    py.import("atexit")?.call_method1("register", (at_exit,))?;
    let mut place = PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have been faster; a runtime that is not used costs two sleeping threads.
    let chosen = place.filter(|process| process.id == id).unwrap_or(made);
    *place = Some(chosen);
    Ok(chosen)
}

/// Called before the interpreter ends: from then on results are not handed over any more, and the work is done all the same.
#[pyclass(frozen)]
struct EndOfProcess {
    process: &'static Process,
}

#[pymethods]
impl EndOfProcess {
    fn __call__(&self, py: Python<'_>) {
        if self.process.id == std::process::id() {
            py.detach(|| {
                *self.process.is_over.write().unwrap_or_else(PoisonError::into_inner) = true
            });
        }
    }
}

/// Refuses what was opened before `fork`.
pub(crate) fn check_process(of: u32) -> PyResult<()> {
    match of == std::process::id() {
        true => Ok(()),
        false => Err(Forked::new_err(
            "this ledger was opened by another process, before `fork`: open the ledger again in this process, and do not \
             use or close the other one here",
        )),
    }
}

fn asyncio(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    Ok(MODULE.get_or_try_init(py, || py.import("asyncio").map(Bound::unbind))?.bind(py))
}

/// Runs an operation, and waits for it in this thread, or gives a future of the running event loop.
pub(crate) fn run(
    py: Python<'_>,
    waits: bool,
    operation: impl Future<Output = Done> + Send + 'static,
    orphan: Orphan,
) -> PyResult<Py<PyAny>> {
    match waits {
        true => wait(py, operation, orphan),
        false => start(py, operation, orphan),
    }
}

/// Refuses to wait for a person in the thread of an event loop. What takes milliseconds may: a notebook has a loop, too.
pub(crate) fn refuse_in_loop(py: Python<'_>) -> PyResult<()> {
    match asyncio(py)?.call_method0("_get_running_loop")?.is_none() {
        true => Ok(()),
        false => Err(PyRuntimeError::new_err(
            "an event loop runs in this thread, and would stand still: await the method of the same name of `ledger.aio`",
        )),
    }
}

fn wait(
    py: Python<'_>,
    operation: impl Future<Output = Done> + Send + 'static,
    orphan: Orphan,
) -> PyResult<Py<PyAny>> {
    let runtime = runtime(py)?;
    let (sender, mut receiver) = oneshot::channel();
    let task = runtime.spawn(async move {
        // The receiver is there, or has left: then the result is an orphan.
        let _ = sender.send(operation.await);
    });
    loop {
        let slice = py.detach(|| {
            runtime.block_on(async { tokio::time::timeout(SLICE, &mut receiver).await })
        });
        let interrupted = match slice {
            Ok(Ok(done)) => return Ok(json::to_python(py, &done?)?.unbind()),
            Ok(Err(_)) => return Err(bug()),
            Err(_) => py.check_signals(),
        };
        if let Err(signal) = interrupted {
            if let Orphan::Stop = orphan {
                task.abort();
            } else {
                runtime.spawn(async move {
                    if let Ok(done) = receiver.await {
                        orphan.take(done);
                    }
                });
            }
            return Err(signal);
        }
    }
}

fn start(
    py: Python<'_>,
    operation: impl Future<Output = Done> + Send + 'static,
    orphan: Orphan,
) -> PyResult<Py<PyAny>> {
    let running = asyncio(py)?.call_method0("get_running_loop")?;
    let future = running.call_method0("create_future")?;
    let (running, of_task) = (running.unbind(), future.clone().unbind());
    let stops = matches!(orphan, Orphan::Stop);
    let process = process(py)?;
    let task = process.runtime.spawn(async move {
        let done = operation.await;
        let is_over = process.is_over.read().unwrap_or_else(PoisonError::into_inner);
        match *is_over {
            true => orphan.take(done),
            false => deliver(running, of_task, done, orphan),
        }
    });
    if stops {
        let stop = Bound::new(py, StopTask { task: task.abort_handle() })?;
        future.call_method1("add_done_callback", (stop,))?;
    }
    Ok(future.unbind())
}

/// Hands a result to the event loop. A loop that is closed, or an interpreter that ends, loses the message and never the
/// work.
fn deliver(running: Py<PyAny>, future: Py<PyAny>, done: Done, orphan: Orphan) {
    let delivery = Delivery { future, result: Mutex::new(Some((done, orphan))) };
    let _ = Python::try_attach(move |py| {
        // Where this fails, the delivery is dropped, which takes care of the result.
        let delivery = Bound::new(py, delivery)?;
        running.call_method1(py, "call_soon_threadsafe", (delivery,))
    });
}

fn bug() -> PyErr {
    PyRuntimeError::new_err(
        "an operation of countersign has panicked: this is a bug, and its log entry says where",
    )
}

/// Puts a result into a future, in the thread of the loop.
#[pyclass(frozen)]
struct Delivery {
    future: Py<PyAny>,
    result: Mutex<Option<(Done, Orphan)>>,
}

impl Delivery {
    fn take(&self) -> Option<(Done, Orphan)> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Delivery {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let Some((done, orphan)) = self.take() else { return Ok(()) };
        let future = self.future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            orphan.take(done);
            return Ok(());
        }
        match done {
            Ok(value) => future.call_method1("set_result", (json::to_python(py, &value)?,))?,
            Err(failure) => {
                future.call_method1("set_exception", (PyErr::from(failure).into_value(py),))?
            }
        };
        Ok(())
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some((done, orphan)) = self.take() {
            orphan.take(done);
        }
    }
}

/// Stops a task that only reads, once its future is done.
#[pyclass(frozen)]
struct StopTask {
    task: AbortHandle,
}

#[pymethods]
impl StopTask {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        self.task.abort();
    }
}

/// The name of this process in claims, where no other one is given.
pub(crate) fn worker() -> String {
    static HOST: OnceLock<String> = OnceLock::new();
    let host = HOST.get_or_init(|| {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("python@{}", name.trim())
    });
    format!("{} {}", host.trim_end_matches('@'), std::process::id())
}
