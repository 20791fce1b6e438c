//! The writer: turns the events of a run into chunks.
//!
//! Clients accept chunks in certain orders only, and end the stream at the first one that does not fit. The rules, as
//! far as they can be seen from outside:
//!
//! | rule | kept by |
//! |---|---|
//! | text and calls are in a step, which is opened and closed | `open`, `close` |
//! | a call is announced before its arguments are final, and both before its outcome | `begin`, `available`, `outcome` |
//! | a call has one outcome | the copy of the message knows |
//! | a result is refused for a call that this user has denied | `returned` writes an error |
//! | `tool-output-denied` is accepted only after this user's denial | `denied` writes an error for others |
//! | a client that sends answers by itself looks at the calls of the last step | an agent's call and its sub-agent's are in two steps; a stream whose last calls are all answered ends with an empty step |

use std::collections::HashMap;

use serde_json::Value;

use super::chunk::{Chunk, FinishReason};
use super::message::{Role, ToolPart, UiMessage, UiPart};
use super::version::ClientVersion;
use countersign::call::ToolCall;
use countersign::message::{RequestPart, ResponsePart, ReturnKind};
use countersign::turn::{RunEvent, is_below};

/// Writes the events of a run as chunks, in the order that clients need: every step is opened and closed, a call is
/// announced before its result, and text after a result begins a new step.
///
/// The writer has a copy of the client's message and applies every chunk to that copy. So it never announces a call
/// twice, and writes no outcome that the client would refuse. Use the writer for a server that stores chats itself;
/// [`Chats`](super::Chats) does both.
///
/// ```
/// use countersign::turn::RunEvent;
/// use countersign_ai_sdk::{Chunk, ChunkWriter, ClientVersion, FinishReason};
///
/// let mut chunks = Vec::new();
/// let mut writer = ChunkWriter::new(ClientVersion::default());
/// writer.start("m1", &mut chunks);
/// writer.event(&RunEvent::TextDelta { text: "Hi".into() }, &mut chunks);
/// writer.finish(FinishReason::Stop, &mut chunks);
/// let types: Vec<_> = chunks.iter().map(|chunk| serde_json::to_value(chunk).unwrap()["type"].clone()).collect();
/// assert_eq!(types, ["start", "start-step", "text-start", "text-delta", "text-end", "finish-step", "finish"]);
/// ```
#[derive(Debug)]
pub struct ChunkWriter {
    client: ClientVersion,
    /// The message as the client has it: every chunk that is written is applied to it.
    message: UiMessage,
    step: StepState,
    /// The id of the open text, to which deltas are appended.
    text: Option<String>,
    texts: usize,
    /// The calls whose arguments are not final, in the order in which they were announced.
    unfinished: Vec<String>,
    /// Part ids by call id, where the two differ: for calls that were asked about again.
    parts: HashMap<String, String>,
}

/// The state of the latest step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepState {
    /// No step is open: the message begins, or only outcomes of earlier calls were written.
    None,
    /// A step is open, and text and calls are added to it.
    Open,
    /// A step is open in which calls have their results: the next response of the model begins a new step.
    Full,
}

impl ChunkWriter {
    /// Creates a writer for a new message.
    ///
    /// ```
    /// use countersign_ai_sdk::{Chunk, ChunkWriter, ClientVersion};
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let mut chunks = Vec::new();
    /// let mut writer = ChunkWriter::new(ClientVersion::V6);
    /// writer.start("m1", &mut chunks);
    /// writer.show(&ToolCall::new("c1", "delete_file", json!({"path": "a.log"})), false, &mut chunks);
    /// writer.ask("c1", "ask-5b1c", Some("deletes a file".to_owned()), &mut chunks);
    /// assert_eq!(writer.message().tools().map(|call| call.state.as_str()).collect::<Vec<_>>(), ["approval-requested"]);
    /// // Version 6 does not know a reason, so it is left out.
    /// assert!(chunks.iter().all(|chunk| !matches!(chunk, Chunk::ToolApprovalRequest { reason: Some(_), .. })));
    /// ```
    #[must_use]
    pub fn new(client: ClientVersion) -> Self {
        Self::resume(client, &UiMessage::new("", Role::Assistant))
    }

