//! Several middleware composed into one.
//!
//! # How the arguments settle
//!
//! The members decide in order, each on the arguments that the members before it passed on. A change by the first
//! member needs nothing more, as no member has decided on the old arguments. A change by a later one makes the
//! decisions before it old, so all members decide again on the final arguments, in a second round with a context that
//! says so ([`RunContext::is_repeat`]). If a later member changes them again, the call is denied, by the name of
//! that member.
//!
//! | members | round 1 | round 2 | result |
//! |---|---|---|---|
//! | `trim` changes, `limit` allows | `trim`: a → b, `limit` sees b | – | b |
//! | `limit` allows, `trim` changes | `limit` sees a, `trim`: a → b | `limit` sees b, `trim` keeps b | b |
//! | `limit` allows, `append` changes each time | `limit` sees a, `append`: a → ab | `append`: ab → abb | denied (rule D3) |
//!
//! The same happens between separate layers, where the turn repeats the whole pass. A chain does it by itself, so that
//! its members cost no second pass of the layers outside.
//!
//! We keep the questions of both rounds. A question of the first round that is not asked in the second was about
//! other arguments. If we keep it, it costs an approver one line. If we dropped it, a member could withdraw an ASK
//! by changing a value.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;

use futures::future::join_all;

use super::members::{Members, ask, noted};
use super::{ToolCallError, ToolMiddleware};
use crate::args::Args;
use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::{Decision, Question, Verdict};
use crate::error::BoxError;
use crate::outcome::Outcome;
use crate::panic::{Panicked, catch_panic};

/// Several middleware as one layer: every member decides, and the strictest decision wins, in any order (rule D1).
///
/// Members decide in order, outermost first, each on the arguments that the members before it passed on. A DENY ends
/// the chain. The questions of all members that ask are collected. When a member changes arguments on which earlier
/// members have decided, all members decide again on the changed ones; if the arguments change again, the call is
/// denied (rule D3).
///
/// ```
/// use countersign::middleware::Chain;
/// use countersign::{Decision, ToolMiddlewareExt, decide_fn};
///
/// let chain = Chain::new()
///     .with(decide_fn(|_, _| Decision::allow()).named("first"))
///     .with(decide_fn(|_, _| Decision::ask("sure?")).named("second"));
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
    /// An empty chain, which allows every call.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member inside the existing ones.
    #[must_use]
    pub fn with(mut self, middleware: impl ToolMiddleware) -> Self {
        self.members.push(middleware);
        self
    }

    /// Lets all members decide concurrently, on the same arguments. A member that changes the arguments denies the
    /// call, because the other members have not seen the change. All decisions are awaited, so that no ALLOW masks or
    /// cancels a DENY.
    #[must_use]
    pub fn parallel(mut self) -> Self {
        self.parallel = true;
        self
    }

    async fn in_parallel(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let decisions = join_all(
            self.members.iter().map(async |member| ask(member, cx, call, &mut None).await),
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
            sum.add(decision.named(&|| member.name()));
        }
        sum.into_decision(None)
    }

    async fn in_order(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let mut sum = Sum::default();
        let mut changed: Option<ToolCall> = None;
        for round in 0..2 {
            let repeated = (round > 0).then(|| cx.repeated());
            let cx = repeated.as_ref().unwrap_or(cx);
            let mut mixed = None;
            let mut next = 0;
            loop {
                let current = changed.as_ref().unwrap_or(call);
                let Some(args) = self.until_changed(&mut next, cx, current, &mut sum).await else {
                    break;
                };
                changed = Some(current.clone().with_args(args));
                // A change by the first member needs no second round: no member decided on the old arguments.
                mixed = self.members.get(next).filter(|_| next > 0).or(mixed);
                next += 1;
            }
            match mixed.filter(|_| sum.denied.is_none()) {
                None => break,
                Some(member) if round == 1 => return changes_again(&member.name()),
                Some(_) => changed = changed.map(|changed| changed.repeated()),
            }
        }
        let args = changed.map(|changed| changed.args().clone());
        sum.into_decision(args.filter(|args| !args.same(call.args())))
    }

    /// Asks the members from index `next` on, up to the first one that changes the arguments. Returns the changed
    /// arguments and leaves the index of that member in `next`, or returns `None` when no member changes them or one
    /// denies. One guard catches the panics of all members: `next` says whose it was.
    ///
    /// The loop stops at each change, so the arguments need no lock or cell: the caller holds the only current
    /// call, and asks the members through one reused allocation for their futures.
    async fn until_changed(
        &self,
        next: &mut usize,
        cx: &RunContext,
        call: &ToolCall,
        sum: &mut Sum,
    ) -> Option<Args> {
        match catch_panic(|| self.ask_from(next, cx, call, sum)).await {
            Ok(changed) => changed,
            Err(Panicked(what)) => {
                let decision = Some(Box::new(Decision::failed(what)));
                let member = self.members.get(*next)?;
                noted(member, cx, call, decision).into_iter().for_each(|it| sum.add(*it));
                None
            }
        }
    }

    async fn ask_from(
        &self,
        next: &mut usize,
        cx: &RunContext,
        call: &ToolCall,
        sum: &mut Sum,
    ) -> Option<Args> {
        let mut slot = None;
        while let Some(member) = self.members.get(*next) {
            let decision = member.before(cx, call, &mut slot).await;
            if (decision.is_some() || cx.explains())
                && let Some(mut decision) = noted(member, cx, call, decision)
            {
                let changed = decision.args.take().filter(|args| !args.equal(call.args()));
                sum.add(*decision);
                if sum.denied.is_some() {
                    return None;
                }
                if changed.is_some() {
                    return changed;
                }
            }
            *next += 1;
        }
        None
    }
}

/// The denial of a call whose arguments change again after all members have decided anew (rule D3).
fn changes_again(name: &str) -> Decision {
    Decision::deny(format!(
        "Not executed: `{name}` changed the arguments again after they had been decided on."
    ))
}

/// Accumulates decisions: the first denial, and the questions of every ASK.
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

    fn after_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        outcome: Outcome,
    ) -> impl Future<Output = Outcome> + Send {
        self.members.after(cx, call, outcome)
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
