//! Middleware from closures.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;

use super::ToolMiddleware;
use crate::call::{RunContext, ToolCall};
use crate::decision::Decision;

/// Decides by a sync closure that sees the call by reference: the cheapest layer there is, without allocation. The
/// context is [`call.context()`](ToolCall::context). An `Err` is a DENY.
///
/// It is a [`tower::Layer`] and a [`ToolMiddleware`]. Give it a name with
/// [`named`](crate::ToolMiddlewareExt::named) where several are written in one function.
///
/// ```
/// use countersign::{Decision, FunctionToolset, ToolsExt, decide_fn};
///
/// let tools = FunctionToolset::new().layered(decide_fn(|call| match call.name() {
///     "delete_file" => Decision::ask("delete a file?"),
///     _ => Decision::allow(),
/// }));
/// # let _ = tools;
/// ```
pub fn decide_fn<F, D>(decide: F) -> DecideFn<F>
where
    F: Fn(&ToolCall) -> D + Send + Sync + 'static,
    D: Into<Decision>,
{
    DecideFn { decide, name: None }
}

/// A closure that decides; see [`decide_fn`].
#[derive(Clone)]
pub struct DecideFn<F> {
    decide: F,
    name: Option<Cow<'static, str>>,
}

impl<F> DecideFn<F> {
    /// Names the layer in questions, denials and explanations.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    pub(crate) fn layer_name(&self) -> Cow<'static, str> {
        self.name.clone().unwrap_or_else(super::type_name::<F>)
    }
}

impl<F, D> DecideFn<F>
where
    F: Fn(&ToolCall) -> D + Send + Sync + 'static,
    D: Into<Decision>,
{
    pub(crate) fn decide(&self, call: &ToolCall) -> Decision {
        (self.decide)(call).into()
    }
}

impl<F, D> ToolMiddleware for DecideFn<F>
where
    F: Fn(&ToolCall) -> D + Send + Sync + 'static,
    D: Into<Decision>,
{
    fn name(&self) -> Cow<'static, str> {
        self.layer_name()
    }

    fn before_tool_call(
        &self,
        _: &RunContext,
        call: &ToolCall,
    ) -> impl Future<Output = Decision> + Send {
        std::future::ready(self.decide(call))
    }
}

impl<F> fmt::Debug for DecideFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DecideFn").field(&self.layer_name()).finish()
    }
}

/// Decides by an async closure that takes the cheap-to-clone call. The context is
/// [`call.context()`](ToolCall::context). An `Err` is a DENY.
///
/// It is a [`tower::Layer`] and a [`ToolMiddleware`].
///
/// ```
/// use countersign::{Decision, ToolBlocked, ToolCall, from_fn};
///
/// async fn balance() -> Result<u32, std::io::Error> { Ok(10) }
///
/// let limit = from_fn(async |call: ToolCall| {
///     let balance = balance().await?; // a failure denies, naming the layer
///     if call.args()["amount"].as_u64() > Some(balance.into()) {
///         return Err(ToolBlocked::new("not enough money").into());
///     }
///     Ok::<_, countersign::BoxError>(Decision::ask(format!("balance is {balance}")).key("pay"))
/// });
/// # let _ = limit;
/// ```
pub fn from_fn<F, Fut>(decide: F) -> FromFn<F>
where
    F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Into<Decision>> + Send,
{
    FromFn { decide, name: None }
}

/// An async closure that decides; see [`from_fn`].
#[derive(Clone)]
pub struct FromFn<F> {
    decide: F,
    name: Option<Cow<'static, str>>,
}

impl<F> FromFn<F> {
    /// Names the layer in questions, denials and explanations.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }
}

impl<F, Fut> ToolMiddleware for FromFn<F>
where
    F: Fn(ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: Into<Decision>> + Send + 'static,
{
    fn name(&self) -> Cow<'static, str> {
        self.name.clone().unwrap_or_else(super::type_name::<F>)
    }

    async fn before_tool_call(&self, _: &RunContext, call: &ToolCall) -> Decision {
        (self.decide)(call.clone()).await.into()
    }
}

impl<F> fmt::Debug for FromFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FromFn")
            .field(&self.name.clone().unwrap_or_else(super::type_name::<F>))
            .finish()
    }
}
