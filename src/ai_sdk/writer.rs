//! What happens in a run, as chunks.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use super::chunk::{Chunk, FinishReason};
use super::message::{UiMessage, UiPart};
use super::version::ClientVersion;
use crate::call::ToolCall;
use crate::message::ResponsePart;
use crate::turn::{JOINT, RunEvent};

/// Turns what happens in a run into chunks, in the order that clients need: every step is opened and closed, a call is
/// announced before its result, and text behind a result begins a new step.
///
/// This is the piece for a server of one's own; [`Chats`](super::Chats) is the whole.
///
/// ```
/// use countersign::RunEvent;
/// use countersign::ai_sdk::{Chunk, ChunkWriter, ClientVersion, FinishReason};
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
    step: Step,
    /// The text that is being told.
    text: Option<String>,
    texts: usize,
    /// The calls that the message has.
    calls: HashMap<String, Announced>,
    /// Those whose arguments are unfinished, in order.
    unfinished: Vec<String>,
    /// Those of the latest step.
    in_step: Vec<String>,
    /// The parts of calls that have another name than the call: those that were asked about again.
    parts: HashMap<String, String>,
    /// What the user has said about calls that the client knows, by their parts.
    answered: HashMap<String, bool>,
}

/// Where the message stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Nothing was told yet, or only what became of earlier calls.
    None,
    /// A step is open, and takes text and calls.
    Open,
    /// A step is open in which calls have their results: what the model says next begins a new one.
    Full,
}

/// A call that the client knows of.
#[derive(Clone, PartialEq)]
pub(super) struct Begun {
    pub(super) name: String,
    pub(super) input: Value,
    pub(super) dynamic: bool,
}

impl fmt::Debug for Begun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name.escape_debug())
    }
}

impl Begun {
    fn of(call: &ToolCall, dynamic: bool) -> Self {
        Self { name: call.name().to_owned(), input: call.args().to_value(), dynamic }
    }
}

/// How far the client knows a call.
#[derive(Debug, Clone, PartialEq)]
enum Announced {
    /// It knows of it, and takes the arguments for unfinished.
    Begun(Begun),
    /// It has these arguments.
    Shown(Value),
    /// It has the result.
    Over,
}

impl ChunkWriter {
    /// For a new message.
    #[must_use]
    pub fn new(client: ClientVersion) -> Self {
        Self {
            client,
            step: Step::None,
            text: None,
            texts: 0,
            calls: HashMap::new(),
            unfinished: Vec::new(),
            in_step: Vec::new(),
            parts: HashMap::new(),
            answered: HashMap::new(),
        }
    }

    /// For a message that goes on, as the client has it.
    #[must_use]
    pub fn going_on(client: ClientVersion, message: &UiMessage) -> Self {
        let mut this = Self::new(client);
        for tool in message.tools() {
            let id = tool.tool_call_id.clone();
            let said = tool.approval.as_ref().and_then(|it| it.approved);
            this.answered.extend(said.map(|said| (id.clone(), said)));
            let input = tool.input.clone().unwrap_or_default();
            let announced = match tool.state.as_str() {
                _ if tool.is_over() => Announced::Over,
                "input-streaming" => {
                    let (name, dynamic) = (tool.tool_name.clone(), tool.dynamic);
                    Announced::Begun(Begun { name, input, dynamic })
                }
                _ => Announced::Shown(input),
            };
            this.calls.insert(id, announced);
        }
        let steps = message.parts.rsplit(|part| matches!(part, UiPart::StepStart));
        let last = steps.take(1).flatten().filter_map(UiPart::tool);
        this.in_step = last.map(|tool| tool.tool_call_id.clone()).collect();
        this
    }

    /// Says that a call goes by the part with this id.
    pub fn rename(&mut self, call: &str, part: &str) {
        self.parts.insert(call.to_owned(), part.to_owned());
    }

    /// The part of a call.
    pub fn part<'a>(&'a self, call: &'a str) -> &'a str {
        self.parts.get(call).map_or(call, String::as_str)
    }

    /// Begins the message with this id, or goes on with it.
    pub fn start(&mut self, message: &str, out: &mut Vec<Chunk>) {
        out.push(Chunk::Start { message_id: Some(message.to_owned()), message_metadata: None });
    }

