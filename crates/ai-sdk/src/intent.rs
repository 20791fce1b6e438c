//! The intent of a request, found by comparing it with what the chat was really shown.
//!
//! A client posts its messages, and what it wants has to be found in them: nothing in a request says "this is an
//! approval". The rules by which a part counts as an answer:
//!
//! | the part | counts when | otherwise |
//! |---|---|---|
//! | `approval-responded` | its id is one that this chat was asked for, in this message and part, with the tool and arguments that were shown | the whole request is refused |
//! | the same, for an ask that is closed | it takes an approval back before the call has run | it is passed over, and the outcome is shown |
//! | `output-available`, `output-error` | the call is one that this client was asked to execute | it is passed over: a result of the server's own |
//!
//! We read nothing else in the message. For example, the text of a message of the assistant can say anything.
//!
//! A request that has one wrong answer counts for nothing: half of an answered batch would be a decision that no one
//! has made.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::PartAnswer;
use super::chat::{Chat, ShownAsk, prompt_problem};
use super::grant::ChosenGrant;
use super::granting;
use super::message::{Role, ToolPart, UiMessage};
use super::rejection::Rejection;
use super::request::{ChatRequest, Trigger};
use countersign::args::Args;
use countersign::deferred::{Answer, CallResult, Extent, Unapprovable};
use countersign::outcome::{ToolDenied, ToolFailed};

/// The wish of a request, in terms of the chat as the server has stored it.
#[derive(Debug)]
pub(super) enum Intent {
    /// Submit a message of the user at this place. Everything from the place on is dropped.
    Submit { message: UiMessage, place: usize },
    /// Regenerate the message at this place. Everything from the place on is dropped.
    Regenerate { place: usize },
    /// Answer pending calls of the message; `message` is the client's copy.
    Answer { message: UiMessage, answers: Vec<PartAnswer> },
    /// Resume the message, as the client has missed a part or the run was stopped. `message` is the client's copy; its
    /// id is empty for a message that does not exist yet.
    Resume { message: UiMessage },
}

impl Intent {
    /// Finds the intent of a request. The chat is not changed, so this can be called both before and after a lease is
    /// acquired.
    ///
    /// # Errors
    /// [`Rejection`] when the request does not fit the chat. Nothing of the request counts then.
    pub(super) fn of(
        chat: &Chat,
        request: &ChatRequest,
        approvals: bool,
    ) -> Result<Self, Rejection> {
        if request.trigger == Trigger::RegenerateMessage {
            return regenerate(chat, request);
        }
        let subject = request.subject()?;
        if subject.role != Role::Assistant {
            return submit(chat, subject);
        }
        if chat.message(&subject.id).is_none_or(|known| known.role != Role::Assistant) {
            return Err(Rejection::conflict("this chat has no such message: load it again"));
        }
        let mut entries = ApprovalEntries {
            overrides: request.override_args.clone(),
            grants: request.approval_grants.clone(),
        };
        if !approvals && entries.left().is_some() {
            return Err(Rejection::conflict("this chat takes no approvals"));
        }
        let mut answers = Vec::new();
        for part in subject.tools() {
            let answer = match part.state.as_str() {
                "approval-responded" if !approvals => None,
                "approval-responded" => approval(chat, &subject.id, part, &mut entries)?,
                "output-available" | "output-error" => result(chat, &subject.id, part)?,
                _ => None,
            };
            let Some(answer) = answer else { continue };
            if answers.iter().any(|other: &PartAnswer| other.call == answer.call) {
                return Err(Rejection::conflict(
                    "one call is answered twice: nothing of the request counts",
                ));
            }
            answers.push(answer);
        }
        if let Some((field, id)) = entries.left() {
            return Err(Rejection::conflict(format!(
                "`{field}` has an entry for `{}`, which is no pending approval of this request",
                id.escape_debug()
            )));
        }
        let message = subject.clone();
        Ok(if answers.is_empty() {
            Self::Resume { message }
        } else {
            Self::Answer { message, answers }
        })
    }
}

