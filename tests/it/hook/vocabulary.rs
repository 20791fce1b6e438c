//! One vocabulary for the tools of all clients.

use std::time::Instant;

use countersign::ToolMiddlewareExt as _;
use countersign::ledger::{AskState, Ledger, MemoryStore};
use countersign::show::Limits;
use countersign_cli::hook::{Client, Hook};
use countersign_rules::Rules;
use serde_json::{Value, json};

use crate::support::clients::{ToldCall, clients, forms};

use super::{allowing, answered, assert_denied, before, without_servers};

fn translated(client: Client, tool: &str, args: &Value) -> (String, Value) {
    let (tool, args) = Hook::new(client).translate(payload(client, tool, args).as_bytes()).unwrap();
    (tool, args.to_value())
}

pub(super) fn payload(client: Client, tool: &str, args: &Value) -> String {
    let forms = forms(client.name());
    let args = args.clone();
    let call = ToldCall { session: "s", directory: "/w", id: "c", tool, args };
    forms.payload(forms.text("before"), &call).to_string()
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
    for client in clients() {
        for tool in forms(client).texts("surfaces") {
            assert!(
                seen.contains(&(client.to_owned(), tool.to_owned())),
                "{client} {tool}: {seen:?}"
            );
        }
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

/// The hook of a client under this rule file.
fn ruled(client: Client, rules: &str) -> Hook {
    let text = format!("version = 1\n{rules}");
    let rules = Rules::builder().lexical().text("r.toml", text).load().unwrap();
    Hook::new(client).layered(rules.into_layer()).unknown_by_name(true)
}

/// P2: a rule that names a client's tool literally answers the doubt, unless the call may hold a command.
#[test]
fn a_tool_that_is_not_known_runs_where_a_rule_names_it_and_its_call_holds_no_command() {
    let run = |hook: &Hook, tool: &str, args: &Value| {
        answered(hook, payload(Client::Claude, tool, args).as_bytes())
    };
    let named = ruled(
        Client::Claude,
        "[[rule]]\nid = 'r'\nallow = ['claude:Skill', 'claude:Workflow']\n[[rule]]\nid = 'all'\nallow = '*'",
    );
    let skill = json!({"skill": "review", "args": "the last commit"});
    assert_eq!(run(&named, "Skill", &skill).status(), 0);
    for args in [
        json!({"script": "rm -r x"}),
        json!({"steps": [{"shellCommand": "rm -r x"}]}),
        json!({"args": ["-c", "rm -r x"]}),
        json!({"run_command": {"text": "rm -r x"}}),
    ] {
        assert_denied(Client::Claude, &run(&named, "Workflow", &args), "may hold a command");
    }
    for tool in ["CronCreate", "skill", "mcp__a__b__c"] {
        assert_denied(Client::Claude, &run(&named, tool, &json!({})), "waits for approval");
    }
    for rules in
        ["danger_default_allow = true", "[[rule]]\nid = 'all'\nallow = ['*', 'mcp:*/*', 'set:*/*']"]
    {
        let denied = run(&ruled(Client::Claude, rules), "Skill", &skill);
        assert_denied(Client::Claude, &denied, "no rule allows `claude:Skill` by its name");
    }
    // Layers that do not know tools by their names allow none.
    let hook = allowing(Client::Claude);
    assert_denied(Client::Claude, &run(&hook, "Skill", &skill), "is not known");
}

/// P2: "if no field of the call may hold a command", by its name in any form, also inside of a text.
#[test]
fn a_field_that_may_hold_a_command_is_found_by_its_name() {
    let hook = ruled(Client::Claude, "[[rule]]\nid = 'r'\nallow = 'claude:Skill'");
    let run = |args: &Value| answered(&hook, payload(Client::Claude, "Skill", args).as_bytes());
    for name in [
        "shellcommand",
        "SHELLCommand",
        "scripts",
        "cmds",
        "command1",
        "commandline",
        "cmdline",
        "sh",
        "SH",
        "zsh",
        "powershell",
        "execute",
        "executable",
        "eval",
        "js",
        "javaScript",
        "stdin",
        "entrypoint",
        "python3",
        "codes",
        "runs",
        "BASHScript",
        "cmd2",
        "sh2",
        "argv",
        "pre-run",
        "expression",
    ] {
        let denied = run(&json!({"skill": "x", name: "rm -rf /"}));
        assert_denied(Client::Claude, &denied, &format!("`{name}` may hold a command"));
    }
    for text in [
        r#"{"command":"rm"}"#,
        r#" [{"deep": {"cmd": "rm"}}]"#,
        r#"{"a": "{\"command\": \"rm\"}"}"#,
        r#""{\"command\": \"rm\"}""#,
        r#"{"\u0063ommand": "rm"}"#,
        // Not read as strict JSON, and perhaps by the tool.
        r#"{"command": "rm", "command": null}"#,
        "{command: 'rm'}",
        "{\"command\": \"rm\"} {}",
    ] {
        for args in [json!({"params": text}), json!({"args": text}), json!({"arguments": [text]})] {
            assert_denied(Client::Claude, &run(&args), "may hold a command");
        }
    }
    for args in [
        json!({"skill": "x", "description": "Runs the command `rm`", "args": "run the script"}),
        json!({"skill": "{\"to\": \"the last commit\"}", "arguments": "[draft] review"}),
        json!({"subscription": "daily", "run_in_background": true, "cmd": null}),
    ] {
        assert_eq!(run(&args).status(), 0, "{args}");
    }
}

/// P2: "A tool that the payload says is of an MCP server is never the client's own".
#[test]
fn a_servers_tool_is_never_the_clients_own() {
    for (client, tool, said) in [
        (Client::Claude, "Skill", json!({"mcp_server": {"name": "evil"}})),
        (Client::Claude, "Skill", json!({"mcp_server": {}})),
        (Client::Claude, "Skill", json!({"mcpServerName": "evil"})),
        (Client::Claude, "Bash", json!({"mcp_server": {}})),
        (Client::Qwen, "skill", json!({"mcp_server": {"name": "evil"}})),
        (Client::Gemini, "activate_skill", json!({"mcp_context": {"server_name": "evil"}})),
    ] {
        let name = client.name();
        let named = if tool == "Bash" { String::new() } else { format!("'{name}:{tool}', ") };
        let rules = format!("[[rule]]\nid = 'r'\nallow = [{named}'*']");
        let (hook, args) = (ruled(client, &rules), json!({"command": "ls"}));
        let args = if tool == "Bash" { args } else { json!({"skill": "x"}) };
        let mut payload: Value = serde_json::from_str(&payload(client, tool, &args)).unwrap();
        let own = answered(&hook, payload.to_string().as_bytes());
        assert_eq!(own.status(), 0, "{client} {tool}: {own:?}");
        payload.as_object_mut().unwrap().extend(said.as_object().unwrap().clone());
        let reply = answered(&hook, payload.to_string().as_bytes());
        assert_denied(client, &reply, "is of an MCP server, and not certainly of which one");
    }
}

/// P2: the tools that only read and are in today's clients have names in the common vocabulary.
#[test]
fn tools_that_only_read_are_known() {
    for (client, tool, name) in [
        (Client::Claude, "ListAgents", "list_agents"),
        (Client::Claude, "CronList", "list_schedules"),
        (Client::Codex, "list_mcp_resources", "list_resources"),
        (Client::Codex, "get_goal", "goal"),
        (Client::Gemini, "read_background_output", "shell_output"),
        (Client::Gemini, "update_topic", "topic"),
        (Client::Copilot, "read_agent", "list_agents"),
    ] {
        assert_eq!(translated(client, tool, &json!({})).0, name, "{client} {tool}");
    }
}

/// P2: the servers of the client's configuration say where the name of a tool is split.
#[test]
fn the_configuration_of_a_client_says_which_server_a_tool_is_of() {
    let of = |client: Client, servers: &[&str], tool: &str| {
        let servers = servers.iter().map(|it| (*it).to_owned()).collect();
        let hook = Hook::new(client).servers(Some(servers));
        hook.translate(payload(client, tool, &json!({})).as_bytes()).unwrap().0
    };
    let copilot = |tool: &str| of(Client::Copilot, &["docs", "github-mcp-server"], tool);
    assert_eq!(copilot("github-mcp-server-list_issues"), "mcp:github-mcp-server/list_issues");
    assert_eq!(copilot("docs-search"), "mcp:docs/search");
    let opencode = |tool: &str| of(Client::Opencode, &["git", "my docs", "a", "a_b"], tool);
    assert_eq!(opencode("git_git_status"), "mcp:git/git_status");
    assert_eq!(opencode("my_docs_get_page"), "mcp:my docs/get_page");
    // Two servers fit: each of them counts. None does: a tool of the client that is not known.
    assert_eq!(opencode("a_b_c"), "mcp:a/b_c");
    for tool in ["plan_exit", "git_", "git"] {
        assert_eq!(opencode(tool), tool);
    }
}

/// P2: a denial, and a question of a rule, counts for each way to split a name; an allowance where each server that may be
/// meant is the user's own, and allowed.
#[test]
fn a_name_that_can_be_split_in_several_ways_is_denied_by_each_and_allowed_by_all() {
    let allow = |tools: &str| format!("[[rule]]\nid = 'yes'\nallow = {tools}\n");
    let deny = "[[rule]]\nid = 'no'\ndeny = ['mcp:cloud/nc_delete', 'mcp:a_b/c', 'mcp:github-mcp-server/delete_repo']\n";
    let ask = "[[rule]]\nid = 'ask'\nask = ['mcp:cloud_nc/send', 'mcp:x__y/z']\nreason = 'a person looks'\n";
    let said = |client: Client, servers: &[&str], project: &[&str], rules: &str, tool: &str| {
        let owned = |all: &[&str]| all.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let hook = ruled(client, rules);
        let hook = match client {
            Client::Opencode | Client::Copilot => hook.servers(Some(owned(servers))),
            _ => hook,
        };
        let hook = hook.project_servers(owned(project));
        let reply = answered(&hook, payload(client, tool, &json!({"n": 1})).as_bytes());
        match reply.is_denial() {
            false => "allowed".to_owned(),
            true => reply.stderr().to_owned(),
        }
    };
    let open = |servers: &[&str], rules: &str, tool: &str| {
        said(Client::Opencode, servers, &[], rules, tool)
    };
    let all = allow("['mcp:*/*', 'mcp:cloud/*']");
    // "a denial counts", with and without a configuration, in each client with such names.
    let denied = [
        open(&[], deny, "cloud_nc_delete"),
        open(&["cloud"], &format!("{all}{deny}"), "cloud_nc_delete"),
        open(&["a"], &format!("{all}{deny}"), "a_b_c"),
        said(
            Client::Copilot,
            &["github"],
            &[],
            &format!("{all}{deny}"),
            "github-mcp-server-delete_repo",
        ),
        said(
            Client::Claude,
            &[],
            &[],
            &format!("{all}[[rule]]\nid = 'no'\ndeny = 'mcp:x__y/z'\n"),
            "mcp__x__y__z",
        ),
    ];
    let of_payload = "[[rule]]\nid = 'no'\ndeny = 'mcp:nc/delete_all'\n";
    let named = [Client::Gemini, Client::Vscode]
        .map(|client| said(client, &[], &[], &format!("{all}{of_payload}"), "mcp_nc_delete_all"));
    for said in denied.into_iter().chain(named) {
        assert!(!said.contains("waits") && said != "allowed", "{said}");
    }
    for said in [
        open(&["cloud"], &format!("{all}{ask}"), "cloud_nc_send"),
        said(Client::Claude, &[], &[], &format!("{all}{ask}"), "mcp__x__y__z"),
    ] {
        assert!(said.contains("a person looks"), "{said}");
    }
    // An allowance of the one server that is configured counts, whatever else the name may be split into.
    assert_eq!(open(&["cloud"], &allow("'mcp:cloud/nc_read'"), "cloud_nc_read"), "allowed");
    let of_copilot = allow("'mcp:github-mcp-server/get_issue'");
    let builtin = ["github-mcp-server"];
    assert_eq!(
        said(Client::Copilot, &builtin, &[], &of_copilot, "github-mcp-server-get_issue"),
        "allowed"
    );
    // Of two, both are allowed or none.
    let both = ["a", "a_b"];
    assert_eq!(open(&both, &allow("['mcp:a/b_c', 'mcp:a_b/c']"), "a_b_c"), "allowed");
    for one in ["'mcp:a/b_c'", "'mcp:a_b/c'"] {
        let said = open(&both, &allow(one), "a_b_c");
        assert!(said.contains("waits"), "{one}: {said}");
    }
    // No server, and one that the project configures.
    for said in [
        open(&[], &allow("'mcp:cloud/nc_read'"), "cloud_nc_read"),
        open(&["docs"], &allow("'mcp:cloud/nc_read'"), "cloud_nc_read"),
        said(
            Client::Opencode,
            &["cloud"],
            &["cloud"],
            &allow("'mcp:cloud/nc_read'"),
            "cloud_nc_read",
        ),
        said(Client::Opencode, &["cloud", "cloud_nc"], &["cloud_nc"], &all, "cloud_nc_read"),
        said(Client::Claude, &[], &[], &all, "mcp__x__y__z"),
    ] {
        assert!(said.contains("waits"), "{said}");
    }
    // The client's own tool is not one of a server.
    assert!(open(&["todo"], &allow("'mcp:apply/patch'"), "apply_patch").contains("waits"));
    assert!(open(&["a"], &all, &format!("a{}", "_b".repeat(40))).contains("too many ways"));
}

/// S12: "A title is a template of the host or of a rules file": also where the name only may be that of the rule's tool.
#[tokio::test]
async fn a_rule_words_a_call_that_may_be_of_its_tool() {
    let titled = |id: &str, tool: &str, title: &str| {
        format!("[[rule]]\nid = '{id}'\nask = 'mcp:{tool}'\ntitle = '{title}'\n")
    };
    let pay = titled("pay", "bank/pay", "{amount} EUR to {to}");
    let other = titled("other", "bank__a/pay", "something else");
    let same = titled("same", "bank__a/pay", "{amount} EUR to {to}");
    for (rules, tool, line) in [
        (pay.clone(), "mcp__bank__pay", "call `mcp__bank__pay`: `5` EUR to `ann` in `/src`"),
        // Of several tools that it may be, each with words of its own, none words it.
        (
            format!("{other}{}", titled("two", "bank/a__pay", "{amount}")),
            "mcp__bank__a__pay",
            "call `mcp__bank__a__pay(",
        ),
        (
            format!("{same}{}", titled("two", "bank/a__pay", "{amount} EUR to {to}")),
            "mcp__bank__a__pay",
            "call `mcp__bank__a__pay`: `5` EUR to `ann` in `/src`",
        ),
    ] {
        let hook = without_servers(&format!("version = 2\n{rules}"));
        let ledger = Ledger::new(MemoryStore::new());
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/src", "tool_use_id": "c",
            "tool_name": tool, "tool_input": {"amount": 5, "to": "ann"},
        });
        let store = std::future::ready(Ok(ledger.clone()));
        let reply = hook.answer(payload.to_string().as_bytes(), Instant::now(), store).await;
        assert!(reply.is_denial(), "{}", reply.stderr());
        let pending = ledger.list(Some(AskState::Pending), 10).await.unwrap().records.remove(0);
        let view = pending.view(0, Limits::default());
        let line = format!("Claude Code wants to {line}");
        assert!(view.title.starts_with(&line), "{}", view.title);
    }
}
