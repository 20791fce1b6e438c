//! What a request is about: compared with what the chat was really shown.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::{CallAnswer, PartAnswer};
use super::chat::{Chat, Shown, prompt_problem};
use super::message::{Role, ToolPart, UiMessage};
use super::refusal::Refusal;
use super::request::{ChatRequest, Trigger};
use crate::args::Args;
use crate::deferred::{CallResult, ToolApproved};
use crate::outcome::{ToolDenied, ToolFailed};

/// What a request is about.
#[derive(Debug)]
pub(super) enum Plan {
    /// The user says something, in place of what was said from there on.
    Say { message: UiMessage, place: usize },
    /// The user wants another answer, in place of the message there.
    Again { place: usize },
    /// The user answers calls that wait.
    Answer { message: UiMessage, answers: Vec<PartAnswer> },
    /// Nothing new: the client has not heard all of it, or the run was stopped in the middle. It has this much of the
    /// message.
    GoOn { message: UiMessage },
}

/// Finds out what a request is about.
///
/// # Errors
/// [`Refusal`]: the request does not fit the chat, and nothing of it counts.
pub(super) fn plan(chat: &Chat, request: &ChatRequest, approvals: bool) -> Result<Plan, Refusal> {
    if request.trigger == Trigger::RegenerateMessage {
        return again(chat, request);
    }
    let subject = request.subject()?;
    if subject.role != Role::Assistant {
        return say(chat, subject);
    }
    if chat.message(&subject.id).is_none_or(|known| known.role != Role::Assistant) {
        return Err(Refusal::conflict("this chat has no such message: load it again"));
    }
    let mut overrides = request.override_args.clone();
    if !approvals && !overrides.is_empty() {
        return Err(Refusal::conflict("this chat takes no approvals"));
    }
    let mut answers = Vec::new();
    for part in subject.tools() {
        let answer = match part.state.as_str() {
            "approval-responded" if !approvals => None,
            "approval-responded" => approval(chat, &subject.id, part, &mut overrides)?,
            "output-available" | "output-error" => result(chat, &subject.id, part)?,
            _ => None,
        };
        let Some(answer) = answer else { continue };
        if answers.iter().any(|other: &PartAnswer| other.call == answer.call) {
            return Err(Refusal::conflict(
                "one call is answered twice: nothing of the request counts",
            ));
        }
        answers.push(answer);
    }
    if let Some(id) = overrides.keys().next() {
        return Err(Refusal::conflict(format!(
            "`overrideArgs` has arguments for `{}`, which is no approval of this request that waits",
            id.escape_debug()
        )));
    }
    let message = subject.clone();
    Ok(if answers.is_empty() { Plan::GoOn { message } } else { Plan::Answer { message, answers } })
}

fn say(chat: &Chat, message: &UiMessage) -> Result<Plan, Refusal> {
    if let Some(problem) = prompt_problem(message) {
        return Err(Refusal::new(422, problem));
    }
    let end = chat.messages.len();
    let Some(place) = chat.place(&message.id) else {
        return Ok(Plan::Say { message: message.clone(), place: end });
    };
    let known = chat.messages.get(place).map(|kept| &kept.message);
    let same =
        known.is_some_and(|known| known.role == Role::User && known.text() == message.text());
    match chat.messages.get(place + 1) {
        // The answer to it was lost, or has not come: it is told again, and not made again.
        None if same => Ok(Plan::GoOn { message: UiMessage::new("", Role::Assistant) }),
        Some(answer) if same && place + 2 == end => {
            let message = UiMessage::new(answer.message.id.clone(), Role::Assistant);
            Ok(Plan::GoOn { message })
        }
        _ if known.is_some_and(|known| known.role == Role::User) => {
            Ok(Plan::Say { message: message.clone(), place })
        }
        _ => Err(Refusal::conflict("the message has the id of another one")),
    }
}