    /// Tells what has happened.
    pub fn event(&mut self, event: &RunEvent, out: &mut Vec<Chunk>) {
        match event {
            RunEvent::TextDelta { text } => self.text_delta(text, out),
            RunEvent::ResponseRestarted => self.restart(out),
            RunEvent::Response { parts } => {
                self.end_text(out);
                for part in parts {
                    if let ResponsePart::ToolCall(call) = part {
                        self.open(out);
                        self.begin(call.id(), Begun::of(call, false), out);
                    }
                }
            }
            RunEvent::FunctionToolResult { part } => self.result(part, "", out),
            RunEvent::SubAgent { tool_call_id, event, .. } => {
                let prefix = format!("{tool_call_id}{JOINT}");
                match &**event {
                    RunEvent::FunctionToolCall { part, .. } => {
                        self.begin(&format!("{prefix}{}", part.id()), Begun::of(part, true), out);
                    }
                    RunEvent::FunctionToolResult { part } => self.result(part, &prefix, out),
                    _ => {}
                }
            }
            _ => {}
        }
    }

    /// Shows a call that waits, with the arguments that will run; `agent` says that a sub-agent makes it.
    pub fn show(&mut self, call: &ToolCall, agent: bool, out: &mut Vec<Chunk>) {
        let part = self.part(call.id()).to_owned();
        self.begin(&part, Begun::of(call, agent), out);
        self.available(&part, Some(call.args().to_value()), out);
    }

    /// Shows the calls that were announced and go on: nothing changes their arguments any more.
    pub fn show_rest(&mut self, out: &mut Vec<Chunk>) {
        for part in std::mem::take(&mut self.unfinished) {
            self.available(&part, None, out);
        }
    }

    /// Asks about a call that was [shown](Self::show).
    pub fn ask(
        &mut self,
        call: &str,
        approval: &str,
        reason: Option<String>,
        out: &mut Vec<Chunk>,
    ) {
        out.push(Chunk::ToolApprovalRequest {
            approval_id: approval.to_owned(),
            tool_call_id: self.part(call).to_owned(),
            signature: None,
            approval_descriptor: None,
            input_schema_input: None,
            reason: reason.filter(|_| self.client.reads_reasons()),
            is_automatic: None,
        });
    }

    /// Completes the message, for now.
    pub fn finish(&mut self, reason: FinishReason, out: &mut Vec<Chunk>) {
        self.close(out);
        let answered = |part| {
            self.answered.contains_key(part)
                || self.calls.get(part).is_some_and(|known| *known == Announced::Over)
        };
        if !self.in_step.is_empty() && self.in_step.iter().all(answered) {
            // Clients that look whether all calls of the last step are answered would send again and again.
            self.open(out);
            self.close(out);
        }
        out.push(Chunk::Finish { finish_reason: Some(reason), message_metadata: None });
    }

    /// Ends the stream with an error.
    pub fn error(&mut self, text: String, out: &mut Vec<Chunk>) {
        self.show_rest(out);
        self.end_text(out);
        out.push(Chunk::Error { error_text: text });
    }

    /// Ends the stream, as it was stopped.
    pub fn abort(&mut self, out: &mut Vec<Chunk>) {
        self.show_rest(out);
        self.end_text(out);
        out.push(Chunk::Abort { reason: None });
    }

    fn text_delta(&mut self, text: &str, out: &mut Vec<Chunk>) {
        let id = match &self.text {
            Some(id) => id.clone(),
            None => {
                self.open(out);
                self.texts += 1;
                let id = format!("text-{}", self.texts);
                out.push(Chunk::TextStart { id: id.clone(), provider_metadata: None });
                self.text.insert(id).clone()
            }
        };
        out.push(Chunk::TextDelta { id, delta: text.to_owned(), provider_metadata: None });
    }

    fn end_text(&mut self, out: &mut Vec<Chunk>) {
        if let Some(id) = self.text.take() {
            out.push(Chunk::TextEnd { id, provider_metadata: None, citations: None });
        }
    }

