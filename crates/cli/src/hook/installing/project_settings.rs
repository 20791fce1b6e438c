//! Files of a project that act before the hook does, on what it allows, or switch it off.
//!
//! A hook is a process in the environment of its client. What a project puts there (`LD_PRELOAD`, `PATH`) acts before the
//! first line of the hook, which therefore cannot judge it, and other variables change what allowed commands do. Each
//! client has files of its own for that, and a terminal of an editor gives its environment to every client.
//!
//! `doctor` and the hook read the same list. Some things the hook cannot see, such as a program that replaces it: only
//! `doctor` can tell you about them. About all else the hook asks as well:
//!
//! | a file | has | the hook |
//! |---|---|---|
//! | settings of a client | a variable that is not known to be harmless | asks about each call |
//! | settings of an editor, a container | a variable of the tables | asks about the calls that it concerns |
//! | settings of an editor, a container | another that is not known to be harmless, where the client is the editor | asks about each call |
//! | settings of a client, or of the editor that is the client | a shell for commands | asks about each call |
//! | settings of a client, an editor, a container | a text that cannot be read, and in which the name of such a setting stands | asks about each call |
//! | `.env`, `mise.toml` | a variable of the tables | asks about the calls that it concerns |

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use countersign::show::escape;
use serde_json::Value;

use crate::hook::clients::Client;
use crate::hook::clients::files::{folders, json_value, settings_text, toml_value};
use crate::hook::clients::settings::{FileSettings, SettingSwitch, SettingsFile, SettingsForm};
use crate::hook::judging::environment::Environment;

/// Files that a terminal around any client takes settings from.
const AROUND: &[SettingsFile] = &[
    (".vscode/settings.json", SettingsForm::Editor(EDITOR)),
    (".devcontainer/devcontainer.json", SettingsForm::Editor(CONTAINER)),
    (".devcontainer.json", SettingsForm::Editor(CONTAINER)),
    ("*.code-workspace", SettingsForm::Editor(WORKSPACE)),
    ("mise.toml", SettingsForm::Applications(MISE)),
    ("mise.*.toml", SettingsForm::Applications(MISE)),
    (".mise.toml", SettingsForm::Applications(MISE)),
    (".mise.*.toml", SettingsForm::Applications(MISE)),
    ("mise/*.toml", SettingsForm::Applications(MISE)),
    (".mise/*.toml", SettingsForm::Applications(MISE)),
    (".config/mise.toml", SettingsForm::Applications(MISE)),
    (".config/mise.*.toml", SettingsForm::Applications(MISE)),
    (".config/mise/*.toml", SettingsForm::Applications(MISE)),
    (".config/mise/conf.d/*.toml", SettingsForm::Applications(MISE)),
    (".envrc", SettingsForm::Script),
];

const EDITOR: &FileSettings = &FileSettings {
    variables: &[
        &["terminal.integrated.env.linux"],
        &["terminal.integrated.env.osx"],
        &["terminal.integrated.env.windows"],
    ],
    switches: &[
        (&["terminal.integrated.profiles.linux"], SettingSwitch::Any),
        (&["terminal.integrated.profiles.osx"], SettingSwitch::Any),
        (&["terminal.integrated.profiles.windows"], SettingSwitch::Any),
        (&["terminal.integrated.automationProfile.linux"], SettingSwitch::Any),
        (&["terminal.integrated.automationProfile.osx"], SettingSwitch::Any),
    ],
};
const WORKSPACE: &FileSettings = &FileSettings {
    variables: &[
        &["settings", "terminal.integrated.env.linux"],
        &["settings", "terminal.integrated.env.osx"],
        &["settings", "terminal.integrated.env.windows"],
    ],
    switches: &[
        (&["settings", "terminal.integrated.profiles.linux"], SettingSwitch::Any),
        (&["settings", "terminal.integrated.profiles.osx"], SettingSwitch::Any),
        (&["settings", "terminal.integrated.profiles.windows"], SettingSwitch::Any),
        (&["settings", "terminal.integrated.automationProfile.linux"], SettingSwitch::Any),
        (&["settings", "terminal.integrated.automationProfile.osx"], SettingSwitch::Any),
    ],
};
const CONTAINER: &FileSettings =
    &FileSettings { variables: &[&["remoteEnv"], &["containerEnv"]], switches: &[] };
