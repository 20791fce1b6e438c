//! A call as rules see it.
//!
//! A rule names a tool by where it comes from, and never by a text that a model or a server chose. A call of the turn
//! has its source from the definition that the gate has tied. If your program makes a call by hand, you give it the
//! source here. A tool of an MCP server has two names: the one that the model uses (perhaps with a prefix), and its
//! own. A pattern matches either: if you rename a tool around the layer, it stays in its rule.

use std::path::Path;

use serde_json::{Map, Value};

use crate::readings::prose::command_field;
use crate::readings::tools::{OF_CLIENT, client_of, client_with, only_reads, toolset_of};
use countersign::call::{ToolCall, ToolSource};
use countersign::origin::Origin;

/// Tools of the vocabulary that read files, and do nothing else.
const READERS: [&str; 4] = ["find_files", "list_files", "read_file", "search_files"];

/// The word of a pattern for the own tools of whichever client calls.
pub(crate) const ANY_CLIENT: &str = "client";

/// A call as rules see it: the identity of its tool, and the arguments.
///
/// ```
/// use countersign_rules::RuleCall;
/// use serde_json::json;
///
/// let args = json!({"query": "layers"});
/// let call = RuleCall::new("search", args.as_object().unwrap()).server("docs");
/// assert_eq!(call.to_string(), "mcp:docs/search");
/// ```
#[derive(Debug, Clone)]
pub struct RuleCall<'a> {
    pub(crate) tool: &'a str,
    pub(crate) source: Option<ToolSource>,
    pub(crate) args: &'a Map<String, Value>,
    pub(crate) directory: Option<&'a Path>,
    /// The origin of the values, if a turn or a door says so.
    pub(crate) origin: Option<Origin>,
    /// The JSON Schema of the tool's arguments.
    pub(crate) schema: Option<&'a Value>,
}

impl<'a> RuleCall<'a> {
    /// A call of a tool of this program, with its arguments.
    #[must_use]
    pub fn new(tool: &'a str, args: &'a Map<String, Value>) -> Self {
        Self { tool, source: None, args, directory: None, origin: None, schema: None }
    }

    /// A call of a tool by the name that patterns and tests in files have: `mcp:SERVER/name`, `set:ID/name`, `claude:name`
    /// for a tool of a coding agent that the table of its tools does not have, `client:name` for one that the tables have,
    /// or the name of a tool of this program.
    ///
    /// ```
    /// use countersign_rules::{RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let text = "version = 1\n[[rule]]\nid = 'docs'\nallow = 'mcp:docs/search'";
    /// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
    /// let args = json!({"query": "layers"});
    /// let call = RuleCall::named("mcp:docs/search", args.as_object().unwrap());
    /// assert_eq!(call.tool(), "search");
    /// assert!(rules.decide(&call).decision().is_allow());
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn named(name: &'a str, args: &'a Map<String, Value>) -> Self {
        let split = |kind: &str| name.strip_prefix(kind).and_then(|rest| rest.split_once('/'));
        match (split("mcp:"), split("set:")) {
            (Some((server, tool)), _) => Self::new(tool, args).server(server),
            (None, Some((set, tool))) => Self::new(tool, args).toolset(set),
            (None, None) => match name.split_once(':') {
                Some((ANY_CLIENT, tool)) => {
                    let call = Self::new(tool, args);
                    match client_with(tool) {
                        Some(client) => call.toolset(&toolset_of(client.name, true)),
                        None => call,
                    }
                }
                Some((client, tool)) if client_of(client).is_some() => {
                    Self::new(tool, args).toolset(&toolset_of(client, false))
                }
                _ => Self::new(name, args),
            },
        }
    }

    /// The call of a turn, as a layer sees it.
    #[must_use]
    pub fn of(call: &'a ToolCall) -> Self {
        let definition = call.context().tool_definition();
        let source = definition.and_then(countersign::call::ToolDefinition::source);
        let schema = definition.map(countersign::call::ToolDefinition::parameters);
        let origin = Some(call.context().origin()).filter(Origin::is_recorded);
        Self { source, schema, origin, ..Self::new(call.name(), call.args().as_map()) }
    }

