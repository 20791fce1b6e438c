//! Middleware made from closures.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;

use super::ToolMiddleware;
use crate::call::{Parts, Place, RunContext, Standing, ToolCall};
use crate::decision::{Decision, IntoDecision};

/// Decides with a sync closure `(cx, call)` that borrows both. This is the cheapest layer: a plain ALLOW allocates
/// nothing.
///
/// The closure sees what [`before_tool_call`](ToolMiddleware::before_tool_call) sees: the context of this call and
/// pass, and the call as the layers outside have left it. It may allow, ask or deny, and change the arguments with its
/// decision. An `Err` is a DENY. If you need to await something, use [`from_fn`].
///
/// The result is a [`tower::Layer`] and a [`ToolMiddleware`]. Its name is that of the function that contains the
/// closure, unless [`named`](crate::ToolMiddlewareExt::named) sets another one. Of several closures in one function,
/// those that ask need names of their own (rule D10).
///
/// ```
/// use countersign::{Decision, FunctionToolset, ToolsExt, decide_fn};
///
/// let tools = FunctionToolset::new().layered(decide_fn(|_cx, call| match call.name() {
///     "delete_file" => Decision::ask("delete a file?"),
///     _ => Decision::allow(),
/// }));
/// # let _ = tools;
/// ```
pub fn decide_fn<F, D>(decide: F) -> DecideFn<F>
where
    F: Fn(&RunContext, &ToolCall) -> D + Send + Sync + 'static,
    D: IntoDecision,
{
    DecideFn { decide, name: super::type_name::<F>(), place: Place::default() }
}

/// Middleware from a sync closure; see [`decide_fn`].
#[derive(Clone)]
pub struct DecideFn<F> {
    decide: F,
    name: Cow<'static, str>,
    /// The position in the stack, assigned when the closure is applied as a layer (rule D9).
    place: Place,
}

impl<F> DecideFn<F> {
    /// Sets the layer's name in questions, denials and explanations.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    pub(crate) fn layer_name(&self) -> Cow<'static, str> {
        self.name.clone()
    }
}

impl<F, D> DecideFn<F>
where
    F: Fn(&RunContext, &ToolCall) -> D + Send + Sync + 'static,
    D: IntoDecision,
{
    pub(crate) fn decide(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        (self.decide)(cx, call).into_decision()
    }
}

impl<F, D> ToolMiddleware for DecideFn<F>
where
    F: Fn(&RunContext, &ToolCall) -> D + Send + Sync + 'static,
    D: IntoDecision,
{
    fn name(&self) -> Cow<'static, str> {
        self.layer_name()
    }

    fn before_tool_call(
        &self,
        cx: &RunContext,
        call: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        std::future::ready(self.decide(cx, call))
    }
}

impl<F: Send + Sync> Standing for DecideFn<F> {
    fn place(&self) -> &Place {
        &self.place
    }

    fn name(&self) -> Cow<'static, str> {
        self.layer_name()
    }

    fn parts(&self, parts: &mut Parts) {
        parts.decider(self.layer_name());
    }
}

impl<F> fmt::Debug for DecideFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DecideFn").field(&self.layer_name()).finish()
    }
}

/// Decides with an async closure `(cx, call)` that takes both by value, as its future may outlive the borrow of a hook;
/// both are cheap to clone. It sees and may change what the closure of [`decide_fn`] does; an `Err` is a DENY.
///
/// The result is a [`tower::Layer`] and a [`ToolMiddleware`].
///
/// ```
/// use countersign::decision::ToolBlocked;
/// use countersign::{Decision, RunContext, ToolCall, from_fn};
///
/// async fn balance() -> Result<u32, std::io::Error> { Ok(10) }
///
/// let limit = from_fn(async |_cx: RunContext, call: ToolCall| {
///     let balance = balance().await?; // a failure denies, naming the layer
///     if call.args()["amount"].as_u64() > Some(balance.into()) {
///         return Err(ToolBlocked::new("not enough money").into());
///     }
///     Ok::<_, countersign::BoxError>(Decision::ask(format!("balance is {balance}")).with_key("pay"))
/// });
/// # let _ = limit;
/// ```
///
/// State that the closure owns, such as a client, is cloned for each call, because the future may outlive the closure:
///
/// ```
/// use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolsExt, from_fn};
///
/// #[derive(Clone)]
/// struct Client; // as most clients are, a handle that is cheap to clone
///
/// impl Client {
///     async fn may_call(&self, tool: &str) -> Result<bool, std::io::Error> { Ok(tool == "search") }
/// }
///
/// let client = Client;
/// let policy = from_fn(move |_cx: RunContext, call: ToolCall| {
///     let client = client.clone();
///     async move {
///         Ok::<_, std::io::Error>(match client.may_call(call.name()).await? {
///             true => Decision::allow(),
///             false => Decision::deny("not for this user"),
///         })
///     }
/// });
/// let tools = FunctionToolset::new().layered(policy);
/// # let _ = tools;
/// ```
///
/// State that is not `Clone` is shared in an `Arc`, which also makes the closure `Clone`. A closure that captures a
/// value that is not `Clone` becomes a layer with [`into_layer`](crate::ToolMiddlewareExt::into_layer), which shares
/// the closure:
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use countersign::{Decision, FunctionToolset, ToolMiddlewareExt, ToolsExt, decide_fn};
///
/// let frozen = AtomicBool::new(false); // not `Clone`, and captured by value
/// let freeze = decide_fn(move |_, _| match frozen.load(Ordering::Relaxed) {
///     true => Decision::deny("nothing is changed before the release"),
///     false => Decision::allow(),
/// });
/// let tools = FunctionToolset::new().layered(freeze.into_layer());
/// # let _ = tools;
/// ```
pub fn from_fn<F, Fut>(decide: F) -> FromFn<F>
where
    F: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoDecision> + Send,
{
    FromFn { decide, name: super::type_name::<F>() }
}

/// Middleware from an async closure; see [`from_fn`].
#[derive(Clone)]
pub struct FromFn<F> {
    decide: F,
    name: Cow<'static, str>,
}

impl<F> FromFn<F> {
    /// Sets the layer's name in questions, denials and explanations.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }
}

impl<F, Fut> ToolMiddleware for FromFn<F>
where
    F: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoDecision> + Send + 'static,
{
    fn name(&self) -> Cow<'static, str> {
        self.name.clone()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        (self.decide)(cx.clone(), call.clone()).await.into_decision()
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FromFn").field(&self.name).finish()
    }
}
