//! Deciding about calls: the one small trait that users implement, closures, and the composites.
//!
//! | middleware | does |
//! |---|---|
//! | [`ToolMiddleware`] | what you implement |
//! | [`decide_fn`] | a sync closure that sees the call; no allocation |
//! | [`from_fn`] | an async closure that takes the call |
//! | [`Chain`] | several as one; the strictest decision wins, in order or [in parallel](Chain::parallel) |
//! | [`when`] | one middleware or another, by a predicate |
//! | [`for_tools`](crate::ToolMiddlewareExt::for_tools) | only for some tools |
//! | [`deciding_within`](crate::ToolMiddlewareExt::deciding_within) | a time limit on the decision, and only on it |
//! | [`ToolRateLimit`] | so many calls of each tool in a span of time |
//! | `Option<M>` | perhaps no middleware; what is absent still shows in an explanation |
//! | [`danger_first_decision_wins`] | the first decision ends the chain, an ALLOW too |

mod adjusted;
mod ancestor;
mod chain;
mod closure;
mod conditional;
mod erased;
mod first;
mod members;
mod rate_limit;

use std::borrow::Cow;
use std::future::Future;

pub use adjusted::Adjusted;
pub(crate) use ancestor::Ancestor;
pub use chain::Chain;
pub use closure::{DecideFn, FromFn, decide_fn, from_fn};
pub use conditional::{When, when};
pub use first::{FirstDecision, Opinion, danger_first_decision_wins};
pub use rate_limit::ToolRateLimit;

use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Decides about tool calls, and may look at what came of them. Each hook may be left out.
///
/// Implement it with plain `async fn`s, put it around tools with
/// [`into_layer`](crate::ToolMiddlewareExt::into_layer), or into a [`Chain`]. Nothing fails open: a hook that panics
/// denies (rule D4).
///
/// ```
/// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
///
/// struct FileAccess;
///
/// impl ToolMiddleware for FileAccess {
///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
///         match call.name() {
///             "delete_file" => Decision::ask(format!("delete {}?", call.args()["path"])).key("delete"),
///             "read_file" => Decision::allow().with_args(call.args().clone().with("audit", true)),
///             _ => Decision::allow(),
///         }
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no middleware for tool calls",
    note = "implement `ToolMiddleware`, or wrap a closure in `decide_fn` (sync, by reference) or `from_fn` (async, by value)"
)]
pub trait ToolMiddleware: Send + Sync + 'static {
    /// The name that questions, denials, logs and explanations carry; the type's own name by default. It is part of
    /// what an approval is bound to, so keep it when you rename the type. Where two middleware on the way of a call have
    /// one name, neither may ask (rule D10): [`named`](crate::ToolMiddlewareExt::named) gives one of them another.
    fn name(&self) -> Cow<'static, str> {
        type_name::<Self>()
    }

    /// Lists what this middleware consists of, for the checks when the tools are listed: two that ask under one name
    /// are told to be given [names](crate::ToolMiddlewareExt::named) (rule D10).
    ///
    /// By default it is one that decides under its [name](Self::name). A composite whose members ask under their own
    /// names, as those of a [`Chain`] do, lists them: `parts.members(|parts| self.member.parts(parts))`. Without that
    /// an ASK of a member is refused, as nothing tells whether another middleware asks under the same name.
    fn parts(&self, parts: &mut Parts) {
        parts.decider(self.name());
    }

    /// Decides about a call.
    ///
    /// - **When**: on every pass: the first one, the one after an approval, the one after a layer inside has changed
    ///   the arguments, and each time a retry layer sends the call again. [`RunContext::phase`] tells the first and the
    ///   approved pass apart, [`RunContext::is_repeat`] whether the call has been decided here before. Not for calls
    ///   that the model made wrong: unknown tools and invalid arguments never reach the stack.
    /// - **Sees**: the call with the arguments that the layers outside have left it.
    /// - **May**: allow, ask or deny, and replace the arguments. ALLOW and ASK let the call go on inward; DENY ends
    ///   the pass. Keep effects out of it: the call may be denied further inside, and decided again.
    /// - **On a panic**: the call is denied, naming this layer (rule D4).
    fn before_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        let _ = (cx, call);
        async { Decision::undecided() }
    }

    /// Sees what became of an execution, and may change what the model is told.
    ///
    /// - **When**: after an execution that this layer let through: returned, failed, retry or unknown. Denied and
    ///   deferred calls pass all hooks untouched (rule D8). A layer outside that gives up (a timeout) skips it.
    /// - **Sees**: the call as this layer passed it on, and the outcome.
    /// - **May**: change the outcome that goes outward; the record of what ran stays. A call that ran cannot become a
    ///   denied one: where this denies, the model is told that the tool ran and that its result is withheld, and why.
    /// - **On a panic**: the model is told that the tool ran and its result was withheld.
    fn after_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        outcome: Outcome,
    ) -> impl Future<Output = Outcome> + Send {
        let _ = (cx, call);
        async { outcome }
    }

    /// Sees an error of a layer inside, and may make an outcome of it.
    ///
    /// - **When**: something inside ended with an `Err`: a timeout, a limit, a fatal error of the tool.
    /// - **Sees**: the call as this layer passed it on, the error, and what is known about the execution.
    /// - **May**: give an outcome for the model, or an error to go on outward.
    /// - **On a panic**: an error that says so goes on outward.
    fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> impl Future<Output = Result<Outcome, BoxError>> + Send {
        let _ = (cx, call);
        async { Err(error.error) }
    }
}

