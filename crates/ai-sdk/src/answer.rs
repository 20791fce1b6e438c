//! Answers of the client, and how they are merged with the decisions that the ledger has.
//!
//! An answer can come from two places: this request, and the ledger, where a colleague may have decided in the inbox a
//! second before. The ledger's answer counts, and the client shows whose it was (rule L1).

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::grant::ChosenGrant;
use super::message::UiMessage;
use super::principal::Principal;
use countersign::deferred::{
    Answer, CallResult, DeferredToolRequests, DeferredToolResults, ToolApproval, ToolApproved,
};
use countersign::outcome::{DeferralKind, ToolDenied};

/// The answer of a request to one pending call, with the part that shows the call.
#[derive(Debug)]
pub(super) struct PartAnswer {
    pub(super) call: String,
    pub(super) part: String,
    pub(super) answer: Answer,
    /// The grant to make with the approval.
    pub(super) grant: Option<ChosenGrant>,
}

/// The stored form of an answer in a chat, as a part of `#[serde(with = "stored")]`.
pub(super) mod stored {
    use super::{
        Answer, CallResult, Deserialize, Deserializer, Serialize, Serializer, ToolApproval,
        ToolApproved, ToolDenied,
    };

    /// A decision about a call, or the result of a call that the client executes.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum StoredAnswer {
        Approval(ToolApproval),
        Result(CallResult),
    }

    pub(in super::super) fn serialize<S: Serializer>(
        answer: &Option<Answer>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let stored = answer.clone().map(|answer| match answer {
            Answer::Approve { args } => {
                Ok(StoredAnswer::Approval(ToolApproved { override_args: args }.into()))
            }
            Answer::Deny { message } => Ok(StoredAnswer::Approval(ToolDenied { message }.into())),
            Answer::Result { value } => serde_json::from_value(value).map(StoredAnswer::Result),
        });
        stored.transpose().map_err(serde::ser::Error::custom)?.serialize(serializer)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Answer>, D::Error> {
        let stored = Option::<StoredAnswer>::deserialize(deserializer)?;
        Ok(stored.map(|stored| match stored {
            StoredAnswer::Approval(approval) => Answer::from(&approval),
            StoredAnswer::Result(result) => Answer::from(&result),
        }))
    }
}

/// Returns `true` if every pending call of the batch has an answer.
pub(super) fn is_complete(requests: &DeferredToolRequests, answers: &DeferredToolResults) -> bool {
    requests.iter().all(|call| !answers.is_left(call.id()))
}

/// Copies an answer from the client's copy of a message to the server's. The client shows its own answer already, so we
/// send no chunk for it, and to apply the chunks would not bring it into the server's copy.
///
/// As the reason we copy only the words that the person typed. If we showed the default text for the model as the
/// person's own words, that would put something into their mouth.
pub(super) fn copy_answer(message: &mut UiMessage, answer: &PartAnswer, client: &UiMessage) {
    let Some(part) = message.tool_mut(&answer.part) else { return };
    let Some(theirs) = client.tool(&answer.part) else { return };
    part.state.clone_from(&theirs.state);
    let approved = match &answer.answer {
        Answer::Approve { .. } => true,
        Answer::Deny { .. } => false,
        Answer::Result { .. } => {
            part.output.clone_from(&theirs.output);
            part.error_text.clone_from(&theirs.error_text);
            return;
        }
    };
    if let Some(approval) = &mut part.approval {
        approval.approved = Some(approved);
        if !approved {
            // Only the user's own words: the default message that the model gets without them is not the user's.
            let reason = theirs.approval.as_ref().and_then(|theirs| theirs.reason.as_deref());
            let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
            approval.reason = reason.map(str::to_owned);
        }
    }
}

/// Merges the answers of the request with the decisions of the ledger. A recorded decision wins over an answer (rule
/// L1); calls with neither are left pending.
pub(super) fn merged(
    requests: &DeferredToolRequests,
    recorded: &DeferredToolResults,
    answers: &HashMap<&str, &Answer>,
    principal: &Principal,
) -> DeferredToolResults {
    let mut results = requests.answer().unchecked();
    for call in requests.iter() {
        let id = call.id();
        let by = recorded.answered_by.get(id).map_or(principal.as_str(), String::as_str);
        let kind = requests.kind(id).unwrap_or(DeferralKind::Approval);
        match recorded.answer_to(id).or_else(|| answers.get(id).copied().cloned()) {
            Some(answer) => results.set_answer(id, kind, &answer, by),
            None => results = results.leave(id),
        }
    }
    results
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[derive(Serialize, Deserialize)]
    struct WithAnswer {
        #[serde(with = "stored")]
        held: Option<Answer>,
    }

    /// L7: what an earlier version has stored is read, and written as before.
    #[test]
    fn a_stored_answer_keeps_its_form() {
        let approval = |it: Value| json!({"held": {"approval": it}});
        for stored in [
            approval(json!({"kind": "tool-approved", "override_args": null})),
            approval(json!({"kind": "tool-approved", "override_args": {"n": 1}})),
            approval(json!({"kind": "tool-denied", "message": "no"})),
            json!({"held": {"result": "12 degrees"}}),
            json!({"held": {"result": {"kind": "tool-failed", "message": "no signal"}}}),
            json!({"held": null}),
        ] {
            let kept: WithAnswer = serde_json::from_value(stored.clone()).unwrap();
            assert_eq!(serde_json::to_value(&kept).unwrap(), stored);
        }
    }
}
