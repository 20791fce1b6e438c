//! The signatures that a tool's function may have, with compile errors for all others.
//!
//! The traits here carry the bounds of [`tool_fn`](super::tool_fn) one by one, each with a message of its own. So the
//! compiler says *which* part of a signature does not fit. With one `where` clause for all bounds it would say "the
//! trait `Fn` is not implemented", for a missing `derive(JsonSchema)` as well as for a missing `async`.
//!
//! The marker types [`WithArgs`] and [`WithContext`] make two blanket implementations possible that would overlap
//! without a parameter: a function of one argument and a function of two are never the same type, but the compiler does
//! not use that.

use std::any::Any;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::RunContext;
use crate::outcome::{ToolError, ToolReturn};

/// The functions that [`tool_fn`](super::tool_fn) takes. Not meant to be implemented: the parameter `M` distinguishes
/// the two signatures.
///
/// Both signatures are taken by the same function:
///
/// ```
/// use countersign::{RunContext, ToolError, schemars, tool_fn};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Note { text: String }
///
/// async fn keep(note: Note) -> Result<String, ToolError> { Ok(note.text) }
/// async fn sign(cx: RunContext, note: Note) -> Result<String, ToolError> {
///     Ok(format!("{} ({})", note.text, cx.run_id()))
/// }
///
/// let tools = [tool_fn("keep", "Keeps a note", keep), tool_fn("sign", "Signs a note", sign)];
/// assert_eq!(tools[1].definition().parameters()["required"][0], "text", "the context is no argument of the model");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    label = "not `async fn(A) -> Result<T, E>`",
    note = "a tool is `async fn(A) -> Result<T, E>` or `async fn(RunContext, A) -> Result<T, E>`, with one type `A` for all of its arguments",
    note = "a function that is not async is a tool with `blocking_tool_fn`"
)]
pub trait IntoToolFn<M>: Send + Sync + 'static {
    /// The type of the tool's arguments.
    type Args;

    /// The return type of the function.
    type Output;

    /// The future that the function returns.
    type Future: Future<Output = Self::Output>;

    /// Calls the function; one without a context ignores `cx`.
    fn call(&self, cx: RunContext, args: Self::Args) -> Self::Future;
}

/// Marks the functions that take only the arguments.
#[derive(Debug)]
pub struct WithArgs<A>(PhantomData<A>);

/// Marks the functions that take the context and the arguments.
#[derive(Debug)]
pub struct WithContext<A>(PhantomData<A>);

impl<F, Fut, A> IntoToolFn<WithArgs<A>> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future,
{
    type Args = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn call(&self, _: RunContext, args: A) -> Fut {
        self(args)
    }
}

impl<F, Fut, A> IntoToolFn<WithContext<A>> for F
where
    F: Fn(RunContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future,
{
    type Args = A;
    type Output = Fut::Output;
    type Future = Fut;

    fn call(&self, cx: RunContext, args: A) -> Fut {
        self(cx, args)
    }
}

/// The arguments of a tool: every type that implements `serde::Deserialize` and [`schemars::JsonSchema`]. Not meant to
/// be implemented.
///
/// The doc comments of the type and its fields become the descriptions in the schema that the model reads. Unknown
/// fields are ignored unless the type says `#[serde(deny_unknown_fields)]`, which is the safer choice: an approver sees
/// every field that the model sent, and should not approve one that has no effect.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "cannot be read from JSON, or has no JSON Schema",
    note = "derive both: `#[derive(serde::Deserialize, schemars::JsonSchema)]`, with `use countersign::schemars;`"
)]
pub trait ToolArgs: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArgs for A {}

/// The return type of a tool's function: a `Result`. Not meant to be implemented.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "not a `Result`",
    note = "a tool returns `Result<T, E>`: `T` implements `serde::Serialize`, and `E` is `countersign::ToolError`, `anyhow::Error`, `countersign::BoxError`, `String` or any `std::error::Error`",
    note = "where it cannot fail, return `Ok::<_, ToolError>(value)`"
)]
pub trait IntoToolReturn: 'static {
    /// Converts the value to JSON for the model.
    ///
    /// # Errors
    /// The error of the tool, or one for a value that cannot be written as JSON.
    fn into_tool_return(self) -> Result<ToolReturn, ToolError>;
}

impl<T, E> IntoToolReturn for Result<T, E>
where
    T: Serialize + 'static,
    E: IntoToolError,
{
    /// A [`ToolReturn`] is returned as it is, any other value as JSON.
    ///
    /// A value that cannot be written as JSON (a map whose keys are not strings) fails the call with a text that says
    /// that the tool *ran*: the model should not run it again because of the form of its result.
    fn into_tool_return(self) -> Result<ToolReturn, ToolError> {
        let value = self.map_err(IntoToolError::into_tool_error)?;
        if let Some(value) = (&value as &dyn Any).downcast_ref::<ToolReturn>() {
            return Ok(value.clone());
        }
        serde_json::to_value(value).map(ToolReturn::new).map_err(|error| {
            format!("The tool ran, and what it gave cannot be written as JSON: {error}.").into()
        })
    }
}

/// The error type of a tool's function: every type that converts into a [`ToolError`]. Not meant to be implemented.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "no error",
    note = "implement `std::error::Error` for it, or return `countersign::ToolError`, `anyhow::Error`, `countersign::BoxError` or `String`, which `?` and `map_err` convert into"
)]
pub trait IntoToolError: 'static {
    /// Converts the error, which decides what becomes of the call.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError> + 'static> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}
