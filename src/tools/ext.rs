//! The methods that put wrappers around toolsets and `Tools`.

use std::future::Future;

use serde_json::Value;

use super::approval::{AskAll, AskIf, AskIfAsync};
use super::definitions::Redefined;
use super::layered::Layered;
use super::names::{Naming, Renamed};
use super::{ToolLayer, ToolService, Tools};
use crate::call::{RunContext, ToolCall, ToolDefinition};
use crate::layer::ToolMiddlewareExt;

/// The wrappers, on every toolset and on [`Tools`].
pub trait ToolsExt: Into<Tools> + Sized {
    /// Puts layers around the calls: [middleware](crate::ToolMiddleware), tower's own, yours. The layer that
    /// `ServiceBuilder` is given first is outermost.
    ///
    /// The layers are applied when the tools are first listed or called, inside the runtime, as some of tower's (`buffer`)
    /// start a task.
    ///
    /// Each `layered` is one more future that polls the next, and takes stack. On a thread of 2 MiB some 250 of them fit
    /// without optimisations, and some 800 with: many layers belong into one `ServiceBuilder` or one
    /// [`Chain`](crate::Chain), of which 1 000 members take no more stack than one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::{Decision, FunctionToolset, ToolsExt, decide_fn};
    /// use tower::{ServiceBuilder, timeout::TimeoutLayer};
    ///
    /// let tools = FunctionToolset::new().layered(
    ///     ServiceBuilder::new()
    ///         .layer(decide_fn(|_| Decision::ask("sure?")))
    ///         .layer(TimeoutLayer::new(Duration::from_secs(30))), // measures the tool, never the person
    /// );
    /// # let _ = tools;
    /// ```
    fn layered<L>(self, layer: L) -> Tools
    where
        L: ToolLayer<Service: ToolService> + Send + Sync + 'static,
    {
        Tools::new(Layered::new(self.into(), layer))
    }

    /// Asks about every call. Two of these ask once.
    fn approval_required(self) -> Tools {
        self.layered(AskAll.into_layer())
    }

    /// Asks about the calls that the predicate picks. It sees validated arguments.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolsExt};
    /// let tools = FunctionToolset::new()
    ///     .approval_required_if(|_cx, call| call.name() == "delete_file");
    /// # let _ = tools;
    /// ```
    fn approval_required_if<P>(self, predicate: P) -> Tools
    where
        P: Fn(&RunContext, &ToolCall) -> bool + Send + Sync + 'static,
    {
        self.layered(AskIf(predicate).into_layer())
    }

    /// Asks about the calls that an async predicate picks.
    fn approval_required_if_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.layered(AskIfAsync(predicate).into_layer())
    }

    /// Calls the tools `{prefix}_{name}` outside.
    fn prefixed(self, prefix: &str) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::Prefix(format!("{prefix}_"))))
    }

    /// Renames tools: pairs of the new name and the old one. The others keep their names; a new name that is taken is
    /// an error when the tools are listed. A tool that is not there (a filter inside hides it) is not renamed.
    fn renamed<'a>(self, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::map(names)))
    }

    /// Hides the tools that the predicate does not pick: to the model they do not exist.
    fn filtered<P>(self, predicate: P) -> Tools
    where
        P: Fn(&RunContext, &ToolDefinition) -> bool + Send + Sync + 'static,
    {
        Tools::new(Redefined::filter(self.into(), predicate))
    }

    /// Hides the tools that an async predicate does not pick.
    fn filtered_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolDefinition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        Tools::new(Redefined::filter_async(self.into(), predicate))
    }

    /// Changes the definitions before each model request: leaves some out, describes them otherwise, makes them
    /// stricter. It cannot add or rename tools.
    fn prepared<P>(self, prepare: P) -> Tools
    where
        P: Fn(&RunContext, Vec<ToolDefinition>) -> Vec<ToolDefinition> + Send + Sync + 'static,
    {
        Tools::new(Redefined::prepare(self.into(), prepare))
    }

    /// Changes the definitions before each model request, by an async function.
    fn prepared_async<P, Fut>(self, prepare: P) -> Tools
    where
        P: Fn(RunContext, Vec<ToolDefinition>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<ToolDefinition>> + Send + 'static,
    {
        Tools::new(Redefined::prepare_async(self.into(), prepare))
    }

    /// Adds metadata to the definitions that the selector picks.
    fn with_metadata<P>(self, selector: P, key: impl Into<String>, value: impl Into<Value>) -> Tools
    where
        P: Fn(&ToolDefinition) -> bool + Send + Sync + 'static,
    {
        let (key, value) = (key.into(), value.into());
        let add = move |definition: ToolDefinition| match selector(&definition) {
            true => definition.metadata(key.clone(), value.clone()),
            false => definition,
        };
        self.prepared(move |_, definitions| definitions.into_iter().map(&add).collect())
    }
}

impl<T: Into<Tools>> ToolsExt for T {}
