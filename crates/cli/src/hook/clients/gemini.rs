//! Gemini CLI.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::{Value, json};

use super::answers::{group, seconds};
use super::files::{InstallError, Trust, json_of};
use super::plugins;
use super::settings::{FileSettings, SettingSwitch, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PayloadForm,
    PlaceForm, ProjectForm, ServerForm, ToolForm, TrustCheck, WrittenForm,
};

/// The name of the entry, by which it can be switched off.
const NAME: &str = "countersign";

pub(super) static GEMINI: ClientSpec = ClientSpec {
    name: "gemini",
    program: "gemini",
    title: "Gemini CLI",
    tested: Some(tools::GEMINI.version),
    shortest_limit: Duration::from_secs(60),
    payload: PayloadForm {
        event: &["hook_event_name"],
        before: "BeforeTool",
        after: &["AfterTool"],
        end: "SessionEnd",
        session: "session_id",
        tool: "tool_name",
        args: "tool_input",
        call: None,
        unnamed: None,
        args_as_text: false,
    },
    tools: ToolForm {
        known: |tool, _| tools::GEMINI.get(tool),
        mcp: McpNames::InPayload,
        servers: None,
        shell_directory: Some("dir_path"),
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: false,
        changes: ChangeForm::Merge,
        fetches_prompt: true,
    },
    answers: AnswerForm {
        deny: |reason, _| json!({"decision": "deny", "reason": reason}),
        allow: |args, explicit| match args {
            Some(args) => Some(json!({
                "decision": "allow",
                "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": args},
            })),
            None => explicit.then(|| json!({"decision": "allow"})),
        },
        allow_is_explicit: true,
        // Without a terminal it would wait for ever.
        ask: None,
    },
    place: PlaceForm {
        variable: Some("GEMINI_CLI_HOME"),
        folder: "",
        file: ".gemini/settings.json",
        project: ".gemini/settings.json",
        machine: Some((
            "etc/gemini-cli/settings.json",
            "Library/Application Support/GeminiCli/settings.json",
        )),
        levels: 1,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["BeforeTool", "AfterTool", "SessionEnd"],
        entry: |event, command, limit| {
            let milliseconds = seconds(limit).saturating_mul(1000);
            let hook = json!({
                "type": "command", "name": NAME, "command": command, "timeout": milliseconds,
            });
            group((event != "SessionEnd").then_some("*"), &hook)
        },
        version: None,
        switch: Some(("hooksConfig", "enabled")),
    }),
    trust,
    trusted_by: None,
    others: OtherForm {
        json: |user, project| vec![user.to_owned(), project.join(".gemini/settings.json")],
        toml: |_, _| Vec::new(),
        events: &["BeforeTool"],
        project_events: &["BeforeTool"],
        named: |user, project| {
            let folders = [user.with_file_name("extensions"), project.join(".gemini/extensions")];
            folders.iter().flat_map(|folder| plugins::extensions(folder)).collect()
        },
    },
    user_servers: ServerForm { files: |user| vec![user.to_owned()], keys: &[&["mcpServers"]] },
    project: ProjectForm {
        files: &[
            (".env", SettingsForm::Lines),
            (".gemini/.env", SettingsForm::Lines),
            (
                ".gemini/settings.json",
                SettingsForm::Json(&FileSettings {
                    variables: &[],
                    switches: &[
                        (&["hooksConfig", "enabled"], SettingSwitch::Is(false)),
                        (&["hooksConfig", "disabled"], SettingSwitch::Has(NAME)),
                        (&["tools", "shell", "pager"], SettingSwitch::Any),
                        (&["tools", "discoveryCommand"], SettingSwitch::Runs),
                        (&["tools", "callCommand"], SettingSwitch::Runs),
                        (&["mcp", "serverCommand"], SettingSwitch::Runs),
                        (&["hooks", "SessionStart"], SettingSwitch::Runs),
                        (&["hooks", "BeforeAgent"], SettingSwitch::Runs),
                        (&["hooks", "AfterAgent"], SettingSwitch::Runs),
                        (&["hooks", "BeforeModel"], SettingSwitch::Runs),
                        (&["hooks", "AfterModel"], SettingSwitch::Runs),
                        (&["hooks", "BeforeToolSelection"], SettingSwitch::Runs),
                        (&["hooks", "Notification"], SettingSwitch::Runs),
                        (&["hooks", "PreCompress"], SettingSwitch::Runs),
                    ],
                }),
            ),
        ],
        borrowed: &[],
        servers: &[(".gemini/settings.json", "mcpServers")],
        variables: &[
            "GEMINI_CLI_HOME",
            "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
            "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
        ],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm {
        before: &["-p"],
        after: &["--approval-mode", "yolo"],
        // It calls no hook in a folder that it does not trust.
        trusts: Some(("GEMINI_CLI_TRUST_WORKSPACE", "true")),
        opens_window: false,
    },
};

fn trust(check: &TrustCheck<'_>) -> Result<Trust, InstallError> {
    let files: [PathBuf; 2] = [check.path.to_owned(), check.user.to_owned()];
    for file in check.files(files) {
        if let Some(reason) = off(&file)? {
            return Ok(Trust::missing(reason));
        }
    }
    Ok(Trust::Given)
}

/// The words for a file that turns the hook off; `None` if it does not.
fn off(file: &Path) -> Result<Option<String>, InstallError> {
    let config = json_of(file)?.pointer("/hooksConfig").cloned().unwrap_or_default();
    let file = file.display();
    if config.get("enabled") == Some(&json!(false)) {
        return Ok(Some(format!("`hooksConfig.enabled` in {file} turns all hooks off")));
    }
    let disabled = config.get("disabled").and_then(Value::as_array);
    let is_named = disabled.is_some_and(|names| names.contains(&json!(NAME)));
    Ok(is_named.then(|| format!("`hooksConfig.disabled` in {file} turns this hook off")))
}
