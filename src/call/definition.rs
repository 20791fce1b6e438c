//! The definition of a tool, as a toolset makes it, wrappers change it and a gate ties it.
//!
//! A definition is made by a toolset, tied to a gate, changed by wrappers, and read by the turn. When the gate ties
//! the definition, we copy the parts that only the toolset may set into the [`Leaf`], and every reader that matters
//! for safety reads the stricter of both. For example, a wrapper builds a definition anew, with `idempotent` set or
//! an approval left out: it has changed what the model is shown and nothing else.
//!
//! | field | who may change it above the gate | what counts |
//! |---|---|---|
//! | name, description, schema | wrappers | the outermost, for the model |
//! | kind, declared approval | wrappers, stricter | the strictest of all |
//! | sequential | wrappers, to `true` | whether any says so |
//! | retries | wrappers, lower | the lowest |
//! | idempotent, journaled, server | only the toolset | the toolset's |
//!
//! The identity of a tool is its set, its name there and a digest of its schema without prose, so that a better
//! description asks about no pending call again, and another type of an argument does (rules A1, L0).

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::level::{Applied, SetId, Way};
use super::source::ToolSource;
use crate::args::{Args, digest};
use crate::decision::Question;
use crate::origin::ReadLabel;

/// The way in which a tool's calls are executed.
///
/// Exhaustive on purpose: a new kind has to break every `match` that decides where a call runs.
///
/// ```
/// use countersign::call::ToolKind;
/// use countersign::ToolDefinition;
/// use serde_json::json;
///
/// let plain = ToolDefinition::new("rm", json!({"type": "object"}));
/// assert_eq!(plain.kind(), ToolKind::Function);
/// assert_eq!(plain.with_kind(ToolKind::Unapproved).kind(), ToolKind::Unapproved);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// By the toolset, when no layer denies the call or asks about it.
    #[default]
    Function,
    /// By the toolset, and only after an approval.
    Unapproved,
    /// Elsewhere: the call is deferred, and the result is given as an answer. The arguments are not validated here.
    External,
}

impl ToolKind {
    /// The stricter of two kinds: external before unapproved before function.
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::External, _) | (_, Self::External) => Self::External,
            (Self::Unapproved, _) | (_, Self::Unapproved) => Self::Unapproved,
            (Self::Function, Self::Function) => Self::Function,
        }
    }
}

/// The definition of a tool: the name, description and schema that a model is shown, and how its calls are executed.
///
/// ```
/// use countersign::call::ToolKind;
/// use countersign::ToolDefinition;
/// use serde_json::json;
///
/// let definition = ToolDefinition::new("search", json!({"type": "object"}))
///     .with_description("Searches the archive")
///     .with_kind(ToolKind::External);
/// assert_eq!(definition.name(), "search");
/// ```
#[derive(Clone, Serialize, Deserialize)]
pub struct ToolDefinition {
    name: Arc<str>,
    description: Arc<str>,
    parameters: Arc<Value>,
    kind: ToolKind,
    sequential: bool,
    idempotent: bool,
    #[serde(default)]
    journaled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max_retries: Option<u32>,
    /// Shared, as definitions are cloned for each listing, and schemas of results may be in it.
    #[serde(default)]
    metadata: Arc<Map<String, Value>>,
    /// The name of the MCP server that the tool comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    server: Option<Arc<str>>,
    /// The tool at its gate, set by the gate. Wrappers change the fields above, never this one.
    #[serde(skip)]
    leaf: Option<Arc<Leaf>>,
    /// `true` if a definition that this one was made of needs an approval.
    #[serde(skip)]
    asks: bool,
    /// The agent behind the tool, if there is one.
    #[serde(skip)]
    behind: Option<Behind>,
    /// `true` if a wrapper has left the tool out. The definition stays, so that the check of layers that select the
    /// tool by name finds it.
    #[serde(skip)]
    hidden: bool,
    /// The path of the tool's function, where its set has no id of its own.
    #[serde(skip)]
    function: Option<Arc<str>>,
    #[serde(skip)]
    way: Way,
    /// The label of the results, where the toolset or a wrapper has set one.
    #[serde(skip)]
    reads: Option<ReadLabel>,
}

