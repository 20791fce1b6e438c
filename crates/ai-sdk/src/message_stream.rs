//! The stream of one message to a client, which keeps the server's copy of the message equal to the client's.
//!
//! The server applies each chunk that it sends to its own copy of the message, by the rules of the clients
//! ([`reduce`](super::reduce)). So what is stored is what the client shows, without a second description of how events
//! become messages that could differ from the clients'.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::active::{ActiveStream, Replay};
use super::approval;
use super::chat::close_parts;
use super::chunk::Chunk;
use super::message::{Role, ToolPart, UiMessage, UiPart};
use super::version::ClientVersion;
use super::writer::ChunkWriter;
use countersign::call::ToolCall;
use countersign::deferred::{Answer, Answered};
use countersign::outcome::{DENIED, Outcome, ToolDenied};
use countersign::turn::{CallReport, RunEvent};

/// The beginning of the line that says which grant has approved a call
/// ([`by_line`](countersign::ledger::LedgerDecision::by_line)).
const BY_GRANT: &str = "by grant ";

/// The stream of one message to the client, with the server's copy of the message.
///
/// There are two copies: the writer's is the message as this client has it, and [`message`](Self::message) is the one
/// that the server stores. The same chunks change both. They differ only if the client had less of the message than
/// the server when the stream began, or was never asked about a call that another client has denied.
pub(super) struct MessageStream {
    active: Arc<ActiveStream>,
    version: ClientVersion,
    writer: ChunkWriter,
    message: UiMessage,
    /// The message as the client has posted it, until it has caught up.
    client: Option<UiMessage>,
}

