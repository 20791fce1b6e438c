//! The tools that each client has of its own.
//!
//! Names are the clients', and nothing promises that they stay. A tool that is not in these lists is unknown, and asked
//! about, so a client that renames a tool costs questions and opens nothing.

use super::client::Client;
use super::payload::HookCall;
use crate::args::Args;

/// The kind of a tool, by its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Shell,
    ShellInput,
    ReadFile,
    WriteFile,
    EditFile,
    Patch,
    ListFiles,
    FindFiles,
    SearchFiles,
    Fetch,
    WebSearch,
    SpawnAgent,
    /// A tool that only touches the session, such as its list of things to do.
    Session(&'static str),
}

impl Kind {
    /// The name of the tool in the common vocabulary.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::ShellInput => "shell_input",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::Patch => "patch",
            Self::ListFiles => "list_files",
            Self::FindFiles => "find_files",
            Self::SearchFiles => "search_files",
            Self::Fetch => "fetch",
            Self::WebSearch => "web_search",
            Self::SpawnAgent => "spawn_agent",
            Self::Session(name) => name,
        }
    }
}

/// What is known about a tool.
pub(super) struct KnownTool {
    pub(super) kind: Kind,
    /// The arguments that have another name in the common vocabulary.
    pub(super) names: &'static [(&'static str, &'static str)],
}

const SAME: &[(&str, &str)] = &[];
const FILE: &[(&str, &str)] = &[("file_path", "path")];

/// What is known about the tool of a call; `None` for tools of MCP servers and unknown ones.
///
/// A tool that the client says is of an MCP server is never taken for the client's own, even with the same name: `Bash`
/// of a server is not the shell.
pub(super) fn known(call: &HookCall) -> Option<KnownTool> {
    // The client says that the tool belongs to an MCP server, so its name says nothing about what it does.
    if call.server.is_some() {
        return None;
    }
    let tool = call.tool.as_str();
    let (kind, names) = match call.client {
        Client::Claude => claude(tool),
        Client::Codex => codex(tool),
        Client::Gemini => gemini(tool),
        Client::Copilot => copilot(tool, &Args::from(call.args.clone())),
        Client::Opencode => opencode(tool),
    }?;
    Some(KnownTool { kind, names })
}

