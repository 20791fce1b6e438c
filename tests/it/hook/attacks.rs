//! Payloads by which a model, or a server of its tools, would have a call judged as another one than it is.

use countersign::ToolMiddlewareExt as _;
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use countersign_shell::Preset;
use serde_json::{Value, json};

use crate::support::clients::forms;

use super::vocabulary::payload;
use super::{answered, assert_denied};

/// What a user allows who trusts the agent in a directory, and nowhere else.
const RULES: &str = r#"
version = 1

[[rule]]
id = "commands"
allow = "shell"
where.command.is = ["read-only"]

[[rule]]
id = "files"
allow = ["read_file", "write_file", "edit_file", "list_files", "find_files", "search_files"]
where.path.within = "."

[[rule]]
id = "secrets"
deny = "*"
where.any_path = ["**/.env", "**/denied"]
reason = "not here"
"#;

/// The hook of a client under these rules, in an existing directory.
fn ruled(client: Client, root: &std::path::Path) -> Hook {
    Hook::new(client)
        .layered(Rules::builder().root(root).text("r.toml", RULES).load().unwrap().into_layer())
}

/// The shell of a client, and its tools that read, write and find files, with the names of their arguments.
struct Tools {
    client: Client,
    shell: &'static str,
    read: (&'static str, &'static str),
    write: Option<(&'static str, &'static str, &'static str)>,
    find: Option<&'static str>,
    /// A tool of this name is one of an MCP server, with the same name as the shell.
    imitation: &'static str,
}

fn all_tools() -> impl Iterator<Item = Tools> {
    Client::ALL.into_iter().map(|client| {
        let tool = |kind: &str| forms(client.name()).tool(kind);
        let first = |kind: &str| tool(kind).map(|words| words[0]);
        Tools {
            client,
            shell: first("shell").unwrap(),
            read: tool("read").map(|words| (words[0], words[1])).unwrap(),
            write: tool("write").map(|words| (words[0], words[1], words[2])),
            find: first("find"),
            imitation: first("imitation").unwrap(),
        }
    })
}

/// A directory with a link that leads out of it, and rules. A call is tried here: does it run without a person?
struct Desk {
    root: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("sub")).unwrap();
        std::fs::write(root.path().join("sub/notes.md"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.path().join("link")).unwrap();
        std::os::unix::fs::symlink("sub", root.path().join("inner")).unwrap();
        Self { root }
    }

    fn in_this_directory(&self, payload: &str) -> String {
        payload.replace("\"/w\"", &json!(self.root.path()).to_string())
    }

    fn status(&self, client: Client, tool: &str, args: &Value) -> u8 {
        let text = self.in_this_directory(&payload(client, tool, args));
        answered(&ruled(client, self.root.path()), text.as_bytes()).status()
    }

    #[track_caller]
    fn runs(&self, client: Client, tool: &str, args: &Value) {
        assert_eq!(self.status(client, tool, args), 0, "{client} {tool} {args}");
    }

    #[track_caller]
    fn does_not_run(&self, client: Client, tool: &str, args: &Value) {
        assert_eq!(self.status(client, tool, args), 2, "{client} {tool} {args}");
    }
}

/// R2: a path is judged by where it leads, in every way of writing it.
#[test]
fn a_path_that_leads_out_is_not_allowed_however_it_is_written() {
    let desk = Desk::new();
    let inside = desk.root.path().join("sub/notes.md").display().to_string();
    let outside = [
        "../x",
        "sub/../../x",
        "/etc/passwd",
        "link/passwd",
        "./link/../passwd",
        "~/x",
        "$HOME/x",
        "%2e%2e/x",
        "@x",
        "file:///etc/passwd",
        " /etc/passwd",
        "sub/notes.md\n",
        "sub/notes.md\0.txt",
        "sub/../.env",
        "sub/.env",
        "",
    ];
    for tools in all_tools() {
        let (client, (read, name)) = (tools.client, tools.read);
        for path in ["sub/notes.md", "inner/notes.md", "sub/../sub/notes.md", &inside] {
            desk.runs(client, read, &json!({ name: path }));
        }
        for path in outside {
            desk.does_not_run(client, read, &json!({ name: path }));
            if let Some((write, name, content)) = tools.write {
                desk.does_not_run(client, write, &json!({ name: path, content: "" }));
            }
        }
    }
}

