//! A chat as the server keeps it: what was said, what waits, and what the client was shown of it.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::CallAnswer;
use super::message::{Role, ToolPart, UiMessage, UiPart};
use crate::deferred::DeferredToolRequests;
use crate::message::Message;
use crate::turn::SuspendedRun;

/// The version of the stored form (rule L7).
const VERSION: u32 = 1;

/// Why a call did not run that nobody answered.
pub(super) const SUPERSEDED: &str = "the user went on without answering";

/// A chat as the server keeps it.
#[derive(Serialize, Deserialize)]
pub(super) struct Chat {
    version: u32,
    /// Whose it is.
    pub(super) principal: String,
    /// As the client has them.
    pub(super) messages: Vec<KeptMessage>,
    /// What the model knows, where no run is to go on.
    pub(super) history: Vec<Message>,
    /// The run that waits, or that was stopped.
    pub(super) run: Option<SuspendedRun>,
    /// What the client was ever asked, or asked to execute.
    pub(super) asks: Vec<ShownAsk>,
}

/// A message as the client has it.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptMessage {
    /// How much the model knew before it.
    pub(super) before: usize,
    pub(super) message: UiMessage,
}

/// A call that the client was shown to decide about, or to execute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ShownAsk {
    /// Under which id the client was asked for an approval; `None` where it executes the call.
    pub(super) approval: Option<String>,
    /// The message and the part that show it.
    pub(super) message: String,
    pub(super) part: String,
    /// The call in its batch, and what its answers are bound to.
    pub(super) call: String,
    pub(super) fingerprint: Option<String>,
    /// Whether it waits for the answer.
    pub(super) open: bool,
    /// The answer, while other calls of the response have none (rule T1).
    #[serde(rename = "held", default, skip_serializing_if = "Option::is_none")]
    pub(super) answer: Option<CallAnswer>,
}

impl Chat {
    pub(super) fn new(principal: &str) -> Self {
        Self {
            version: VERSION,
            principal: principal.to_owned(),
            messages: Vec::new(),
            history: Vec::new(),
            run: None,
            asks: Vec::new(),
        }
    }

    pub(super) fn read(value: Value) -> Result<Self, String> {
        let chat: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match chat.version {
            VERSION => Ok(chat),
            version => Err(format!("it is of version {version}, and not {VERSION}")),
        }
    }

    pub(super) fn message(&self, id: &str) -> Option<&UiMessage> {
        self.messages.iter().map(|kept| &kept.message).find(|message| message.id == id)
    }

    pub(super) fn place(&self, id: &str) -> Option<usize> {
        self.messages.iter().position(|kept| kept.message.id == id)
    }

    /// The calls that wait.
    pub(super) fn requests(&self) -> DeferredToolRequests {
        self.run.as_ref().map(SuspendedRun::requests).unwrap_or_default()
    }

    /// Whether the model was told something, and has not answered.
    pub(super) fn is_unanswered(&self) -> bool {
        self.run.is_none() && matches!(self.history.last(), Some(Message::Request { .. }))
    }

    /// Gives up what waits, as the user goes on: every call has its result (rule T3).
    pub(super) fn supersede(&mut self) {
        if let Some(run) = self.run.take() {
            self.history = run.close(SUPERSEDED);
        }
        for kept in &mut self.messages {
            kept.message.close_parts(&format!("The tool did not run: {SUPERSEDED}."));
        }
        for ask in &mut self.asks {
            (ask.open, ask.answer) = (false, None);
        }
    }

    /// Goes back to where the message at this place was not said yet.
    pub(super) fn go_back(&mut self, place: usize) {
        let Some(before) = self.messages.get(place).map(|kept| kept.before) else { return };
        self.messages.truncate(place);
        self.history.truncate(before);
        let kept: HashSet<&String> = self.messages.iter().map(|kept| &kept.message.id).collect();
        self.asks.retain(|ask| kept.contains(&ask.message));
    }

    /// Adds what the user says.
    pub(super) fn say(&mut self, message: UiMessage) {
        let before = self.history.len();
        self.history.push(Message::user(message.text()));
        self.messages.push(KeptMessage { before, message });
    }

    /// Puts a message of the assistant in its place, or at the end.
    pub(super) fn keep(&mut self, mut message: UiMessage, before: usize) {
        message.mend();
        match self.messages.iter_mut().find(|kept| kept.message.id == message.id) {
            Some(kept) => kept.message = message,
            None => self.messages.push(KeptMessage { before, message }),
        }
    }

    /// How much the model knows.
    pub(super) fn known(&self) -> usize {
        self.run.as_ref().map_or(self.history.len(), |run| run.history().len())
    }
}

impl UiMessage {
    /// Nothing more becomes of calls that have no result.
    pub(super) fn close_parts(&mut self, reason: &str) {
        for tool in self.tools_mut().filter(|tool| !tool.is_over()) {
            "output-error".clone_into(&mut tool.state);
            tool.error_text = Some(reason.to_owned());
        }
        for part in &mut self.parts {
            super::approval::close(part, "superseded");
        }
        self.mend();
    }

    /// A call that has a result, or has failed, was approved or not asked about: whatever else a part says of its
    /// approval, clients do not read the message again.
    fn mend(&mut self) {
        let over = |tool: &&mut ToolPart| tool.is_over() && tool.state != "output-denied";
        for tool in self.tools_mut().filter(over) {
            tool.approval.take_if(|approval| approval.approved != Some(true));
        }
    }
}

/// Why a message is no prompt. Other parts than text are for models that take them, which a run's prompt does not carry.
pub(super) fn prompt_problem(message: &UiMessage) -> Option<String> {
    if message.role != Role::User {
        return Some("the last message is neither the user's nor one that goes on".to_owned());
    }
    let file = |part: &&UiPart| matches!(part.kind(), "file" | "reasoning-file");
    if message.parts.iter().any(|part| file(&part)) {
        return Some(
            "this chat takes text, and no files: send the message without them".to_owned(),
        );
    }
    message.text().trim().is_empty().then(|| "the message says nothing".to_owned())
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat")
            .field("messages", &self.messages.len())
            .field("run", &self.run)
            .field("asks", &self.asks)
            .finish_non_exhaustive()
    }
}
