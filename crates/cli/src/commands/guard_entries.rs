//! The entries of a user's clients that start a guard, in every file in which a client finds its servers.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use countersign_cli::hook::{Client, servers_in};
use serde_json::Value;

use crate::mcp_clients;

/// An entry of a client that starts a guard.
pub(crate) struct GuardEntry {
    /// The client, for people.
    pub(crate) title: &'static str,
    pub(crate) file: PathBuf,
    /// The name of the server.
    pub(crate) name: String,
    pub(crate) program: String,
}

/// The files of a user's clients, as far as they concern guards.
#[derive(Default)]
pub(crate) struct GuardEntries {
    pub(crate) found: Vec<GuardEntry>,
    /// Files that cannot be read, and may have an entry.
    pub(crate) unread: Vec<PathBuf>,
}

/// Looks for the entries in the files of MCP clients and in those of coding agents.
pub(crate) fn entries(home: &Path) -> GuardEntries {
    let mut entries = GuardEntries::default();
    let mut seen = BTreeSet::new();
    let mut look = |title, file: PathBuf, keys: &[&[&str]]| {
        if seen.insert(file.clone()) {
            entries.look(title, &file, keys);
        }
    };
    for (title, file, key) in mcp_clients::files(home) {
        look(title, file, &[&[key]]);
    }
    for client in Client::ALL {
        for file in client.server_files(home) {
            look(client.title(), file, client.server_keys());
        }
    }
    entries
}

impl GuardEntries {
    fn look(&mut self, title: &'static str, file: &Path, keys: &[&[&str]]) {
        let Some(servers) = servers_in(file, keys) else {
            if may_name_guard(file) {
                self.unread.push(file.to_owned());
            }
            return;
        };
        let guards = servers.into_iter().filter_map(|(name, server)| {
            let program = guard_program(&server)?;
            Some(GuardEntry { title, file: file.to_owned(), name, program })
        });
        self.found.extend(guards);
    }
}

/// Returns `true` for a file that is no text, or a text with the name of this program.
fn may_name_guard(file: &Path) -> bool {
    match fs::metadata(file) {
        Ok(about) if about.is_dir() => false,
        Ok(about) if !about.is_file() => true,
        Ok(_) => fs::read_to_string(file).map_or(true, |text| text.contains("countersign")),
        Err(error) => {
            !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
    }
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
