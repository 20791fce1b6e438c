//! The files of a client, and what they say about the hook that is installed.
//!
//! A client may never call an entry that is there: each client has a switch that turns hooks off, and Codex calls a
//! hook only after a person has trusted exactly this entry. We read what a client stores about that, and never write
//! it: only the user can give trust.

use std::fs;
use std::path::{Path, PathBuf};

use countersign::error::BoxError;
use countersign_shell::bounded_text;
use serde_json::{Map, Value, json};

use super::jsonc;

/// The error of an installation. The client's configuration is as it was.
#[derive(Debug, thiserror::Error)]
#[error("`{}`: {problem}", path.display())]
pub struct InstallError {
    path: PathBuf,
    problem: BoxError,
}

impl InstallError {
    pub(crate) fn new(path: &Path, problem: impl Into<BoxError>) -> Self {
        Self { path: path.to_owned(), problem: problem.into() }
    }

    /// The error with what to do about it.
    pub(crate) fn and(self, more: &str) -> Self {
        let problem = format!("{}: {more}", self.problem);
        Self { problem: problem.into(), ..self }
    }
}

impl From<InstallError> for std::io::Error {
    fn from(error: InstallError) -> Self {
        Self::other(error)
    }
}

impl From<std::io::Error> for InstallError {
    fn from(error: std::io::Error) -> Self {
        Self::new(Path::new(""), error)
    }
}

/// An entry of this program for one event.
pub(crate) struct HookEntry<'a> {
    /// The position of its group in the list of the event.
    pub(crate) group: usize,
    /// Its position in the group.
    pub(crate) hook: usize,
    pub(crate) matcher: Option<&'a str>,
    /// The group around it, in clients that have groups.
    pub(crate) around: Option<&'a Map<String, Value>>,
    pub(crate) value: &'a Value,
}

/// The trust of a client in the hook that is installed, as far as its own files say.
///
/// ```
/// use countersign_cli::hook::{Client, Installation, Trust};
///
/// # let home = tempfile::tempdir().unwrap();
/// let claude = Installation::of_user(Client::Claude, home.path());
/// claude.install()?;
/// assert_eq!(claude.trust(home.path(), home.path())?, Trust::Given);
/// // Codex calls no hook that a person has not trusted.
/// let codex = Installation::of_user(Client::Codex, home.path());
/// codex.install()?;
/// assert!(matches!(codex.trust(home.path(), home.path())?, Trust::Missing(_)));
/// # Ok::<(), countersign_cli::hook::InstallError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// Nothing in the client's files keeps it from calling the hook.
    Given,
    /// The client does not call the hook, for this reason, which says what to do.
    Missing(String),
}

impl Trust {
    pub(crate) fn missing(reason: impl Into<String>) -> Self {
        Self::Missing(reason.into())
    }
}

/// Returns whether one of these files has a switch that turns all hooks off.
pub(crate) fn switched_off(files: &[PathBuf], switch: &str) -> Result<Trust, InstallError> {
    for file in files {
        if json_of(file)?.pointer(switch) == Some(&json!(true)) {
            let name = switch.trim_start_matches('/');
            return Ok(Trust::missing(format!(
                "`{name}` in {} turns all hooks off",
                file.display()
            )));
        }
    }
    Ok(Trust::Given)
}

/// A JSON file that a client reads; nothing where there is none.
pub(crate) fn json_of(file: &Path) -> Result<Value, InstallError> {
    match read(file)? {
        // Clients allow comments in files that are not changed here.
        Some(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
        None => Ok(Value::Null),
    }
}

/// The largest file of settings that is read, in bytes: those of Claude Code hold a history, too.
const MAX_SETTINGS: u64 = 64 << 20;

/// The text of a file of settings; `None` where there is none. A repository may have put a link to a device or a pipe in its
/// place: that is an error, and we do not wait for its end.
pub(crate) fn settings_text(file: &Path) -> std::io::Result<Option<String>> {
    Ok(bounded_text(file, MAX_SETTINGS)?.map(without_mark))
}

/// The text without the byte order mark that some editors write in front of it, which is no part of any settings.
pub(crate) fn without_mark(text: String) -> String {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

pub(crate) fn read(file: &Path) -> Result<Option<String>, InstallError> {
    settings_text(file).map_err(|error| InstallError::new(file, error))
}

/// The files of a folder with one of these endings, in the order of their names.
pub(crate) fn listed(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let has = |path: &PathBuf| {
        path.extension().and_then(|it| it.to_str()).is_some_and(|it| endings.contains(&it))
    };
    let mut files: Vec<_> = entries.filter(has).collect();
    files.sort();
    files
}

/// The value of a text in TOML; `None` where it is none.
pub(crate) fn toml_value(text: &str) -> Option<Value> {
    serde_json::to_value(text.parse::<toml::Table>().ok()?).ok()
}

/// The value of a text in JSON, with comments or without; `None` where it is none. Most files have none, and may be large.
pub(crate) fn json_value(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().or_else(|| jsonc::parsed(text))
}

/// The entries of a table.
fn entries_of(table: &Value) -> Vec<(String, Value)> {
    let entries = table.as_object().into_iter().flatten();
    entries.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The folders in which clients look for settings of a project: this one, and those above it up to the project's root.
pub(crate) fn folders<'a>(directory: &'a Path, home: &Path) -> Vec<&'a Path> {
    let mut found = Vec::new();
    for folder in directory.ancestors().take_while(|folder| *folder != home) {
        found.push(folder);
        if folder.join(".git").exists() {
            break;
        }
    }
    found
}

/// The entries of tables, in the files of these paths that are there; `None` where one of them cannot be read. Each key is the
/// names on the way to a table, and `*` is every name.
pub(crate) fn entries_in(
    files: impl IntoIterator<Item = PathBuf>,
    keys: &[&[&str]],
) -> Option<Vec<(String, Value)>> {
    let mut found = Vec::new();
    for file in files {
        let Some(text) = settings_text(&file).ok()? else { continue };
        let value = match file.extension().is_some_and(|it| it == "toml") {
            true => toml_value(&text)?,
            false => json_value(&text)?,
        };
        found.extend(keys.iter().flat_map(|names| tables(&value, names)).flat_map(entries_of));
    }
    Some(found)
}

fn tables<'a>(value: &'a Value, names: &[&str]) -> Vec<&'a Value> {
    let Some((name, rest)) = names.split_first() else { return vec![value] };
    let below: Vec<_> = match *name {
        "*" => value.as_object().into_iter().flat_map(Map::values).collect(),
        name => value.get(name).into_iter().collect(),
    };
    below.into_iter().flat_map(|value| tables(value, rest)).collect()
}

/// The MCP servers in a file of a client, each with its definition; none where there is no such file, and `None` where it
/// cannot be read. Each key is the names on the way to a table of servers, and `*` is every name. Comments in JSON are skipped.
///
/// ```
/// use countersign_cli::hook::servers_in;
///
/// # let home = tempfile::tempdir().unwrap();
/// let file = home.path().join(".claude.json");
/// assert!(servers_in(&file, &[&["mcpServers"]]).unwrap().is_empty());
/// std::fs::write(&file, r#"{"projects": {"/src": {"mcpServers": {"git": {"command": "mcp-git"}}}}}"#)?;
/// let found = servers_in(&file, &[&["mcpServers"], &["projects", "*", "mcpServers"]]).unwrap();
/// assert_eq!(found[0].0, "git");
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn servers_in(file: &Path, keys: &[&[&str]]) -> Option<Vec<(String, Value)>> {
    entries_in([file.to_owned()], keys)
}
