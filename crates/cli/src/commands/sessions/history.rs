//! The calls in the session files that coding agents write, where these lie.
//!
//! | agent | files | a call is |
//! |---|---|---|
//! | Claude Code | `~/.claude/projects/*/*.jsonl`, and those of its sub-agents below | a block `tool_use` of an answer |
//! | Codex CLI | `~/.codex/sessions/YEAR/MONTH/DAY/*.jsonl` | a `function_call`, `custom_tool_call` or `local_shell_call` |
//!
//! The files are the agents' own, and nothing promises their form: we pass over a line that we do not know. A session that
//! was resumed has its earlier calls in two files. We count each call once, by its id.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use countersign_cli::hook::Client;
use serde_json::{Map, Value, json};

/// The longest line that is read, in bytes.
const MAX_LINE: usize = 8 << 20;

/// The levels of folders below that of the sessions that are searched.
const MAX_DEPTH: usize = 5;

/// A call that an agent has made.
pub(super) struct PastCall {
    pub(super) client: Client,
    pub(super) session: String,
    /// The time when it was made, as the agent wrote it: RFC 3339.
    pub(super) at: String,
    /// The directory of the session.
    pub(super) root: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) tool: String,
    pub(super) args: Map<String, Value>,
    id: String,
}

impl PastCall {
    /// The payload that the agent would have given to its hook.
    pub(super) fn payload(&self) -> String {
        json!({
            "hook_event_name": "PreToolUse", "session_id": self.session, "cwd": self.directory,
            "permission_mode": "default", "tool_name": self.tool, "tool_input": self.args, "tool_use_id": self.id,
        })
        .to_string()
    }
}

/// The calls of all sessions since a time, each once, in the order of the files.
pub(super) fn calls(home: &Path, since: &str) -> Vec<PastCall> {
    let place = |variable: &str, folder: &str| {
        let named = std::env::var_os(variable).map(PathBuf::from).filter(|it| it.is_absolute());
        named.unwrap_or_else(|| home.join(folder))
    };
    let claude = files(&place("CLAUDE_CONFIG_DIR", ".claude").join("projects"));
    let codex = files(&place("CODEX_HOME", ".codex").join("sessions"));
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    let of_claude = claude.iter().flat_map(|file| of_file(file, ClaudeFile::default()));
    let of_codex = codex.iter().flat_map(|file| of_file(file, CodexFile::default()));
    for call in of_claude.chain(of_codex) {
        if call.at.as_str() >= since && known.insert((call.client.name(), call.id.clone())) {
            all.push(call);
        }
    }
    all
}

/// The session files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (path, kind) = (entry.path(), entry.file_type());
            match kind {
                Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => folders.push((path, depth + 1)),
                Ok(kind) if kind.is_file() && path.extension().is_some_and(|it| it == "jsonl") => {
                    found.push(path);
                }
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The form of the session files of one agent.
trait SessionFile {
    /// Adds the calls in one line.
    fn line(&mut self, line: &Value, found: &mut Vec<PastCall>);
}

fn of_file(file: &Path, mut form: impl SessionFile) -> Vec<PastCall> {
    let mut found = Vec::new();
    let Ok(file) = std::fs::File::open(file) else { return found };
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return found,
            Ok(_) if line.len() > MAX_LINE => {}
            Ok(_) => {
                if let Ok(value) = serde_json::from_slice::<Value>(&line) {
                    form.line(&value, &mut found);
                }
            }
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    value.get(name)?.as_str()
}

/// A file of Claude Code.
#[derive(Default)]
struct ClaudeFile {
    root: Option<PathBuf>,
}

impl SessionFile for ClaudeFile {
    fn line(&mut self, line: &Value, found: &mut Vec<PastCall>) {
        let Some(directory) = text(line, "cwd").map(PathBuf::from) else { return };
        let root = self.root.get_or_insert_with(|| directory.clone()).clone();
        let (Some(session), Some(at)) = (text(line, "sessionId"), text(line, "timestamp")) else {
            return;
        };
        let blocks = line.pointer("/message/content").and_then(Value::as_array);
        for block in blocks.into_iter().flatten() {
            let (Some("tool_use"), Some(tool), Some(id), Some(args)) = (
                text(block, "type"),
                text(block, "name"),
                text(block, "id"),
                block.get("input").and_then(Value::as_object),
            ) else {
                continue;
            };
            found.push(PastCall {
                client: Client::Claude,
                session: session.to_owned(),
                at: at.to_owned(),
                root: root.clone(),
                directory: directory.clone(),
                tool: tool.to_owned(),
                args: args.clone(),
                id: id.to_owned(),
            });
        }
    }
}

/// A file of Codex CLI.
#[derive(Default)]
struct CodexFile {
    session: String,
    root: Option<PathBuf>,
    directory: Option<PathBuf>,
}

impl SessionFile for CodexFile {
    fn line(&mut self, line: &Value, found: &mut Vec<PastCall>) {
        let Some(payload) = line.get("payload") else { return };
        match text(line, "type") {
            Some("session_meta") => {
                self.session = text(payload, "id").unwrap_or_default().to_owned();
                self.root = text(payload, "cwd").map(PathBuf::from);
            }
            Some("turn_context") => self.directory = text(payload, "cwd").map(PathBuf::from),
            Some("response_item") => found.extend(self.call(line, payload)),
            _ => {}
        }
    }
}

impl CodexFile {
    fn call(&self, line: &Value, payload: &Value) -> Option<PastCall> {
        let root = self.root.clone().or_else(|| self.directory.clone())?;
        let mut directory = self.directory.clone().unwrap_or_else(|| root.clone());
        let name = text(payload, "name").unwrap_or("shell");
        let args: Map<String, Value> = match text(payload, "type")? {
            "function_call" => serde_json::from_str(text(payload, "arguments")?).ok()?,
            "custom_tool_call" => command_of(payload.get("input")?.clone()),
            "local_shell_call" => payload.get("action")?.as_object()?.clone(),
            _ => return None,
        };
        let workdir =
            ["workdir", "working_directory"].iter().find_map(|it| args.get(*it)?.as_str());
        if let Some(workdir) = workdir {
            directory = directory.join(workdir);
        }
        let (tool, args) = match name {
            // Its hooks are not given what is typed into a command that runs, and searches are made elsewhere.
            "write_stdin" | "web_search" | "view_image" => return None,
            "shell" | "shell_command" | "exec_command" | "local_shell" => {
                let command = args.get("command").or_else(|| args.get("cmd"))?;
                ("Bash", command_of(command_text(command)?.into()))
            }
            name => (name, args),
        };
        Some(PastCall {
            client: Client::Codex,
            session: self.session.clone(),
            at: text(line, "timestamp")?.to_owned(),
            root,
            directory,
            tool: tool.to_owned(),
            args,
            id: text(payload, "call_id").or_else(|| text(payload, "id"))?.to_owned(),
        })
    }
}

/// The arguments of a tool that is given a text alone.
fn command_of(text: Value) -> Map<String, Value> {
    let mut args = Map::new();
    args.insert("command".to_owned(), text);
    args
}

/// The text of a command: the one that a shell is given, or words with quotes around them.
fn command_text(command: &Value) -> Option<String> {
    if let Some(text) = command.as_str() {
        return Some(text.to_owned());
    }
    let words: Vec<&str> = command.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [shell, "-lc" | "-c", text] if shell.ends_with("sh") => Some((*text).to_owned()),
        words => {
            let quoted = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''")));
            Some(quoted.collect::<Vec<_>>().join(" "))
        }
    }
}
