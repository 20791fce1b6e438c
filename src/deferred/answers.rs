//! Building the answers to one batch.

use serde_json::{Map, Value};

use super::check::check_answers;
use super::{CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval, ToolApproved};
use crate::args::IntoArgs;
use crate::error::AnswerError;
use crate::outcome::ToolDenied;

/// Builds the answers to one batch, binds them to what was shown, and checks them.
///
/// A call may be answered once; [`build`](Self::build) returns an error that names the calls answered twice.
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
    pub fn approve_with(self, id: impl Into<String>, args: impl IntoArgs) -> Self {
        self.approval(id, ToolApproved::with_args(args))
    }

    /// Denies a call; the model gets the message verbatim.
    pub fn deny(self, id: impl Into<String>, message: impl Into<String>) -> Self {
        self.approval(id, ToolDenied::new(message))
    }

    /// Answers a call that needs an approval.
    pub fn approval(mut self, id: impl Into<String>, answer: impl Into<ToolApproval>) -> Self {
        let id = id.into();
        if self.results.approvals.insert(id.clone(), answer.into()).is_some() {
            self.twice.push(id);
        }
        self
    }

    /// Gives the result of a call that was executed elsewhere.
    pub fn result(mut self, id: impl Into<String>, result: impl Into<CallResult>) -> Self {
        let id = id.into();
        if self.results.calls.insert(id.clone(), result.into()).is_some() {
            self.twice.push(id);
        }
        self
    }

    /// Leaves a call to the next handler or to the caller.
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
    pub fn answered_by(mut self, who: &str) -> Self {
        let ids = self.results.approvals.keys().chain(self.results.calls.keys());
        for id in ids {
            self.results.answered_by.entry(id.clone()).or_insert_with(|| who.to_owned());
        }
        self
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
