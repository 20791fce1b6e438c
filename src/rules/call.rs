//! A call as rules see it.

use std::path::Path;

use serde_json::{Map, Value};

use crate::call::ToolCall;

/// A call as rules see it: the identity of its tool, and the arguments.
///
/// ```
/// use countersign::rules::RuleCall;
/// use serde_json::json;
///
/// let args = json!({"query": "layers"});
/// let call = RuleCall::new("search", args.as_object().unwrap()).server("docs");
/// assert_eq!(call.to_string(), "mcp:docs/search");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct RuleCall<'a> {
    pub(super) tool: &'a str,
    pub(super) own_name: Option<&'a str>,
    pub(super) server: Option<&'a str>,
    pub(super) toolset: Option<&'a str>,
    pub(super) args: &'a Map<String, Value>,
    pub(super) directory: Option<&'a Path>,
}

impl<'a> RuleCall<'a> {
    /// A call of a tool of this program, with its arguments.
    #[must_use]
    pub fn new(tool: &'a str, args: &'a Map<String, Value>) -> Self {
        Self { tool, own_name: None, server: None, toolset: None, args, directory: None }
    }

    /// The call of a turn, as a layer sees it.
    #[must_use]
    pub fn of(call: &'a ToolCall) -> Self {
        let definition = call.context().tool_definition();
        Self {
            own_name: definition.and_then(|it| it.own_name()),
            server: definition.and_then(|it| it.server()),
            toolset: definition.and_then(|it| it.toolset()),
            ..Self::new(call.name(), call.args().as_map())
        }
    }

    /// Sets the MCP server that the tool belongs to, under the name that the user's configuration gives it.
    #[must_use]
    pub fn server(mut self, server: &'a str) -> Self {
        self.server = Some(server);
        self
    }

    /// Sets the id of the toolset that the tool belongs to.
    #[must_use]
    pub fn toolset(mut self, toolset: &'a str) -> Self {
        self.toolset = Some(toolset);
        self
    }

    /// Sets the directory that relative paths of the arguments start in, instead of the root.
    #[must_use]
    pub fn directory(mut self, directory: &'a Path) -> Self {
        self.directory = Some(directory);
        self
    }

    /// The name of the called tool.
    #[must_use]
    pub fn tool(&self) -> &'a str {
        self.tool
    }

    /// The arguments of the call.
    #[must_use]
    pub fn args(&self) -> &'a Map<String, Value> {
        self.args
    }
}

impl std::fmt::Display for RuleCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.server {
            Some(server) => write!(f, "mcp:{server}/{}", self.tool),
            None => f.write_str(self.tool),
        }
    }
}
