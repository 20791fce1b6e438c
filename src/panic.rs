//! Running the code of users: a panic in it becomes a value.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// What a hook did instead of answering.
pub(crate) struct Panicked(pub(crate) &'static str);

/// Runs a hook, catching a panic while it is made and while it runs. The message of the panic is not kept: the panic
/// hook has printed it, and it may quote arguments (rule S2).
pub(crate) fn catch_panic<F: Future>(hook: impl FnOnce() -> F) -> Catching<F> {
    Catching { hook: catch_unwind(AssertUnwindSafe(hook)).ok() }
}

pin_project! {
    /// A hook that runs. Written by hand, as every layer has several: an `async fn` would keep the hook twice, and
    /// combinators would move its result several times.
    pub(crate) struct Catching<F> {
        // Empty when it could not be made.
        #[pin]
        hook: Option<F>,
    }
}

impl<F: Future> Future for Catching<F> {
    type Output = Result<F::Output, Panicked>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(hook) = self.project().hook.as_pin_mut() else {
            return Poll::Ready(Err(Panicked("panicked")));
        };
        match catch_unwind(AssertUnwindSafe(|| hook.poll(cx))) {
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => Poll::Pending,
            Err(_) => Poll::Ready(Err(Panicked("panicked"))),
        }
    }
}
