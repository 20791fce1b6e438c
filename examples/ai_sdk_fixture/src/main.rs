//! A scripted chat for testing AI SDK clients and servers against each other: the user's text selects what the model
//! does, and no real model is asked.
//!
//! ```text
//! cargo run -p ai_sdk_fixture -- --port 8080 --sdk v7
//! ```
//!
//! | request | does |
//! |---|---|
//! | `POST /api/chat`, `GET /api/chat/{id}/stream` | the chat, as an unmodified `useChat` uses it |
//! | `GET /fixture/executions` | the executions of tools: `[{tool, input, toolCallId}]` |
//! | `POST /fixture/reset` | clears the executions |
//!
//! | the user says | the model |
//! |---|---|
//! | `text` | says hello |
//! | `allow` | reads a file, which is allowed |
//! | `ask`, `two`, `sequential` | deletes files, which is asked about |
//! | `external` | calls a tool that the client executes |
//! | `mixed` | makes one call of each of these three kinds in one response |
//! | `deny-policy` | wipes the disk, which is denied |
//! | `tool-error`, `bad-input` | calls a tool that fails, or with arguments that do not fit |
//! | `sub-agent`, `sub-agents` | lets a sub-agent delete a file, alone or beside its own call |
//! | `slow`, `slow-ask` | takes a second for its text, at once or after a call that is asked about |
//! | `stream-error` | fails in the middle of its answer |
//!
//! Then the model repeats the results of its calls.

