//! A scenario as its file has it: tools, wrappers, a scripted model, scripted handlers, and the steps of the caller.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) tools: Vec<Tool>,
    /// Innermost first.
    #[serde(default)]
    pub(crate) wrappers: Vec<Wrapper>,
    /// One response per model request, over all runs.
    pub(crate) model: Vec<Vec<Part>>,
    pub(crate) output: Vec<String>,
    #[serde(default = "one")]
    pub(crate) max_retries: u32,
    #[serde(default)]
    pub(crate) handlers: Vec<Handler>,
    pub(crate) runs: Vec<Run>,
}

fn one() -> u32 {
    1
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) params: Value,
    #[serde(default)]
    pub(crate) body: Vec<Step>,
    #[serde(default)]
    pub(crate) sequential: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Function,
    Unapproved,
    External,
}

/// The step of a body when `when` holds.
#[derive(Clone, Deserialize)]
pub(crate) struct Step {
    #[serde(default)]
    pub(crate) when: When,
    #[serde(flatten)]
    pub(crate) effect: Effect,
    #[serde(default)]
    pub(crate) metadata: Map<String, Value>,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct When {
    pub(crate) approved: Option<bool>,
    #[serde(default)]
    pub(crate) args: Map<String, Value>,
    pub(crate) nth: Option<u32>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effect {
    Return(Value),
    Echo(True),
    Ticket(True),
    Raise(Raise),
}

/// The value of steps without fields.
#[derive(Clone, Copy, Deserialize)]
#[serde(from = "bool")]
pub(crate) struct True;

impl From<bool> for True {
    fn from(_: bool) -> Self {
        Self
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Raise {
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    Error,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Wrapper {
    #[serde(flatten)]
    pub(crate) wrap: Wrap,
    /// The runs in which it exists.
    pub(crate) only_in_runs: Option<Vec<usize>>,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Wrap {
    ApprovalRequired { tools: Option<Vec<String>> },
    Prefixed { prefix: String },
    Renamed { map: BTreeMap<String, String> },
    Filtered { hide: Vec<String> },
    Middleware { rules: Vec<Rule> },
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    pub(crate) tool: String,
    #[serde(default)]
    pub(crate) when: When,
    pub(crate) decision: Verdict,
    #[serde(default)]
    pub(crate) reason: String,
    pub(crate) modified_args: Option<Map<String, Value>>,
    pub(crate) only_in_runs: Option<Vec<usize>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Verdict {
    Allow,
    Deny,
    Ask,
}

/// A part of a response of the model.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Part {
    Text { text: String },
    Call { call: String, id: String, args: Value },
}

/// One reply for every time the handler is asked, or a script of them.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Handler {
    Script { script: Vec<Reply> },
    Always(Reply),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) answers: Option<Answers>,
    #[serde(default)]
    pub(crate) approve_all: bool,
    pub(crate) deny_all: Option<String>,
    pub(crate) leave: Option<Leave>,
    pub(crate) raises: Option<String>,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Leave {
    Everything(bool),
    These(Vec<String>),
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Answers {
    #[serde(default)]
    pub(crate) approvals: BTreeMap<String, Approval>,
    #[serde(default)]
    pub(crate) calls: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) metadata: BTreeMap<String, Map<String, Value>>,
}

/// `true`, `false`, or an object.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Approval {
    Bool(bool),
    Approved { approved: bool },
    Override { override_args: Map<String, Value> },
    Denied { denied: Option<String> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) prompt: Option<String>,
    pub(crate) resume: Option<Answers>,
    /// Replaces the agent's handler.
    pub(crate) handlers: Option<Vec<Handler>>,
}

impl When {
    /// Returns `true` if each named argument is there with exactly that value.
    pub(crate) fn fits(&self, args: &Map<String, Value>) -> bool {
        self.args.iter().all(|(name, value)| args.get(name) == Some(value))
    }
}

/// Returns `true` if something exists in a run.
pub(crate) fn exists(only_in_runs: Option<&Vec<usize>>, run: usize) -> bool {
    only_in_runs.is_none_or(|runs| runs.contains(&run))
}
