//! One tool: its function, its definition, and how its arguments are read.

use std::fmt;
use std::sync::Arc;

use super::Permit;
use super::signature::{IntoToolError, IntoToolFn, IntoToolReturn, ToolArgs};
use crate::args::Args;
use crate::call::{Behind, RunContext, ToolDefinition, ToolKind, Validate};
use crate::decision::Preview;
use crate::error::BoxError;
use crate::origin::ReadLabel;
use crate::outcome::{ModelRetry, ToolError, ToolReturn};
use futures::future::BoxFuture;
use serde::de::DeserializeOwned;

/// One tool of a [`FunctionToolset`](super::FunctionToolset): a Rust function and its definition.
///
/// A tool is built by [`tool_fn`], [`blocking_tool_fn`] or `schema_tool_fn`, and then configured:
///
/// ```
/// use countersign::call::ToolKind;
/// use countersign::{ToolError, schemars, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Deployment { service: String }
/// async fn deploy(it: Deployment) -> Result<String, ToolError> { Ok(it.service) }
///
/// let tool = tool_fn("deploy", "Deploys a service", deploy)
///     .requires_approval()
///     .sequential()
///     .max_retries(0)
///     .metadata("team", "platform");
/// let definition = tool.definition();
/// assert_eq!((definition.kind(), definition.is_sequential()), (ToolKind::Unapproved, true));
/// assert_eq!(definition.metadata()["team"], "platform");
/// ```
#[derive(Clone)]
pub struct Tool {
    definition: ToolDefinition,
    /// The path of the tool's function; empty for an agent.
    function: &'static str,
    validate: Validate,
    body: Arc<dyn Fn(Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>> + Send + Sync>,
    preview: Option<Arc<Previews>>,
}

type Previews =
    dyn Fn(&RunContext, &Args) -> BoxFuture<'static, Result<Vec<Preview>, BoxError>> + Send + Sync;

impl Tool {
    /// Every call needs an approval, even if all layers allow it.
    ///
    /// The question is the tool's own (layer ``tool `deploy` ``, key `declared`) and is open also where a layer answers
    /// in the tool's place, for example a cache: that answer needs the same approval as an execution (rule A1).
    #[must_use]
    pub fn requires_approval(mut self) -> Self {
        self.definition = self.definition.with_kind(ToolKind::Unapproved);
        self
    }

    /// Calls of this tool never overlap with other calls of the response (rule T1).
    ///
    /// Use it for tools that change what another call of the response reads. The barrier holds on both passes, and
    /// until the body has actually ended, also in blocking code whose call was given up (rule T1).
    #[must_use]
    pub fn sequential(mut self) -> Self {
        self.definition = self.definition.with_sequential(true);
        self
    }

    /// Declares that running a call twice has the same effect as running it once; see [`ToolDefinition::with_idempotent`].
    ///
    /// It is the one declaration that permits a second run after an unknown end, by a retry layer or by another worker
    /// (rule L2). Declare it only where the service behind the tool recognises the
    /// [key](crate::RunContext::idempotency_key), or where the effect is that of an assignment.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.definition = self.definition.with_idempotent(true);
        self
    }

    /// Limits how often the model may try again with this tool within one run, in place of the limits of its toolset
    /// and of the [agent](crate::Agent::max_retries).
    #[must_use]
    pub fn max_retries(mut self, max: u32) -> Self {
        self.definition = self.definition.with_max_retries(max);
        self
    }

    /// Records each call in the ledger before it runs, also a call without a question; see
    /// [`ToolDefinition::with_journaled`].
    ///
    /// It costs a transaction for each call. Use it for tools whose effect cannot be undone and that no layer asks
    /// about: after a crash the call is reported as *may have run*, instead of being sent again with the resumed
    /// response.
    #[must_use]
    pub fn journaled(mut self) -> Self {
        self.definition = self.definition.with_journaled(true);
        self
    }

    /// Says that the tool reads, and how its results are labelled; see [`ToolDefinition::with_reads`].
    ///
    /// ```
    /// use countersign::origin::ReadLabel;
    /// use countersign::{ToolError, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Page { url: String }
    /// async fn fetch(page: Page) -> Result<String, ToolError> { Ok(page.url) }
    ///
    /// let tool = tool_fn("fetch", "Fetches a page", fetch).reads(ReadLabel::others("web"));
    /// assert!(tool.definition().reads().is_some());
    /// ```
    #[must_use]
    pub fn reads(mut self, label: ReadLabel) -> Self {
        self.definition = self.definition.with_reads(label);
        self
    }