#[path = "../../chat/src/spoken.rs"]
mod spoken;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use clap::Parser;
use countersign::agent::RunError;
use countersign::message::{RequestPart, ResponsePart, ReturnKind};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::outcome::ToolFailed;
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, BoxError, Decision, Error, FunctionToolset, Message, Model, RunContext, ToolCall,
    ToolDefinition, ToolError, Tools, ToolsExt as _, decide_fn, schemars, tool_fn,
};
use countersign_ai_sdk::{Chats, ClientVersion, Principal, router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use spoken::since_the_user_spoke;

#[derive(Parser)]
struct Options {
    /// The port to listen at, on this machine only; 0 takes a free one.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// The oldest client that is served: v6, v7, or a version like 7.0.82.
    #[arg(long, default_value = "v6")]
    sdk: ClientVersion,
}

/// The executions of tools, in order.
#[derive(Clone, Default)]
struct Executions(Arc<Mutex<Vec<Executed>>>);

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Executed {
    tool: &'static str,
    input: Value,
    tool_call_id: String,
}

impl Executions {
    fn lock(&self) -> MutexGuard<'_, Vec<Executed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Deserialize, Serialize, schemars::JsonSchema)]
struct File {
    path: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
struct Nothing {}

async fn read_file(cx: RunContext, file: File) -> Result<Value, ToolError> {
    note(&cx, "read_file", json!(file))?;
    Ok(json!({"content": format!("contents of {}", file.path)}))
}

async fn delete_file(cx: RunContext, file: File) -> Result<Value, ToolError> {
    note(&cx, "delete_file", json!(file))?;
    Ok(json!({"deleted": file.path}))
}

async fn wipe_disk(cx: RunContext, _: Nothing) -> Result<Value, ToolError> {
    note(&cx, "wipe_disk", json!({}))?;
    Ok(json!({"wiped": true}))
}

async fn explode(cx: RunContext, _: Nothing) -> Result<Value, ToolError> {
    note(&cx, "explode", json!({}))?;
    Err(ToolFailed::new("kaboom").into())
}

fn note(cx: &RunContext, tool: &'static str, input: Value) -> Result<(), ToolError> {
    let tool_call_id = cx.tool_call_id().unwrap_or_default().to_owned();
    cx.deps::<Executions>()?.lock().push(Executed { tool, input, tool_call_id });
    Ok(())
}

fn tools() -> Tools {
    let policy = decide_fn(|_, call: &ToolCall| match call.name() {
        "delete_file" => Decision::ask("deleting is permanent"),
        "explode" => Decision::ask("it may explode"),
        "wipe_disk" => Decision::deny("wiping disks is forbidden"),
        _ => Decision::allow(),
    });
    let location = ToolDefinition::new("get_location", json!({"type": "object", "properties": {}}));
    let own = FunctionToolset::new()
        .tool(tool_fn("read_file", "Read a text file", read_file))
        .tool(tool_fn("delete_file", "Delete a file", delete_file))
        .tool(tool_fn("wipe_disk", "Wipe the disk", wipe_disk))
        .tool(tool_fn("explode", "Explode", explode))
        .layered(policy);
    let cleaner = Agent::new(Cleaner, own.clone());
    let prompt = |_: &RunContext, _: Nothing| "clean up".to_owned();
    let cleaner = cleaner.as_tool_fn("cleaner", "Cleans up", prompt);
    let browser = ExternalToolset::new("browser", [location]);
    Tools::combined([own, FunctionToolset::new().tool(cleaner).into(), browser.into()])
}

/// A model that deletes a file, and then repeats the result.
struct Cleaner;

impl Model for Cleaner {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (_, after) = since_the_user_spoke(request.messages());
        if after.is_empty() {
            let delete = call("delete_file", json!({"path": "b.txt"}));
            return Ok(ModelResponse { parts: vec![delete], ..ModelResponse::default() });
        }
        Ok(ModelResponse::text(echo(after)))
    }
}

/// A scripted model. Its only state is the conversation.
struct Script;

impl Model for Script {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (said, after) = since_the_user_spoke(request.messages());
        let step = after.iter().filter(|it| matches!(it, Message::Response { .. })).count();
        let read = |path: &str| call("read_file", json!({"path": path}));
        let delete = |path: &str| call("delete_file", json!({"path": path}));
        let calls = match (said.as_str(), step) {
            ("allow", 0) => vec![read("a.txt")],
            ("ask", 0) => {
                let text = stream(&request, "I will delete a.txt.").await;
                return Ok(ModelResponse {
                    parts: vec![text, delete("a.txt")],
                    ..ModelResponse::default()
                });
            }
            ("two", 0) => vec![delete("a.txt"), delete("b.txt")],
            ("external", 0) => vec![call("get_location", json!({}))],
            ("mixed", 0) => vec![read("a.txt"), delete("a.txt"), call("get_location", json!({}))],
            ("sequential", 0) => vec![delete("a.txt")],
            ("sequential", 1) => vec![delete("b.txt")],
            ("deny-policy", 0) => vec![call("wipe_disk", json!({}))],
            ("tool-error", 0) => vec![call("explode", json!({}))],
            ("bad-input", 0) => vec![call("delete_file", json!({"path": 42}))],
            ("stream-error", 0) => {
                stream(&request, "partial").await;
                return Err("model exploded".into());
            }
            ("sub-agent", 0) => vec![call("cleaner", json!({}))],
            ("sub-agents", 0) => vec![delete("a.txt"), call("cleaner", json!({}))],
            ("slow-ask", 0) => vec![delete("a.txt")],
            ("slow", 0) | ("slow-ask", _) => {
                let text = "A long story, told slowly. ".repeat(8);
                for word in text.split_inclusive(' ') {
                    request.text_delta(word);
                    tokio::time::sleep(Duration::from_millis(25)).await;
                }
                return Ok(ModelResponse::text(text));
            }
            (_, 0) => {
                let text = stream(&request, "Hello from the model.").await;
                return Ok(ModelResponse { parts: vec![text], ..ModelResponse::default() });
            }
            _ => {
                let text = stream(&request, &echo(after)).await;
                return Ok(ModelResponse { parts: vec![text], ..ModelResponse::default() });
            }
        };
        Ok(ModelResponse { parts: calls, ..ModelResponse::default() })
    }
}

/// A call with an id that was never used before.
fn call(tool: &str, args: Value) -> ResponsePart {
    ResponsePart::ToolCall(ToolCall::new(format!("call-{}", uuid::Uuid::now_v7()), tool, args))
}

/// Streams a text in two deltas, as models do.
async fn stream(request: &ModelRequest, text: &str) -> ResponsePart {
    let middle = text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    request.text_delta(first);
    tokio::task::yield_now().await;
    request.text_delta(second);
    ResponsePart::Text(text.to_owned())
}

/// A text that repeats the results of the calls of the last response.
fn echo(history: &[Message]) -> String {
    let last = history.iter().rposition(|it| matches!(it, Message::Response { .. }));
    let Some((response, behind)) = last.and_then(|at| history.get(at..)?.split_first()) else {
        return "model saw nothing".to_owned();
    };
    let told = |id: &str| {
        let parts = behind.iter().flat_map(|message| match message {
            Message::Request { parts } => parts.as_slice(),
            Message::Response { .. } => &[],
        });
        parts
            .filter_map(|part| match part {
                RequestPart::ToolReturn { tool_call_id, outcome, content, .. }
                    if tool_call_id == id =>
                {
                    Some((*outcome, content.clone()))
                }
                _ => None,
            })
            .next()
    };
    let seen = response.tool_calls().map(|call| {
        let became = match told(call.id()) {
            Some((ReturnKind::Success, value)) => format!("ok {value}"),
            Some((ReturnKind::Denied, why)) => {
                format!("denied {}", why.as_str().unwrap_or_default())
            }
            Some((_, why)) => format!("error {}", why.as_str().unwrap_or_default()),
            None => "NO RESULT".to_owned(),
        };
        format!("{}({}) {became}", call.name(), call.args())
    });
    format!("model saw: {}", seen.collect::<Vec<_>>().join("; "))
}

/// The text of an error for the client, with the model's own message, which these clients are tested with. A real
/// server says less.
fn error_text(error: &RunError) -> String {
    match error.error() {
        Error::Model(error) => error.to_string(),
        error => error.to_string(),
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let Options { port, sdk } = Options::parse();
    let executions = Executions::default();
    let agent = Agent::new(Script, tools()).deps(executions.clone());
    let chats = Chats::new(agent).client(sdk).error_text(error_text);
    let fixture = Router::new()
        .route("/executions", get(executed))
        .route("/reset", post(reset))
        .with_state(executions);
    let chats = router(chats, async |_| Ok(Principal::new("fixture")));
    let app = Router::new().nest("/api/chat", chats).nest("/fixture", fixture);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn executed(State(executions): State<Executions>) -> Json<Vec<Executed>> {
    Json(executions.lock().clone())
}

async fn reset(State(executions): State<Executions>) -> StatusCode {
    executions.lock().clear();
    StatusCode::NO_CONTENT
}
