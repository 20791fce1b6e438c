//! The answers to one batch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{DeferredToolRequests, unique};
use crate::args::Args;
use crate::outcome::{ModelRetry, Outcome, ToolDenied, ToolFailed, ToolReturn};

/// Answers to the calls of one batch: approvals, results of calls executed elsewhere, metadata for the tools, and who
/// answered.
///
/// Build them with [`requests.answer()`](DeferredToolRequests::answer), which checks them and binds them to what was
/// shown. Bare ones, from here or from PydanticAI's JSON, are matched by id only; a turn can refuse them.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeferredToolResults {
    /// What came back for the calls that are executed elsewhere, by call id.
    #[serde(default, deserialize_with = "unique::map")]
    pub calls: BTreeMap<String, CallResult>,
    /// The answers to the calls that need an approval, by call id.
    #[serde(default, deserialize_with = "unique::map")]
    pub approvals: BTreeMap<String, ToolApproval>,
    /// For the tools, by call id: what their bodies see as
    /// [`tool_call_metadata`](crate::RunContext::tool_call_metadata).
    #[serde(default, deserialize_with = "unique::map")]
    pub metadata: BTreeMap<String, Map<String, Value>>,
    /// Who answered, by call id.
    #[serde(default, deserialize_with = "unique::map")]
    pub answered_by: BTreeMap<String, String>,
    #[serde(default, rename = "_countersign", skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

/// What PydanticAI has no field for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Extra {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "unique::map")]
    fingerprints: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left: BTreeSet<String>,
}

impl Extra {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl DeferredToolResults {
    /// No answers yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Approves a call.
    #[must_use]
    pub fn approve(self, id: impl Into<String>) -> Self {
        self.approval(id, true)
    }

    /// Denies a call; the model is told the message verbatim.
    #[must_use]
    pub fn deny(self, id: impl Into<String>, message: impl Into<String>) -> Self {
        self.approval(id, ToolDenied::new(message))
    }

    /// Answers a call that needs an approval, with a bool, a [`ToolApproved`] or a [`ToolDenied`].
    #[must_use]
    pub fn approval(mut self, id: impl Into<String>, answer: impl Into<ToolApproval>) -> Self {
        self.approvals.insert(id.into(), answer.into());
        self
    }

    /// Gives the result of a call that was executed elsewhere: a value, a [`ModelRetry`] or a [`ToolFailed`].
    #[must_use]
    pub fn result(mut self, id: impl Into<String>, result: impl Into<CallResult>) -> Self {
        self.calls.insert(id.into(), result.into());
        self
    }

    /// Leaves a call, explicitly, to the next handler or to the caller.
    #[must_use]
    pub fn leave(mut self, id: impl Into<String>) -> Self {
        self.extra.left.insert(id.into());
        self
    }

    /// Adds metadata for the tool of a call.
    #[must_use]
    pub fn metadata(mut self, id: impl Into<String>, metadata: Map<String, Value>) -> Self {
        self.metadata.insert(id.into(), metadata);
        self
    }

    /// Hands the request metadata of every call on to its tool: nothing passes by itself (rule A5). What the answers
    /// already say for a key stays.
    ///
    /// ```
    /// # use countersign::{DeferredToolRequests, DeferredToolResults};
    /// # let requests = DeferredToolRequests::default();
    /// let answers = DeferredToolResults::new().copy_metadata(&requests);
    /// # assert!(answers.metadata.is_empty());
    /// ```
    #[must_use]
    pub fn copy_metadata(mut self, requests: &DeferredToolRequests) -> Self {
        for (id, shown) in &requests.metadata {
            let metadata = self.metadata.entry(id.clone()).or_default();
            for (key, value) in shown {
                metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        self
    }

    /// Whether a call is explicitly left.
    #[must_use]
    pub fn is_left(&self, id: &str) -> bool {
        self.extra.left.contains(id)
    }

    /// The calls that are explicitly left.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.extra.left.iter().map(String::as_str)
    }

    /// Whether the answers say what they are answers to.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.extra.batch.is_some()
    }