/// The entries of a request beside its messages, by approval id. The entries are removed with the answers that they go
/// with.
struct ApprovalEntries {
    overrides: BTreeMap<String, Args>,
    grants: BTreeMap<String, ChosenGrant>,
}

impl ApprovalEntries {
    /// An entry that goes with no answer, as the name of its field and the approval id.
    fn left(&self) -> Option<(&'static str, &str)> {
        let overrides = self.overrides.keys().map(|id| ("overrideArgs", id.as_str()));
        overrides.chain(self.grants.keys().map(|id| ("approvalGrants", id.as_str()))).next()
    }
}

/// A message with a known id is either the same one again, after a lost connection, or one that the user has edited.
/// An edited one drops everything that followed.
fn submit(chat: &Chat, message: &UiMessage) -> Result<Intent, Rejection> {
    if let Some(problem) = prompt_problem(message) {
        return Err(Rejection::new(422, problem));
    }
    let end = chat.messages.len();
    let Some(place) = chat.place(&message.id) else {
        return Ok(Intent::Submit { message: message.clone(), place: end });
    };
    let known = chat.messages.get(place).map(|kept| &kept.message);
    let same =
        known.is_some_and(|known| known.role == Role::User && known.text() == message.text());
    match chat.messages.get(place + 1) {
        // The same message again: its response was lost, or was never begun. The client is sent the part of the
        // response that exists, and the model is asked only if it was not asked before.
        None if same => Ok(Intent::Resume { message: UiMessage::new("", Role::Assistant) }),
        Some(answer) if same && place + 2 == end => {
            let message = UiMessage::new(answer.message.id.clone(), Role::Assistant);
            Ok(Intent::Resume { message })
        }
        _ if known.is_some_and(|known| known.role == Role::User) => {
            Ok(Intent::Submit { message: message.clone(), place })
        }
        _ => Err(Rejection::conflict("the message has the id of another one")),
    }
}

fn regenerate(chat: &Chat, request: &ChatRequest) -> Result<Intent, Rejection> {
    let answers = |place: &usize| {
        chat.messages.get(*place).is_some_and(|kept| kept.message.role == Role::Assistant)
    };
    let place = match &request.message_id {
        Some(id) => chat.place(id),
        None => chat.messages.len().checked_sub(1),
    };
    match place {
        Some(place) if answers(&place) => Ok(Intent::Regenerate { place }),
        // The last message is the user's, and has no response yet.
        Some(place) if place + 1 == chat.messages.len() => {
            Ok(Intent::Resume { message: UiMessage::new("", Role::Assistant) })
        }
        Some(place) => Ok(Intent::Regenerate { place: place + 1 }),
        None => match request.messages.last() {
            Some(last) if last.role == Role::User => submit(chat, last),
            _ => Err(Rejection::conflict("this chat has no such message: load it again")),
        },
    }
}

/// The answer of a part that is approved or denied, if the call is pending. The arguments of the part are compared with
/// those that the server has stored, and then dropped: the stored ones run.
fn approval(
    chat: &Chat,
    message: &str,
    part: &ToolPart,
    entries: &mut ApprovalEntries,
) -> Result<Option<PartAnswer>, Rejection> {
    let Some(said) = &part.approval else {
        return Err(Rejection::bad_request(
            "a part is `approval-responded`, and has no `approval`",
        ));
    };
    let Some(approved) = said.approved else {
        return Err(Rejection::bad_request("an approval has no `approved`: it is true or false"));
    };
    let foreign = || {
        Rejection::conflict(
            "an approval is not the one that this chat was asked for: nothing of the request counts",
        )
    };
    let asked = chat.asks.iter().find(|ask| ask.approval.as_ref() == Some(&said.id));
    let asked = asked.ok_or_else(foreign)?;
    if asked.message != message
        || asked.part != part.tool_call_id
        || !is_as_shown(chat, asked, part)
    {
        return Err(foreign());
    }
    let edited = entries.overrides.remove(&said.id);
    let grant = entries.grants.remove(&said.id);
    // Until the call runs, an approval can be taken back; a denial is final (rule A3).
    let taken_back = !approved && matches!(asked.answer, Some(Answer::Approve { .. }));
    if !asked.open && !taken_back {
        return Ok(None);
    }
    if approved {
        may_approve(chat, asked)?;
    }
    let answer = match (approved, edited) {
        (true, args) => Answer::Approve { args },
        (false, Some(_)) => {
            return Err(Rejection::bad_request("a call is denied, and has `overrideArgs`"));
        }
        (false, None) => {
            let reason = said.reason.as_deref().unwrap_or_default().trim();
            Answer::Deny { message: ToolDenied::new(reason).message }
        }
    };
    if let Some(grant) = &grant {
        if !matches!(answer, Answer::Approve { args: None }) {
            return Err(Rejection::bad_request(
                "a grant goes with the approval of the arguments that were shown, and with no other answer",
            ));
        }
        granting::check(chat, asked, grant)?;
    }
    Ok(Some(PartAnswer { call: asked.call.clone(), part: asked.part.clone(), answer, grant }))
}

