//! Type-erased middleware, for composites whose members have different types.
//!
//! A hook of [`ToolMiddleware`] is an `async fn`, whose future has a type of its own for each middleware. Behind a
//! pointer each such future needs an allocation. Members of a composite run one after the other, so one allocation
//! serves all of them: `ReusableBoxFuture` puts the next future into the place of the last one, if it fits, and
//! allocates otherwise. For a [`Chain`](super::Chain) of sixteen members that is one allocation instead of sixteen.
//!
//! The caller holds the slot, and not the member: all calls share a member, and two calls may run at the same time.

use std::borrow::Cow;
use std::future::Future;

use tokio_util::sync::ReusableBoxFuture;

use super::absent::NoAfter;
use super::{ToolCallError, ToolMiddleware};
use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// The allocation for a hook's future. Members run one after the other and reuse it.
pub(super) type Slot<'a, T> = Option<ReusableBoxFuture<'a, T>>;

/// A future that was started in a slot.
type Running<'s, 'a, T> = &'s mut ReusableBoxFuture<'a, T>;

/// The object-safe form of [`ToolMiddleware`]: each hook starts its future in a slot.
pub(crate) trait Erased: Send + Sync {
    fn name(&self) -> Cow<'static, str>;

    fn parts(&self, parts: &mut Parts);

    /// Resolves to `None` for a plain ALLOW, the most frequent decision, so that no [`Decision`] is moved for it.
    fn before<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        slot: &'s mut Slot<'a, Option<Box<Decision>>>,
    ) -> Running<'s, 'a, Option<Box<Decision>>>;

    fn after<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        outcome: Outcome,
        slot: &'s mut Slot<'a, Outcome>,
        no_after: &NoAfter,
    ) -> Running<'s, 'a, Outcome>;

    fn on_error<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        error: ToolCallError,
        slot: &'s mut Slot<'a, Result<Outcome, BoxError>>,
    ) -> Running<'s, 'a, Result<Outcome, BoxError>>;
}

impl<M: ToolMiddleware> Erased for M {
    fn name(&self) -> Cow<'static, str> {
        ToolMiddleware::name(self)
    }

    fn parts(&self, parts: &mut Parts) {
        ToolMiddleware::parts(self, parts);
    }

    fn before<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        slot: &'s mut Slot<'a, Option<Box<Decision>>>,
    ) -> Running<'s, 'a, Option<Box<Decision>>> {
        start(slot, async move { self.before_tool_call(cx, call).await.unless_plain() })
    }

    fn after<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        outcome: Outcome,
        slot: &'s mut Slot<'a, Outcome>,
        no_after: &NoAfter,
    ) -> Running<'s, 'a, Outcome> {
        start(slot, no_after.learn::<M, _>(|| self.after_tool_call(cx, call, outcome)))
    }

    fn on_error<'s, 'a>(
        &'a self,
        cx: &'a RunContext,
        call: &'a ToolCall,
        error: ToolCallError,
        slot: &'s mut Slot<'a, Result<Outcome, BoxError>>,
    ) -> Running<'s, 'a, Result<Outcome, BoxError>> {
        start(slot, self.on_tool_error(cx, call, error))
    }
}

/// Starts a future in a slot, replacing the previous one.
fn start<'s, 'a, T>(
    slot: &'s mut Slot<'a, T>,
    future: impl Future<Output = T> + Send + 'a,
) -> Running<'s, 'a, T> {
    match slot {
        Some(running) => {
            running.set(future);
            running
        }
        None => slot.insert(ReusableBoxFuture::new(future)),
    }
}
