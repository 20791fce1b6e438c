//! What is known about a tool.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::level::{Applied, SetId, Way};
use super::tool_layer;
use crate::args::{Args, digest};
use crate::decision::Question;

/// How a tool's calls are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    /// By the toolset, when nobody objects.
    #[default]
    Function,
    /// By the toolset, and only after an approval.
    Unapproved,
    /// Elsewhere: the call is handed out, and the result comes back as an answer. Its arguments are not validated
    /// here.
    External,
}

impl ToolKind {
    /// The one of both that lets less run here.
    fn stricter(self, other: Self) -> Self {
        match (self, other) {
            (Self::External, _) | (_, Self::External) => Self::External,
            (Self::Unapproved, _) | (_, Self::Unapproved) => Self::Unapproved,
            (Self::Function, Self::Function) => Self::Function,
        }
    }
}

/// What a model and a stack know about a tool.
///
/// ```
/// use countersign::{ToolDefinition, ToolKind};
/// use serde_json::json;
///
/// let definition = ToolDefinition::new("search", json!({"type": "object"}))
///     .description("Searches the archive")
///     .kind(ToolKind::External);
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
    #[serde(default)]
    metadata: Map<String, Value>,
    /// The tool behind it, put there by its gate. Wrappers change what is above, never this.
    #[serde(skip)]
    leaf: Option<Arc<Leaf>>,
    /// A definition this one was made of needs an approval.
    #[serde(skip)]
    asks: bool,
    /// The agent behind the tool, if there is one.
    #[serde(skip)]
    behind: Option<Behind>,
    /// A wrapper has left it out. It is kept for layers that are for it by name.
    #[serde(skip)]
    hidden: bool,
    /// The path of the tool's function, where its set has no id of its own.
    #[serde(skip)]
    function: Option<Arc<str>>,
    #[serde(skip)]
    way: Way,
}

/// A sub-agent, as the turn knows it.
pub(crate) type Behind = Arc<dyn Any + Send + Sync>;

/// Checks arguments, or says what does not fit.
pub(crate) type Validate = Arc<dyn Fn(&Args) -> Result<(), String> + Send + Sync>;

/// One tool at its gate.
pub(crate) struct Leaf {
    /// The id of the toolset. Its address tells gates apart.
    pub(crate) gate: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) kind: ToolKind,
    pub(crate) idempotent: bool,
    pub(crate) journaled: bool,
    pub(crate) validate: Option<Validate>,
    /// A sub-agent: calls are not executed at the gate, but outside of the stack (rule T7).
    pub(crate) behind: Option<Behind>,
    schema: Arc<Value>,
    /// The path of the tool's function, where its set has no id of its own.
    function: Option<Arc<str>>,
    identity: OnceLock<String>,
}

impl Leaf {
    /// Toolset, name and schema: what an approval is bound to (rules A1, L0). A set without an id of its own is told from
    /// others by the tool's function. Worked out when somebody is asked.
    pub(crate) fn identity(&self) -> &str {
        let function = self.function.as_deref();
        self.identity.get_or_init(|| identity(&self.gate, &self.name, &self.schema, function))
    }

