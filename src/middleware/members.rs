//! The members of a composite, and the hooks that run over all of them.

use std::fmt;
use std::sync::Arc;

use super::absent::NoAfter;
use super::erased::{Erased, Slot};
use super::{ToolCallError, ToolMiddleware, told};
use crate::call::{Execution, Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;
use crate::panic::{Panicked, catch_panic};

/// The members of a composite, outermost first.
#[derive(Clone, Default)]
pub(super) struct Members(Vec<Held>);

#[derive(Clone)]
struct Held {
    middleware: Arc<dyn Erased>,
    no_after: NoAfter,
}

/// Asks one member, and records the decision under the member's name if the turn explains. A panic is a DENY. `None` is
/// a plain ALLOW that need not be recorded.
pub(super) async fn ask<'a>(
    member: &'a dyn Erased,
    cx: &'a RunContext,
    call: &'a ToolCall,
    slot: &mut Slot<'a, Option<Box<Decision>>>,
) -> Option<Box<Decision>> {
    let decision = match catch_panic(|| member.before(cx, call, slot)).await {
        Ok(decision) => decision,
        Err(Panicked(what)) => Some(Box::new(Decision::failed(what))),
    };
    noted(member, cx, call, decision)
}

/// Notes the decision of a member under its name. `None` is a plain ALLOW that needs no note.
pub(super) fn noted(
    member: &dyn Erased,
    cx: &RunContext,
    call: &ToolCall,
    decision: Option<Box<Decision>>,
) -> Option<Box<Decision>> {
    if decision.is_none() && !cx.explains() {
        return None;
    }
    let decision = decision.map_or_else(Decision::undecided, |decision| *decision);
    let decision = decision.named(&|| member.name());
    cx.note(&|| member.name(), &decision, call.args());
    Some(Box::new(decision))
}

impl Members {
    pub(super) fn push(&mut self, member: impl ToolMiddleware) {
        self.0.push(Held { middleware: Arc::new(member), no_after: NoAfter::default() });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &dyn Erased> {
        self.0.iter().map(|member| &*member.middleware)
    }

    pub(super) fn get(&self, at: usize) -> Option<&dyn Erased> {
        self.0.get(at).map(|member| &*member.middleware)
    }

    /// Adds the parts of all members.
    pub(super) fn parts(&self, parts: &mut Parts) {
        parts.members(|parts| self.iter().for_each(|member| member.parts(parts)));
    }

    /// Passes the outcome of an execution through `after_tool_call` of all members, innermost first.
    pub(super) async fn after(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        outcome: Outcome,
    ) -> Outcome {
        let mut slot = None;
        let mut outcome = told(outcome);
        for Held { middleware, no_after } in self.0.iter().rev() {
            if !no_after.is_known() {
                outcome = told(middleware.after(cx, call, outcome, &mut slot, no_after).await);
            }
        }
        outcome
    }

    /// Passes an error through `on_tool_error` of the members, innermost first, until one of them returns an outcome.
    /// The members outside of that one get the outcome instead.
    ///
    /// Each member sees what it would see as a separate layer, innermost first:
    ///
    /// | member (from inside) | gets | returns | passes on |
    /// |---|---|---|---|
    /// | 1 | `on_tool_error(error)` | an error | the error |
    /// | 2 | `on_tool_error(error)` | an outcome | the outcome |
    /// | 3 | `after_tool_call(outcome)`, if the tool was started | an outcome | the outcome |
    ///
    /// If the tool was not started, the third member sees nothing, because `after_tool_call` is about executions only
    /// (rule D8).
    pub(super) async fn on_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        let execution = error.execution;
        let mut result = Err(error.error);
        let (mut afters, mut on_errors) = (None, None);
        for Held { middleware, no_after } in self.0.iter().rev() {
            result = match result {
                // As in a stack of separate layers: `after_tool_call` of the members further out sees the outcome only
                // if the tool was started.
                Ok(outcome) if execution == Execution::NotStarted => Ok(outcome),
                Ok(outcome) if no_after.is_known() => Ok(told(outcome)),
                Ok(outcome) => {
                    Ok(told(middleware.after(cx, call, outcome, &mut afters, no_after).await))
                }
                Err(error) => {
                    let error = ToolCallError { error, execution: execution.clone() };
                    middleware.on_error(cx, call, error, &mut on_errors).await
                }
            };
        }
        result
    }
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.iter().map(|member| member.name()).collect();
        write!(f, "[{}]", names.join(", "))
    }
}
