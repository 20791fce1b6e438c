//! One vocabulary for the tools of all clients.

use countersign::hook::{Client, Hook};
use serde_json::{Value, json};

use super::{allowing, answered, assert_denied, before};

fn translated(client: Client, tool: &str, args: &Value) -> (String, Value) {
    let (tool, args) = Hook::new(client).translate(payload(client, tool, args).as_bytes()).unwrap();
    (tool, args.to_value())
}

pub(super) fn payload(client: Client, tool: &str, args: &Value) -> String {
    match client {
        Client::Copilot => json!({"sessionId": "s", "cwd": "/w", "toolName": tool, "toolArgs": args}),
        Client::Opencode => json!({
            "hook_event_name": "tool.execute.before", "session_id": "s", "call_id": "c", "cwd": "/w", "tool": tool,
            "args": args,
        }),
        _ => json!({
            "hook_event_name": if client == Client::Gemini { "BeforeTool" } else { "PreToolUse" },
            "session_id": "s", "cwd": "/w", "tool_use_id": "c", "tool_name": tool, "tool_input": args,
        }),
    }
    .to_string()
}

#[test]
fn every_recorded_call_has_its_name_in_the_common_vocabulary() {
    let mut seen: Vec<(String, String)> = Vec::new();
    for it in before() {
        let payload = it.payload.to_string();
        let (tool, args) = Hook::new(it.client).translate(payload.as_bytes()).unwrap();
        for name in ["path", "workdir"] {
            if let Some(path) = args.str(name) {
                assert!(path.starts_with("/src/ws"), "{} {path}", it.client);
            }
        }
        seen.push((it.client.to_string(), tool));
    }
    seen.sort();
    seen.dedup();
    for client in ["claude", "codex", "gemini", "copilot", "opencode"] {
        for tool in ["shell", "mcp:note/note", "spawn_agent"] {
            assert!(
                seen.contains(&(client.to_owned(), tool.to_owned())),
                "{client} {tool}: {seen:?}"
            );
        }
        let write = if client == "codex" { "patch" } else { "write_file" };
        assert!(seen.contains(&(client.to_owned(), write.to_owned())), "{client}");
    }
}

#[test]
fn paths_are_resolved_against_the_directory_of_the_call() {
    let read = |path: &str| {
        translated(Client::Claude, "Read", &json!({"file_path": path})).1["path"].clone()
    };
    assert_eq!(read("a"), "/w/a");
    assert_eq!(read("/etc/passwd"), "/etc/passwd");
    assert_eq!(read("../x"), "/w/../x");
    let (tool, args) =
        translated(Client::Codex, "shell", &json!({"command": "make", "workdir": "sub"}));
    assert_eq!((tool.as_str(), &args["workdir"]), ("shell", &json!("/w/sub")));
    let (_, args) = translated(Client::Opencode, "grep", &json!({"pattern": "x"}));
    assert_eq!(args["path"], "/w", "without a path, the directory is searched");
}

#[test]
fn every_path_of_a_patch_is_an_argument() {
    let text = "*** Begin Patch\n*** Update File: a\n*** Move to: ../b\n*** Delete File: /c\n*** End Patch\n";
    for (client, tool, name) in [
        (Client::Codex, "apply_patch", "command"),
        (Client::Copilot, "apply_patch", "input"),
        (Client::Opencode, "patch", "patchText"),
    ] {
        let (tool, args) = translated(client, tool, &json!({ name: text }));
        assert_eq!((tool.as_str(), &args["paths"]), ("patch", &json!(["/w/a", "/w/../b", "/c"])));
    }
    let command = format!("apply_patch <<'EOF'\n{text}EOF\n");
    let (tool, args) = translated(Client::Codex, "Bash", &json!({"command": command}));
    assert_eq!((tool.as_str(), args["paths"].as_array().unwrap().len()), ("shell", 3));
}

