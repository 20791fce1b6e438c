//! A preset through the hook decides as it does by itself.

use std::time::Instant;

use countersign::ToolMiddlewareExt as _;
use countersign::decision::ToolDecision;
use countersign::ledger::{Ledger, MemoryStore};
use countersign_cli::hook::{Client, EditedFiles, Hook};
use countersign_rules::{RuleCall, Rules};
use countersign_shell::Preset;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::commands::rows;
use crate::support::one_row_of;

const ROOT: &str = "/home/user/project";

fn rules() -> Rules {
    rules_of(Preset::Developer)
}

fn rules_of(preset: Preset) -> Rules {
    let rules = Rules::builder().lexical().root(ROOT).home("/home/user");
    rules.preset(preset).load().unwrap()
}

/// The decision of the hook about a call of Claude Code.
fn decided(hook: &Hook, tool: &str, args: &Value) -> ToolDecision {
    let payload = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": ROOT, "tool_use_id": "c", "tool_name": tool,
        "tool_input": args,
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let payload = payload.to_string();
    let store = async { Ok(Ledger::new(MemoryStore::new())) };
    let reply = runtime.block_on(hook.answer(payload.as_bytes(), Instant::now(), store));
    match (reply.is_denial(), reply.stderr().contains("waits for approval")) {
        (false, _) => ToolDecision::Allow,
        (true, true) => ToolDecision::Ask,
        (true, false) => ToolDecision::Deny,
    }
}

/// The words of a section of the table of names that decide how a path is judged.
fn names(section: &str) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/shell/src/names.txt");
    let text = std::fs::read_to_string(path).unwrap();
    let after = text.split_once(&format!("[{section}]\n")).unwrap().1;
    let words = after.split("\n\n").next().unwrap().split_whitespace();
    words.map(str::to_owned).collect()
}

/// P6: "Each file that may hold secrets by its name is asked about by a client's own reader as by a command."
#[test]
fn a_file_that_may_hold_secrets_is_asked_about_whatever_reads_it() {
    let endings = names("secret endings");
    let files =
        names("secret files").into_iter().chain(endings.iter().map(|it| format!("prod{it}")));
    // Copies, and data that is called so.
    let others = [
        "npm.pem.bak",
        "server.key.old",
        ".netrc~",
        "terraform.tfstate.backup",
        "prod.tfstate",
        ".env-prod",
        ".env_local",
        ".dev.vars",
        "serviceAccountKey.json",
        "client_secret_1.json",
        "my-credentials.txt",
        "x-firebase-adminsdk-1.json",
        "service-account-key.json",
        "gcp.private_key.json",
        "apiKeys.yaml",
        "prod-secrets.yml",
        "passwords.txt",
        "new_user_credentials.csv",
        "wp-config.php.bak",
        ".envrc.local",
        "deploy_rsa",
        "AuthKey_1.p8",
        ".envs/.production/.django",
        ".m2/settings.xml",
        ".config/gh/hosts.yml",
    ];
    let files: Vec<_> = files.chain(others.map(str::to_owned)).collect();
    assert!(files.len() > 80, "{files:?}");
    for preset in [Preset::Developer, Preset::Reader] {
        let layer = rules_of(preset).into_layer();
        let hook = Hook::new(Client::Claude).layered(layer).unknown_by_name(true);
        for file in files.iter().step_by(one_row_of()) {
            for place in [format!("{ROOT}/{file}"), format!("{ROOT}/a/{file}")] {
                let read = json!({"file_path": place});
                assert_eq!(decided(&hook, "Read", &read), ToolDecision::Ask, "{preset:?} {place}");
                let cat = json!({"command": format!("cat {place}")});
                assert_eq!(decided(&hook, "Bash", &cat), ToolDecision::Ask, "{preset:?} {place}");
            }
        }
        for file in [".env.example", "secrets.py", "key.rs", "secretary.json", "tokenizer.json"] {
            let read = json!({"file_path": format!("{ROOT}/{file}")});
            assert_eq!(decided(&hook, "Read", &read), ToolDecision::Allow, "{preset:?} {file}");
            let cat = json!({"command": format!("cat {file}")});
            assert_eq!(decided(&hook, "Bash", &cat), ToolDecision::Allow, "{preset:?} {file}");
        }
        let search = |path: &str| json!({"path": path, "pattern": "KEY", "output_mode": "content"});
        let example = search(&format!("{ROOT}/.env.example"));
        assert_eq!(decided(&hook, "Grep", &example), ToolDecision::Allow, "{preset:?}");
        let own = search(&format!("{ROOT}/.env"));
        assert_eq!(decided(&hook, "Grep", &own), ToolDecision::Ask, "{preset:?}");
    }
}

