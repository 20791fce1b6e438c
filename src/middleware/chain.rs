//! Several middleware as one.

use std::borrow::Cow;
use std::fmt;

use futures::future::join_all;

use super::members::{Members, ask};
use super::{ToolCallError, ToolMiddleware};
use crate::args::Args;
use crate::call::{Parts, RunContext, ToolCall};
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
    members: Members,
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
        self.members.push(middleware);
        self
    }

    /// All members decide at the same time, on the same arguments, and none may change them: a member that tries
    /// denies the call. All are waited for, so that no ALLOW masks or cancels a DENY.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    async fn in_parallel(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let decisions = join_all(
            self.members.iter().map(async |member| ask(&**member, cx, call, &mut None).await),
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
        let repeated = cx.repeated();
        for round in 0..2 {
            let mut mixed = None;
            let mut next = 0;
            let cx = if round == 0 { cx } else { &repeated };
            while let Some((at, args)) = self.until_changed(next, cx, &current, &mut sum).await {
                current = current.with_args(args);
                mixed = self.members.get(at).filter(|_| at > 0).or(mixed);
                next = at + 1;
            }
            match mixed.filter(|_| sum.denied.is_none()) {
                None => break,
                Some(member) if round == 1 => return changes_again(&member.name()),
                Some(_) => current = current.repeated(),
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
            let Some(mut decision) = ask(&**member, cx, call, &mut slot).await else {
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
            Verdict::Undecided | Verdict::Allow => {}
            Verdict::Ask(questions) => self.questions.extend(questions),
            Verdict::Deny(_) => drop(self.denied.get_or_insert(decision)),
        }
    }

    fn into_decision(self, args: Option<Args>) -> Decision {
        match self.denied {
            Some(denied) => denied,
            None if self.questions.is_empty() => Decision { verdict: Verdict::Undecided, args },
            None => Decision { verdict: Verdict::Ask(self.questions), args },
        }
    }
}

impl ToolMiddleware for Chain {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("Chain")
    }

    fn parts(&self, parts: &mut Parts) {
        self.members.parts(parts);
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self.parallel {
            true => self.in_parallel(cx, call).await,
            false => self.in_order(cx, call).await,
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        self.members.after(cx, call, outcome).await
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.members.on_error(cx, call, error).await
    }
}

impl fmt::Debug for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chain{}{:?}", if self.parallel { "(parallel)" } else { "" }, self.members)
    }
}
