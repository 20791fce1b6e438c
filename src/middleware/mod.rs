//! Middleware, which decides about calls: one small trait to implement, closures, and composites.
//!
//! | middleware | does |
//! |---|---|
//! | [`ToolMiddleware`] | what you implement |
//! | [`decide_fn`] | a sync closure `(cx, call)`; no allocation |
//! | [`from_fn`] | an async closure `(cx, call)` |
//! | [`Chain`] | several as one; the strictest decision wins, in order or [in parallel](Chain::parallel) |
//! | [`when`] | one middleware or another, by a predicate |
//! | [`for_tools`](crate::ToolMiddlewareExt::for_tools) | only for some tools |
//! | [`deciding_within`](crate::ToolMiddlewareExt::deciding_within) | a time limit on the decision, and only on it |
//! | [`ask_after_reading`] | asks once the run has read text of others |
//! | [`named_by`] | asks unless the user or the owner has named the target |
//! | [`ToolRateLimit`] | a limit on how often each tool is called |
//! | `Option<M>` | an optional middleware; an explanation shows `None` as absent |
//! | [`danger_first_decision_wins`] | the first decision ends the chain, also an ALLOW |
//!
//! ```
//! use countersign::middleware::{Chain, ToolRateLimit};
//! use countersign::{Decision, FunctionToolset, ToolCall, ToolMiddlewareExt, ToolsExt, decide_fn};
//! use std::time::Duration;
//!
//! let secrets = decide_fn(|_, call: &ToolCall| match call.args().str("path") {
//!     Some(".env") => Decision::deny("secrets stay"),
//!     _ => Decision::allow(),
//! });
//! let policy = Chain::new().with(secrets.named("secrets")).with(ToolRateLimit::new(10, Duration::from_secs(60)));
//! let tools = FunctionToolset::new().layered(policy.into_layer());
//! # let _ = tools;
//! ```
//!
//! # Which one to choose
//!
//! Begin with a closure. Implement the trait where the policy has state, a name that tests refer to, or needs a hook
//! after the call. Put several policies into one [`Chain`] where they belong together: a chain costs one layer, and its
//! members need no boxed future each. Use separate layers where a tower layer stands between two policies.
//!
//! # Rules of thumb
//!
//! - **Decide from the call and its context only.** A middleware runs again on the approved pass, perhaps in another
//!   process: what it has remembered in memory may be gone.
//! - **Give an ASK a stable key** when its reason quotes something that changes (`"balance is 102.3"`): the key is what
//!   an approval is bound to, and the reason is the default key (rule A1).
//! - **Change arguments deterministically.** A change that differs each time makes the pass repeat, and then denies
//!   (rule D3).
//! - **Leave side effects to `after_tool_call`.** A call that you allowed may still be denied by a layer inside.

pub(crate) mod absent;
mod adjusted;
mod ancestor;
mod chain;
mod closure;
mod conditional;
mod erased;
mod first;
mod members;
mod origin;
mod rate_limit;

use std::borrow::Cow;
use std::future::Future;

pub use adjusted::Adjusted;
pub(crate) use ancestor::Ancestor;
pub use chain::Chain;
pub use closure::{DecideFn, FromFn, decide_fn, from_fn};
pub use conditional::{When, when};
pub use first::{FirstDecision, Opinion, danger_first_decision_wins};
pub use origin::{AskAfterReading, NamedBy, ask_after_reading, named_by};
pub use rate_limit::ToolRateLimit;

use crate::call::{Parts, RunContext, ToolCall};
use crate::decision::Decision;
use crate::error::BoxError;
use crate::outcome::Outcome;