/// P6: edits in the workspace run unasked "but for protected files and definitions of builds", which are those of the judge.
#[test]
fn each_definition_of_a_build_is_asked_about_where_edits_are_not() {
    let rules = Rules::builder().lexical().root(ROOT).home("/home/user");
    let text = "version = 2\npreset = 'developer'\nedits = 'workspace'\n";
    let rules = rules.text("rules.toml", text).load().unwrap();
    let hook = Hook::new(Client::Claude).layered(rules.into_layer());
    let write = |path: &str| {
        let args = json!({"file_path": format!("{ROOT}/{path}"), "content": "x"});
        decided(&hook, "Write", &args)
    };
    let endings = names("build definition endings").into_iter().map(|it| format!("a{it}"));
    for name in names("build definitions").into_iter().chain(endings) {
        assert_eq!(write(&format!("bin/{name}")), ToolDecision::Ask, "{name}");
    }
    for path in
        ["node_modules/typescript/bin/tsc", ".venv/lib/x.pth", "buildSrc/x.kts", "vendor/bin/x"]
    {
        assert_eq!(write(path), ToolDecision::Ask, "{path}");
    }
    for path in ["src/main.rs", "docs/a.md", "app/tasks.py", "lib/rails/x.rb", "package.md"] {
        assert_eq!(write(path), ToolDecision::Allow, "{path}");
    }
}

/// The programs and sub-commands of the table of programs, as a command begins with them.
fn beginnings() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/shell/src/programs");
    let mut found = std::collections::BTreeSet::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for header in text.lines().filter_map(|it| it.strip_prefix('[')?.strip_suffix(']')) {
            let mut all = vec![String::new()];
            for words in header.trim_start_matches('+').split(' ') {
                let longer = |one: &String| {
                    let one = one.clone();
                    words.split('|').map(move |word| format!("{one}{word} ")).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(longer).collect();
            }
            found.extend(all.into_iter().filter(|it| !it.contains(['@', '*', '\\'])));
        }
    }
    found.into_iter().collect()
}

/// R5: a command that says that it rewrites a protected file is asked about, whatever program of the table it is.
#[test]
fn no_program_of_the_table_rewrites_a_protected_file_unasked() {
    let (developer, reader) = (rules_of(Preset::Developer), rules_of(Preset::Reader));
    let allows = |rules: &Rules, command: &str| {
        let args = json!({"command": command, "workdir": ROOT});
        let call = RuleCall::named("shell", args.as_object().unwrap());
        rules.explain(&call).decision() == ToolDecision::Allow
    };
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for beginning in beginnings().into_iter().step_by(one_row_of()) {
        let rewrites = |word: &str| ["fmt", "format", "fix", "write"].contains(&word);
        let says_so = beginning.split(' ').any(rewrites);
        let forms: &[&str] =
            if says_so { &["", "--write ", "--fix "] } else { &["--write ", "--fix "] };
        for form in forms {
            let command = format!("{beginning}{form}.claude/settings.json");
            tried += 1;
            // A program that only reads takes these for texts, and three formatters print the text that they would write.
            let prints = ["biome format ", "rome format ", "raco fmt "].contains(&&*beginning);
            if !(prints && form.is_empty())
                && allows(&developer, &command)
                && !allows(&reader, &command)
            {
                wrong.push(command);
            }
        }
    }
    assert!(tried > 5_000 / one_row_of(), "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}: {wrong:#?}", wrong.len());
}