    /// Sets where the values of the arguments come from, and what the run has read.
    ///
    /// ```
    /// use countersign::decision::ToolDecision;
    /// use countersign::origin::ReadRecord;
    /// use countersign_rules::{RuleCall, Rules};
    /// use serde_json::json;
    ///
    /// let text = "version = 2\n[[rule]]\nid = 'named'\nallow = 'pay'\nwhere.iban.named_by = 'user'";
    /// let rules = Rules::builder().lexical().text("mine.toml", text).load()?;
    /// let args = json!({"iban": "DE89370400440532013000"});
    /// let call = RuleCall::new("pay", args.as_object().unwrap());
    /// assert_eq!(rules.decide(&call).decision(), ToolDecision::Ask, "nothing is recorded");
    /// let record = ReadRecord::new();
    /// record.user_said("Pay to DE89 3704 0044 0532 0130 00");
    /// assert_eq!(rules.decide(&call.origin(record.origin())).decision(), ToolDecision::Allow);
    /// # Ok::<(), countersign_rules::RulesError>(())
    /// ```
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Sets the JSON Schema of the tool's arguments, which says which fields a call may leave out.
    #[must_use]
    pub fn schema(mut self, schema: &'a Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Returns `true` if the tool has this field, and a call may leave it out.
    pub(crate) fn has_optional(&self, field: &str) -> bool {
        let Some(schema) = self.schema else { return false };
        schema.get("properties").is_some_and(|properties| properties.get(field).is_some())
    }

    /// The same call of a tool that only reads.
    pub(crate) fn reading(mut self) -> Self {
        self.origin = self.origin.map(Origin::for_reading);
        self
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
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.source.as_ref().filter(|source| source.is_server()).map(ToolSource::set)
    }

    /// The id of the toolset of the tool; of a tool of a client, the client's name.
    pub(crate) fn toolset_id(&self) -> Option<&str> {
        let own = self.source.as_ref().filter(|source| !source.is_server()).map(ToolSource::set);
        own.map(|id| id.strip_prefix(OF_CLIENT).unwrap_or(id))
    }

    /// The id of the toolset of the tool as it was set, which says of a tool of a client if the table of its tools has it.
    pub(crate) fn toolset_as_set(&self) -> Option<&str> {
        self.source.as_ref().filter(|source| !source.is_server()).map(ToolSource::set)
    }

    /// Returns `true` if the tool is known to write nothing: one of a coding agent's own, or one of the program itself that has
    /// the name of a tool of the vocabulary that reads files. What a tool of a server does, its name does not say.
    pub(crate) fn is_known_to_read(&self) -> bool {
        match &self.source {
            None => READERS.contains(&self.tool),
            Some(_) => self.toolset_as_set().is_some_and(|toolset| only_reads(toolset, self.tool)),
        }
    }

    /// The client that the tool belongs to, if it is not in the table of the client's tools.
    pub(crate) fn unknown_of(&self) -> Option<&str> {
        let own = self.source.as_ref().filter(|source| !source.is_server()).map(ToolSource::set);
        own?.strip_prefix(OF_CLIENT)
    }

    /// The first field that may hold a command, by its name in any form.
    pub(crate) fn field_of_command(&self) -> Option<String> {
        command_field(&Value::Object(self.args.clone()))
    }

    /// The name that the tool has in its set or at its server.
    pub(crate) fn own_name(&self) -> Option<&str> {
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
        match (self.server_name(), self.unknown_of()) {
            (Some(server), _) => write!(f, "mcp:{server}/{}", self.tool),
            (None, Some(client)) => write!(f, "{client}:{}", self.tool),
            (None, None) => f.write_str(self.tool),
        }
    }
}
