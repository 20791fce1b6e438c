//! Rules decide (rule R2): the strictest wins, and nothing that cannot be evaluated allows.

use countersign::decision::ToolDecision::{Allow, Ask, Deny};
use serde_json::json;

use countersign_rules::{RuleCall, Rules};

use super::{args, decide, rules, run};

const FILE: &str = r#"
version = 1
[[rule]]
id = "look"
allow = ["read_file", "list_files", "mcp:docs/get_*"]
where.path = "within:."

[[rule]]
id = "shell-everyday"
allow = "shell"
where.command.is = ["read-only", "project-build"]
except.command = ["git log -p *secrets*"]

[[rule]]
id = "push"
ask = "shell"
where.command.runs = "git push"
except.command.runs = "git push --dry-run"
reason = "publishes to {remote}"
every_time = true

[[rule]]
id = "no-secrets"
deny = "*"
where.any_path = ["**/.env", "~/.ssh/**", "~/.aws/**"]
reason = "secrets stay out of reach; use .env.example"

[[rule]]
id = "refunds"
ask = "refund"
where.amount = "> 500"
at_most = { calls = 5, within = "1h", else = "deny" }

[test]
allow = ["shell: cargo test -p core 2>&1 | tail -20", "read_file: {path: src/lib.rs}"]
ask   = ["shell: git push origin main", "shell: timeout 9 git push", "refund: {amount: 501}"]
deny  = ["shell: cat .env", "read_file: {path: ../x/.env}", "shell: grep -r KEY ~/.aws"]
"#;

#[test]
fn the_strictest_rule_wins_and_no_match_is_asked_about() {
    let rules = rules(FILE);
    assert_eq!(decide(&rules, "read_file", json!({"path": "src/lib.rs"})), Allow);
    assert_eq!(decide(&rules, "read_file", json!({"path": "src/.env"})), Deny);
    assert_eq!(decide(&rules, "write_file", json!({"path": "src/lib.rs"})), Ask);
    assert_eq!(run(&rules, "ls && cat .env"), Deny);
    assert_eq!(run(&rules, "ls && git push"), Ask);
    assert_eq!(run(&rules, "ls && ls src"), Allow);
}

/// R2: `[` and `[[` are names of programs, and no pattern for the name of another one.
#[test]
fn a_test_in_brackets_is_no_program_of_an_unknown_name() {
    let rules = rules(FILE);
    for test in ["[ -d src ] && ls src", "[[ -d src ]] && ls", "if [ -f a ]; then cat a; fi"] {
        assert_eq!(run(&rules, test), Allow, "{test}");
    }
    assert_eq!(run(&rules, "[ -d src ] && git push"), Ask);
    assert_eq!(run(&rules, "[a-z]it push"), Ask);
}

#[test]
fn no_condition_that_cannot_be_evaluated_allows_or_silences_a_denial() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "small"
allow = "refund"
where.amount = "<= 50"
[[rule]]
id = "never"
deny = "refund"
where.customer = "blocked"
"#,
    );
    let decide = |value| decide(&rules, "refund", value);
    assert_eq!(decide(json!({"amount": 10, "customer": "ann"})), Allow);
    assert_eq!(decide(json!({"amount": 10})), Ask, "the denial cannot be ruled out");
    assert_eq!(decide(json!({"amount": 10, "customer": 7})), Ask);
    assert_eq!(decide(json!({"amount": "10", "customer": "ann"})), Ask);
    assert_eq!(decide(json!({"amount": null, "customer": "ann"})), Ask);
    assert_eq!(decide(json!({"amount": 10, "customer": "blocked"})), Deny);
    assert_eq!(
        decide(json!({"amount": 10, "customer": ["ann", "blocked"]})),
        Deny,
        "any of several"
    );
}