const MISE: &FileSettings = &FileSettings {
    variables: &[&["env"]],
    switches: &[
        (&["env", "_", "path"], SettingSwitch::Loads),
        (&["env", "_", "file"], SettingSwitch::Loads),
        (&["env", "_", "source"], SettingSwitch::Loads),
        (&["env", "mise", "path"], SettingSwitch::Loads),
        (&["env", "mise", "file"], SettingSwitch::Loads),
        (&["env", "mise", "source"], SettingSwitch::Loads),
        (&["env_file"], SettingSwitch::Loads),
        (&["env_path"], SettingSwitch::Loads),
        (&["dotenv"], SettingSwitch::Loads),
        (&["hooks"], SettingSwitch::Loads),
    ],
};

/// The settings of a project that act before the hook of a client, or on what it allows: those of a directory, and of the
/// directories above it up to the project's root.
///
/// ```
/// use countersign_cli::hook::{Client, ProjectSettings};
///
/// # let project = tempfile::tempdir().unwrap();
/// std::fs::write(project.path().join(".env"), "LD_PRELOAD=./x.so\n")?;
/// let home = std::path::Path::new("/u/ann");
/// let of = |client| ProjectSettings::new(client, project.path(), home);
/// assert!(of(Client::Gemini).problems()[0].contains("`LD_PRELOAD`"));
/// assert!(of(Client::Codex).problems().is_empty(), "it does not read this file");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProjectSettings {
    client: Client,
    is_managed: bool,
    directory: PathBuf,
    root: Option<PathBuf>,
    home: PathBuf,
}

impl ProjectSettings {
    /// The settings that a client takes from this directory. `home` is the home directory of the user, which is no project.
    #[must_use]
    pub fn new(client: Client, directory: &Path, home: &Path) -> Self {
        let (directory, home) = (directory.to_owned(), home.to_owned());
        Self { client, is_managed: false, directory, root: None, home }
    }

    /// Adds the root of the session, where a call may be in another directory.
    #[must_use]
    pub fn of_session(mut self, root: &Path) -> Self {
        self.root = Some(root.to_owned());
        self
    }

    /// Sets whether the hook is in the file of the machine: a project cannot switch off all hooks of the machine, but it
    /// may name one of them.
    #[must_use]
    pub fn managed(mut self, is_managed: bool) -> Self {
        self.is_managed = is_managed;
        self
    }

    /// The settings that change what the calls of this client do, as far as a hook can judge them.
    #[must_use]
    pub fn environment(&self) -> Environment {
        let mut found = Environment::default();
        for (name, form, is_own) in self.read_by_clients() {
            for file in self.folders().iter().flat_map(|folder| named(&folder.join(name))) {
                found = found.and(self.judged(&file, form, is_own));
            }
        }
        found
    }

    /// The files of clients, editors and containers, and `true` for those that are the client's own.
    fn read_by_clients(&self) -> impl Iterator<Item = (&'static str, SettingsForm, bool)> + use<> {
        let own = self.client.spec().project.files.iter().map(|it| (it.0, it.1, true));
        let around = AROUND.iter().map(|it| (it.0, it.1, false));
        own.chain(around.filter(|(_, form, _)| form.is_of_editor()))
    }

    /// Returns `true` if a variable of such a file that is not known may change each call. The settings of an editor and of
    /// a container are those of the client that runs in it; every other client is a program in its terminal.
    fn is_strict(&self, form: SettingsForm) -> bool {
        form.is_of_client() || form.is_of_editor() && self.client.spec().project.is_editor
    }