/// Decides about tool calls, and sees the outcomes of executed ones. Every hook has a default.
///
/// Implement the hooks as plain `async fn`s. Apply the middleware to tools with
/// [`into_layer`](crate::ToolMiddlewareExt::into_layer), or add it to a [`Chain`]. Nothing fails open: a panic in
/// `before_tool_call` denies the call (rule D4).
///
/// ```
/// use countersign::{Decision, RunContext, ToolCall, ToolMiddleware};
///
/// struct FileAccess;
///
/// impl ToolMiddleware for FileAccess {
///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
///         match call.name() {
///             "delete_file" => Decision::ask(format!("delete {}?", call.args()["path"])).with_key("delete"),
///             "read_file" => Decision::allow().with_args(call.args().clone().with("audit", true)),
///             _ => Decision::allow(),
///         }
///     }
/// }
/// ```
///
/// A middleware is no audit: it is not told of the calls that a layer outside of it denies, that have no tool, or that are
/// asked about and never run. [`Turn::audit`](crate::Turn::audit) is told of the end of every pass.
///
/// For a `ServiceBuilder`, make a layer of it: `.layer(FileAccess.into_layer())`.
///
/// A middleware with all three hooks, which notes what its tools did and turns one error into a text for the model:
///
/// ```
/// use countersign::middleware::ToolCallError;
/// use countersign::{
///     BoxError, FunctionToolset, Outcome, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt, ToolsExt,
///     Turn, schemars, tool_fn,
/// };
/// use serde_json::json;
/// use std::sync::{Arc, Mutex};
///
/// struct Log(Arc<Mutex<Vec<String>>>);
///
/// impl ToolMiddleware for Log {
///     async fn after_tool_call(&self, _cx: &RunContext, call: &ToolCall, outcome: Outcome) -> Outcome {
///         self.0.lock().unwrap().push(format!("{} {}", call.name(), outcome.word()));
///         outcome
///     }
///
///     async fn on_tool_error(&self, _cx: &RunContext, _call: &ToolCall, error: ToolCallError) -> Result<Outcome, BoxError> {
///         match error.execution.started() {
///             true => Err(error.error),
///             false => Ok(Outcome::failed("The tool is not available now.")),
///         }
///     }
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let log = Arc::new(Mutex::new(Vec::new()));
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("delete", "Deletes a file", delete))
///     .layered(Log(Arc::clone(&log)).into_layer());
/// Turn::new(tools).run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?;
/// assert_eq!(*log.lock().unwrap(), ["delete returned"]);
/// # Ok::<(), BoxError>(()) }).unwrap();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no middleware for tool calls",
    note = "implement `ToolMiddleware`, or wrap a closure in `decide_fn` (sync, by reference) or `from_fn` (async, by value)"
)]
pub trait ToolMiddleware: Send + Sync + 'static {
    /// The name in questions, denials, logs and explanations; by default the name of the type. An approval is bound to
    /// this name, so keep the name when you rename the type. Where two middleware on the path of a call have the same
    /// name, neither may ask (rule D10): give one of them another name with [`named`](crate::ToolMiddlewareExt::named).
    fn name(&self) -> Cow<'static, str> {
        type_name::<Self>()
    }

    /// Lists the parts of this middleware, for the checks when the tools are listed: a warning reports two parts that
    /// ask under the same name, and one of them needs [another](crate::ToolMiddlewareExt::named) (rule D10).
    ///
    /// The default is one part that decides under the middleware's [name](Self::name). A composite whose members ask
    /// under their own names, like a [`Chain`], lists its members: `parts.members(|parts| self.member.parts(parts))`.
    /// Without that list an ASK of a member is refused, because another middleware could ask under the same name
    /// unnoticed.
    fn parts(&self, parts: &mut Parts) {
        parts.decider(self.name());
    }

    /// Decides about a call.
    ///
    /// - **When**: on every pass: the first one, the one after an approval, the one after a layer inside has changed
    ///   the arguments, and each time a retry layer sends the call again. [`RunContext::phase`] distinguishes the first
    ///   from the approved pass; [`RunContext::is_repeat`] says whether this middleware has decided the call before.
    ///   Calls with an unknown tool or invalid arguments never reach the stack.
    /// - **Sees**: the call, with the arguments as the layers outside passed them on.
    /// - **May**: allow, ask or deny, and replace the arguments. ALLOW and ASK let the call continue inward; DENY ends
    ///   the pass. Avoid side effects: a layer inside may still deny the call, and the hook may run again for it.
    /// - **On a panic**: the call is denied, naming this layer (rule D4).
    fn before_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        let _ = (cx, call);
        async { Decision::undecided() }
    }

    /// Sees the outcome of an execution, and may change what the model gets.
    ///
    /// - **When**: after an execution inside of this layer, with the outcome returned, failed, retry or unknown. Denied
    ///   and deferred calls skip this hook (rule D8), and so does a call that a layer outside drops (a timeout).
    /// - **Sees**: the call as this layer passed it on, and the outcome.
    /// - **May**: change the outcome that goes outward; the record of the execution does not change. An executed call
    ///   cannot become a denied one: if the hook returns a denial, the model gets a message that the tool ran, that its
    ///   result is withheld, and why.
    /// - **On a panic**: the model gets a message that the tool ran and that its result is withheld.
    fn after_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
        outcome: Outcome,
    ) -> impl Future<Output = Outcome> + Send {
        let _ = (cx, call);
        absent::note::<Self>();
        std::future::ready(outcome)
    }

    /// Sees an error of a layer inside, and may turn it into an outcome.
    ///
    /// - **When**: the service inside returned an `Err`: a timeout, a limit, a fatal error of the tool.
    /// - **Sees**: the call as this layer passed it on, the error, and what is known about the execution.
    /// - **May**: return an outcome for the model, or an error, which continues outward.
    /// - **On a panic**: an error that names this layer continues outward.
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
///
/// A hook decides by [`execution`](Self::execution) what it may tell the model: "did not run" is true only for
/// [`NotStarted`](crate::call::Execution::NotStarted). An error with the outcome `Finished` means that the tool ran and
/// a layer inside failed on its result.
#[derive(Debug)]
#[non_exhaustive]
pub struct ToolCallError {
    /// The error as the layer or the tool returned it.
    pub error: BoxError,
    /// The execution of the tool: whether it was started, and how it ended.
    pub execution: crate::call::Execution,
}

/// Restricts what `after_tool_call` may return: an executed call never becomes denied or deferred (rule D8).
#[inline]
pub(crate) fn told(outcome: Outcome) -> Outcome {
    if matches!(outcome, Outcome::Denied(_) | Outcome::Deferred(_)) {
        withheld(&outcome)
    } else {
        outcome
    }
}

#[cold]
fn withheld(outcome: &Outcome) -> Outcome {
    match outcome {
        Outcome::Denied(denied) => {
            Outcome::failed(format!("The tool ran. Its result is withheld: {}", denied.message))
        }
        _ => Outcome::failed("The tool ran. Its result is withheld."),
    }
}

/// The name of a type without module paths, also in its type parameters.
///
/// | type | name |
/// |---|---|
/// | `shop::policy::Limit` | `Limit` |
/// | `shop::policy::Cached<shop::policy::Limit>` | `Cached<Limit>` |
/// | a closure in `shop::policy::layers` | `layers` |
///
/// An approval is bound to the name, so the name must not contain the path: if you moved a type to another module,
/// people would be asked about every pending call again. The check of names finds two types of one name (rule D10).
fn type_name<M: ?Sized>() -> Cow<'static, str> {
    without_paths(std::any::type_name::<M>())
}

fn without_paths(full: &'static str) -> Cow<'static, str> {
    if !full.contains("::") {
        return Cow::Borrowed(full);
    }
    // A closure has no name of its own: it gets that of the function that contains it.
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
