//! One tool: a function, its definition, and how its arguments are read.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Permit;
use crate::args::Args;
use crate::call::{Behind, RunContext, ToolDefinition, ToolKind, Validate};
use crate::outcome::{ModelRetry, ToolError, ToolReturn};

/// One tool of a [`FunctionToolset`](super::FunctionToolset): a Rust function and what is known about it.
#[derive(Clone)]
pub struct Tool {
    definition: ToolDefinition,
    validate: Validate,
    body: Arc<dyn Fn(Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>> + Send + Sync>,
}

impl Tool {
    /// Calls need an approval, whatever the layers say.
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.definition = self.definition.kind(ToolKind::Unapproved);
        self
    }

    /// Calls never overlap other calls of the response (rule T1).
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.definition = self.definition.sequential(true);
        self
    }

    /// Running a call twice does the same as running it once; see [`ToolDefinition::idempotent`].
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.definition = self.definition.idempotent(true);
        self
    }

    /// How often the model may try again with this tool within one run, in place of what its toolset and the
    /// [agent](crate::Agent::max_retries) say.
    #[must_use]
    pub fn max_retries(mut self, max: u32) -> Self {
        self.definition = self.definition.max_retries(max);
        self
    }

    /// Calls are written down before they run, also those nobody is asked about; see [`ToolDefinition::journaled`].
    #[must_use]
    pub fn journaled(mut self) -> Self {
        self.definition = self.definition.journaled(true);
        self
    }

    /// Adds something for predicates, handlers and pages.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.definition = self.definition.metadata(key, value);
        self
    }

    /// What is known about the tool.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// A tool that is an agent: it has no body, as the turn runs the agent outside of the stack (rule T7).
    pub(crate) fn of_agent<A: DeserializeOwned + JsonSchema + Send + 'static>(
        name: impl Into<Arc<str>>,
        description: impl Into<Arc<str>>,
        agent: Behind,
    ) -> Self {
        let mut tool = typed::<A>(name, description, |_, _| {
            let error = ToolError::fatal("an agent is run by the turn, not by its toolset");
            Box::pin(std::future::ready(Err(error)))
        });
        tool.definition = tool.definition.agent(agent);
        tool
    }

    pub(super) fn validate(&self, args: &Args) -> Result<(), String> {
        (self.validate)(args)
    }

    pub(super) fn run(&self, permit: Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>> {
        (self.body)(permit)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tool").field(&self.definition).finish()
    }
}

/// A tool from an async function: `async fn(Args) -> Result<T, E>`, or with the context in front:
/// `async fn(RunContext, Args) -> Result<T, E>`.
///
/// `Args` implements `serde::Deserialize` and [`schemars::JsonSchema`]; `T` is anything that serialises;
/// `E` converts into [`ToolError`], as every error does.
///
/// ```
/// use countersign::{RunContext, ToolError, schemars, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Pay { amount: u32 }
///
/// async fn pay(cx: RunContext, args: Pay) -> Result<u32, ToolError> {
///     cx.approved_for("spends money")?;
///     Ok(args.amount)
/// }
///
/// let tool = tool_fn("pay", "Pays an amount", pay);
/// # let _ = tool;
/// ```
pub fn tool_fn<M, F: IntoToolFn<M>>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    function: F,
) -> Tool {
    let function = Arc::new(function);
    typed::<F::Args>(name, description, move |args, permit| {
        let called = function.call(permit.context().clone(), args);
        Box::pin(async move {
            // The permit lives as long as the body.
            let _permit = permit;
            called.await
        })
    })
}

/// A tool from a blocking function: `fn(RunContext, Args) -> Result<T, E>`. It runs on tokio's blocking threads, so
/// that other calls go on; when its call is given up (a timeout, a dropped run) it still runs to its end, and is
/// reported as "may have run".
pub fn blocking_tool_fn<A, T, E, F>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    function: F,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Serialize + Send + 'static,
    E: Into<ToolError> + Send + 'static,
    F: Fn(RunContext, A) -> Result<T, E> + Send + Sync + 'static,
{
    let function = Arc::new(function);
    typed::<A>(name, description, move |args, permit| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let span = tracing::Span::current();
            let body =
                move || span.in_scope(|| to_return(function(permit.context().clone(), args)));
            match tokio::task::spawn_blocking(body).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                Err(error) => Err(error.into()),
            }
        })
    })
}

