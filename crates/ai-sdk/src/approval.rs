//! The data part of an ask: what a person is shown of the call. It is sent beside the approval request, as every client
//! passes data parts on to the page.

use serde_json::{Map, Value, json};

use super::chunk::{Chunk, DataChunk};
use super::message::UiPart;
use countersign::args::Args;
use countersign::deferred::DeferredToolRequests;
use countersign::show::{self, CallView, Limits, PreviewLine, PreviewView};

/// The `type` of the data part of an ask.
pub(super) const KIND: &str = "data-approval";

/// A new id for an approval: 128 random bits, so that it cannot be guessed. `None` where the system has no
/// randomness; the call stays pending then.
///
/// The id proves that the answer is from a person who was shown the ask. If it could be guessed (a counter, the id of
/// the call), another page of the same browser could approve.
pub(super) fn new_id() -> Option<String> {
    let mut bits = [0; 16];
    match getrandom::fill(&mut bits) {
        Ok(()) => Some(format!("ask-{:032x}", u128::from_be_bytes(bits))),
        Err(error) => {
            tracing::error!(%error, "no random number for an ask");
            None
        }
    }
}

/// The data part of a call that needs an approval.
pub(super) fn shown(
    requests: &DeferredToolRequests,
    call: &str,
    approval: &str,
    part: &str,
    offers: &[Value],
) -> Option<Chunk> {
    // Without limits: a client has no way to open text that was left out (rule S4).
    let view = CallView::of(requests, call, Limits::none())?;
    let args = requests.get(call)?.args();
    let questions = view
        .questions
        .iter()
        .map(|question| json!({"askedBy": question.asked_by, "reason": question.reason}));
    let mut data = json!({
        "approvalId": approval,
        "toolCallId": part,
        "toolName": view.tool,
        "path": requests.path(call).map(|path| show::escape_name(&path)),
        "input": args.to_value(),
        "canonical": show::json(args),
        "title": view.title,
        "headline": view.headline,
        "repeated": view.args.iter().filter(|it| it.repeated).map(|it| &it.name).collect::<Vec<_>>(),
        "questions": questions.collect::<Vec<_>>(),
        "previews": view.previews.iter().map(preview).collect::<Vec<_>>(),
        "group": requests.group_key(call),
        "status": "pending",
    });
    for (field, text) in [("changed", &view.changed), ("deniedBefore", &view.denied_before)] {
        if let (Some(text), Some(data)) = (text, data.as_object_mut()) {
            data.insert(field.to_owned(), text.as_str().into());
        }
    }
    if let Some(data) = data.as_object_mut().filter(|_| !view.origins.is_empty()) {
        data.insert("origins".to_owned(), json!(view.origins));
    }
    if let Some(data) = data.as_object_mut().filter(|_| !offers.is_empty()) {
        data.insert("offers".to_owned(), offers.into());
    }
    Some(chunk(approval, data))
}

/// A preview, as a page draws it (rule S7). Each line begins with its sign, as in a diff, and has its number in the new text,
/// or in the old one where it is removed; a table has cells instead.
fn preview(view: &PreviewView) -> Value {
    let line = |line: &PreviewLine| format!("{}{}", line.sign.char(), line.text);
    let lines: Vec<_> = match view.cells.is_empty() {
        true => view.lines.iter().map(line).collect(),
        false => Vec::new(),
    };
    let numbers: Vec<_> = match view.cells.is_empty() {
        true => view.lines.iter().map(|line| line.new.or(line.old)).collect(),
        false => Vec::new(),
    };
    json!({
        "author": view.author,
        "title": view.title,
        "change": view.change,
        "pinned": view.pinned,
        "lines": lines,
        "numbers": numbers,
        "cells": view.cells,
        "cut": view.cut,
    })
}

/// The reasons of the questions about a call, as one text.
pub(super) fn reason(requests: &DeferredToolRequests, call: &str) -> Option<String> {
    let reasons = requests.questions(call).iter().map(|question| show::escape(question.reason()));
    let reasons: Vec<_> = reasons.filter(|reason| !reason.is_empty()).collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// The data part of an ask with its answer. It has the id of the part without the answer, and so replaces it.
pub(super) fn answered(
    part: &UiPart,
    status: &str,
    by: &str,
    reason: Option<&str>,
    ran: Option<&Args>,
) -> Option<Chunk> {
    let (id, data) = data(part)?;
    let mut data = data.clone();
    data.insert("status".to_owned(), status.into());
    data.insert("by".to_owned(), show::escape(by).into());
    data.extend(reason.map(|reason| ("reason".to_owned(), show::escape(reason).into())));
    data.extend(ran.map(|args| ("ranInput".to_owned(), args.to_value())));
    Some(chunk(id, data.into()))
}

/// The data part of an ask with the grant that was made with its approval, or the reason why none was.
pub(super) fn granted(part: &UiPart, grant: Value) -> Option<Chunk> {
    let (id, data) = data(part)?;
    let mut data = data.clone();
    data.insert("grant".to_owned(), grant);
    Some(chunk(id, data.into()))
}

/// The data part of a call that a grant has approved. As for a denial by a layer, there was no ask in the chat.
pub(super) fn by_grant(tool: &str, part: &str, by: &str) -> Chunk {
    let data = json!({
        "toolCallId": part,
        "toolName": show::escape_name(tool),
        "status": "approved",
        "by": show::escape(by),
    });
    chunk(part, data)
}

/// The data part of a call that a layer has denied. There was no ask, so the part has no approval id.
///
/// Its id is that of the call and begins with no `ask-`, so it cannot be mistaken for an approval that waits.
pub(super) fn refused(tool: &str, part: &str, reason: &str) -> Chunk {
    let data = json!({
        "toolCallId": part,
        "toolName": show::escape_name(tool),
        "status": "denied",
        "reason": show::escape(reason),
    });
    chunk(part, data)
}

/// Sets the status of a data part that is still pending.
pub(super) fn close(part: &mut UiPart, status: &str) {
    let UiPart::Other(part) = part else { return };
    if part.get("type").is_some_and(|kind| kind == KIND)
        && let Some(data) = part.get_mut("data").and_then(Value::as_object_mut)
        && data.get("status").is_some_and(|status| status == "pending")
    {
        data.insert("status".to_owned(), status.into());
    }
}

/// The id and the data of the data part of an ask.
pub(super) fn data(part: &UiPart) -> Option<(&str, &Map<String, Value>)> {
    let UiPart::Other(part) = part else { return None };
    part.get("type").filter(|kind| *kind == KIND)?;
    Some((part.get("id")?.as_str()?, part.get("data")?.as_object()?))
}

fn chunk(approval: &str, data: Value) -> Chunk {
    Chunk::Data(DataChunk {
        kind: KIND.to_owned(),
        id: Some(approval.to_owned()),
        data,
        transient: None,
    })
}
