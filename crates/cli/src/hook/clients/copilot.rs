//! GitHub Copilot CLI.

use std::path::Path;
use std::time::Duration;

use countersign_rules::readings::tools::{self, CommonTool};
use serde_json::{Value, json};

use super::answers::{ALLOWED, seconds};
use super::claude::SETTINGS;
use super::files::{entries_in, listed, switched_off};
use super::plugins::{self, NamedPlugin};
use super::settings::{FileSettings, SettingSwitch, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, EntryForm, JsonFields, KnownTool, LiveForm, McpNames,
    OtherForm, PayloadForm, PlaceForm, ProjectForm, ServerForm, ToolForm, WrittenForm,
};

pub(super) static COPILOT: ClientSpec = ClientSpec {
    name: "copilot",
    program: "copilot",
    title: "GitHub Copilot CLI",
    tested: Some(tools::COPILOT.version),
    shortest_limit: Duration::from_secs(30),
    payload: PayloadForm {
        event: &["hookName", "hookEventName", "hook_event_name"],
        before: "preToolUse",
        after: &["postToolUse", "postToolUseFailure"],
        end: "sessionEnd",
        session: "sessionId",
        tool: "toolName",
        args: "toolArgs",
        call: None,
        unnamed: Some(|payload| match () {
            () if payload.contains_key("toolResult") => "postToolUse",
            () if payload.contains_key("toolName") => "preToolUse",
            () => "unknown",
        }),
        args_as_text: true,
    },
    tools: ToolForm {
        known,
        mcp: McpNames::Joined { prefix: "", separator: "-" },
        servers: Some(servers),
        shell_directory: None,
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: true,
        changes: ChangeForm::Replace,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: |reason, is_request| match is_request {
            true => json!({"behavior": "deny", "message": reason}),
            false => decided("deny", reason),
        },
        allow: |args, explicit| match args {
            Some(args) => Some(json!({
                "permissionDecision": "allow", "permissionDecisionReason": ALLOWED, "modifiedArgs": args,
            })),
            None => explicit.then(|| decided("allow", ALLOWED)),
        },
        allow_is_explicit: true,
        ask: Some(|reason| decided("ask", reason)),
    },
    place: PlaceForm {
        variable: Some("COPILOT_HOME"),
        folder: ".copilot",
        file: "hooks/countersign.json",
        project: ".github/hooks/countersign.json",
        machine: Some((
            "etc/github-copilot/policy.d/countersign.json",
            "etc/github-copilot/policy.d/countersign.json",
        )),
        levels: 2,
    },
    written: WrittenForm::Entries(EntryForm {
        events: &["preToolUse", "postToolUse", "sessionEnd"],
        entry: |_, command, limit| json!({"type": "command", "bash": command, "timeoutSec": seconds(limit)}),
        version: Some(1),
        switch: None,
    }),
    // Its other files have no such switch.
    trust: |check| switched_off(&[check.path.to_owned()], "/disableAllHooks"),
    trusted_by: None,
    others: OtherForm {
        json: |user, project| {
            let folders = [user.parent().map(Path::to_owned), Some(project.join(".github/hooks"))];
            folders.into_iter().flatten().flat_map(|folder| listed(&folder, &["json"])).collect()
        },
        toml: |_, _| Vec::new(),
        events: EVENTS,
        project_events: EVENTS,
        named,
    },
    user_servers: SERVERS,
    project: ProjectForm {
        files: &[
            (".github/copilot/settings.json", SettingsForm::Json(KEYS)),
            (".github/copilot/settings.local.json", SettingsForm::Json(KEYS)),
        ],
        borrowed: SETTINGS,
        servers: &[
            (".mcp.json", "mcpServers"),
            (".vscode/mcp.json", "servers"),
            (".github/mcp.json", "mcpServers"),
        ],
        variables: &["COPILOT_HOME"],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm {
        before: &["-p"],
        after: &["--allow-all-tools"],
        trusts: None,
        opens_window: false,
    },
};

const EVENTS: &[&str] = &["preToolUse", "PreToolUse", "permissionRequest", "PermissionRequest"];

const KEYS: &FileSettings = &FileSettings {
    variables: &[&["env"]],
    switches: &[
        (&["disableAllHooks"], SettingSwitch::Is(true)),
        (&["bashEnv"], SettingSwitch::Any),
    ],
};

fn decided(decision: &str, reason: &str) -> Value {
    json!({"permissionDecision": decision, "permissionDecisionReason": reason})
}

/// Copilot has a tool whose kind is in its arguments, and takes one directory or a list of them; a list has no name in the
/// common vocabulary.
fn known(tool: &str, args: &JsonFields) -> Option<KnownTool> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let tool = match tool {
        "str_replace_editor" => match text("command")? {
            "view" => "view",
            "create" => "create",
            "str_replace" | "insert" | "undo_edit" => "str_replace",
            _ => return None,
        },
        tool => tool,
    };
    let (kind, names) = tools::COPILOT.get(tool)?;
    let searches = matches!(kind, CommonTool::FindFiles | CommonTool::SearchFiles);
    Some(match text("paths") {
        Some(_) if searches => (kind, &[("paths", "path")]),
        _ => (kind, names),
    })
}

const SERVERS: ServerForm = ServerForm {
    files: |user| {
        user.ancestors().nth(2).map(|folder| folder.join("mcp-config.json")).into_iter().collect()
    },
    keys: &[&["mcpServers"], &["servers"]],
};

/// The servers of the user and of the project, and the one that Copilot brings.
fn servers(user: &Path, project: &[&Path]) -> Option<Vec<(String, Value)>> {
    let names = [".mcp.json", ".github/mcp.json", ".vscode/mcp.json"];
    let project = project.iter().flat_map(|folder| names.map(|name| folder.join(name)));
    let files = (SERVERS.files)(user).into_iter().chain(project);
    let mut found = entries_in(files, SERVERS.keys)?;
    found.push(("github-mcp-server".to_owned(), Value::Null));
    Some(found)
}

/// The plugins that its settings switch on, and those of Claude Code.
fn named(user: &Path, project: &Path) -> Vec<NamedPlugin> {
    let user = user.ancestors().nth(2).unwrap_or(user);
    let folders = [user.to_owned(), project.join(".github/copilot"), project.join(".claude")];
    let mut found = Vec::new();
    for file in plugins::settings(&folders).into_iter().chain([user.join("config.json")]) {
        let settings = plugins::json(&file);
        plugins::enabled(&file, "enabledPlugins", &settings, &Value::Null, &mut found);
    }
    found
}
