//! Whether a conversation can be continued, and which of its calls have no result yet.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::call::ToolCall;
use crate::error::UserError;
use crate::message::{Message, RequestPart, ReturnKind};
use crate::outcome::Outcome;

/// The calls of the last response, if some of them have no result, with the results of the others.
pub(super) type Undecided = Vec<(ToolCall, Option<Outcome>)>;

/// Checks a conversation that comes from outside: one result for every call, right behind it, and none for anything
/// else (rule T3). The calls of the last response may have none yet; its results so far are then taken out of the
/// history, to come back with the others.
pub(super) fn undecided(history: &mut Vec<Message>) -> Result<Undecided, UserError> {
    let mut used = HashSet::new();
    for (at, message) in history.iter().enumerate() {
        let calls: Vec<_> = message.tool_calls().collect();
        let mut own = HashSet::new();
        let twice = calls.iter().map(|call| call.id()).filter(|id| !own.insert(*id));
        fail("calls of one response share an id", twice)?;
        let results = results(history.get(at + 1));
        match message {
            Message::Response { .. } => {}
            Message::Request { .. } if at == 0 || is_request(history.get(at - 1)) => {
                let orphans = self::results(Some(message)).map(|(id, _)| id);
                fail(
                    "results belong to no call: they stand behind the response that made it",
                    orphans,
                )?;
                continue;
            }
            Message::Request { .. } => continue,
        }
        let mut settled = HashSet::new();
        for (id, _) in results {
            fail(
                "results belong to no call of the response before them",
                (!own.contains(id)).then_some(id),
            )?;
            fail("calls have several results", (!settled.insert(id)).then_some(id))?;
        }
        let open: Vec<_> = own.iter().copied().filter(|id| !settled.contains(id)).collect();
        let is_last =
            history.iter().skip(at + 1).all(|message| !matches!(message, Message::Response { .. }));
        if !is_last {
            fail("calls have no result: every call needs one before the next response", open)?;
        } else if !open.is_empty() {
            fail(
                "calls that wait share their id with earlier calls: give each call its own id",
                open.into_iter().filter(|id| used.contains(*id)),
            )?;
            return take_last(history, at);
        }
        used.extend(own.into_iter().map(str::to_owned));
    }
    Ok(Vec::new())
}

/// The calls of the last response, and the results that some of them have.
fn take_last(history: &mut Vec<Message>, at: usize) -> Result<Undecided, UserError> {
    let behind = history.get(at + 1..).unwrap_or_default();
    let told = |part: &RequestPart| matches!(part, RequestPart::ToolReturn { .. });
    let only_results = behind.iter().all(|message| match message {
        Message::Request { parts } => parts.iter().all(told),
        Message::Response { .. } => false,
    });
    let mut known: HashMap<String, Outcome> = behind
        .iter()
        .flat_map(|message| results(Some(message)))
        .map(|(id, outcome)| (id.to_owned(), outcome))
        .collect();
    let calls = history.get(at).map(|message| message.tool_calls().cloned().collect::<Vec<_>>());
    let calls: Undecided = calls
        .unwrap_or_default()
        .into_iter()
        .map(|call| {
            let outcome = known.remove(call.id());
            (call, outcome)
        })
        .collect();
    if !only_results {
        let open = calls.iter().filter(|(_, outcome)| outcome.is_none()).map(|(call, _)| call.id());
        fail(
            "a message stands behind calls without results: give them their results before it, or leave it out and say it with `saying`",
            open,
        )?;
    }
    history.truncate(at + 1);
    Ok(calls)
}

fn is_request(message: Option<&Message>) -> bool {
    matches!(message, Some(Message::Request { .. }))
}

/// The results in a message.
fn results(message: Option<&Message>) -> impl Iterator<Item = (&str, Outcome)> {
    let parts = match message {
        Some(Message::Request { parts }) => parts.as_slice(),
        Some(Message::Response { .. }) | None => &[],
    };
    parts.iter().filter_map(|part| match part {
        RequestPart::ToolReturn { tool_call_id, outcome, content, .. } => {
            Some((tool_call_id.as_str(), outcome_of(*outcome, content)))
        }
        RequestPart::UserPrompt { .. } => None,
    })
}

fn outcome_of(kind: ReturnKind, content: &Value) -> Outcome {
    let text = || content.as_str().map_or_else(|| content.to_string(), str::to_owned);
    match kind {
        ReturnKind::Success => Outcome::returned(content.clone()),
        ReturnKind::Denied => Outcome::denied(text()),
        ReturnKind::Failed => Outcome::failed(text()),
        ReturnKind::Retried => Outcome::retry(text()),
        ReturnKind::Interrupted => Outcome::unknown(text()),
    }
}

fn fail<'a>(problem: &str, ids: impl IntoIterator<Item = &'a str>) -> Result<(), UserError> {
    let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    if ids.is_empty() {
        return Ok(());
    }
    ids.sort();
    ids.dedup();
    Err(UserError::History { problem: problem.to_owned(), ids })
}
