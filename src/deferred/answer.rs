//! The answer to one pending call.
//!
//! One type serves every way in which an answer arrives: from a handler, from the JSON of another service, from the
//! ledger, where another process has recorded it. An answer that was *recorded* is final. If it does not fit, we do
//! not refuse it, but read it strictly:
//!
//! | recorded answer | the call needs an approval | the call needs a result |
//! |---|---|---|
//! | approve | runs | fails: "what was asked for is an answer" |
//! | deny | denied | fails, with the message |
//! | a result | denied: "what was asked for is an approval" | is the result |
//!
//! An answer that arrives *now* and does not fit is an error (rule A4), as the one who gives it can still give another.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CallResult, DeferredToolResults, ToolApproval, ToolApproved};
use crate::args::Args;
use crate::outcome::{DeferralKind, ToolDenied, ToolFailed};

/// The answer to a pending call.
///
/// An approval is answered with [`Approve`](Self::Approve) or [`Deny`](Self::Deny), a call that is executed elsewhere with
/// [`Result`](Self::Result), or with a denial, which fails it.
///
/// ```
/// use countersign::deferred::Answer;
/// use countersign::{Args, DeferredToolResults};
/// use serde_json::json;
///
/// let edited = Answer::Approve { args: Some(Args::new().with("path", "b.log")) };
/// assert_eq!(edited.word(), "edit");
/// assert_eq!(serde_json::to_value(&edited)?, json!({"verdict": "approve", "args": {"path": "b.log"}}));
/// let denied = DeferredToolResults::new().deny("c1", "keep the log").answer_to("c1");
/// assert_eq!(denied, Some(Answer::Deny { message: "keep the log".into() }));
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// Exhaustive on purpose: a surface has to show every kind of answer, and a new one must not pass for an approval.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Approve {
        /// The arguments to run with instead of the ones that were shown; `None` for the ones that were shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Args>,
    },
    /// The call does not run.
    Deny {
        /// The text that the model gets as the result.
        message: String,
    },
    /// The call was executed elsewhere, or is a question to a person, and has this result: a [`CallResult`] as JSON.
    #[serde(rename = "answer")]
    Result {
        /// The result, as JSON.
        value: Value,
    },
}

impl Answer {
    /// The answer as one word: `approve`, `edit`, `deny` or `answer`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approve { args: None } => "approve",
            Self::Approve { args: Some(_) } => "edit",
            Self::Deny { .. } => "deny",
            Self::Result { .. } => "answer",
        }
    }

    /// The answer as one word of events and metrics, which is that of [`Answered::word`].
    pub(crate) fn given(&self) -> &'static str {
        match self {
            Self::Approve { args: None } => "approved",
            Self::Approve { args: Some(_) } => "edited",
            Self::Deny { .. } => "denied",
            Self::Result { .. } => "result",
        }
    }

    pub(crate) fn deny(message: impl Into<String>) -> Self {
        Self::Deny { message: message.into() }
    }

    /// The answer as one to a call that needs an approval. A result approves nothing, and becomes a denial (rule D4).
    fn to_approval(&self) -> ToolApproval {
        match self {
            Self::Approve { args } => ToolApproved { override_args: args.clone() }.into(),
            Self::Deny { message } => ToolDenied::new(message.clone()).into(),
            Self::Result { .. } => ToolDenied::new(
                "It was answered with a result, but needed an approval: it did not run.",
            )
            .into(),
        }
    }

    /// The answer as the result of a call that is executed elsewhere. An approval is no result, and becomes a failure.
    fn to_result(&self) -> CallResult {
        let unfit = |problem: &str| ToolFailed::new(problem).into();
        match self {
            Self::Result { value } => serde_json::from_value(value.clone())
                .unwrap_or_else(|_| unfit("The answer could not be read.")),
            Self::Deny { message } => unfit(message),
            Self::Approve { .. } => unfit("It was approved, but needed a result."),
        }
    }
}

impl From<&ToolApproval> for Answer {
    fn from(approval: &ToolApproval) -> Self {
        match approval {
            ToolApproval::Approved(approved) => {
                Self::Approve { args: approved.override_args.clone() }
            }
            ToolApproval::Denied(denied) => Self::deny(denied.message.clone()),
        }
    }
}

impl From<&CallResult> for Answer {
    fn from(result: &CallResult) -> Self {
        Self::Result { value: serde_json::to_value(result).unwrap_or_default() }
    }
}

