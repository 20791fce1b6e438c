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
use crate::origin::ReadLabel;

/// The wrappers as methods, on every [`Toolset`](crate::Toolset) and on [`Tools`].
///
/// Wrappers apply from the inside outward, in the order in which they are written: the last one is the one that the
/// model sees. A layer that is written after `prefixed` therefore sees the prefixed names, and one that is written
/// before it sees the names of the toolset.
///
/// ```
/// use countersign::{
///     Decision, FunctionToolset, RunContext, ToolCall, ToolError, ToolMiddleware, ToolMiddlewareExt, ToolsExt, Turn,
///     schemars, tool_fn,
/// };
/// use serde_json::json;
///
/// struct Only(&'static str);
///
/// impl ToolMiddleware for Only {
///     async fn before_tool_call(&self, _cx: &RunContext, call: &ToolCall) -> Decision {
///         if call.name() == self.0 { Decision::allow() } else { Decision::deny(format!("not {}", self.0)) }
///     }
/// }
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(format!("deleted {}", file.path)) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new()
///     .tool(tool_fn("delete", "Deletes a file", delete))
///     .layered(Only("delete").named("inside").into_layer())
///     .prefixed("files")
///     .layered(Only("files_delete").named("outside").into_layer());
///
/// let call = ToolCall::new("c1", "files_delete", json!({"path": "a.log"}));
/// let report = Turn::new(tools).run(vec![call]).await?;
/// assert_eq!(report.calls()[0].outcome().content().unwrap(), "deleted a.log");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
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
    ///
    /// # Errors
    /// A layer that panics while it is applied, or that names a tool which is not there
    /// ([`for_tools`](crate::ToolMiddlewareExt::for_tools)), makes the listing of the tools fail, so that no call of
    /// them runs (rule D4). A layer that does not compile here is explained by the compiler: tower's `rate_limit` is
    /// not `Clone` and needs a `buffer` outside of it.
    fn layered<L>(self, layer: L) -> Tools
    where
        L: ToolLayer<Service: ToolService> + Send + Sync + 'static,
    {
        Tools::new(Layered::new(self.into(), layer))
    }

    /// Asks for an approval of every call. Two of these wrappers around one tool ask once.
    ///
    /// The question has the layer `approval_required` and no reason. It is asked in addition to the questions of other
    /// layers, and one answer covers all of them (rule A1). An agent behind a tool is asked about in the same way,
    /// before it begins.
    ///
    /// ```
    /// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Mail { to: String }
    /// async fn send(mail: Mail) -> Result<String, ToolError> { Ok(format!("sent to {}", mail.to)) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let tools = FunctionToolset::new().tool(tool_fn("send", "Sends a mail", send)).approval_required();
    /// let turn = Turn::new(tools);
    /// let report = turn.run(vec![ToolCall::new("c1", "send", json!({"to": "ann"}))]).await?;
    /// let suspended = report.into_suspended().expect("nothing has run, an answer is needed");
    ///
    /// let answers = suspended.requests().answer().approve("c1").build()?;
    /// let report = turn.resume(suspended, answers).await?;
    /// assert_eq!(report.calls()[0].outcome().content().unwrap(), "sent to ann");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
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
    ///
    /// The predicate gets clones of the context and the call, because its future may outlive the borrow. It runs on
    /// every pass, the approved one included, so that it should give the same value for the same call. While it runs no
    /// body is started, but it counts towards the time of a timeout layer outside.
    ///
    /// ```
    /// use countersign::{FunctionToolset, RunContext, ToolCall, ToolsExt};
    ///
    /// async fn is_new(address: &str) -> bool { address != "ann@example.org" }
    ///
    /// let tools = FunctionToolset::new().approval_required_if_async(|_: RunContext, call: ToolCall| async move {
    ///     is_new(call.args().str("to").unwrap_or_default()).await
    /// });
    /// assert!(format!("{tools:?}").contains("Gate(functions)"));
    /// ```
    fn approval_required_if_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        self.layered(AskIfAsync(predicate).into_layer())
    }

    /// Renames every tool to `{prefix}_{name}`, for the layers and the model outside.
    ///
    /// Inside, the tool keeps its name: for the toolset, for the layers inside, and in the identity that approvals are
    /// bound to. A call by the bare name is a call of an unknown tool, also if it was pending when you added the
    /// prefix.
    fn prefixed(self, prefix: &str) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::Prefix(format!("{prefix}_"))))
    }

    /// Renames tools, given as pairs of the new name and the old one. The other tools keep their names. A new name that
    /// is taken is an error when the tools are listed; an old name that is not listed (a filter inside hides the tool)
    /// is no error.
    ///
    /// ```
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{RunContext, ToolDefinition, ToolsExt};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = || ExternalToolset::new("fs", ["rm", "ls"].map(|name| ToolDefinition::new(name, json!({"type": "object"}))));
    /// let names = async |tools: countersign::Tools| -> Result<Vec<String>, countersign::BoxError> {
    ///     let listed = tools.definitions(&RunContext::default()).await?;
    ///     Ok(listed.iter().map(|it| it.name().to_owned()).collect())
    /// };
    /// assert_eq!(names(set().renamed([("delete_file", "rm")])).await?, ["delete_file", "ls"]);
    /// assert_eq!(names(set().renamed([("rm", "ls"), ("ls", "rm")])).await?, ["ls", "rm"], "two names may be exchanged");
    /// assert!(names(set().renamed([("ls", "rm")])).await.is_err(), "there is a tool `ls` already");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    fn renamed<'a>(self, names: impl IntoIterator<Item = (&'a str, &'a str)>) -> Tools {
        Tools::new(Renamed::new(self.into(), Naming::map(names)))
    }

    /// Hides the tools for which the predicate is `false`: for the model they do not exist.
    ///
    /// The predicate runs whenever the tools are listed, once per response of the model, and may read the run's
    /// dependencies. A call of a hidden tool is answered like that of an unknown one. Hiding is no decision about
    /// calls: no reason reaches the model, and an approved call whose tool is hidden by then does not run. To refuse
    /// calls, deny them.
    ///
    /// ```
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{RunContext, ToolDefinition, ToolsExt};
    /// use serde_json::json;
    ///
    /// struct Admin(bool);
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = ExternalToolset::new("fs", ["rm", "ls"].map(|name| ToolDefinition::new(name, json!({"type": "object"}))));
    /// let tools = set.filtered(|cx, it| it.name() != "rm" || cx.deps::<Admin>().is_ok_and(|admin| admin.0));
    ///
    /// assert_eq!(tools.definitions(&RunContext::default()).await?.len(), 1);
    /// assert_eq!(tools.definitions(&RunContext::default().with_deps(Admin(true))).await?.len(), 2);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    fn filtered<P>(self, predicate: P) -> Tools
    where
        P: Fn(&RunContext, &ToolDefinition) -> bool + Send + Sync + 'static,
    {
        Tools::new(Redefined::filter(self.into(), predicate))
    }

    /// Hides the tools for which an async predicate is `false`.
    ///
    /// Use it for a decision that needs I/O, for example the rights of a user in a directory. The predicate runs for
    /// one tool after the other. If you have many tools, ask for all rights at once, and keep them in the run's
    /// dependencies.
    fn filtered_async<P, Fut>(self, predicate: P) -> Tools
    where
        P: Fn(RunContext, ToolDefinition) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = bool> + Send + 'static,
    {
        Tools::new(Redefined::filter_async(self.into(), predicate))
    }

    /// Changes the definitions before each model request: the function may leave tools out, change their descriptions,
    /// or make them stricter, but not add or rename them.
    ///
    /// Each returned definition is tied to the given one of the same name: a definition that it built anew reaches the
    /// same gate, and none becomes laxer than it was (an approval stays required, `sequential` stays set, the number of
    /// retries only falls).
    ///
    /// ```
    /// use countersign::call::ToolKind;
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{RunContext, ToolDefinition, ToolsExt};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = || ExternalToolset::new("browser", [ToolDefinition::new("open_tab", json!({"type": "object"}))]);
    /// let tools = set().prepared(|_, listed| {
    ///     listed.into_iter().map(|it| it.with_description("Opens a tab").with_kind(ToolKind::Function)).collect()
    /// });
    /// let listed = tools.definitions(&RunContext::default()).await?;
    /// assert_eq!(listed[0].description(), "Opens a tab");
    /// assert_eq!(listed[0].kind(), ToolKind::External, "a wrapper makes no tool laxer");
    ///
    /// let tools = set().prepared(|_, _| vec![ToolDefinition::new("other", json!({"type": "object"}))]);
    /// assert!(tools.definitions(&RunContext::default()).await.is_err(), "a wrapper adds no tool");
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
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

    /// Says that the tool of this name reads, and how its results are labelled (rule O1): for tools of a server, or of
    /// another crate. Of two labels the stricter counts for each field.
    ///
    /// ```
    /// use countersign::origin::{ReadLabel, TextSource};
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{RunContext, ToolDefinition, ToolsExt};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = ExternalToolset::new("crm", ["contacts", "tickets"].map(|name| ToolDefinition::new(name, json!({}))));
    /// let tools = set
    ///     .reads("contacts", ReadLabel::own())
    ///     .reads("tickets", ReadLabel::others("mail").own_fields(["/*/id"]));
    /// let listed = tools.definitions(&RunContext::default()).await?;
    /// assert_eq!(listed[0].reads().unwrap().source_of("/0/email"), TextSource::Own);
    /// assert_eq!(listed[1].reads().unwrap().source_of("/0/sender"), TextSource::others("mail"));
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    fn reads(self, tool: impl Into<String>, label: ReadLabel) -> Tools {
        let tool = tool.into();
        let add = move |definition: ToolDefinition| match definition.name() == tool {
            true => definition.with_reads(label.clone()),
            false => definition,
        };
        self.prepared(move |_, definitions| definitions.into_iter().map(&add).collect())
    }

    /// Adds metadata to the definitions for which the selector is `true`.
    ///
    /// Metadata is for the host: predicates, middleware ([`RunContext::tool_definition`]), handlers and surfaces read
    /// it, and the model does not get it. A value of the same key replaces that of the toolset or of a wrapper inside.
    ///
    /// ```
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{RunContext, ToolDefinition, ToolsExt};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = ExternalToolset::new("fs", ["rm", "ls"].map(|name| ToolDefinition::new(name, json!({"type": "object"}))));
    /// let tools = set.with_metadata(|_cx, it| it.name() == "rm", "danger", 3);
    /// let listed = tools.definitions(&RunContext::default()).await?;
    /// assert_eq!((listed[0].metadata().get("danger"), listed[1].metadata().len()), (Some(&json!(3)), 0));
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
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