/// P6: "A preset decides in the hook as `rules explain --preset` says", over the whole corpus.
#[test]
fn a_preset_decides_about_every_command_of_the_corpus_as_it_explains() {
    let rules = rules();
    let hook = Hook::new(Client::Claude).layered(rules.clone().into_layer()).unknown_by_name(true);
    let names = ["", "_2", "_3", "_4"];
    let lists = names.iter().flat_map(|n| {
        let front = if n.is_empty() { vec!["dangerous", "everyday"] } else { Vec::new() };
        let own = ["own_dangerous", "own_everyday"].map(|name| format!("{name}{n}"));
        front.into_iter().map(str::to_owned).chain(own)
    });
    let mut others = Vec::new();
    for name in lists {
        let rows = rows(&name);
        let mut asked = 0;
        for (number, row) in rows.iter().enumerate() {
            let args = json!({"command": row.cmd, "workdir": ROOT});
            let explained = rules.explain(&RuleCall::named("shell", args.as_object().unwrap()));
            let explained = explained.decision();
            asked += usize::from(explained != ToolDecision::Allow);
            if number % one_row_of() == 0 {
                let found = decided(&hook, "Bash", &json!({"command": row.cmd}));
                if found != explained {
                    others.push(format!("{name} {}: {found}, explained {explained}", row.cmd));
                }
            }
        }
        let share = asked as f64 / rows.len() as f64;
        let most = if name == "everyday" { 0.15 } else { 0.20 };
        assert!(!name.contains("everyday") || share <= most, "{name}: {share:.3} are asked about");
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

/// The rules in the blocks of the page that people copy.
fn rules_of_the_page() -> Vec<String> {
    let page = format!("{}/../docs/guide/coding-agents.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(page).unwrap();
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with("version")).map(str::to_owned).collect()
}

/// Calls of Claude Code that a session of work has, and whether they run unasked with edits in the workspace.
const OF_A_SESSION: &[(&str, &str, bool)] = &[
    ("Bash", r#"{"command": "gh pr list"}"#, true),
    ("Bash", r#"{"command": "npm view left-pad"}"#, true),
    ("Bash", r#"{"command": "cargo test"}"#, true),
    ("Bash", r#"{"command": "git push"}"#, false),
    ("Glob", r#"{"pattern": "**/*.rs"}"#, true),
    ("Glob", r#"{"pattern": "CHANGELOG*"}"#, true),
    ("Glob", r#"{"pattern": "/etc/*"}"#, false),
    ("Glob", r#"{"pattern": "**/.env"}"#, false),
    ("Grep", r#"{"pattern": "TODO"}"#, true),
    ("Read", r#"{"file_path": "CLAUDE.md"}"#, true),
    ("Read", r#"{"file_path": "/home/user/.claude/skills/review/SKILL.md"}"#, true),
    ("Read", r#"{"file_path": "/home/user/.claude/.credentials.json"}"#, false),
    ("Write", r#"{"file_path": "docs/a.md", "content": "x"}"#, true),
    ("Edit", r#"{"file_path": "src/a.rs", "old_string": "a", "new_string": "b"}"#, true),
    ("Edit", r#"{"file_path": "CLAUDE.md", "old_string": "a", "new_string": "b"}"#, false),
    ("Edit", r#"{"file_path": "package.json", "old_string": "a", "new_string": "b"}"#, false),
    ("Write", r#"{"file_path": "../x", "content": "x"}"#, false),
    ("TodoWrite", r#"{"todos": [{"content": "edit CLAUDE.md", "status": "pending"}]}"#, true),
    ("TaskUpdate", r#"{"taskId": "1", "status": "completed"}"#, true),
    ("TaskOutput", r#"{"task_id": "b35", "block": true, "timeout": 30000}"#, true),
    ("AskUserQuestion", r#"{"questions": [{"question": "Which?"}]}"#, true),
    ("EnterPlanMode", r#"{}"#, true),
    ("ExitPlanMode", r#"{"plan": "x"}"#, false),
    (
        "Agent",
        r#"{"description": "a", "prompt": "b", "subagent_type": "Explore", "run_in_background": true}"#,
        true,
    ),
    ("Agent", r#"{"description": "a", "prompt": "b", "mode": "bypassPermissions"}"#, false),
    ("WebFetch", r#"{"url": "https://example.com", "prompt": "x"}"#, false),
    ("Skill", r#"{"skill": "x"}"#, false),
    ("mcp__planner__todo", r#"{"todos": []}"#, false),
];

/// P6: "The page that people copy, what `init` writes and the preset decide alike."
#[test]
fn the_page_that_people_copy_decides_as_the_preset_does() {
    let builder = || Rules::builder().lexical().root(ROOT).home("/home/user");
    let preset = builder().preset(Preset::Developer).edits_in_workspace().load().unwrap();
    let of_page = rules_of_the_page();
    assert_eq!(of_page.len(), 1, "one beginning");
    let copied = builder().text("rules.toml", of_page[0].clone()).load().unwrap();
    for rules in [preset, copied] {
        let hook = Hook::new(Client::Claude).layered(rules.into_layer()).unknown_by_name(true);
        for (tool, args, expected) in OF_A_SESSION {
            let args: Value = serde_json::from_str(args).unwrap();
            let found = decided(&hook, tool, &args);
            assert_eq!(found == ToolDecision::Allow, *expected, "{tool} {args}: {found}");
        }
    }
}

/// P6: "What only touches the session of a client is allowed by the table of its tools and never by a name alone."
#[test]
fn what_touches_the_session_alone_is_unasked_and_leaving_a_plan_is_not() {
    let rules = rules();
    let decide = |tool: &str| {
        let args = json!({});
        rules.decide(&RuleCall::named(tool, args.as_object().unwrap())).decision()
    };
    for tool in
        ["client:todo", "set:codex/todo", "set:claude/enter_plan", "set:copilot/shell_output"]
    {
        assert_eq!(decide(tool), ToolDecision::Allow, "{tool}");
    }
    for tool in [
        "todo",
        "set:mine/todo",
        "mcp:planner/todo",
        "mcp:claude/todo",
        "claude:todo",
        "client:plan",
        "client:shell",
    ] {
        assert_eq!(decide(tool), ToolDecision::Ask, "{tool}");
    }
    let text = |rule: &str| format!("version = 1\n[[rule]]\nid = 'x'\n{rule}\n");
    let load = |text: String| Rules::builder().lexical().text("mine.toml", text).load();
    let error = load(text("allow = 'client:todo'")).unwrap_err().to_string();
    assert!(error.contains("is of version 2"), "{error}");
    assert!(load(text("allow = 'client:*'")).is_err());
}

/// C1: "the sources of installed packages, are read", by a client's own tools as by a command.
#[test]
fn sources_of_packages_are_read_by_a_tool_as_by_a_command() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    std::fs::create_dir_all(&project).unwrap();
    let rules =
        Rules::builder().root(&project).home(home.path()).preset(Preset::Developer).load().unwrap();
    let decide = |tool: &str, args: Value| {
        rules.decide(&RuleCall::named(tool, args.as_object().unwrap())).decision()
    };
    let folders = [
        ".cargo/registry/src",
        ".cargo/git/checkouts",
        ".rustup/toolchains",
        "go/pkg/mod",
        ".m2/repository",
        ".pyenv/versions",
        ".nvm/versions",
        ".rbenv/versions",
        ".local/lib",
        ".bun/install/cache",
        ".pub-cache/hosted",
        ".local/share/uv/python",
        ".local/share/mise/installs",
    ];
    for (folder, name, expected) in folders
        .iter()
        .map(|folder| (*folder, "x-1.0.0/src/a.txt", ToolDecision::Allow))
        .chain(folders.iter().map(|folder| (*folder, "x-1.0.0/.env", ToolDecision::Ask)))
        .chain([(".cargo", "credentials.toml", ToolDecision::Ask)])
    {
        let path = home.path().join(folder).join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "a").unwrap();
        let path = path.to_str().unwrap();
        let command = format!("cat {path}");
        assert_eq!(decide("shell", json!({ "command": command })), expected, "{command}");
        assert_eq!(decide("read_file", json!({ "path": path })), expected, "{path}");
        let search = json!({ "path": path, "pattern": "a" });
        assert_eq!(decide("search_files", search), expected, "a search in {path}");
    }
}

/// R5: a plan of Claude Code is written with that client's own tools, as a person sees it before it is followed.
#[test]
fn a_plan_is_written_unasked_with_the_tools_of_its_client_only() {
    let home = tempfile::tempdir().unwrap();
    let project = home.path().join("project");
    let plans = home.path().join(".claude/plans");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(&plans).unwrap();
    std::fs::write(home.path().join(".claude/settings.json"), "{}").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../settings.json", plans.join("linked.md")).unwrap();
    let rules =
        Rules::builder().root(&project).home(home.path()).preset(Preset::Developer).load().unwrap();
    let decide = |tool: &str, path: &str| {
        let args = json!({"path": path, "content": "Run `.git/hooks/x`."});
        rules.decide(&RuleCall::named(tool, args.as_object().unwrap())).decision()
    };
    let at = |name: &str| home.path().join(".claude").join(name).to_str().unwrap().to_owned();
    for tool in ["set:claude/write_file", "set:claude/edit_file"] {
        assert_eq!(decide(tool, &at("plans/calm-river.md")), ToolDecision::Allow, "{tool}");
        for other in [
            "plans/x/y.md",
            "plans/x.json",
            "CLAUDE.md",
            "skills/x/SKILL.md",
            "plans/../settings.json",
            "plans/linked.md",
        ] {
            assert_eq!(decide(tool, &at(other)), ToolDecision::Ask, "{tool} {other}");
        }
        let own = project.join(".claude/plans/x.md");
        assert_eq!(decide(tool, own.to_str().unwrap()), ToolDecision::Ask, "{tool}");
    }
    for tool in ["write_file", "set:gemini/write_file", "mcp:claude/write_file", "set:claude/patch"]
    {
        assert_eq!(decide(tool, &at("plans/x.md")), ToolDecision::Ask, "{tool}");
    }
}

/// P6: "The start of another agent is allowed with fields that are known, for clients whose hooks see its calls."
#[test]
fn an_agent_is_started_with_known_fields_only() {
    let rules = rules();
    let decide = |client: &str, args: Value| {
        let tool = format!("set:{client}/spawn_agent");
        rules.decide(&RuleCall::named(&tool, args.as_object().unwrap())).decision()
    };
    let known =
        json!({"prompt": "look", "description": "x", "agent": "plugin:reviewer", "model": "haiku"});
    assert_eq!(decide("claude", known.clone()), ToolDecision::Allow);
    assert_eq!(decide("codex", json!({"prompt": "look", "agent": "worker"})), ToolDecision::Allow);
    for client in ["cursor", "vscode", "mine"] {
        assert_eq!(decide(client, known.clone()), ToolDecision::Ask, "{client}");
    }
    for (name, value) in [
        ("mode", json!("bypassPermissions")),
        ("isolation", json!("none")),
        ("permission_mode", json!("auto")),
        ("sandbox", json!(false)),
        ("run_in_background", json!({})),
        ("model", json!("a b")),
        ("cwd", json!("../x")),
    ] {
        let mut args = known.clone();
        args[name] = value;
        assert_eq!(decide("claude", args), ToolDecision::Ask, "{name}");
    }
}

/// P6: "Edits of the project's files run unasked only where a person has chosen that."
#[test]
fn edits_in_the_workspace_are_a_choice() {
    let load = |text: &str| {
        let text = format!("version = 2\npreset = 'developer'\n{text}");
        let rules = Rules::builder().lexical().root(ROOT).home("/home/user");
        rules.text("rules.toml", text).load().unwrap()
    };
    let decide = |rules: &Rules, tool: &str, args: &Value| {
        rules.decide(&RuleCall::named(tool, args.as_object().unwrap())).decision()
    };
    let edit = json!({"path": "src/a.rs", "old_string": "a", "new_string": "b"});
    assert_eq!(decide(&load(""), "edit_file", &edit), ToolDecision::Ask);
    assert_eq!(decide(&load("edits = 'ask'"), "edit_file", &edit), ToolDecision::Ask);
    let rules = load("edits = 'workspace'");
    assert_eq!(decide(&rules, "edit_file", &edit), ToolDecision::Allow);
    let patch = |paths: &[&str]| json!({"patch": "x", "paths": paths});
    assert_eq!(decide(&rules, "patch", &patch(&["src/a.rs", "docs/b.md"])), ToolDecision::Allow);
    for paths in [
        &["src/a.rs", "../b"][..],
        &["src/a.rs", "/etc/b"],
        &["src/a.rs", ".github/x.yml"],
        &["a", "Cargo.toml"],
    ] {
        assert_eq!(decide(&rules, "patch", &patch(paths)), ToolDecision::Ask, "{paths:?}");
    }
    for tool in ["mcp:files/edit_file", "delete_file"] {
        assert_eq!(decide(&rules, tool, &edit), ToolDecision::Ask, "{tool}");
    }
    let moved = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: ../a.rs\n@@\n-a\n+b\n*** End Patch\n";
    let hook = Hook::new(Client::Codex).layered(rules.into_layer()).unknown_by_name(true);
    assert_eq!(decided(&hook, "apply_patch", &json!({"command": moved})), ToolDecision::Ask);
    let stays = moved.replace("../a.rs", "src/b.rs");
    assert_eq!(decided(&hook, "apply_patch", &json!({"command": stays})), ToolDecision::Allow);
}

proptest! {
    /// P6: "A preset never allows a tool of an MCP server", whatever it is called and is given.
    #[test]
    fn a_preset_never_allows_a_tool_of_an_mcp_server(
        server in "[a-z]{1,8}",
        tool in prop_oneof![
            Just("shell".to_owned()), Just("bash".to_owned()), Just("read_file".to_owned()), Just("grep".to_owned()),
            Just("list_files".to_owned()), "[a-z_]{1,12}",
        ],
        args in prop_oneof![
            Just(json!({"command": "ls"})), Just(json!({"path": "src/a.rs"})), Just(json!({})),
        ],
    ) {
        prop_assume!(!tool.contains("__") && !tool.starts_with('_') && !tool.ends_with('_'));
        let hook = Hook::new(Client::Claude).layered(rules().into_layer()).unknown_by_name(true);
        let found = decided(&hook, &format!("mcp__{server}__{tool}"), &args);
        prop_assert_ne!(found, ToolDecision::Allow);
    }
}

/// P3: "With `--ask edits` the client asks about edits of the project's files": by the words of the tool, never by its look.
#[test]
fn only_an_edit_of_the_project_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("src")).unwrap();
    let files = EditedFiles::within(&root)
        .home(std::path::Path::new("/home/user"))
        .protect([root.join("kept")]);
    let is_edit = |tool: &str, args: Value| {
        let args: countersign::Args = serde_json::from_value(args).unwrap();
        files.has(tool, &args)
    };
    let inside = root.join("src/a.rs");
    assert!(is_edit("write_file", json!({"path": inside, "content": "/etc/passwd\n../x"})));
    assert!(is_edit("edit_file", json!({"path": inside, "old_string": "a", "new_string": "b"})));
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n-a\n+b\n*** End Patch\n";
    assert!(is_edit("patch", json!({"patch": patch, "paths": [inside]})));
    for (tool, path) in [
        ("write_file", root.join("kept/a")),
        ("write_file", root.join("../x")),
        ("write_file", root.join("src/../../x")),
        ("write_file", root.join("package.json")),
        ("edit_file", root.join(".git/config")),
        ("edit_file", root.join(".env")),
        ("edit_file", "/etc/passwd".into()),
        ("shell", inside.clone()),
        ("delete_file", inside.clone()),
        ("read_file", inside.clone()),
    ] {
        assert!(!is_edit(tool, json!({"path": path, "content": "x"})), "{tool} {}", path.display());
    }
    assert!(!is_edit("patch", json!({"patch": patch, "paths": [inside, "/etc/passwd"]})));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        assert!(!is_edit("write_file", json!({"path": root.join("link/x"), "content": "x"})));
    }
}
