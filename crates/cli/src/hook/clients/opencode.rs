//! opencode, which has no command hooks: a plugin calls the hook.
//!
//! A plugin that throws denies the call, and one that returns allows it. So ours throws on everything but a
//! well-formed allow: a program that cannot be started, another exit status, no JSON, another decision, no answer in
//! time. The plugin builds the payloads, in the shape that [`payload`](super::super::payload) reads. It replaces
//! arguments in place, because opencode keeps the object that it has passed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools;
use serde_json::{Value, json};

use super::files::{Trust, entries_in, listed, settings_text};
use super::settings::{FileSettings, SettingSwitch, SettingsForm};
use super::spec::{
    AnswerForm, ChangeForm, ClientSpec, LiveForm, McpNames, OtherForm, PayloadForm, PlaceForm,
    PluginForm, ProjectForm, ServerForm, ToolForm, WrittenForm,
};

pub(super) static OPENCODE: ClientSpec = ClientSpec {
    name: "opencode",
    program: "opencode",
    title: "opencode",
    tested: Some(tools::OPENCODE.version),
    shortest_limit: Duration::from_secs(60),
    payload: PayloadForm {
        event: &["hook_event_name"],
        before: "tool.execute.before",
        after: &["tool.execute.after"],
        end: "session.end",
        session: "session_id",
        tool: "tool",
        args: "args",
        call: Some("call_id"),
        unnamed: None,
        args_as_text: false,
    },
    tools: ToolForm {
        known: |tool, _| tools::OPENCODE.get(tool),
        mcp: McpNames::Joined { prefix: "", separator: "_" },
        servers: Some(servers),
        shell_directory: Some("workdir"),
        for_people: &["description"],
        types_unasked: false,
        keeps_shell: false,
        changes: ChangeForm::Replace,
        fetches_prompt: false,
    },
    answers: AnswerForm {
        deny: |reason, _| json!({"decision": "deny", "reason": reason}),
        // The plugin refuses everything else, silence as well.
        allow: |args, _| match args {
            Some(args) => Some(json!({"decision": "allow", "args": args})),
            None => Some(json!({"decision": "allow"})),
        },
        allow_is_explicit: false,
        ask: None,
    },
    place: PlaceForm {
        variable: Some("XDG_CONFIG_HOME"),
        folder: ".config",
        file: "opencode/plugin/countersign.js",
        project: ".opencode/plugin/countersign.js",
        machine: None,
        levels: 2,
    },
    written: WrittenForm::Plugin(PluginForm { text, is_ours, words, limit: "const LIMIT" }),
    trust: |_| Ok(Trust::Given),
    trusted_by: None,
    others: OtherForm {
        json: |_, _| Vec::new(),
        toml: |_, _| Vec::new(),
        events: &[],
        project_events: &[],
        named,
    },
    user_servers: SERVERS,
    project: ProjectForm {
        files: &[
            ("opencode.json", SettingsForm::Json(KEYS)),
            ("opencode.jsonc", SettingsForm::Json(KEYS)),
            (".opencode/opencode.json", SettingsForm::Json(KEYS)),
            (".opencode/opencode.jsonc", SettingsForm::Json(KEYS)),
        ],
        borrowed: &[],
        servers: &[
            ("opencode.json", "mcp"),
            ("opencode.jsonc", "mcp"),
            (".opencode/opencode.json", "mcp"),
            (".opencode/opencode.jsonc", "mcp"),
        ],
        variables: &[
            "OPENCODE_CONFIG",
            "OPENCODE_CONFIG_DIR",
            "OPENCODE_CONFIG_CONTENT",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            "OPENCODE_PURE",
        ],
        is_editor: false,
        root_variable: None,
    },
    live: LiveForm { before: &["run"], after: &[], trusts: None, opens_window: false },
};

const KEYS: &FileSettings = &FileSettings {
    variables: &[&["env"]],
    switches: &[
        (&["shell"], SettingSwitch::Any),
        (&["formatter"], SettingSwitch::Runs),
        (&["lsp"], SettingSwitch::Runs),
        (&["experimental", "hook"], SettingSwitch::Runs),
    ],
};

/// The first line, by which the plugin is known.
const MARK: &str = "// Written by `countersign hook install opencode`. Changes are lost with the next installation.";

/// The plugin, with places for the first line, the command and the limit.
const PLUGIN: &str = include_str!("opencode.js");

/// The plugin that runs this command for each call, and throws on everything but a well-formed allow.
fn text(words: &[String], limit: Duration) -> String {
    let limit = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    PLUGIN
        .replace("$MARK", MARK)
        .replace("$COMMAND", &json!(words).to_string())
        .replace("$LIMIT", &limit.to_string())
}

fn is_ours(text: &str) -> bool {
    text.starts_with(MARK)
}

fn words(text: &str) -> Option<Vec<String>> {
    let words =
        text.lines().find_map(|line| line.strip_prefix("const [PROGRAM, ...OPTIONS] = "))?;
    serde_json::from_str(words).ok()
}

const NAMES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

const SERVERS: ServerForm = ServerForm {
    files: |user| {
        let folder = user.ancestors().nth(2).into_iter();
        let names = ["config.json", NAMES[0], NAMES[1]];
        folder.flat_map(|folder| names.map(|name| folder.join(name))).collect()
    },
    keys: &[&["mcp"]],
};

/// The servers of the user and of the project.
fn servers(user: &Path, project: &[&Path]) -> Option<Vec<(String, Value)>> {
    let project = project.iter().flat_map(|folder| {
        NAMES
            .map(|name| folder.join(name))
            .into_iter()
            .chain(NAMES.map(|name| folder.join(".opencode").join(name)))
    });
    entries_in((SERVERS.files)(user).into_iter().chain(project), SERVERS.keys)
}

/// The other plugins: files of two folders, and those that its settings name.
fn named(user: &Path, project: &Path) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let user = user.ancestors().nth(2).map(Path::to_owned);
    let roots = user.into_iter().chain([project.join(".opencode")]);
    for root in roots {
        for folder in ["plugin", "plugins"] {
            for file in listed(&root.join(folder), &["js", "ts", "mjs", "mts"]) {
                if !settings_text(&file).is_ok_and(|text| text.is_some_and(|text| is_ours(&text))) {
                    found.push((file, "a plugin".to_owned()));
                }
            }
        }
        in_settings(&root, &mut found);
    }
    in_settings(project, &mut found);
    found
}

fn in_settings(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for name in ["opencode.json", "opencode.jsonc"] {
        let file = folder.join(name);
        let Ok(Some(text)) = settings_text(&file) else { continue };
        let add = |runs: String| (file.clone(), runs);
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
