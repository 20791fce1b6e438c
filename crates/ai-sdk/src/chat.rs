//! The stored form of a chat: its messages, its history or suspended run, and its asks.
//!
//! A chat has two memories of one conversation, for two readers: the messages are what the client shows, the history is
//! what the model has read. We derive neither from the other: a client shows previews and asks that no model reads, and
//! a model reads results that no client shows. `before` ties them together: if a message is dropped, we cut the history
//! at that length.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::stored;
use super::grant::ChosenGrant;
use super::message::{Role, ToolPart, UiMessage, UiPart};
use countersign::deferred::{Answer, DeferredToolRequests};
use countersign::message::Message;
use countersign::turn::SuspendedRun;

/// The version of the stored form (rule L7).
const VERSION: u32 = 1;

/// The reason given for a call that did not run because the user never answered it.
pub(super) const SUPERSEDED: &str = "the user sent another message without answering";

/// The stored form of a chat.
#[derive(Serialize, Deserialize)]
pub(super) struct Chat {
    version: u32,
    /// The principal that the chat belongs to.
    pub(super) principal: String,
    /// The messages, as a client shows them.
    pub(super) messages: Vec<KeptMessage>,
    /// The history of the model; used where `run` is `None`, as a suspended run carries its own.
    pub(super) history: Vec<Message>,
    /// The suspended run, if there is one: it has pending calls, failed, or was stopped.
    pub(super) run: Option<SuspendedRun>,
    /// Every ask, including closed ones.
    ///
    /// We keep closed asks to tell a late answer from a forged one. An answer to a closed ask is late, and gets the
    /// outcome. An answer to an ask that never was is forged, and we refuse the whole request.
    pub(super) asks: Vec<ShownAsk>,
}

/// A message, with the length of the history to go back to when the message is dropped.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptMessage {
    /// The length of the model's history before the message.
    pub(super) before: usize,
    pub(super) message: UiMessage,
}

/// An ask that the client was shown: to decide about a call, or to execute it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ShownAsk {
    /// The id of the approval; `None` where the client executes the call.
    pub(super) approval: Option<String>,
    /// The ids of the message and of the part that show the call.
    pub(super) message: String,
    pub(super) part: String,
    /// The id of the call in its batch, and the fingerprint that its answers are bound to.
    pub(super) call: String,
    pub(super) fingerprint: Option<String>,
    /// `true` if an answer to this ask is still accepted.
    pub(super) open: bool,
    /// The answer, stored until the other calls of the response have theirs (rule T1).
    #[serde(rename = "held", default, skip_serializing_if = "Option::is_none", with = "stored")]
    pub(super) answer: Option<Answer>,
    /// The time of the answer by the clock of the store, in milliseconds since 1970.
    #[serde(rename = "held_at", default, skip_serializing_if = "Option::is_none")]
    pub(super) answered_at: Option<i64>,
    /// The grant that was chosen with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) grant: Option<ChosenGrant>,
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

    /// The pending calls of the suspended run; empty without one.
    pub(super) fn requests(&self) -> DeferredToolRequests {
        self.run.as_ref().map(SuspendedRun::requests).unwrap_or_default()
    }

    /// Returns `true` if the history ends with a request to the model.
    pub(super) fn is_unanswered(&self) -> bool {
        self.run.is_none() && matches!(self.history.last(), Some(Message::Request { .. }))
    }

    /// Closes the pending calls when the user sends a message in place of an answer: every call gets a result (rule
    /// T3).
    ///
    /// Each call gets a result, as a provider refuses a history with a call that has none.
    pub(super) fn supersede(&mut self) {
        if let Some(run) = self.run.take() {
            self.history = run.close(SUPERSEDED);
        }
        for kept in &mut self.messages {
            close_parts(&mut kept.message, &format!("The tool did not run: {SUPERSEDED}."));
        }
        for ask in &mut self.asks {
            ask.open = false;
            ask.answer = None;
            ask.grant = None;
        }
    }

    /// Drops the message at this place and everything behind it.
    pub(super) fn go_back(&mut self, place: usize) {
        let Some(before) = self.messages.get(place).map(|kept| kept.before) else { return };
        self.messages.truncate(place);
        self.history.truncate(before);
        let kept: HashSet<&String> = self.messages.iter().map(|kept| &kept.message.id).collect();
        self.asks.retain(|ask| kept.contains(&ask.message));
    }

    /// Adds a message of the user.
    pub(super) fn say(&mut self, message: UiMessage) {
        let before = self.history.len();
        self.history.push(Message::user(message.text()));
        self.messages.push(KeptMessage { before, message });
    }

    /// Stores a message of the assistant: in place of the one with its id, or at the end.
    pub(super) fn keep(&mut self, mut message: UiMessage, before: usize) {
        mend(&mut message);
        match self.messages.iter_mut().find(|kept| kept.message.id == message.id) {
            Some(kept) => kept.message = message,
            None => self.messages.push(KeptMessage { before, message }),
        }
    }

    /// The length of the model's history, with that of a suspended run.
    pub(super) fn known(&self) -> usize {
        self.run.as_ref().map_or(self.history.len(), |run| run.history().len())
    }
}

/// Gives every call without an outcome this reason as its error, and closes the asks about these calls.
pub(super) fn close_parts(message: &mut UiMessage, reason: &str) {
    for tool in message.tools_mut().filter(|tool| !tool.is_over()) {
        "output-error".clone_into(&mut tool.state);
        tool.error_text = Some(reason.to_owned());
    }
    for part in &mut message.parts {
        super::approval::close(part, "superseded");
    }
    mend(message);
}

/// Removes approvals that clients refuse: the schema of a call with a result or an error accepts an approval only
/// with `approved: true`. With one part that breaks the schema, a client cannot load the whole message.
///
/// Clients check each message against a schema when a page is loaded. If one part does not fit, all of the chat
/// fails.
fn mend(message: &mut UiMessage) {
    let over = |tool: &&mut ToolPart| tool.is_over() && tool.state != "output-denied";
    for tool in message.tools_mut().filter(over) {
        tool.approval.take_if(|approval| approval.approved != Some(true));
    }
}

/// The reason why a message cannot be a prompt, if there is one. We reject files, as the prompt of a run is
/// text only.
///
/// To drop a file silently would be worse than to reject it: the model would answer about something that it has
/// not seen.
pub(super) fn prompt_problem(message: &UiMessage) -> Option<String> {
    if message.role != Role::User {
        return Some(
            "the last message is neither the user's nor one that can be continued".to_owned(),
        );
    }
    let file = |part: &&UiPart| matches!(part.kind(), "file" | "reasoning-file");
    if message.parts.iter().any(|part| file(&part)) {
        return Some(
            "this chat takes text, and no files: send the message without them".to_owned(),
        );
    }
    message.text().trim().is_empty().then(|| "the message has no text".to_owned())
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