impl DeferredToolResults {
    /// The answer to a call; `None` for a call that is left, or that is not in these answers.
    ///
    /// ```
    /// use countersign::deferred::Answer;
    /// use countersign::DeferredToolResults;
    ///
    /// let answers = DeferredToolResults::new().approve("c1").leave("c2");
    /// assert_eq!(answers.answer_to("c1"), Some(Answer::Approve { args: None }));
    /// assert_eq!(answers.answer_to("c2"), None);
    /// ```
    #[must_use]
    pub fn answer_to(&self, id: &str) -> Option<Answer> {
        let approval = self.approvals.get(id).map(Answer::from);
        approval.or_else(|| self.calls.get(id).map(Answer::from))
    }

    /// Replaces the answer to a call of this kind, and records who gave it. If the answer is of the wrong kind, it
    /// becomes a denial or a failure (rule D4) and no error: a recorded answer is final, and no person could give
    /// another one.
    ///
    /// ```
    /// use countersign::DeferredToolResults;
    /// use countersign::deferred::Answer;
    /// use countersign::outcome::DeferralKind;
    ///
    /// let mut answers = DeferredToolResults::new();
    /// let no = Answer::Deny { message: "keep it".to_owned() };
    /// answers.set_answer("c1", DeferralKind::Approval, &no, "ann");
    /// assert_eq!((answers.answer_to("c1"), answers.answered_by["c1"].as_str()), (Some(no), "ann"));
    /// ```
    pub fn set_answer(&mut self, id: &str, kind: DeferralKind, answer: &Answer, by: &str) {
        self.remove_answer(id);
        self.answered_by.insert(id.to_owned(), by.to_owned());
        if kind == DeferralKind::Approval {
            self.approvals.insert(id.to_owned(), answer.to_approval());
        } else {
            self.calls.insert(id.to_owned(), answer.to_result());
        }
    }

    /// Removes the answer to a call, and who gave it.
    pub(crate) fn remove_answer(&mut self, id: &str) {
        self.approvals.remove(id);
        self.calls.remove(id);
        self.answered_by.remove(id);
    }
}

/// The answer to a pending call, and the person who gave it, if the answers name one.
///
/// ```
/// use countersign::deferred::Answered;
/// use countersign::{FunctionToolset, ToolCall, ToolError, ToolsExt, Turn, schemars, tool_fn};
/// use serde_json::json;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct File { path: String }
/// async fn delete(file: File) -> Result<String, ToolError> { Ok(file.path) }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let turn = Turn::new(FunctionToolset::new().tool(tool_fn("delete", "Deletes a file", delete)).approval_required());
/// let suspended = turn.run(vec![ToolCall::new("c1", "delete", json!({"path": "a"}))]).await?.into_suspended().unwrap();
/// let answers = suspended.requests().answer().approve("c1").answered_by("ann").build()?;
/// let report = turn.resume(suspended, answers).await?;
/// assert_eq!(report.calls()[0].answered(), Some(&Answered::Approved { by: Some("ann".into()), edited: false }));
/// # Ok::<(), countersign::BoxError>(()) }).unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answered {
    /// The call was approved.
    Approved {
        /// The person who answered, if known.
        by: Option<String>,
        /// `true` if the approval is of other arguments than were shown.
        edited: bool,
    },
    /// The call was denied.
    Denied {
        /// The person who answered, if known.
        by: Option<String>,
    },
    /// The call was executed elsewhere, or is a question to a person, and its result was given.
    Result {
        /// The person who gave the result, if known.
        by: Option<String>,
    },
}

impl Answered {
    /// The person who answered; `None` if the answers do not say.
    #[must_use]
    pub fn by(&self) -> Option<&str> {
        match self {
            Self::Approved { by, .. } | Self::Denied { by } | Self::Result { by } => by.as_deref(),
        }
    }

    /// The kind of answer as one word: `approved`, `edited`, `denied` or `result`.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Approved { edited: false, .. } => "approved",
            Self::Approved { edited: true, .. } => "edited",
            Self::Denied { .. } => "denied",
            Self::Result { .. } => "result",
        }
    }

    /// Emits a `tracing` event about the answer, without arguments (rule S2).
    pub(crate) fn report(&self, id: &str, tool: &str) {
        tracing::info!(target: "countersign::answer", call = id, tool, answer = self.word(), by = self.by());
    }
}

impl fmt::Debug for Answer {
    /// Shows the word, not the values (rule S2).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
