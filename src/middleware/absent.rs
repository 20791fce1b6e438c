//! Which middleware have no `after_tool_call`, so that nothing is made, polled and moved for it.
//!
//! Most middleware decide and leave outcomes alone, and the hook that they do not have is two thirds of what a member of
//! a [`Chain`](super::Chain) costs. A composite cannot see whether a type has a hook of its own, and a method by which a
//! type says so could be wrong. So the default hook itself says so, with the type that it is the default of, and the
//! first call through a layer or a composite learns it:
//!
//! | hook of `M` | notes | learned |
//! |---|---|---|
//! | the default | `M` | `M` has no hook |
//! | a hook that calls the default hook of a type inside | the type inside | nothing |
//! | any other | nothing | nothing |
//!
//! This cannot be wrong: a type with a hook of its own has no default hook that could run.

use std::any::TypeId;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The type whose default hook was called last.
    static NOTED: Cell<Option<TypeId>> = const { Cell::new(None) };
}

/// Called by the default `after_tool_call` of this type.
pub(super) fn note<M: ?Sized + 'static>() {
    NOTED.set(Some(TypeId::of::<M>()));
}

/// Whether a middleware is known to have no `after_tool_call` of its own.
#[derive(Default)]
pub(crate) struct NoAfter(AtomicBool);

impl NoAfter {
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Calls the hook of a middleware, and learns whether it is the default one. The future is not polled for that.
    #[inline]
    pub(crate) fn learn<M: 'static, T>(&self, hook: impl FnOnce() -> T) -> T {
        NOTED.set(None);
        let future = hook();
        if NOTED.get() == Some(TypeId::of::<M>()) {
            self.0.store(true, Ordering::Relaxed);
        }
        future
    }
}

impl Clone for NoAfter {
    fn clone(&self) -> Self {
        Self(AtomicBool::new(self.is_known()))
    }
}