    /// Reads what one file changes in calls.
    fn judged(&self, file: &Path, form: SettingsForm, is_own: bool) -> Environment {
        let shown = escape(&file.display().to_string());
        let parsed = match settings_text(file)
            .map(|text| text.map(|text| (parsed(&text, form), text)))
        {
            Ok(None) => return Environment::default(),
            Ok(Some((Some(parsed), _))) => parsed,
            // A client may read what we do not. An editor reads what is there of a value that does not end.
            Ok(Some((None, text)))
                if (is_own && form.is_of_client() || form.is_of_editor())
                    && may_set(&text, form) =>
            {
                return Environment::of_setting(&format!("{shown}, which cannot be read"), &text);
            }
            Err(_) if is_own => {
                return Environment::of_setting(&format!("{shown}, which cannot be read"), "");
            }
            Ok(Some((None, _))) | Err(_) => return Environment::default(),
        };
        let set = parsed.variables(form);
        let set: Vec<(OsString, OsString)> =
            set.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        if !self.is_strict(form) {
            return Environment::of_project(set, &self.home);
        }
        let is_editor = form.is_of_editor();
        let mut found = match is_editor {
            true => Environment::of_terminal_settings(set, &self.home),
            false => Environment::of_client_settings(set),
        };
        let shells = form.settings().map_or(&[][..], |it| it.switches).iter();
        let is_read = is_own || is_editor;
        let shells = shells.filter(|(_, switch)| is_read && matches!(switch, SettingSwitch::Any));
        for (keys, switch) in shells {
            for value in parsed.at(keys).into_iter().filter(|value| is_on(*switch, value)) {
                let name = format!("{} in {shown}", keys.join("."));
                found = found.and(Environment::of_setting(&name, &value.to_string()));
            }
        }
        found
    }

    /// The settings that are known to be a problem, each in a sentence.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let files = self.files().into_iter();
        files.filter_map(|(file, form)| self.problems_of(&file, form)).flatten().collect()
    }

    /// The problems of one file; `None` where there is none.
    fn problems_of(&self, file: &Path, form: SettingsForm) -> Option<Vec<String>> {
        let shown = escape(&file.display().to_string());
        let text = match settings_text(file) {
            Ok(text) => text?,
            Err(error) => return Some(vec![format!("{shown} cannot be read ({error})")]),
        };
        let Some(parsed) = parsed(&text, form) else {
            let problem = format!("{shown} cannot be read, so that its settings are not known");
            return may_set(&text, form).then(|| vec![problem]);
        };
        let set = parsed.variables(form);
        let mut found = variables(&shown, set, self.is_strict(form), &self.home);
        for (keys, switch) in form.settings().map_or(&[][..], |it| it.switches) {
            let is_on = parsed.at(keys).into_iter().any(|value| is_on(*switch, value));
            let is_silent = self.is_managed && matches!(switch, SettingSwitch::Is(_));
            if is_on && !is_silent && !matches!(switch, SettingSwitch::Runs) {
                let effect = match switch {
                    SettingSwitch::Any => {
                        "which decides in what shell a client or a command runs, and what that reads first"
                    }
                    SettingSwitch::Loads => {
                        "which brings files of the project into the shell around the client"
                    }
                    SettingSwitch::Is(_) | SettingSwitch::Has(_) | SettingSwitch::Runs => {
                        "which turns hooks off"
                    }
                };
                found.push(format!("{shown} has `{}`, {effect}", keys.join(".")));
            }
        }
        Some(found)
    }

    /// Lists what the client runs by itself, without a call: helpers and hooks of other events. No hook is asked about them, and
    /// such a program can do what the account can.
    #[must_use]
    pub fn by_itself(&self) -> Vec<String> {
        let of_file = |(file, form): (PathBuf, SettingsForm)| {
            let parsed =
                settings_text(&file).ok().flatten().and_then(|text| parsed(&text, form))?;
            let switches = form.settings().map_or(&[][..], |it| it.switches).iter();
            let runs = switches.filter(|(keys, switch)| {
                matches!(switch, SettingSwitch::Runs)
                    && parsed.at(keys).into_iter().any(|value| is_on(*switch, value))
            });
            let named = |(keys, _): &(&[&str], _)| {
                format!("`{}` in {}", keys.join("."), escape(&file.display().to_string()))
            };
            Some(runs.map(named).collect::<Vec<_>>())
        };
        self.files().into_iter().filter_map(of_file).flatten().collect()
    }

    /// The names of the MCP servers in files of the project, each with its file. The client starts them by itself.
    #[must_use]
    pub fn servers(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for folder in self.folders() {
            for (name, key) in self.client.spec().project.servers {
                let file = folder.join(name);
                let Ok(Some(text)) = settings_text(&file) else { continue };
                let value = match name.ends_with(".toml") {
                    true => toml_value(&text),
                    false => json_value(&text),
                };
                let servers = value.as_ref().and_then(|it| it.get(*key)?.as_object());
                found.extend(
                    servers.into_iter().flatten().map(|(it, _)| (it.clone(), file.clone())),
                );
            }
        }
        found
    }

    /// The scripts that do something unknown: direnv runs them before the client starts.
    #[must_use]
    pub fn unknown(&self) -> Vec<String> {
        let files = self.files().into_iter();
        let scripts = files.filter(|(_, form)| matches!(form, SettingsForm::Script));
        let scripts = scripts.filter_map(|(file, _)| {
            let text = settings_text(&file).ok()??;
            let line = text.lines().map(str::trim).find(|line| !is_assignment(line))?;
            let (file, line) = (escape(&file.display().to_string()), escape(line));
            Some(format!("{file} runs `{line}`, and which variables that sets is not known"))
        });
        scripts.collect()
    }

    /// The files that are there of which the client, or what is around it, takes settings.
    fn files(&self) -> Vec<(PathBuf, SettingsForm)> {
        let form = &self.client.spec().project;
        let mut found = Vec::new();
        for folder in self.folders() {
            for (name, form) in form.borrowed.iter().chain(form.files).chain(AROUND) {
                found.extend(named(&folder.join(name)).into_iter().map(|file| (file, *form)));
            }
        }
        found
    }

    /// The folders with settings, each once.
    fn folders(&self) -> Vec<&Path> {
        let mut found = folders(&self.directory, &self.home);
        let of_root = self.root.iter().flat_map(|root| folders(root, &self.home));
        of_root.for_each(|folder| {
            if !found.contains(&folder) {
                found.push(folder);
            }
        });
        found
    }
}