    /// What was told of the response is void.
    fn restart(&mut self, out: &mut Vec<Chunk>) {
        if self.text.is_none() {
            return;
        }
        self.end_text(out);
        if self.client.resets_steps() {
            out.push(Chunk::ResetStep {});
        } else {
            // Older clients keep it: what comes now stands in a step of its own.
            self.step = Step::Full;
        }
    }

    /// A step that takes text and calls.
    fn open(&mut self, out: &mut Vec<Chunk>) {
        if self.step == Step::Full {
            self.close(out);
        }
        if self.step == Step::None {
            out.push(Chunk::StartStep {});
            self.step = Step::Open;
            self.in_step.clear();
        }
    }

    /// Closes the step that is open.
    pub(super) fn close(&mut self, out: &mut Vec<Chunk>) {
        self.end_text(out);
        self.show_rest(out);
        if self.step != Step::None {
            out.push(Chunk::FinishStep {});
            self.step = Step::None;
        }
    }

    /// Announces a call. Its arguments are not final yet: layers may change them before somebody is asked.
    pub(super) fn begin(&mut self, part: &str, call: Begun, out: &mut Vec<Chunk>) {
        if self.calls.contains_key(part) {
            return;
        }
        self.end_text(out);
        // An agent's call goes on while one below it waits. Clients send answers when every call of the last step has
        // one, so they stand in steps of their own.
        let below = |above: &String| {
            part.strip_prefix(above.as_str()).is_some_and(|rest| rest.starts_with(JOINT))
        };
        if self.in_step.iter().any(below) {
            self.close(out);
        }
        if self.step == Step::None {
            self.open(out);
        }
        self.in_step.push(part.to_owned());
        out.push(Chunk::ToolInputStart {
            tool_call_id: part.to_owned(),
            tool_name: call.name.clone(),
            dynamic: call.dynamic.then_some(true),
            provider_executed: None,
            title: None,
            provider_metadata: None,
            tool_metadata: None,
            input_encoding: None,
        });
        let input_text_delta = call.input.to_string();
        out.push(Chunk::ToolInputDelta { tool_call_id: part.to_owned(), input_text_delta });
        self.calls.insert(part.to_owned(), Announced::Begun(call));
        self.unfinished.push(part.to_owned());
    }

    /// Shows the arguments of a call: the ones it was announced with, or these.
    pub(super) fn available(&mut self, part: &str, with: Option<Value>, out: &mut Vec<Chunk>) {
        let Some(known) = self.calls.get_mut(part) else { return };
        let Announced::Begun(Begun { name, input, dynamic }) = known.clone() else { return };
        let input = with.unwrap_or(input);
        *known = Announced::Shown(input.clone());
        out.push(Chunk::ToolInputAvailable {
            tool_call_id: part.to_owned(),
            tool_name: name,
            input,
            dynamic: dynamic.then_some(true),
            provider_executed: None,
            title: None,
            provider_metadata: None,
            tool_metadata: None,
        });
    }

    /// Whether the user has denied the call of this part.
    pub(super) fn was_denied(&self, part: &str) -> bool {
        self.answered.get(part) == Some(&false)
    }

    /// Whether a call stands in the latest step.
    pub(super) fn is_in_last_step(&self, call: &str) -> bool {
        self.in_step.iter().any(|part| part == self.part(call))
    }

    /// Whether the client has seen a call with other arguments than these.
    pub(super) fn shows_otherwise(&self, call: &ToolCall) -> bool {
        match self.calls.get(self.part(call.id())) {
            Some(Announced::Shown(input)) => *input != call.args().to_value(),
            _ => false,
        }
    }

    /// A text that is complete.
    pub(super) fn whole_text(&mut self, text: &str, out: &mut Vec<Chunk>) {
        self.text_delta(text, out);
        self.end_text(out);
    }

    pub(super) fn outcome(&mut self, part: &str, chunk: Chunk, out: &mut Vec<Chunk>) {
        if !self.calls.get(part).is_some_and(|known| *known != Announced::Over) {
            return;
        }
        self.end_text(out);
        self.available(part, None, out);
        out.push(chunk);
        self.calls.insert(part.to_owned(), Announced::Over);
        if self.step == Step::Open {
            self.step = Step::Full;
        }
    }
}
