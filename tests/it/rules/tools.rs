//! Lint, replay and imports (rule R7).

use countersign::ToolDefinition;
use countersign::decision::ToolDecision;
use countersign_rules::{
    DecisionJournal, JournalEntry, RuleCall, import_claude, import_codex, lint, replay,
};
use serde_json::json;

use super::{args, builder, rules, run};

#[test]
fn lint_finds_rules_that_do_nothing_or_too_much() {
    let rules = rules(
        r#"
version = 1
[[rule]]
id = "typo"
deny = "delet_file"
[[rule]]
id = "field"
ask = "send"
where.adress = "x"
[[rule]]
id = "shell"
allow = "shell"
[[rule]]
id = "beaten"
allow = "send"
[[rule]]
id = "beats"
deny = "send"
reason = "no"
[[rule]]
id = "cargo"
allow = "shell"
where.command.runs = "cargo"
[[rule]]
id = "build"
allow = "shell"
where.command.is = "project-build"
[[rule]]
id = "write"
allow = "write_file"
"#,
    );
    let object = |name: &str| json!({"type": "object", "properties": {name: {}}, "additionalProperties": false});
    let tools = [
        ToolDefinition::new("send", object("address")),
        ToolDefinition::new("shell", object("command")),
        ToolDefinition::new("write_file", object("path")),
    ];
    let found: Vec<(String, &str)> =
        lint(&rules, Some(&tools)).into_iter().map(|it| (it.rule, it.kind)).collect();
    for (rule, kind) in [
        ("typo", "dead"),
        ("typo", "no-reason"),
        ("field", "dead"),
        ("shell", "over-wide"),
        ("beaten", "shadowed"),
        ("cargo", "over-wide"),
        ("write", "builds"),
        ("", "untested"),
    ] {
        assert!(found.contains(&(rule.to_owned(), kind)), "{rule} {kind}: {found:?}");
    }
    // Where not all tools are known, a tool that does not exist is no finding.
    assert!(lint(&rules, None).iter().all(|it| it.kind != "dead"));
}

#[test]
fn a_replay_under_the_same_rules_changes_nothing_and_reports_widening() {
    let folder = tempfile::tempdir().unwrap();
    let journal = DecisionJournal::at(folder.path().join("journal"));
    let text = "version = 1\n[[rule]]\nid = 'a'\nallow = 'shell'\nwhere.command.is = 'read-only'";
    let old = rules(text);
    for command in ["ls", "git push", "cargo test"] {
        let given = args(json!({"command": command}));
        let call = RuleCall::new("shell", &given);
        journal.append(&old.journal_entry(&call, &old.decide(&call))).unwrap();
    }
    let (entries, unreadable) = journal.entries().unwrap();
    assert_eq!((entries.len(), unreadable), (3, 0));
    assert!(replay(&entries, &old).changes.is_empty());
    let wide = rules(&text.replace("'read-only'", "['read-only', 'project-build']"));
    let replayed = replay(&entries, &wide);
    assert!(replayed.widens() && replayed.changes.len() == 1);
    assert_eq!(replayed.changes[0].args["command"], "cargo test");
    let narrow = builder("version = 1").load().unwrap();
    assert!(!replay(&entries, &narrow).widens());
    // The pass after an approval is of the call that was asked about, unless its arguments were edited.
    let of_run = |mut entry: JournalEntry, approved| {
        (entry.run, entry.call) = ("run".into(), "c1".into());
        entry.of_approved(approved)
    };
    let (asked, edited) = (entries[2].clone(), entries[1].clone());
    let both = [of_run(asked.clone(), false), of_run(asked, true)];
    assert_eq!(replay(&both, &wide).calls, 1);
    let both = [both[0].clone(), of_run(edited, true)];
    assert_eq!(replay(&both, &wide).calls, 2);
    assert_eq!(journal.prune().unwrap(), 0);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(journal.keep_days(0).prune().unwrap(), 3);
}

#[test]
fn settings_of_claude_code_become_rules_that_are_no_milder() {
    let settings = json!({"permissions": {
        "allow": ["Bash(npm run test:*)", "Bash(make)", "Bash(python:*)", "Bash", "Read(src/**)", "Write(docs/**)", "mcp__github__get_issue", "WebFetch(domain:docs.rs)", "Bash(git * main)"],
        "ask": ["Bash(git push:*)"],
        "deny": ["Read(.env)", "Bash(command:rm)", "Bash(curl *)"],
    }});
    let imported = import_claude(&settings.to_string()).unwrap();
    let rules = rules(&imported.text);
    assert_eq!(run(&rules, "npm run test -- --watch"), ToolDecision::Allow);
    assert_eq!(run(&rules, "make"), ToolDecision::Allow);
    assert_eq!(run(&rules, "make install"), ToolDecision::Ask);
    assert_eq!(run(&rules, "python -c x"), ToolDecision::Ask);
    assert_eq!(run(&rules, "curl https://x.example"), ToolDecision::Deny);
    let dead: Vec<&str> =
        imported.left_out.iter().filter(|it| it.dead).map(|it| it.rule.as_str()).collect();
    assert_eq!(dead, ["Write(docs/**)", "Bash(command:rm)"]);
    let left_out: Vec<&str> = imported.left_out.iter().map(|it| it.rule.as_str()).collect();
    assert!(
        left_out.contains(&"Bash")
            && left_out.contains(&"Bash(python:*)")
            && left_out.contains(&"Bash(git * main)")
    );
    let given = args(json!({"path": "deep/.env"}));
    assert_eq!(rules.decide(&RuleCall::new("read_file", &given)).decision(), ToolDecision::Deny);
    assert_eq!(run(&rules, "cat deep/.env"), ToolDecision::Deny);
}

#[test]
fn rules_of_codex_become_rules_or_the_file_is_refused() {
    let text = r#"
# comment
prefix_rule(pattern = ["git", ["status", "diff"]])
prefix_rule(pattern = ["git", "push"], decision = "forbidden", justification = "no {x}", match = ["git push"], not_match = [["git", "pull"]])
prefix_rule(pattern = ["python"], decision = "allow")
network_rule(host = "example.com", protocol = "https", decision = "allow")
"#;
    let imported = import_codex(text).unwrap();
    let rules = rules(&imported.text);
    assert_eq!(run(&rules, "git status"), ToolDecision::Allow);
    assert_eq!(run(&rules, "git push"), ToolDecision::Deny);
    assert_eq!(imported.left_out.len(), 2);
    let error = import_codex("prefix_rule(pattern = [\"a\"])\nx = 1\n").unwrap_err();
    assert_eq!(error.problems()[0].line(), 2);
}
