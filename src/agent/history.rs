//! Checks whether a run can continue from a history, and finds the calls that have no result yet.
//!
//! If a program has stored, cut or joined a history, a provider may refuse it, with an error that names no call. So we
//! check it before we send anything:
//!
//! | history | is |
//! |---|---|
//! | call, result, response | fine |
//! | response with calls, at the end | fine: the calls are decided and run |
//! | call without a result, then a response | an error that names the call |
//! | result without a call, two results of one call | an error that names the call |
//! | calls, then a user's prompt | an error: the prompt would stand between a call and its result |

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::call::ToolCall;
use crate::error::UserError;
use crate::message::{Message, RequestPart, ReturnKind};
use crate::outcome::Outcome;

/// The last response of a history in which some calls have no result.
pub(super) struct Undecided {
    /// The calls of the response, with the results that are known.
    pub(super) calls: Vec<(ToolCall, Option<Outcome>)>,
    /// The number of messages before its results.
    pub(super) up_to: usize,
}

/// Checks a history that comes from outside: every call has one result, between its response and the next response, and
/// there are no other results (rule T3). Calls of the last response may have none yet. Results may be spread over
/// several requests, as PydanticAI writes them when a run was resumed.
pub(super) fn undecided(history: &[Message]) -> Result<Option<Undecided>, UserError> {
    let (before, mut rest) = history.split_at(until_response(history));
    fail(
        "results belong to no call: the results of a call follow the response that made it",
        results(before).map(|(id, _)| id),
    )?;
    let mut used = HashSet::new();
    while let Some((response, behind)) = rest.split_first() {
        let (behind, next) = behind.split_at(until_response(behind));
        let (own, open) = own_and_open(response, behind)?;
        if !next.is_empty() {
            fail("calls have no result: every call needs one before the next response", open)?;
        } else if !open.is_empty() {
            fail(
                "pending calls share their id with earlier calls: give each call its own id",
                open.iter().copied().filter(|id| used.contains(id)),
            )?;
            let Some(calls) = with_results(response, behind) else {
                let problem = "a message follows calls without results: add their results before it, or leave it out and pass its prompt to `saying`";
                let ids = open.into_iter().map(str::to_owned).collect();
                return Err(UserError::History { problem: problem.to_owned(), ids });
            };
            return Ok(Some(Undecided { calls, up_to: history.len() - behind.len() }));
        }
        used.extend(own);
        rest = next;
    }
    Ok(None)
}

/// The ids of a response's calls, and of those among them that have no result after it.
fn own_and_open<'a>(
    response: &'a Message,
    behind: &'a [Message],
) -> Result<(HashSet<&'a str>, Vec<&'a str>), UserError> {
    let calls = || response.tool_calls().map(ToolCall::id);
    let (mut own, mut settled) = (HashSet::new(), HashSet::new());
    fail("calls of one response share an id", calls().filter(|id| !own.insert(*id)))?;
    let ids = || results(behind).map(|(id, _)| id);
    fail(
        "results belong to no call of the response before them",
        ids().filter(|id| !own.contains(id)),
    )?;
    fail("calls have several results", ids().filter(|id| !settled.insert(*id)))?;
    let open = calls().filter(|id| !settled.contains(id)).collect();
    Ok((own, open))
}

/// The calls of a response, with their results and the additional content of their tools; `None` if anything else
/// follows the calls.
fn with_results(
    response: &Message,
    behind: &[Message],
) -> Option<Vec<(ToolCall, Option<Outcome>)>> {
    let mut added = added_content(behind)?.into_iter();
    let mut known: HashMap<&str, Outcome> = results(behind).collect();
    let calls = response.tool_calls().map(|call| {
        let mut outcome = known.remove(call.id());
        if let Some(Outcome::Returned(value)) = &mut outcome {
            value.content = added.next().cloned();
        }
        (call.clone(), outcome)
    });
    let calls = calls.collect();
    added.next().is_none().then_some(calls)
}

/// The content that tools added for the model, which follows results in the same message; `None` if a message contains
/// anything else.
fn added_content(behind: &[Message]) -> Option<Vec<&Value>> {
    let mut found = Vec::new();
    for message in behind {
        let Message::Request { parts } = message else { return None };
        let mut told = false;
        for part in parts {
            match part {
                RequestPart::ToolReturn { .. } => told = true,
                RequestPart::UserPrompt { content } if told => found.push(content),
                RequestPart::UserPrompt { .. } | RequestPart::SystemPrompt { .. } => return None,
            }
        }
    }
    Some(found)
}

fn until_response(messages: &[Message]) -> usize {
    let responds = |message: &Message| matches!(message, Message::Response { .. });
    messages.iter().position(responds).unwrap_or(messages.len())
}

/// The results in these messages, by the ids of their calls.
fn results(messages: &[Message]) -> impl Iterator<Item = (&str, Outcome)> {
    let parts = messages.iter().flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        Message::Response { .. } => &[],
    });
    parts.filter_map(|part| match part {
        RequestPart::ToolReturn { tool_call_id, outcome, content, .. } => {
            Some((tool_call_id.as_str(), outcome_of(*outcome, content)))
        }
        RequestPart::UserPrompt { .. } | RequestPart::SystemPrompt { .. } => None,
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
