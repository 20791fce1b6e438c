//! A deferred call: what kind of answer it needs, and why.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::decision::Question;

/// The kind of answer that a deferred call needs.
///
/// | kind | answered with | shown as |
/// |---|---|---|
/// | [`Approval`](Self::Approval) | approve, with edited arguments or without, or deny | the call that will run |
/// | [`External`](Self::External) | its result | a call that is executed elsewhere |
/// | [`Question`](Self::Question) | a person's answer, as the result | a question to a person |
/// | [`Agent`](Self::Agent) | nothing itself: the agent's own pending calls are in the batch | – |
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeferralKind {
    /// An approval, by a person or a policy.
    Approval,
    /// The result of an execution elsewhere, outside of the stack.
    External,
    /// A person's answer, which is the call's result. Like [`External`](Self::External), shown as a question.
    #[schemars(description = "Its result is a person's answer.")]
    Question,
    /// Pending calls of the sub-agent to which the call was delegated.
    Agent,
}

/// The deferral of a call: the kind of answer that it needs, and its open questions.
///
/// ```
/// use countersign::outcome::DeferralKind;
/// use countersign::{FunctionToolset, Outcome, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required();
/// let report = Turn::new(tools).run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?;
/// let Outcome::Deferred(deferral) = report.calls()[0].outcome() else { unreachable!() };
/// assert_eq!(deferral.kind(), DeferralKind::Approval);
/// assert_eq!(deferral.questions()[0].layer(), "approval_required");
/// assert_eq!(deferral.changed(), None, "it was not approved before");
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Clone, PartialEq)]
pub struct Deferral {
    pub(crate) kind: DeferralKind,
    /// Shared with the record, the pending call, its batch and its approval.
    pub(crate) questions: Arc<[Question]>,
    pub(crate) metadata: Map<String, Value>,
    /// The difference of the call from what was approved, if it is deferred again after an approval.
    pub(crate) changed: Option<String>,
}

impl Deferral {
    pub(crate) fn approval(questions: impl Into<Arc<[Question]>>) -> Self {
        let questions = questions.into();
        let mut metadata = Map::new();
        for (key, value) in questions.iter().flat_map(Question::metadata) {
            // Questions come outermost first: the outermost layer that writes a key wins (rule A5).
            metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Self { kind: DeferralKind::Approval, questions, metadata, changed: None }
    }

    pub(crate) fn external(kind: DeferralKind, metadata: Map<String, Value>) -> Self {
        Self { kind, questions: Arc::default(), metadata, changed: None }
    }

    pub(crate) fn of_agent() -> Self {
        Self::external(DeferralKind::Agent, Map::new())
    }

    /// The kind of answer that the call needs.
    #[must_use]
    pub fn kind(&self) -> DeferralKind {
        self.kind
    }

    /// The open questions; empty for a call that is executed elsewhere.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// The difference of the call from what was approved, if it is deferred again after an approval; `None` otherwise.
    #[must_use]
    pub fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// The request metadata, merged from all layers that ask.
    #[must_use]
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }
}

impl fmt::Debug for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deferral")
            .field("kind", &self.kind)
            .field("questions", &self.questions)
            .field("metadata", &self.metadata.keys())
            .finish()
    }
}
