//! Other hooks of a client that run before its tools.
//!
//! A client asks all of its hooks about a call, and each may put other arguments in its place, or answer for the client's own
//! questions. We see what another hook does after ours has allowed the call only when the call has ended
//! ([`unapproved`](crate::hook::asking::unapproved)). So a person has to know that there are others: those of the project
//! come with a repository.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Installation, entry};
use crate::hook::clients::files::settings_text;
use crate::hook::clients::spec::WrittenForm;

/// Another hook of a client, which is asked about tool calls, too.
///
/// ```
/// use countersign_cli::hook::{Client, Installation};
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
    /// The command that it runs, as the file says it.
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
    let form = &client.spec().others;
    for file in (form.toml)(&user, project) {
        in_toml(&file, form.events, &ours, &mut found);
    }
    let own_file = match client.spec().written {
        WrittenForm::Entries(_) => Some(installation.path.clone()),
        WrittenForm::Plugin(_) => None,
    };
    let user_folder = user.parent().unwrap_or(&user);
    for file in (form.json)(&user, project).into_iter().chain(own_file) {
        let is_of_user = file.starts_with(user_folder) || !file.starts_with(project);
        let events = if is_of_user { form.events } else { form.project_events };
        in_json(&file, events, &ours, &mut found);
    }
    let named = (form.named)(&user, project).into_iter();
    found.extend(named.map(|(file, runs)| OtherHook { file, runs }));
    let mut seen: Vec<OtherHook> = Vec::new();
    found.retain(|it| {
        let is_new = !seen.contains(it);
        seen.push(it.clone());
        is_new
    });
    found
}

/// The test for the hook that is installed.
type Ours<'a> = &'a dyn Fn(&Value) -> bool;

fn in_json(file: &Path, events: &[&str], ours: Ours<'_>, found: &mut Vec<OtherHook>) {
    let Ok(Some(text)) = settings_text(file) else { return };
    match serde_json::from_str::<Value>(&text) {
        Ok(settings) => hooks(file, events, &settings, ours, found),
        // Some clients read comments, which are no JSON. Letters of a name may be written as codes.
        Err(_) if text.contains("hooks") || text.contains("\\u") => {
            let runs = "(it cannot be read here, and may have hooks)".to_owned();
            found.push(OtherHook { file: file.to_owned(), runs });
        }
        Err(_) => {}
    }
}

fn in_toml(file: &Path, events: &[&str], ours: Ours<'_>, found: &mut Vec<OtherHook>) {
    let Ok(Some(text)) = settings_text(file) else { return };
    let settings = text.parse::<toml::Table>().ok().and_then(|it| serde_json::to_value(it).ok());
    if let Some(settings) = settings {
        hooks(file, events, &settings, ours, found);
    }
}

/// The hooks of settings but our own, in groups or alone.
fn hooks(
    file: &Path,
    events: &[&str],
    settings: &Value,
    ours: Ours<'_>,
    found: &mut Vec<OtherHook>,
) {
    for event in events {
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
