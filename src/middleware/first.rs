//! The seed's chain: the first decision wins, an ALLOW too.

use std::borrow::Cow;
use std::fmt;

use futures::future::BoxFuture;

use super::ToolMiddleware;
use crate::args::Args;
use crate::call::{RunContext, ToolCall};
use crate::caught::{Caught, caught};
use crate::decision::Decision;

/// What a member of [`danger_first_decision_wins`] says: a decision, which ends the chain, or not.
#[derive(Debug, Clone, PartialEq)]
pub enum Opinion {
    /// Nothing: the next member is asked.
    None,
    /// Goes on with these arguments: the next member is asked about them.
    Args(Args),
    /// Decides: no further member is asked.
    Decision(Decision),
}

impl From<Option<Decision>> for Opinion {
    fn from(decision: Option<Decision>) -> Self {
        decision.map_or(Self::None, Self::Decision)
    }
}

impl From<Decision> for Opinion {
    fn from(decision: Decision) -> Self {
        Self::Decision(decision)
    }
}

impl From<Args> for Opinion {
    fn from(args: Args) -> Self {
        Self::Args(args)
    }
}

/// A chain in which the first decision wins: an ALLOW switches off the members after it, which is what makes it
/// dangerous. It ends this chain only; the other layers of the stack still decide.
///
/// ```
/// use countersign::{Decision, danger_first_decision_wins};
///
/// let rules = danger_first_decision_wins()
///     .member("reads", |call| call.name().starts_with("read_").then(Decision::allow))
///     .member("rest", |_| Decision::ask("is this all right?"));
/// # let _ = rules;
/// ```
#[must_use]
pub fn danger_first_decision_wins() -> FirstDecision {
    FirstDecision { members: Vec::new() }
}

/// A chain in which the first decision wins; see [`danger_first_decision_wins`].
pub struct FirstDecision {
    members: Vec<(Cow<'static, str>, Member)>,
}

type Member = Box<dyn Fn(ToolCall) -> BoxFuture<'static, Opinion> + Send + Sync>;

impl FirstDecision {
    /// Adds a member.
    #[must_use]
    pub fn member<F, O>(self, name: impl Into<Cow<'static, str>>, decide: F) -> Self
    where
        F: Fn(&ToolCall) -> O + Send + Sync + 'static,
        O: Into<Opinion>,
    {
        self.push(name, Box::new(move |call| Box::pin(std::future::ready(decide(&call).into()))))
    }

    /// Adds a member that has to wait for its answer.
    #[must_use]
    pub fn member_async<F, Fut>(self, name: impl Into<Cow<'static, str>>, decide: F) -> Self
    where
        F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Opinion>> + Send + 'static,
    {
        self.push(
            name,
            Box::new(move |call| {
                let opinion = decide(call);
                Box::pin(async move { opinion.await.into() })
            }),
        )
    }

    fn push(mut self, name: impl Into<Cow<'static, str>>, member: Member) -> Self {
        self.members.push((name.into(), member));
        self
    }
}

impl ToolMiddleware for FirstDecision {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("danger_first_decision_wins")
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let mut current = call.clone();
        for (name, member) in &self.members {
            let opinion = caught(|| member(current.clone())).await;
            let decision = match opinion {
                Ok(Opinion::None) => continue,
                Ok(Opinion::Args(args)) => {
                    current = current.with_args(args);
                    continue;
                }
                Ok(Opinion::Decision(decision)) => decision,
                Err(Caught(what)) => Decision::failed(what),
            };
            let mut decision = decision.named(|| name.clone());
            cx.note(|| name.clone(), &decision, current.args());
            decision.args = decision.args.or_else(|| Some(current.args().clone()));
            return decision;
        }
        Decision::allow().with_args(current.args().clone())
    }
}

impl fmt::Debug for FirstDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.members.iter().map(|(name, _)| name)).finish()
    }
}