#[test]
fn a_pattern_without_a_source_allows_no_tool_of_a_server_and_denies_it() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "search"
allow = ["search", "mcp:docs/get_*"]
[[rule]]
id = "drop"
deny = "drop_table"
reason = "no"
"#,
    );
    let none = serde_json::Map::new();
    let call = |tool| RuleCall::new(tool, &none);
    assert_eq!(rules.decide(&call("search")).decision(), Allow);
    assert_eq!(rules.decide(&call("search").server("evil")).decision(), Ask);
    assert_eq!(rules.decide(&call("get_page").server("docs")).decision(), Allow);
    assert_eq!(rules.decide(&call("get_page").server("docs2")).decision(), Ask);
    // A tool whose name looks like a server's and a tool's is none.
    assert_eq!(rules.decide(&call("docs/get_page")).decision(), Ask);
    assert_eq!(rules.decide(&call("Drop_Table").server("db")).decision(), Deny);
}

/// R3: a rule that denies or asks means a known tool of a coding agent by the agent's own name for it, too. One that allows does
/// not, and a finding says so.
#[test]
fn a_denial_by_the_clients_own_name_is_about_the_tool() {
    let none = serde_json::Map::new();
    let decided_in = |version: u8, rule: &str, tool: &str, client: &str| {
        let reason = if rule.starts_with("deny") { "reason = 'no'\n" } else { "" };
        let text = format!("version = {version}\n[[rule]]\nid = 'r'\n{rule}\n{reason}");
        rules(&text).decide(&RuleCall::new(tool, &none).toolset(client)).decision()
    };
    for (name, tool) in [
        ("claude:Edit", "edit_file"),
        ("Edit", "edit_file"),
        ("claude:Bash", "shell"),
        ("Bash", "shell"),
        ("Read", "read_file"),
        ("claude:WebFetch", "fetch"),
        ("Bash*", "shell"),
        ("?ash", "shell"),
        ("bash", "shell"),
        ("set:claude/Edit", "edit_file"),
        ("set:c*/Mult*", "edit_file"),
        ("client:Bash", "shell"),
    ] {
        // Patterns for tools of any client came with the second version of the format.
        let decided = |rule: &str, tool: &str, client: &str| match name.starts_with("client:") {
            true => decided_in(2, rule, tool, client),
            false => decided_in(1, rule, tool, client),
        };
        assert_eq!(decided(&format!("deny = '{name}'"), tool, "claude"), Deny, "{name}");
        assert_ne!(decided(&format!("allow = '{name}'"), tool, "claude"), Allow, "{name}");
        // A tool of the host's own program, or of a server, is none of the agent's.
        assert_ne!(decided(&format!("deny = '{name}'"), tool, "mine"), Deny, "{name}");
    }
    let decided = |rule: &str, tool: &str, client: &str| decided_in(1, rule, tool, client);
    assert_eq!(decided("deny = 'run_shell_command'", "shell", "gemini"), Deny);
    assert_ne!(decided("deny = 'gemini:run_shell_command'", "shell", "claude"), Deny);
    assert_ne!(decided("deny = 'claude:Edit'", "read_file", "claude"), Deny);
}

