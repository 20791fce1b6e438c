//! The reducer: applies chunks to a message, with the same result as in every client.
//!
//! It is a port of the client's own reducer, with its visible oddities: text goes to the last open text, a second
//! announcement of a call replaces the part, metadata is merged at the top level only. If we were nicer than the
//! clients here, we would store a message that no client has shown.

use serde_json::Value;

use super::chunk::{Chunk, DataChunk};
use super::message::{PartApproval, ToolPart, UiMessage, UiPart};

impl UiMessage {
    /// Applies a chunk to the message as a client does.
    ///
    /// A server that applies every chunk that it sends has the message that the client shows. The text of
    /// arguments that are still streaming is not parsed, and chunks that are no part of a message change nothing.
    ///
    /// ```
    /// use countersign_ai_sdk::{Chunk, Role, UiMessage};
    ///
    /// let mut message = UiMessage::new("m1", Role::Assistant);
    /// message.apply(&Chunk::TextStart { id: "t1".into(), provider_metadata: None });
    /// message.apply(&Chunk::TextDelta { id: "t1".into(), delta: "Hi".into(), provider_metadata: None });
    /// assert_eq!(message.text(), "Hi");
    /// ```
    pub fn apply(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::Start { message_id, message_metadata } => {
                if let Some(id) = message_id {
                    self.id.clone_from(id);
                }
                self.merge_metadata(message_metadata.as_ref());
            }
            Chunk::StartStep {} => self.parts.push(UiPart::StepStart),
            Chunk::ResetStep {} => {
                let step = self.parts.iter().rposition(|part| matches!(part, UiPart::StepStart));
                self.parts.truncate(step.map_or(0, |step| step + 1));
            }
            Chunk::TextStart { .. } => {
                self.parts.push(UiPart::Text { text: String::new(), streaming: true });
            }
            Chunk::TextDelta { delta, .. } => {
                if let Some((text, _)) = self.open_text() {
                    text.push_str(delta);
                }
            }
            Chunk::TextEnd { .. } => {
                if let Some((_, streaming)) = self.open_text() {
                    *streaming = false;
                }
            }
            Chunk::Data(data) => self.data(data),
            Chunk::MessageMetadata { message_metadata } => {
                self.merge_metadata(Some(message_metadata));
            }
            Chunk::Finish { message_metadata, .. } => {
                self.merge_metadata(message_metadata.as_ref());
            }
            _ => self.apply_to_tool(chunk),
        }
    }

    fn apply_to_tool(&mut self, chunk: &Chunk) {
        match chunk {
            Chunk::ToolInputStart { tool_call_id, tool_name, dynamic, .. } => {
                self.announce(ToolPart::new(tool_call_id, tool_name, *dynamic, "input-streaming"));
            }
            Chunk::ToolInputAvailable { tool_call_id, tool_name, input, dynamic, .. } => {
                let tool = ToolPart::new(tool_call_id, tool_name, *dynamic, "input-available");
                self.announce(ToolPart { input: Some(input.clone()), ..tool });
            }
            Chunk::ToolInputError {
                tool_call_id, tool_name, input, error_text, dynamic, ..
            } => {
                let tool = ToolPart::new(tool_call_id, tool_name, *dynamic, "output-error");
                self.announce(ToolPart {
                    input: Some(input.clone()),
                    error_text: Some(error_text.clone()),
                    ..tool
                });
            }
            Chunk::ToolApprovalRequest { approval_id, tool_call_id, reason, .. } => {
                self.on_tool(tool_call_id, "approval-requested", |tool| {
                    let reason =
                        reason.iter().map(|it| ("requestReason".to_owned(), it.as_str().into()));
                    tool.approval = Some(PartApproval {
                        id: approval_id.clone(),
                        approved: None,
                        reason: None,
                        rest: reason.collect(),
                    });
                });
            }
            Chunk::ToolOutputAvailable { tool_call_id, output, .. } => {
                self.on_tool(tool_call_id, "output-available", |tool| {
                    tool.output = Some(output.clone());
                });
            }
            Chunk::ToolOutputError { tool_call_id, error_text, .. } => {
                self.on_tool(tool_call_id, "output-error", |tool| {
                    tool.error_text = Some(error_text.clone());
                });
            }
            Chunk::ToolOutputDenied { tool_call_id } => {
                self.on_tool(tool_call_id, "output-denied", |_| {});
            }
            _ => {}
        }
    }

    fn open_text(&mut self) -> Option<(&mut String, &mut bool)> {
        self.parts.iter_mut().rev().find_map(|part| match part {
            UiPart::Text { text, streaming } if *streaming => Some((text, streaming)),
            _ => None,
        })
    }

    /// Adds the part of a call, or replaces the part when the call's arguments are complete.
    fn announce(&mut self, tool: ToolPart) {
        if self.tool(&tool.tool_call_id).is_none() {
            self.parts.push(UiPart::Tool(Box::new(tool)));
        } else if let Some(known) = self.tool_mut(&tool.tool_call_id) {
            *known = tool;
        }
    }

    fn on_tool(&mut self, tool_call_id: &str, state: &str, change: impl FnOnce(&mut ToolPart)) {
        if let Some(tool) = self.tool_mut(tool_call_id) {
            state.clone_into(&mut tool.state);
            change(tool);
        }
    }

    fn data(&mut self, data: &DataChunk) {
        if data.transient == Some(true) {
            return;
        }
        let Ok(Value::Object(new)) = serde_json::to_value(data) else { return };
        let same = |part: &&mut UiPart| match part {
            UiPart::Other(old) => {
                data.id.is_some()
                    && old.get("type") == new.get("type")
                    && old.get("id") == new.get("id")
            }
            UiPart::Text { .. } | UiPart::StepStart | UiPart::Tool(_) => false,
        };
        match self.parts.iter_mut().find(same) {
            Some(part) => *part = UiPart::Other(new),
            None => self.parts.push(UiPart::Other(new)),
        }
    }

    fn merge_metadata(&mut self, more: Option<&Value>) {
        match (&mut self.metadata, more) {
            (Some(Value::Object(old)), Some(Value::Object(more))) => old.extend(more.clone()),
            (metadata, Some(more)) => *metadata = Some(more.clone()),
            (_, None) => {}
        }
    }
}
