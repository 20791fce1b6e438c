//! Answers that do not fit the batch they are for.

use super::ids::{Ids, IdsAre};

/// Answers that do not fit the pending calls: a call without an answer, an answer for another batch, edited arguments
/// that the tool does not take. A service reports it to the person who answered, as HTTP 422 does.
///
/// No deferred call has been executed (rule A4), and the pending calls are unchanged: they can be answered again.
///
/// ```
/// use countersign::{AnswerError, DeferredToolRequests, ToolCall};
/// use serde_json::json;
///
/// let mut requests = DeferredToolRequests::default();
/// requests.approvals.push(ToolCall::new("c1", "delete_file", json!({})));
/// let error = requests.answer().build().unwrap_err();
/// assert_eq!(error, AnswerError::Missing { ids: vec!["c1".into()] });
/// ```
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// Some calls were neither answered nor explicitly left.
    #[error(
        "no answer for {}: answer every deferred call, or leave it explicitly with `leave`",
        Ids(ids)
    )]
    Missing {
        /// The ids of the calls without an answer.
        ids: Vec<String>,
    },
    /// Answers for calls that are not pending: never asked about, already settled, or answered before.
    #[error(
        "{} not waiting for an answer: answer only the calls of the requests you were given",
        IdsAre(ids)
    )]
    Unknown {
        /// The ids that are not pending.
        ids: Vec<String>,
    },
    /// A result was given for a call that needs an approval, or an approval for a call that is executed elsewhere.
    #[error(
        "wrong kind of answer for {}: answer approvals in `approvals`, and calls executed elsewhere in `calls`",
        Ids(ids)
    )]
    WrongKind {
        /// The ids of the calls that were answered in the wrong map.
        ids: Vec<String>,
    },
    /// A call was answered in more than one way, or answered and left.
    #[error("more than one answer for {}: give each call one answer, or leave it", Ids(ids))]
    Contradictory {
        /// The ids of the calls with several answers.
        ids: Vec<String>,
    },
    /// The answers have more than one of these problems.
    #[error("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several {
        /// The problems, each as its own error.
        problems: Vec<Self>,
    },
    /// The answers were made for other questions than the pending ones (rule A6).
    #[error(
        "the answers were made for other questions than the pending ones ({}): show the current requests and answer those",
        Ids(ids)
    )]
    OtherBatch {
        /// The ids of the calls whose question is not the answered one; all calls when the batch differs.
        ids: Vec<String>,
    },
    /// The answers carry no fingerprints of the requests, although the turn requires them, or other answers that are
    /// merged with these carry them.
    #[error(
        "the answers carry no fingerprints, and `require_bound_answers`, or the answers they are merged with, demand them: build them with `requests.answer()`"
    )]
    NotBound,
    /// Arguments that an approver edited do not fit their tools.
    #[error("the edited arguments of {} do not fit: {problem}", Ids(ids))]
    InvalidArgs {
        /// The ids of the calls whose edited arguments do not fit.
        ids: Vec<String>,
        /// The tools, each with what does not fit.
        problem: String,
    },
}

impl AnswerError {
    /// The ids of the affected calls; empty when the answers as a whole do not fit.
    #[must_use]
    pub fn ids(&self) -> Vec<String> {
        match self {
            Self::Missing { ids }
            | Self::Unknown { ids }
            | Self::WrongKind { ids }
            | Self::Contradictory { ids }
            | Self::OtherBatch { ids }
            | Self::InvalidArgs { ids, .. } => ids.clone(),
            Self::Several { problems } => problems.iter().flat_map(Self::ids).collect(),
            Self::NotBound => Vec::new(),
        }
    }
}