/// P2: a tool of a coding agent that the table of its tools does not have is allowed by its literal name only.
#[test]
fn a_tool_of_a_client_that_is_not_known_is_allowed_by_its_literal_name_only() {
    let none = serde_json::Map::new();
    let skill = RuleCall::named("claude:Skill", &none);
    assert_eq!((skill.tool(), skill.to_string().as_str()), ("Skill", "claude:Skill"));
    let decided = |text: &str| rules(&format!("version = 1\n{text}")).decide(&skill).decision();
    let allows = |tool: &str| decided(&format!("[[rule]]\nid = 'r'\nallow = '{tool}'"));
    assert_eq!(allows("claude:Skill"), Allow);
    for other in [
        "*",
        "S*",
        "Skill",
        "set:*/*",
        "set:claude/Skill",
        "set:client*/*",
        "mcp:*/*",
        "claude:skill",
        "codex:Skill",
    ] {
        assert_eq!(allows(other), Ask, "{other}");
    }
    assert_eq!(decided("danger_default_allow = true"), Ask);
    // A rule that denies it need not be that exact.
    for tool in ["*", "skill", "set:claude/*", "claude:SKILL"] {
        assert_eq!(
            decided(&format!("[[rule]]\nid = 'r'\ndeny = '{tool}'\nreason = 'no'")),
            Deny,
            "{tool}"
        );
    }
    for (tool, why) in [
        ("claude:*", "literally"),
        ("claude:", "literally"),
        ("vim:Skill", "no coding agent that is known"),
    ] {
        let text = format!("version = 1\n[[rule]]\nid = 'r'\nallow = '{tool}'");
        let error = Rules::builder().lexical().text("r.toml", text).load().unwrap_err();
        let told = countersign::error::with_causes(&error);
        assert!(told.contains(why), "{tool}: {told}");
    }
}

#[test]
fn a_path_is_inside_both_as_written_and_as_resolved() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("project");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::write(folder.path().join("secret"), "x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path(), root.join("src/out")).unwrap();
    let text = "version = 1\n[[rule]]\nid = 'look'\nallow = 'read_file'\nwhere.path = 'within:.'";
    let rules = Rules::builder().root(&root).text("mine.toml", text).load().unwrap();
    let decide = |path: &str| decide(&rules, "read_file", json!({"path": path}));
    assert_eq!(decide("src/lib.rs"), Allow);
    assert_eq!(decide("src/../src/lib.rs"), Allow);
    assert_eq!(decide("../secret"), Ask);
    assert_eq!(decide(folder.path().join("secret").to_str().unwrap()), Ask);
    #[cfg(unix)]
    assert_eq!(decide("src/out/secret"), Ask);
}

#[test]
fn a_host_is_the_one_that_a_browser_would_connect_to() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "fetch"
allow = "fetch"
where.url.host = ["example.com", "*.docs.rs"]
[[rule]]
id = "metadata"
deny = "fetch"
where.url.host = "169.254.169.254"
reason = "no"
"#,
    );
    let decide = |url: &str| decide(&rules, "fetch", json!({"url": url}));
    assert_eq!(decide("https://example.com/a?b"), Allow);
    assert_eq!(decide("https://EXAMPLE.com./a"), Allow);
    assert_eq!(decide("https://a.docs.rs"), Allow);
    for url in [
        "https://example.com@evil.com/",
        "https://evil.com/#example.com",
        "https://example.com.evil.com",
        "https://docs.rs",
        "https://evildocs.rs",
        "https://example.com:8443/",
        "https://user@example.com/",
        "https://example.com\\@evil.com",
        "ftp://example.com/",
        "example.com",
        "",
    ] {
        assert_eq!(decide(url), Ask, "{url}");
    }
    assert_eq!(decide("http://2852039166/"), Deny, "the same address as a number");
    assert_eq!(decide("169.254.169.254/latest"), Deny);
}

#[test]
fn a_command_is_denied_behind_wrappers_and_before_a_refused_part() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "all"
allow = "shell"
[[rule]]
id = "push"
deny = "shell"
where.command.runs = "git push"
reason = "push by hand"
"#,
    );
    for command in [
        "git push",
        "ls; git push --force",
        "timeout 9 git push",
        "/usr/bin/git push",
        "GIT push",
        "git -C sub push",
        "git --no-pager -c a=b push origin",
        "X=1 git push",
        "sudo git push",
        "(git push)",
        "echo $(git push)",
        "git push; while true; do :; done",
    ] {
        assert_eq!(run(&rules, command), Deny, "{command}");
    }
    for command in ["git commit -m push", "git log", "echo git push"] {
        assert_eq!(run(&rules, command), Allow, "{command}");
    }
    for command in ["$GIT push", "git $SUB", "while true; do git push; done"] {
        assert_ne!(run(&rules, command), Allow, "{command}");
    }
}

