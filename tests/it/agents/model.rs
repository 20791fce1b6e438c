//! A model that follows a script, on loopback: OpenAI's Responses API, as Codex CLI speaks it, its Chat Completions, as Qwen
//! Code does, and Gemini's API.
//!
//! The script gives the next command of a shell from the results of the commands before. Everything that an agent
//! sends again with each request, and how it calls its tools, is read and written here.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

/// The next command, from the results of the commands before; none at the end.
pub(crate) type Script = dyn FnMut(&[String]) -> Option<String> + Send;

/// The state of the server: the script, which one request at a time continues.
#[derive(Clone)]
struct Model {
    script: Arc<Mutex<Box<Script>>>,
}

/// Serves a model, and gives its address.
pub(crate) async fn serve(
    script: impl FnMut(&[String]) -> Option<String> + Send + 'static,
) -> String {
    let model = Model { script: Arc::new(Mutex::new(Box::new(script))) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().fallback(answered).with_state(model);
    tokio::spawn(async { axum::serve(listener, app).await });
    url
}

async fn answered(State(model): State<Model>, uri: Uri, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let path = uri.path().to_owned();
    let next = |results: Vec<String>| {
        // The script waits for people, so that it does not run on a thread of the server.
        let script = Arc::clone(&model.script);
        tokio::task::spawn_blocking(move || (script.lock().unwrap())(&results))
    };
    if path.ends_with("/responses") {
        let results = responses::results(&request);
        return events(&responses::events(next(results).await.unwrap()));
    }
    if path.ends_with("/chat/completions") {
        // Qwen Code also asks for a title, without tools.
        let command = match request["tools"].is_null() {
            true => None,
            false => next(chat::results(&request)).await.unwrap(),
        };
        let reply = chat::reply(command, request["stream"] == true);
        return match request["stream"] == true {
            true => events(&[reply]),
            false => axum::Json(reply).into_response(),
        };
    }
    if path.contains("enerateContent") {
        // Gemini CLI also asks which model to take, and who speaks next: without tools, or for JSON.
        let is_aside = request["tools"].is_null()
            || request["generationConfig"]["responseMimeType"].is_string();
        let command = match is_aside {
            true => None,
            false => next(gemini::results(&request)).await.unwrap(),
        };
        let reply = gemini::reply(command, is_aside);
        return match path.contains("stream") {
            true => events(&[reply]),
            false => axum::Json(reply).into_response(),
        };
    }
    (StatusCode::NOT_FOUND, axum::Json(json!({"error": {"message": "not here"}}))).into_response()
}

/// Server-sent events, of which each has its own type.
fn events(all: &[Value]) -> Response {
    let text: String = all
        .iter()
        .map(|event| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        })
        .collect();
    ([("content-type", "text/event-stream")], text).into_response()
}

/// OpenAI's Responses API.
mod responses {
    use super::{Value, json};

    pub(super) fn results(request: &Value) -> Vec<String> {
        let items = request["input"].as_array().into_iter().flatten();
        let results = items.filter(|item| item["type"] == "function_call_output");
        results.map(|item| item["output"].to_string()).collect()
    }

    /// One response, with a call of Codex's shell or with a text.
    pub(super) fn events(command: Option<String>) -> Vec<Value> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let item = match command {
            Some(command) => json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                "name": "exec_command", "arguments": json!({"cmd": command}).to_string(), "status": "completed",
            }),
            None => json!({
                "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
            }),
        };
        let response = json!({
            "id": format!("resp_{id}"), "object": "response", "created_at": 0, "model": "scripted",
            "status": "completed", "output": [item],
            "usage": {
                "input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
                "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0},
            },
        });
        vec![
            json!({"type": "response.created", "sequence_number": 0, "response": {"id": format!("resp_{id}")}}),
            json!({"type": "response.output_item.done", "sequence_number": 1, "output_index": 0, "item": item}),
            json!({"type": "response.completed", "sequence_number": 2, "response": response}),
        ]
    }
}

/// OpenAI's Chat Completions.
mod chat {
    use super::{Value, json};

    pub(super) fn results(request: &Value) -> Vec<String> {
        let messages = request["messages"].as_array().into_iter().flatten();
        let results = messages.filter(|message| message["role"] == "tool");
        results.map(|message| message["content"].to_string()).collect()
    }

    /// One completion, or the only chunk of one.
    pub(super) fn reply(command: Option<String>, is_stream: bool) -> Value {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let ends = if command.is_some() { "tool_calls" } else { "stop" };
        let message = match command {
            Some(command) => json!({"role": "assistant", "content": null, "tool_calls": [{
                "index": 0, "id": format!("call_{id}"), "type": "function", "function": {
                    "name": "run_shell_command",
                    "arguments": json!({"command": command, "is_background": false}).to_string(),
                },
            }]}),
            None => json!({"role": "assistant", "content": "Done."}),
        };
        let (object, part) = match is_stream {
            true => ("chat.completion.chunk", "delta"),
            false => ("chat.completion", "message"),
        };
        json!({
            "id": id, "object": object, "created": 0, "model": "scripted",
            "choices": [{"index": 0, part: message, "finish_reason": ends}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        })
    }
}

/// Gemini's `generateContent`.
mod gemini {
    use super::{Value, json};

    pub(super) fn results(request: &Value) -> Vec<String> {
        let contents = request["contents"].as_array().into_iter().flatten();
        let parts = contents.flat_map(|content| content["parts"].as_array().into_iter().flatten());
        let results = parts.filter_map(|part| part.get("functionResponse"));
        results.map(|result| result["response"].to_string()).collect()
    }

    pub(super) fn reply(command: Option<String>, is_aside: bool) -> Value {
        let part = match command {
            Some(command) => json!({"functionCall": {
                "name": "run_shell_command", "args": {"command": command, "description": "a step of a script"},
            }}),
            None if is_aside => {
                let text = json!({"next_speaker": "user", "reasoning": "It is done.", "model_choice": "flash"});
                json!({"text": text.to_string()})
            }
            None => json!({"text": "Done."}),
        };
        json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
            "modelVersion": "scripted",
        })
    }
}
