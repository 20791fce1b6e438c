//! What a client has missed of a message.

use super::chunk::Chunk;
use super::message::{ToolPart, UiMessage, UiPart};
use super::writer::{Begun, ChunkWriter};

impl ChunkWriter {
    /// Tells a client that has this much of a message what it has missed: what became of calls, and the parts behind the
    /// ones it has.
    pub(super) fn catch_up(&mut self, ours: &UiMessage, theirs: &UiMessage, out: &mut Vec<Chunk>) {
        // Steps are not compared: what is told again may stand in one more of them.
        let mut theirs = theirs.parts.iter().filter(|part| !matches!(part, UiPart::StepStart));
        let mut next = theirs.next();
        for part in &ours.parts {
            match next.filter(|theirs| has(part, theirs)) {
                _ if matches!(part, UiPart::StepStart) => self.close(out),
                Some(known) => {
                    self.rest_of(part, known, out);
                    next = theirs.next();
                }
                None => {
                    next = None;
                    self.part_again(part, out);
                }
            }
        }
        self.close(out);
    }

    /// What is new of a part that the client has.
    fn rest_of(&mut self, part: &UiPart, theirs: &UiPart, out: &mut Vec<Chunk>) {
        match part {
            UiPart::Tool(tool) => {
                self.call_again(tool, theirs.tool(), out);
                self.outcome_of(tool, out);
            }
            UiPart::Other(_) if part != theirs => self.part_again(part, out),
            UiPart::Other(_) | UiPart::Text { .. } | UiPart::StepStart => {}
        }
    }

    fn part_again(&mut self, part: &UiPart, out: &mut Vec<Chunk>) {
        match part {
            UiPart::StepStart => self.close(out),
            UiPart::Text { text, .. } => self.whole_text(text, out),
            UiPart::Tool(tool) => {
                self.call_again(tool, None, out);
                self.outcome_of(tool, out);
            }
            UiPart::Other(data) => {
                let chunk = serde_json::from_value(data.clone().into()).ok();
                out.extend(chunk.filter(|chunk| matches!(chunk, Chunk::Data(_))));
            }
        }
    }

    /// A call that the client does not know, or not all of.
    fn call_again(&mut self, tool: &ToolPart, theirs: Option<&ToolPart>, out: &mut Vec<Chunk>) {
        let id = &tool.tool_call_id;
        let (name, dynamic) = (tool.tool_name.clone(), tool.dynamic);
        self.begin(id, Begun { name, input: tool.input.clone().unwrap_or_default(), dynamic }, out);
        if tool.state != "input-streaming" {
            self.available(id, None, out);
        }
        let knows = theirs.is_some_and(|theirs| theirs.approval.is_some() || theirs.is_over());
        if let Some(approval) = &tool.approval
            && tool.state == "approval-requested"
            && !knows
        {
            self.ask(id, &approval.id, None, out);
        }
    }

    /// What became of a call, if anything has.
    fn outcome_of(&mut self, tool: &ToolPart, out: &mut Vec<Chunk>) {
        let id = &tool.tool_call_id;
        let text = tool.error_text.as_deref();
        match tool.state.as_str() {
            "output-available" => self.returned(id, tool.output.clone().unwrap_or_default(), out),
            "output-denied" => {
                let reason = tool.approval.as_ref().and_then(|it| it.reason.as_deref());
                self.denied(id, reason.unwrap_or("It was denied."), out);
            }
            "output-error" => self.fail(id, text.unwrap_or("The call failed."), out),
            _ => {}
        }
    }
}

/// Whether a client that has their part has ours.
fn has(ours: &UiPart, theirs: &UiPart) -> bool {
    match (ours, theirs) {
        (UiPart::Text { text: ours, .. }, UiPart::Text { text: theirs, .. }) => ours == theirs,
        (UiPart::Tool(ours), UiPart::Tool(theirs)) => ours.tool_call_id == theirs.tool_call_id,
        (UiPart::StepStart, UiPart::StepStart) => true,
        (UiPart::Other(ours), UiPart::Other(theirs)) => {
            ours.get("type") == theirs.get("type") && ours.get("id") == theirs.get("id")
        }
        _ => false,
    }
}
