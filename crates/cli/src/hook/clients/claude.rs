//! Claude Code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::{Value, json};

use super::answers::{ALLOWED, allowed_with, decided, denied, group, seconds};
use super::files::{InstallError, Trust, entries_in, switched_off};
use super::settings::{FileSettings, SettingSwitch, SettingsFile, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, LiveForm, McpNames, OtherForm, PayloadForm,
    PlaceForm, ProjectForm, ServerForm, ToolForm, TrustCheck, WrittenForm,
};
use super::{front_matter, plugins};

pub(super) static CLAUDE: ClientSpec = ClientSpec {
    name: "claude",
    program: "claude",
    title: "Claude Code",
    tested: Some(tools::CLAUDE.version),
    shortest_limit: Duration::from_secs(60),
    payload: PAYLOAD,
    tools: ToolForm {
        known: |tool, _| tools::CLAUDE.get(tool),
        mcp: McpNames::Joined { prefix: "mcp__", separator: "__" },
        servers: Some(servers),
        shell_directory: None,
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: false,
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
        ask: Some(|reason| decided("ask", reason)),
    },
    place: PlaceForm {
        variable: Some("CLAUDE_CONFIG_DIR"),
        folder: ".claude",
        file: "settings.json",
        project: ".claude/settings.json",
        machine: Some((
            "etc/claude-code/managed-settings.json",
            "Library/Application Support/ClaudeCode/managed-settings.json",
        )),
        levels: 1,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionEnd"],
        entry,
        version: None,
        switch: None,
    }),
    trust,
    trusted_by: None,
    others: OtherForm {
        json: |user, project| files(user, project).into(),
        toml: |_, _| Vec::new(),
        events: &["PreToolUse", "PermissionRequest"],
        project_events: &[
            "PreToolUse",
            "PermissionRequest",
            "SessionStart",
            "Setup",
            "CwdChanged",
            "FileChanged",
        ],
        named,
    },
    user_servers: SERVERS,
    project: ProjectForm {
        files: OWN_SETTINGS,
        borrowed: &[],
        servers: &[(".mcp.json", "mcpServers")],
        variables: &[
            "CLAUDE_CONFIG_DIR",
            "CLAUDE_PROJECT_DIR",
            "CLAUDE_CODE_SIMPLE",
            "CLAUDE_CODE_SAFE_MODE",
            "CLAUDE_CODE_SHELL_PREFIX",
            "CLAUDE_CODE_PLUGIN_DIRS",
            "CLAUDE_CODE_PLUGIN_CACHE_DIR",
            "CLAUDE_CODE_PLUGIN_SEED_DIR",
            "CLAUDE_CODE_REMOTE",
            "CLAUDE_CODE_SYNC_PLUGIN_INSTALL",
            "BUN_OPTIONS",
        ],
        is_editor: false,
        root_variable: Some("CLAUDE_PROJECT_DIR"),
    },
    live: LiveForm {
        before: &["-p"],
        after: &["--allowedTools", "Bash"],
        trusts: None,
        opens_window: false,
    },
};

/// The payloads of Claude Code, which other clients have taken over.
pub(super) const PAYLOAD: PayloadForm = PayloadForm {
    event: &["hook_event_name"],
    before: "PreToolUse",
    after: &["PostToolUse", "PostToolUseFailure"],
    end: "SessionEnd",
    session: "session_id",
    tool: "tool_name",
    args: "tool_input",
    call: Some("tool_use_id"),
    unnamed: None,
    args_as_text: false,
};

/// The settings of a project, with those of the extension of VS Code that runs Claude Code.
const OWN_SETTINGS: &[SettingsFile] = &[
    (".claude/settings.json", SettingsForm::Json(KEYS)),
    (".claude/settings.local.json", SettingsForm::Json(KEYS)),
    (".vscode/settings.json", SettingsForm::Json(EXTENSION)),
    ("*.code-workspace", SettingsForm::Json(WORKSPACE)),
];

const EXTENSION: &FileSettings =
    &FileSettings { variables: &[&["claudeCode.environmentVariables"]], switches: &[] };
const WORKSPACE: &FileSettings =
    &FileSettings { variables: &[&["settings", "claudeCode.environmentVariables"]], switches: &[] };

/// The settings of a project that other clients read as well.
pub(super) const SETTINGS: &[SettingsFile] = &[
    (".claude/settings.json", SettingsForm::Json(KEYS)),
    (".claude/settings.local.json", SettingsForm::Json(KEYS)),
];

