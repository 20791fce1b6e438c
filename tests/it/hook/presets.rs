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

const ROOT: &str = "/home/user/project";

fn rules() -> Rules {
    let rules = Rules::builder().lexical().root(ROOT).home("/home/user");
    rules.preset(Preset::Developer).load().unwrap()
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
        for row in &rows {
            let args = json!({"command": row.cmd, "workdir": ROOT});
            let explained = rules.explain(&RuleCall::named("shell", args.as_object().unwrap()));
            let found = decided(&hook, "Bash", &json!({"command": row.cmd}));
            asked += usize::from(found != ToolDecision::Allow);
            if found != explained.decision() {
                let explained = explained.decision();
                others.push(format!("{name} {}: {found}, explained {explained}", row.cmd));
            }
        }
        let share = asked as f64 / rows.len() as f64;
        let most = if name == "everyday" { 0.15 } else { 0.20 };
        assert!(!name.contains("everyday") || share <= most, "{name}: {share:.3} are asked about");
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
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