/// A rule that allows a directory is not about files elsewhere, which a pattern can name.
#[test]
fn a_pattern_that_leads_out_of_its_directory_is_asked_about() {
    let desk = Desk::new();
    for (tools, find) in all_tools().filter_map(|it| it.find.map(|find| (it, find))) {
        for pattern in ["**/*.md", "{sub,inner}/*", "*"] {
            desk.runs(tools.client, find, &json!({"pattern": pattern}));
        }
        for pattern in ["/etc/*", "../*", "{..,sub}/*", "sub/../../*", "~/*", "{.,a}{.,b}/*"] {
            desk.does_not_run(tools.client, find, &json!({"pattern": pattern}));
            desk.does_not_run(tools.client, find, &json!({"pattern": [pattern]}));
        }
    }
    for (client, tool, name) in [
        (Client::Claude, "Grep", "glob"),
        (Client::Gemini, "grep_search", "include_pattern"),
        (Client::Copilot, "rg", "glob"),
        (Client::Opencode, "grep", "include"),
    ] {
        desk.runs(client, tool, &json!({"pattern": "/etc/..", name: "*.{rs,md}"}));
        desk.does_not_run(client, tool, &json!({"pattern": "x", name: "/etc/*"}));
    }
}

/// C1: "A script … is a build … if its bytes are those of the index and of `HEAD`": an agent may edit it unasked, and is asked
/// about running it then.
#[test]
fn a_script_that_an_agent_has_edited_is_asked_about() {
    let desk = Desk::new();
    let root = desk.root.path();
    let write = |text: &str| std::fs::write(root.join("sub/test.sh"), text).unwrap();
    write("#!/bin/sh\necho x\n");
    for args in ["init -q", "add -A", "commit -qm x"] {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
        assert!(git.args(args.split(' ')).current_dir(root).status().unwrap().success());
    }
    for tools in all_tools() {
        let status = |tool: &str, args: &Value| {
            let rules = Rules::builder().root(root).preset(Preset::Developer);
            let rules = rules.edits_in_workspace().load().unwrap();
            let text = desk.in_this_directory(&payload(tools.client, tool, args));
            let hook = Hook::new(tools.client).layered(rules.into_layer()).unknown_by_name(true);
            answered(&hook, text.as_bytes()).status()
        };
        for command in ["bash sub/test.sh", "./sub/test.sh unit 2>&1 | tail -5"] {
            let run = json!({ "command": command });
            assert_eq!(status(tools.shell, &run), 0, "{}: {command}", tools.client);
            write("rm -r ~\n");
            assert_eq!(status(tools.shell, &run), 2, "{}: {command}", tools.client);
            write("#!/bin/sh\necho x\n");
        }
        if let Some((tool, name, content)) = tools.write {
            let edit = json!({ name: "sub/test.sh", content: "rm -r ~\n" });
            assert_eq!(status(tool, &edit), 0, "{}", tools.client);
        }
        let both = json!({"command": "git add sub/test.sh && bash sub/test.sh"});
        assert_eq!(status(tools.shell, &both), 2, "{}", tools.client);
    }
}

/// Copilot names the directory, or a list of directories, `paths`.
#[test]
fn the_directories_that_copilot_searches_are_judged() {
    let desk = Desk::new();
    for tool in ["glob", "grep", "rg"] {
        let of = |paths: Value| json!({"pattern": "x", "paths": paths});
        for inside in ["sub", "inner", "./sub"] {
            desk.runs(Client::Copilot, tool, &of(json!(inside)));
        }
        for outside in
            [json!("/etc"), json!(".."), json!("link"), json!(["sub", "/etc"]), json!([]), json!(7)]
        {
            desk.does_not_run(Client::Copilot, tool, &of(outside));
        }
        let two = json!({"pattern": "x", "paths": "/etc", "path": "sub"});
        desk.does_not_run(Client::Copilot, tool, &two);
    }
}

