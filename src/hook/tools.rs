//! What is known about the tool of a call, by the table of each client's tools.

use super::client::Client;
use super::payload::HookCall;
use crate::reader::tools::{
    CLAUDE, CODEX, COPILOT, ClientTools, CommonTool, GEMINI, OPENCODE, Renames,
};

/// What is known about a tool.
pub(super) struct KnownTool {
    pub(super) kind: CommonTool,
    /// The arguments that have another name in the common vocabulary.
    pub(super) names: Renames,
}

/// What is known about the tool of a call; `None` for tools of MCP servers and unknown ones.
///
/// A tool that the client says is of an MCP server is never taken for the client's own, even with the same name: `Bash`
/// of a server is not the shell.
pub(super) fn known(call: &HookCall) -> Option<KnownTool> {
    // The client says that the tool belongs to an MCP server, so its name says nothing about what it does.
    if call.server.is_some() {
        return None;
    }
    let (kind, names) = match call.client {
        Client::Copilot => copilot(call),
        client => tools_of(client).get(&call.tool),
    }?;
    Some(KnownTool { kind, names })
}

fn tools_of(client: Client) -> &'static ClientTools {
    match client {
        Client::Claude => &CLAUDE,
        Client::Codex => &CODEX,
        Client::Gemini => &GEMINI,
        Client::Copilot => &COPILOT,
        Client::Opencode => &OPENCODE,
    }
}

/// Copilot has a tool whose kind is in its arguments, and takes one directory or a list of them; a list has no name in the
/// common vocabulary.
fn copilot(call: &HookCall) -> Option<(CommonTool, Renames)> {
    let text = |name: &str| call.args.get(name).and_then(serde_json::Value::as_str);
    let tool = match call.tool.as_str() {
        "str_replace_editor" => match text("command")? {
            "view" => "view",
            "create" => "create",
            "str_replace" | "insert" | "undo_edit" => "str_replace",
            _ => return None,
        },
        tool => tool,
    };
    let (kind, names) = COPILOT.get(tool)?;
    let searches = matches!(kind, CommonTool::FindFiles | CommonTool::SearchFiles);
    Some(match text("paths") {
        Some(_) if searches => (kind, &[("paths", "path")]),
        _ => (kind, names),
    })
}
