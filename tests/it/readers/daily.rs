//! Daily work: calls that run without a question, and have to go on doing so.

use std::rc::Rc;

use countersign_cli::hook::Client;
use serde::Deserialize;
use serde_json::Value;

use super::desk::Desk;
use super::{Door, Policy};

/// A row of `tests/readers/daily.jsonl`. `{root}` in it is the project.
#[derive(Deserialize)]
struct Daily {
    door: String,
    rules: String,
    tool: String,
    args: Value,
}

/// The rules of the guide, with those that people write for files.
const GUIDE: &str = r#"
version = 1
[[rule]]
id = "everyday"
allow = "shell"
where.command.is = ["read-only", "project-build"]
[[rule]]
id = "reads"
allow = ["read_file", "list_files", "search_files", "find_files"]
where.path.within = "."
[[rule]]
id = "writes"
allow = ["write_file", "edit_file", "create_file", "patch"]
where.any_path.within = "."
[[rule]]
id = "secrets"
deny = "*"
where.any_path = ["**/.env", "~/.ssh/**"]
reason = "secrets stay out of reach; use .env.example"
"#;

/// Files by the field of their path, and tools of this program and of servers by their names.
const TOOLS: &str = r#"
version = 1
[[rule]]
id = "writes"
allow = ["write_file", "edit_file", "create_file", "mcp:fs/*", "read_file"]
where.path.within = "."
[[rule]]
id = "servers"
allow = ["mcp:git/*", "mcp:github/*", "mcp:slack/*", "mcp:notion/*", "mcp:tickets/*", "mcp:mail/*", "mcp:db/*", "mcp:web/*"]
[[rule]]
id = "own"
allow = ["web_search", "spawn_agent", "todo", "ask_user", "note", "commit", "calendar", "fetch"]
[[rule]]
id = "secrets"
deny = "*"
where.any_path = ["**/.env", "~/.ssh/**", "**/secrets/**"]
[[rule]]
id = "hosts"
deny = ["fetch", "mcp:web/*"]
where.url.host = ["evil.com", "*.evil.com", "169.254.169.254"]
"#;

/// Documents, and pages of some hosts.
const PLACES: &str = r#"
version = 1
[[rule]]
id = "docs"
allow = ["read_doc", "mcp:docs/*"]
where.path.path = ["docs/**", "src/**", "*.md"]
[[rule]]
id = "pages"
allow = ["fetch", "mcp:web/*"]
where.url.host = ["github.com", "*.github.com", "docs.rs", "developer.mozilla.org", "localhost", "127.0.0.1"]
"#;

fn door(name: &str) -> Door {
    match name {
        "library" => Door::Library,
        "guard" => Door::Guard,
        client => Door::Hook(client.parse::<Client>().unwrap()),
    }
}

fn policy(name: &str) -> Policy {
    match name {
        "developer" => Policy::Developer,
        "reader" => Policy::Reader,
        "guide" => Policy::Text(GUIDE),
        "tools" => Policy::Text(TOOLS),
        "places" => Policy::Text(PLACES),
        other => panic!("{other} are no rules"),
    }
}

/// What a person does not have to be asked about, is not asked about.
#[test]
fn daily_work_is_not_asked_about() {
    let desk = Rc::new(Desk::new());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/readers/daily.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("{root}", &desk.root.display().to_string());
    let mut asked = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for line in text.lines() {
        let row: Daily =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(seen.insert(line), "twice: {line}");
        if !desk.allows(door(&row.door), policy(&row.rules), &row.tool, &row.args) {
            asked.push(line);
        }
    }
    assert!(seen.len() >= 300, "{}", seen.len());
    assert!(
        asked.is_empty(),
        "{} of {} are asked about\n{}",
        asked.len(),
        seen.len(),
        asked.join("\n")
    );
}
