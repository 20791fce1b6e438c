//! The assistant: its tools and its permission stack are those of the first example, and beside them a tool that the page
//! executes and an agent below this one.

use std::time::Duration;

use countersign::{
    Agent, BoxError, ExternalToolset, FunctionToolset, Message, Model, ModelRequest, ModelResponse,
    RequestPart, ReturnKind, ToolCall, ToolDefinition, Tools,
};
use serde_json::{Value, json};

use crate::assistant::Tidy;
use crate::assistant::real::{self, Real};
use crate::spoken::since_the_user_spoke;
use crate::stack;

/// How long a chat waits when the server was killed in the middle of a response.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) fn agent(model: Option<Real>) -> Agent {
    let cleaner = Agent::new(Cleaner, stack::stack(false));
    let cleaner = cleaner.as_tool("cleaner", "Deletes what it is told to delete");
    let location = json!({"type": "object", "properties": {}});
    let location =
        ToolDefinition::new("get_location", location).with_description("Where the user is");
    let tools = Tools::combined([
        stack::stack(false),
        FunctionToolset::new().tool(cleaner).into(),
        ExternalToolset::new("browser", [location]).into(),
    ]);
    match model {
        Some(model) => real::agent(model, tools),
        None => Agent::new(Demo, tools),
    }
}

/// In the place of a real model. It knows nothing but the conversation.
struct Demo;

impl Model for Demo {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (said, since) = since_the_user_spoke(request.messages());
        let delete = |path: &str| call("delete_file", json!({"path": path}));
        let moves = |to: &str| call("move_file", json!({"from": "a.txt", "to": to}));
        let (text, calls) = match said.trim() {
            "clean up" => return Tidy.respond(request).await,
            "insist on deleting a.txt" if responses(since) < 3 => {
                ("I delete a.txt.".to_owned(), vec![delete("a.txt")])
            }
            _ if since.iter().any(|it| matches!(it, Message::Response { .. })) => {
                (sums_up(since), Vec::new())
            }
            "delete a.txt" => ("I delete a.txt.".to_owned(), vec![delete("a.txt")]),
            "delete a.txt and b.txt" => {
                ("I delete both.".to_owned(), vec![delete("a.txt"), delete("b.txt")])
            }
            "delete a.txt three times" => (
                "I delete it, to be sure.".to_owned(),
                vec![delete("a.txt"), delete("a.txt"), delete("a.txt")],
            ),
            "move a.txt onto b.txt" => ("I move it.".to_owned(), vec![moves("b.txt")]),
            "move a.txt away three times" => (
                "I move it, to be sure.".to_owned(),
                vec![moves("away.txt"), moves("away.txt"), moves("away.txt")],
            ),
            "read .env" => {
                ("I look into .env.".to_owned(), vec![call("read_file", json!({"path": ".env"}))])
            }
            "where am i" => {
                ("I ask your browser.".to_owned(), vec![call("get_location", json!({}))])
            }
            "let the cleaner delete a.txt" => {
                let prompt = json!({"prompt": "delete a.txt"});
                ("I pass it on.".to_owned(), vec![call("cleaner", prompt)])
            }
            "write something hostile" => ("I write it.".to_owned(), vec![hostile()]),
            "write a long script and delete a.txt" => {
                ("I do both.".to_owned(), vec![long_script(), delete("a.txt")])
            }
            "tell me a story" => (story(&request).await, Vec::new()),
            _ => (HELP.to_owned(), Vec::new()),
        };
        request.text_delta(&text);
        Ok(ModelResponse::calls(calls).saying(text))
    }
}

/// How often the model has answered since the user spoke.
fn responses(since: &[Message]) -> usize {
    since.iter().filter(|message| matches!(message, Message::Response { .. })).count()
}

const HELP: &str = "I am a script, and understand a few sentences: `clean up`, `delete a.txt`, `delete a.txt and \
b.txt`, `delete a.txt three times`, `move a.txt onto b.txt`, `move a.txt away three times`, `read .env`, `where am i`, `let the cleaner delete a.txt`, `write something hostile`, \
`write a long script and delete a.txt`, `insist on deleting a.txt`, `tell me a story`.";

/// What a page must show as text, and only as text.
fn hostile() -> ToolCall {
    let text = "<script>alert('run')</script> <b>bold</b> [link](javascript:alert(1))\n\
                \u{202e}gpj.exe \u{200b}\u{1b}[2J looks like nothing";
    call("write_file", json!({"path": "<img src=x onerror=alert(1)>.txt", "text": text}))
}

/// A text that is too long to be shown at first, with something in the middle of it.
fn long_script() -> ToolCall {
    let lines = |from: usize| (from..from + 60).map(|n| format!("echo step {n}\n"));
    let text: String = lines(1).chain(["rm -rf important\n".to_owned()]).chain(lines(61)).collect();
    call("write_file", json!({"path": "steps.sh", "text": text}))
}

/// A text that takes some seconds.
async fn story(request: &ModelRequest) -> String {
    let words = (1..=60).map(|word| format!("word{word}, ")).chain(["end.".to_owned()]);
    let mut told = String::new();
    for word in words {
        request.text_delta(&word);
        told += &word;
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    told
}

/// What the model was told of the calls it has made since the user spoke.
fn sums_up(since: &[Message]) -> String {
    let parts = since.iter().flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        _ => &[],
    });
    let told = parts.filter_map(|part| match part {
        RequestPart::ToolReturn { tool_name, content, outcome, .. } => {
            let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
            Some(match outcome {
                ReturnKind::Success => format!("{tool_name}: {text}."),
                ReturnKind::Denied => format!("{tool_name} was denied: {text}"),
                _ => format!("{tool_name} did not work: {text}."),
            })
        }
        _ => None,
    });
    told.collect::<Vec<_>>().join("\n")
}

/// Deletes what it is told to delete.
struct Cleaner;

impl Model for Cleaner {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (said, since) = since_the_user_spoke(request.messages());
        if since.iter().any(|it| matches!(it, Message::Response { .. })) {
            return Ok(ModelResponse::text(sums_up(since)));
        }
        let path = said.strip_prefix("delete ").unwrap_or_default();
        Ok(ModelResponse::calls([call("delete_file", json!({"path": path}))]))
    }
}

/// Every id is new.
fn call(tool: &str, args: Value) -> ToolCall {
    ToolCall::new(format!("call_{}", uuid::Uuid::now_v7().simple()), tool, args)
}
