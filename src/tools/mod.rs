//! Wrappers around toolsets, which take and return [`Tools`], above the one gate of each toolset.
//!
//! | wrapper | does |
//! |---|---|
//! | [`layered`](ToolsExt::layered) | puts layers around the calls: ours, yours, tower's |
//! | [`approval_required`](ToolsExt::approval_required) | asks about every call, or those that a predicate selects |
//! | [`prefixed`](ToolsExt::prefixed), [`renamed`](ToolsExt::renamed) | renames tools |
//! | [`filtered`](ToolsExt::filtered) | hides tools |
//! | [`prepared`](ToolsExt::prepared) | changes definitions before each model request |
//! | [`with_metadata`](ToolsExt::with_metadata) | adds metadata to definitions |
//! | [`Tools::combined`] | several sets as one |
//!
//! Every wrapper uses the names at its own level: the names that the wrappers inside have given.
//!
//! ```
//! use countersign::{FunctionToolset, RunContext, ToolError, ToolsExt, Tools, schemars, tool_fn};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct File { path: String }
//!
//! async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let files = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete));
//! let tools = Tools::combined([files.approval_required().prefixed("files")]);
//! let names: Vec<_> = tools.definitions(&RunContext::default()).await?.iter().map(|it| it.name().to_owned()).collect();
//! assert_eq!(names, ["files_delete"]);
//! # Ok::<(), countersign::BoxError>(()) }).unwrap();
//! ```
//!
//! # Order
//!
//! Wrappers are read from the inside outward. A call takes the opposite way, from the outermost wrapper to the gate,
//! and its outcome comes back through the same layers. `Debug` shows the wrappers outermost first:
//!
//! ```
//! use countersign::{FunctionToolset, ToolsExt};
//!
//! let tools = FunctionToolset::new().id("files").filtered(|_, it| it.name() != "rm").prefixed("fs");
//! assert_eq!(format!("{tools:?}"), "prefixed(fs_) > filtered > Gate(files)");
//! ```

mod approval;
mod combined;
mod definitions;
mod ext;
mod layer;
mod layered;
mod names;
mod parts;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use tower::Service;

pub use ext::ToolsExt;
pub use layer::{ToolLayer, ToolService};

use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::error::{BoxError, UserError};
use crate::gate::Gate;
use crate::outcome::Outcome;
use crate::toolset::Toolset;

/// A set of tools: their definitions, and one service for their calls, behind a pointer and without type parameters.
/// Wrappers take and return `Tools`; turns and agents take them.
///
/// ```
/// use countersign::toolset::ExternalToolset;
/// use countersign::{FunctionToolset, Tools, ToolsExt};
///
/// let files = FunctionToolset::new().id("files").prefixed("fs").approval_required();
/// let browser = ExternalToolset::new("browser", []);
/// let tools = Tools::combined([files, browser.into()]);
/// # let _ = tools;
/// ```
///
/// `Tools` is cheap to clone, and clones share the layers with their state: a limit that one turn has used up is used
/// up for every turn over the same tools. Build two sets where two users must not share a limit.
///
/// As a [`tower::Service`], `Tools` takes only calls that a turn sends. That is how a router of your own works: it
/// holds several `Tools`, and forwards the call that it was given.
#[derive(Clone)]
pub struct Tools(Arc<dyn Stack>);

/// The object-safe interface behind [`Tools`].
///
/// One trait for wrappers, layers and gates, so that a stack of any depth is one pointer. The two ways through it are
/// separate on purpose: `definitions` runs once per response and may fail or take time, while `call` runs for every
/// attempt and decides nothing about names. Between the two only the definitions carry information, inside of the
/// call's record.
trait Stack: Send + Sync {
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>>;

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>>;

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// The outcome of a call of a tool that does not exist: the model is told so.
fn unknown(call: &ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
    let unknown = Outcome::retry(format!("unknown tool `{}`", call.name()));
    Box::pin(std::future::ready(Ok(unknown)))
}

impl Tools {
    /// A set without tools.
    ///
    /// Use it for an agent that only talks, or as the starting point of a list that you build in a
    /// loop.
    ///
    /// ```
    /// use countersign::{RunContext, Tools};
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// assert!(Tools::none().definitions(&RunContext::default()).await?.is_empty());
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn none() -> Self {
        Self::combined([])
    }

    /// The current definitions for this run, without the tools that wrappers hide.
    ///
    /// # Errors
    /// Fails when two tools have the same name, or with the error of a toolset or wrapper: a server that cannot be
    /// reached.
    ///
    /// This is what a loop of your own sends to its model, once per request. A [`Turn`](crate::Turn) lists the tools
    /// anew when it runs the calls of the response, so that a tool that is gone by then is reported to the model as
    /// unknown.
    pub async fn definitions(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let mut definitions = self.listed(cx).await?;
        definitions.retain(|definition| !definition.is_hidden());
        Ok(definitions)
    }

    /// The current definitions, including the tools that wrappers hide.
    async fn listed(&self, cx: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        let definitions = self.0.definitions(cx).await?;
        one_of_each_name(&definitions)?;
        Ok(definitions)
    }

    fn new(stack: impl Stack + 'static) -> Self {
        Self(Arc::new(stack))
    }
}

/// Refuses two listed tools with the same name, because a call identifies its tool by the name alone.
fn one_of_each_name(definitions: &[ToolDefinition]) -> Result<(), UserError> {
    let mut known = BTreeMap::new();
    for definition in definitions.iter().filter(|definition| !definition.is_hidden()) {
        let from = definition.leaf().map_or("", |leaf| &*leaf.gate);
        if let Some(first) = known.insert(definition.name(), from) {
            let (first, second) = (format!("toolset `{first}`"), format!("toolset `{from}`"));
            return Err(UserError::ToolConflict { name: definition.name().into(), first, second });
        }
    }
    Ok(())
}

impl<T: Toolset> From<T> for Tools {
    fn from(toolset: T) -> Self {
        Self::new(Gate::new(toolset))
    }
}

/// Takes the calls that a turn sends. A call that no turn has sent is refused with an error.
impl Service<ToolCall> for Tools {
    type Response = Outcome;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Outcome, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        match call.record() {
            Ok(_) => self.0.call(call),
            // Refused here, not only at the gate, so that no layer delays the error.
            Err(error) => Box::pin(std::future::ready(Err(error.into()))),
        }
    }
}

impl<T: Toolset> Stack for Gate<T> {
    fn definitions<'a>(
        &'a self,
        cx: &'a RunContext,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, BoxError>> {
        Box::pin(Self::definitions(self, cx))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'static, Result<Outcome, BoxError>> {
        Box::pin(self.clone().enter(call))
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl fmt::Debug for Tools {
    /// The wrappers, outermost first, down to the gates.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.describe(f)
    }
}