fn again(chat: &Chat, request: &ChatRequest) -> Result<Plan, Refusal> {
    let answers = |place: &usize| {
        chat.messages.get(*place).is_some_and(|kept| kept.message.role == Role::Assistant)
    };
    let place = match &request.message_id {
        Some(id) => chat.place(id),
        None => chat.messages.len().checked_sub(1),
    };
    match place {
        Some(place) if answers(&place) => Ok(Plan::Again { place }),
        // There is no answer yet.
        Some(place) if place + 1 == chat.messages.len() => {
            Ok(Plan::GoOn { message: UiMessage::new("", Role::Assistant) })
        }
        Some(place) => Ok(Plan::Again { place: place + 1 }),
        None => match request.messages.last() {
            Some(last) if last.role == Role::User => say(chat, last),
            _ => Err(Refusal::conflict("this chat has no such message: load it again")),
        },
    }
}

/// An approval, if its call waits for it. Whatever it says, what runs is what the server has kept.
fn approval(
    chat: &Chat,
    message: &str,
    part: &ToolPart,
    overrides: &mut BTreeMap<String, Args>,
) -> Result<Option<PartAnswer>, Refusal> {
    let Some(said) = &part.approval else {
        return Err(Refusal::bad_request("a part is `approval-responded`, and has no `approval`"));
    };
    let Some(approved) = said.approved else {
        return Err(Refusal::bad_request("an approval has no `approved`: it is true or false"));
    };
    let foreign = || {
        Refusal::conflict(
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
    let edited = overrides.remove(&said.id);
    // Until the call runs, a yes can be taken back; a no is final (rule A3).
    let taken_back = !approved && asked.held.as_ref().is_some_and(CallAnswer::is_approval);
    if !asked.open && !taken_back {
        return Ok(None);
    }
    let answer = match (approved, edited) {
        (true, override_args) => ToolApproved { override_args }.into(),
        (false, Some(_)) => {
            return Err(Refusal::bad_request("a call is denied, and has `overrideArgs`"));
        }
        (false, None) => ToolDenied::new(said.reason.as_deref().unwrap_or_default().trim()).into(),
    };
    Ok(Some(PartAnswer {
        call: asked.call.clone(),
        part: asked.part.clone(),
        answer: CallAnswer::Approval(answer),
    }))
}

/// What the client says came of a call, if it is one that waits for it. Results of other calls are the server's own,
/// and are not read.
fn result(chat: &Chat, message: &str, part: &ToolPart) -> Result<Option<PartAnswer>, Refusal> {
    let open = |ask: &&Shown| ask.open && ask.message == message && ask.part == part.tool_call_id;
    let Some(asked) = chat.asks.iter().find(open) else { return Ok(None) };
    if asked.approval.is_some() {
        return Err(Refusal::conflict(format!(
            "call `{}` waits for an approval, and takes no result",
            part.tool_call_id.escape_debug()
        )));
    }
    if !is_as_shown(chat, asked, part) {
        return Err(Refusal::conflict("a result is for another call than this chat was shown"));
    }
    let result = match part.state.as_str() {
        "output-error" => {
            let text = part.error_text.as_deref().unwrap_or("The call failed.");
            CallResult::Failed(ToolFailed::new(text))
        }
        // A value as it is, whatever it looks like.
        _ => CallResult::from(part.output.clone().unwrap_or_default()),
    };
    let (call, part) = (asked.call.clone(), asked.part.clone());
    Ok(Some(PartAnswer { call, part, answer: CallAnswer::Result(result) }))
}

/// Whether a part is about the tool and the arguments that the client was shown.
fn is_as_shown(chat: &Chat, asked: &Shown, part: &ToolPart) -> bool {
    let shown = chat.message(&asked.message).and_then(|message| message.tool(&asked.part));
    shown.is_some_and(|shown| {
        shown.tool_name == part.tool_name
            && same(
                shown.input.as_ref().unwrap_or(&Value::Null),
                part.input.as_ref().unwrap_or(&Value::Null),
            )
    })
}

/// Whether two values are the same to a client, whose numbers are all floating.
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
