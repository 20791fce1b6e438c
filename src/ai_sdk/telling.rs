//! What is told to the client, and the same message at the server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::answer::CallAnswer;
use super::approval;
use super::chunk::Chunk;
use super::live::{Live, Replay};
use super::message::{Role, ToolPart, UiMessage};
use super::version::ClientVersion;
use super::writer::ChunkWriter;
use crate::call::ToolCall;
use crate::deferred::{ToolApproval, ToolApproved};
use crate::outcome::{DENIED, Outcome, ToolDenied};
use crate::turn::{Answered, CallReport, JOINT, RunEvent};

/// What is told to the client, and the same message at the server.
pub(super) struct Told {
    live: Arc<Live>,
    version: ClientVersion,
    writer: ChunkWriter,
    message: UiMessage,
    /// The message as the client has it, where it has less.
    client: Option<UiMessage>,
}

pub(super) fn lock(told: &Mutex<Told>) -> MutexGuard<'_, Told> {
    told.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Told {
    /// A new message.
    pub(super) fn new(live: Arc<Live>, version: ClientVersion, message: UiMessage) -> Self {
        Self { live, version, writer: ChunkWriter::new(version), message, client: None }
    }

    /// A message that goes on, of which the client has this much.
    pub(super) fn going_on(
        live: Arc<Live>,
        version: ClientVersion,
        message: UiMessage,
        client: &UiMessage,
    ) -> Self {
        let ours: HashMap<&str, &ToolPart> =
            message.tools().map(|tool| (tool.tool_call_id.as_str(), tool)).collect();
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
        let writer = ChunkWriter::going_on(version, &known);
        Self { live, version, writer, message, client: Some(client.clone()) }
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

    /// Begins, and tells what the client has missed.
    pub(super) fn start(&mut self) {
        let id = self.message.id.clone();
        self.live.makes(&id);
        self.tell(|writer, out| writer.start(&id, out));
        let Some(client) = self.client.take() else { return };
        let mut out = Vec::new();
        self.writer.catch_up(&self.message, &client, &mut out);
        out.iter().for_each(|chunk| self.live.tell(chunk, &Replay::No));
        let (nothing, mut whole) = (UiMessage::new(id, Role::Assistant), Vec::new());
        ChunkWriter::new(self.version).catch_up(&self.message, &nothing, &mut whole);
        whole.iter().for_each(|chunk| self.live.tell_again(chunk));
    }

    /// Tells something, and keeps it.
    pub(super) fn tell(&mut self, write: impl FnOnce(&mut ChunkWriter, &mut Vec<Chunk>)) {
        for chunk in self.last(write) {
            match self.to_whoever_was_not_asked(&chunk) {
                Some(other) => self.live.tell(&chunk, &Replay::As(&other)),
                None => self.live.tell(&chunk, &Replay::Same),
            }
        }
    }

    /// What a client is told of a denial that it does not know of.
    fn to_whoever_was_not_asked(&self, chunk: &Chunk) -> Option<Chunk> {
        let Chunk::ToolOutputDenied { tool_call_id } = chunk else { return None };
        let denied = self.message.tool(tool_call_id);
        let reason = denied.and_then(|tool| tool.approval.as_ref()?.reason.as_deref());
        let reason = reason.filter(|it| !it.is_empty()).unwrap_or(DENIED);
        Some(Chunk::tool_output_error(tool_call_id, reason))
    }

    /// Keeps something that is told later.
    pub(super) fn last(
        &mut self,
        write: impl FnOnce(&mut ChunkWriter, &mut Vec<Chunk>),
    ) -> Vec<Chunk> {
        let mut out = Vec::new();
        write(&mut self.writer, &mut out);
        out.iter().for_each(|chunk| self.message.apply(chunk));
        out
    }

    /// Tells what happens in the run.
    pub(super) fn event(&mut self, event: &RunEvent) {
        self.tell(|writer, out| writer.event(event, out));
        let (prefix, event) = match event {
            RunEvent::SubAgent { tool_call_id, event, .. } => {
                (format!("{tool_call_id}{JOINT}"), &**event)
            }
            event => (String::new(), event),
        };
        if let RunEvent::ToolCallsDone { report } = event {
            report.calls().iter().for_each(|call| self.reported(&prefix, call));
        }
    }

    /// Says how a call was answered, and by whom.
    fn reported(&mut self, prefix: &str, report: &CallReport) {
        let call = &format!("{prefix}{}", report.call().id());
        match report.answered() {
            Some(Answered::Approved { by, edited }) => {
                let override_args = edited.then(|| report.args().clone());
                let said = CallAnswer::Approval(ToolApproved { override_args }.into());
                self.answered(call, &said, by.as_deref().unwrap_or_default());
            }
            Some(Answered::Denied { by }) => {
                let said = ToolDenied::new(report.outcome().text().unwrap_or_default());
                self.answered(
                    call,
                    &CallAnswer::Approval(said.into()),
                    by.as_deref().unwrap_or_default(),
                );
            }
            None if matches!(report.outcome(), Outcome::Denied(_)) => {
                let (part, reason) = (self.part(call), report.outcome().text().unwrap_or_default());
                let refused = approval::refused(report.call().name(), &part, &reason);
                self.tell(|writer, out| writer.push(refused, out));
            }
            _ => {}
        }
    }

    /// Says how a call was answered, and by whom.
    pub(super) fn answered(&mut self, call: &str, said: &CallAnswer, by: &str) {
        let CallAnswer::Approval(said) = said else { return };
        let (status, reason, ran) = match said {
            ToolApproval::Approved(ToolApproved { override_args: Some(args) }) => {
                ("edited", None, Some(args))
            }
            ToolApproval::Approved(_) => ("approved", None, None),
            ToolApproval::Denied(denied) => ("denied", Some(denied.message.as_str()), None),
        };
        let part = self.part(call);
        let shown = self.message.parts.iter().rev().find(|it| {
            approval::data(it).is_some_and(|(_, data)| {
                data.get("toolCallId").is_some_and(|id| *id == part.as_str())
            })
        });
        if let Some(chunk) = shown.and_then(|it| approval::answered(it, status, by, (reason, ran)))
        {
            self.tell(|writer, out| writer.push(chunk, out));
        }
    }

    /// Nothing more becomes of calls that have no result, as far as the server's copy goes.
    pub(super) fn close_parts(&mut self, reason: &str) {
        self.message.close_parts(reason);
    }
}
