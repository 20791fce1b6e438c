//! Building the answers to one batch.
//!
//! The builder takes answers in any order and checks them once, at the end: a surface can build them from clicks.
//! You make it from the requests and not from ids alone, so that the answers get the batch id and the fingerprints
//! of what was *shown*. An answer that a person gave to an earlier state of a call does not fit a later one (rule
//! A6).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use super::check::{check, check_answers};
use super::{CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval, ToolApproved};
use crate::args::IntoArgs;
use crate::call::ToolCall;
use crate::error::AnswerError;
use crate::outcome::ToolDenied;

/// The name under which a rule answers, not a person.
pub(crate) const POLICY: &str = "policy";

/// Builds the answers to one batch, binds them to what was shown, and checks them.
///
/// A call may be answered once; [`build`](Self::build) returns an error that names the calls answered twice.
///
/// ```
/// use countersign::{AnswerError, DeferredToolRequests, ToolCall};
/// use serde_json::json;
///
/// let call = |id: &str, tool: &str| ToolCall::new(id, tool, json!({}));
/// let requests = DeferredToolRequests::new([call("c1", "read_file"), call("c2", "rm")], [call("c3", "render")]);
///
/// let answers = requests.answer().approve_tool("read_file").deny("c2", "keep it").result("c3", "sea.png").build()?;
/// assert_eq!((answers.approvals.len(), answers.calls.len()), (2, 1));
///
/// let error = requests.answer().approve("c1").approve("c9").build().unwrap_err();
/// assert!(matches!(error, AnswerError::Several { .. }), "c2 and c3 have no answer, and c9 is not in the batch");
/// # Ok::<(), AnswerError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "answers do nothing until they are built and given back"]
pub struct Answers<'a> {
    requests: &'a DeferredToolRequests,
    results: DeferredToolResults,
    twice: Vec<String>,
}

impl DeferredToolRequests {
    /// Starts the answers to this batch. They carry its id and its fingerprints.
    pub fn answer(&self) -> Answers<'_> {
        Answers::new(self)
    }

    /// Checks that these answers fit the batch: each call is answered or explicitly left, in the right category, and
    /// the answers were made for exactly this batch where they are [bound](DeferredToolResults::is_bound) (rules A4,
    /// A6). A turn makes the same check before anything takes effect, and validates edited arguments against their
    /// tools. Use this one to refuse answers when they arrive, before the run is resumed.
    ///
    /// # Errors
    /// [`AnswerError`](crate::AnswerError), with the ids of the calls.
    ///
    /// ```
    /// use countersign::{AnswerError, DeferredToolRequests, DeferredToolResults, ToolCall};
    /// use serde_json::json;
    ///
    /// let requests = DeferredToolRequests::new([ToolCall::new("c1", "rm", json!({}))], []);
    /// assert_eq!(requests.check(&DeferredToolResults::new().approve("c1")), Ok(()));
    /// assert_eq!(
    ///     requests.check(&DeferredToolResults::new().result("c1", "done")),
    ///     Err(AnswerError::WrongKind { ids: vec!["c1".into()] }),
    /// );
    /// assert_eq!(requests.check(&DeferredToolResults::new()), Err(AnswerError::Missing { ids: vec!["c1".into()] }));
    /// ```
    pub fn check(&self, answers: &DeferredToolResults) -> Result<(), AnswerError> {
        check(self, answers, false)
    }

    /// The calls that these results neither answer nor leave; `None` when there are none. A value in the wrong category
    /// does not count as an answer.
    #[must_use]
    pub fn remaining(&self, results: &DeferredToolResults) -> Option<Self> {
        let open: HashSet<_> = self.open(results).map(ToolCall::id).collect();
        if open.is_empty() { None } else { Some(self.clone().only(|id| open.contains(id))) }
    }

    /// The calls that these results neither answer nor leave.
    pub(super) fn open(&self, results: &DeferredToolResults) -> impl Iterator<Item = &ToolCall> {
        let approvals = self.approvals.iter();
        let approvals = approvals.filter(|call| !results.approvals.contains_key(call.id()));
        let calls = self.calls.iter().filter(|call| !results.calls.contains_key(call.id()));
        approvals.chain(calls).filter(|call| !results.is_left(call.id()))
    }
}

