//! One vocabulary for the tools of all clients, so that one file of rules serves them all.
//!
//! | tool | arguments that every client has |
//! |---|---|
//! | `shell` | `command`, `workdir`; `paths`, where the text is a patch |
//! | `shell_input` | text that is typed into a shell that runs already |
//! | `read_file`, `write_file`, `edit_file` | `path` |
//! | `patch` | `patch`, `paths`: every path that it adds, changes, removes or moves |
//! | `list_files`, `find_files`, `search_files` | `path` |
//! | `fetch`, `web_search` | as the client names them; `fetch` mostly has a `url` |
//! | `spawn_agent` | `prompt` or the client's name for it |
//! | a tool of an MCP server | its own arguments |
//!
//! We have to be able to undo a translation: a layer or a person may change arguments, and the client gets them back
//! in its own names ([`Normal::restore`]). A layer cannot change what we have added (a default `workdir`, the `paths`
//! of a patch), as the client has no place for it. Such a change is an error, and is not dropped.
//!
//! For example, Claude's `{"file_path": "notes.md"}` in `/src` becomes `{"path": "/src/notes.md"}`. It goes back as
//! `notes.md` if no one has changed it, or else under `file_path` with the new path.

use std::path::Path;

use serde_json::{Map, Value};

use super::{kept_shell, patterns, shells};
use countersign::Decision;
use countersign::args::Args;
use countersign_rules::readings::argument::{self, Likelihood, TextReading, readings};
use countersign_rules::readings::patch;
use countersign_rules::readings::prose::{TextRole, command_field};
use countersign_rules::readings::shells::{DIRECTORIES, Doubt, doubt};
use countersign_rules::readings::tools::CommonTool;

use crate::hook::clients::spec::{ChangeForm, KnownTool, McpNames};
use crate::hook::payload::HookCall;

/// A call in the common vocabulary.
#[derive(Debug, Clone)]
pub(crate) struct Normal {
    /// The name of the tool: one of the vocabulary, the MCP server's, or, for an unknown tool, the client's.
    pub(crate) tool: String,
    /// The MCP server that the tool belongs to.
    pub(crate) server: Option<String>,
    /// `true` if the table of the client's tools has the tool, or a server does.
    pub(crate) is_known: bool,
    pub(crate) args: Args,
    /// The reason why the call has to be asked about even if the rules allow it: a key, and the reason.
    pub(crate) doubts: Vec<(&'static str, String)>,
    /// Questions about the call that each need an answer as their rule wants it: by certain people, or every time.
    pub(crate) demands: Vec<Decision>,
    /// The templates by which rules word the call as a tool that its name may be the name of.
    pub(crate) titles: Vec<String>,
    /// The client's names of arguments that have another one here.
    renamed: Vec<(&'static str, &'static str)>,
    /// Arguments in which the model tells people what the call is about. They have no effect on it.
    pub(crate) for_people: &'static [&'static str],
    /// Arguments that were added here, and that no layer may change.
    added: Vec<&'static str>,
    /// The client's own texts of paths that were made absolute.
    paths: Vec<(&'static str, String, String)>,
    /// The other ways to read the name as one of a tool of an MCP server.
    pub(crate) ways: Vec<McpWay>,
}

/// One way to read a name as a server and a tool of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct McpWay {
    server: String,
    tool: String,
    /// `true` if the client's configuration has the server, so that the call may be one of its tool: then it has to be
    /// allowed as such, too.
    pub(crate) is_configured: bool,
}

impl McpWay {
    /// The tool as people are shown it.
    pub(crate) fn shown(&self) -> String {
        format!("mcp:{}/{}", self.server, self.tool)
    }
}

impl Normal {
    /// The same call, as one of another server's tool.
    pub(crate) fn by(&self, way: &McpWay) -> Self {
        let mut this = self.clone();
        (this.server, this.tool) = (Some(way.server.clone()), way.tool.clone());
        this.is_known = true;
        this.doubts.clear();
        this.demands.clear();
        this.titles.clear();
        this.ways.clear();
        this
    }

    /// The command, of a call of the client's shell.
    pub(crate) fn command(&self) -> Option<&str> {
        let is_shell = self.server.is_none() && self.tool == CommonTool::Shell.name();
        self.args.str("command").filter(|_| is_shell)
    }

