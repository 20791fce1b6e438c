//! Codex CLI.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign::args::hex;
use countersign_rules::readings::tools;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::answers::{allowed_with, denied, group, seconds};
use super::claude::PAYLOAD;
use super::files::{HookEntry, InstallError, Trust, entries_in, read, switched_off};
use super::plugins;
use super::settings::{FileSettings, SettingSwitch, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PlaceForm,
    ProjectForm, ServerForm, ToolForm, TrustCheck, WrittenForm,
};

const SERVERS: ServerForm = ServerForm {
    files: |user| vec![user.with_file_name("config.toml")],
    keys: &[&["mcp_servers"]],
};

pub(super) static CODEX: ClientSpec = ClientSpec {
    name: "codex",
    program: "codex",
    title: "Codex CLI",
    tested: Some(tools::CODEX.version),
    shortest_limit: Duration::from_secs(60),
    payload: PAYLOAD,
    tools: ToolForm {
        known: |tool, _| tools::CODEX.get(tool),
        mcp: McpNames::Joined { prefix: "mcp__", separator: "__" },
        servers: Some(|user, project| {
            let project = project.iter().map(|folder| folder.join(".codex/config.toml"));
            entries_in((SERVERS.files)(user).into_iter().chain(project), SERVERS.keys)
        }),
        shell_directory: Some("workdir"),
        for_people: &["justification"],
        types_unasked: true,
        keeps_shell: false,
        changes: ChangeForm::Replace,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: denied,
        // A bare allow is an error to it.
        allow: |args, _| args.map(allowed_with),
        allow_is_explicit: false,
        ask: None,
    },
    place: PlaceForm {
        variable: Some("CODEX_HOME"),
        folder: ".codex",
        file: "hooks.json",
        project: ".codex/hooks.json",
        machine: Some(("etc/codex/hooks.json", "etc/codex/hooks.json")),
        levels: 1,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["PreToolUse", "PostToolUse"],
        entry: |_, command, limit| {
            let hook = json!({"type": "command", "command": command, "timeout": seconds(limit)});
            group(Some(""), &hook)
        },
        version: None,
        switch: None,
    }),
    trust,
    trusted_by: Some(TRUSTED_BY),
    others: OtherForm {
        json: |user, project| vec![user.to_owned(), project.join(".codex/hooks.json")],
        toml: |user, project| configs(user, project).into(),
        events: &["PreToolUse", "PermissionRequest"],
        project_events: &["PreToolUse", "PermissionRequest"],
        named: |user, project| {
            let mut found = Vec::new();
            for file in configs(user, project) {
                let config = plugins::toml(&file);
                plugins::enabled(&file, "plugins", &config, &Value::Null, &mut found);
            }
            found
        },
    },
    user_servers: SERVERS,
    project: ProjectForm {
        files: &[(
            ".codex/config.toml",
            SettingsForm::Toml(&FileSettings {
                variables: &[&["shell_environment_policy", "set"]],
                switches: &[
                    (&["features", "hooks"], SettingSwitch::Is(false)),
                    (&["features", "codex_hooks"], SettingSwitch::Is(false)),
                    (&["notify"], SettingSwitch::Runs),
                ],
            }),
        )],
        borrowed: &[],
        servers: &[(".codex/config.toml", "mcp_servers")],
        variables: &["CODEX_HOME", "CODEX_SQLITE_HOME"],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm {
        // By default `exec` may write nothing. Then a call without a hook would change nothing, and
        // we could not see it.
        before: &["exec", "--skip-git-repo-check", "--sandbox", "workspace-write"],
        after: &[],
        trusts: None,
        opens_window: false,
    },
};

const TRUSTED_BY: &str = "open codex, enter /hooks, and trust it";

fn configs(user: &Path, project: &Path) -> [PathBuf; 2] {
    [user.with_file_name("config.toml"), project.join(".codex/config.toml")]
}

/// Codex keeps in the user's `config.toml` which entries the user trusts: by their place, and a digest of what they
/// run.
fn trust(check: &TrustCheck<'_>) -> Result<Trust, InstallError> {
    if check.is_managed {
        return switched_off(&check.files([]), "/disableAllHooks");
    }
    let Some(entry) = &check.entry else { return Ok(Trust::missing("there is no entry")) };
    let config = check.user.with_file_name("config.toml");
    let text = read(&config)?;
    let config_of = |error: toml::de::Error| InstallError::new(&config, error.message().to_owned());
    let settings: toml::Table = text.unwrap_or_default().parse().map_err(config_of)?;
    let is_off = |name: &str| {
        settings.get("features").and_then(|it| it.get(name)).and_then(toml::Value::as_bool)
            == Some(false)
    };
    if is_off("hooks") || is_off("codex_hooks") {
        let config = config.display();
        return Ok(Trust::missing(format!("`features` in {config} turns all hooks off")));
    }
    if let Some(project) = untrusted_project(check.path, &config, &settings) {
        let project = project.display();
        return Ok(Trust::missing(format!(
            "Codex does not trust {project}, and reads no hooks there: open codex there"
        )));
    }
    Ok(of_entry(check.path, entry, &settings))
}

/// Looks up whether the entry is trusted as it is.
fn of_entry(path: &Path, entry: &HookEntry<'_>, settings: &toml::Table) -> Trust {
    let known =
        settings.get("hooks").and_then(|it| it.get("state")).and_then(toml::Value::as_table);
    // Codex writes the path as it was found, or without links.
    let paths = [Some(path.to_owned()), path.canonicalize().ok()];
    let state = paths.into_iter().flatten().find_map(|path| {
        let key = format!("{}:pre_tool_use:{}:{}", path.display(), entry.group, entry.hook);
        known?.get(&key)?.as_table()
    });
    let trusted = state.and_then(|it| it.get("trusted_hash")).and_then(toml::Value::as_str);
    if state.and_then(|it| it.get("enabled")).and_then(toml::Value::as_bool) == Some(false) {
        return Trust::missing(
            "the hook is switched off in codex: enter /hooks there, and switch it on",
        );
    }
    match trusted {
        Some(trusted) if trusted == digest(entry) => Trust::Given,
        Some(_) => Trust::missing(format!(
            "the hook has changed since it was trusted, and is skipped without a word: {TRUSTED_BY}"
        )),
        None => {
            Trust::missing(format!("an untrusted hook is skipped without a word: {TRUSTED_BY}"))
        }
    }
}

/// The directory of an installation for a project, if the user has not trusted it.
fn untrusted_project(path: &Path, config: &Path, settings: &toml::Table) -> Option<PathBuf> {
    let folder = path.parent()?;
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

/// The digest by which Codex knows an entry: the SHA-256 of its canonical form.
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
    format!("sha256:{}", hex(&Sha256::digest(text)))
}