    /// Adds metadata to the definition, for predicates, handlers and surfaces.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.definition = self.definition.with_metadata(key, value);
        self
    }

    /// Shows what a call would do, to the person who is asked about it: an async function with the arguments of the tool,
    /// or with the context and the arguments, that returns one [`Preview`], or several in a `Vec`. It is called whenever
    /// a call is asked about, and again on the approved pass: if the content is another one by then, the call is asked
    /// about again (rule S7). It must not change anything. If it fails, the person is told so, and sees the error.
    ///
    /// ```
    /// use countersign::decision::Preview;
    /// use countersign::{ToolError, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct WriteFile { path: String, text: String }
    ///
    /// async fn write_file(file: WriteFile) -> std::io::Result<()> {
    ///     std::fs::write(file.path, file.text)
    /// }
    ///
    /// async fn difference(file: WriteFile) -> std::io::Result<Preview> {
    ///     let old = match std::fs::read_to_string(&file.path) {
    ///         Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
    ///         old => Some(old?),
    ///     };
    ///     Ok(Preview::diff(file.path, old.as_deref(), file.text.as_str()))
    /// }
    ///
    /// let tool = tool_fn("write_file", "Write a text file", write_file).requires_approval().with_preview(difference);
    /// # let _ = tool;
    /// ```
    #[must_use]
    pub fn with_preview<M, F, P, E>(mut self, preview: F) -> Self
    where
        F: IntoToolFn<M, Output = Result<P, E>>,
        F::Args: DeserializeOwned,
        F::Future: Send + 'static,
        P: Into<Vec<Preview>>,
        E: IntoToolError,
    {
        self.preview = Some(Arc::new(move |cx, args| {
            let called = args.deserialize().map(|args| preview.call(cx.clone(), args));
            Box::pin(async move {
                let made = called?.await;
                made.map(Into::into).map_err(|error| error.into_tool_error().into_box())
            })
        }));
        self
    }

    /// The definition of the tool, as its toolset lists it.
    #[must_use]
    pub fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    /// Creates a tool from an agent. It has no body, because the turn runs the agent outside of the stack (rule T7).
    pub(crate) fn of_agent<A: ToolArgs>(
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

    /// The path of the tool's function, as the compiler names it. All closures of one function have the same path.
    pub(super) fn function(&self) -> &'static str {
        self.function
    }

    fn of_function<F>(mut self) -> Self {
        self.function = std::any::type_name::<F>();
        self
    }

    pub(super) fn validate(&self, args: &Args) -> Result<(), String> {
        (self.validate)(args)
    }

    pub(super) async fn preview(
        &self,
        cx: &RunContext,
        args: &Args,
    ) -> Result<Vec<Preview>, BoxError> {
        match &self.preview {
            Some(preview) => preview(cx, args).await,
            None => Ok(Vec::new()),
        }
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

/// Creates a tool from an async function: `async fn(Args) -> Result<T, E>`, or with the context as the first argument,
/// `async fn(RunContext, Args) -> Result<T, E>`.
///
/// `Args` implements `serde::Deserialize` and [`schemars::JsonSchema`]; `T` is anything that serialises; `E` is
/// [`ToolError`], `anyhow::Error`, [`BoxError`](crate::BoxError), `String` or any [`std::error::Error`].
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
/// async fn balance(args: Pay) -> anyhow::Result<u32> {
///     anyhow::ensure!(args.amount < 100, "the account holds 100"); // the model gets this text, and the run continues
///     Ok(100 - args.amount)
/// }
///
/// let tools = [tool_fn("pay", "Pays an amount", pay), tool_fn("balance", "What would be left", balance)];
/// # let _ = tools;
/// ```
///
/// If you give no description (`""`), the tool has that of its arguments: the doc comment of their type.
///
/// An error fails the call: the model gets the error's `Display`, and the run continues. [`ToolError`] lists the errors
/// with another meaning: to try again, to ask for an approval, to end the run.
pub fn tool_fn<M, F>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    function: F,
) -> Tool
where
    F: IntoToolFn<M>,
    F::Args: ToolArgs,
    F::Output: IntoToolReturn,
    F::Future: Send + 'static,
{
    let function = Arc::new(function);
    typed::<F::Args>(name, description, move |args, permit| {
        let called = function.call(permit.context().clone(), args);
        Box::pin(async move {
            // Sequential tools wait for the permit, which lives as long as the body.
            let _permit = permit;
            called.await.into_tool_return()
        })
    })
    .of_function::<F>()
}

