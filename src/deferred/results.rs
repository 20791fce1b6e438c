//! The answers to one batch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::{CallResult, DeferredToolRequests, ToolApproval};
use crate::args::unique;
use crate::error::AnswerError;
use crate::outcome::ToolDenied;

/// Answers to the calls of one batch: approvals, results of calls executed elsewhere, metadata for the tools, and who
/// answered.
///
/// Build them with [`requests.answer()`](DeferredToolRequests::answer), which checks them and binds them to what was
/// shown. Unbound answers, made with [`new`](Self::new) or read from PydanticAI's JSON, are matched by call id only; a
/// turn can [refuse](crate::Turn::require_bound_answers) them.
///
/// ```
/// use countersign::DeferredToolResults;
/// use serde_json::json;
///
/// // As a Python service writes them:
/// let answers: DeferredToolResults = serde_json::from_value(json!({"approvals": {"c1": true}, "calls": {"c2": "done"}}))?;
/// assert!(!answers.is_bound(), "they are matched by id alone");
/// assert_eq!(answers, DeferredToolResults::new().approve("c1").result("c2", "done"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(description = "The answers to one batch of pending calls, by call id.")]
pub struct DeferredToolResults {
    /// The results of the calls that are executed elsewhere, by call id.
    #[serde(default)]
    pub calls: BTreeMap<String, CallResult>,
    /// The answers to the calls that need an approval, by call id.
    #[serde(default)]
    pub approvals: BTreeMap<String, ToolApproval>,
    /// Metadata for the tools, by call id, which their bodies read as
    /// [`tool_call_metadata`](crate::RunContext::tool_call_metadata).
    #[schemars(description = "Metadata for the tools, by call id.")]
    #[serde(default)]
    pub metadata: BTreeMap<String, Map<String, Value>>,
    /// The person who answered each call, by its id.
    #[serde(default)]
    pub answered_by: BTreeMap<String, String>,
    #[serde(default, rename = "_countersign", skip_serializing_if = "Extra::is_empty")]
    extra: Extra,
}

/// Data for which PydanticAI has no field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Extra {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    fingerprints: BTreeMap<Arc<str>, Arc<str>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    left: BTreeSet<String>,
}

impl Extra {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl<'de> Deserialize<'de> for DeferredToolResults {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = unique::object(deserializer)?;
        let this = Self {
            calls: unique::take(&mut object, "calls")?,
            approvals: unique::take(&mut object, "approvals")?,
            metadata: unique::take(&mut object, "metadata")?,
            answered_by: unique::take(&mut object, "answered_by")?,
            extra: unique::take(&mut object, "_countersign")?,
        };
        if this.extra.batch.is_none() && !this.extra.fingerprints.is_empty() {
            // Without a batch the answers count as unbound, and the fingerprints would never be compared.
            return Err(D::Error::custom("`_countersign` has fingerprints and no batch"));
        }
        Ok(this)
    }
}

impl DeferredToolResults {
    /// An empty, unbound set of answers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Approves a call with the arguments that were shown.
    #[must_use]
    pub fn approve(self, id: impl Into<String>) -> Self {
        self.approval(id, true)
    }

    /// Denies a call; the model gets the message verbatim.
    #[must_use]
    pub fn deny(self, id: impl Into<String>, message: impl Into<String>) -> Self {
        self.approval(id, ToolDenied::new(message))
    }

    /// Answers a call that needs an approval, with a bool, a [`ToolApproved`](super::ToolApproved) or a
    /// [`ToolDenied`].
    #[must_use]
    pub fn approval(mut self, id: impl Into<String>, answer: impl Into<ToolApproval>) -> Self {
        self.approvals.insert(id.into(), answer.into());
        self
    }

    /// Gives the result of a call that was executed elsewhere: a value, a
    /// [`ModelRetry`](crate::outcome::ModelRetry) or a [`ToolFailed`](crate::outcome::ToolFailed).
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

    /// Copies the request metadata of every call into the answers, so that the tool gets it. A key that the answers
    /// already have is not replaced.
    ///
    /// The metadata is not copied by default (rule A5): layers write it for people, and a tool would take it for
    /// something that the approver has granted. A handler that wants the tool to have it returns
    /// `answers.copy_metadata(&requests)`.
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

