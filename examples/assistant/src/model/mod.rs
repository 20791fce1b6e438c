//! The scripted model, which is offline and deterministic. Real models are in `real`.
//!
//! Its only state is the conversation. For each request it reads what the tools really returned, and does the first
//! step of its list that is not done yet. So another folder gives another plan, a denial changes the plan, and a run
//! that is resumed in another process continues where it was.

mod knowledge;
mod plan;
#[cfg_attr(not(feature = "genai"), path = "absent.rs")]
pub(crate) mod real;

use countersign::message::ReturnKind;
use countersign::model::{ModelRequest, ModelResponse};
use countersign::{BoxError, Model, ToolCall, ToolDefinition};
use serde_json::{Value, json};

use knowledge::Knowledge;

/// A model that tidies a folder: it moves notes into `notes/`, deletes temporary files and old logs, and writes a
/// summary, which it completes.
pub(crate) struct Tidy;

impl Model for Tidy {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let known = Knowledge::of(request.messages());
        let steps = [look, read, follow, tidy, summarise, complete];
        let next = steps.iter().find_map(|step| step(&known));
        let next = next.or_else(|| visit(&known, request.tools()));
        Ok(next.unwrap_or_else(|| ModelResponse::text(plan::last_words(&known))))
    }
}

/// Lists every folder, and tries to list links.
fn look(known: &Knowledge) -> Option<ModelResponse> {
    let folders = known.to_list();
    let text = match &folders[..] {
        [] => return None,
        ["~"] => "I look around before I touch anything.".to_owned(),
        folders => format!("I look into {}.", plan::count(folders.len(), "more place")),
    };
    say(known, &text, folders.iter().map(|path| call("list_files", json!({ "path": path }))))
}

/// Reads the files whose content decides what to do with them.
fn read(known: &Knowledge) -> Option<ModelResponse> {
    let files = plan::to_read(known);
    let text = format!("I read {} to see what they are.", plan::count(files.len(), "file"));
    say(known, &text, files.iter().map(|path| call("read_file", json!({ "path": path }))))
}

/// Reads the paths that notes mention. A real model does that too, wherever they lead.
fn follow(known: &Knowledge) -> Option<ModelResponse> {
    let mentioned = plan::mentioned(known);
    let text = "The notes tell me to read something else.";
    say(known, text, mentioned.iter().map(|path| call("read_file", json!({ "path": path }))))
}

/// Moves and deletes files, all in one response.
fn tidy(known: &Knowledge) -> Option<ModelResponse> {
    let plan = plan::changes(known);
    let parts = [
        (plan.moves.len(), "note", "to move into `notes/`"),
        (plan.temporary.len(), "temporary file", "to delete"),
        (plan.old_logs.len(), "old log", "to delete"),
    ];
    let parts = parts.iter().filter(|(n, ..)| *n > 0);
    let parts = parts.map(|(n, what, todo)| format!("{} {todo}", plan::count(*n, what)));
    let text = format!("I see {}.", parts.collect::<Vec<_>>().join(", "));
    let moves =
        plan.moves.iter().map(|(from, to)| call("move_file", json!({"from": from, "to": to})));
    let deletes = plan.temporary.iter().chain(&plan.old_logs);
    let deletes = deletes.map(|path| call("delete_file", json!({"path": format!("./{path}")})));
    say(known, &text, moves.chain(deletes))
}

/// Writes the summary.
fn summarise(known: &Knowledge) -> Option<ModelResponse> {
    if known.tried("write_file", |_| true) || !known.tried_a_change() {
        return None;
    }
    let write = json!({"path": plan::SUMMARY, "text": plan::summary(known)});
    say(known, "Last, I write down what was done.", [call("write_file", write)])
}

/// Writes the summary again, with what was denied. Agents often write a file several times, which is what an answer
/// for a session is for.
fn complete(known: &Knowledge) -> Option<ModelResponse> {
    let written = known.calls.iter().filter(|past| past.tool == "write_file");
    let written: Vec<_> = written.map(|past| past.kind).collect();
    let denied = plan::denied(known);
    if written != [ReturnKind::Success] || denied.is_empty() {
        return None;
    }
    let text = format!("{}\n## Not allowed\n\n{denied}", plan::summary(known));
    let write = json!({"path": plan::SUMMARY, "text": text});
    say(known, "I forgot to write down what I was not allowed to do.", [call("write_file", write)])
}

/// Calls the first tool of a server (`--mcp`) that needs no arguments, once.
fn visit(known: &Knowledge, tools: &[ToolDefinition]) -> Option<ModelResponse> {
    let needs_none = |tool: &&ToolDefinition| {
        let required = tool.parameters().get("required").and_then(Value::as_array);
        required.is_none_or(Vec::is_empty)
    };
    let mut servers = tools.iter().filter(|tool| tool.source().is_some_and(|it| it.is_server()));
    let tool = servers.find(needs_none)?;
    if known.tried(tool.name(), |_| true) {
        return None;
    }
    say(known, "There is a server, too, so I see what it has.", [call(tool.name(), json!({}))])
}

/// A response with calls, or `None` without any. Its text mentions the calls that were just denied.
fn say(
    known: &Knowledge,
    text: &str,
    calls: impl IntoIterator<Item = ToolCall>,
) -> Option<ModelResponse> {
    let number = known.calls.len();
    let numbered = calls.into_iter().enumerate().map(|(i, it)| {
        ToolCall::new(format!("call_{}", number + i + 1), it.name(), it.args().to_value())
    });
    let calls: Vec<ToolCall> = numbered.collect();
    let text = format!("{}{text}", reaction(known));
    (!calls.is_empty()).then(|| ModelResponse::calls(calls).saying(text))
}

/// The model's reaction to the denials of its last response.
fn reaction(known: &Knowledge) -> String {
    let denied = known.latest().filter(|past| past.kind == ReturnKind::Denied);
    let denied: Vec<_> = denied.map(|past| format!("`{}`", past.target())).collect();
    match &denied[..] {
        [] => String::new(),
        [one] => format!("I am not allowed to touch {one}, so I leave it alone.\n"),
        many if many.len() <= 4 => {
            format!("I am not allowed to touch {}, so I leave them alone.\n", many.join(", "))
        }
        many => format!("{} of my calls were denied, so I leave those files alone.\n", many.len()),
    }
}

fn call(tool: &str, args: Value) -> ToolCall {
    ToolCall::new("", tool, args)
}
