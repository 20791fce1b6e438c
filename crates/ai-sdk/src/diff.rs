//! The difference of two messages: the chunks that a client has missed.
//!
//! A client whose connection broke has a beginning of the message: some text, some calls, perhaps an outcome less. We
//! send it what is missing and nothing twice, as it shows text twice that comes twice.
//!
//! ```text
//! server   text A | call c1, returned | text B
//! client   text A | call c1
//! sent              c1's outcome      | text B
//! ```

use super::chunk::Chunk;
use super::message::{ToolPart, UiMessage, UiPart};
use super::writer::ChunkWriter;

impl ChunkWriter {
    /// Writes the chunks that a client has missed: outcomes of calls that it has, and the parts after those that it
    /// has.
    ///
    /// `theirs` is the message as the client has posted it. We compare parts in order, and write everything again from
    /// the first difference on.
    ///
    /// After the first part that the client does not have, everything is new to it. If we wrote only a missing
    /// part from the middle, it would come behind the others, in another order than at the server.
    pub(super) fn catch_up(&mut self, ours: &UiMessage, theirs: &UiMessage, out: &mut Vec<Chunk>) {
        // Steps are not compared: at the client, a part that is written again may be in a step of its own.
        let mut theirs = theirs.parts.iter().filter(|part| !matches!(part, UiPart::StepStart));
        let mut next = theirs.next();
        for part in &ours.parts {
            let mut known = None;
            if !matches!(part, UiPart::StepStart) {
                known = next.filter(|theirs| has(part, theirs));
                // After the first part that the client does not have, every part is new to the client.
                next = known.and_then(|_| theirs.next());
            }
            self.part_of(part, known, out);
        }
        self.close(out);
    }

    /// Writes what is new of a part to a client that has the part as `theirs`, or does not have it.
    fn part_of(&mut self, part: &UiPart, theirs: Option<&UiPart>, out: &mut Vec<Chunk>) {
        match part {
            UiPart::StepStart => self.close(out),
            UiPart::Tool(tool) => {
                self.call_of(tool, theirs.and_then(UiPart::tool), out);
                self.outcome_of(tool, out);
            }
            UiPart::Text { text, .. } if theirs.is_none() => self.whole_text(text, out),
            UiPart::Other(data) if theirs != Some(part) => {
                if let Ok(chunk @ Chunk::Data(_)) = serde_json::from_value(data.clone().into()) {
                    self.push(chunk, out);
                }
            }
            UiPart::Text { .. } | UiPart::Other(_) => {}
        }
    }

    /// Writes a call with its arguments, and its ask unless the client knows that.
    fn call_of(&mut self, tool: &ToolPart, theirs: Option<&ToolPart>, out: &mut Vec<Chunk>) {
        let id = &tool.tool_call_id;
        self.begin(tool, out);
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

    /// Writes the outcome of a call, if the call has one.
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

/// Returns `true` if two parts are the same one, perhaps in different states.
fn has(ours: &UiPart, theirs: &UiPart) -> bool {
    match (ours, theirs) {
        (UiPart::Text { text: ours, .. }, UiPart::Text { text: theirs, .. }) => ours == theirs,
        (UiPart::Tool(ours), UiPart::Tool(theirs)) => ours.tool_call_id == theirs.tool_call_id,
        (UiPart::Other(ours), UiPart::Other(theirs)) => {
            ours.get("type") == theirs.get("type") && ours.get("id") == theirs.get("id")
        }
        _ => false,
    }
}
