//! Answers of the client, and how they are merged with the decisions that the ledger has.
//!
//! An answer can come from two places: this request, and the ledger, where a colleague may have decided in the inbox a
//! second before. The ledger's counts, and the client is shown whose it was (rule L1).

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::message::UiMessage;
use super::principal::Principal;
use crate::deferred::{CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval};

/// The answer of a request to one pending call, with the part that shows the call.
#[derive(Debug)]
pub(super) struct PartAnswer {
    pub(super) call: String,
    pub(super) part: String,
    pub(super) answer: CallAnswer,
}

/// A decision about a call, or the result of a call that the client executes. It is stored with the chat.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CallAnswer {
    Approval(ToolApproval),
    Result(CallResult),
}

impl CallAnswer {
    pub(super) fn is_approval(&self) -> bool {
        matches!(self, Self::Approval(ToolApproval::Approved(_)))
    }

    pub(super) fn is_denial(&self) -> bool {
        matches!(self, Self::Approval(ToolApproval::Denied(_)))
    }
}

/// Whether every pending call of the batch has an answer.
pub(super) fn is_complete(requests: &DeferredToolRequests, answers: &DeferredToolResults) -> bool {
    requests.iter().all(|call| !answers.is_left(call.id()))
}

/// Copies an answer from the client's copy of a message to the server's. The client shows its own answer already, so no
/// chunk is sent for it, and applying the chunks would not bring it into the server's copy.
///
/// Only the words that the person typed are copied as the reason. The default text for the model, shown as the person's
/// own words, would put something into their mouth.
pub(super) fn copy_answer(message: &mut UiMessage, answer: &PartAnswer, client: &UiMessage) {
    let Some(part) = message.tool_mut(&answer.part) else { return };
    let Some(theirs) = client.tool(&answer.part) else { return };
    part.state.clone_from(&theirs.state);
    let CallAnswer::Approval(said) = &answer.answer else {
        part.output.clone_from(&theirs.output);
        part.error_text.clone_from(&theirs.error_text);
        return;
    };
    if let Some(approval) = &mut part.approval {
        match said {
            ToolApproval::Approved(_) => approval.approved = Some(true),
            ToolApproval::Denied(_) => {
                approval.approved = Some(false);
                // Only the user's own words: the default message that the model gets without them is not the user's.
                let reason = theirs.approval.as_ref().and_then(|theirs| theirs.reason.as_deref());
                let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
                approval.reason = reason.map(str::to_owned);
            }
        }
    }
}

/// Merges the answers of the request with the decisions of the ledger. A recorded decision wins over an answer (rule
/// L1); calls with neither are left pending.
pub(super) fn merged(
    requests: &DeferredToolRequests,
    mut recorded: DeferredToolResults,
    answers: &HashMap<&str, &CallAnswer>,
    principal: &Principal,
) -> DeferredToolResults {
    let mut results = requests.answer().unchecked();
    for call in requests.iter() {
        let id = call.id();
        let approval = recorded.approvals.remove(id);
        let result = recorded.calls.remove(id);
        let by = recorded.answered_by.remove(id);
        results = match (approval, result, answers.get(id)) {
            (Some(approval), _, _) => results.approval(id, approval),
            (None, Some(result), _) => results.result(id, result),
            (None, None, Some(CallAnswer::Approval(approval))) => {
                results.approval(id, approval.clone())
            }
            (None, None, Some(CallAnswer::Result(result))) => results.result(id, result.clone()),
            (None, None, None) => {
                results = results.leave(id);
                continue;
            }
        };
        let by = by.unwrap_or_else(|| principal.to_string());
        results.answered_by.insert(id.to_owned(), by);
    }
    results
}
