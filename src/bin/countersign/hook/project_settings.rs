//! Files of a project that act before the hook does, or switch it off.
//!
//! A hook is a process in the environment of its client. What a project puts there (`LD_PRELOAD`, `PATH`) acts before the
//! first line of the hook, which therefore cannot judge it, and other variables change what allowed commands do. Each
//! client has files of its own for that, and a terminal of an editor gives its environment to every client.

use std::ffi::OsString;
use std::path::Path;

use countersign::hook::{Client, Environment};
use serde_json::Value;

/// Files with settings that a client, or a terminal around it, takes from a project.
const FILES: &[(&str, &[Client], Form)] = &[
    (".claude/settings.json", &[Client::Claude, Client::Copilot], Form::Json(CLAUDE)),
    (".claude/settings.local.json", &[Client::Claude, Client::Copilot], Form::Json(CLAUDE)),
    (".env", &[Client::Gemini], Form::Lines),
    (".gemini/.env", &[Client::Gemini], Form::Lines),
    (".gemini/settings.json", &[Client::Gemini], Form::Json(GEMINI)),
    (".codex/config.toml", &[Client::Codex], Form::Toml(CODEX)),
    (".github/copilot/settings.json", &[Client::Copilot], Form::Json(COPILOT)),
    (".github/copilot/settings.local.json", &[Client::Copilot], Form::Json(COPILOT)),
    ("opencode.json", &[Client::Opencode], Form::Json(OPENCODE)),
    ("opencode.jsonc", &[Client::Opencode], Form::Json(OPENCODE)),
    (".opencode/opencode.json", &[Client::Opencode], Form::Json(OPENCODE)),
    (".opencode/opencode.jsonc", &[Client::Opencode], Form::Json(OPENCODE)),
    (".vscode/settings.json", &Client::ALL, Form::Json(EDITOR)),
    (".devcontainer/devcontainer.json", &Client::ALL, Form::Json(CONTAINER)),
    (".devcontainer.json", &Client::ALL, Form::Json(CONTAINER)),
    ("mise.toml", &Client::ALL, Form::Toml(MISE)),
    (".mise.toml", &Client::ALL, Form::Toml(MISE)),
];

