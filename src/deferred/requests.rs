//! The batch of pending calls of one response.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::BatchEntry;
use super::approvable::{Extent, Unapprovable};
use super::metadata::{APPROVAL_POLICY, BLOCKED};
use crate::args::{canonical, digest, unique};
use crate::call::{DeniedBefore, ToolCall};
use crate::decision::Question;
use crate::origin::ValueOrigin;
use crate::outcome::DeferralKind;

/// One batch: the pending calls of one response, in model order, with their final arguments.
///
/// ```
/// use countersign::{DeferredToolRequests, ToolCall};
/// use serde_json::json;
///
/// let requests = DeferredToolRequests::new([ToolCall::new("c1", "delete_file", json!({"path": "a.log"}))], []);
/// let answers = requests.answer().deny("c1", "not today").build()?;
/// assert!(requests.remaining(&answers).is_none());
/// # Ok::<(), countersign::AnswerError>(())
/// ```
///
/// Its JSON has a schema (`schema_for!(DeferredToolRequests)`), for pages and services that are not written in Rust.
#[derive(Clone, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(description = "The pending calls of one model response, with their final arguments.")]
pub struct DeferredToolRequests {
    /// The calls that are executed elsewhere.
    #[serde(default)]
    pub calls: Vec<ToolCall>,
    /// The calls that need an approval.
    #[serde(default)]
    pub approvals: Vec<ToolCall>,
    /// The metadata that askers added, by call id: of several values for one key the outermost asker's.
    #[serde(default)]
    pub metadata: BTreeMap<String, Map<String, Value>>,
    #[serde(default, rename = "_kinds", skip_serializing_if = "BTreeMap::is_empty")]
    kinds: BTreeMap<String, DeferralKind>,
    #[serde(default, rename = "_countersign", skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
}

/// The fingerprints that bind answers to these requests, and the data that is shown beside the calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Bound {
    batch: String,
    fingerprints: BTreeMap<Arc<str>, Arc<str>>,
    #[serde(default)]
    questions: BTreeMap<Arc<str>, Arc<[Question]>>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    changed: BTreeMap<Arc<str>, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    agents: BTreeMap<Arc<str>, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    denied: BTreeMap<Arc<str>, DeniedBefore>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    origins: BTreeMap<Arc<str>, Vec<ValueOrigin>>,
}

impl<'de> Deserialize<'de> for DeferredToolRequests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = unique::object(deserializer)?;
        Ok(Self {
            calls: unique::take(&mut object, "calls")?,
            approvals: unique::take(&mut object, "approvals")?,
            metadata: unique::take(&mut object, "metadata")?,
            kinds: unique::take(&mut object, "_kinds")?,
            bound: unique::take(&mut object, "_countersign")?,
        })
    }
}

impl DeferredToolRequests {
    /// Requests without fingerprints, as a test of a handler needs them. The approvals come first, as people are asked
    /// about them; PydanticAI's constructor and the JSON have `calls` first.
    ///
    /// ```
    /// use countersign::outcome::DeferralKind;
    /// use countersign::{DeferredToolRequests, ToolCall};
    /// use serde_json::json;
    ///
    /// let call = |id: &str| ToolCall::new(id, "render", json!({}));
    /// let requests = DeferredToolRequests::new([call("c1")], [call("c2")]);
    /// assert_eq!((requests.kind("c1"), requests.kind("c2")), (Some(DeferralKind::Approval), Some(DeferralKind::External)));
    /// assert_eq!(requests.batch(), None, "no turn has made it, so answers to it are not bound");
    /// ```
    #[must_use]
    pub fn new(
        approvals: impl IntoIterator<Item = ToolCall>,
        calls: impl IntoIterator<Item = ToolCall>,
    ) -> Self {
        Self {
            calls: calls.into_iter().collect(),
            approvals: approvals.into_iter().collect(),
            ..Self::default()
        }
    }