const KEYS: &FileSettings = &FileSettings {
    variables: &[&["env"]],
    switches: &[
        (&["disableAllHooks"], SettingSwitch::Is(true)),
        (&["apiKeyHelper"], SettingSwitch::Runs),
        (&["awsAuthRefresh"], SettingSwitch::Runs),
        (&["awsCredentialExport"], SettingSwitch::Runs),
        (&["gcpAuthRefresh"], SettingSwitch::Runs),
        (&["otelHeadersHelper"], SettingSwitch::Runs),
        (&["statusLine"], SettingSwitch::Runs),
        (&["fileSuggestion"], SettingSwitch::Runs),
        (&["hooks", "Setup"], SettingSwitch::Runs),
        (&["hooks", "SessionStart"], SettingSwitch::Runs),
        (&["hooks", "UserPromptSubmit"], SettingSwitch::Runs),
        (&["hooks", "InstructionsLoaded"], SettingSwitch::Runs),
        (&["hooks", "ConfigChange"], SettingSwitch::Runs),
        (&["hooks", "CwdChanged"], SettingSwitch::Runs),
        (&["hooks", "FileChanged"], SettingSwitch::Runs),
        (&["hooks", "Notification"], SettingSwitch::Runs),
        (&["hooks", "PreCompact"], SettingSwitch::Runs),
        (&["hooks", "Stop"], SettingSwitch::Runs),
        (&["hooks", "SubagentStart"], SettingSwitch::Runs),
        (&["hooks", "SubagentStop"], SettingSwitch::Runs),
        (&["hooks", "WorktreeCreate"], SettingSwitch::Runs),
    ],
};

/// With `onFailure: block`, a hook that is too late blocks the call, too. Other clients have no such field, and let
/// the call run. So [`Hook::answer`](crate::hook::Hook::answer) always ends in time.
fn entry(event: &str, command: &str, limit: Duration) -> Value {
    let hook = json!({"type": "command", "command": command, "timeout": seconds(limit)});
    match event {
        "PreToolUse" => group(
            Some("*"),
            &json!({
                "type": "command", "command": command, "timeout": seconds(limit), "onFailure": "block",
            }),
        ),
        "SessionEnd" => group(None, &hook),
        _ => group(Some("*"), &hook),
    }
}

fn files(user: &Path, project: &Path) -> [PathBuf; 3] {
    let project = project.join(".claude");
    [user.to_owned(), project.join("settings.json"), project.join("settings.local.json")]
}

fn trust(check: &TrustCheck<'_>) -> Result<Trust, InstallError> {
    switched_off(&check.files(files(check.user, check.directory)), "/disableAllHooks")
}

/// The servers of the user, for all projects or for one, and of the machine.
const SERVERS: ServerForm = ServerForm {
    files: |user| {
        // Beside the usual folder of settings, and in the one that a variable names.
        let own = user.ancestors().skip(1).take(2).map(|folder| folder.join(".claude.json"));
        own.chain([PathBuf::from("/etc/claude-code/managed-mcp.json")]).collect()
    },
    keys: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
};

/// The servers of the user, of the machine and of the project, and the one that Claude Code brings. Plugins and connectors have
/// others, which no file of these names.
fn servers(user: &Path, project: &[&Path]) -> Option<Vec<(String, Value)>> {
    let project = project.iter().map(|folder| folder.join(".mcp.json"));
    let mut found = SERVERS.read(user)?;
    found.extend(entries_in(project, &[&["mcpServers"]])?);
    found.push(("ide".to_owned(), Value::Null));
    Some(found)
}

/// Skills, agents and commands whose front matter has hooks, and plugins.
fn named(user: &Path, project: &Path) -> Vec<(PathBuf, String)> {
    let user = user.parent().unwrap_or(user);
    let folders = [user.to_owned(), project.join(".claude")];
    let of_skills =
        folders.iter().flat_map(|it| ["skills", "agents", "commands"].map(|name| it.join(name)));
    let of_skills = front_matter::with_hooks(of_skills).into_iter().map(|path| {
        let what = match path.is_dir() {
            true => "files that were not looked at, as there are too many",
            false => "its front matter, which has hooks or may have some",
        };
        (path, what.to_owned())
    });
    let mut found: Vec<_> = of_skills.collect();
    let installed = plugins::json(&user.join("plugins/installed_plugins.json"));
    for file in plugins::settings(&folders) {
        plugins::enabled(&file, "enabledPlugins", &plugins::json(&file), &installed, &mut found);
    }
    found
}