/// A tool that is known only by its JSON Schema, from an async function over the raw arguments.
///
/// # Errors
/// When the schema is not a valid JSON Schema.
#[cfg(feature = "schema")]
pub fn schema_tool_fn<F, Fut, T, E>(
    definition: ToolDefinition,
    function: F,
) -> Result<Tool, crate::error::BoxError>
where
    F: Fn(RunContext, Args) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    T: Serialize + 'static,
    E: Into<ToolError> + 'static,
{
    let validator = jsonschema::validator_for(definition.get_parameters())
        .map_err(|error| error.to_string())?;
    let function = Arc::new(function);
    Ok(Tool {
        definition,
        validate: Arc::new(move |args| {
            let problem =
                |error: jsonschema::ValidationError<'_>| match error.instance_path().as_str() {
                    "" => error.masked().to_string(),
                    path => format!("`{path}`: {}", error.masked()),
                };
            let problems: Vec<_> = validator.iter_errors(&args.to_value()).map(problem).collect();
            if problems.is_empty() { Ok(()) } else { Err(problems.join("; ")) }
        }),
        body: Arc::new(move |permit| {
            let called = function(permit.context().clone(), permit.args().clone());
            Box::pin(async move {
                let _permit = permit;
                to_return(called.await)
            })
        }),
    })
}

type Body<A> = dyn Fn(A, Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>> + Send + Sync;

fn typed<A: DeserializeOwned + JsonSchema + Send + 'static>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    body: impl Fn(A, Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>>
    + Send
    + Sync
    + 'static,
) -> Tool {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>().to_value();
    let body: Arc<Body<A>> = Arc::new(body);
    Tool {
        definition: ToolDefinition::new(name, schema).description(description),
        validate: Arc::new(|args| args.deserialize::<A>().map(drop)),
        body: Arc::new(move |permit| match permit.args().deserialize::<A>() {
            Ok(args) => body(args, permit),
            Err(problem) => Box::pin(std::future::ready(Err(ModelRetry::new(problem).into()))),
        }),
    }
}

/// What a body gave, as the model will see it. A [`ToolReturn`] stays what it is.
fn to_return<T: Serialize + 'static, E: Into<ToolError>>(
    result: Result<T, E>,
) -> Result<ToolReturn, ToolError> {
    let value = result.map_err(Into::into)?;
    match (&value as &dyn std::any::Any).downcast_ref::<ToolReturn>() {
        Some(value) => Ok(value.clone()),
        None => Ok(ToolReturn::new(serde_json::to_value(value)?)),
    }
}

/// The functions that [`tool_fn`] takes. Not for implementing: the parameter tells the two shapes apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    note = "a tool is `async fn(A) -> Result<T, E>` or `async fn(RunContext, A) -> Result<T, E>`, where `A` implements `serde::Deserialize` and `schemars::JsonSchema`, `T` implements `Serialize`, and `E` converts into `ToolError`"
)]
pub trait IntoToolFn<M>: Send + Sync + 'static {
    /// The arguments.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;

    /// Calls the function.
    fn call(
        &self,
        cx: RunContext,
        args: Self::Args,
    ) -> BoxFuture<'static, Result<ToolReturn, ToolError>>;
}

/// Marks functions of the arguments only.
#[derive(Debug)]
pub struct WithArgs<A>(std::marker::PhantomData<A>);

/// Marks functions of the context and the arguments.
#[derive(Debug)]
pub struct WithContext<A>(std::marker::PhantomData<A>);

impl<F, Fut, A, T, E> IntoToolFn<WithArgs<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Serialize + 'static,
    E: Into<ToolError> + 'static,
{
    type Args = A;

    fn call(&self, _: RunContext, args: A) -> BoxFuture<'static, Result<ToolReturn, ToolError>> {
        let called = self(args);
        Box::pin(async move { to_return(called.await) })
    }
}

impl<F, Fut, A, T, E> IntoToolFn<WithContext<A>> for F
where
    F: Fn(RunContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, E>> + Send + 'static,
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Serialize + 'static,
    E: Into<ToolError> + 'static,
{
    type Args = A;

    fn call(&self, cx: RunContext, args: A) -> BoxFuture<'static, Result<ToolReturn, ToolError>> {
        let called = self(cx, args);
        Box::pin(async move { to_return(called.await) })
    }
}