    /// Whether this is the identity of the tool, or the one that earlier versions stored for it, without the function.
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
            metadata: Map::new(),
            leaf: None,
            asks: false,
            behind: None,
            hidden: false,
            function: None,
            way: Way::default(),
        }
    }

    /// What the model reads about the tool.
    #[must_use]
    pub fn description(mut self, description: impl Into<Arc<str>>) -> Self {
        self.description = description.into();
        self
    }

    /// Replaces the JSON Schema of the arguments that the model is shown.
    #[must_use]
    pub fn parameters(mut self, parameters: Value) -> Self {
        self.parameters = Arc::new(parameters);
        self
    }

    /// How calls are executed. A wrapper can make a tool stricter, never laxer: the gate goes by the strictest that
    /// the toolset and the wrappers say.
    #[must_use]
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Calls of this tool never overlap other calls of the response (rule T1). What is sequential inside stays so.
    #[must_use]
    pub fn sequential(mut self, sequential: bool) -> Self {
        self.sequential = sequential;
        self
    }

    /// Running a call twice does the same as running it once, so that it may run again when its end was not seen.
    /// The tool gets the same [idempotency key](crate::RunContext::idempotency_key) each time. Only the toolset can
    /// say so; on a definition that a wrapper changes it has no effect.
    #[must_use]
    pub fn idempotent(mut self, idempotent: bool) -> Self {
        self.idempotent = idempotent;
        self
    }

    /// How often the model may try again with this tool within one run, in place of what its toolset and the
    /// [agent](crate::Agent::max_retries) say. A wrapper can lower what is said inside it, never raise it.
    #[must_use]
    pub fn max_retries(mut self, max: u32) -> Self {
        self.max_retries = Some(max);
        self
    }

    /// Calls are written down in the [ledger](crate::ledger) before they run, where there is one, also those that nobody
    /// is asked about: a call that was executed is not executed again after a crash, and one whose end was not seen is
    /// reported. Only the toolset can say so; on a definition that a wrapper changes it has no effect.
    #[must_use]
    pub fn journaled(mut self, journaled: bool) -> Self {
        self.journaled = journaled;
        self
    }

    /// Adds something for predicates, handlers and pages.
    #[must_use]
    pub fn metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// The name, as it is called at this level.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the model reads about the tool.
    #[must_use]
    pub fn get_description(&self) -> &str {
        &self.description
    }

    /// The JSON Schema of the arguments.
    #[must_use]
    pub fn get_parameters(&self) -> &Value {
        &self.parameters
    }

    /// How calls are executed: the strictest of what the toolset and the wrappers say.
    #[must_use]
    pub fn get_kind(&self) -> ToolKind {
        self.leaf.as_ref().map_or(self.kind, |leaf| leaf.kind.stricter(self.kind))
    }

    /// Whether calls need an approval: so declared by the toolset or by any wrapper, also when another one hands the
    /// calls out.
    pub(crate) fn needs_approval(&self) -> bool {
        let declared = [Some(self.kind), self.leaf.as_ref().map(|leaf| leaf.kind)];
        self.asks || declared.contains(&Some(ToolKind::Unapproved))
    }

    /// The question about every call of a tool that is declared to need an approval.
    pub(crate) fn declared_question(&self) -> Option<Question> {
        let leaf = self.leaf().filter(|_| self.needs_approval())?;
        Some(Question::of(tool_layer(&leaf.name), "declared"))
    }

    /// Whether calls overlap others.
    #[must_use]
    pub fn is_sequential(&self) -> bool {
        self.sequential
    }

    /// Whether running twice does the same as running once.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.leaf.as_ref().map_or(self.idempotent, |leaf| leaf.idempotent)
    }

    /// How often the model may try again with this tool; `None` where the agent decides.
    #[must_use]
    pub fn get_max_retries(&self) -> Option<u32> {
        self.max_retries
    }

    /// What was added for predicates, handlers and pages.
    #[must_use]
    pub fn get_metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The tool is an agent.
    pub(crate) fn agent(mut self, behind: Behind) -> Self {
        self.behind = Some(behind);
        self
    }

    /// The path of the tool's function, in a set without an id of its own.
    pub(crate) fn function(mut self, path: impl Into<Arc<str>>) -> Self {
        self.function = Some(path.into());
        self
    }

    /// What a wrapper has left out.
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

    /// What a wrapper made of a definition it was given: the same tool on the same way, and nothing laxer.
    pub(crate) fn made_of(mut self, given: &Self) -> Self {
        self.leaf.clone_from(&given.leaf);
        self.way.clone_from(&given.way);
        self.asks |= given.needs_approval();
        self.kind = self.kind.stricter(given.kind);
        self.sequential |= given.sequential;
        self.max_retries = [self.max_retries, given.max_retries].into_iter().flatten().min();
        self
    }

    /// Calls go through this member of a combined set, and no other.
    pub(crate) fn through(mut self, set: &SetId, member: usize) -> Self {
        self.way.through(set, member);
        self
    }

    /// Calls go through the layers of this level.
    pub(crate) fn within(mut self, level: Arc<dyn Applied>) -> Self {
        self.way.within(level);
        self
    }

    /// What calls go through on their way to the gate.
    pub(crate) fn way(&self) -> &Way {
        &self.way
    }

    /// The definition as its gate gives it out.
    pub(crate) fn at_gate(mut self, gate: &Arc<str>, validate: Option<Validate>) -> Self {
        let leaf = Leaf {
            gate: Arc::clone(gate),
            name: Arc::clone(&self.name),
            kind: self.kind,
            idempotent: self.idempotent,
            journaled: self.journaled,
            validate,
            behind: self.behind.clone(),
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

/// Toolset, name and a digest of the schema without its prose: what an approval is bound to (rules A1, L0).
fn identity(toolset: &str, name: &str, parameters: &Value, function: Option<&str>) -> String {
    let schema = digest(&without_prose(parameters));
    crate::args::canonical(&match function {
        Some(function) => json!([toolset, name, schema, function]),
        None => json!([toolset, name, schema]),
    })
}

/// A schema without the parts that are there for readers.
fn without_prose(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => Value::Object(map.iter().filter_map(schema_entry).collect()),
        Value::Array(items) => items.iter().map(without_prose).collect(),
        other => other.clone(),
    }
}

fn schema_entry((key, value): (&String, &Value)) -> Option<(String, Value)> {
    let value = match key.as_str() {
        "$comment" | "$schema" | "description" | "examples" | "title" => return None,
        // The keys of these are names of the user's, not words of JSON Schema.
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
        // The values of these are data.
        "const" | "default" | "enum" | "required" => value.clone(),
        _ => without_prose(value),
    };
    Some((key.clone(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_no_part_of_the_identity_and_everything_else_is() {
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
    fn a_set_without_an_id_is_told_by_the_function_and_known_by_what_earlier_versions_stored() {
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