/// Two names for one path: the client reads one of them, and which one is not known.
#[test]
fn a_call_with_two_paths_is_not_allowed_by_one_of_them() {
    let desk = Desk::new();
    for (client, tool, args) in [
        (Client::Claude, "Write", json!({"file_path": "/etc/x", "path": "sub/x", "content": ""})),
        (Client::Claude, "NotebookEdit", json!({"notebook_path": "/etc/x", "path": "sub/x"})),
        (
            Client::Gemini,
            "write_file",
            json!({"file_path": "/etc/x", "path": "sub/x", "content": ""}),
        ),
        (Client::Gemini, "read_file", json!({"absolute_path": "/etc/x", "file_path": "sub/x"})),
        (Client::Gemini, "list_directory", json!({"dir_path": "/etc", "path": "sub"})),
        (
            Client::Gemini,
            "run_shell_command",
            json!({"command": "ls", "dir_path": "/etc", "workdir": "sub"}),
        ),
        (Client::Copilot, "create", json!({"path": "sub/x", "file_text": "a", "content": "b"})),
        (Client::Opencode, "write", json!({"filePath": "/etc/x", "path": "sub/x", "content": ""})),
        (Client::Opencode, "apply_patch", json!({"patchText": "a", "patch": "b"})),
    ] {
        desk.does_not_run(client, tool, &args);
    }
}

/// R2: a server names its tools as it likes, and none of them is the client's own.
#[test]
fn a_servers_tool_with_the_name_of_the_clients_own_is_not_allowed_by_its_rule() {
    let desk = Desk::new();
    for tools in all_tools() {
        let args = json!({"command": "ls"});
        desk.runs(tools.client, tools.shell, &args);
        desk.does_not_run(tools.client, tools.imitation, &args);
        // The client says that it is a server's, under the very name.
        for said in [
            json!({"mcp_server": {"name": "x"}}),
            json!({"mcp_context": {"server_name": "x", "tool_name": tools.shell}}),
        ] {
            let text = desk.in_this_directory(&payload(tools.client, tools.shell, &args));
            let mut payload: Value = serde_json::from_str(&text).unwrap();
            payload.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
            let hook = ruled(tools.client, desk.root.path());
            assert!(answered(&hook, payload.to_string().as_bytes()).is_denial(), "{payload}");
        }
    }
    for (client, tool) in [
        // Names that only look like those of the client.
        (Client::Claude, "bash"),
        (Client::Claude, "Bash "),
        (Client::Codex, "bash"),
        (Client::Gemini, "Run_Shell_Command"),
        (Client::Copilot, "B\u{430}sh"),
        (Client::Opencode, "bash\u{202e}"),
        (Client::Opencode, "shell"),
    ] {
        desk.does_not_run(client, tool, &json!({"command": "ls"}));
    }
}

/// C1: what a wrapper runs is judged, and not the wrapper.
#[test]
fn a_command_behind_a_wrapper_is_judged_by_what_it_runs() {
    let desk = Desk::new();
    for tools in all_tools() {
        for command in ["ls", "cat sub/notes.md", "ls | head -3"] {
            desk.runs(tools.client, tools.shell, &json!({"command": command}));
        }
        for command in [
            "env rm x",
            "timeout 9 rm x",
            "bash -c 'rm x'",
            "sh -c \"$(cat x)\"",
            "xargs rm < x",
            "ls; rm x",
            "ls & rm x",
            "ls\nrm x",
            "$(rm x)",
            "ls `rm x`",
            "cat <(rm x)",
            "cat .env",
            "cat sub/../.env",
            "ls > /etc/x",
            "find . -exec rm {} +",
            "l\\s; r\\m x",
            "eval rm x",
            "X=1 rm x",
            "nohup nice rm x",
            "cat sub/\u{0}.env",
            "ls \u{202e}",
            "",
        ] {
            desk.does_not_run(tools.client, tools.shell, &json!({"command": command}));
        }
        for command in [json!(7), json!(null), json!(["ls"]), json!({"a": "ls"})] {
            desk.does_not_run(tools.client, tools.shell, &json!({ "command": command }));
        }
        desk.does_not_run(tools.client, tools.shell, &json!({}));
    }
}