pub(super) fn lock(stream: &Mutex<MessageStream>) -> MutexGuard<'_, MessageStream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MessageStream {
    /// Creates the stream of a new message.
    pub(super) fn new(
        active: Arc<ActiveStream>,
        version: ClientVersion,
        message: UiMessage,
    ) -> Self {
        Self { active, version, writer: ChunkWriter::new(version), message, client: None }
    }

    /// Creates a stream that continues a message, of which the client has the copy `client`.
    ///
    /// We use the messages that the client has posted for one thing: to know which parts it has. We take the tool
    /// and the arguments of each call from the server.
    pub(super) fn resume(
        active: Arc<ActiveStream>,
        version: ClientVersion,
        message: UiMessage,
        client: &UiMessage,
    ) -> Self {
        let ours: HashMap<&str, &ToolPart> =
            message.tools().map(|tool| (tool.tool_call_id.as_str(), tool)).collect();
        // The client's copy is not trusted: calls that the server does not have are left out, and the others get the
        // tool and the arguments that the server has.
        let mut known = client.clone();
        known.parts.retain(|part| {
            part.tool().is_none_or(|tool| ours.contains_key(tool.tool_call_id.as_str()))
        });
        for tool in known.tools_mut() {
            if let Some(our) = ours.get(tool.tool_call_id.as_str()) {
                tool.tool_name.clone_from(&our.tool_name);
                tool.input.clone_from(&our.input);
                tool.dynamic = our.dynamic;
            }
        }
        let writer = ChunkWriter::resume(version, &known);
        Self { active, version, writer, message, client: Some(client.clone()) }
    }

    pub(super) fn shared(self) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(self))
    }

    pub(super) fn message(&self) -> &UiMessage {
        &self.message
    }

    pub(super) fn rename(&mut self, call: &str, part: &str) {
        self.writer.rename(call, part);
    }

    pub(super) fn shows_otherwise(&self, call: &ToolCall) -> bool {
        self.writer.shows_otherwise(call)
    }

    pub(super) fn is_above(&self, call: &str) -> bool {
        self.writer.is_above(call)
    }

    pub(super) fn part(&self, call: &str) -> String {
        self.writer.part(call).to_owned()
    }

    /// Starts the stream with the chunks that the client has missed. A client that resumes the stream later has nothing
    /// of the message, and is sent all of it.
    pub(super) fn start(&mut self) {
        let id = self.message.id.clone();
        self.active.set_message(&id);
        self.write(|writer, out| writer.start(&id, out));
        let Some(client) = self.client.take() else { return };
        let mut missed = Vec::new();
        self.writer.catch_up(&self.message, &client, &mut missed);
        missed.iter().for_each(|chunk| self.active.send(chunk, &Replay::Skip));
        let nothing = UiMessage::new(id, Role::Assistant);
        let mut all = Vec::new();
        ChunkWriter::new(self.version).catch_up(&self.message, &nothing, &mut all);
        all.iter().for_each(|chunk| self.active.send_replay(chunk));
    }

    /// Writes chunks, applies them to the message and sends them.
    pub(super) fn write(&mut self, write: impl FnOnce(&mut ChunkWriter, &mut Vec<Chunk>)) {
        for chunk in self.write_unsent(write) {
            match self.denial_to_others(&chunk) {
                Some(other) => self.active.send(&chunk, &Replay::Instead(&other)),
                None => self.active.send(&chunk, &Replay::Same),
            }
        }
    }

    /// Writes chunks and applies them to the message. The caller sends them.
    pub(super) fn write_unsent(
        &mut self,
        write: impl FnOnce(&mut ChunkWriter, &mut Vec<Chunk>),
    ) -> Vec<Chunk> {
        let mut out = Vec::new();
        write(&mut self.writer, &mut out);
        out.iter().for_each(|chunk| self.message.apply(chunk));
        out
    }

    /// A denial for a client whose user has not denied the call: `tool-output-denied` would be taken as the user's own.
    ///
    /// For example, two tabs show one chat. For the second tab, a denial in the first is one by another person. Clients
    /// have no chunk for that, so we show it as an error with the reason.
    fn denial_to_others(&self, chunk: &Chunk) -> Option<Chunk> {
        let Chunk::ToolOutputDenied { tool_call_id } = chunk else { return None };
        let denied = self.message.tool(tool_call_id);
        let reason = denied.and_then(|tool| tool.approval.as_ref()?.reason.as_deref());
        let reason = reason.filter(|it| !it.is_empty()).unwrap_or(DENIED);
        Some(Chunk::tool_output_error(tool_call_id, reason))
    }

    /// Writes the chunks of an event of the run.
    pub(super) fn event(&mut self, event: &RunEvent) {
        self.write(|writer, out| writer.event(event, out));
        let prefix = event.call_id("");
        let event = match event {
            RunEvent::SubAgent { event, .. } => event,
            event => event,
        };
        if let RunEvent::ToolCallsDone { report } = event {
            report.calls().iter().for_each(|call| self.reported(&prefix, call));
        }
    }

    /// Writes how a call was decided, as the report of its turn has recorded it.
    fn reported(&mut self, prefix: &str, report: &CallReport) {
        let call = &format!("{prefix}{}", report.call().id());
        match report.answered() {
            Some(Answered::Approved { by: Some(by), .. })
                if by.starts_with(BY_GRANT) && self.ask_of(call).is_none() =>
            {
                let part = self.part(call);
                let granted = approval::by_grant(report.call().name(), &part, by);
                self.write(|writer, out| writer.push(granted, out));
            }
            Some(Answered::Approved { by, edited }) => {
                let answer = Answer::Approve { args: edited.then(|| report.args().clone()) };
                self.answered(call, &answer, by.as_deref().unwrap_or_default());
            }
            Some(Answered::Denied { by }) => {
                let text = report.outcome().text().unwrap_or_default();
                let answer = Answer::Deny { message: ToolDenied::new(text).message };
                self.answered(call, &answer, by.as_deref().unwrap_or_default());
            }
            None if matches!(report.outcome(), Outcome::Denied(_)) => {
                let part = self.part(call);
                let reason = report.outcome().text().unwrap_or_default();
                let refused = approval::refused(report.call().name(), &part, &reason);
                self.write(|writer, out| writer.push(refused, out));
            }
            _ => {}
        }
    }

    /// Writes into the data part of an ask how it was answered, and by whom.
    pub(super) fn answered(&mut self, call: &str, answer: &Answer, by: &str) {
        let (status, reason, ran) = match answer {
            Answer::Approve { args: Some(args) } => ("edited", None, Some(args)),
            Answer::Approve { args: None } => ("approved", None, None),
            Answer::Deny { message } => ("denied", Some(message.as_str()), None),
            Answer::Result { .. } => return,
        };
        let shown = self.ask_of(call);
        if let Some(chunk) = shown.and_then(|it| approval::answered(it, status, by, reason, ran)) {
            self.write(|writer, out| writer.push(chunk, out));
        }
    }

    /// Writes into the data part of an ask which grant was made with its approval.
    pub(super) fn granted(&mut self, call: &str, grant: Value) {
        let shown = self.ask_of(call);
        if let Some(chunk) = shown.and_then(|it| approval::granted(it, grant)) {
            self.write(|writer, out| writer.push(chunk, out));
        }
    }

    /// The data part about the part that shows a call.
    fn ask_of(&self, call: &str) -> Option<&UiPart> {
        let part = self.writer.part(call);
        self.message.parts.iter().rev().find(|it| {
            approval::data(it)
                .is_some_and(|(_, data)| data.get("toolCallId").is_some_and(|id| id == part))
        })
    }

    /// Closes the calls without a result, in the server's copy only: the stream is over, and the client shows calls of
    /// a stopped stream in its own way.
    pub(super) fn close_parts(&mut self, reason: &str) {
        close_parts(&mut self.message, reason);
    }
}