#[test]
fn an_allowed_program_gets_no_redirection_assignment_or_other_program_with_it() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'make'\nallow = 'shell'\nwhere.command.runs = 'make check'",
    );
    assert_eq!(run(&rules, "make check"), Allow);
    assert_eq!(run(&rules, "cd sub && make check -j4 2>&1"), Allow);
    for command in [
        "make check > ~/.bashrc",
        "PATH=/tmp make check",
        "./make check",
        "MAKE check",
        "make check; rm -rf x",
        "make check $(rm x)",
        "make checkall",
        "sudo make check",
        "make check &",
    ] {
        assert_eq!(run(&rules, command), Ask, "{command}");
    }
}

#[test]
fn any_path_sees_every_string_and_every_operand() {
    let rules = rules(FILE);
    for value in [
        json!({"path": "x/.env"}),
        json!({"files": [{"name": "a"}, {"name": "./deep/.env"}]}),
        json!({"files": {".env": "A=1"}}),
        json!({"path": "%2Eenv"}),
        json!({"path": "%252Eenv"}),
        json!({"uri": "file:///home/user/project/.env"}),
        json!({"path": "/home/user/.ssh/id_ed25519"}),
        json!({"path": "~/.ssh"}),
        json!({"path": "../.ssh/config"}),
        json!({"path": ".ENV"}),
        json!({"path": "x\\.env"}),
    ] {
        assert_eq!(decide(&rules, "upload", value.clone()), Deny, "{value}");
    }
    for command in [
        "cat .env",
        "grep x --file=.env",
        "curl -d @.env x",
        "sort < .env",
        "cat $HOME/.ssh/id",
        "tar cf - ~/.aws",
        "for f in .env; do cat $f; done",
    ] {
        assert_eq!(run(&rules, command), Deny, "{command}");
    }
    assert_eq!(run(&rules, "cat .e*"), Ask, "a pattern may become the file");
    assert_eq!(decide(&rules, "upload", json!({"path": "env"})), Ask);
}

/// R1: an exception about paths is about those that its rule has found. What else a call says is none of them.
#[test]
fn an_exception_about_paths_is_about_those_that_its_rule_has_found() {
    let rules = rules(
        "version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n[[rule]]\nid = 'no'\ndeny = '*'\nwhere.any_path = '**/.env*'\n\
         except.any_path = '**/.env.example'\n",
    );
    for allowed in [
        json!({"path": ".env.example", "pattern": "KEY", "output_mode": "content"}),
        json!({"path": "src", "glob": ".env.example", "pattern": "KEY"}),
        json!({"path": "a/.env.example", "to": "src/x.txt"}),
        json!({"path": "src/x.txt"}),
    ] {
        assert_eq!(decide(&rules, "search", allowed.clone()), Allow, "{allowed}");
    }
    for denied in [
        json!({"path": ".env.example", "pattern": ".env"}),
        json!({"paths": [".env.example", "a/.env.local"]}),
        json!({"path": ".env", "to": ".env.example"}),
        json!({"path": ".env.example.env"}),
    ] {
        assert_ne!(decide(&rules, "search", denied.clone()), Allow, "{denied}");
    }
    assert_eq!(run(&rules, "cat .env.example src/x.txt"), Allow);
    assert_eq!(run(&rules, "cat .env.example .env"), Deny);
    assert_ne!(run(&rules, "cat .env.example .e*"), Allow);
}

#[test]
fn an_exception_carves_out_of_its_rule_only() {
    let rules = rules(FILE);
    assert_eq!(run(&rules, "git push --dry-run"), Ask, "no rule allows it");
    assert!(
        rules
            .explain(&RuleCall::new("shell", &args(json!({"command": "git push --dry-run"}))))
            .by()
            .iter()
            .all(|by| &*by.rule == "default")
    );
    assert_eq!(run(&rules, "git log -p"), Allow);
    assert_eq!(run(&rules, "git log -p -- secrets"), Ask);
}

