//! OpenAI's chat completions: what they refuse, and how they answer.

use std::collections::BTreeSet;

use axum::http::HeaderMap;
use serde_json::{Value, json};

use super::provider::{KEY, Part, Told, halves, is_name, only, said};

/// What the real one would refuse, with its reason.
pub(crate) fn check(headers: &HeaderMap, request: &Value) -> Result<(), String> {
    let key = headers.get("authorization").and_then(|value| value.to_str().ok());
    if key != Some(&format!("Bearer {KEY}")) {
        return Err("no key".into());
    }
    if let Some(tools) = request.get("tools") {
        check_tools(tools)?;
    }
    let messages = request["messages"].as_array().ok_or("no messages")?;
    let thinks = request["model"] == "deepseek-reasoner";
    let (mut waiting, mut known) = (BTreeSet::new(), BTreeSet::new());
    for (at, message) in messages.iter().enumerate() {
        let wrong = |reason: String| format!("messages[{at}]: {reason}");
        if message["role"] != "tool" && !waiting.is_empty() {
            let ids = waiting.iter().cloned().collect::<Vec<String>>().join(", ");
            return Err(wrong(format!("these calls have no result: {ids}")));
        }
        match message["role"].as_str() {
            Some("system") if at == 0 => said(&message["content"]).map(drop),
            Some("user") => user(message),
            Some("assistant") => assistant(message, thinks, &mut waiting, &mut known),
            Some("tool") => tool(message, &mut waiting),
            role => Err(format!("a message of role {role:?} cannot stand here")),
        }
        .map_err(wrong)?;
    }
    match messages.last().map(|last| &last["role"]) {
        _ if !waiting.is_empty() => Err(format!("these calls have no result: {waiting:?}")),
        Some(role) if role == "user" || role == "tool" => Ok(()),
        _ => Err("nothing to answer".into()),
    }
}

fn check_tools(tools: &Value) -> Result<(), String> {
    let tools =
        tools.as_array().filter(|tools| !tools.is_empty()).ok_or("[] is too short - 'tools'")?;
    let sound = |tool: &Value| {
        tool["type"] == "function"
            && tool["function"]["name"].as_str().is_some_and(is_name)
            && tool["function"]["parameters"].is_object()
    };
    if tools.iter().all(sound) { Ok(()) } else { Err("tools: not a tool".into()) }
}

fn user(message: &Value) -> Result<(), String> {
    only(message, &["role", "content"])?;
    match message["content"].as_array() {
        Some(parts) if !parts.is_empty() => {
            parts.iter().try_for_each(|part| said(&part["text"]).map(drop))
        }
        _ => said(&message["content"]).map(drop),
    }
}

fn assistant(
    message: &Value,
    thinks: bool,
    waiting: &mut BTreeSet<String>,
    known: &mut BTreeSet<String>,
) -> Result<(), String> {
    let keys = ["role", "content", "tool_calls", "reasoning_content"];
    only(message, if thinks { &keys } else { &keys[..3] })?;
    let Some(calls) = message.get("tool_calls") else {
        return said(&message["content"]).map(drop);
    };
    let calls = calls.as_array().filter(|calls| !calls.is_empty()).ok_or("no calls")?;
    for call in calls {
        let id = call["id"].as_str().filter(|id| (1..=40).contains(&id.len()));
        let id = id.ok_or("tool_calls: an id of at most 40 characters")?;
        if !known.insert(id.to_owned()) {
            return Err(format!("tool_calls: the id {id} was used before"));
        }
        waiting.insert(id.to_owned());
        if !call["function"]["name"].as_str().is_some_and(is_name) {
            return Err("tool_calls: function.name does not match the pattern".into());
        }
        let args = call["function"]["arguments"].as_str().unwrap_or_default();
        if !serde_json::from_str::<Value>(args).is_ok_and(|args| args.is_object()) {
            return Err("tool_calls: arguments are not the text of an object".into());
        }
    }
    Ok(())
}

fn tool(message: &Value, waiting: &mut BTreeSet<String>) -> Result<(), String> {
    only(message, &["role", "content", "tool_call_id"])?;
    said(&message["content"])?;
    let id = message["tool_call_id"].as_str().unwrap_or_default();
    match waiting.remove(id) {
        true => Ok(()),
        false => Err(format!("a result for `{id}`, which does not wait for one here")),
    }
}

/// The results of the last request, in order.
pub(crate) fn told(request: &Value) -> Vec<Told> {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rposition(|message| message["role"] == "assistant").unwrap_or(0);
    let results = messages[last..].iter().filter(|message| message["role"] == "tool");
    let told = |message: &Value| Told {
        id: message["tool_call_id"].as_str().unwrap().to_owned(),
        content: message["content"].as_str().unwrap().to_owned(),
        is_error: false,
    };
    results.map(told).collect()
}

fn stop_of(parts: &[Part]) -> &'static str {
    let calls = parts.iter().any(|part| matches!(part, Part::Call { .. }));
    if calls { "tool_calls" } else { "stop" }
}

pub(crate) fn events(parts: &[Part], stop: Option<&str>) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    let mut index = 0;
    for part in parts {
        match part {
            Part::Text(text) => deltas.extend(halves(text).map(|text| json!({"content": text}))),
            Part::Call { id, name, args } => {
                let begin = json!({"index": index, "id": id, "type": "function",
                    "function": {"name": name, "arguments": ""}});
                deltas.push(json!({"tool_calls": [begin]}));
                deltas.extend(halves(args).map(|args| {
                    json!({"tool_calls": [{"index": index, "function": {"arguments": args}}]})
                }));
                index += 1;
            }
            Part::Thinking { text, .. } => deltas.push(json!({"reasoning_content": text})),
            Part::Redacted(_) => {}
        }
    }
    let chunk = |delta: &Value, stop: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "model": "replayed",
            "choices": [{"index": 0, "delta": delta, "finish_reason": stop}]})
    };
    let mut events: Vec<String> =
        deltas.iter().map(|delta| chunk(delta, None).to_string()).collect();
    events.push(chunk(&json!({}), Some(stop.unwrap_or(stop_of(parts)))).to_string());
    events.push("[DONE]".into());
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

pub(crate) fn whole(parts: &[Part], stop: Option<&str>) -> Value {
    let text = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text: String = text.collect();
    let calls = parts.iter().filter_map(|part| match part {
        Part::Call { id, name, args } => Some(json!({"id": id, "type": "function",
            "function": {"name": name, "arguments": args}})),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let choice =
        json!({"index": 0, "message": message, "finish_reason": stop.unwrap_or(stop_of(parts))});
    json!({"id": "c", "object": "chat.completion", "model": "replayed", "choices": [choice],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}
