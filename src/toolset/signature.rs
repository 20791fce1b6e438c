//! The signatures that a tool's function may have, with the compile errors for those that it may not have.

use std::any::Any;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::call::RunContext;
use crate::outcome::{ToolError, ToolReturn};

/// The functions that [`tool_fn`](super::tool_fn) takes. Not for implementing: the parameter tells the two shapes apart.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool",
    label = "not `async fn(A) -> Result<T, E>`",
    note = "a tool is `async fn(A) -> Result<T, E>` or `async fn(RunContext, A) -> Result<T, E>`, with one type `A` for all of its arguments",
    note = "a function that is not async is a tool with `blocking_tool_fn`"
)]
pub trait IntoToolFn<M>: Send + Sync + 'static {
    /// The type that the arguments are read as.
    type Args;

    /// What the function gives.
    type Output;

    /// The call of the function.
    type Future: Future<Output = Self::Output>;

    /// Calls the function with its context and arguments.
    fn call(&self, cx: RunContext, args: Self::Args) -> Self::Future;
}

/// Marks functions of the arguments only.
#[derive(Debug)]
pub struct WithArgs<A>(PhantomData<A>);

/// Marks functions of the context and the arguments.
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

/// The arguments of a tool: what implements `serde::Deserialize` and [`schemars::JsonSchema`]. Not for implementing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a tool",
    label = "cannot be read from JSON, or has no JSON Schema",
    note = "derive both: `#[derive(serde::Deserialize, schemars::JsonSchema)]`, with `use countersign::schemars;`"
)]
pub trait ToolArgs: DeserializeOwned + JsonSchema + Send + 'static {}

#[diagnostic::do_not_recommend]
impl<A: DeserializeOwned + JsonSchema + Send + 'static> ToolArgs for A {}

/// What the function of a tool gives: a `Result`. Not for implementing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "not a `Result`",
    note = "a tool returns `Result<T, E>`: `T` implements `serde::Serialize`, and `E` is `countersign::ToolError`, `anyhow::Error`, `countersign::BoxError`, `String` or any `std::error::Error`",
    note = "where it cannot fail, return `Ok::<_, ToolError>(value)`"
)]
pub trait IntoToolReturn: 'static {
    /// As the model will see it.
    ///
    /// # Errors
    /// What the tool says instead of a value.
    fn into_tool_return(self) -> Result<ToolReturn, ToolError>;
}

impl<T, E> IntoToolReturn for Result<T, E>
where
    T: Serialize + 'static,
    E: IntoToolError,
{
    /// A [`ToolReturn`] stays what it is.
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

/// The errors of a tool: what converts into a [`ToolError`]. Not for implementing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of a tool",
    label = "no error",
    note = "implement `std::error::Error` for it, or return `countersign::ToolError`, `anyhow::Error`, `countersign::BoxError` or `String`, which `?` and `map_err` convert into"
)]
pub trait IntoToolError: 'static {
    /// What the tool says with it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<ToolError> + 'static> IntoToolError for E {
    fn into_tool_error(self) -> ToolError {
        self.into()
    }
}
