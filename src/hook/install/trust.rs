//! Whether a client calls the hook that is installed, as far as its own files say.
//!
//! An entry that is there may still never be called: each client has a switch that turns hooks off, and Codex calls a
//! hook only after a person has trusted exactly this entry. What a client stores about that is read here and never
//! written: trust is the user's to give.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::client::Client;
use super::entry::{self, HookEntry};
use super::{InstallError, Installation};

/// Whether a client calls the hook that is installed, as far as its own files say.
///
/// ```
/// use countersign::hook::{Client, Installation, Trust};
///
/// # let home = tempfile::tempdir().unwrap();
/// let claude = Installation::of_user(Client::Claude, home.path());
/// claude.install()?;
/// assert_eq!(claude.trust(home.path(), home.path())?, Trust::Given);
/// // Codex calls no hook that a person has not trusted.
/// let codex = Installation::of_user(Client::Codex, home.path());
/// codex.install()?;
/// assert!(matches!(codex.trust(home.path(), home.path())?, Trust::Missing(_)));
/// # Ok::<(), countersign::hook::InstallError>(())
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
    fn missing(reason: impl Into<String>) -> Self {
        Self::Missing(reason.into())
    }
}

/// What the files say about an installation with this entry.
pub(super) fn of(
    installation: &Installation,
    settings: &Value,
    home: &Path,
    directory: &Path,
) -> Result<Trust, InstallError> {
    let client = installation.client;
    let user = Installation::of_environment(client, home).path;
    if installation.is_managed {
        // Only the file itself can switch it off, and it needs no trust.
        return match client {
            Client::Gemini => gemini(std::slice::from_ref(&installation.path)),
            _ => switched_off(std::slice::from_ref(&installation.path), "/disableAllHooks"),
        };
    }
    match client {
        Client::Claude => {
            let project = directory.join(".claude");
            let files = [user, project.join("settings.json"), project.join("settings.local.json")];
            switched_off(&files, "/disableAllHooks")
        }
        Client::Codex => match entry::find(settings, client) {
            Some(entry) => codex(installation, &entry, &user.with_file_name("config.toml")),
            None => Ok(Trust::missing("there is no entry")),
        },
        Client::Gemini => gemini(&[installation.path.clone(), user]),
        // Its other files have no such switch.
        Client::Copilot => {
            switched_off(std::slice::from_ref(&installation.path), "/disableAllHooks")
        }
        Client::Opencode => Ok(Trust::Given),
    }
}

/// Whether one of these files has a switch that turns all hooks off.
fn switched_off(files: &[PathBuf], switch: &str) -> Result<Trust, InstallError> {
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

fn gemini(files: &[PathBuf]) -> Result<Trust, InstallError> {
    for file in files {
        let config = json_of(file)?.pointer("/hooksConfig").cloned().unwrap_or_default();
        if config.get("enabled") == Some(&json!(false)) {
            let file = file.display();
            return Ok(Trust::missing(format!(
                "`hooksConfig.enabled` in {file} turns all hooks off"
            )));
        }
        let disabled = config.get("disabled").and_then(Value::as_array);
        if disabled.is_some_and(|names| names.contains(&json!(entry::NAME))) {
            let file = file.display();
            return Ok(Trust::missing(format!(
                "`hooksConfig.disabled` in {file} turns this hook off"
            )));
        }
    }
    Ok(Trust::Given)
}

/// Codex keeps in the user's `config.toml` which entries are trusted: by their place, and a digest of what they run.
fn codex(
    installation: &Installation,
    entry: &HookEntry<'_>,
    config: &Path,
) -> Result<Trust, InstallError> {
    const AGAIN: &str = "open codex, enter /hooks, and trust it";
    let text = read(config)?;
    let config_of = |error: toml::de::Error| InstallError::new(config, error.message().to_owned());
    let settings: toml::Table = text.unwrap_or_default().parse().map_err(config_of)?;
    let is_off = |name: &str| {
        settings.get("features").and_then(|it| it.get(name)).and_then(toml::Value::as_bool)
            == Some(false)
    };
    if is_off("hooks") || is_off("codex_hooks") {
        let config = config.display();
        return Ok(Trust::missing(format!("`features` in {config} turns all hooks off")));
    }
    if let Some(project) = untrusted_project(installation, config, &settings) {
        let project = project.display();
        return Ok(Trust::missing(format!(
            "Codex does not trust {project}, and reads no hooks there: open codex there"
        )));
    }
    let known =
        settings.get("hooks").and_then(|it| it.get("state")).and_then(toml::Value::as_table);
    // Codex writes the path as it was found, or without links.
    let paths = [Some(installation.path.clone()), installation.path.canonicalize().ok()];
    let state = paths.into_iter().flatten().find_map(|path| {
        let key = format!("{}:pre_tool_use:{}:{}", path.display(), entry.group, entry.hook);
        known?.get(&key)?.as_table()
    });
    let trusted = state.and_then(|it| it.get("trusted_hash")).and_then(toml::Value::as_str);
    if state.and_then(|it| it.get("enabled")).and_then(toml::Value::as_bool) == Some(false) {
        return Ok(Trust::missing(
            "the hook is switched off in codex: enter /hooks there, and switch it on",
        ));
    }
    Ok(match trusted {
        Some(trusted) if trusted == digest(entry) => Trust::Given,
        Some(_) => Trust::missing(format!(
            "the hook has changed since it was trusted, and is skipped without a word: {AGAIN}"
        )),
        None => Trust::missing(format!("an untrusted hook is skipped without a word: {AGAIN}")),
    })
}

/// The directory of an installation for a project, if the user has not trusted it.
fn untrusted_project(
    installation: &Installation,
    config: &Path,
    settings: &toml::Table,
) -> Option<PathBuf> {
    let folder = installation.path.parent()?;
    if Some(folder) == config.parent() || !folder.ends_with(".codex") {
        return None;
    }
    let project = std::path::absolute(folder.parent()?).ok()?;
    let real = project.canonicalize().unwrap_or_else(|_| project.clone());
    let known = settings.get("projects").and_then(toml::Value::as_table);
    let is_trusted = known.into_iter().flatten().any(|(path, project)| {
        let level = project.get("trust_level").and_then(toml::Value::as_str);
        level == Some("trusted") && real.starts_with(path)
    });
    (!is_trusted).then_some(project)
}

/// What Codex identifies an entry by: the SHA-256 of its canonical form.
fn digest(entry: &HookEntry<'_>) -> String {
    let field = |name: &str| entry.value.get(name).cloned().unwrap_or_default();
    // Names in the order of the alphabet, at each level.
    let hook = format!(
        r#"{{"async":false,"command":{},"timeout":{},"type":"command"}}"#,
        field("command"),
        field("timeout")
    );
    let matcher =
        entry.matcher.map(|it| format!(r#","matcher":{}"#, json!(it))).unwrap_or_default();
    let text = format!(r#"{{"event_name":"pre_tool_use","hooks":[{hook}]{matcher}}}"#);
    let digits: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// A JSON file that a client reads; nothing where there is none.
fn json_of(file: &Path) -> Result<Value, InstallError> {
    match read(file)? {
        // Clients allow comments in files that are not changed here.
        Some(text) => Ok(serde_json::from_str(&text).unwrap_or_default()),
        None => Ok(Value::Null),
    }
}

fn read(file: &Path) -> Result<Option<String>, InstallError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(InstallError::new(file, error)),
    }
}
