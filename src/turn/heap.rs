//! Futures on the heap, so that deeply nested agents fit on a thread's stack (rule T10).
//!
//! A level of agents is a chain of many futures, each awaiting the next. Inline they are one value whose size is the
//! sum of all levels, and a debug build copies it on the stack when it is made. With a box at each larger step a level
//! costs pointers, and sixteen levels fit on 2 MiB. The function is never inlined: otherwise the caller's frame would
//! have room for the future before it moves to the heap, and the box is there to avoid that.

use std::pin::Pin;

/// Makes a future on the heap, in a stack frame of its own. Nested agents are futures that poll each other: without
/// optimisations, a function that makes a future inline reserves stack space for it, several times, while it is polled.
#[inline(never)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}