    pub(super) fn batch(&self) -> Option<&str> {
        self.extra.batch.as_deref()
    }

    pub(super) fn fingerprint(&self, id: &str) -> Option<&str> {
        self.extra.fingerprints.get(id).map(String::as_str)
    }

    /// Binds the answers to what was shown.
    pub(super) fn bind(&mut self, requests: &DeferredToolRequests) {
        self.extra.batch = requests.batch().map(str::to_owned);
        self.extra.fingerprints = requests
            .iter()
            .filter_map(|call| {
                Some((call.id().to_owned(), requests.fingerprint(call.id())?.to_owned()))
            })
            .collect();
    }

    /// The answers for the calls of a sub-agent: those to ids behind this prefix, bound to what the agent asked. What
    /// is not answered is left: these are the answers to a part of the batch at most.
    pub(crate) fn take_for_agent(&mut self, prefix: &str, requests: &DeferredToolRequests) -> Self {
        let mut own = Self::default();
        own.bind(requests);
        for call in requests.iter() {
            let (id, full) = (call.id().to_owned(), format!("{prefix}{}", call.id()));
            own.approvals.extend(self.approvals.remove(&full).map(|it| (id.clone(), it)));
            own.calls.extend(self.calls.remove(&full).map(|it| (id.clone(), it)));
            own.metadata.extend(self.metadata.remove(&full).map(|it| (id.clone(), it)));
            own.answered_by.extend(self.answered_by.remove(&full).map(|it| (id.clone(), it)));
            self.extra.left.remove(&full);
            if !own.approvals.contains_key(&id) && !own.calls.contains_key(&id) {
                own.extra.left.insert(id);
            }
        }
        own
    }

    /// Whether any call is answered, and not only left.
    pub(crate) fn answers_any(&self) -> bool {
        !self.approvals.is_empty() || !self.calls.is_empty()
    }

    /// Takes every approval back: the calls are left.
    pub(crate) fn leave_approved(mut self) -> Self {
        let approved = |(id, answer): (&String, &ToolApproval)| {
            matches!(answer, ToolApproval::Approved(_)).then(|| id.clone())
        };
        let ids: Vec<_> = self.approvals.iter().filter_map(approved).collect();
        for id in ids {
            self.approvals.remove(&id);
            self.metadata.remove(&id);
            self.answered_by.remove(&id);
            self.extra.left.insert(id);
        }
        self
    }

    /// Whether nothing is answered or left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.calls.is_empty() && self.extra.left.is_empty()
    }

    /// With the answers to what these leave. Checked before: they are about nothing else.
    pub(crate) fn then(mut self, later: Self) -> Self {
        self.approvals.extend(later.approvals);
        self.calls.extend(later.calls);
        self.metadata.extend(later.metadata);
        self.answered_by.extend(later.answered_by);
        self.extra.left = later.extra.left;
        self
    }
}

impl fmt::Debug for DeferredToolResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredToolResults")
            .field("approvals", &self.approvals)
            .field("calls", &self.calls)
            .field("answered_by", &self.answered_by)
            .field("left", &self.extra.left)
            .finish_non_exhaustive()
    }
}

/// The answer to a call that needs an approval. `true` and `false` convert, and nothing else counts as a yes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind")]
pub enum ToolApproval {
    /// The call may run.
    #[serde(rename = "tool-approved")]
    Approved(ToolApproved),
    /// The call does not run.
    #[serde(rename = "tool-denied")]
    Denied(ToolDenied),
}

/// An approval, perhaps of other arguments than were asked about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolApproved {
    /// Runs with these arguments instead of the ones shown; all of them, so that `{}` means none. They go through
    /// the whole stack, and are asked about again if it changes them (rule A2).
    #[serde(default)]
    pub override_args: Option<Args>,
}