/// How a file is written, and what is looked for.
#[derive(Clone, Copy)]
enum Form {
    Lines,
    Json(&'static FileSettings),
    Toml(&'static FileSettings),
}

/// Where a file has variables, and which settings of it switch hooks off.
struct FileSettings {
    /// Keys, from the outside to the inside, of tables of variables.
    variables: &'static [&'static [&'static str]],
    /// Keys of a setting, and its value.
    switches: &'static [(&'static [&'static str], Switch)],
}

#[derive(Clone, Copy)]
enum Switch {
    Is(bool),
    /// The list names this hook.
    Has(&'static str),
    /// Any value but none and `false`.
    Any,
}

const CLAUDE: &FileSettings =
    &FileSettings { variables: &[&["env"]], switches: &[(&["disableAllHooks"], Switch::Is(true))] };
const GEMINI: &FileSettings = &FileSettings {
    variables: &[],
    switches: &[
        (&["hooksConfig", "enabled"], Switch::Is(false)),
        (&["hooksConfig", "disabled"], Switch::Has("countersign")),
    ],
};
const CODEX: &FileSettings = &FileSettings {
    variables: &[&["shell_environment_policy", "set"]],
    switches: &[
        (&["features", "hooks"], Switch::Is(false)),
        (&["features", "codex_hooks"], Switch::Is(false)),
    ],
};
const COPILOT: &FileSettings = &FileSettings {
    variables: &[&["env"]],
    switches: &[(&["disableAllHooks"], Switch::Is(true)), (&["bashEnv"], Switch::Any)],
};
const OPENCODE: &FileSettings =
    &FileSettings { variables: &[&["env"]], switches: &[(&["shell"], Switch::Any)] };
const EDITOR: &FileSettings = &FileSettings {
    variables: &[
        &["terminal.integrated.env.linux"],
        &["terminal.integrated.env.osx"],
        &["terminal.integrated.env.windows"],
        &["claudeCode.environmentVariables"],
    ],
    switches: &[
        (&["terminal.integrated.profiles.linux"], Switch::Any),
        (&["terminal.integrated.profiles.osx"], Switch::Any),
        (&["terminal.integrated.profiles.windows"], Switch::Any),
        (&["terminal.integrated.automationProfile.linux"], Switch::Any),
        (&["terminal.integrated.automationProfile.osx"], Switch::Any),
    ],
};
const CONTAINER: &FileSettings =
    &FileSettings { variables: &[&["remoteEnv"], &["containerEnv"]], switches: &[] };
const MISE: &FileSettings = &FileSettings { variables: &[&["env"]], switches: &[] };

/// Variables by which a client looks for its configuration elsewhere, or runs no hooks.
const OF_CLIENTS: &[&str] = &[
    "CLAUDE_CONFIG_DIR",
    "CLAUDE_CODE_SIMPLE",
    "CLAUDE_CODE_SAFE_MODE",
    "CODEX_HOME",
    "COPILOT_HOME",
    "GEMINI_CLI_HOME",
    "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
    "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
    "OPENCODE_CONFIG",
    "OPENCODE_CONFIG_DIR",
    "OPENCODE_CONFIG_CONTENT",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS",
    "OPENCODE_PURE",
    "PATH",
];

/// The variables that a client gives to commands and that do not reach its hooks, by the files of the project.
///
/// Codex CLI takes `shell_environment_policy.set` from the `.codex/config.toml` of a project that its user trusts. In the
/// other clients a hook has the environment of the commands, but for names that are no names of a shell: the shell around
/// the hook drops `BASH_FUNC_ls%%`, with which the shell of a command defines `ls`.
pub(super) fn of_commands(
    client: Client,
    directory: &Path,
    home: &Path,
) -> Vec<(OsString, OsString)> {
    let is_plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let mut found = Vec::new();
    for folder in folders(directory, home) {
        let files = FILES.iter().filter(|(_, clients, _)| clients.first() == Some(&client));
        for (name, _, form) in files.filter(|(_, clients, _)| clients.len() < Client::ALL.len()) {
            let Ok(text) = std::fs::read_to_string(folder.join(name)) else { continue };
            let mut set = parsed(&text, *form).map(|it| it.variables(*form)).unwrap_or_default();
            set.retain(|(name, _)| client == Client::Codex || !is_plain(name));
            found.extend(set.into_iter().map(|(name, value)| (name.into(), value.into())));
        }
    }
    found
}

/// The folders in which clients look for settings of a project: this one, and those above it up to the project's root.
fn folders<'a>(directory: &'a Path, home: &Path) -> Vec<&'a Path> {
    let mut found = Vec::new();
    for folder in directory.ancestors().take_while(|folder| *folder != home) {
        found.push(folder);
        if folder.join(".git").exists() {
            break;
        }
    }
    found
}

/// What the files in this directory, and in those above it up to the project's root, do to the hook of a client.
///
/// A project cannot switch off all hooks of the machine (`is_managed`), but Gemini CLI takes names of hooks from it.
pub(super) fn problems(
    client: Client,
    is_managed: bool,
    directory: &Path,
    home: &Path,
) -> Vec<String> {
    let mut found = Vec::new();
    for folder in folders(directory, home) {
        for (name, clients, form) in FILES {
            if clients.contains(&client) {
                let file = folder.join(name);
                found.extend(read(&file, *form, is_managed, home).into_iter().flatten());
            }
        }
    }
    found
}

/// The problems of one file; `None` where there is none.
fn read(file: &Path, form: Form, is_managed: bool, home: &Path) -> Option<Vec<String>> {
    let shown = file.display();
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => return Some(vec![format!("{shown} cannot be read ({error})")]),
    };
    // A client may read more than we do.
    let Some(parsed) = parsed(&text, form) else {
        return Some(vec![format!("{shown} cannot be read, so that its settings are not known")]);
    };
    let mut found = variables(&shown.to_string(), parsed.variables(form), home);
    let (FileContent::Value(value), Form::Json(wanted) | Form::Toml(wanted)) = (&parsed, form)
    else {
        return Some(found);
    };
    for (keys, switch) in wanted.switches {
        let is_on = at(value, keys).is_some_and(|value| match switch {
            Switch::Is(wanted) => value == wanted,
            Switch::Has(name) => value.as_array().is_some_and(|it| it.iter().any(|it| it == name)),
            Switch::Any => !matches!(value, Value::Null | Value::Bool(false)),
        });
        if is_on && !(is_managed && matches!(switch, Switch::Is(_))) {
            let effect = match switch {
                Switch::Any => {
                    "which decides in what shell a client or a command runs, and what that reads first"
                }
                _ => "which turns hooks off",
            };
            found.push(format!("{shown} has `{}`, {effect}", keys.join(".")));
        }
    }
    Some(found)
}

/// What a file says.
enum FileContent {
    Value(Value),
    Lines(Vec<(String, String)>),
}

impl FileContent {
    /// The variables that the file sets.
    fn variables(&self, form: Form) -> Vec<(String, String)> {
        match (self, form) {
            (Self::Lines(lines), _) => lines.clone(),
            (Self::Value(value), Form::Json(wanted) | Form::Toml(wanted)) => {
                wanted.variables.iter().filter_map(|keys| at(value, keys)).flat_map(pairs).collect()
            }
            (Self::Value(_), Form::Lines) => Vec::new(),
        }
    }
}

fn parsed(text: &str, form: Form) -> Option<FileContent> {
    match form {
        Form::Lines => Some(FileContent::Lines(lines(text))),
        Form::Json(_) => serde_json::from_str(&plain(text)).ok().map(FileContent::Value),
        Form::Toml(_) => {
            let table = text.parse::<toml::Table>().ok()?;
            serde_json::to_value(table).ok().map(FileContent::Value)
        }
    }
}

fn at<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().try_fold(value, |value, key| value.get(key))
}

/// The variables of a table, or of a list of objects with `name` and `value`.
fn pairs(set: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match set {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        }
        Value::Array(entries) => entries
            .iter()
            .filter_map(|it| Some((text(it.get("name")?), text(it.get("value")?))))
            .collect(),
        _ => Vec::new(),
    }
}

