//! Futures on the heap, so that deeply nested agents fit on a thread's stack (rule T10).

use std::pin::Pin;

/// Makes a future on the heap, in a stack frame of its own. Nested agents are futures that poll each other: without
/// optimisations, a function that makes a future inline reserves stack space for it, several times, while it is polled.
#[inline(never)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}