/// An error of a layer or a tool, with the gate's record of the execution.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolCallError {
    /// The error that the call ended with.
    pub error: BoxError,
    /// What is known about the execution.
    pub execution: crate::call::Execution,
}

/// What goes outward of what `after_tool_call` made of an outcome: nothing that ran becomes denied or deferred
/// (rule D8).
pub(crate) fn told(outcome: Outcome) -> Outcome {
    match outcome {
        Outcome::Denied(denied) => {
            Outcome::failed(format!("The tool ran. Its result is withheld: {}", denied.message))
        }
        Outcome::Deferred(_) => Outcome::failed("The tool ran. Its result is withheld."),
        told => told,
    }
}

/// The name of a type without its path and its parameters' paths.
fn type_name<M: ?Sized>() -> Cow<'static, str> {
    let full = std::any::type_name::<M>();
    if !full.contains("::") {
        return Cow::Borrowed(full);
    }
    // The closure itself has no name; the function it is written in does.
    let full = full.replace("::{{closure}}", "");
    let mut short = String::with_capacity(full.len());
    for part in full.split_inclusive(['<', '>', ',', ' ', '&', '(', ')']) {
        short.push_str(part.rsplit("::").next().unwrap_or(part));
    }
    Cow::Owned(short)
}

impl<M: ToolMiddleware> ToolMiddleware for Option<M> {
    fn name(&self) -> Cow<'static, str> {
        match self {
            Some(middleware) => middleware.name(),
            None => Cow::Owned(format!("{} (absent)", type_name::<M>())),
        }
    }

    fn parts(&self, parts: &mut Parts) {
        if let Some(middleware) = self {
            middleware.parts(parts);
        }
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match self {
            Some(middleware) => middleware.before_tool_call(cx, call).await,
            None => Decision::undecided(),
        }
    }

    async fn after_tool_call(&self, cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
        match self {
            Some(middleware) => middleware.after_tool_call(cx, call, outcome).await,
            None => outcome,
        }
    }

    async fn on_tool_error(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        error: ToolCallError,
    ) -> Result<Outcome, BoxError> {
        match self {
            Some(middleware) => middleware.on_tool_error(cx, call, error).await,
            None => Err(error.error),
        }
    }
}

impl ToolMiddleware for () {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("nothing")
    }

    fn parts(&self, _: &mut Parts) {}
}
