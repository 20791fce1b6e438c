//! A call that waits for somebody.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::decision::Question;

/// What a call waits for.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeferralKind {
    /// Somebody has to approve it.
    Approval,
    /// It is executed elsewhere, and its result comes from there.
    External,
    /// Its result is a person's answer. Like [`External`](Self::External), shown as a question.
    #[schemars(description = "Its result is a person's answer.")]
    Question,
    /// It was handed to a sub-agent, and calls of that agent wait.
    Agent,
}

/// Why a call waits: what for, and with which open questions.
#[derive(Clone, PartialEq)]
pub struct Deferral {
    pub(crate) kind: DeferralKind,
    pub(crate) questions: Vec<Question>,
    pub(crate) metadata: Map<String, Value>,
    /// Why it waits again after it was approved.
    pub(crate) changed: Option<String>,
}

impl Deferral {
    pub(crate) fn approval(questions: Vec<Question>) -> Self {
        let mut metadata = Map::new();
        for (key, value) in questions.iter().flat_map(|question| &question.metadata) {
            // Outermost first, the first writer of a key wins (rule A5).
            metadata.entry(key.clone()).or_insert_with(|| value.clone());
        }
        Self { kind: DeferralKind::Approval, questions, metadata, changed: None }
    }

    pub(crate) fn external(kind: DeferralKind, metadata: Map<String, Value>) -> Self {
        Self { kind, questions: Vec::new(), metadata, changed: None }
    }

    pub(crate) fn of_agent() -> Self {
        Self::external(DeferralKind::Agent, Map::new())
    }

    /// What the call waits for.
    #[must_use]
    pub fn kind(&self) -> DeferralKind {
        self.kind
    }

    /// The open questions; none for a call that is executed elsewhere.
    #[must_use]
    pub fn questions(&self) -> &[Question] {
        &self.questions
    }

    /// Why the call waits again after it was approved: what is not as it was shown.
    #[must_use]
    pub fn changed(&self) -> Option<&str> {
        self.changed.as_deref()
    }

    /// The request metadata, of all askers together.
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
