//! Qwen Code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::json;

use super::answers::{ALLOWED, decided, denied, group, seconds};
use super::claude::PAYLOAD;
use super::files::{entries_in, switched_off};
use super::plugins;
use super::settings::{FileSettings, SettingSwitch, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PlaceForm,
    ProjectForm, ServerForm, ToolForm, WrittenForm,
};

const SERVERS: ServerForm =
    ServerForm { files: |user| vec![user.to_owned()], keys: &[&["mcpServers"]] };

pub(super) static QWEN: ClientSpec = ClientSpec {
    name: "qwen",
    program: "qwen",
    title: "Qwen Code",
    tested: Some(tools::QWEN.version),
    shortest_limit: Duration::from_secs(60),
    payload: PAYLOAD,
    tools: ToolForm {
        known: |tool, _| tools::QWEN.get(tool),
        mcp: McpNames::Joined { prefix: "mcp__", separator: "__" },
        servers: Some(|user, project| {
            let project = project.iter().map(|folder| folder.join(".qwen/settings.json"));
            entries_in((SERVERS.files)(user).into_iter().chain(project), SERVERS.keys)
        }),
        shell_directory: Some("directory"),
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: false,
        // It documents `updatedInput`, and runs the call with its own arguments.
        changes: ChangeForm::Ignore,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: denied,
        allow: |_, explicit| explicit.then(|| decided("allow", ALLOWED)),
        allow_is_explicit: true,
        // Its question was not tried with a person.
        ask: None,
    },
    place: PlaceForm {
        variable: Some("QWEN_HOME"),
        folder: ".qwen",
        file: "settings.json",
        project: ".qwen/settings.json",
        machine: Some((
            "etc/qwen-code/settings.json",
            "Library/Application Support/QwenCode/settings.json",
        )),
        levels: 1,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd"],
        entry: |event, command, limit| {
            // It reads a number from 1000 on as milliseconds, and a smaller one as seconds.
            let milliseconds = seconds(limit).saturating_mul(1000);
            let hook = json!({
                "type": "command", "name": "countersign", "command": command, "timeout": milliseconds,
            });
            group((event != "SessionEnd").then_some("*"), &hook)
        },
        version: None,
        switch: None,
    }),
    trust: |check| {
        switched_off(&check.files(files(check.user, check.directory)), "/disableAllHooks")
    },
    trusted_by: None,
    others: OtherForm {
        json: |user, project| files(user, project).into(),
        toml: |_, _| Vec::new(),
        events: &["PreToolUse", "PermissionRequest"],
        project_events: &["PreToolUse", "PermissionRequest", "SessionStart"],
        named: |user, project| {
            let folders = [user.with_file_name("extensions"), project.join(".qwen/extensions")];
            folders.iter().flat_map(|folder| plugins::extensions(folder)).collect()
        },
    },
    user_servers: SERVERS,
    project: ProjectForm {
        files: &[
            (".env", SettingsForm::Lines),
            (".qwen/.env", SettingsForm::Lines),
            (
                ".qwen/settings.json",
                SettingsForm::Json(&FileSettings {
                    variables: &[&["env"]],
                    switches: &[(&["disableAllHooks"], SettingSwitch::Is(true))],
                }),
            ),
        ],
        borrowed: &[],
        servers: &[(".qwen/settings.json", "mcpServers")],
        variables: &[
            "QWEN_HOME",
            "QWEN_CODE_SIMPLE",
            "QWEN_CODE_SYSTEM_SETTINGS_PATH",
            "QWEN_CODE_SYSTEM_DEFAULTS_PATH",
            "QWEN_CODE_TRUSTED_FOLDERS_PATH",
        ],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm {
        before: &["-p"],
        after: &["--approval-mode", "yolo"],
        trusts: None,
        opens_window: false,
    },
};

fn files(user: &Path, project: &Path) -> [PathBuf; 2] {
    [user.to_owned(), project.join(".qwen/settings.json")]
}
