//! Blocking runs, for programs without an async runtime.
//!
//! We make the runtime once for the process, and poll a blocking run on the caller's thread. So you can use values
//! that are not `Send` around the run, and a panic of a tool unwinds where you expect it. Inside of an async runtime
//! a blocking run is an error and not a panic.

use std::future::Future;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::UserError;

/// One runtime for all blocking runs. We never drop it: a task that a layer has spawned for one run, such as the worker
/// of `buffer`, still exists for the next. Its worker thread drives the timers. If a tool blocks the thread of its own
/// run, it does not delay other runs.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The runtime for blocking runs. Inside another runtime this is an error, as blocking would stop the tasks of that
/// runtime.
pub(super) fn runtime() -> Result<&'static Runtime, UserError> {
    if Handle::try_current().is_ok() {
        return Err(UserError::InsideRuntime);
    }
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let mut builder = Builder::new_multi_thread();
    let made = builder.worker_threads(1).thread_name("countersign").enable_all().build();
    let made = made.map_err(|error| UserError::NoRuntime { problem: error.to_string() })?;
    Ok(RUNTIME.get_or_init(|| made))
}

pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, UserError> {
    Ok(runtime()?.block_on(future))
}