/// Sets the answer to a call. If the call has one already, its id is added to `twice`.
fn set<V>(answers: &mut BTreeMap<String, V>, twice: &mut Vec<String>, id: String, answer: V) {
    match answers.entry(id) {
        Entry::Vacant(entry) => _ = entry.insert(answer),
        Entry::Occupied(mut entry) => {
            twice.push(entry.key().clone());
            entry.insert(answer);
        }
    }
}

impl<'a> Answers<'a> {
    pub(super) fn new(requests: &'a DeferredToolRequests) -> Self {
        let mut results = DeferredToolResults::default();
        results.bind(requests);
        Self { requests, results, twice: Vec::new() }
    }

    /// Approves a call as it was shown.
    pub fn approve(self, id: impl Into<String>) -> Self {
        self.approval(id, true)
    }

    /// Approves a call with these arguments in place of the ones that were shown.
    ///
    /// The edited arguments replace all of the shown ones; to change one, begin with `call.args().clone().with(…)`.
    /// They pass the whole stack before the call runs, and are asked about again if a layer changes them (rule A2).
    ///
    /// ```
    /// use countersign::deferred::ToolApproval;
    /// use countersign::{Args, DeferredToolRequests, ToolCall};
    /// use serde_json::json;
    ///
    /// let requests = DeferredToolRequests::new([ToolCall::new("c1", "pay", json!({"euros": 500, "to": "ann"}))], []);
    /// let shown = requests.get("c1").unwrap().args().clone();
    /// let answers = requests.answer().approve_with("c1", shown.with("euros", 50)).build()?;
    /// let ToolApproval::Approved(approved) = &answers.approvals["c1"] else { unreachable!() };
    /// assert_eq!(approved.override_args, Some(Args::new().with("euros", 50).with("to", "ann")));
    /// # Ok::<(), countersign::AnswerError>(())
    /// ```
    pub fn approve_with(self, id: impl Into<String>, args: impl IntoArgs) -> Self {
        self.approval(id, ToolApproved::with_args(args))
    }

    /// Denies a call; the model gets the message verbatim.
    pub fn deny(self, id: impl Into<String>, message: impl Into<String>) -> Self {
        self.approval(id, ToolDenied::new(message))
    }

    /// Answers a call that needs an approval.
    pub fn approval(mut self, id: impl Into<String>, answer: impl Into<ToolApproval>) -> Self {
        set(&mut self.results.approvals, &mut self.twice, id.into(), answer.into());
        self
    }

    /// Gives the result of a call that was executed elsewhere.
    pub fn result(mut self, id: impl Into<String>, result: impl Into<CallResult>) -> Self {
        set(&mut self.results.calls, &mut self.twice, id.into(), result.into());
        self
    }

    /// Leaves a call to the next handler or to the caller.
    ///
    /// If you forget a call, that is an error. If you leave it, you have said what shall become of it, and that is none
    /// (rule A4).
    pub fn leave(mut self, id: impl Into<String>) -> Self {
        self.results = self.results.leave(id);
        self
    }

    /// Leaves every call that has no answer yet.
    pub fn leave_rest(mut self) -> Self {
        for id in self.open() {
            self.results = self.results.leave(id);
        }
        self
    }

