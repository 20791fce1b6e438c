//! Tools that are Rust functions.
//!
//! A set without an id is identified by the paths of its functions. Otherwise two sets called `functions` would be one
//! to an approval. For example, a program has a `delete` of files and a `delete` of accounts, in two sets without an
//! id: if the schemas agree, it would run the second under an approval of the first. The path is a part of the identity
//! only where there is no id. So if you set an id once, and move functions later, no call is asked about again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{Permit, Tool, Toolset};
use crate::args::Args;
use crate::call::{RunContext, ToolDefinition};
use crate::decision::Preview;
use crate::error::BoxError;
use crate::outcome::{ModelRetry, ToolError, ToolReturn};

/// Tools that are ordinary Rust functions, async or blocking, over a `serde` + `schemars` argument type.
///
/// ```
/// use countersign::{FunctionToolset, ToolError, schemars, tool_fn};
///
/// /// Reads one file.
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct ReadFile { path: String }
///
/// async fn read_file(args: ReadFile) -> Result<String, ToolError> {
///     Ok(std::fs::read_to_string(args.path)?)
/// }
///
/// let tools = FunctionToolset::new().tool(tool_fn("read_file", "Read a text file", read_file));
/// # let _ = tools;
/// ```
#[derive(Clone)]
pub struct FunctionToolset {
    id: String,
    /// No [`id`](Self::id) was set, so each tool is identified by the path of its function.
    unnamed: bool,
    tools: BTreeMap<Arc<str>, Tool>,
    order: Vec<Arc<str>>,
    twice: Option<Arc<str>>,
    max_retries: Option<u32>,
}

impl FunctionToolset {
    /// Creates a set without tools, called `functions` unless it gets an [`id`](Self::id).
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: "functions".into(),
            unnamed: true,
            tools: BTreeMap::new(),
            order: Vec::new(),
            twice: None,
            max_retries: None,
        }
    }

    /// Sets the id of the set, to which approvals are bound: an approval for a tool of one set does not cover a tool of
    /// another.
    ///
    /// Without an id, sets are distinguished by the paths of their functions (`my_crate::mail::send`). A call is then
    /// asked about again when its function moves to another module, and two closures of one function are not
    /// distinguished. Set an id in a program that stores pending calls.
    #[must_use]
    pub fn id(mut self, id: impl Into<String>) -> Self {
        (self.id, self.unnamed) = (id.into(), false);
        self
    }

    /// Limits how often the model may try again with each tool of the set, in place of the limit of the
    /// [agent](crate::Agent::max_retries). A tool's [own limit](Tool::max_retries) takes precedence.
    ///
    /// The retries are counted for each tool and run. Several failures in one response count once, as the model made
    /// all of the calls before it saw a failure, and a response in which the tool only succeeds restores the whole
    /// number.
    ///
    /// ```
    /// use countersign::{FunctionToolset, RunContext, ToolError, Toolset, schemars, tool_fn};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Query { text: String }
    /// async fn search(query: Query) -> Result<String, ToolError> { Ok(query.text) }
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let set = FunctionToolset::new()
    ///     .max_retries(3)
    ///     .tool(tool_fn("search", "Searches", search))
    ///     .tool(tool_fn("lookup", "Looks up", search).max_retries(0));
    /// let listed = set.definitions(&RunContext::default()).await?;
    /// assert_eq!(listed.iter().map(|it| it.max_retries()).collect::<Vec<_>>(), [Some(3), Some(0)]);
    /// # Ok::<(), countersign::BoxError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn max_retries(mut self, max: u32) -> Self {
        self.max_retries = Some(max);
        self
    }

    /// Adds a tool. Two tools with the same name are an error when the tools are listed.
    #[must_use]
    pub fn tool(mut self, tool: Tool) -> Self {
        let name = Arc::clone(tool.definition().shared_name());
        self.order.push(Arc::clone(&name));
        if self.tools.insert(Arc::clone(&name), tool).is_some() {
            self.twice = Some(name);
        }
        self
    }
}

impl Default for FunctionToolset {
    fn default() -> Self {
        Self::new()
    }
}

impl Toolset for FunctionToolset {
    fn id(&self) -> &str {
        &self.id
    }

    async fn definitions(&self, _: &RunContext) -> Result<Vec<ToolDefinition>, BoxError> {
        if let Some(name) = &self.twice {
            return Err(crate::error::UserError::ToolConflict {
                name: name.to_string(),
                first: format!("toolset `{}`", self.id),
                second: "the same toolset".into(),
            }
            .into());
        }
        let tools = self.order.iter().filter_map(|name| self.tools.get(name));
        let definition = |tool: &Tool| {
            let definition = tool.definition().clone();
            let definition = match self.unnamed {
                true => definition.function(tool.function()),
                false => definition,
            };
            match definition.max_retries().or(self.max_retries) {
                Some(max) => definition.with_max_retries(max),
                None => definition,
            }
        };
        Ok(tools.map(definition).collect())
    }

    fn validate(&self, tool: &str, args: &Args) -> Result<(), String> {
        self.tools.get(tool).map_or(Ok(()), |tool| tool.validate(args))
    }

    async fn preview(
        &self,
        cx: &RunContext,
        tool: &str,
        args: &Args,
    ) -> Result<Vec<Preview>, BoxError> {
        match self.tools.get(tool) {
            Some(tool) => tool.preview(cx, args).await,
            None => Ok(Vec::new()),
        }
    }

    async fn run(&self, permit: Permit) -> Result<ToolReturn, ToolError> {
        match self.tools.get(permit.tool()) {
            Some(tool) => tool.run(permit).await,
            None => Err(ModelRetry::new(format!("unknown tool `{}`", permit.tool())).into()),
        }
    }
}

impl fmt::Debug for FunctionToolset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FunctionToolset")
            .field("id", &self.id)
            .field("tools", &self.order)
            .finish_non_exhaustive()
    }
}