#[test]
fn the_floor_asks_every_time() {
    let rules = rules("version = 1\n[[rule]]\nid = 'all'\nallow = '*'\n");
    for value in [
        json!({"path": ".git/hooks/pre-commit"}),
        json!({"path": "sub/.GIT/config"}),
        json!({"path": "countersign.toml"}),
        json!({"path": ".claude/settings.json"}),
        json!({"path": "bare/HEAD"}),
        json!({"path": "ci/JENKINSFILE"}),
        json!({"path": ".vscode%2Ftasks.json"}),
        json!({"edits": [{"file": ".cursor/mcp.json"}]}),
    ] {
        let given = args(value.clone());
        let ruling = rules.decide(&RuleCall::new("write_file", &given));
        assert_eq!(ruling.decision(), Ask, "{value}");
        assert!(ruling.is_every_time() && !ruling.is_grantable(), "{value}");
    }
    for command in [
        "echo x > .git/config",
        "git -C /tmp/x log",
        "cd /tmp && git status",
        "countersign asks approve 1",
        "countersign rules accept",
        "countersign rules accept --rules check",
        "countersign rules --json accept",
        "countersign rules import claude settings.json",
        "countersign rules",
        "/usr/local/bin/countersign rules accept",
        "cp a .git/hooks/b",
    ] {
        let given = args(json!({"command": command}));
        let ruling = rules.decide(&RuleCall::new("shell", &given));
        assert!(ruling.decision() == Ask && ruling.is_every_time(), "{command}: {ruling}");
    }
    for command in ["check", "explain", "lint", "replay j", "diff a b", "schema"] {
        assert_eq!(run(&rules, &format!("countersign rules {command}")), Allow, "{command}");
    }
    let elsewhere = args(json!({"command": "git status", "cwd": "/tmp/x"}));
    assert_eq!(rules.decide(&RuleCall::new("shell", &elsewhere)).decision(), Ask);
    assert_eq!(
        decide(&rules, "write_file", json!({"path": "src/lib.rs", "content": "see .git/config\n"})),
        Allow
    );
}

/// R8: a rule with `no_other_arguments` is silent about a call with an argument that its conditions do not name.
#[test]
fn a_rule_without_other_arguments_names_each_of_them() {
    let text = "version = 2\n[[rule]]\nid = 'a'\nallow = 'pay'\nno_other_arguments = true\nwhere.order.amount = '<= 50'\n\
                where.note = { exists = true }";
    let rules = rules(text);
    for (given, decision) in [
        (json!({"note": "any", "order": {"amount": 5}}), Allow),
        (json!({"note": {"any": [1]}, "order": {"amount": 5}}), Ask),
        (json!({"note": [1], "order": {"amount": 5}}), Ask),
        (json!({"note": 1, "order": {"amount": 5}, "admin": true}), Ask),
        (json!({"note": 1, "order": {"amount": 5, "admin": true}}), Ask),
        (json!({"note": 1, "order": {"amount": 5, "Amount": 500}}), Ask),
    ] {
        assert_eq!(decide(&rules, "pay", given.clone()), decision, "{given}");
    }
}

#[test]
fn a_reason_is_filled_in_inertly() {
    let rules = rules("version = 1\n[[rule]]\nid = 'a'\ndeny = 'x'\nreason = 'to {a}, {b}, {c}'");
    let given = args(json!({"a": "{b}", "b": "\u{202e}x\n", "c": "y".repeat(300)}));
    let text = rules.decide(&RuleCall::new("x", &given)).to_string();
    assert!(text.starts_with("deny: to {b}, "), "{text}");
    assert!(
        !text.contains('\u{202e}') && !text.contains('\n') && text.contains("100 more"),
        "{text}"
    );
}