/// Creates a tool from a blocking function: `fn(RunContext, Args) -> Result<T, E>`. The function runs on one of tokio's
/// blocking threads, so that other calls continue. When its call is dropped (a timeout, a dropped run), the function
/// still runs to its end, and the call is reported as "may have run". Results and errors are those of [`tool_fn`].
///
/// ```
/// use countersign::toolset::blocking_tool_fn;
/// use countersign::{FunctionToolset, RunContext, ToolCall, Turn, schemars};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count { text: String }
///
/// fn count(_: RunContext, args: Count) -> Result<usize, String> {
///     if args.text.is_empty() { Err("there is no text".to_owned()) } else { Ok(args.text.len()) }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(blocking_tool_fn("count", "Counts bytes", count));
/// let report = Turn::new(tools).run(vec![
///     ToolCall::new("c1", "count", json!({"text": "abc"})),
///     ToolCall::new("c2", "count", json!({"text": ""})),
/// ]).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), 3);
/// assert_eq!(report.calls()[1].outcome().text().unwrap(), "there is no text");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
pub fn blocking_tool_fn<A, R, F>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    function: F,
) -> Tool
where
    A: ToolArgs,
    R: IntoToolReturn,
    F: Fn(RunContext, A) -> R + Send + Sync + 'static,
{
    let function = Arc::new(function);
    typed::<A>(name, description, move |args, permit| {
        let function = Arc::clone(&function);
        Box::pin(async move {
            let span = tracing::Span::current();
            let body = move || {
                span.in_scope(|| function(permit.context().clone(), args).into_tool_return())
            };
            match tokio::task::spawn_blocking(body).await {
                Ok(result) => result,
                Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                // Cancelled before it began, because the runtime shuts down.
                Err(error) => Err(ToolError::fatal(error)),
            }
        })
    })
    .of_function::<F>()
}

/// Creates a tool from an async function over the raw arguments, for a tool that is described only by a JSON Schema.
///
/// # Errors
/// Fails when the parameters of the definition are not a valid JSON Schema.
///
/// The schema is checked with every keyword of its dialect. Of a value that does not fit, the model and the log get the
/// path and the keyword, and not the value, which may be a secret (rule S2).
///
/// ```
/// # #[cfg(feature = "schema")] {
/// use countersign::toolset::schema_tool_fn;
/// use countersign::{Args, FunctionToolset, RunContext, ToolCall, ToolDefinition, ToolError, Turn};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]});
/// async fn double(_: RunContext, args: Args) -> Result<i64, ToolError> { Ok(2 * args.i64("n").unwrap_or(0)) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tool = schema_tool_fn(ToolDefinition::new("double", schema), double)?;
/// let report = Turn::new(FunctionToolset::new().tool(tool)).run(vec![
///     ToolCall::new("c1", "double", json!({"n": 4})),
///     ToolCall::new("c2", "double", json!({"n": 40})),
/// ]).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), 8);
/// assert!(report.calls()[1].outcome().text().unwrap().contains("`/n`"));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// # }
/// ```
#[cfg(feature = "schema")]
pub fn schema_tool_fn<F, Fut>(definition: ToolDefinition, function: F) -> Result<Tool, BoxError>
where
    F: Fn(RunContext, Args) -> Fut + Send + Sync + 'static,
    Fut: Future + Send + 'static,
    Fut::Output: IntoToolReturn,
{
    let validator =
        jsonschema::validator_for(definition.parameters()).map_err(|error| error.to_string())?;
    let function = Arc::new(function);
    Ok(Tool {
        definition,
        function: std::any::type_name::<F>(),
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
                called.await.into_tool_return()
            })
        }),
        preview: None,
    })
}

type Body<A> = dyn Fn(A, Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>> + Send + Sync;

/// Makes a tool over a typed argument. We deserialise the arguments twice: once to validate them, before any person
/// is asked (rule T5), and once in the body, from the arguments that every layer decided on, which need not be the
/// same. If we kept the value from the first time, it would be a copy that no layer has seen.
fn typed<A: ToolArgs>(
    name: impl Into<Arc<str>>,
    description: impl Into<Arc<str>>,
    body: impl Fn(A, Permit) -> BoxFuture<'static, Result<ToolReturn, ToolError>>
    + Send
    + Sync
    + 'static,
) -> Tool {
    let schema = schemars::SchemaGenerator::default().into_root_schema_for::<A>().to_value();
    let body: Arc<Body<A>> = Arc::new(body);
    let mut description = description.into();
    if description.is_empty()
        && let Some(documented) = schema.get("description").and_then(serde_json::Value::as_str)
    {
        description = Arc::from(documented);
    }
    Tool {
        definition: ToolDefinition::new(name, schema).with_description(description),
        function: "",
        validate: Arc::new(|args| args.deserialize::<A>().map(drop)),
        body: Arc::new(move |permit| match permit.args().deserialize::<A>() {
            Ok(args) => body(args, permit),
            Err(problem) => Box::pin(std::future::ready(Err(ModelRetry::new(problem).into()))),
        }),
        preview: None,
    }
}
