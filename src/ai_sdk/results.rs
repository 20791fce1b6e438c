//! What became of calls, as chunks.

use serde_json::Value;

use super::chunk::Chunk;
use super::writer::ChunkWriter;
use crate::message::{RequestPart, ReturnKind};

impl ChunkWriter {
    /// Says that nothing more becomes of a call, for this reason. A call that has its result keeps it.
    pub fn fail(&mut self, part: &str, reason: &str, out: &mut Vec<Chunk>) {
        self.outcome(part, Chunk::tool_output_error(part, reason), out);
    }

    pub(super) fn result(&mut self, part: &RequestPart, prefix: &str, out: &mut Vec<Chunk>) {
        let RequestPart::ToolReturn { content, tool_call_id, outcome, .. } = part else { return };
        let id = self.part(&format!("{prefix}{tool_call_id}")).to_owned();
        let text = || content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        match outcome {
            ReturnKind::Success => self.returned(&id, content.clone(), out),
            ReturnKind::Denied => self.denied(&id, &text(), out),
            ReturnKind::Failed | ReturnKind::Retried | ReturnKind::Interrupted => {
                self.fail(&id, &text(), out);
            }
        }
    }

    /// A call has its result.
    pub(super) fn returned(&mut self, part: &str, output: Value, out: &mut Vec<Chunk>) {
        if self.was_denied(part) {
            // A client that has said no takes no result of the call.
            return self.fail(part, "It was approved and has run, before it was denied here.", out);
        }
        let returned = Chunk::ToolOutputAvailable {
            tool_call_id: part.to_owned(),
            output,
            preliminary: None,
            dynamic: None,
            provider_executed: None,
            provider_metadata: None,
            tool_metadata: None,
        };
        self.outcome(part, returned, out);
    }

    /// A call was denied. A client whose user has not denied it is told why.
    pub(super) fn denied(&mut self, part: &str, reason: &str, out: &mut Vec<Chunk>) {
        if self.was_denied(part) {
            let denied = Chunk::ToolOutputDenied { tool_call_id: part.to_owned() };
            self.outcome(part, denied, out);
        } else {
            self.fail(part, reason, out);
        }
    }
}