    pub(crate) fn of<'a>(batch: String, entries: impl IntoIterator<Item = BatchEntry<'a>>) -> Self {
        let mut this = Self::default();
        let mut bound = Bound { batch, ..Bound::default() };
        for BatchEntry { call, agent, pending } in entries {
            let id = || Arc::clone(call.shared_id());
            bound.fingerprints.insert(id(), pending.fingerprint.as_str().into());
            if !pending.questions.is_empty() {
                bound.questions.insert(id(), Arc::clone(&pending.questions));
            }
            bound.changed.extend(pending.changed.iter().map(|changed| (id(), changed.clone())));
            bound.agents.extend(agent.map(|agent| (id(), agent)));
            bound.denied.extend(pending.denied_before.iter().map(|before| (id(), before.clone())));
            if !pending.origins.is_empty() {
                bound.origins.insert(id(), pending.origins.clone());
            }
            if !pending.metadata.is_empty() {
                this.metadata.insert(call.id().to_owned(), pending.metadata.clone());
            }
            match pending.kind {
                DeferralKind::Approval => this.approvals.push(call),
                DeferralKind::External | DeferralKind::Agent => this.calls.push(call),
                DeferralKind::Question => {
                    this.kinds.insert(call.id().to_owned(), DeferralKind::Question);
                    this.calls.push(call);
                }
            }
        }
        this.bound = Some(bound);
        this
    }

    /// Returns `true` if the batch has no pending call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.approvals.is_empty()
    }

    /// All pending calls: those that need an approval first, then those that are executed elsewhere.
    pub fn iter(&self) -> impl Iterator<Item = &ToolCall> {
        self.approvals.iter().chain(&self.calls)
    }

    /// The pending call with this id, if it is in the batch.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&ToolCall> {
        self.iter().find(|call| call.id() == id)
    }

    /// The kind of answer that a call is pending for; `None` if it is not in the batch.
    #[must_use]
    pub fn kind(&self, id: &str) -> Option<DeferralKind> {
        if self.approvals.iter().any(|call| call.id() == id) {
            return Some(DeferralKind::Approval);
        }
        self.get(id).map(|_| self.kinds.get(id).copied().unwrap_or(DeferralKind::External))
    }

    /// The open questions about a call: who asks, and why.
    #[must_use]
    pub fn questions(&self, id: &str) -> &[Question] {
        self.bound.as_ref().and_then(|bound| bound.questions.get(id)).map_or(&[], |it| it)
    }

    /// The reason why a call is asked about again after an approval: what has changed since it was shown.
    #[must_use]
    pub fn changed(&self, id: &str) -> Option<&str> {
        self.bound.as_ref()?.changed.get(id).map(String::as_str)
    }

    /// The earlier denials of the same call in this run by a person: their number, and the last reason. Show it to the
    /// approver, who should know that the model repeats itself (rule D11).
    ///
    /// ```
    /// # use countersign::DeferredToolRequests;
    /// # fn line(requests: &DeferredToolRequests) {
    /// for call in requests.iter() {
    ///     if let Some(before) = requests.denied_before(call.id()) {
    ///         println!("{}: {before}", call.name()); // delete_file: denied twice before: keep the cache
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn denied_before(&self, id: &str) -> Option<&DeniedBefore> {
        self.bound.as_ref()?.denied.get(id)
    }

    /// The origins of the values of a call (rule O4); empty if they are not recorded.
    #[must_use]
    pub fn origins(&self, id: &str) -> &[ValueOrigin] {
        self.bound.as_ref().and_then(|bound| bound.origins.get(id)).map_or(&[], Vec::as_slice)
    }

    /// The sub-agent that makes a call: `root/cleaner`; `None` for the run's own agent.
    #[must_use]
    pub fn agent(&self, id: &str) -> Option<&str> {
        self.bound.as_ref()?.agents.get(id).map(String::as_str)
    }

    /// The tool of a call as people should see it: the name, prefixed with the path of the agent if the call is a
    /// sub-agent's (`root/cleaner/delete_file`).
    ///
    /// Surfaces show the path and not the name, because a sub-agent may have a tool of the same name as the run's own
    /// agent, and the two may do different things.
    #[must_use]
    pub fn path(&self, id: &str) -> Option<String> {
        let name = self.get(id)?.name();
        Some(self.agent(id).map_or_else(|| name.to_owned(), |agent| format!("{agent}/{name}")))
    }

    /// The fingerprint that an answer to this call is bound to (rule A6).
    #[must_use]
    pub fn fingerprint(&self, id: &str) -> Option<&str> {
        self.shared_fingerprint(id).map(AsRef::as_ref)
    }

    pub(super) fn shared_fingerprint(&self, id: &str) -> Option<&Arc<str>> {
        self.bound.as_ref()?.fingerprints.get(id)
    }

    /// The id of this batch; `None` for one that no turn has made.
    ///
    /// The id changes with every call that is asked about again. A surface can tell by it whether it shows the current
    /// state.
    #[must_use]
    pub fn batch(&self) -> Option<&str> {
        self.bound.as_ref().map(|bound| bound.batch.as_str())
    }

    /// Returns `true` if any layer that asks about this call blocks it, with `approval_policy: "blocked"` in the
    /// metadata (rule A5).
    ///
    /// ```
    /// use countersign::deferred::metadata;
    /// use countersign::{DeferredToolRequests, ToolCall};
    /// use serde_json::{Map, json};
    ///
    /// let mut requests = DeferredToolRequests::new([ToolCall::new("c1", "deploy", json!({}))], []);
    /// assert!(!requests.is_blocked("c1"));
    /// let blocked = Map::from_iter([(metadata::APPROVAL_POLICY.to_owned(), json!(metadata::BLOCKED))]);
    /// requests.metadata.insert("c1".into(), blocked);
    /// assert!(requests.is_blocked("c1"));
    /// ```
    #[must_use]
    pub fn is_blocked(&self, id: &str) -> bool {
        let said = |metadata: &Map<String, Value>| {
            metadata.get(APPROVAL_POLICY).is_some_and(|value| value == BLOCKED)
        };
        self.metadata.get(id).is_some_and(said)
            || self.questions(id).iter().any(|question| said(question.metadata()))
    }

    /// The call, if a person who was shown so much of it can approve it: it needs an approval, no layer blocks it, and all
    /// of it was shown. Every surface checks this before it takes an approval; one over a ledger does so by
    /// [`Surface`](crate::ledger::Surface).
    ///
    /// # Errors
    /// [`Unapprovable`] says why an approval would not count. A denial needs no check.
    ///
    /// ```
    /// use countersign::deferred::{Extent, Unapprovable, metadata};
    /// use countersign::{DeferredToolRequests, ToolCall};
    /// use serde_json::{Map, json};
    ///
    /// let mut requests = DeferredToolRequests::new([ToolCall::new("c1", "deploy", json!({}))], []);
    /// assert_eq!(requests.check_approval("c1", Extent::Whole)?.name(), "deploy");
    /// let blocked = Map::from_iter([(metadata::APPROVAL_POLICY.to_owned(), json!(metadata::BLOCKED))]);
    /// requests.metadata.insert("c1".into(), blocked);
    /// assert_eq!(requests.check_approval("c1", Extent::Whole), Err(Unapprovable::Blocked));
    /// # Ok::<(), Unapprovable>(())
    /// ```
    pub fn check_approval(&self, id: &str, extent: Extent) -> Result<&ToolCall, Unapprovable> {
        let call = self.get(id).ok_or(Unapprovable::UnknownCall)?;
        if self.kind(id) != Some(DeferralKind::Approval) {
            return Err(Unapprovable::NotAnApproval);
        }
        if self.is_blocked(id) {
            return Err(Unapprovable::Blocked);
        }
        let is_cut = || self.questions(id).iter().any(Question::is_cut);
        match extent {
            Extent::Part => Err(Unapprovable::NotShown),
            Extent::Together if is_cut() => Err(Unapprovable::Cut),
            Extent::Whole | Extent::Together => Ok(call),
        }
    }

    /// The pending calls, grouped so that a surface can show nine hundred equal calls as one card with a count. Equal
    /// calls have the same agent, tool and kind, equal arguments (in their canonical form), and the same questions and
    /// metadata. Groups are in the order of their first calls, and the calls of a group in their own order. Each call
    /// has an id and a fingerprint of its own, and is answered by itself.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, ToolCall};
    /// use serde_json::json;
    ///
    /// let pay = |id: &str, euros: f64| ToolCall::new(id, "pay", json!({"euros": euros}));
    /// let requests = DeferredToolRequests::new([pay("c1", 5.0), pay("c2", 7.5), pay("c3", 5.0)], []);
    /// let groups = requests.groups();
    /// let ids = groups.iter().map(|group| group.iter().map(|call| call.id()).collect::<Vec<_>>());
    /// assert_eq!(ids.collect::<Vec<_>>(), [vec!["c1", "c3"], vec!["c2"]]);
    ///
    /// // One answer for a whole group:
    /// let answers = groups[0].iter().fold(requests.answer(), |answers, call| answers.approve(call.id()));
    /// # let _ = answers;
    /// ```
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<&ToolCall>> {
        let mut at = HashMap::new();
        let mut groups: Vec<Vec<&ToolCall>> = Vec::new();
        for call in self.iter() {
            match at.entry(canonical(&self.shown(call))) {
                Entry::Vacant(new) => {
                    new.insert(groups.len());
                    groups.push(vec![call]);
                }
                Entry::Occupied(known) => {
                    groups.get_mut(*known.get()).into_iter().for_each(|group| group.push(call));
                }
            }
        }
        groups
    }

    /// A key that is the same for the calls of one [group](Self::groups) and for no others, for a surface that gets the
    /// calls of a batch one by one, as from a store. A surface that joins the calls of several runs, or for several
    /// people, has to add the run or the person to the key.
    #[must_use]
    pub fn group_key(&self, id: &str) -> Option<String> {
        self.get(id).map(|call| digest(&self.shown(call)))
    }

    /// The properties that equal calls share, as JSON.
    fn shown(&self, call: &ToolCall) -> Value {
        let id = call.id();
        json!([
            self.kind(id),
            self.agent(id),
            call.name(),
            call.sent(),
            self.questions(id),
            self.changed(id),
            self.denied_before(id),
            self.metadata.get(id),
        ])
    }

    /// The same batch with these calls only, and with the metadata, fingerprints and questions of no others.
    pub(crate) fn only(mut self, keep: impl Fn(&str) -> bool) -> Self {
        if self.iter().all(|call| keep(call.id())) {
            return self;
        }
        self.approvals.retain(|call| keep(call.id()));
        self.calls.retain(|call| keep(call.id()));
        self.metadata.retain(|id, _| keep(id));
        self.kinds.retain(|id, _| keep(id));
        if let Some(bound) = &mut self.bound {
            bound.fingerprints.retain(|id, _| keep(id));
            bound.questions.retain(|id, _| keep(id));
            bound.changed.retain(|id, _| keep(id));
            bound.agents.retain(|id, _| keep(id));
            bound.denied.retain(|id, _| keep(id));
            bound.origins.retain(|id, _| keep(id));
        }
        self
    }
}

impl fmt::Debug for DeferredToolRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeferredToolRequests")
            .field("approvals", &self.approvals)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}
