//! Settings of Claude Code and Codex as rules, by which the hook decides as these agents did, or more strictly (rule R7).

use serde_json::{Value, json};

use super::{assert_allowed, assert_denied};
use crate::program::{Ended, User, ended};

const SETTINGS: &str = r#"{
  "permissions": {
    "allow": [
      "Bash(npm run test:*)", "Bash(git *)", "Bash(git push:*)", "Bash(awk:*)", "Bash(make lint)",
      "Bash(ssh:*)", "Bash(frobnicate:*)", "Bash(rm:*)", "Bash",
      "Read(./src/**)", "Read(~/notes/**)", "Edit(docs/**)", "WebFetch(domain:docs.rs)", "WebSearch",
      "mcp__github__get_issue", "mcp__a__b__c", "Skill", "KillShell", "Agent(reviewer)", "Write(docs/**)"
    ],
    "ask": ["Bash(git tag *)", "Read(./src/private/**)"],
    "deny": [
      "Read(./.env)", "Read(~/.ssh/**)", "Edit(docs/law.md)", "WebFetch(domain:*.evil.com)",
      "Bash(curl *)", "Bash(git push * --force*)", "mcp__shop", "Agent(shopper)"
    ],
    "defaultMode": "acceptEdits"
  }
}"#;

/// A user whose rules were imported, and the directory of a session.
struct Desk {
    user: User,
    work: String,
    /// What was not carried over.
    left_out: String,
}

impl Desk {
    fn new(agent: &str, text: &str) -> Self {
        let user = User::new();
        let work = user.home().join("work");
        std::fs::create_dir_all(work.join("src/private")).unwrap();
        std::fs::create_dir_all(work.join("docs")).unwrap();
        std::fs::create_dir_all(work.join(".git")).unwrap();
        std::fs::write(user.home().join("settings"), text).unwrap();
        // Rules speak for the servers of the user.
        let servers = json!({"mcpServers": {"github": {"command": "mcp-github"}}});
        std::fs::write(user.home().join(".claude.json"), servers.to_string()).unwrap();
        let imported = user.run(&["rules", "import", agent, "settings"]);
        assert_eq!(imported.status, 0, "{imported:?}");
        user.configure("");
        let rules = user.home().join(".config/countersign/rules.toml");
        std::fs::write(&rules, &imported.out).unwrap();
        let work = work.display().to_string();
        Self { user, work, left_out: imported.err }
    }