/// T5: text that two readers would read differently is refused.
#[test]
fn a_key_that_is_there_twice_is_refused_at_every_depth() {
    let desk = Desk::new();
    for tools in all_tools() {
        let text =
            desk.in_this_directory(&payload(tools.client, tools.shell, &json!({"command": "ls"})));
        let hook = ruled(tools.client, desk.root.path());
        assert_eq!(answered(&hook, text.as_bytes()).status(), 0);
        for (once, twice) in [
            (r#""command":"ls""#, r#""command":"ls","command":"rm x""#),
            (r#""command":"ls""#, r#""command":"rm x","comm\u0061nd":"ls""#),
            (r#""command":"ls""#, r#""command":"ls","more":{"a":1,"a":2}"#),
            (r#""cwd":"#, r#""cwd":"/etc","cwd":"#),
        ] {
            let twice = text.replace(once, twice);
            assert_ne!(twice, text);
            assert_denied(tools.client, &answered(&hook, twice.as_bytes()), "cannot be used");
        }
    }
}

/// Arguments of a type that the client does not document are not taken for the documented ones.
#[test]
fn a_terminal_is_asked_about_whatever_the_type_of_its_switch() {
    let desk = Desk::new();
    for tty in [json!(true), json!("true"), json!(1), json!({}), json!([])] {
        for tools in all_tools() {
            desk.does_not_run(tools.client, tools.shell, &json!({"command": "ls", "tty": tty}));
        }
    }
    for tty in [json!(false), json!(null)] {
        desk.runs(Client::Codex, "exec_command", &json!({"cmd": "ls", "tty": tty}));
    }
}

/// Codex applies a patch in the directory that the command has changed to.
#[test]
fn a_patch_behind_a_change_of_directory_is_asked_about() {
    let patch = "*** Begin Patch\n*** Add File: a\n+a\n*** End Patch\n";
    for (before, is_asked) in
        [("", false), ("cd /etc && ", true), ("pushd .. && ", true), ("$X; ", true)]
    {
        let command = format!("{before}apply_patch <<'EOF'\n{patch}EOF\n");
        let text = payload(Client::Codex, "Bash", &json!({"command": command}));
        let reply = answered(&super::allowing(Client::Codex), text.as_bytes());
        assert_eq!(reply.is_denial(), is_asked, "{command}");
    }
}

/// Claude Code writes the name of a server in the name of its tools with `_` for what is no letter, digit or dash.
#[test]
fn the_server_of_a_tool_is_known_whatever_its_name() {
    let translated = |server: &str, tool: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "tool_name": tool, "tool_input": {},
            "mcp_server": {"name": server},
        });
        Hook::new(Client::Claude).translate(payload.to_string().as_bytes()).unwrap().0
    };
    assert_eq!(
        translated("my docs.example", "mcp__my_docs_example__get"),
        "mcp:my docs.example/get"
    );
    assert_eq!(translated("docs", "mcp__docs__get__page"), "mcp:docs/get__page");
    for (server, tool) in
        [("docs", "mcp__other__get"), ("docs", "docs__get"), ("docs", "mcp__docs2__get")]
    {
        assert_eq!(
            translated(server, tool),
            tool,
            "the names do not agree, so that it is asked about"
        );
    }
}
