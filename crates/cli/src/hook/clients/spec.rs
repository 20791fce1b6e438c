//! All that is particular to a client, as data and functions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use countersign_rules::readings::tools::{CommonTool, Renames};
use serde_json::{Map, Value};

use super::files::{HookEntry, InstallError, Trust, entries_in};
use super::settings::SettingsFile;

/// The fields of a payload, or the arguments of a call.
pub(crate) type JsonFields = Map<String, Value>;

/// The kind of a tool, and its arguments with another name in the common vocabulary.
pub(crate) type KnownTool = (CommonTool, Renames);

/// Reads the MCP servers of a configuration, each with its definition there.
pub(crate) type ServersOf = fn(&Path, &[&Path]) -> Option<Vec<(String, Value)>>;

/// A client of the hook.
pub(crate) struct ClientSpec {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The program that works without a window.
    pub(crate) program: &'static str,
    /// The name for people.
    pub(crate) title: &'static str,
    /// The oldest version that was tested; `None` where the client was never run, and is known from its documentation.
    pub(crate) tested: Option<&'static str>,
    /// The shortest time that any known version waits for a hook without a limit, and at most a minute.
    pub(crate) shortest_limit: Duration,
    pub(crate) payload: PayloadForm,
    pub(crate) tools: ToolForm,
    pub(crate) answers: AnswerForm,
    pub(crate) place: PlaceForm,
    pub(crate) written: WrittenForm,
    /// Finds out whether the client calls the hook that is installed, as far as its own files say.
    pub(crate) trust: fn(&TrustCheck<'_>) -> Result<Trust, InstallError>,
    /// The step that a person has to take before the client calls a hook that is new or has changed.
    pub(crate) trusted_by: Option<&'static str>,
    pub(crate) others: OtherForm,
    pub(crate) user_servers: ServerForm,
    pub(crate) project: ProjectForm,
    pub(crate) live: LiveForm,
}

/// The names of things in payloads.
pub(crate) struct PayloadForm {
    /// Fields that name the event; the first that is there counts.
    pub(crate) event: &'static [&'static str],
    pub(crate) before: &'static str,
    pub(crate) after: &'static [&'static str],
    pub(crate) end: &'static str,
    pub(crate) session: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) args: &'static str,
    /// The id of the call, in clients that have one.
    pub(crate) call: Option<&'static str>,
    /// For payloads that name no event: the event that their shape says. The installed command names it as well.
    pub(crate) unnamed: Option<fn(&JsonFields) -> &'static str>,
    /// `true` if some versions send the arguments as a text.
    pub(crate) args_as_text: bool,
}

/// The client's own tools.
pub(crate) struct ToolForm {
    /// The kind of the tool of this name with these arguments, and its arguments with another name in the common
    /// vocabulary; `None` where it is not known.
    pub(crate) known: fn(&str, &JsonFields) -> Option<KnownTool>,
    pub(crate) mcp: McpNames,
    /// The MCP servers in the client's configuration, by the user's file of hooks, the folders of the project from the
    /// inside to the outside; `None` where it cannot be read. Only for clients whose payloads name no server.
    pub(crate) servers: Option<ServersOf>,
    /// The argument of the shell tool that names the directory in which the command runs.
    pub(crate) shell_directory: Option<&'static str>,
    /// The fields of the shell tool that are only for people. The model words them anew each time, and the client only
    /// shows them.
    ///
    /// No other tool has such fields: the `description` of a payment is a part of the payment.
    pub(crate) for_people: &'static [&'static str],
    /// `true` if the client types into a command that runs without showing that to a hook.
    pub(crate) types_unasked: bool,
    /// `true` if a command may run in the shell of an earlier one, whose directory the payload does not follow.
    pub(crate) keeps_shell: bool,
    pub(crate) changes: ChangeForm,
    /// `true` if the tool that fetches takes the addresses in its prompt, and one beside them only by a setting of its own.
    pub(crate) fetches_prompt: bool,
}

/// The client's use of other arguments in an allow.
#[derive(Clone, Copy)]
pub(crate) enum ChangeForm {
    /// They take the place of its own.
    Replace,
    /// They are merged over its own: an argument that is left out stays.
    Merge,
    /// Nothing: it runs the call as the model has made it.
    Ignore,
}

/// The form in which the name of a tool has its MCP server.
pub(crate) enum McpNames {
    /// Only the payload names the server.
    InPayload,
    /// The name is the prefix, the server, the separator and the tool.
    Joined { prefix: &'static str, separator: &'static str },
}

/// The answers that the client obeys.
///
/// Each client reads answers in its own way, and runs the tool when an answer is not what it expects: when it has a line
/// before the JSON, an unknown field, no reason, or another exit status. One denial holds in all of them: JSON with
/// known fields and a reason, the same reason on stderr, and exit status 2.
pub(crate) struct AnswerForm {
    /// The denial for this reason; `true` for an event that asks for a permission.
    pub(crate) deny: fn(&str, bool) -> Value,
    /// The allow, with other arguments if there are any. With the flag, it answers for the client's own rules, too.
    /// `None` is silence.
    pub(crate) allow: fn(Option<JsonFields>, bool) -> Option<Value>,
    /// `true` if that flag makes a difference.
    pub(crate) allow_is_explicit: bool,
    /// The answer by which the client asks its own question, for this reason.
    pub(crate) ask: Option<fn(&str) -> Value>,
}

