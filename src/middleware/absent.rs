//! Middleware without an `after_tool_call` of their own, for which no future is made and no outcome is moved.
//!
//! Most middleware decide and leave outcomes alone. The hook that they do not have is two thirds of what a member of a
//! [`Chain`](super::Chain) costs. A composite cannot see whether a type has a hook of its own, and a method by which a
//! type says so could be wrong. So the default hook says it, with the type that it is the default of, and the first call
//! through a layer or a composite learns it:
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

/// Knows of a middleware that it has no `after_tool_call` of its own, once that was learned.
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

#[cfg(test)]
mod tests {
    use std::future::Future;

    use serde_json::json;

    use super::NoAfter;
    use crate::{Outcome, RunContext, ToolCall, ToolMiddleware};

    #[derive(Clone, Copy)]
    struct Silent;

    impl ToolMiddleware for Silent {}

    struct Hears;

    impl ToolMiddleware for Hears {
        async fn after_tool_call(&self, _: &RunContext, _: &ToolCall, it: Outcome) -> Outcome {
            it
        }
    }

    /// Has a hook that is nothing but that of its members, as an outcome meets them.
    struct Both<A, B>(A, B);

    impl<A: ToolMiddleware, B: ToolMiddleware> ToolMiddleware for Both<A, B> {
        fn after_tool_call(
            &self,
            cx: &RunContext,
            call: &ToolCall,
            outcome: Outcome,
        ) -> impl Future<Output = Outcome> + Send {
            drop(self.0.after_tool_call(cx, call, outcome.clone()));
            self.1.after_tool_call(cx, call, outcome)
        }
    }

    fn is_learned<M: ToolMiddleware>(middleware: &M) -> bool {
        let (no_after, call) = (NoAfter::default(), ToolCall::new("c1", "read", json!({})));
        let hook =
            || middleware.after_tool_call(RunContext::empty(), &call, Outcome::returned("text"));
        drop(no_after.learn::<M, _>(hook));
        no_after.is_known()
    }

    #[test]
    fn a_type_has_no_hook_if_the_default_hook_of_this_very_type_was_called() {
        assert!(is_learned(&Silent) && is_learned(&()));
        assert!(!is_learned(&Hears), "nothing of an earlier call is left");
        assert!(!is_learned(&Both(Hears, Silent)) && !is_learned(&Both(Silent, Hears)));
        assert!(!is_learned(&Both(Both(Silent, Silent), Silent)));
    }
}
