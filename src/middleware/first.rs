//! A chain in which the first decision wins, also when it is an ALLOW (rule D6).
//!
//! In every other composite an ALLOW is no more than the absence of an objection. Here it ends the chain: one member
//! that is too wide silently disables all members after it. So the name begins with `danger_` (rule D5).
//!
//! The chain exists because other programs read their permission files that way (the first matching rule wins), and
//! you cannot translate such a list rule by rule into one where the strictest wins. The chain is one layer of the
//! stack: another layer may still deny what it allows.

use std::borrow::Cow;
use std::fmt;

use super::members::{Members, ask};
use super::{ToolCallError, ToolMiddleware};
use crate::args::Args;
use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::{Decision, Verdict};
use crate::error::BoxError;
use crate::outcome::Outcome;

/// The answer of a member of [`danger_first_decision_wins`].
///
/// Exhaustive on purpose: the chain has to act on every opinion.
///
/// ```
/// use countersign::middleware::Opinion;
/// use countersign::{Args, Decision};
///
/// assert_eq!(Opinion::from(None), Opinion::None);
/// assert_eq!(Opinion::from(Some(Decision::allow())), Opinion::from(Decision::allow()));
/// assert!(matches!(Opinion::from(Args::new().with("limit", 10)), Opinion::Args(_)));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Opinion {
    /// No decision: the next member is asked.
    None,
    /// No decision, but changed arguments: the next member is asked about these.
    Args(Args),
    /// A decision: no further member is asked.
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

impl Opinion {
    fn into_decision(self) -> Decision {
        match self {
            Self::None => Decision::undecided(),
            Self::Args(args) => args.into(),
            Self::Decision(decision) => decision,
        }
    }
}

/// A chain in which the first decision wins. That is dangerous, because an ALLOW disables the members after it. A
/// decision ends this chain only; the other layers of the stack still decide.
///
/// A member is a [middleware](FirstDecision::with), or a closure that returns an [`Opinion`]. A middleware has not
/// decided, and the next member is asked, in these cases: it does not implement `before_tool_call`, it returns plain
/// arguments (`call.args().clone().into()`), it is [for other tools](crate::ToolMiddlewareExt::for_tools), its
/// [condition](crate::middleware::when) is `false`, or it is an `Option` that is `None`. A [`Chain`](crate::middleware::Chain) without an
/// objection has not decided either.
///
/// ```
/// use countersign::middleware::danger_first_decision_wins;
/// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
///
/// struct FileAccess;
///
/// impl ToolMiddleware for FileAccess {
///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
///         match call.name() {
///             "delete_file" => Decision::ask(format!("delete {}?", call.args()["path"])).with_key("delete"),
///             "read_file" => Decision::allow(),
///             _ => call.args().clone().into(), // does not decide
///         }
///     }
/// }
///
/// let rules = danger_first_decision_wins()
///     .member("lists", |_, call| call.name().starts_with("list_").then(Decision::allow))
///     .with(FileAccess)
///     .member("rest", |_, _| Decision::ask("is this all right?"));
/// # let _ = rules;
/// ```
#[must_use]
pub fn danger_first_decision_wins() -> FirstDecision {
    FirstDecision { members: Members::default() }
}

/// A chain in which the first decision wins; see [`danger_first_decision_wins`].
#[derive(Clone)]
pub struct FirstDecision {
    members: Members,
}

impl FirstDecision {
    /// Adds a middleware. Its `after_tool_call` and `on_tool_error` run as in a [`Chain`](crate::middleware::Chain), no
    /// matter which member decided.
    #[must_use]
    pub fn with(mut self, middleware: impl ToolMiddleware) -> Self {
        self.members.push(Member(middleware));
        self
    }

    /// Adds a sync closure `(cx, call)`, which sees what [`decide_fn`](crate::decide_fn)'s does. Its questions and denials carry `name`.
    #[must_use]
    pub fn member<F, O>(self, name: impl Into<Cow<'static, str>>, decide: F) -> Self
    where
        F: Fn(&RunContext, &ToolCall) -> O + Send + Sync + 'static,
        O: Into<Opinion>,
    {
        let decide =
            move |cx: RunContext, call: ToolCall| std::future::ready(decide(&cx, &call).into());
        self.with(Closure { name: name.into(), decide })
    }

    /// Adds an async closure `(cx, call)`, which takes both by value. Its questions and denials carry `name`.
    #[must_use]
    pub fn member_async<F, Fut>(self, name: impl Into<Cow<'static, str>>, decide: F) -> Self
    where
        F: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Into<Opinion>> + Send + 'static,
    {
        let decide = move |cx, call| {
            let opinion = decide(cx, call);
            async move { opinion.await.into() }
        };
        self.with(Closure { name: name.into(), decide })
    }
}

impl ToolMiddleware for FirstDecision {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("danger_first_decision_wins")
    }

    fn parts(&self, parts: &mut Parts) {
        self.members.parts(parts);
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        let mut current = call.clone();
        for member in self.members.iter() {
            let Some(mut decision) = ask(member, cx, &current, &mut None).await else {
                continue;
            };
            match (&decision.verdict, decision.args.take()) {
                (Verdict::Undecided, None) => {}
                (Verdict::Undecided, Some(args)) => current = current.with_args(args),
                (_, args) => {
                    return decision.with_args(args.unwrap_or_else(|| current.args().clone()));
                }
            }
        }
        current.args().clone().into()
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

/// Gives a plain ALLOW of a member explicit arguments: in its erased form a plain ALLOW is `None`, as if the member had
/// not decided.
///
/// In the erased form "undecided" and "plain ALLOW" are one value, which saves every other composite a boxed decision
/// per member. Here the difference is the whole meaning. So we give an ALLOW the call's own arguments, which changes
/// nothing and makes it a decision that is not plain.
struct Member<M>(M);

impl<M: ToolMiddleware> ToolMiddleware for Member<M> {
    fn name(&self) -> Cow<'static, str> {
        self.0.name()
    }

    fn parts(&self, parts: &mut Parts) {
        self.0.parts(parts);
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self.0.before_tool_call(cx, call).await {
            Decision { verdict: Verdict::Allow, args: None } => {
                Decision::allow().with_args(call.args().clone())
            }
            decision => decision,
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        self.0.after_tool_call(cx, call, outcome).await
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        self.0.on_tool_error(cx, call, error).await
    }
}

/// Adapts the closure of a member to [`ToolMiddleware`].
struct Closure<F> {
    name: Cow<'static, str>,
    decide: F,
}

impl<F, Fut> ToolMiddleware for Closure<F>
where
    F: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Opinion> + Send + 'static,
{
    fn name(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        (self.decide)(cx.clone(), call.clone()).await.into_decision()
    }
}

impl fmt::Debug for FirstDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "danger_first_decision_wins{:?}", self.members)
    }
}