/// True if a line of a script is a plain assignment, as [`lines`] reads it, or does nothing.
fn is_assignment(line: &str) -> bool {
    let text = line.strip_prefix("export ").unwrap_or(line);
    let is_plain = text.split_once('=').is_some_and(|(name, value)| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && !value.contains(['`', ';', '&', '|', '<', '>', '\\'])
            && !value.contains("$(")
    });
    line.is_empty() || line.starts_with('#') || is_plain
}

/// The files that a path stands for, whose name may have a `*`; those are sorted.
fn named(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some((front, back)) = name.and_then(|name| name.split_once('*')) else {
        return vec![path.to_owned()];
    };
    let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok());
    let mut found: Vec<_> = entries.into_iter().flatten().flatten().map(|it| it.path()).collect();
    found.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_prefix(front));
        rest.is_some_and(|rest| rest.ends_with(back)) && path.is_file()
    });
    found.sort();
    found
}

/// Returns `true` if a setting has the value that is a problem.
fn is_on(switch: SettingSwitch, value: &Value) -> bool {
    match switch {
        SettingSwitch::Is(wanted) => value == wanted,
        SettingSwitch::Has(name) => {
            value.as_array().is_some_and(|it| it.iter().any(|it| it == name))
        }
        SettingSwitch::Any | SettingSwitch::Loads => {
            !matches!(value, Value::Null | Value::Bool(false))
        }
        SettingSwitch::Runs => match value {
            Value::Null | Value::Bool(false) => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(fields) => !fields.is_empty(),
            _ => true,
        },
    }
}

/// The settings of a file.
enum FileContent {
    Value(Value),
    Lines(Vec<(String, String)>),
}

impl FileContent {
    /// The variables that the file sets.
    fn variables(&self, form: SettingsForm) -> Vec<(String, String)> {
        match (self, form) {
            (Self::Lines(lines), _) => lines.clone(),
            (Self::Value(value), form) => {
                let keys = form.settings().map_or(&[][..], |it| it.variables);
                keys.iter().flat_map(|keys| at(value, keys)).flat_map(pairs).collect()
            }
        }
    }

    /// The values at these keys; none in a file of lines.
    fn at(&self, keys: &[&str]) -> Vec<&Value> {
        match self {
            Self::Value(value) => at(value, keys),
            Self::Lines(_) => Vec::new(),
        }
    }
}

fn parsed(text: &str, form: SettingsForm) -> Option<FileContent> {
    match form {
        SettingsForm::Lines | SettingsForm::Script => Some(FileContent::Lines(lines(text))),
        SettingsForm::Json(_) | SettingsForm::Editor(_) => {
            json_value(text).filter(|value| !has_computed_name(value)).map(FileContent::Value)
        }
        SettingsForm::Toml(_) | SettingsForm::Applications(_) => {
            toml_value(text).map(FileContent::Value)
        }
    }
}