impl ToolApproved {
    /// Approved as shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Approved with other arguments.
    #[must_use]
    pub fn with_args(args: impl Into<Args>) -> Self {
        Self { override_args: Some(args.into()) }
    }
}

impl From<bool> for ToolApproval {
    fn from(approved: bool) -> Self {
        if approved { ToolApproved::new().into() } else { ToolDenied::default().into() }
    }
}

impl From<ToolApproved> for ToolApproval {
    fn from(approved: ToolApproved) -> Self {
        Self::Approved(approved)
    }
}

impl From<ToolDenied> for ToolApproval {
    fn from(denied: ToolDenied) -> Self {
        Self::Denied(denied)
    }
}

impl<'de> Deserialize<'de> for ToolApproval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "expected true, false, or an object of kind `tool-approved` or `tool-denied`";
        match Value::deserialize(deserializer)? {
            Value::Bool(approved) => Ok(approved.into()),
            value @ Value::Object(_) => match value.get("kind").and_then(Value::as_str) {
                Some("tool-approved") => {
                    serde_json::from_value(value).map(Self::Approved).map_err(D::Error::custom)
                }
                Some("tool-denied") => {
                    serde_json::from_value(value).map(Self::Denied).map_err(D::Error::custom)
                }
                Some(_) | None => Err(D::Error::custom(expected)),
            },
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(D::Error::custom(expected))
            }
        }
    }
}

/// What came back for a call that was executed elsewhere.
#[derive(Debug, Clone, PartialEq)]
pub enum CallResult {
    /// Its value.
    Return(ToolReturn),
    /// The model should try again.
    Retry(ModelRetry),
    /// It failed for good.
    Failed(ToolFailed),
}

impl From<CallResult> for Outcome {
    fn from(result: CallResult) -> Self {
        match result {
            CallResult::Return(it) => Self::Returned(it),
            CallResult::Retry(it) => Self::Retry(it),
            CallResult::Failed(it) => Self::Failed(it),
        }
    }
}

impl<V: Into<Value>> From<V> for CallResult {
    fn from(value: V) -> Self {
        Self::Return(ToolReturn::new(value))
    }
}

impl From<ToolReturn> for CallResult {
    fn from(it: ToolReturn) -> Self {
        Self::Return(it)
    }
}

impl From<ModelRetry> for CallResult {
    fn from(it: ModelRetry) -> Self {
        Self::Retry(it)
    }
}

impl From<ToolFailed> for CallResult {
    fn from(it: ToolFailed) -> Self {
        Self::Failed(it)
    }
}

impl Serialize for CallResult {
    /// A plain value is written as it is, unless it looks like one of the typed results.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Return(ToolReturn { return_value, content: None, metadata: None })
                if typed(return_value).is_none() =>
            {
                return_value.serialize(serializer)
            }
            Self::Return(it) => Outcome::Returned(it.clone()).serialize(serializer),
            Self::Retry(it) => Outcome::Retry(it.clone()).serialize(serializer),
            Self::Failed(it) => Outcome::Failed(it.clone()).serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for CallResult {
    /// A malformed typed result is an error, never a success with a strange value.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let result = match typed(&value) {
            None => return Ok(Self::Return(ToolReturn::new(value))),
            Some("tool-return") if value.get("return_value").is_none() => {
                return Err(D::Error::missing_field("return_value"));
            }
            Some("tool-return") => serde_json::from_value(value).map(Self::Return),
            Some("model-retry") => serde_json::from_value(value).map(Self::Retry),
            Some(_) => serde_json::from_value(value).map(Self::Failed),
        };
        result.map_err(D::Error::custom)
    }
}

/// The kind, if the value claims to be a typed result.
fn typed(value: &Value) -> Option<&str> {
    value
        .get("kind")?
        .as_str()
        .filter(|kind| matches!(*kind, "tool-return" | "model-retry" | "tool-failed"))
}