/// The files that the client reads hooks from.
pub(crate) struct PlaceForm {
    /// The variable of the environment that replaces the folder, if there is one.
    pub(crate) variable: Option<&'static str>,
    /// The folder of a user, below the home directory.
    pub(crate) folder: &'static str,
    /// The file, below the folder.
    pub(crate) file: &'static str,
    /// The file of a project, below its directory.
    pub(crate) project: &'static str,
    /// The file of the machine, below its root, and the one of macOS.
    pub(crate) machine: Option<(&'static str, &'static str)>,
    /// The number of levels from the file up to the folder with the client's settings and hooks.
    pub(crate) levels: usize,
}

impl PlaceForm {
    /// The file of the user who runs this process, whose home directory this is.
    pub(crate) fn of_user(&self, home: &Path) -> PathBuf {
        let folder = self.variable.and_then(std::env::var_os).filter(|folder| !folder.is_empty());
        let folder = folder.and_then(|folder| std::path::absolute(folder).ok());
        folder.unwrap_or_else(|| home.join(self.folder)).join(self.file)
    }
}

/// The file that an installation writes.
pub(crate) enum WrittenForm {
    /// Entries in a JSON file, beside those of others.
    Entries(EntryForm),
    /// A program in a file of its own.
    Plugin(PluginForm),
}

/// The entries of a client that is configured by JSON.
pub(crate) struct EntryForm {
    /// The events that the client calls the hook for.
    pub(crate) events: &'static [&'static str],
    /// The entry for an event, with this command and limit.
    pub(crate) entry: fn(&str, &str, Duration) -> Value,
    /// The version that a file of its own has to name.
    pub(crate) version: Option<u64>,
    /// The table and its field by which a person switches all hooks off.
    pub(crate) switch: Option<(&'static str, &'static str)>,
}

/// A plugin that calls the hook.
pub(crate) struct PluginForm {
    /// The plugin that runs these words within this limit.
    pub(crate) text: fn(&[String], Duration) -> String,
    pub(crate) is_ours: fn(&str) -> bool,
    /// The program that a plugin runs, and the words behind it.
    pub(crate) words: fn(&str) -> Option<Vec<String>>,
    /// The beginning of the line with the limit.
    pub(crate) limit: &'static str,
}

/// An installation whose trust is looked at.
pub(crate) struct TrustCheck<'a> {
    pub(crate) path: &'a Path,
    /// `true` if the file is the machine's: then only the file itself can switch the hook off, and the hook
    /// needs no trust.
    pub(crate) is_managed: bool,
    pub(crate) entry: Option<HookEntry<'a>>,
    /// The file of the user who runs this process.
    pub(crate) user: &'a Path,
    /// The directory of the sessions.
    pub(crate) directory: &'a Path,
}

impl TrustCheck<'_> {
    /// The files that may switch the hook off: these, or the file of the machine alone.
    pub(crate) fn files(&self, files: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        match self.is_managed {
            true => vec![self.path.to_owned()],
            false => files.into_iter().collect(),
        }
    }
}

/// The places where the client finds other hooks, by the user's file of hooks and the directory of the project.
pub(crate) struct OtherForm {
    /// The JSON files with hooks.
    pub(crate) json: fn(&Path, &Path) -> Vec<PathBuf>,
    /// The TOML files with hooks.
    pub(crate) toml: fn(&Path, &Path) -> Vec<PathBuf>,
    /// The events by which a hook changes or answers a call before it runs.
    pub(crate) events: &'static [&'static str],
    /// The same for hooks of a project, with those at which the client takes variables for all commands from a hook.
    pub(crate) project_events: &'static [&'static str],
    /// Plugins, extensions and other files that bring hooks: each the file, and how it does.
    pub(crate) named: fn(&Path, &Path) -> Vec<(PathBuf, String)>,
}

/// The files of the user, and of the machine, with MCP servers.
pub(crate) struct ServerForm {
    /// The files, by the user's file of hooks.
    pub(crate) files: fn(&Path) -> Vec<PathBuf>,
    /// The names on the way to each table of servers; `*` is every name.
    pub(crate) keys: &'static [&'static [&'static str]],
}

impl ServerForm {
    /// The servers in these files, each with its definition; `None` where one of the files cannot be read.
    pub(crate) fn read(&self, user: &Path) -> Option<Vec<(String, Value)>> {
        entries_in((self.files)(user), self.keys)
    }
}

/// The settings that the client takes from a project.
pub(crate) struct ProjectForm {
    /// The client's own files with settings.
    pub(crate) files: &'static [SettingsFile],
    /// Files of another client that this one reads as well.
    pub(crate) borrowed: &'static [SettingsFile],
    /// Files of a project with MCP servers, and the key of the servers.
    pub(crate) servers: &'static [(&'static str, &'static str)],
    /// Variables by which the client looks for its configuration or its project elsewhere, or runs no hooks.
    pub(crate) variables: &'static [&'static str],
    /// `true` if the client runs in the editor: then settings of the editor and of its containers are the client's.
    pub(crate) is_editor: bool,
    /// The variable in which the client names the project.
    pub(crate) root_variable: Option<&'static str>,
}

/// The command that starts the client without a person, so that it may run a command.
pub(crate) struct LiveForm {
    /// The arguments before the prompt.
    pub(crate) before: &'static [&'static str],
    /// The arguments behind it.
    pub(crate) after: &'static [&'static str],
    /// The variable with which the client trusts a directory that is new to it, and its value.
    pub(crate) trusts: Option<(&'static str, &'static str)>,
    /// `true` if the program only opens a window, and ends before the client has made a call.
    pub(crate) opens_window: bool,
}
