//! The approval of a call, as the approved pass carries it.
//!
//! Between the question and the answer the stack may have changed: another version is deployed, a layer is added, a
//! tool gets another schema. So an approval carries what the approver saw as data, and the gate compares it with what
//! this pass has found: the tool's identity, the final arguments, and each open question. If anything is new, the
//! call is pending again. If there are fewer questions, the approval covers them, as less is asked than was answered
//! (rule A1).

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::Args;
use crate::decision::Question;

/// An approval: the call may run with exactly this tool, these arguments and these questions.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Approval {
    /// The tool's identity at its gate.
    pub(crate) tool: String,
    pub(crate) args: Args,
    pub(crate) questions: Arc<[Question]>,
    /// The metadata of the answer, which the tool body can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) metadata: Option<Map<String, Value>>,
    /// The id of the ask that was approved, in a run with a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ask: Option<String>,
    /// The trace context (`traceparent`) of the pass that asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) asked_in: Option<String>,
}

impl Approval {
    /// Returns `true` if all of these questions were shown when the call was approved.
    pub(crate) fn answers(&self, questions: &[Question]) -> bool {
        questions
            .iter()
            .all(|question| self.questions.iter().any(|shown| shown.id() == question.id()))
    }

    /// The reason why the approval does not answer these questions, for the person who is asked again: which of the
    /// values that were shown have changed, or else that there is another question.
    pub(crate) fn unanswered(&self, questions: &[Question]) -> String {
        let mut changed = BTreeSet::new();
        for question in questions {
            let same = |shown: &&Question| {
                shown.layer() == question.layer() && shown.key() == question.key()
            };
            let shown: Vec<_> = self.questions.iter().filter(same).collect();
            if shown.iter().any(|shown| shown.id() == question.id()) {
                continue;
            }
            let differs = |(name, digest): &(&String, &String)| {
                shown.iter().any(|shown| shown.pins().get(*name).is_some_and(|it| it != *digest))
            };
            let pins: Vec<_> = question.pins().iter().filter(differs).collect();
            if pins.is_empty() {
                return "there is a question that was not shown when it was approved".to_owned();
            }
            // A preview is pinned under its title, which is what a person knows.
            let title =
                |name: &str| format!("`{}`", name.strip_prefix("preview of ").unwrap_or(name));
            changed.extend(pins.into_iter().map(|(name, _)| title(name)));
        }
        let names: Vec<_> = changed.into_iter().collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        format!("{} {verb} changed since it was approved", names.join(", "))
    }
}
