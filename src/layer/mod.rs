//! Middleware as [`tower::Layer`]s.
//!
//! These layers compose with any other layer over tool calls, inside and outside of it: tower's own, yours, boxed or
//! not. The requirements of tower's layers are listed in `docs/ordering.md`.
//!
//! ```
//! use std::time::Duration;
//! use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolMiddlewareExt, ToolsExt, from_fn};
//! use tower::ServiceBuilder;
//!
//! let policy = from_fn(async |_cx: RunContext, call: ToolCall| match call.name() {
//!     "deploy" => Decision::ask("changes production"),
//!     _ => Decision::allow(),
//! });
//! let tools = FunctionToolset::new().layered(
//!     ServiceBuilder::new()
//!         .layer(policy.deciding_within(Duration::from_secs(1)).into_layer())
//!         .timeout(Duration::from_secs(30)),
//! );
//! # let _ = tools;
//! ```
//!
//! # What the service of a middleware does with a call
//!
//! | step | hook | on a failure |
//! |---|---|---|
//! | 1 | `before_tool_call` decides | a panic or a time-out denies (rule D4) |
//! | 2 | the decision is recorded; a DENY ends the pass here | – |
//! | 3 | readiness of the inner service is awaited, then it is called | its error goes to step 5 |
//! | 4 | `after_tool_call` sees the outcome of an execution (rule D8) | a panic withholds the result |
//! | 5 | `on_tool_error` sees an error from inside | a panic is an error that names the layer |
//!
//! A call that no turn has sent is refused before step 1, as it has no record. In a test, send calls through a
//! [`Turn`](crate::Turn), or call the hooks of the middleware: they are ordinary methods.

mod decide;
mod service;

use std::borrow::Cow;
use std::time::Duration;

use tower::Layer;

pub use decide::{DecideFuture, DecideService};
pub use service::{MiddlewareLayer, MiddlewareService};

use crate::middleware::{
    Adjusted, Chain, DecideFn, FirstDecision, FromFn, ToolMiddleware, ToolRateLimit, When,
};

/// Methods of every [`ToolMiddleware`].
pub trait ToolMiddlewareExt: ToolMiddleware + Sized {
    /// Creates a [`tower::Layer`] that runs this middleware around each call.
    ///
    /// ```
    /// use countersign::{Decision, FunctionToolset, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn};
    /// use countersign::{ToolError, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// struct ReadsOnly;
    ///
    /// impl ToolMiddleware for ReadsOnly {
    ///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
    ///         match call.name().starts_with("read_") {
    ///             true => Decision::allow(),
    ///             false => Decision::deny("this assistant only reads"),
    ///         }
    ///     }
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct File { path: String }
    /// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let tools = FunctionToolset::new()
    ///     .tool(tool_fn("delete", "Deletes a file", delete))
    ///     .layered(ReadsOnly.into_layer());
    /// let report = Turn::new(tools).run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?;
    /// assert_eq!(report.calls()[0].outcome().text().unwrap(), "this assistant only reads");
    /// assert_eq!(report.calls()[0].denied_by(), Some("ReadsOnly"));
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    fn into_layer(self) -> MiddlewareLayer<Self> {
        MiddlewareLayer::new(self)
    }

    /// Applies the middleware only to the calls of these tools, by their names at this level of the stack.
    ///
    /// A name that no tool has is an error when the tools are listed
    /// ([`UserError::UnknownTool`](crate::UserError::UnknownTool)), because the middleware would never apply. Tools
    /// that a wrapper inside hides count as existing. Around an agent the names are not checked, because the layer also
    /// decides about the calls of the agent's own tools. For tools that are not always listed, use
    /// [`when`](crate::middleware::when).
    ///
    /// ```
    /// use countersign::{Decision, ToolMiddlewareExt, decide_fn};
    /// let writes = decide_fn(|_, _| Decision::ask("write?")).for_tools(["write_file", "move_file"]);
    /// # let _ = writes;
    /// ```
    fn for_tools<I: Into<String>>(self, tools: impl IntoIterator<Item = I>) -> Adjusted<Self> {
        Adjusted::new(self).with_tools(tools.into_iter().map(Into::into).collect())
    }

