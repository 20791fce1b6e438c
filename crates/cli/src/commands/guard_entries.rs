//! The entries of a user's clients that start a guard.

use std::path::{Path, PathBuf};

use countersign_cli::hook::editable_text;
use serde_json::Value;

/// An entry of a client that starts a guard.
pub(crate) struct GuardEntry {
    /// The client, for people.
    pub(crate) title: &'static str,
    pub(crate) file: PathBuf,
    /// The name of the server.
    pub(crate) name: String,
    pub(crate) program: String,
}

/// The entries in these files of MCP clients and in those of coding agents, each file with its client and the key of its
/// servers.
pub(crate) fn entries(
    home: &Path,
    of_clients: impl Iterator<Item = (&'static str, PathBuf, &'static str)>,
) -> Vec<GuardEntry> {
    let of_agents = [
        ("Claude Code", home.join(".claude.json"), "mcpServers"),
        ("Codex CLI", home.join(".codex/config.toml"), "mcp_servers"),
        ("Gemini CLI", home.join(".gemini/settings.json"), "mcpServers"),
        ("GitHub Copilot CLI", home.join(".copilot/mcp-config.json"), "mcpServers"),
        ("Qwen Code", home.join(".qwen/settings.json"), "mcpServers"),
        ("opencode", home.join(".config/opencode/opencode.json"), "mcp"),
    ];
    let mut found = Vec::new();
    for (title, file, key) in of_clients.chain(of_agents) {
        let Ok(Some(text)) = editable_text(&file) else { continue };
        let value = match file.extension().is_some_and(|it| it == "toml") {
            true => text.parse::<toml::Table>().ok().and_then(|it| serde_json::to_value(it).ok()),
            false => serde_json::from_str::<Value>(&text).ok(),
        };
        let servers = value.as_ref().and_then(|it| it.get(key)?.as_object());
        for (name, server) in servers.into_iter().flatten() {
            if let Some(program) = guard_program(server) {
                found.push(GuardEntry { title, file: file.clone(), name: name.clone(), program });
            }
        }
    }
    found
}

/// The program of a server's entry, where that is a guard.
fn guard_program(server: &Value) -> Option<String> {
    let command = server.get("command")?;
    let words: Vec<&str> = match command {
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        command => {
            let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
            command.as_str().into_iter().chain(args.filter_map(Value::as_str)).collect()
        }
    };
    let (program, args) = words.split_first()?;
    let name = Path::new(program).file_name()?.to_str()?;
    (name.starts_with("countersign") && args.first() == Some(&"guard"))
        .then(|| (*program).to_owned())
}