    /// Creates a writer that continues a message, given the client's copy of it.
    ///
    /// The copy has to be the client's: a call that the client has, and the copy does not, would be announced a second
    /// time.
    #[must_use]
    pub fn resume(client: ClientVersion, message: &UiMessage) -> Self {
        Self {
            client,
            message: message.clone(),
            step: StepState::None,
            text: None,
            texts: 0,
            unfinished: Vec::new(),
            parts: HashMap::new(),
        }
    }

    /// The message as the client has it: with every chunk that was written so far.
    #[must_use]
    pub fn message(&self) -> &UiMessage {
        &self.message
    }

    /// Applies a chunk to the message and writes it. Every chunk goes through this method, so that the writer's copy of
    /// the message cannot differ from the client's.
    pub(super) fn push(&mut self, chunk: Chunk, out: &mut Vec<Chunk>) {
        self.message.apply(&chunk);
        out.push(chunk);
    }

    /// The calls of the latest step. A client that sends answers automatically (`sendAutomaticallyWhen`) looks only at
    /// these.
    fn calls_of_step(&self) -> impl Iterator<Item = &ToolPart> {
        let is_in_step = |part: &&UiPart| !matches!(part, UiPart::StepStart);
        self.message.parts.iter().rev().take_while(is_in_step).filter_map(UiPart::tool)
    }

    /// Shows a call in the part with this id from now on. A call that is asked about again needs a new part, as clients
    /// accept only one answer for each part.
    ///
    /// ```
    /// use countersign_ai_sdk::{ChunkWriter, ClientVersion};
    /// let mut writer = ChunkWriter::new(ClientVersion::V7);
    /// assert_eq!(writer.part("c1"), "c1");
    /// writer.rename("c1", "c1#2");
    /// assert_eq!(writer.part("c1"), "c1#2");
    /// ```
    pub fn rename(&mut self, call: &str, part: &str) {
        self.parts.insert(call.to_owned(), part.to_owned());
    }

    /// The id of the part that shows a call: the id of the call, unless it was [renamed](Self::rename).
    pub fn part<'a>(&'a self, call: &'a str) -> &'a str {
        self.parts.get(call).map_or(call, String::as_str)
    }

    /// Starts the stream of the message with this id.
    pub fn start(&mut self, message: &str, out: &mut Vec<Chunk>) {
        let message_id = Some(message.to_owned());
        self.push(Chunk::Start { message_id, message_metadata: None }, out);
    }