    /// What the hook answers, which a question makes wait for as long as the limit says.
    fn calls(&self, client: &str, limit: &str, tool: &str, input: &Value) -> Ended {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": self.work, "tool_use_id": "c",
            "tool_name": tool, "tool_input": input,
        });
        let options = ["--root", self.work.as_str(), "--allow", "grant"];
        let child = self.user.start_hook(client, limit, &options, payload.to_string().as_bytes());
        ended(&child.wait_with_output().unwrap())
    }

    #[track_caller]
    fn allows(&self, tool: &str, input: &Value) {
        let ended = self.calls("claude", "20", tool, input);
        assert_allowed(&ended);
        assert!(ended.out.contains(r#""permissionDecision":"allow""#), "{tool} {input}: {ended:?}");
    }

    #[track_caller]
    fn asks(&self, tool: &str, input: &Value) {
        let ended = self.calls("claude", "0", tool, input);
        assert!(ended.err.contains("waits for approval"), "{tool} {input}: {ended:?}");
    }

    #[track_caller]
    fn denies(&self, tool: &str, input: &Value) {
        let ended = self.calls("claude", "20", tool, input);
        assert_denied("claude", &ended, "the settings of Claude Code say so");
    }
}

fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// R7: "Rules that are imported from Claude Code and Codex decide in the hook as they did there, or more strictly".
#[test]
fn settings_of_claude_code_decide_in_the_hook_what_they_decided_there() {
    let desk = Desk::new("claude", SETTINGS);
    let at = |path: &str| format!("{}/{path}", desk.work);
    let home = desk.user.home().display().to_string();

    desk.denies("Read", &json!({"file_path": at(".env")}));
    desk.denies("Read", &json!({"file_path": at("deep/.env")}));
    desk.denies("Grep", &json!({"pattern": "x", "path": at(".env")}));
    desk.denies("Bash", &bash("cat .env"));
    desk.denies("Read", &json!({"file_path": format!("{home}/.ssh/id_rsa")}));
    desk.denies(
        "Edit",
        &json!({"file_path": at("docs/law.md"), "old_string": "a", "new_string": "b"}),
    );
    desk.denies("Write", &json!({"file_path": at("docs/law.md"), "content": "b"}));
    desk.denies("Bash", &bash("sed -i s/a/b/ docs/law.md"));
    desk.denies("WebFetch", &json!({"url": "https://a.evil.com/x", "prompt": "p"}));
    desk.denies("Bash", &bash("ls && curl https://x.example"));
    desk.denies("Bash", &bash("git push origin --force"));
    desk.denies("Bash", &bash("ls; git push origin main --force-with-lease"));
    desk.denies("mcp__shop__buy", &json!({}));
    desk.denies("Task", &json!({"subagent_type": "shopper", "prompt": "buy"}));

    desk.allows("Read", &json!({"file_path": at("src/lib.rs")}));
    desk.allows("Grep", &json!({"pattern": "x", "path": at("src/lib.rs")}));
    // The search reads all that is below the folder, and so what `Read(./src/private/**)` denies.
    desk.asks("Grep", &json!({"pattern": "x", "path": at("src")}));
    desk.allows("Read", &json!({"file_path": format!("{home}/notes/a.md")}));
    desk.allows(
        "Edit",
        &json!({"file_path": at("docs/a.md"), "old_string": "a", "new_string": "b"}),
    );
    desk.allows("WebFetch", &json!({"url": "https://docs.rs/tower", "prompt": "p"}));
    desk.allows("WebSearch", &json!({"query": "tower"}));
    desk.allows("mcp__github__get_issue", &json!({"id": 1}));
    desk.allows("Agent", &json!({"subagent_type": "reviewer", "prompt": "read"}));
    for command in ["npm run test -- --watch", "git status", "make lint"] {
        desk.allows("Bash", &bash(command));
    }
    desk.allows("Bash", &bash("awk '{print $1}' src/lib.rs"));

    desk.asks("Read", &json!({"file_path": at("src/private/a")}));
    desk.asks("Read", &json!({"file_path": at("README.md")}));
    desk.asks(
        "Edit",
        &json!({"file_path": at("src/lib.rs"), "old_string": "a", "new_string": "b"}),
    );
    desk.asks("WebFetch", &json!({"url": "https://docs.rs.evil.example/", "prompt": "p"}));
    for command in [
        "git tag v1",
        "git push origin main",
        "awk 'BEGIN{system(\"id\")}'",
        "git -c core.pager='sh -c id' log",
        "make lint; id",
        "ssh host id",
        "npm run testing",
        "npm run test > docs/out",
    ] {
        desk.asks("Bash", &bash(command));
    }
}

/// R7: "what is not carried over is named with a reason", on stderr, and the rules are all of stdout.
#[test]
fn what_is_not_carried_over_is_named_with_a_reason() {
    let desk = Desk::new("claude", SETTINGS);
    for (rule, why) in [
        ("Bash(ssh:*)", "runs any program in its arguments"),
        ("Bash(frobnicate:*)", "`frobnicate` is not described"),
        ("Bash(rm:*)", "no form of `rm` is known to be harmless"),
        ("Bash(git push:*)", "to allow all of them, write `where.command.runs = \"git push\"`"),
        ("Bash", "allows every command"),
        ("mcp__a__b__c", "where the name of the server ends"),
        ("Skill", "hooks do not know"),
        ("KillShell", "is `stop_shell` in hooks, as `KillBash` is"),
        ("Write(docs/**)", "is never consulted"),
        ("defaultMode: \"acceptEdits\"", "is a mode of the agent"),
    ] {
        let line = format!("not carried over: {rule}: ");
        let found = desk.left_out.lines().find(|it| it.starts_with(&line));
        assert!(found.is_some_and(|it| it.contains(why)), "{rule}: {}", desk.left_out);
    }
    assert_eq!(desk.left_out.lines().count(), 10, "{}", desk.left_out);
    let checked = desk.user.run(&[
        "rules",
        "check",
        "--rules",
        ".config/countersign/rules.toml",
        "--root",
        "work",
    ]);
    let expected =
        |line: &&str| [": untested: ", ": builds: "].iter().any(|kind| line.contains(kind));
    let found: Vec<_> = checked.out.lines().skip(1).filter(|line| !expected(line)).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn rules_of_codex_decide_in_the_hook_what_they_decided_there() {
    let rules = r#"
prefix_rule(pattern = ["git", ["status", "push"]])
prefix_rule(pattern = ["cargo"])
prefix_rule(pattern = ["python3"])
prefix_rule(pattern = ["git", "tag"], decision = "prompt")
prefix_rule(pattern = ["git", "push", "--force"], decision = "forbidden", justification = "others work there")
network_rule(host = "example.com", protocol = "https", decision = "allow")
"#;
    let desk = Desk::new("codex", rules);
    assert!(desk.left_out.contains("python3") && desk.left_out.contains("network_rule"));
    let run = |command: &str, limit: &str| desk.calls("codex", limit, "Bash", &bash(command));
    for command in ["git status", "cargo test"] {
        let ended = run(command, "20");
        assert!(ended.status == 0 && !ended.out.contains("deny"), "{command}: {ended:?}");
    }
    for command in ["git tag v1", "git push origin main", "python3 x.py", "cargo publish", "ls"] {
        assert!(run(command, "0").err.contains("waits for approval"), "{command}");
    }
    assert_denied("codex", &run("git push --force", "20"), "others work there");
}

/// R3: a rule that allows a tool by some agent's name for it is found, as no door has a tool of that name.
#[test]
fn a_check_says_which_names_of_tools_no_door_has() {
    let user = User::new();
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = ['Read', 'fetch']\n\
                [[rule]]\nid = 'b'\nallow = ['Bash', 'shell']\nwhere.command.is = 'read-only'\n\
                [[rule]]\nid = 'c'\nask = ['refund', 'set:own/create', 'mcp:x/Read']\n\
                [test]\nask = 'refund: {}'\n";
    std::fs::write(user.home().join("mine.toml"), text).unwrap();
    std::fs::create_dir(user.home().join("work")).unwrap();
    let checked = user.run(&["rules", "check", "--rules", "mine.toml", "--root", "work"]);
    assert_eq!(checked.status, 1);
    let found: Vec<_> = checked.out.lines().filter(|line| line.contains(": renamed: ")).collect();
    let [found] = found.as_slice() else { panic!("{checked:?}") };
    assert!(
        found.starts_with("mine.toml:2: ")
            && found.contains("in the hook this tool is `read_file`")
    );
}
