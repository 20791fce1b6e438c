//! MCP clients: the files of their servers, and the entries that start a guard in the place of a server.
//!
//! The page about the guard shows the same entries: a test compares it with what is printed here.

use std::path::{Path, PathBuf};

use serde_json::json;

/// A client whose configuration is known.
pub(crate) struct ClientEntry {
    pub(crate) name: &'static str,
    /// The file that the entry belongs in.
    pub(crate) file: &'static str,
    /// The number of seconds that a call may be held: less than the client's own limit.
    pub(crate) wait: u64,
    form: EntrySyntax,
    /// `true` if it may start servers in any directory: then its entry has to name the project.
    pub(crate) needs_project: bool,
}

enum EntrySyntax {
    McpServers,
    VsCode,
    Zed,
    Codex,
    Goose,
}

use EntrySyntax::{Codex, Goose, McpServers, VsCode, Zed};

const fn entry(
    name: &'static str,
    file: &'static str,
    wait: u64,
    form: EntrySyntax,
) -> ClientEntry {
    ClientEntry { name, file, wait, form, needs_project: false }
}

/// All clients, in the order of the page about the guard.
pub(crate) const ALL: [ClientEntry; 8] = [
    entry("Claude Code", ".mcp.json", 240, McpServers),
    ClientEntry {
        needs_project: true,
        ..entry("Claude Desktop", "claude_desktop_config.json", 45, McpServers)
    },
    entry("Cursor", "~/.cursor/mcp.json", 45, McpServers),
    entry("VS Code", ".vscode/mcp.json", 45, VsCode),
    entry("Zed", "settings.json", 45, Zed),
    entry("Windsurf", "~/.codeium/windsurf/mcp_config.json", 45, McpServers),
    entry("Codex", "~/.codex/config.toml", 240, Codex),
    entry("goose", "~/.config/goose/config.yaml", 240, Goose),
];

/// The number of seconds that a call may be held in the client of this name.
pub(crate) fn wait(client: &str) -> Option<u64> {
    ALL.iter().find(|it| it.name == client).map(|it| it.wait)
}

impl ClientEntry {
    /// The entry for the server of this name, that is started by this program with these words.
    pub(crate) fn text(&self, name: &str, program: &str, words: &[String]) -> String {
        let (name, program) = (json!(name).to_string(), json!(program).to_string());
        let words = words.iter().map(|word| json!(word).to_string()).collect::<Vec<_>>();
        let words = format!("[{}]", words.join(", "));
        let command = format!("\"command\": {program}, \"args\": {words}");
        match self.form {
            McpServers => format!("{{\"mcpServers\": {{{name}: {{{command}}}}}}}"),
            VsCode => format!("{{\"servers\": {{{name}: {{\"type\": \"stdio\", {command}}}}}}}"),
            Zed => format!(
                "{{\"context_servers\": {{{name}: {{\"source\": \"custom\", {command}, \"env\": {{}}}}}}}}"
            ),
            // Strings and lists of JSON are ones of TOML and YAML.
            Codex => format!(
                "[mcp_servers.{name}]\ncommand = {program}\nargs = {words}\ntool_timeout_sec = 300"
            ),
            Goose => format!(
                "extensions:\n  {name}:\n    type: stdio\n    enabled: true\n    name: {name}\n    cmd: {program}\n    \
                 args: {words}\n    timeout: 300"
            ),
        }
    }
}

/// A client whose servers `init` puts behind a guard: its name for people, where its file of servers is below the home
/// directory on Linux and on macOS, and the key of the servers.
struct McpClient(&'static str, &'static str, &'static str, &'static str);

const CLIENTS: &[McpClient] = &[
    McpClient(
        "Claude Desktop",
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
    McpClient("Cursor", ".cursor/mcp.json", ".cursor/mcp.json", "mcpServers"),
    McpClient(
        "VS Code",
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
        "servers",
    ),
    McpClient(
        "Windsurf",
        ".codeium/windsurf/mcp_config.json",
        ".codeium/windsurf/mcp_config.json",
        "mcpServers",
    ),
    McpClient("Zed", ".config/zed/settings.json", ".config/zed/settings.json", "context_servers"),
];

/// The file of servers of each client: its name, the path, and the key of the servers.
pub(crate) fn files(
    home: &Path,
) -> impl Iterator<Item = (&'static str, PathBuf, &'static str)> + '_ {
    CLIENTS.iter().map(move |McpClient(title, linux, mac, key)| {
        (*title, home.join(if cfg!(target_os = "macos") { mac } else { linux }), *key)
    })
}