    /// Limits the time for the decision; after that time the call is denied, naming this layer (rule D4). Unlike the
    /// time of a timeout layer, it does not include the tool.
    ///
    /// Give a limit to every middleware that asks another service. Without one, a server that does not answer holds the
    /// call, and with it the response, for as long as the server likes; a timeout layer around it would cut off tool
    /// bodies too.
    ///
    /// ```
    /// use countersign::{
    ///     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn,
    ///     schemars, tool_fn,
    /// };
    /// use serde_json::json;
    /// use std::time::Duration;
    ///
    /// struct Directory; // asks a server which does not answer
    ///
    /// impl ToolMiddleware for Directory {
    ///     async fn before_tool_call(&self, _cx: &RunContext, _call: &ToolCall) -> Decision {
    ///         std::future::pending().await
    ///     }
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Mail { to: String }
    /// async fn send(mail: Mail) -> Result<String, ToolError> { Ok(mail.to) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let tools = FunctionToolset::new()
    ///     .tool(tool_fn("send", "Sends a mail", send))
    ///     .layered(Directory.deciding_within(Duration::from_millis(1)).into_layer());
    /// let report = Turn::new(tools).run(vec![ToolCall::new("c1", "send", json!({"to": "ann"}))]).await?;
    /// let outcome = report.calls()[0].outcome();
    /// assert_eq!(outcome.text().unwrap(), "Not executed: the layer `Directory` failed to decide about this call.");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    fn deciding_within(self, limit: Duration) -> Adjusted<Self> {
        Adjusted::new(self).with_limit(limit)
    }

    /// Sets the layer's name in questions, denials and explanations. Where two middleware on the path of a call have
    /// the same name, an ASK of either is refused (rule D10): the second instance of a type, and the second closure of
    /// a function, need names of their own. The members of a composite still ask under their own names.
    ///
    /// ```
    /// use countersign::{
    ///     Decision, FunctionToolset, RunContext, ToolCall, ToolMiddleware, ToolMiddlewareExt, ToolsExt,
    /// };
    ///
    /// struct Limit(f64);
    ///
    /// impl ToolMiddleware for Limit {
    ///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
    ///         match call.args().f64("amount") {
    ///             Some(amount) if amount > self.0 => Decision::ask("above the limit"),
    ///             _ => Decision::allow(),
    ///         }
    ///     }
    /// }
    ///
    /// let tools = FunctionToolset::new()
    ///     .layered(Limit(100.0).named("team limit"))
    ///     .layered(Limit(1000.0).named("company limit"));
    /// # let _ = tools;
    /// ```
    fn named(self, name: impl Into<Cow<'static, str>>) -> Adjusted<Self> {
        Adjusted::new(self).with_name(name.into())
    }
}

impl<M: ToolMiddleware> ToolMiddlewareExt for M {}

impl<F, S> Layer<S> for DecideFn<F>
where
    F: Clone + Send + Sync + 'static,
{
    type Service = DecideService<F, S>;

    fn layer(&self, inner: S) -> Self::Service {
        DecideService::new(self.clone(), inner)
    }
}

/// Implements [`Layer`] for middleware types of the library that are `Clone`; other middleware becomes a layer with
/// `into_layer`.
macro_rules! layers {
    ($($middleware:ident<$($parameter:ident),*>),* $(,)?) => {$(
        impl<S, $($parameter),*> Layer<S> for $middleware<$($parameter),*>
        where
            Self: ToolMiddleware + Clone,
        {
            type Service = MiddlewareService<Self, S>;

            fn layer(&self, inner: S) -> Self::Service {
                MiddlewareLayer::new(self.clone()).layer(inner)
            }
        }
    )*};
}

layers!(Adjusted<M>, Chain<>, FirstDecision<>, FromFn<F>, ToolRateLimit<>, When<P, A, B>);
