//! The agent mode of VS Code, from its documentation: this hook was never run with it.
//!
//! VS Code reads hooks of Claude Code (`~/.claude/settings.json`) and of Copilot CLI (`.github/hooks`) as well, with payloads
//! of its own, which the hooks of those clients deny. Two clients would run an entry in one of these files. So this client
//! has a folder of its own, which a setting has to name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::{Value, json};

use super::answers::{ALLOWED, allowed_with, decided, denied, seconds};
use super::claude::SETTINGS;
use super::files::{InstallError, Trust, listed, read};
use super::jsonc;
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PayloadForm,
    PlaceForm, ProjectForm, ServerForm, ToolForm, TrustCheck, WrittenForm,
};

pub(super) static VSCODE: ClientSpec = ClientSpec {
    name: "vscode",
    program: "code",
    title: "VS Code",
    tested: None,
    shortest_limit: Duration::from_secs(30),
    payload: PayloadForm {
        event: &["hookEventName", "hook_event_name"],
        before: "PreToolUse",
        after: &["PostToolUse"],
        // `Stop` is documented as the end of a session, and comes after each answer of the model.
        end: "SessionEnd",
        session: "sessionId",
        tool: "tool_name",
        args: "tool_input",
        call: Some("tool_use_id"),
        unnamed: None,
        args_as_text: false,
    },
    tools: ToolForm {
        known: |tool, _| tools::VSCODE.get(tool),
        // The documentation does not say how a tool of a server is named.
        mcp: McpNames::InPayload,
        servers: None,
        shell_directory: None,
        for_people: &[],
        types_unasked: false,
        keeps_shell: true,
        changes: ChangeForm::Replace,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: denied,
        allow: |args, explicit| match args {
            Some(args) => Some(allowed_with(args)),
            None => explicit.then(|| decided("allow", ALLOWED)),
        },
        allow_is_explicit: true,
        // Its question was not tried with a person.
        ask: None,
    },
    place: PlaceForm {
        variable: None,
        folder: ".vscode",
        file: "countersign-hooks/hooks.json",
        project: ".vscode/countersign-hooks/hooks.json",
        machine: None,
        levels: 2,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["PreToolUse", "PostToolUse"],
        entry: |_, command, limit| json!({"type": "command", "command": command, "timeout": seconds(limit)}),
        version: None,
        switch: None,
    }),
    trust,
    trusted_by: Some(NAMED_BY),
    others: OtherForm {
        json: |_, project| listed(&project.join(".github/hooks"), &["json"]),
        toml: |_, _| Vec::new(),
        events: EVENTS,
        project_events: EVENTS,
        named: |_, _| Vec::new(),
    },
    user_servers: ServerForm {
        files: |user| user_files(user, "mcp.json").into_iter().flatten().collect(),
        keys: &[&["servers"]],
    },
    project: ProjectForm {
        files: &[],
        borrowed: SETTINGS,
        servers: &[(".vscode/mcp.json", "servers")],
        variables: &["VSCODE_PORTABLE"],
        is_editor: true,
        root_variable: None,
    },
    live: LiveForm {
        before: &["chat", "--mode", "agent"],
        after: &[],
        trusts: None,
        opens_window: true,
    },
};

const EVENTS: &[&str] = &["PreToolUse", "preToolUse"];

/// The setting with the places of hooks.
const SETTING: &str = "chat.hookFilesLocations";

const NAMED_BY: &str = "write `\"chat.hookFilesLocations\": {\"~/.vscode/countersign-hooks\": true, \"~/.claude/settings.json\": \
                        false}` into the user's settings of VS Code (without the second one, a hook of Claude Code denies the \
                        calls of VS Code)";

/// A file of the user's settings, on Linux and on macOS.
fn user_files(user: &Path, name: &str) -> Option<[PathBuf; 2]> {
    let home = user.ancestors().nth(3)?;
    let of = |folder: &str| home.join(folder).join("Code/User").join(name);
    Some([of(".config"), of("Library/Application Support")])
}

/// Looks for the setting that names the folder of the entry, in any spelling that ends with it.
fn trust(check: &TrustCheck<'_>) -> Result<Trust, InstallError> {
    for file in user_files(check.user, "settings.json").into_iter().flatten() {
        let value = read(&file)?.and_then(|text| jsonc::parsed(&text)).unwrap_or_default();
        let places = value.get(SETTING).and_then(Value::as_object);
        let mut on = places.into_iter().flatten().filter(|(_, on)| **on == Value::Bool(true));
        if on.any(|(place, _)| place.trim_end_matches('/').ends_with("countersign-hooks")) {
            return Ok(Trust::Given);
        }
    }
    Ok(Trust::missing(format!("VS Code does not read the file: {NAMED_BY}")))
}