/// A sub-agent, as an opaque value: only the turn knows the type (see `turn::sub_agent`).
pub(crate) type Behind = Arc<dyn Any + Send + Sync>;

/// Checks arguments; the error says what does not fit.
pub(crate) type Validate = Arc<dyn Fn(&Args) -> Result<(), String> + Send + Sync>;

/// One tool at its gate.
pub(crate) struct Leaf {
    /// The id of the toolset. Gates are compared by its address.
    pub(crate) gate: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) kind: ToolKind,
    pub(crate) idempotent: bool,
    pub(crate) journaled: bool,
    pub(crate) validate: Option<Validate>,
    /// The sub-agent behind the tool, if any: its calls are not executed at the gate, but outside of the stack (rule
    /// T7).
    pub(crate) behind: Option<Behind>,
    /// The name of the MCP server that the tool comes from.
    server: Option<Arc<str>>,
    schema: Arc<Value>,
    /// The path of the tool's function, where its set has no id of its own.
    function: Option<Arc<str>>,
    identity: OnceLock<String>,
}

impl Leaf {
    /// Toolset, name and schema, which an approval is bound to (rules A1, L0). For a set without an id of its own, the
    /// path of the tool's function is part of it. Computed at the first use, as most calls need none.
    pub(crate) fn identity(&self) -> &str {
        let function = self.function.as_deref();
        self.identity.get_or_init(|| identity(&self.gate, &self.name, &self.schema, function))
    }

    /// Returns `true` if this is the identity of the tool, or the one that earlier versions stored for it, without the
    /// function.
    pub(crate) fn is(&self, known: &str) -> bool {
        let stored = || identity(&self.gate, &self.name, &self.schema, None);
        self.identity() == known || (self.function.is_some() && stored() == known)
    }
}