type Mapping = Option<(Kind, &'static [(&'static str, &'static str)])>;

fn claude(tool: &str) -> Mapping {
    Some(match tool {
        "Bash" => (Kind::Shell, SAME),
        "Write" => (Kind::WriteFile, FILE),
        "Edit" | "MultiEdit" => (Kind::EditFile, FILE),
        "NotebookEdit" => (Kind::EditFile, &[("notebook_path", "path")]),
        "Read" => (Kind::ReadFile, FILE),
        "NotebookRead" => (Kind::ReadFile, &[("notebook_path", "path")]),
        "LS" => (Kind::ListFiles, SAME),
        "Glob" => (Kind::FindFiles, SAME),
        "Grep" => (Kind::SearchFiles, SAME),
        "WebFetch" => (Kind::Fetch, SAME),
        "WebSearch" => (Kind::WebSearch, SAME),
        "Agent" | "Task" => (Kind::SpawnAgent, &[("subagent_type", "agent")]),
        "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskGet" | "TaskList" => {
            (Kind::Session("todo"), SAME)
        }
        "AskUserQuestion" => (Kind::Session("ask_user"), SAME),
        "EnterPlanMode" | "ExitPlanMode" => (Kind::Session("plan"), SAME),
        "BashOutput" | "TaskOutput" => (Kind::Session("shell_output"), SAME),
        "KillShell" | "KillBash" | "TaskStop" => (Kind::Session("stop_shell"), SAME),
        _ => return None,
    })
}

fn codex(tool: &str) -> Mapping {
    Some(match tool {
        "Bash" | "shell" | "local_shell" | "container.exec" => (Kind::Shell, SAME),
        "exec_command" => (Kind::Shell, &[("cmd", "command")]),
        "apply_patch" => (Kind::Patch, &[("command", "patch"), ("input", "patch")]),
        "write_stdin" => (Kind::ShellInput, SAME),
        "view_image" => (Kind::ReadFile, SAME),
        "update_plan" => (Kind::Session("todo"), SAME),
        "request_user_input" => (Kind::Session("ask_user"), SAME),
        "spawn_agent" => (Kind::SpawnAgent, &[("message", "prompt"), ("agent_type", "agent")]),
        "web_search" => (Kind::WebSearch, SAME),
        "wait" | "wait_agent" | "close_agent" => (Kind::Session("wait_agent"), SAME),
        _ => return None,
    })
}

fn gemini(tool: &str) -> Mapping {
    Some(match tool {
        "run_shell_command" => (Kind::Shell, &[("dir_path", "workdir")]),
        "write_file" => (Kind::WriteFile, FILE),
        "replace" => (Kind::EditFile, FILE),
        // The names of several versions. A call that has two of them is asked about: another version reads another one.
        "read_file" => (Kind::ReadFile, &[("file_path", "path"), ("absolute_path", "path")]),
        "list_directory" => (Kind::ListFiles, &[("dir_path", "path")]),
        "glob" => (Kind::FindFiles, &[("dir_path", "path")]),
        "grep_search" | "search_file_content" => (Kind::SearchFiles, &[("dir_path", "path")]),
        "web_fetch" => (Kind::Fetch, SAME),
        "google_web_search" => (Kind::WebSearch, SAME),
        "invoke_agent" => (Kind::SpawnAgent, &[("agent_name", "agent")]),
        "write_todos" => (Kind::Session("todo"), SAME),
        "ask_user" => (Kind::Session("ask_user"), SAME),
        "enter_plan_mode" | "exit_plan_mode" => (Kind::Session("plan"), SAME),
        _ => return None,
    })
}

fn copilot(tool: &str, args: &Args) -> Mapping {
    Some(match tool {
        "bash" => (Kind::Shell, SAME),
        "write_bash" => (Kind::ShellInput, SAME),
        "read_bash" | "list_bash" => (Kind::Session("shell_output"), SAME),
        "stop_bash" => (Kind::Session("stop_shell"), SAME),
        "create" => (Kind::WriteFile, &[("file_text", "content")]),
        "edit" | "str_replace" | "insert" => (Kind::EditFile, SAME),
        "view" => (Kind::ReadFile, SAME),
        "str_replace_editor" => match args.str("command")? {
            "view" => (Kind::ReadFile, SAME),
            "create" => (Kind::WriteFile, &[("file_text", "content")]),
            "str_replace" | "insert" | "undo_edit" => (Kind::EditFile, SAME),
            _ => return None,
        },
        "apply_patch" => (Kind::Patch, &[("input", "patch")]),
        "glob" => (Kind::FindFiles, directories(args)),
        "grep" | "rg" => (Kind::SearchFiles, directories(args)),
        "web_fetch" => (Kind::Fetch, SAME),
        "web_search" => (Kind::WebSearch, SAME),
        "task" => (Kind::SpawnAgent, &[("agent_type", "agent")]),
        "update_todo" | "report_intent" => (Kind::Session("todo"), SAME),
        "ask_user" => (Kind::Session("ask_user"), SAME),
        _ => return None,
    })
}

/// Copilot takes one directory or a list of them; a list has no name in the common vocabulary.
fn directories(args: &Args) -> &'static [(&'static str, &'static str)] {
    match args.str("paths") {
        Some(_) => &[("paths", "path")],
        None => SAME,
    }
}

fn opencode(tool: &str) -> Mapping {
    Some(match tool {
        "bash" => (Kind::Shell, SAME),
        "write" => (Kind::WriteFile, &[("filePath", "path")]),
        "edit" | "multiedit" => (Kind::EditFile, &[("filePath", "path")]),
        "patch" | "apply_patch" => (Kind::Patch, &[("patchText", "patch")]),
        "read" => (Kind::ReadFile, &[("filePath", "path")]),
        "list" => (Kind::ListFiles, SAME),
        "glob" => (Kind::FindFiles, SAME),
        "grep" => (Kind::SearchFiles, SAME),
        "webfetch" => (Kind::Fetch, SAME),
        "websearch" | "codesearch" => (Kind::WebSearch, SAME),
        "task" => (Kind::SpawnAgent, &[("subagent_type", "agent")]),
        "todowrite" | "todoread" => (Kind::Session("todo"), SAME),
        "question" => (Kind::Session("ask_user"), SAME),
        _ => return None,
    })
}
