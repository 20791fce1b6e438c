//! Futures on the heap (rule T10).

use std::pin::Pin;

/// A future on the heap, made in a frame of its own. Agents are nested by futures that poll each other: without
/// optimisations, whatever makes a future inline keeps room on the stack for it, several times, as long as it is polled.
#[inline(never)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}