impl ToolDefinition {
    /// A tool with the JSON Schema of its arguments.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: "".into(),
            parameters: Arc::new(parameters),
            kind: ToolKind::Function,
            sequential: false,
            idempotent: false,
            journaled: false,
            max_retries: None,
            metadata: Arc::default(),
            server: None,
            leaf: None,
            asks: false,
            behind: None,
            hidden: false,
            function: None,
            way: Way::default(),
            reads: None,
        }
    }

    /// Sets the description that the model reads.
    ///
    /// ```
    /// use countersign::ToolDefinition;
    /// use serde_json::json;
    ///
    /// let definition = ToolDefinition::new("delete_file", json!({"type": "object"}))
    ///     .with_description("Deletes a file")
    ///     .with_sequential(true)
    ///     .with_idempotent(true)
    ///     .with_max_retries(2)
    ///     .with_metadata("group", "files");
    /// assert_eq!((definition.name(), definition.description()), ("delete_file", "Deletes a file"));
    /// assert!(definition.is_sequential() && definition.is_idempotent());
    /// assert_eq!(definition.max_retries(), Some(2));
    /// assert_eq!(definition.metadata()["group"], "files");
    /// ```
    #[must_use]
    pub fn with_description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Replaces the JSON Schema of the arguments that the model is shown.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Value) -> Self {
        self.parameters = Arc::new(parameters);
        self
    }

    /// Sets how calls are executed. A wrapper can make a tool stricter, never laxer: the gate applies the strictest
    /// kind that the toolset and the wrappers set.
    #[must_use]
    pub fn with_kind(mut self, kind: ToolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets whether calls of this tool never overlap other calls of the response (rule T1). A wrapper cannot make a
    /// sequential tool concurrent.
    #[must_use]
    pub fn with_sequential(mut self, sequential: bool) -> Self {
        self.sequential = sequential;
        self
    }

    /// Declares that running a call twice has the same effect as running it once, so that the call may run again when
    /// its end was not seen. The tool gets the same [idempotency key](crate::RunContext::idempotency_key) each time.
    /// Only the toolset can declare it; a wrapper that sets it has no effect.
    #[must_use]
    pub fn with_idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// Sets how often the model may retry this tool within one run, in place of the numbers of its toolset and of the
    /// [agent](crate::Agent::max_retries). A wrapper can lower the number, never raise it.
    #[must_use]
    pub fn with_max_retries(mut self, max: u32) -> Self {
        self.max_retries = Some(max);
        self
    }

    /// Records calls in the [ledger](crate::ledger), if there is one, before they run, also calls that need no
    /// approval. After a crash, a recorded call is not executed again, and a call whose end was not seen is reported.
    /// Only the toolset can declare it; a wrapper that sets it has no effect.
    #[must_use]
    pub fn with_journaled(mut self, journaled: bool) -> Self {
        self.journaled = journaled;
        self
    }

    /// Adds a value that predicates, handlers and pages can read under this key.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.metadata).insert(key.into(), value.into());
        self
    }

    /// Says that the tool reads, and how its results are labelled (rule O1). Of two labels the stricter counts for each
    /// field, so that a wrapper cannot turn text of others into the owner's.
    ///
    /// ```
    /// use countersign::origin::{ReadLabel, TextSource};
    /// use countersign::ToolDefinition;
    /// use serde_json::json;
    ///
    /// let page = ToolDefinition::new("fetch", json!({"type": "object"})).with_reads(ReadLabel::others("web"));
    /// let twice = page.with_reads(ReadLabel::own());
    /// assert_eq!(twice.reads().unwrap().source_of("/title"), TextSource::others("web"));
    /// ```
    #[must_use]
    pub fn with_reads(mut self, label: ReadLabel) -> Self {
        self.reads = Some(match self.reads.take() {
            Some(known) => known.and(label),
            None => label,
        });
        self
    }

    /// The label of the tool's results. If the tool has none, its results count as text of others.
    #[must_use]
    pub fn reads(&self) -> Option<&ReadLabel> {
        self.reads.as_ref()
    }

    /// Sets the name of the MCP server that the tool comes from, as the user's configuration names it. Only the toolset
    /// can declare it; a wrapper that sets it has no effect.
    ///
    /// ```
    /// use countersign::call::ToolSource;
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{ToolDefinition, Turn};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let definition = ToolDefinition::new("read", json!({"type": "object"})).with_server("files");
    /// let listed = Turn::new(ExternalToolset::new("mcp:files", [definition])).definitions().await?;
    /// assert_eq!(listed[0].source(), Some(ToolSource::server("files", "read")));
    /// # Ok::<(), countersign::Error>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn with_server(mut self, name: impl Into<Arc<str>>) -> Self {
        self.server = Some(name.into());
        self
    }

    /// The source of the tool: its toolset or MCP server, and its name there, not the names that wrappers give it.
    /// Layers identify a tool by it. `None` until the definition has been listed through [`Tools`](crate::Tools).
    ///
    /// ```
    /// use countersign::call::ToolSource;
    /// use countersign::toolset::ExternalToolset;
    /// use countersign::{ToolDefinition, ToolsExt, Turn};
    /// use serde_json::json;
    ///
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let definition = ToolDefinition::new("open_tab", json!({"type": "object"}));
    /// assert_eq!(definition.source(), None);
    ///
    /// let tools = ExternalToolset::new("browser", [definition]).prefixed("my");
    /// let listed = Turn::new(tools).definitions().await?;
    /// assert_eq!(listed[0].name(), "my_open_tab");
    /// assert_eq!(listed[0].source(), Some(ToolSource::toolset("browser", "open_tab")));
    /// # Ok::<(), countersign::Error>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn source(&self) -> Option<ToolSource> {
        let leaf = self.leaf.as_ref()?;
        let name = Arc::clone(&leaf.name);
        Some(match &leaf.server {
            Some(server) => ToolSource::server(Arc::clone(server), name),
            None => ToolSource::toolset(Arc::clone(&leaf.gate), name),
        })
    }

    /// The name of the tool at this level of the stack; wrappers inside may know it under another one.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The description that the model reads.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn parameters(&self) -> &Value {
        &self.parameters
    }

    /// The way in which calls are executed: the strictest kind that the toolset and the wrappers set.
    #[must_use]
    pub fn kind(&self) -> ToolKind {
        self.leaf.as_ref().map_or(self.kind, |leaf| leaf.kind.stricter(self.kind))
    }

    /// Returns `true` if the toolset or any wrapper declares that calls need an approval. That also holds for a tool
    /// that another wrapper makes external.
    pub(crate) fn needs_approval(&self) -> bool {
        let declared = [Some(self.kind), self.leaf.as_ref().map(|leaf| leaf.kind)];
        self.asks || declared.contains(&Some(ToolKind::Unapproved))
    }

    /// The question about every call of a tool that is declared to need an approval.
    pub(crate) fn declared_question(&self) -> Option<Question> {
        let leaf = self.leaf().filter(|_| self.needs_approval())?;
        Some(Question::of(tool_layer(&leaf.name), "declared"))
    }

    /// Returns `true` if calls of this tool never overlap other calls of the response.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        self.sequential
    }

    /// Returns `true` if running a call twice has the same effect as running it once, as the toolset declares.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.leaf.as_ref().map_or(self.idempotent, |leaf| leaf.idempotent)
    }

    /// The number of times the model may retry this tool within one run; `None` where the agent decides.
    #[must_use]
    pub fn max_retries(&self) -> Option<u32> {
        self.max_retries
    }

    /// The values that were added for predicates, handlers and pages, by key.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Makes the tool one whose calls this agent executes.
    pub(crate) fn agent(mut self, behind: Behind) -> Self {
        self.behind = Some(behind);
        self
    }

    /// Sets the path of the tool's function, which identifies the tool in a set without an id of its own.
    pub(crate) fn function(mut self, path: impl Into<Arc<str>>) -> Self {
        self.function = Some(path.into());
        self
    }

    /// Leaves the tool out, as a wrapper does that does not offer it.
    pub(crate) fn hide(mut self) -> Self {
        self.hidden = true;
        self
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.hidden
    }

    pub(crate) fn with_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.name
    }

    pub(crate) fn leaf(&self) -> Option<&Arc<Leaf>> {
        self.leaf.as_ref()
    }

    /// Limits a definition that a wrapper has made to what the wrapper may change: the tool and the way to its gate are
    /// those of the given definition, and nothing is laxer than there.
    pub(crate) fn made_of(mut self, given: &Self) -> Self {
        self.leaf.clone_from(&given.leaf);
        self.way.clone_from(&given.way);
        self.asks |= given.needs_approval();
        self.kind = self.kind.stricter(given.kind);
        self.sequential |= given.sequential;
        self.max_retries = [self.max_retries, given.max_retries].into_iter().flatten().min();
        match (&self.reads, &given.reads) {
            (Some(own), Some(given)) if own != given => {
                self.reads = Some(own.clone().and(given.clone()));
            }
            (None, given) => self.reads.clone_from(given),
            (Some(_), _) => {}
        }
        self
    }

    /// Records that calls go through this member of a combined set, and no other.
    pub(crate) fn through(mut self, set: &SetId, member: usize) -> Self {
        self.way.through(set, member);
        self
    }

    /// Records that calls go through the layers of this level.
    pub(crate) fn within(mut self, level: Arc<dyn Applied>) -> Self {
        self.way.within(level);
        self
    }

    /// The levels and combined sets that calls go through on their way to the gate.
    pub(crate) fn way(&self) -> &Way {
        &self.way
    }

    /// Ties the definition to its gate. The way to the gate begins here.
    pub(crate) fn at_gate(mut self, gate: &Arc<str>, validate: Option<Validate>) -> Self {
        let leaf = Leaf {
            gate: Arc::clone(gate),
            name: Arc::clone(&self.name),
            kind: self.kind,
            idempotent: self.idempotent,
            journaled: self.journaled,
            validate,
            behind: self.behind.clone(),
            server: self.server.clone(),
            schema: Arc::clone(&self.parameters),
            function: self.function.clone(),
            identity: OnceLock::new(),
        };
        self.leaf = Some(Arc::new(leaf));
        self.way = Way::default();
        self
    }
}

