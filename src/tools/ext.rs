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

/// The wrappers as methods, on every [`Toolset`](crate::Toolset) and on [`Tools`].
pub trait ToolsExt: Into<Tools> + Sized {
    /// Puts layers around the calls: [middleware](crate::ToolMiddleware), tower's own, yours. The first layer of a
    /// `ServiceBuilder` is outermost.
    ///
    /// The layers are applied when the tools are first listed or called, inside the runtime, because some of tower's
    /// layers (`buffer`) spawn a task.
    ///
    /// Each `layered` adds a nested future and uses stack. A thread of 2 MiB has room for some 250 of them without
    /// optimisations, and some 800 with. Put many layers into one `ServiceBuilder` or one [`Chain`](crate::middleware::Chain),
    /// whose 1 000 members use no more stack than one.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::{Decision, FunctionToolset, ToolsExt, decide_fn};
    /// use tower::{ServiceBuilder, timeout::TimeoutLayer};
    ///
    /// let tools = FunctionToolset::new().layered(
    ///     ServiceBuilder::new()
    ///         .layer(decide_fn(|_, _| Decision::ask("sure?")))
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

    /// Asks for an approval of every call. Two of these wrappers around one tool ask once.
    fn approval_required(self) -> Tools {
        self.layered(AskAll.into_layer())
    }

    /// Asks for an approval of the calls for which the predicate is `true`. The predicate gets validated arguments.
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

    /// Asks for an approval of the calls for which an async predicate is `true`.
    fn approval_required_if_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.layered(AskIfAsync(predicate).into_layer())
    }

    /// Renames every tool to `{prefix}_{name}`, for the layers and the model outside.
    fn prefixed(self, prefix: &str) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::Prefix(format!("{prefix}_"))))
    }

    /// Renames tools, given as pairs of the new name and the old one. The other tools keep their names. A new name that
    /// is taken is an error when the tools are listed; an old name that is not listed (a filter inside hides the tool)
    /// is no error.
    fn renamed<'a>(self, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::map(names)))
    }

    /// Hides the tools for which the predicate is `false`: for the model they do not exist.
    fn filtered<P>(self, predicate: P) -> Tools
    where
        P: Fn(&RunContext, &ToolDefinition) -> bool + Send + Sync + 'static,
    {
        Tools::new(Redefined::filter(self.into(), predicate))
    }

    /// Hides the tools for which an async predicate is `false`.
    fn filtered_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolDefinition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        Tools::new(Redefined::filter_async(self.into(), predicate))
    }

    /// Changes the definitions before each model request: the function may leave tools out, change their descriptions,
    /// or make them stricter, but not add or rename them.
    fn prepared<P>(self, prepare: P) -> Tools
    where
        P: Fn(&RunContext, Vec<ToolDefinition>) -> Vec<ToolDefinition> + Send + Sync + 'static,
    {
        Tools::new(Redefined::prepare(self.into(), prepare))
    }

    /// Changes the definitions before each model request with an async function, as [`prepared`](Self::prepared) does.
    fn prepared_async<P, Fut>(self, prepare: P) -> Tools
    where
        P: Fn(RunContext, Vec<ToolDefinition>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<ToolDefinition>> + Send + 'static,
    {
        Tools::new(Redefined::prepare_async(self.into(), prepare))
    }

    /// Adds metadata to the definitions for which the selector is `true`.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolsExt};
    /// let tools = FunctionToolset::new()
    ///     .with_metadata(|_cx, definition| definition.name().starts_with("read_"), "safe", true);
    /// # let _ = tools;
    /// ```
    fn with_metadata<P>(self, selector: P, key: impl Into<String>, value: impl Into<Value>) -> Tools
    where
        P: Fn(&RunContext, &ToolDefinition) -> bool + Send + Sync + 'static,
    {
        let (key, value) = (key.into(), value.into());
        let add = move |cx: &RunContext, definition: ToolDefinition| match selector(cx, &definition)
        {
            true => definition.with_metadata(key.clone(), value.clone()),
            false => definition,
        };
        self.prepared(move |cx, definitions| {
            definitions.into_iter().map(|it| add(cx, it)).collect()
        })
    }
}

impl<T: Into<Tools>> ToolsExt for T {}
