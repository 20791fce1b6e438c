//! Runs the code of users, and turns a panic in it into a value.
//!
//! A panic of a hook must not be an allow, and must not take the other calls of the turn along. As a value it becomes
//! what the place demands. For example, if a hook that decides panics, the call is denied. If a tool panics, its
//! outcome is unknown, as it may have had its effect.
//!
//! `AssertUnwindSafe` is sound here, because we do not call a hook that has panicked again in that pass. Its author
//! takes care of what it shares with others, as with any thread.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{Either, select};

use pin_project_lite::pin_project;

/// The error of a hook that panicked, or was given up after its limit, as a verb for messages.
pub(crate) struct Panicked(pub(crate) &'static str);

/// Runs a hook, and catches a panic while its future is made or polled. The message of the panic is dropped, as it may
/// quote arguments (rule S2); Rust's panic hook has printed it.
pub(crate) fn catch_panic<F: Future>(hook: impl FnOnce() -> F) -> Catching<F> {
    Catching { hook: catch_unwind(AssertUnwindSafe(hook)).ok() }
}

/// Runs a hook that is no async function, and catches a panic in it.
pub(crate) fn catch<T>(hook: impl FnOnce() -> T) -> Result<T, Panicked> {
    catch_unwind(AssertUnwindSafe(hook)).map_err(|_| Panicked("panicked"))
}

/// Runs a hook, catches a panic in it, and gives it up when it has not returned within the limit.
///
/// The clock starts when the hook first waits. A hook that returns at once needs no timer, and no runtime: outside of
/// one, where no timer can be made, there is no limit.
pub(crate) async fn catch_within<F: Future>(
    limit: Duration,
    hook: impl FnOnce() -> F,
) -> Result<F::Output, Panicked> {
    let mut running = pin!(catch_panic(hook));
    if let Poll::Ready(ended) = futures::poll!(running.as_mut()) {
        return ended;
    }
    let sleep = || tokio::time::sleep(limit);
    let timer = tokio::runtime::Handle::try_current().ok().and_then(|_| catch(sleep).ok());
    let Some(timer) = timer else { return running.await };
    match select(running, pin!(timer)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => Err(Panicked("did not return in time")),
    }
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