/// The beginnings of texts that a client puts other text in the place of, also within the name of a setting: `"sh{env:X}ell"`.
const COMPUTED: [&str; 2] = ["{env:", "{file:"];

/// Returns `true` if a client may read the name of a setting as another one.
fn has_computed_name(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            COMPUTED.iter().any(|it| name.contains(it)) || has_computed_name(value)
        }),
        Value::Array(items) => items.iter().any(has_computed_name),
        _ => false,
    }
}

/// Returns `true` if a text that we cannot read may have one of the settings for a client that reads more than we do: the
/// name of one stands in it, or an escape by which a name can be written.
fn may_set(text: &str, form: SettingsForm) -> bool {
    let Some(wanted) = form.settings() else { return false };
    let of_switches = wanted.switches.iter().map(|(keys, _)| *keys);
    let mut all = wanted.variables.iter().copied().chain(of_switches);
    let is_computed = COMPUTED.iter().any(|it| text.contains(it));
    is_computed
        || text.contains('\\')
        || all.any(|keys| keys.first().is_some_and(|key| text.contains(key)))
}

/// The values at these keys: several where a table on the way is one of a list.
fn at<'a>(value: &'a Value, keys: &[&str]) -> Vec<&'a Value> {
    keys.iter().fold(vec![value], |values, key| {
        let tables = values.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            value => vec![value],
        });
        tables.filter_map(|table| table.get(key)).collect()
    })
}

/// The variables of a table, or of a list of tables and of objects with `name` and `value`.
fn pairs(set: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match set {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (name.clone(), text(value))).collect()
        }
        Value::Array(entries) => entries
            .iter()
            .flat_map(|it| {
                let named = it.get("name").zip(it.get("value"));
                let named = named.map(|(name, value)| (text(name), text(value)));
                let is_named = named.is_some();
                let mut others = pairs(it);
                others.retain(|(key, _)| !is_named || key != "name" && key != "value");
                named.into_iter().chain(others).collect::<Vec<_>>()
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The variables of a file of `NAME=value` lines. Some readers end a line where others do not.
fn lines(text: &str) -> Vec<(String, String)> {
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let lines = lines.map(|line| match line.trim().split_once(char::is_whitespace) {
        Some(("export", rest)) => rest.trim(),
        _ => line.trim(),
    });
    let set =
        lines.filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(['=', ':']));
    set.map(|(name, value)| {
        let value = value.trim().trim_matches(['"', '\'', '`']);
        (name.trim().to_owned(), value.to_owned())
    })
    .collect()
}

/// Which of these variables act before the hook or on what it allows.
fn variables(file: &str, set: Vec<(String, String)>, is_strict: bool, home: &Path) -> Vec<String> {
    let of_clients = Client::ALL.into_iter().flat_map(|client| client.spec().project.variables);
    let of_clients: Vec<_> = of_clients.chain(&["PATH"]).collect();
    let of_client = |name: &str| of_clients.iter().any(|known| name.eq_ignore_ascii_case(known));
    let mut found = Vec::new();
    let (known, set): (Vec<_>, Vec<_>) = set.into_iter().partition(|(name, _)| of_client(name));
    for (name, _) in known {
        found.push(format!(
            "{file} sets `{}`, by which a client may find other programs or another configuration",
            name.escape_debug()
        ));
    }
    let set: Vec<(OsString, OsString)> =
        set.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    let acting = Environment::of_project(set.clone(), home);
    for name in acting.names() {
        let name = name.escape_debug();
        found.push(format!("{file} sets `{name}`, which changes what programs run, load or ask"));
    }
    if is_strict {
        let unknown = Environment::of_client_settings(set);
        let unknown = unknown.names().filter(|name| acting.names().all(|known| known != *name));
        for name in unknown.map(str::escape_debug) {
            found.push(format!(
                "{file} sets `{name}`, which is not known to be harmless, so that each call is asked about"
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn lines_of_variables_are_read_with_quotes_and_exports() {
        let found = lines("# A=1\nexport B='two'\n C = \"3\"\nD\n");
        assert_eq!(found, [("B".into(), "two".into()), ("C".into(), "3".into())]);
        let found = lines("\u{feff}A=1\rexport\tB=2\u{2028}C=3 # x\rD=4");
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["A", "B", "C", "D"]);
    }
}
