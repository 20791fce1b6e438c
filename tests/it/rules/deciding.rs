//! How rules decide (rule R2): the strictest wins, and nothing that cannot be evaluated allows.

use countersign::decision::ToolDecision::{Allow, Ask, Deny};
use serde_json::json;

use super::{decide, rules, run};

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
