//! Runs the code of users, and turns a panic in it into a value.
//!
//! A panic of a hook must not be an allow, and must not take the other calls of the turn along. As a value it becomes
//! what the place demands: a hook that decides denies the call, a tool's outcome is unknown, as it may have had its
//! effect.
//!
//! `AssertUnwindSafe` is sound here, because a hook that has panicked is not called again in that pass, and what it
//! shares with others is its author's concern, as with any thread.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// The error of a hook that panicked, as a verb for messages.
pub(crate) struct Panicked(pub(crate) &'static str);

/// Runs a hook, and catches a panic while its future is made or polled. The message of the panic is dropped, as it may
/// quote arguments (rule S2); Rust's panic hook has printed it.
pub(crate) fn catch_panic<F: Future>(hook: impl FnOnce() -> F) -> Catching<F> {
    Catching { hook: catch_unwind(AssertUnwindSafe(hook)).ok() }
}

pin_project! {
    /// The future of [`catch_panic`]. Written by hand because every layer has several of them: an `async fn` would
    /// store the hook twice, and combinators would move the result several times.
    pub(crate) struct Catching<F> {
        // `None` if making the future panicked.
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