    /// Denies every call that has no answer yet; one executed elsewhere fails with the message.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, Outcome, ToolCall};
    /// use serde_json::json;
    ///
    /// let call = |id: &str| ToolCall::new(id, "rm", json!({}));
    /// let requests = DeferredToolRequests::new([call("c1"), call("c2")], [call("c3")]);
    /// let answers = requests.answer().approve("c1").deny_rest("not now").build()?;
    /// assert!(!answers.approvals.contains_key("c3"), "a call that is executed elsewhere gets a result");
    /// assert_eq!(Outcome::from(answers.calls["c3"].clone()).word(), "failed");
    /// # Ok::<(), countersign::AnswerError>(())
    /// ```
    pub fn deny_rest(mut self, message: &str) -> Self {
        for id in self.open() {
            self = match self.requests.approvals.iter().any(|call| call.id() == id) {
                true => self.deny(id, message),
                false => self.result(id, crate::outcome::ToolFailed::new(message)),
            };
        }
        self
    }

    /// Approves every call of this tool that has no answer yet and is not
    /// [blocked](DeferredToolRequests::is_blocked). The tool is named by its [path](DeferredToolRequests::path), as a
    /// sub-agent's tool of the same name is another one.
    pub fn approve_tool(mut self, tool: &str) -> Self {
        for call in &self.requests.approvals {
            let id = call.id();
            let open = !self.results.approvals.contains_key(id) && !self.results.is_left(id);
            let named = self.requests.path(id).is_some_and(|path| path == tool);
            if named && open && !self.requests.is_blocked(id) {
                self = self.approve(id);
            }
        }
        self
    }

    /// Adds metadata for the tool of a call.
    pub fn metadata(mut self, id: impl Into<String>, metadata: Map<String, Value>) -> Self {
        self.results.metadata.insert(id.into(), metadata);
        self
    }

    /// Sets who answered, for every call that already has an answer and no name yet.
    ///
    /// Call it several times to name several people: `.approve("c1").answered_by("ann").deny("c2",
    /// "no").answered_by("bob")`. A ledger checks quorum and "not the requester" against the name, so take it from a
    /// session and never from the request. If your program answers by itself, use
    /// [`answered_by_policy`](Self::answered_by_policy).
    pub fn answered_by(mut self, who: &str) -> Self {
        let ids = self.results.approvals.keys().chain(self.results.calls.keys());
        for id in ids {
            self.results.answered_by.entry(id.clone()).or_insert_with(|| who.to_owned());
        }
        self
    }

    /// Says that a policy has answered and no person, for every call that already has an answer and no name yet. The
    /// denials do not count as a person's (rule D11), so that the same call is asked about when a person is there.
    ///
    /// The name is the text behind `policy: `, or `policy` alone. [`is_policy`](crate::handler::is_policy) recognises both,
    /// also in answers that were stored or sent.
    ///
    /// ```
    /// use countersign::{DeferredToolRequests, ToolCall};
    /// use serde_json::json;
    ///
    /// let requests = DeferredToolRequests::new([ToolCall::new("c1", "rm", json!({}))], []);
    /// let answers = requests.answer().deny("c1", "no writes at night").answered_by_policy("night").build()?;
    /// assert_eq!(answers.answered_by["c1"], "policy: night");
    /// # Ok::<(), countersign::AnswerError>(())
    /// ```
    pub fn answered_by_policy(self, name: &str) -> Self {
        match name.trim() {
            "" => self.answered_by(POLICY),
            name => self.answered_by(&format!("{POLICY}: {name}")),
        }
    }

    /// Checks the answers as a whole, and returns them.
    ///
    /// # Errors
    /// [`AnswerError`] when a call is neither answered nor left, answered twice, unknown, or answered in the wrong
    /// category (rule A4); it names the calls.
    pub fn build(self) -> Result<DeferredToolResults, AnswerError> {
        if !self.twice.is_empty() {
            return Err(AnswerError::Contradictory { ids: self.twice });
        }
        check_answers(self.requests, &self.results)?;
        Ok(self.results)
    }

    /// The answers given so far, unchecked, for [`DeferredToolRequests::remaining`] or
    /// [`DeferredToolResults::merge`].
    #[must_use]
    pub fn unchecked(self) -> DeferredToolResults {
        self.results
    }

    fn open(&self) -> Vec<String> {
        self.requests.open(&self.results).map(|call| call.id().to_owned()).collect()
    }
}
