//! Other hooks of a client that run before its tools.
//!
//! A client asks all of its hooks about a call, and each may put other arguments in its place, or answer for the
//! client's own questions. What another one does after this one has allowed the call is seen only when the call has
//! ended ([`unapproved`](super::super::unapproved)). So a person has to know that there are others: those of the project
//! come with a repository.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::super::client::Client;
use super::{Installation, entry, plugin};

/// Another hook of a client, which is asked about tool calls, too.
///
/// ```
/// use countersign::hook::{Client, Installation};
///
/// # let home = tempfile::tempdir().unwrap();
/// let project = home.path().join("project");
/// std::fs::create_dir_all(project.join(".claude"))?;
/// let local = project.join(".claude/settings.local.json");
/// std::fs::write(&local, r#"{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "./rewrite"}]}]}}"#)?;
///
/// let others = Installation::of_user(Client::Claude, home.path()).other_hooks(home.path(), &project);
/// assert_eq!((others[0].file.as_path(), others[0].runs.as_str()), (local.as_path(), "./rewrite"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherHook {
    /// The file that the client reads it from.
    pub file: PathBuf,
    /// What it runs, as the file says it.
    pub runs: String,
}

/// The other hooks in the files of the user and of the project.
pub(super) fn of(installation: &Installation, home: &Path, project: &Path) -> Vec<OtherHook> {
    let client = installation.client;
    let user = Installation::of_environment(client, home).path;
    // A program of another place may have the name of this one.
    let own = installation.installed_program().ok().flatten();
    let ours = |hook: &Value| {
        let program = entry::words(hook).and_then(|words| words.into_iter().next());
        entry::is_ours(hook, client) && program.map(PathBuf::from) == own
    };
    let mut found = Vec::new();
    let files = match client {
        Client::Claude => vec![
            user,
            project.join(".claude/settings.json"),
            project.join(".claude/settings.local.json"),
        ],
        Client::Codex => {
            let configs = [user.with_file_name("config.toml"), project.join(".codex/config.toml")];
            configs.iter().for_each(|config| in_toml(client, config, &ours, &mut found));
            vec![user, project.join(".codex/hooks.json")]
        }
        Client::Gemini => vec![user, project.join(".gemini/settings.json")],
        Client::Copilot => {
            let folders = [user.parent().map(Path::to_owned), Some(project.join(".github/hooks"))];
            folders.into_iter().flatten().flat_map(|folder| listed(&folder, &["json"])).collect()
        }
        Client::Opencode => {
            plugins(&user, project, &mut found);
            Vec::new()
        }
    };
    let files = files.into_iter().chain([installation.path.clone()]);
    for file in files.filter(|_| client != Client::Opencode) {
        in_json(client, &file, &ours, &mut found);
    }
    let mut seen: Vec<OtherHook> = Vec::new();
    found.retain(|it| {
        let is_new = !seen.contains(it);
        seen.push(it.clone());
        is_new
    });
    found
}

/// Whether a hook is the one that is installed.
type Ours<'a> = &'a dyn Fn(&Value) -> bool;

/// The events by which a hook changes or answers a call before it runs.
fn events(client: Client) -> &'static [&'static str] {
    match client {
        Client::Claude | Client::Codex => &["PreToolUse", "PermissionRequest"],
        Client::Gemini => &["BeforeTool"],
        Client::Copilot => &["preToolUse", "PreToolUse", "permissionRequest", "PermissionRequest"],
        Client::Opencode => &[],
    }
}

fn in_json(client: Client, file: &Path, ours: Ours<'_>, found: &mut Vec<OtherHook>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    match serde_json::from_str::<Value>(&text) {
        Ok(settings) => hooks(client, file, &settings, ours, found),
        // Some clients read comments, which are no JSON.
        Err(_) if events(client).iter().any(|event| text.contains(event)) => {
            let runs = "(it cannot be read here, and names an event before tools)".to_owned();
            found.push(OtherHook { file: file.to_owned(), runs });
        }
        Err(_) => {}
    }
}

fn in_toml(client: Client, file: &Path, ours: Ours<'_>, found: &mut Vec<OtherHook>) {
    let Ok(text) = fs::read_to_string(file) else { return };
    let settings = text.parse::<toml::Table>().ok().and_then(|it| serde_json::to_value(it).ok());
    if let Some(settings) = settings {
        hooks(client, file, &settings, ours, found);
    }
}

/// The hooks of settings but our own, in groups or alone.
fn hooks(
    client: Client,
    file: &Path,
    settings: &Value,
    ours: Ours<'_>,
    found: &mut Vec<OtherHook>,
) {
    for event in events(client) {
        let groups = settings.pointer(&format!("/hooks/{event}")).and_then(Value::as_array);
        for group in groups.into_iter().flatten() {
            let alone = std::slice::from_ref(group);
            let hooks = group.get("hooks").and_then(Value::as_array).map_or(alone, Vec::as_slice);
            for hook in hooks.iter().filter(|hook| !ours(hook)) {
                let named = ["command", "bash", "url", "prompt", "type"];
                let runs = named.iter().find_map(|name| hook.get(name)?.as_str());
                let runs = runs.map_or_else(|| hook.to_string(), str::to_owned);
                found.push(OtherHook { file: file.to_owned(), runs });
            }
        }
    }
}

/// The plugins of opencode: files of two folders, and those that its settings name.
fn plugins(user: &Path, project: &Path, found: &mut Vec<OtherHook>) {
    let user = user.parent().and_then(Path::parent).map(Path::to_owned);
    let roots = user.into_iter().chain([project.join(".opencode")]);
    for root in roots {
        for folder in ["plugin", "plugins"] {
            for file in listed(&root.join(folder), &["js", "ts", "mjs", "mts"]) {
                let is_ours = fs::read_to_string(&file).is_ok_and(|text| plugin::is_ours(&text));
                if !is_ours {
                    found.push(OtherHook { file, runs: "a plugin".to_owned() });
                }
            }
        }
        settings_of_opencode(&root, found);
    }
    settings_of_opencode(project, found);
}

fn settings_of_opencode(folder: &Path, found: &mut Vec<OtherHook>) {
    for name in ["opencode.json", "opencode.jsonc"] {
        let file = folder.join(name);
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let add = |runs: String| OtherHook { file: file.clone(), runs };
        match serde_json::from_str::<Value>(&text) {
            Ok(settings) => {
                let named = settings.get("plugin").and_then(Value::as_array);
                found.extend(named.into_iter().flatten().map(|it| add(format!("the plugin {it}"))));
            }
            Err(_) if text.contains("\"plugin\"") => {
                found.push(add("(it cannot be read here, and names plugins)".to_owned()));
            }
            Err(_) => {}
        }
    }
}

/// The files of a folder with one of these endings, in the order of their names.
fn listed(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let has = |path: &PathBuf| {
        path.extension().and_then(|it| it.to_str()).is_some_and(|it| endings.contains(&it))
    };
    let mut files: Vec<_> = entries.filter(has).collect();
    files.sort();
    files
}
