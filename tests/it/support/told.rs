//! The texts that a scripted model was told.

use countersign::Message;
use countersign::message::{RequestPart, ReturnKind};
use countersign::testing::ScriptedModel;
use serde_json::Value;

/// The messages of the last request.
pub(crate) fn last_seen(model: &ScriptedModel) -> Vec<Message> {
    model.requests().last().map(|request| request.messages().to_vec()).unwrap_or_default()
}

/// The results in the last request of a history, in order: call id, kind and content.
pub(crate) fn results(history: &[Message]) -> Vec<(String, ReturnKind, Value)> {
    let parts = history.iter().rev().find_map(|message| match message {
        Message::Request { parts } => Some(parts),
        Message::Response { .. } => None,
    });
    let result = |part: &RequestPart| match part {
        RequestPart::ToolReturn { tool_call_id, outcome, content, .. } => {
            Some((tool_call_id.clone(), *outcome, content.clone()))
        }
        _ => None,
    };
    parts.into_iter().flatten().filter_map(result).collect()
}
