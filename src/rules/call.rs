//! A call as rules see it.
//!
//! A rule names a tool by where it comes from, and never by a text that a model or a server chose. A call of the turn
//! has its source from the definition that the gate has tied; a call that a program makes by hand has the one that it
//! is given here. A tool of an MCP server has two names: the one that the model uses (perhaps with a prefix), and its
//! own. A pattern matches either, so that renaming a tool around the layer does not move it out of a rule.

use std::path::Path;

use serde_json::{Map, Value};

use crate::call::{ToolCall, ToolSource};

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
#[derive(Debug, Clone)]
pub struct RuleCall<'a> {
    pub(super) tool: &'a str,
    pub(super) source: Option<ToolSource>,
    pub(super) args: &'a Map<String, Value>,
    pub(super) directory: Option<&'a Path>,
}

impl<'a> RuleCall<'a> {
    /// A call of a tool of this program, with its arguments.
    #[must_use]
    pub fn new(tool: &'a str, args: &'a Map<String, Value>) -> Self {
        Self { tool, source: None, args, directory: None }
    }

    /// A call of a tool by the name that patterns and tests in files have: `mcp:SERVER/name`, `set:ID/name`, or the name of
    /// a tool of this program.
    ///
    /// ```
    /// use countersign::rules::{RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let text = "version = 1\n[[rule]]\nid = 'docs'\nallow = 'mcp:docs/search'";
    /// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
    /// let args = json!({"query": "layers"});
    /// let call = RuleCall::named("mcp:docs/search", args.as_object().unwrap());
    /// assert_eq!(call.tool(), "search");
    /// assert!(rules.decide(&call).decision().is_allow());
    /// # Ok::<(), countersign::rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn named(name: &'a str, args: &'a Map<String, Value>) -> Self {
        let split = |kind: &str| name.strip_prefix(kind).and_then(|rest| rest.split_once('/'));
        match (split("mcp:"), split("set:")) {
            (Some((server, tool)), _) => Self::new(tool, args).server(server),
            (None, Some((set, tool))) => Self::new(tool, args).toolset(set),
            (None, None) => Self::new(name, args),
        }
    }

    /// The call of a turn, as a layer sees it.
    #[must_use]
    pub fn of(call: &'a ToolCall) -> Self {
        let definition = call.context().tool_definition();
        let source = definition.and_then(crate::call::ToolDefinition::source);
        Self { source, ..Self::new(call.name(), call.args().as_map()) }
    }

    /// Sets the MCP server that the tool belongs to, under the name that the user's configuration gives it.
    #[must_use]
    pub fn server(mut self, server: &str) -> Self {
        self.source = Some(ToolSource::server(server, self.tool));
        self
    }

    /// Sets the id of the toolset that the tool belongs to.
    #[must_use]
    pub fn toolset(mut self, toolset: &str) -> Self {
        self.source = Some(ToolSource::toolset(toolset, self.tool));
        self
    }

    /// Sets the directory that relative paths of the arguments start in, instead of the root.
    #[must_use]
    pub fn directory(mut self, directory: &'a Path) -> Self {
        self.directory = Some(directory);
        self
    }

    /// The MCP server of the tool, if it has one.
    pub(super) fn server_name(&self) -> Option<&str> {
        self.source.as_ref().filter(|source| source.is_server()).map(ToolSource::set)
    }

    pub(super) fn toolset_id(&self) -> Option<&str> {
        self.source.as_ref().filter(|source| !source.is_server()).map(ToolSource::set)
    }

    /// The name that the tool has in its set or at its server.
    pub(super) fn own_name(&self) -> Option<&str> {
        self.source.as_ref().map(ToolSource::tool)
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
        match self.server_name() {
            Some(server) => write!(f, "mcp:{server}/{}", self.tool),
            None => f.write_str(self.tool),
        }
    }
}
