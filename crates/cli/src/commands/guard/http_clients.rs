//! The configuration of each client that reaches a guard over HTTP.
//!
//! No configuration has the secret itself: a terminal keeps what it has shown, and a configuration file is soon
//! in a repository. Clients read the secret from a variable of their environment, or ask for it once.

use serde_json::{Value, json};

use crate::used_store::quoted;

/// The variable that clients read the secret from.
const VARIABLE: &str = "COUNTERSIGN_GUARD_TOKEN";

/// The lines for the guard of this name at this URL, whose secret is in this file.
pub(super) fn lines(name: &str, url: &str, file: &str) -> String {
    let bearer = |secret: &str| json!({"Authorization": format!("Bearer {secret}")});
    let server = |parts: Value| {
        let mut servers = serde_json::Map::new();
        servers.insert(name.to_owned(), parts);
        Value::Object(servers)
    };
    let claude =
        json!({"type": "http", "url": url, "headers": bearer(&format!("${{{VARIABLE}}}"))});
    let cursor = json!({"url": url, "headers": bearer(&format!("${{env:{VARIABLE}}}"))});
    let code = json!({"type": "http", "url": url, "headers": bearer("${input:countersign}")});
    let input = json!({"id": "countersign", "type": "promptString", "description": format!("The text in {file}"), "password": true});
    let code = json!({"servers": server(code), "inputs": [input]});
    let codex = format!(
        "mcp_servers.{} = {{ url = {}, bearer_token_env_var = \"{VARIABLE}\" }}",
        json!(name),
        json!(url)
    );
    let export = format!("export {VARIABLE}=\"$(cat {})\"", quoted(file));
    let parts: [(&str, String); 6] = [
        ("In the environment of the client", export),
        (
            "Claude Code (~/.claude.json, .mcp.json)",
            json!({"mcpServers": server(claude)}).to_string(),
        ),
        ("Cursor (~/.cursor/mcp.json)", json!({"mcpServers": server(cursor)}).to_string()),
        ("VS Code (mcp.json; it asks for the secret once)", code.to_string()),
        ("Codex (~/.codex/config.toml)", codex),
        ("Others", format!("the header `Authorization: Bearer`, with the text in {file}")),
    ];
    parts.iter().map(|(client, line)| format!("{client}:\n  {line}\n")).collect()
}
