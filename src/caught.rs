//! Running other people's code: a panic in it becomes a value.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures::FutureExt as _;

/// What a hook did instead of answering.
pub(crate) struct Caught(pub(crate) &'static str);

/// Runs a hook, catching a panic while it is made and while it runs. The message of the panic is not kept: the panic
/// hook has printed it, and it may quote arguments (rule S2).
pub(crate) async fn caught<F: Future>(hook: impl FnOnce() -> F) -> Result<F::Output, Caught> {
    let Ok(future) = catch_unwind(AssertUnwindSafe(hook)) else { return Err(Caught("panicked")) };
    AssertUnwindSafe(future).catch_unwind().await.map_err(|_| Caught("panicked"))
}