/// The variables of a file of `NAME=value` lines.
fn lines(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(|line| line.trim().trim_start_matches("export ").trim());
    let set =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(['=', ':']));
    set.map(|(name, value)| {
        let value = value.trim().trim_matches(['"', '\'', '`']);
        (name.trim().to_owned(), value.to_owned())
    })
    .collect()
}

/// Which of these variables act before the hook or on what it allows.
fn variables(file: &str, set: Vec<(String, String)>, home: &Path) -> Vec<String> {
    let of_client = |name: &str| OF_CLIENTS.iter().any(|known| name.eq_ignore_ascii_case(known));
    let mut found = Vec::new();
    for (name, _) in set.iter().filter(|(name, _)| of_client(name)) {
        found.push(format!(
            "{file} sets `{}`, by which a client may find other programs or another configuration",
            name.escape_debug()
        ));
    }
    let set = set.into_iter().map(|(name, value)| (name.into(), value.into()));
    for name in Environment::of(set, home).names() {
        let name = name.escape_debug();
        found.push(format!("{file} sets `{name}`, which changes what programs run, load or ask"));
    }
    found
}

/// A JSON text without comments and without commas before a bracket that closes, as editors and clients read it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.trim_start_matches('\u{feff}');
    while let Some(c) = rest.chars().next() {
        let (taken, kept) = if c == '"' {
            let mut escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, c)| {
                let ends = *c == '"' && !escaped;
                escaped = *c == '\\' && !escaped;
                ends
            });
            let end = end.map_or(rest.len(), |(at, _)| at + 1);
            (end, true)
        } else if rest.starts_with("//") {
            (rest.find('\n').unwrap_or(rest.len()), false)
        } else if rest.starts_with("/*") {
            (rest.find("*/").map_or(rest.len(), |at| at + 2), false)
        } else {
            if matches!(c, '}' | ']') && out.trim_end().ends_with(',') {
                out.truncate(out.trim_end().len() - 1);
            }
            (c.len_utf8(), true)
        };
        let (front, back) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        if kept {
            out.push_str(front);
        }
        rest = back;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{lines, plain};

    #[test]
    fn comments_and_last_commas_are_no_part_of_the_settings() {
        let text = "{ // no\n \"a\": \"// \\\" /* yes\", /* no } */ \"b\": [1, 2,],\n}";
        let value: serde_json::Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, serde_json::json!({"a": "// \" /* yes", "b": [1, 2]}));
    }

    #[test]
    fn lines_of_variables_are_read_with_quotes_and_exports() {
        let found = lines("# A=1\nexport B='two'\n C = \"3\"\nD\n");
        assert_eq!(found, [("B".into(), "two".into()), ("C".into(), "3".into())]);
    }
}