impl fmt::Debug for ToolDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDefinition")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("sequential", &self.sequential)
            .field("idempotent", &self.idempotent)
            .finish_non_exhaustive()
    }
}

/// Toolset, name and a digest of the schema, which an approval is bound to (rules A1, L0). Descriptions and titles are
/// left out of the digest, so that a change of wording makes no approval void.
fn identity(toolset: &str, name: &str, parameters: &Value, function: Option<&str>) -> String {
    let schema = digest(&without_prose(parameters));
    crate::args::canonical(&match function {
        Some(function) => json!([toolset, name, schema, function]),
        None => json!([toolset, name, schema]),
    })
}

/// A schema without descriptions, titles, examples and comments.
fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(map.iter().filter_map(schema_entry).collect()),
        Value::Array(items) => items.iter().map(without_prose).collect(),
        other => other.clone(),
    }
}

/// The value of `properties` is a map from the user's own names to schemas, so we keep the names in it: a tool may
/// have an argument called `title`. In a schema itself, `title` is prose. The two levels look alike in JSON. If we
/// treated them alike, we would drop an argument from the digest.
fn schema_entry((key, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match key.as_str() {
        "$comment" | "$schema" | "description" | "examples" | "title" => return None,
        // The keys in these objects are the user's names (a property may be called `title`), not keywords.
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            match value {
                Value::Object(map) => Value::Object(
                    map.iter()
                        .map(|(name, schema)| (name.clone(), without_prose(schema)))
                        .collect(),
                ),
                other => other.clone(),
            }
        }
        // These values are data, not schemas.
        "const" | "default" | "enum" | "required" => value.clone(),
        _ => without_prose(value),
    };
    Some((key.clone(), value))
}