    /// Writes the chunks of an event. An event that no client shows has none.
    pub fn event(&mut self, event: &RunEvent, out: &mut Vec<Chunk>) {
        match event {
            RunEvent::TextDelta { text } => self.text_delta(text, out),
            RunEvent::ResponseRestarted => self.restart(out),
            RunEvent::Response { parts } => {
                self.end_text(out);
                for part in parts {
                    if let ResponsePart::ToolCall(call) = part {
                        self.open(out);
                        self.begin(&announced(call.id(), call, false), out);
                    }
                }
            }
            RunEvent::FunctionToolResult { part } => self.result(part, "", out),
            RunEvent::SubAgent { event: inner, .. } => match &**inner {
                RunEvent::FunctionToolCall { part, .. } => {
                    self.begin(&announced(&event.call_id(part.id()), part, true), out);
                }
                RunEvent::FunctionToolResult { part } => {
                    self.result(part, &event.call_id(""), out);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Shows a pending call with its final arguments. With `agent` the part is dynamic, as a page need not know the
    /// tools of sub-agents.
    pub fn show(&mut self, call: &ToolCall, agent: bool, out: &mut Vec<Chunk>) {
        let part = self.part(call.id()).to_owned();
        self.begin(&announced(&part, call, agent), out);
        self.available(&part, Some(call.args().to_value()), out);
    }

    /// Shows the announced calls with their arguments as final.
    fn show_rest(&mut self, out: &mut Vec<Chunk>) {
        for part in std::mem::take(&mut self.unfinished) {
            self.available(&part, None, out);
        }
    }

    /// Asks for the approval of a call that was [shown](Self::show). `approval` is the id that the answer has to carry,
    /// and should not be guessable. The reason is left out for clients too old for it.
    pub fn ask(
        &mut self,
        call: &str,
        approval: &str,
        reason: Option<String>,
        out: &mut Vec<Chunk>,
    ) {
        let request = Chunk::ToolApprovalRequest {
            approval_id: approval.to_owned(),
            tool_call_id: self.part(call).to_owned(),
            signature: None,
            approval_descriptor: None,
            input_schema_input: None,
            reason: reason.filter(|_| self.client.reads_reasons()),
            is_automatic: None,
        };
        self.push(request, out);
    }

    /// Completes the stream. A later stream may continue the message.
    pub fn finish(&mut self, reason: FinishReason, out: &mut Vec<Chunk>) {
        self.close(out);
        let answered = |tool: &ToolPart| {
            tool.is_over() || tool.approval.as_ref().is_some_and(|it| it.approved.is_some())
        };
        if self.calls_of_step().next().is_some() && self.calls_of_step().all(answered) {
            // A client that sends as soon as all calls of the last step are answered would send again and again.
            self.open(out);
            self.close(out);
        }
        self.push(Chunk::Finish { finish_reason: Some(reason), message_metadata: None }, out);
    }

    /// Ends the stream with an error, which the client shows as this text.
    pub fn error(&mut self, text: String, out: &mut Vec<Chunk>) {
        self.show_rest(out);
        self.end_text(out);
        self.push(Chunk::Error { error_text: text }, out);
    }

    /// Ends the stream, because the user has stopped the response.
    ///
    /// Calls without an outcome stay without one in the stream: clients show calls of a stream that was stopped in
    /// their own way.
    pub fn abort(&mut self, out: &mut Vec<Chunk>) {
        self.show_rest(out);
        self.end_text(out);
        self.push(Chunk::Abort { reason: None }, out);
    }

    fn text_delta(&mut self, text: &str, out: &mut Vec<Chunk>) {
        let id = match &self.text {
            Some(id) => id.clone(),
            None => {
                self.open(out);
                self.texts += 1;
                let id = format!("text-{}", self.texts);
                self.push(Chunk::TextStart { id: id.clone(), provider_metadata: None }, out);
                self.text.insert(id).clone()
            }
        };
        self.push(Chunk::TextDelta { id, delta: text.to_owned(), provider_metadata: None }, out);
    }

    fn end_text(&mut self, out: &mut Vec<Chunk>) {
        if let Some(id) = self.text.take() {
            self.push(Chunk::TextEnd { id, provider_metadata: None, citations: None }, out);
        }
    }

    /// Drops the text of a response that the model starts again from the beginning.
    ///
    /// Otherwise the client would show text twice that was streamed and then given up (a retry of
    /// the provider).
    fn restart(&mut self, out: &mut Vec<Chunk>) {
        if self.text.is_none() {
            return;
        }
        self.end_text(out);
        if self.client.resets_steps() {
            self.push(Chunk::ResetStep {}, out);
        } else {
            // Older clients keep the text, so the new response gets a step of its own.
            self.step = StepState::Full;
        }
    }

    /// Opens a step for text and calls, unless one is open that still accepts them.
    fn open(&mut self, out: &mut Vec<Chunk>) {
        if self.step == StepState::Full {
            self.close(out);
        }
        if self.step == StepState::None {
            self.push(Chunk::StartStep {}, out);
            self.step = StepState::Open;
        }
    }

    /// Closes the step that is open.
    pub(super) fn close(&mut self, out: &mut Vec<Chunk>) {
        self.end_text(out);
        self.show_rest(out);
        if self.step != StepState::None {
            self.push(Chunk::FinishStep {}, out);
            self.step = StepState::None;
        }
    }

    /// Announces a call that the client does not know. Its arguments are not final yet: layers may change them before
    /// the call is asked about.
    pub(super) fn begin(&mut self, call: &ToolPart, out: &mut Vec<Chunk>) {
        let id = &call.tool_call_id;
        if self.message.tool(id).is_some() {
            return;
        }
        self.end_text(out);
        // The call of an agent has no outcome while a call of that agent is pending. Clients send answers once every
        // call of the last step has an answer or outcome, so the two calls must be in different steps.
        if self.calls_of_step().any(|above| is_below(id, &above.tool_call_id)) {
            self.close(out);
        }
        if self.step == StepState::None {
            self.open(out);
        }
        self.push(Chunk::tool_input_start(call), out);
        let input = call.input.clone().unwrap_or_default();
        let input_text_delta = input.to_string();
        self.push(Chunk::ToolInputDelta { tool_call_id: id.clone(), input_text_delta }, out);
        // We send the whole text of the arguments in a single delta: a client parses it to show
        // them.
        if let Some(known) = self.message.tool_mut(id) {
            known.input = Some(input);
        }
        self.unfinished.push(id.clone());
    }

    /// Shows the arguments of a call as final: the given ones, or else those the call was announced with.
    pub(super) fn available(&mut self, part: &str, with: Option<Value>, out: &mut Vec<Chunk>) {
        let known = self.message.tool(part).filter(|tool| tool.state == "input-streaming");
        let Some(known) = known else { return };
        let input = with.or_else(|| known.input.clone()).unwrap_or_default();
        let available = Chunk::tool_input_available(known, input);
        self.push(available, out);
    }

    /// Returns `true` if the user has denied the call of this part.
    fn was_denied(&self, part: &str) -> bool {
        let approval = self.message.tool(part).and_then(|tool| tool.approval.as_ref());
        approval.is_some_and(|approval| approval.approved == Some(false))
    }

    /// Returns `true` if a call is in a step before the latest one. A client that sends answers automatically looks
    /// only at the latest.
    pub(super) fn is_above(&self, call: &str) -> bool {
        let part = self.part(call);
        self.message.tool(part).is_some() && self.calls_of_step().all(|it| it.tool_call_id != part)
    }

    /// Returns `true` if the client has seen a call with other arguments than these.
    pub(super) fn shows_otherwise(&self, call: &ToolCall) -> bool {
        self.message.tool(self.part(call.id())).is_some_and(|tool| {
            let is_final = tool.state != "input-streaming" && !tool.is_over();
            is_final && tool.input.as_ref() != Some(&call.args().to_value())
        })
    }

    /// Writes a complete text, from start to end.
    pub(super) fn whole_text(&mut self, text: &str, out: &mut Vec<Chunk>) {
        self.text_delta(text, out);
        self.end_text(out);
    }

    /// Writes the outcome of a call, unless the call has one. Arguments that are not final yet are written as final
    /// before.
    fn outcome(&mut self, part: &str, chunk: Chunk, out: &mut Vec<Chunk>) {
        if self.message.tool(part).is_none_or(ToolPart::is_over) {
            return;
        }
        self.end_text(out);
        self.available(part, None, out);
        self.push(chunk, out);
        if self.step == StepState::Open {
            self.step = StepState::Full;
        }
    }

    /// Ends a call without a result, for this reason. A call that has its outcome keeps it.
    ///
    /// ```
    /// use countersign_ai_sdk::{ChunkWriter, ClientVersion};
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let mut chunks = Vec::new();
    /// let mut writer = ChunkWriter::new(ClientVersion::V6);
    /// writer.show(&ToolCall::new("c1", "pay", json!({})), false, &mut chunks);
    /// writer.fail("c1", "The bank does not answer.", &mut chunks);
    /// let written = chunks.len();
    /// writer.fail("c1", "A second outcome is not written.", &mut chunks);
    /// assert_eq!(chunks.len(), written);
    /// ```
    pub fn fail(&mut self, part: &str, reason: &str, out: &mut Vec<Chunk>) {
        self.outcome(part, Chunk::tool_output_error(part, reason), out);
    }

    fn result(&mut self, part: &RequestPart, prefix: &str, out: &mut Vec<Chunk>) {
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

    /// Writes the result of a call.
    pub(super) fn returned(&mut self, part: &str, output: Value, out: &mut Vec<Chunk>) {
        if self.was_denied(part) {
            // A client whose user has denied the call does not accept a result for the call.
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

    /// Writes the denial of a call. Clients accept `tool-output-denied` only after a denial by their own user; for
    /// others the denial is an error with the reason.
    pub(super) fn denied(&mut self, part: &str, reason: &str, out: &mut Vec<Chunk>) {
        if self.was_denied(part) {
            let denied = Chunk::ToolOutputDenied { tool_call_id: part.to_owned() };
            self.outcome(part, denied, out);
        } else {
            self.fail(part, reason, out);
        }
    }
}

/// The part of a call whose arguments are not final.
fn announced(part: &str, call: &ToolCall, dynamic: bool) -> ToolPart {
    let tool = ToolPart::new(part, call.name(), Some(dynamic), "input-streaming");
    ToolPart { input: Some(call.args().to_value()), ..tool }
}
