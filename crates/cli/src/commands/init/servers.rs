//! MCP servers in the configuration of clients that have no hooks, and the guard in front of them.
//!
//! A client starts a server by the words in its configuration. With a guard in front, it starts the guard, and the guard
//! starts the server by the same words. We change nothing else of the entry, so its environment stays as it was.

use std::path::{Path, PathBuf};

use countersign_cli::hook::editable_text;
use serde_json::{Map, Value, json};

use crate::mcp_clients;
use crate::used_store::quoted;

/// The configuration of an MCP client, with servers that the client starts.
pub(super) struct McpFile {
    pub(super) title: &'static str,
    pub(super) path: PathBuf,
    pub(super) key: &'static str,
    pub(super) text: String,
    /// The servers without a guard.
    pub(super) open: Vec<String>,
    /// The reason why the file cannot be changed without loss: it has comments, for example. Then no server is known.
    pub(super) closed: Option<&'static str>,
}

/// The files of this user that name servers.
pub(super) fn of_user(home: &Path) -> Vec<McpFile> {
    let files = mcp_clients::files(home).filter_map(|(title, path, key)| {
        let (text, closed) = match editable_text(&path) {
            Ok(text) => (text?, None),
            Err(_) => (key.to_owned(), Some("cannot be read as a text")),
        };
        let value = serde_json::from_str::<Value>(&text);
        let no_json = value.is_err().then_some("has comments, or is no JSON");
        let closed = closed.or(no_json);
        let value = value.unwrap_or_default();
        let servers = value.get(key).and_then(Value::as_object);
        let open =
            servers.into_iter().flatten().filter(|(_, it)| it.as_object().is_some_and(is_open));
        let open: Vec<_> = open.map(|(name, _)| name.clone()).collect();
        let is_one = !open.is_empty() || closed.is_some() && text.contains(key);
        is_one.then_some(McpFile { title, path, key, text, open, closed })
    });
    files.collect()
}

/// Returns `true` if a client starts the server itself, without a guard.
fn is_open(server: &Map<String, Value>) -> bool {
    server.get("command").is_some_and(Value::is_string) && behind(server).is_none()
}

/// The words behind a guard of this program.
fn behind(server: &Map<String, Value>) -> Option<Vec<Value>> {
    let program = Path::new(server.get("command")?.as_str()?).file_name()?.to_str()?;
    let args = server.get("args")?.as_array()?;
    let is_guard = program.starts_with("countersign") && args.first()? == "guard";
    let at = args.iter().position(|word| word == "--").filter(|_| is_guard)?;
    Some(args.get(at + 1..)?.to_vec())
}

/// The file with a guard in front of each server; `None` where there is none without one.
pub(super) fn guarded(file: &McpFile, program: &str, options: &[String]) -> Option<String> {
    let wait = mcp_clients::wait(file.title).map(|wait| wait.to_string());
    changed(&file.text, file.key, |name, server| {
        if !is_open(server) {
            return;
        }
        let own = server.get("command").cloned().unwrap_or_default();
        let args = server.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
        let front = ["guard", "--name", name].map(Value::from).into_iter();
        let wait = wait.iter().flat_map(|wait| ["--wait", wait]).map(Value::from);
        let front = front.chain(wait).chain(options.iter().map(|it| Value::from(it.as_str())));
        let words: Vec<_> = front.chain(["--".into(), own]).chain(args).collect();
        server.insert("command".to_owned(), json!(program));
        server.insert("args".to_owned(), Value::Array(words));
    })
}

/// For each server without a guard the command that shows its tools to a person, who accepts them.
pub(super) fn commands(file: &McpFile, options: &[String]) -> Vec<String> {
    let value = serde_json::from_str::<Value>(&file.text).unwrap_or_default();
    let servers = value.get(file.key).and_then(Value::as_object).into_iter().flatten();
    let command = |(name, server): (&String, &Value)| {
        let server = server.as_object().filter(|it| is_open(it))?;
        let own = server.get("command")?.as_str()?;
        let args = server.get("args").and_then(Value::as_array).into_iter().flatten();
        let words = ["guard", "init", "--name", name].into_iter();
        let words = words.chain(options.iter().map(String::as_str)).chain(["--", own]);
        let words = words.chain(args.filter_map(Value::as_str)).map(quoted);
        Some(format!("countersign {}", words.collect::<Vec<_>>().join(" ")))
    };
    servers.filter_map(command).collect()
}

/// The file without guards; `None` where there is none.
pub(super) fn unguarded(text: &str, key: &str) -> Option<String> {
    changed(text, key, |_, server| {
        let Some(words) = behind(server) else { return };
        let Some((command, args)) = words.split_first() else { return };
        server.insert("command".to_owned(), command.clone());
        match args {
            [] => drop(server.remove("args")),
            args => drop(server.insert("args".to_owned(), args.to_vec().into())),
        }
    })
}

fn changed(
    text: &str,
    key: &str,
    mut change: impl FnMut(&str, &mut Map<String, Value>),
) -> Option<String> {
    let before: Value = serde_json::from_str(text).ok()?;
    let mut after = before.clone();
    for (name, server) in after.get_mut(key)?.as_object_mut()? {
        if let Some(server) = server.as_object_mut() {
            change(name, server);
        }
    }
    let text = serde_json::to_string_pretty(&after).ok()? + "\n";
    (after != before).then_some(text)
}