    /// The directory in which such a call begins, and its command.
    pub(crate) fn command_in(&self) -> Option<(&Path, &str)> {
        Some((Path::new(self.args.str("workdir")?), self.command()?))
    }

    /// The tool as people are shown it: MCP tools with their server.
    pub(crate) fn shown(&self) -> String {
        match &self.server {
            Some(server) => format!("mcp:{server}/{}", self.tool),
            None => self.tool.clone(),
        }
    }

    /// The arguments by which an equal call is found: all but the words for people, which a model words anew each time.
    pub(crate) fn compared(&self, args: &Args) -> Value {
        let is_words = |name: &String, value: &Value| {
            self.for_people.contains(&name.as_str()) && value.is_string()
        };
        let all = args.as_map().iter().filter(|(name, value)| !is_words(name, value));
        Value::Object(all.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// Arguments that a person has edited in an equal call, with the words for people of this one, unless the person has
    /// edited these, too.
    pub(crate) fn in_own_words(&self, edited: &Args, asked: &Args, own: &Args) -> Args {
        let unedited = self.for_people.iter().filter(|name| edited.get(name) == asked.get(name));
        unedited.fold(edited.clone(), |args, name| match own.get(name) {
            Some(value) => args.with(*name, value.clone()),
            None => args.without(name),
        })
    }

    pub(crate) fn doubt(&mut self, key: &'static str, reason: impl Into<String>) {
        self.doubts.push((key, reason.into()));
    }

    fn unknown(&mut self, call: &HookCall, why: &str) {
        let reason = format!("`{}` of {} {why}", call.tool.escape_debug(), call.client);
        self.doubt("unknown-tool", reason);
    }

    /// Renames an argument, unless the client sends one of the common name as well.
    ///
    /// If both names are there, we do not know which one the client uses. So we ask, and change neither.
    fn rename(&mut self, from: &'static str, to: &'static str) {
        if from == to {
            return;
        }
        let Some(value) = self.args.get(from).cloned() else { return };
        if self.args.get(to).is_some() {
            self.doubt("two-names", format!("it has both `{from}` and `{to}`"));
            return;
        }
        self.args = self.args.clone().without(from).with(to, value);
        self.renamed.push((from, to));
    }

    /// Makes a path absolute, from the call's directory. Without the argument, the directory itself is meant where
    /// `optional` is set.
    fn absolute(&mut self, name: &'static str, directory: &Path, optional: bool) {
        match self.args.get(name) {
            None if optional => {
                let directory = directory.to_string_lossy().into_owned();
                self.args = self.args.clone().with(name, directory);
                self.added.push(name);
            }
            Some(Value::String(text)) if !text.is_empty() => {
                let text = text.clone();
                if let Some(doubt) = doubtful(&text, directory) {
                    self.doubt("path", doubt);
                }
                let path = directory.join(&text).to_string_lossy().into_owned();
                self.args = self.args.clone().with(name, path.clone());
                self.paths.push((name, text, path));
            }
            _ => self.doubt("path", format!("`{name}` is not a path")),
        }
    }

    /// Doubts a pattern of paths that leads out of `path`, by which rules judge where is looked.
    ///
    /// `{"path": "src", "pattern": "/etc/*"}` lists `/etc`. All strings but those of these arguments may be patterns.
    fn doubt_patterns(&mut self, others: &[&str]) {
        if self.args.get("paths").is_some() {
            self.doubt("path", "it is about several directories");
        }
        let path = self.args.str("path").unwrap_or_default();
        let arguments = self.args.as_map().iter();
        let mut patterns = arguments.filter(|(name, _)| !others.contains(&name.as_str()));
        if patterns.any(|(_, value)| patterns::lead_out(value, Path::new(path))) {
            self.doubt("path", "a pattern leads out of the directory that it is about");
        }
    }

    fn paths_of_patch(&mut self, text: &str, directory: &Path) {
        let found = patch::paths(text);
        if found.is_doubtful {
            self.doubt("patch", "it is not known which files the patch changes");
        }
        for path in &found.paths {
            if let Some(doubt) = doubtful(path, directory) {
                self.doubt("path", doubt);
            }
        }
        let paths = found.paths.iter().map(|path| directory.join(path).to_string_lossy().into());
        self.add("paths", Value::Array(paths.collect()));
    }

    fn add(&mut self, name: &'static str, value: Value) {
        if self.args.get(name).is_some() {
            self.doubt("two-names", format!("it has an argument `{name}` of its own"));
            return;
        }
        self.args = self.args.clone().with(name, value);
        self.added.push(name);
    }

    /// The arguments in the client's names, for a call whose arguments a layer or a person has changed. `None` when they
    /// are unchanged.
    pub(crate) fn restore(
        &self,
        call: &HookCall,
        last: &Args,
    ) -> Result<Option<Map<String, Value>>, String> {
        if *last == self.args {
            return Ok(None);
        }
        if let Some(name) = self.added.iter().find(|name| last.get(name) != self.args.get(name)) {
            return Err(format!(
                "the argument `{name}` cannot be changed: {} does not have it",
                call.client
            ));
        }
        let mut args = last.as_map().clone();
        for name in &self.added {
            args.remove(*name);
        }
        for (name, original, absolute) in &self.paths {
            if args.get(*name).and_then(Value::as_str) == Some(absolute) {
                args.insert((*name).to_owned(), original.clone().into());
            }
        }
        for (from, to) in &self.renamed {
            if let Some(value) = args.remove(*to) {
                args.insert((*from).to_owned(), value);
            }
        }
        match call.client.spec().tools.changes {
            ChangeForm::Replace => Ok(Some(args)),
            ChangeForm::Merge => match call.args.keys().find(|name| !args.contains_key(*name)) {
                Some(name) => Err(format!(
                    "the argument `{}` cannot be removed: {} keeps it",
                    name.escape_debug(),
                    call.client
                )),
                None => Ok(Some(args)),
            },
            ChangeForm::Ignore => Err(format!(
                "{} runs a call only as it was made: call the tool again with these arguments: {}",
                call.client,
                Value::Object(args)
            )),
        }
    }
}

/// The reason why a path may not be the one that it seems to be, in the directory of the call.
///
/// Some clients expand `~/x`, `$HOME/x` and `@file`, and some parse `{"path": "/etc/x"}`. Joined to the directory,
/// such texts would look like harmless files in it. So each reading of the text has to be one of the joined path, too.
/// At a NUL or a line break some readers end a path.
fn doubtful(path: &str, directory: &Path) -> Option<String> {
    let reads_otherwise = || {
        let own = readings(path, TextRole::Named);
        let joined = directory.join(path);
        let joined = joined.to_string_lossy();
        let joined = readings(&joined, TextRole::Named);
        let counts = |reading: &&TextReading<'_>| reading.likelihood != Likelihood::Loose;
        let is_joined = |reading: &TextReading<'_>| {
            let there = directory.join(&*reading.text);
            joined.all.iter().filter(counts).any(|it| Path::new(&*it.text) == there)
        };
        let readable = own.unreadable.is_none() && !own.is_address;
        !(readable && own.all.iter().filter(counts).all(is_joined))
    };
    let is_doubtful = argument::is_expanded(path) || !argument::is_plain(path) && reads_otherwise();
    is_doubtful.then(|| {
        format!("`{}` may be read as another path than it seems to be", path.escape_debug())
    })
}

/// Knowledge about tools beyond the tables of the clients.
#[derive(Clone, Default)]
pub(crate) struct ToolNames {
    /// The MCP servers in the configuration of the client; `None` where it was not looked at.
    pub(crate) servers: Option<Vec<String>>,
    /// Those of them that a project's files configure in their own way.
    pub(crate) of_project: Vec<String>,
    /// `true` if the layers allow an unknown tool only where they name it.
    pub(crate) unknown_by_name: bool,
}

/// The call in the client's own words.
fn untranslated(call: &HookCall) -> Normal {
    Normal {
        tool: call.tool.clone(),
        server: None,
        is_known: true,
        args: Args::from(call.args.clone()),
        doubts: Vec::new(),
        demands: Vec::new(),
        titles: Vec::new(),
        renamed: Vec::new(),
        for_people: &[],
        added: Vec::new(),
        paths: Vec::new(),
        ways: Vec::new(),
    }
}

/// Translates a call into the common vocabulary.
pub(crate) fn normal(call: &HookCall, names: &ToolNames) -> Normal {
    let mut this = untranslated(call);
    let Some((kind, renames)) = known(call) else {
        mcp(call, names, &mut this);
        return this;
    };
    this.tool = kind.name().to_owned();
    for (from, to) in renames {
        if call.args.contains_key(*to) {
            let problem = format!("{} has no argument `{to}`: it is `{from}` there", call.client);
            this.doubt("two-names", problem);
        }
        this.rename(from, to);
    }
    let directory = &call.directory;
    match kind {
        CommonTool::Shell => shell(call, &mut this),
        CommonTool::ShellInput => {
            this.doubt("shell-input", "text is typed into a shell that runs already");
        }
        CommonTool::ReadFile | CommonTool::WriteFile | CommonTool::EditFile => {
            this.absolute("path", directory, false);
        }
        CommonTool::ListFiles => this.absolute("path", directory, true),
        CommonTool::FindFiles => {
            this.absolute("path", directory, true);
            this.doubt_patterns(&["path"]);
        }
        CommonTool::SearchFiles => {
            this.absolute("path", directory, true);
            // A search is for text, and not for a pattern of paths.
            this.doubt_patterns(&["path", "pattern", "query"]);
        }
        CommonTool::Patch => match this.args.str("patch").map(str::to_owned) {
            Some(text) => this.paths_of_patch(&text, directory),
            None => this.doubt("patch", "it has no text of a patch"),
        },
        CommonTool::Fetch => {
            if call.client.spec().tools.fetches_prompt
                && this.args.get("url").is_some()
                && this.args.get("prompt").is_some()
            {
                this.doubt("url", "it has an address beside those of its prompt");
            }
        }
        CommonTool::WebSearch | CommonTool::SpawnAgent | CommonTool::Session(_) => {}
    }
    this
}

/// Returns `true` if the tool of a call is none of the client's own.
pub(crate) fn is_foreign(call: &HookCall) -> bool {
    known(call).is_none()
}

/// The table's row about the tool of a call; `None` for tools of MCP servers and unknown ones.
///
/// A tool that the client says is of an MCP server is never taken for the client's own, even with the same name: `Bash`
/// of a server is not the shell.
fn known(call: &HookCall) -> Option<KnownTool> {
    match call.is_of_server {
        false => (call.client.spec().tools.known)(&call.tool, &call.args),
        true => None,
    }
}

fn shell(call: &HookCall, this: &mut Normal) {
    this.for_people = call.client.spec().tools.for_people;
    // The rules ask about every field that they do not know. This one is asked about under any layers.
    let of_sandbox = |(name, value): (&String, &Value)| {
        (doubt(name, value) == Some(Doubt::Sandbox)).then(|| name.escape_debug().to_string())
    };
    let found: Vec<_> = call.args.iter().filter_map(of_sandbox).collect();
    for name in found {
        this.doubt("sandbox", format!("`{name}` may switch the sandbox off"));
    }
    // The client drops an argument that its tool does not have, and the command runs elsewhere.
    let own = call.client.spec().tools.shell_directory;
    let mut others = DIRECTORIES.iter().filter(|name| Some(**name) != own);
    if let Some(name) = others.find(|name| call.args.contains_key(**name)) {
        let problem = format!("the shell of {} has no argument `{name}`", call.client);
        this.doubt("directory", problem);
    }
    let directory = match this.args.get("workdir") {
        Some(_) => {
            this.absolute("workdir", &call.directory, false);
            this.args.str("workdir").map_or_else(|| call.directory.clone(), Into::into)
        }
        None => {
            this.absolute("workdir", &call.directory, true);
            call.directory.clone()
        }
    };
    let Some(command) = this.args.str("command").map(str::to_owned) else {
        this.doubt("shell", "its command is not a text");
        return;
    };
    if let Some((key, doubt)) = shells::doubt(
        &command,
        shells::has_terminal(&this.args),
        call.client.spec().tools.types_unasked,
    ) {
        this.doubt(key, doubt);
    }
    if call.client.spec().tools.keeps_shell
        && let Some(doubt) = kept_shell::reads_otherwise(&command)
    {
        this.doubt("interactive-shell", doubt);
    }
    // Some clients read a patch in a command as a call of its patch tool.
    if command.contains("*** Begin Patch") {
        this.paths_of_patch(&command, &directory);
        if shells::changes_directory(&command) {
            this.doubt("patch", "it changes the directory in which the patch is applied");
        }
    }
}

/// A tool that is none of the client's own: one of an MCP server, if the server and the tool are certain.
fn mcp(call: &HookCall, names: &ToolNames, this: &mut Normal) {
    let named = match (&call.server, &call.client.spec().tools.mcp) {
        (Some((server, Some(tool))), _) => Some((server.clone(), tool.clone())),
        (Some((server, None)), _) => {
            let rest = call.tool.strip_prefix("mcp__");
            // The name of a tool has `_` for what is no letter, digit or dash in the name of its server.
            let tool = rest.and_then(|rest| {
                let name = |server: &str| rest.strip_prefix(server)?.strip_prefix("__");
                name(server).or_else(|| name(&server.replace(|c| !is_plain(c), "_")))
            });
            tool.map(|tool| (server.clone(), tool.to_owned()))
        }
        (None, McpNames::Joined { prefix, separator }) => {
            call.tool.strip_prefix(prefix).and_then(|rest| by_name(rest, separator, names, this))
        }
        (None, McpNames::InPayload) => {
            // The payload does not say the server, and a rule that denies counts nevertheless.
            let forms = [("mcp__", "__"), ("mcp_", "_")].into_iter();
            let mut forms =
                forms.filter_map(|(prefix, it)| Some((call.tool.strip_prefix(prefix)?, it)));
            let unknown = ToolNames { servers: Some(Vec::new()), ..ToolNames::default() };
            forms.next().and_then(|(rest, separator)| by_name(rest, separator, &unknown, this))
        }
    };
    match named {
        Some((server, tool)) => {
            this.server = Some(server);
            this.tool = tool;
        }
        None => {
            this.is_known = false;
            let args = Value::Object(call.args.clone());
            let field = command_field(&args);
            match field.filter(|_| names.unknown_by_name) {
                _ if call.is_of_server => {
                    this.unknown(call, "is of an MCP server, and not certainly of which one");
                }
                Some(field) => {
                    let field = field.escape_debug();
                    this.unknown(call, &format!("is not known, and `{field}` may hold a command"));
                }
                None if names.unknown_by_name => {}
                None => this.unknown(call, "is not known"),
            }
        }
    }
}

/// The server and the tool of a name, where it is known which they are. We note the other ways to split the name. A
/// rule that denies or asks counts for each of them, and one that allows has to hold for each that may be meant.
///
/// For example, `a__b__c` can be the tool `b__c` of `a` or the tool `c` of `a__b`. If we know the servers of the client,
/// they say which ways there are. Otherwise we split only a name that has one way.
fn by_name(
    name: &str,
    separator: &str,
    names: &ToolNames,
    this: &mut Normal,
) -> Option<(String, String)> {
    let mut ways = splits(name, separator);
    if ways.len() > MAX_WAYS {
        this.doubt("mcp-name", "its name can be split in too many ways");
        ways.truncate(MAX_WAYS);
    }
    let mut all: Vec<McpWay> = Vec::new();
    for (written, tool) in ways {
        let is_it = |server: &&String| {
            **server == written || server.replace(|c| !is_plain(c), "_") == written
        };
        let known: Vec<_> = names.servers.iter().flatten().filter(is_it).cloned().collect();
        let is_configured = !known.is_empty();
        let servers = if is_configured { known } else { vec![written.clone()] };
        let way = |server| McpWay { server, tool: tool.clone(), is_configured };
        all.extend(servers.into_iter().map(way));
    }
    let found = match &names.servers {
        Some(_) => all.iter().position(|way| way.is_configured),
        None => (all.len() == 1).then_some(0),
    };
    let chosen = found.map(|at| all.remove(at));
    let meant = chosen.iter().chain(all.iter().filter(|way| way.is_configured));
    let of_project = meant.clone().find(|way| names.of_project.contains(&way.server));
    if let Some(way) = of_project {
        let server = way.server.escape_debug().to_string();
        this.doubt("mcp-name", format!("`{server}` is a server that the project configures"));
    }
    this.ways = all;
    chosen.map(|way| (way.server, way.tool))
}

/// The number of ways to split a name that are looked at.
const MAX_WAYS: usize = 16;

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// Every way to split a name into two parts. A server or a tool may have the separator in its name.
fn splits(name: &str, separator: &str) -> Vec<(String, String)> {
    let places = (1..name.len()).filter_map(|at| {
        let (server, rest) = name.split_at_checked(at)?;
        let tool = rest.strip_prefix(separator)?;
        (!tool.is_empty()).then(|| (server.to_owned(), tool.to_owned()))
    });
    places.collect()
}