/// Refuses an approval that would not count. All of the call was shown, as a chat leaves nothing out.
fn may_approve(chat: &Chat, asked: &ShownAsk) -> Result<(), Rejection> {
    match chat.requests().check_approval(&asked.call, Extent::Whole) {
        // The run knows a call that it does not wait for, and its answer comes too late.
        Ok(_) | Err(Unapprovable::UnknownCall) => Ok(()),
        Err(why) => Err(Rejection::conflict(format!("{why}: nothing of the request counts"))),
    }
}

/// The answer of a part with a result, if the call is a pending one that the client executes. Results of other calls
/// are the server's own, and are not read.
fn result(chat: &Chat, message: &str, part: &ToolPart) -> Result<Option<PartAnswer>, Rejection> {
    let open =
        |ask: &&ShownAsk| ask.open && ask.message == message && ask.part == part.tool_call_id;
    let Some(asked) = chat.asks.iter().find(open) else { return Ok(None) };
    if asked.approval.is_some() {
        return Err(Rejection::conflict(format!(
            "call `{}` waits for an approval, and takes no result",
            part.tool_call_id.escape_debug()
        )));
    }
    if !is_as_shown(chat, asked, part) {
        return Err(Rejection::conflict("a result is for another call than this chat was shown"));
    }
    let result = match part.state.as_str() {
        "output-error" => {
            let text = part.error_text.as_deref().unwrap_or("The call failed.");
            CallResult::Failed(ToolFailed::new(text))
        }
        // The output is a plain value even if it looks like a `CallResult`, such as `{"kind": "tool-return"}`:
        // otherwise its shape could turn it into a retry or a failure.
        _ => CallResult::from(part.output.clone().unwrap_or_default()),
    };
    Ok(Some(PartAnswer {
        call: asked.call.clone(),
        part: asked.part.clone(),
        answer: Answer::from(&result),
        grant: None,
    }))
}

/// Returns `true` if a part is about the tool and the arguments that the client was shown.
fn is_as_shown(chat: &Chat, asked: &ShownAsk, part: &ToolPart) -> bool {
    let shown = chat.message(&asked.message).and_then(|message| message.tool(&asked.part));
    shown.is_some_and(|shown| {
        shown.tool_name == part.tool_name
            && same(
                shown.input.as_ref().unwrap_or(&Value::Null),
                part.input.as_ref().unwrap_or(&Value::Null),
            )
    })
}

/// Returns `true` if two values are the same to a client. All numbers of JavaScript are floating-point ones, so a
/// client posts `1.0` back as `1`.
///
/// A browser sends `9007199254740993` back as `9007199254740992`. It is safe that the two count as equal, since what
/// runs is the server's own copy.
fn same(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => {
            ours == theirs || ours.as_f64().is_some_and(|it| theirs.as_f64() == Some(it))
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| same(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(key, ours)| theirs.get(key).is_some_and(|it| same(ours, it)))
        }
        _ => ours == theirs,
    }
}
