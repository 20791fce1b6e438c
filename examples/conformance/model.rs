//! The scripted model: it gives the responses of the scenario, and records its requests.

use std::sync::Arc;

use countersign::message::{RequestPart, ResponsePart, ReturnKind};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{BoxError, Message, Model, ToolCall};
use serde_json::{Value, json};

use crate::log::Log;
use crate::scenario::{Part, Scenario};

pub(crate) struct Script {
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) log: Log,
}

impl Model for Script {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let mut seen = self.log.lock();
        seen.model_saw.push(new_parts(request.messages()).collect());
        let says = self.scenario.model.get(seen.responses);
        seen.responses += 1;
        Ok(match says {
            Some(parts) => ModelResponse {
                parts: parts.iter().map(part).collect(),
                ..ModelResponse::default()
            },
            None => ModelResponse::text("done"),
        })
    }
}

fn part(said: &Part) -> ResponsePart {
    match said {
        Part::Text { text } => ResponsePart::Text(text.clone()),
        Part::Call { call, id, args } => {
            ResponsePart::ToolCall(ToolCall::new(id.as_str(), call.as_str(), args.clone()))
        }
    }
}

/// The messages after the last response.
fn new_parts(history: &[Message]) -> impl Iterator<Item = Value> {
    let last = history.iter().rposition(|message| matches!(message, Message::Response { .. }));
    let new = history.iter().skip(last.map_or(0, |last| last + 1));
    new.flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        Message::Response { .. } => &[],
    })
    .map(told)
}

fn told(part: &RequestPart) -> Value {
    match part {
        RequestPart::UserPrompt { content } => json!({"user": content}),
        RequestPart::ToolReturn { tool_name, content, tool_call_id, outcome } => {
            json!({"id": tool_call_id, "tool": tool_name, "outcome": word(*outcome), "content": content})
        }
        RequestPart::SystemPrompt { .. } => Value::Null,
    }
}

fn word(kind: ReturnKind) -> &'static str {
    match kind {
        ReturnKind::Success => "success",
        ReturnKind::Denied => "denied",
        ReturnKind::Failed => "failed",
        ReturnKind::Retried => "retried",
        ReturnKind::Interrupted => "interrupted",
    }
}