#[test]
fn the_server_of_an_mcp_tool_is_named_only_where_it_is_certain() {
    let tool = |client, name: &str| translated(client, name, &json!({})).0;
    assert_eq!(tool(Client::Codex, "mcp__docs__get_page"), "mcp:docs/get_page");
    assert_eq!(tool(Client::Copilot, "docs-search"), "mcp:docs/search");
    assert_eq!(tool(Client::Opencode, "docs_search"), "mcp:docs/search");
    for (client, name) in [
        (Client::Codex, "mcp__a__b__c"),
        (Client::Codex, "mcp__a___b"),
        (Client::Codex, "mcp____b"),
        (Client::Claude, "mcp__a__b__c"),
        (Client::Copilot, "github-mcp-server-search"),
        (Client::Opencode, "docs_get_page"),
        (Client::Gemini, "mcp_a_b"),
        (Client::Claude, "Hammer"),
    ] {
        assert_eq!(tool(client, name), name);
        let reply = answered(&allowing(client), payload(client, name, &json!({})).as_bytes());
        assert_denied(client, &reply, "is not known");
    }
    let named = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "tool_name": "mcp__a__b__c", "tool_input": {},
        "mcp_server": {"name": "a__b", "source": "dynamic"},
    });
    assert_eq!(
        Hook::new(Client::Claude).translate(named.to_string().as_bytes()).unwrap().0,
        "mcp:a__b/c"
    );
}

#[test]
fn invisible_input_is_asked_about_even_if_the_layers_allow_it() {
    for (client, tool, args, why) in [
        (Client::Codex, "Bash", json!({"command": "bash --norc"}), "opens a shell"),
        (Client::Codex, "exec_command", json!({"cmd": "ls", "tty": true}), "opens a terminal"),
        (Client::Codex, "write_stdin", json!({"chars": "ls\n"}), "typed into a shell"),
        (
            Client::Copilot,
            "write_bash",
            json!({"shellId": "s", "input": "ls"}),
            "typed into a shell",
        ),
        (Client::Claude, "Bash", json!({"command": ["ls"]}), "not a text"),
        (Client::Claude, "Bash", json!({"command": "f() { rm x; }; f"}), "cannot be read"),
        (Client::Claude, "Write", json!({"file_path": "~/.bashrc", "content": ""}), "another path"),
        (Client::Claude, "Write", json!({"file_path": 7, "content": ""}), "not a path"),
        (Client::Claude, "Write", json!({"file_path": "a", "path": "b"}), "both"),
        (Client::Gemini, "read_file", json!({"file_path": "a", "absolute_path": "b"}), "both"),
        (
            Client::Gemini,
            "run_shell_command",
            json!({"command": "ls", "dir_path": "a", "directory": "b"}),
            "has no argument `directory`",
        ),
        // The client drops what its tool does not have, and works elsewhere.
        (
            Client::Gemini,
            "run_shell_command",
            json!({"command": "ls", "workdir": "a"}),
            "no argument",
        ),
        (
            Client::Copilot,
            "bash",
            json!({"command": "ls", "workdir": "a"}),
            "no argument `workdir`",
        ),
        (Client::Claude, "Bash", json!({"command": "ls", "cwd": "a"}), "no argument `cwd`"),
        (Client::Gemini, "grep_search", json!({"pattern": "a", "path": "b"}), "no argument `path`"),
        (Client::Gemini, "glob", json!({"pattern": "[.-.][.-.]/*"}), "leads out"),
        (
            Client::Gemini,
            "web_fetch",
            json!({"url": "https://docs.rs", "prompt": "see https://a.example"}),
            "beside those of its prompt",
        ),
        (Client::Gemini, "write_file", json!({"content": ""}), "not a path"),
        (Client::Codex, "apply_patch", json!({"command": "--- a\n+++ b"}), "which files"),
    ] {
        let reply = answered(&allowing(client), payload(client, tool, &args).as_bytes());
        assert_denied(client, &reply, why);
        assert!(reply.stderr().contains("waits for approval"), "{}", reply.stderr());
    }
}
