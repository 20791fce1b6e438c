//! The texts that a run adds to the record of its reads, beside the results of its turns (rule O2).

use std::collections::HashMap;

use crate::call::{ToolCall, ToolDefinition};
use crate::message::{Message, RequestPart};
use crate::origin::{ReadCall, ReadLabel, ReadRecord};
use crate::turn::{SuspendedRun, Turn};

/// The label of prompts, which the host's code has made.
const PROMPT: &str = "prompt";

/// The record of a run, and how far it is.
#[derive(Default)]
pub(super) struct RunReading {
    pub(super) record: Option<ReadRecord>,
    /// The number of reads when the last response was requested.
    pub(super) requested: Option<u32>,
    /// `true` if the history that the run began with is still to be read.
    is_past_unread: bool,
    /// The texts that a person typed, which are none of the host's.
    said: Vec<String>,
}

impl RunReading {
    /// The record of the parent, that of the stored run, or a new one where the agent or the caller wants one.
    pub(super) fn begin(turn: &Turn, records: bool, state: &SuspendedRun, said: &[String]) -> Self {
        let known = turn.own_reads().or(state.reads.as_ref()).cloned();
        let wanted = records || !said.is_empty();
        let is_new = known.is_none();
        let Some(record) = known.or_else(|| wanted.then(ReadRecord::new)) else {
            return Self::default();
        };
        // The calls of a response that is taken up have been requested at a moment that is not known.
        if is_new && state.turn.is_some() {
            record.past_is_unknown();
        }
        said.iter().for_each(|text| record.user_said(text));
        Self {
            record: Some(record),
            requested: None,
            is_past_unread: is_new && state.turn.is_none() && !state.history.is_empty(),
            said: said.to_vec(),
        }
    }

    /// Adds a prompt. It is text of the host's code, unless it is what a person typed; the prompt of a sub-agent is the
    /// model's, and in the arguments of its call already.
    pub(super) fn prompt(&mut self, prompt: &str, is_root: bool) {
        if let Some(record) = &self.record
            && is_root
            && !self.said.iter().any(|said| said == prompt)
        {
            record.others_said(PROMPT, prompt);
        }
    }

    /// Remembers the moment of a request, and reads the history before the first one.
    pub(super) fn request(&mut self, history: &[Message], turn: &Turn, tools: &[ToolDefinition]) {
        let Some(record) = &self.record else { return };
        if std::mem::take(&mut self.is_past_unread) {
            read_history(record, history, turn, tools);
        }
        self.requested = Some(record.position());
    }
}

/// Reads a history that was made elsewhere. A result whose call or tool is not there may be of any label.
fn read_history(record: &ReadRecord, history: &[Message], turn: &Turn, tools: &[ToolDefinition]) {
    let calls = history.iter().flat_map(Message::tool_calls).map(|call| (call.id(), call));
    let calls: HashMap<&str, &ToolCall> = calls.collect();
    for message in history {
        message.tool_calls().for_each(|call| record.model_wrote(&call.args().to_value()));
        let Message::Request { parts } = message else { continue };
        for part in parts {
            match part {
                RequestPart::UserPrompt { content } => {
                    let read = ReadCall::new("", "", serde_json::Value::Null);
                    record.read(&ReadLabel::others(PROMPT), &read, content);
                }
                RequestPart::ToolReturn { tool_name, tool_call_id, content, .. } => {
                    let args = calls.get(tool_call_id.as_str()).map(|it| it.args().to_value());
                    let definition = tools.iter().find(|it| it.name() == tool_name);
                    if definition.is_none() || args.is_none() {
                        record.past_is_unknown();
                    }
                    let label = definition.map(|it| turn.label_of(it));
                    let label = label.unwrap_or_else(ReadLabel::unlabelled);
                    let read = ReadCall::new(tool_call_id, tool_name, args.unwrap_or_default());
                    record.read(&label, &read, content);
                }
                RequestPart::SystemPrompt { .. } => {}
            }
        }
    }
}
