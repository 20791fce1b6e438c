//! Several middleware as one.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use futures::future::join_all;

use super::erased::{Erased, Slot};
use super::{ToolCallError, ToolMiddleware, told};
use crate::args::Args;
use crate::call::{Execution, RunContext, ToolCall};
use crate::caught::{Caught, caught};
use crate::decision::{Decision, Question, Verdict};
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Several middleware as one layer: every member decides, and the strictest decision wins, in any order (rule D1).
///
/// Members run outermost first, and each sees the arguments that the ones before it left. A DENY ends the chain. The
/// questions of all members that ask are put together. When a member changes arguments that earlier members have
/// decided on, all decide again on the changed ones; arguments that change once more are denied (rule D3).
///
/// ```
/// use countersign::{Chain, Decision, ToolMiddlewareExt, decide_fn};
///
/// let chain = Chain::new()
///     .with(decide_fn(|_| Decision::allow()).named("first"))
///     .with(decide_fn(|_| Decision::ask("sure?")).named("second"));
/// assert_eq!(format!("{chain:?}"), "Chain[first, second]");
/// let layer = chain.into_layer();
/// # let _ = layer;
/// ```
#[derive(Clone, Default)]
pub struct Chain {
    members: Vec<Arc<dyn Erased>>,
    parallel: bool,
}

impl Chain {
    /// A chain without members: it allows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member inside the ones that are there.
    #[must_use]
    pub fn with(mut self, middleware: impl ToolMiddleware) -> Self {
        self.members.push(Arc::new(middleware));
        self
    }

    /// All members decide at the same time, on the same arguments, and none may change them: a member that tries
    /// denies the call. All are waited for, so that no ALLOW masks or cancels a DENY.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    /// What one member says; `None` for a plain ALLOW.
    async fn one<'a>(
        member: &'a dyn Erased,
        cx: &'a RunContext,
        call: &'a ToolCall,
        slot: &mut Slot<'a, Option<Box<Decision>>>,
    ) -> Option<Box<Decision>> {
        let decision = match caught(|| member.before(cx, call, slot)).await {
            Ok(None) if !cx.explains() => return None,
            Ok(decision) => decision.map_or_else(Decision::allow, |decision| *decision),
            Err(Caught(what)) => Decision::failed(what),
        };
        let decision = decision.named(|| member.name());
        cx.note(|| member.name(), &decision, call.args());
        Some(Box::new(decision))
    }

    async fn in_parallel(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let decisions = join_all(
            self.members.iter().map(async |member| Self::one(&**member, cx, call, &mut None).await),
        )
        .await;
        let mut sum = Sum::default();
        for (member, decision) in self.members.iter().zip(decisions) {
            let Some(decision) = decision else { continue };
            let decision = match decision.changes(call.args()) {
                true => Decision::failed(
                    "changed the arguments, which a member of a parallel chain may not",
                ),
                false => *decision,
            };
            sum.add(decision.named(|| member.name()));
        }
        sum.into_decision(None)
    }

    async fn in_order(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let mut sum = Sum::default();
        let mut current = call.clone();
        for walk in 0..2 {
            let mut mixed = None;
            let mut next = 0;
            while let Some((at, args)) = self.until_changed(next, cx, &current, &mut sum).await {
                current = current.with_args(args);
                mixed = self.members.get(at).filter(|_| at > 0).or(mixed);
                next = at + 1;
            }
            match mixed.filter(|_| sum.denied.is_none()) {
                None => break,
                Some(member) if walk == 1 => return changes_again(&member.name()),
                Some(_) => {}
            }
        }
        let args = (!current.args().same(call.args())).then(|| current.args().clone());
        sum.into_decision(args)
    }

    /// Asks the members from this one on, up to the first that changes the arguments: which one, and into what.
    async fn until_changed(
        &self,
        first: usize,
        cx: &RunContext,
        call: &ToolCall,
        sum: &mut Sum,
    ) -> Option<(usize, Args)> {
        let mut slot = None;
        for (at, member) in self.members.iter().enumerate().skip(first) {
            let Some(mut decision) = Self::one(&**member, cx, call, &mut slot).await else {
                continue;
            };
            let changed = decision.args.take().filter(|args| !args.equal(call.args()));
            sum.add(*decision);
            if sum.denied.is_some() {
                return None;
            }
            if let Some(args) = changed {
                return Some((at, args));
            }
        }
        None
    }
}

/// The denial of arguments that do not settle (rule D3).
fn changes_again(name: &str) -> Decision {
    Decision::deny(format!(
        "Not executed: `{name}` changed the arguments again after they had been decided on."
    ))
}

/// The strictest of several decisions, with all questions.
#[derive(Default)]
struct Sum {
    questions: Vec<Question>,
    denied: Option<Decision>,
}

impl Sum {
    fn add(&mut self, decision: Decision) {
        match decision.verdict {
            Verdict::Allow => {}
            Verdict::Ask(questions) => self.questions.extend(questions),
            Verdict::Deny(_) => drop(self.denied.get_or_insert(decision)),
        }
    }

    fn into_decision(self, args: Option<Args>) -> Decision {
        match self.denied {
            Some(denied) => denied,
            None if self.questions.is_empty() => Decision { verdict: Verdict::Allow, args },
            None => Decision { verdict: Verdict::Ask(self.questions), args },
        }
    }
}

impl ToolMiddleware for Chain {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("Chain")
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self.parallel {
            true => self.in_parallel(cx, call).await,
            false => self.in_order(cx, call).await,
        }
    }

    async fn after_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        mut outcome: Outcome,
    ) -> Outcome {
        let mut slot = None;
        for member in self.members.iter().rev() {
            outcome = told(member.after(cx, call, outcome, &mut slot).await);
        }
        outcome
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        let execution = error.execution;
        let mut result = Err(error.error);
        let (mut afters, mut on_errors) = (None, None);
        for member in self.members.iter().rev() {
            result = match result {
                // As in a stack: once a member inside has made an outcome of the error, the others see the outcome of
                // an execution, or nothing if there was none.
                Ok(outcome) if execution == Execution::NotStarted => Ok(outcome),
                Ok(outcome) => Ok(told(member.after(cx, call, outcome, &mut afters).await)),
                Err(error) => {
                    let error = ToolCallError { error, execution: execution.clone() };
                    member.on_error(cx, call, error, &mut on_errors).await
                }
            };
        }
        result
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.parallel { "Chain(parallel)[" } else { "Chain[" })?;
        for (i, member) in self.members.iter().enumerate() {
            write!(f, "{}{}", if i > 0 { ", " } else { "" }, member.name())?;
        }
        f.write_str("]")
    }
}