/// The layer name of questions that the tool itself asks.
pub(crate) fn tool_layer(name: &str) -> String {
    format!("tool `{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_no_part_of_the_identity() {
        let plain = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
        let prose = json!({"type": "object", "title": "Args", "description": "d", "required": ["title"],
            "properties": {"title": {"type": "string", "description": "d", "examples": [1]}}});
        let other = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["title"]});
        let identity = |set, name, schema| identity(set, name, schema, None);
        assert_eq!(identity("t", "n", &plain), identity("t", "n", &prose));
        assert_ne!(identity("t", "n", &plain), identity("t", "n", &other));
        assert_ne!(identity("t", "n", &plain), identity("u", "n", &plain));
        assert_ne!(identity("a", "bc", &plain), identity("ab", "c", &plain));
    }

    #[test]
    fn a_set_without_an_id_is_identified_by_its_function_or_its_earlier_identity() {
        let leaf = |function: Option<&str>| {
            let definition = ToolDefinition::new("go", json!({"type": "object"}));
            let definition = match function {
                Some(path) => definition.function(path),
                None => definition,
            };
            let tied = definition.at_gate(&Arc::from("functions"), None);
            Arc::clone(tied.leaf().unwrap())
        };
        let (stored, mail, shred) = (leaf(None), leaf(Some("mail::go")), leaf(Some("shred::go")));
        assert!(mail.is(mail.identity()) && mail.is(stored.identity()));
        assert!(!mail.is(shred.identity()) && !stored.is(mail.identity()));
    }
}