    /// Returns `true` if a call is explicitly left.
    #[must_use]
    pub fn is_left(&self, id: &str) -> bool {
        self.extra.left.contains(id)
    }

    /// The calls that are explicitly left.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.extra.left.iter().map(String::as_str)
    }

    /// Returns `true` if the answers carry the id of the batch that they were made for (rule A6).
    ///
    /// Prefer bound answers wherever you have the requests: we refuse them if anything was shown differently.
    /// Answers that travel without the requests, as PydanticAI's do, are unbound. If your turn serves strangers,
    /// refuse those ([`Turn::require_bound_answers`](crate::Turn::require_bound_answers)).
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.extra.batch.is_some()
    }

    pub(super) fn batch(&self) -> Option<&str> {
        self.extra.batch.as_deref()
    }

    pub(super) fn fingerprint(&self, id: &str) -> Option<&str> {
        self.extra.fingerprints.get(id).map(AsRef::as_ref)
    }

    /// Binds the answers to what was shown.
    pub(super) fn bind(&mut self, requests: &DeferredToolRequests) {
        self.extra.batch = requests.batch().map(str::to_owned);
        self.extra.fingerprints = requests
            .iter()
            .filter_map(|call| {
                let fingerprint = requests.shared_fingerprint(call.id())?;
                Some((Arc::clone(call.shared_id()), Arc::clone(fingerprint)))
            })
            .collect();
    }

    /// Takes the answers for the calls of a sub-agent, whose ids have this prefix, and binds them to the sub-agent's
    /// own batch. A call without an answer is left, as the batch of the parent may have been answered in part.
    ///
    /// | in the parent's batch | in the agent's own |
    /// |---|---|
    /// | `call_1/call_2`: approve | `call_2`: approve |
    /// | `call_1/call_3`: – | `call_3`: left |
    /// | `call_4`: deny | stays with the parent |
    ///
    /// The agent's answers are bound to its own batch here, because the parent's were checked against the parent's
    /// batch, of which the agent's calls are a part.
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

    /// Returns `true` if any call has an answer; a left one has none.
    pub(crate) fn answers_any(&self) -> bool {
        !self.approvals.is_empty() || !self.calls.is_empty()
    }

    /// Removes every approval, and leaves those calls.
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

    /// Returns `true` if no call is answered or explicitly left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.approvals.is_empty() && self.calls.is_empty() && self.extra.left.is_empty()
    }

    /// Joins two sets of answers to one batch, as two people or two services give them. No answer replaces another
    /// (rule A3): a call that both sets answer is an error, and the order of the sets does not matter. A call that one
    /// set leaves and the other answers is answered, with the metadata and the person of the set that answers it.
    ///
    /// Nothing else is checked here: missing answers are found when the run is resumed with the result.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, ToolCall, AnswerError};
    /// use serde_json::json;
    ///
    /// let delete = |id: &str| ToolCall::new(id, "delete_file", json!({"path": "a.log"}));
    /// let requests = DeferredToolRequests::new([delete("c1"), delete("c2")], []);
    /// let ann = requests.answer().approve("c1").leave("c2").answered_by("ann").build()?;
    /// let bob = requests.answer().deny("c2", "keep it").answered_by("bob").unchecked();
    ///
    /// let both = ann.clone().merge(bob)?;
    /// assert!(requests.remaining(&both).is_none());
    /// assert_eq!(both.answered_by["c2"], "bob");
    ///
    /// let eve = requests.answer().deny("c1", "no").unchecked();
    /// assert_eq!(ann.merge(eve), Err(AnswerError::Contradictory { ids: vec!["c1".into()] }));
    /// # Ok::<(), AnswerError>(())
    /// ```
    ///
    /// # Errors
    /// [`AnswerError::OtherBatch`] when the sets were made for different batches;
    /// [`AnswerError::NotBound`] when only one set is bound, as the result would be bound for both;
    /// [`AnswerError::Contradictory`] when both sets answer a call, or have different metadata or persons for a call
    /// that neither answers. The first and the last name the calls.
    pub fn merge(self, other: Self) -> Result<Self, AnswerError> {
        if self.says_nothing() {
            return Ok(other);
        }
        if other.says_nothing() {
            return Ok(self);
        }
        self.check_same_batch(&other)?;
        let ids: Vec<_> = self.ids().filter(|id| self.contradicts(&other, id)).collect();
        if !ids.is_empty() {
            let ids = ids.into_iter().map(str::to_owned).collect();
            return Err(AnswerError::Contradictory { ids });
        }
        Ok(self.joined(other))
    }

    /// Returns `true` if both answer the call, or neither does and their metadata or persons for the call differ.
    fn contradicts(&self, other: &Self, id: &str) -> bool {
        fn differ<V: PartialEq>(mine: Option<&V>, theirs: Option<&V>) -> bool {
            mine.zip(theirs).is_some_and(|(mine, theirs)| mine != theirs)
        }
        match (self.answers(id), other.answers(id)) {
            (true, true) => true,
            (false, false) => {
                differ(self.metadata.get(id), other.metadata.get(id))
                    || differ(self.answered_by.get(id), other.answered_by.get(id))
            }
            (true, false) | (false, true) => false,
        }
    }

    /// Checks that both sets are bound to the same batch, or that both are unbound.
    fn check_same_batch(&self, other: &Self) -> Result<(), AnswerError> {
        if self.is_bound() != other.is_bound() {
            return Err(AnswerError::NotBound);
        }
        if self.batch() != other.batch() {
            let ids: BTreeSet<_> = self.ids().chain(other.ids()).map(str::to_owned).collect();
            return Err(AnswerError::OtherBatch { ids: ids.into_iter().collect() });
        }
        let both = self.extra.fingerprints.iter();
        let unlike = both.filter(|(id, mine)| {
            other.extra.fingerprints.get(*id).is_some_and(|theirs| theirs != *mine)
        });
        let ids: Vec<_> = unlike.map(|(id, _)| id.to_string()).collect();
        if ids.is_empty() { Ok(()) } else { Err(AnswerError::OtherBatch { ids }) }
    }

    /// Adds the answers of a second handler to the calls that the first one has left. The caller has checked that the
    /// second set is about no other calls.
    pub(crate) fn then(mut self, mut later: Self) -> Self {
        if self.is_bound() != later.is_bound() {
            // The result may be bound only if both parts are (rule A6).
            for part in [&mut self, &mut later] {
                part.extra.batch = None;
                part.extra.fingerprints.clear();
            }
        }
        self.joined(later)
    }

    fn joined(mut self, mut other: Self) -> Self {
        self.give_way_to(&other);
        other.give_way_to(&self);
        self.approvals.extend(other.approvals);
        self.calls.extend(other.calls);
        self.metadata.extend(other.metadata);
        self.answered_by.extend(other.answered_by);
        self.extra.fingerprints.extend(other.extra.fingerprints);
        self.extra.left.extend(other.extra.left);
        self
    }

    /// Removes the leaves and persons of the calls that the other set answers, and metadata that the other set
    /// replaces.
    ///
    /// Each set gives way to the other before we join the maps, so the result does not depend on their order. For
    /// example, we drop a name beside a left call if the other set answers that call, as the name would claim that
    /// answer.
    fn give_way_to(&mut self, other: &Self) {
        self.extra.left.retain(|id| !other.answers(id));
        self.answered_by.retain(|id, _| !other.answers(id));
        self.metadata.retain(|id, _| !(other.answers(id) && other.metadata.contains_key(id)));
    }

    /// The ids of all calls in this set, each once: answered, left, or only with metadata or a person.
    fn ids(&self) -> impl Iterator<Item = &str> {
        let answered = self.approvals.keys().chain(self.calls.keys()).chain(&self.extra.left);
        let ids = answered.chain(self.metadata.keys()).chain(self.answered_by.keys());
        ids.map(String::as_str).collect::<BTreeSet<_>>().into_iter()
    }

    fn answers(&self, id: &str) -> bool {
        self.approvals.contains_key(id) || self.calls.contains_key(id)
    }

    /// Returns `true` if the set is empty and unbound.
    fn says_nothing(&self) -> bool {
        *self == Self::default()
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
