//! Anthropic's messages: what they refuse, and how they answer.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::provider::{KEY, Part, Told, halves, is_id, is_name, only, said};

/// What the real one would refuse, with its reason.
pub(crate) fn check(headers: &HeaderMap, request: &Value) -> Result<(), String> {
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if header("x-api-key") != Some(KEY) || header("anthropic-version").is_none() {
        return Err("no key, or no version".into());
    }
    if !request["max_tokens"].is_u64() {
        return Err("max_tokens: field required".into());
    }
    if let Some(system) = request.get("system") {
        said(system)?;
    }
    if let Some(tools) = request.get("tools") {
        let sound = |tool: &Value| {
            tool["name"].as_str().is_some_and(is_name) && tool["input_schema"].is_object()
        };
        let tools = tools.as_array().filter(|tools| !tools.is_empty()).ok_or("tools: none")?;
        if !tools.iter().all(sound) {
            return Err("tools: not a tool".into());
        }
    }
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let (mut waiting, mut known) = (Vec::new(), BTreeSet::new());
    for (at, message) in messages.iter().enumerate() {
        let wrong = |reason: String| format!("messages.{at}: {reason}");
        only(message, &["role", "content"]).map_err(wrong)?;
        let turn = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != turn {
            return Err(wrong("roles must alternate, beginning with the user".into()));
        }
        let blocks = blocks(&message["content"]).map_err(wrong)?;
        match turn {
            "user" => user(&blocks, &std::mem::take(&mut waiting)).map_err(wrong)?,
            _ => waiting = assistant(&blocks, &mut known).map_err(wrong)?,
        }
    }
    if messages.len() % 2 == 1 { Ok(()) } else { Err("nothing to answer".into()) }
}

fn blocks(content: &Value) -> Result<Vec<Value>, String> {
    match content {
        Value::String(_) => Ok(vec![json!({"type": "text", "text": content})]),
        Value::Array(blocks) if !blocks.is_empty() => Ok(blocks.clone()),
        _ => Err("content must be non-empty".into()),
    }
}

/// Results first: exactly one for each call of the message before.
fn user(blocks: &[Value], waiting: &[String]) -> Result<(), String> {
    let mut open: BTreeSet<&str> = waiting.iter().map(String::as_str).collect();
    let mut texts = false;
    for block in blocks {
        match block["type"].as_str() {
            Some("tool_result") if !texts => {
                only(block, &["type", "tool_use_id", "content", "is_error"])?;
                said(&block["content"])?;
                let id = block["tool_use_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return Err(format!("unexpected `tool_use_id` found in `tool_result`: {id}"));
                }
            }
            Some("text") => {
                only(block, &["type", "text"])?;
                said(&block["text"])?;
                texts = true;
            }
            kind => return Err(format!("a block of type {kind:?} cannot stand here")),
        }
    }
    match open.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("`tool_use` ids without `tool_result` blocks immediately after: {open:?}"))
        }
    }
}

/// Gives the calls.
fn assistant(blocks: &[Value], known: &mut BTreeSet<String>) -> Result<Vec<String>, String> {
    let (mut calls, mut spoke) = (Vec::new(), false);
    for block in blocks {
        match block["type"].as_str() {
            Some("thinking") if !spoke => {
                only(block, &["type", "thinking", "signature"])?;
                said(&block["signature"])?;
            }
            Some("redacted_thinking") if !spoke => {
                only(block, &["type", "data"])?;
                said(&block["data"])?;
            }
            Some("text") => {
                only(block, &["type", "text"])?;
                said(&block["text"])?;
                spoke = true;
            }
            Some("tool_use") => {
                only(block, &["type", "id", "name", "input"])?;
                let id = block["id"].as_str().filter(|id| is_id(id));
                let id = id.ok_or("tool_use.id: should match pattern '^[a-zA-Z0-9_-]+$'")?;
                if !block["name"].as_str().is_some_and(is_name) {
                    return Err("tool_use.name: should match pattern".into());
                }
                if !block["input"].is_object() {
                    return Err("tool_use.input: should be an object".into());
                }
                if !known.insert(id.to_owned()) {
                    return Err(format!("`tool_use` ids must be unique: {id}"));
                }
                calls.push(id.to_owned());
                spoke = true;
            }
            kind => return Err(format!("a block of type {kind:?} cannot stand here")),
        }
    }
    if spoke { Ok(calls) } else { Err("an assistant that says nothing".into()) }
}

/// The results of the last request, in order.
pub(crate) fn told(request: &Value) -> Vec<Told> {
    let messages = request["messages"].as_array().unwrap();
    let blocks = messages.last().unwrap()["content"].as_array().cloned().unwrap_or_default();
    let results = blocks.iter().filter(|block| block["type"] == "tool_result");
    let told = |block: &Value| Told {
        id: block["tool_use_id"].as_str().unwrap().to_owned(),
        content: block["content"].as_str().unwrap().to_owned(),
        is_error: block["is_error"] == true,
    };
    results.map(told).collect()
}

fn stop_of(parts: &[Part]) -> &'static str {
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    if calls { "tool_use" } else { "end_turn" }
}

fn usage() -> Value {
    json!({"input_tokens": 1, "output_tokens": 1})
}

pub(crate) fn events(parts: &[Part], stop: Option<&str>) -> Vec<String> {
    let mut events = vec![
        json!({"type": "message_start", "message": {"usage": usage()}}),
        json!({"type": "ping"}),
    ];
    for (index, part) in parts.iter().enumerate() {
        let (begin, deltas) = match part {
            Part::Text(text) => {
                let deltas = halves(text).map(|text| json!({"type": "text_delta", "text": text}));
                (json!({"type": "text", "text": ""}), deltas.to_vec())
            }
            Part::Call { id, name, args } => {
                let piece = |json: &str| json!({"type": "input_json_delta", "partial_json": json});
                let begin = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
                (begin, halves(args).map(piece).to_vec())
            }
            Part::Thinking { text, signature } => {
                let begin = json!({"type": "thinking", "thinking": "", "signature": ""});
                let text = json!({"type": "thinking_delta", "thinking": text});
                let signature = json!({"type": "signature_delta", "signature": signature});
                (begin, vec![text, signature])
            }
            Part::Redacted(data) => (json!({"type": "redacted_thinking", "data": data}), vec![]),
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begin}));
        let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
        events.extend(deltas.into_iter().map(delta));
        // A call at the limit of tokens just stops.
        if stop != Some("max_tokens") || index + 1 < parts.len() {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    let stop = stop.unwrap_or(stop_of(parts));
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage()}));
    events.push(json!({"type": "message_stop"}));
    let event = |event: Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.into_iter().map(event).collect()
}

pub(crate) fn whole(parts: &[Part], stop: Option<&str>) -> Value {
    let block = |part: &Part| match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call { id, name, args } => {
            let input: Value = serde_json::from_str(args).unwrap_or_default();
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        Part::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        Part::Redacted(data) => json!({"type": "redacted_thinking", "data": data}),
    };
    let content: Vec<Value> = parts.iter().map(block).collect();
    let stop = stop.unwrap_or(stop_of(parts));
    json!({"id": "m", "type": "message", "role": "assistant", "model": "replayed", "content": content,
        "stop_reason": stop, "usage": usage()})
}
