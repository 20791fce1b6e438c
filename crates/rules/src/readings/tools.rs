//! The tools that coding agents have of their own, and their names in the common vocabulary: one table for hooks, which
//! translate calls by it, and for rules, which are written in the vocabulary.
//!
//! The names are the clients', and nothing promises that they stay. We ask about a tool that is not in these lists: if
//! a client renames a tool, that costs questions and opens nothing.

/// The kind of a tool, by its effect.
///
/// Exhaustive on purpose: a hook has to translate every kind of tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommonTool {
    /// Runs a command in a shell.
    Shell,
    /// Types into a command that runs.
    ShellInput,
    /// Reads a text file.
    ReadFile,
    /// Writes a whole file.
    WriteFile,
    /// Changes a part of a file.
    EditFile,
    /// Changes files by a patch.
    Patch,
    /// Lists what is in a folder.
    ListFiles,
    /// Finds files by their names.
    FindFiles,
    /// Searches the content of files.
    SearchFiles,
    /// Fetches what a URL names.
    Fetch,
    /// Searches the web for pages.
    WebSearch,
    /// Starts another agent for a task.
    SpawnAgent,
    /// A tool that only touches the session, such as its list of things to do. One has an effect beyond it: `plan`
    /// ends the mode in which the client itself refuses changes.
    Session(&'static str),
}

impl CommonTool {
    /// Returns `true` if the tool writes no file and runs no command, whatever its arguments are.
    ///
    /// ```
    /// use countersign_rules::readings::tools::CommonTool;
    /// assert!(CommonTool::ReadFile.only_reads() && CommonTool::SearchFiles.only_reads());
    /// assert!(!CommonTool::EditFile.only_reads() && !CommonTool::Shell.only_reads());
    /// ```
    #[must_use]
    pub fn only_reads(self) -> bool {
        match self {
            Self::ReadFile
            | Self::ListFiles
            | Self::FindFiles
            | Self::SearchFiles
            | Self::Fetch
            | Self::WebSearch
            | Self::Session(_) => true,
            Self::Shell
            | Self::ShellInput
            | Self::WriteFile
            | Self::EditFile
            | Self::Patch
            | Self::SpawnAgent => false,
        }
    }

    /// The name of the tool in the common vocabulary.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::ShellInput => "shell_input",
            Self::ReadFile => "read_file",
            Self::WriteFile => "write_file",
            Self::EditFile => "edit_file",
            Self::Patch => "patch",
            Self::ListFiles => "list_files",
            Self::FindFiles => "find_files",
            Self::SearchFiles => "search_files",
            Self::Fetch => "fetch",
            Self::WebSearch => "web_search",
            Self::SpawnAgent => "spawn_agent",
            Self::Session(name) => name,
        }
    }
}

/// The client's names of arguments, each with the one in the common vocabulary.
pub type Renames = &'static [(&'static str, &'static str)];

/// The tools of one client: the client's names, the kind, and the arguments with another name in the vocabulary.
#[derive(Debug)]
pub struct ClientTools {
    /// The name of the client in patterns: `claude` in `claude:Skill`.
    pub name: &'static str,
    /// The name of the client, for people.
    pub client: &'static str,
    /// The version whose tools these are, or the date of the documentation that names them.
    pub version: &'static str,
    rows: &'static [(&'static [&'static str], CommonTool, Renames)],
}

impl ClientTools {
    /// The tool of this name in the common vocabulary, and the names of its fields.
    #[must_use]
    pub fn get(&self, tool: &str) -> Option<(CommonTool, Renames)> {
        let found = self.rows.iter().find(|(names, ..)| names.contains(&tool));
        found.map(|(_, kind, renames)| (*kind, *renames))
    }

    /// The kinds of the tools whose names, the client's own, are such.
    pub(crate) fn kinds(&self, is_such: impl Fn(&str) -> bool) -> impl Iterator<Item = CommonTool> {
        let rows = self.rows.iter().filter(move |(names, ..)| names.iter().any(|it| is_such(it)));
        rows.map(|(_, kind, _)| *kind)
    }

    /// The client's names of all tools that are known, also of those that have no place in the vocabulary.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().flat_map(|(names, ..)| names.iter().copied());
        rows.chain(LITERAL.iter().filter(|(client, _)| *client == self.name).map(|(_, name)| *name))
    }

    /// Tells whether the client has a tool of this name, as far as is known.
    pub(crate) fn knows(&self, tool: &str) -> bool {
        self.names().any(|name| name == tool)
    }

    /// The client's names of the tools of this kind.
    pub(crate) fn of_kind(&self, kind: CommonTool) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().filter(move |(_, own, _)| *own == kind);
        rows.flat_map(|(names, ..)| names.iter().copied())
    }
}

/// Tools that have no place in the vocabulary, as what they do depends on the machine: each is named literally in rules.
const LITERAL: &[(&str, &str)] = &[
    ("claude", "Skill"),
    ("claude", "SlashCommand"),
    ("claude", "ListMcpResourcesTool"),
    ("claude", "ReadMcpResourceTool"),
];

/// The client of this name in patterns.
pub(crate) fn client_of(name: &str) -> Option<&'static ClientTools> {
    CLIENTS.into_iter().find(|client| client.name == name)
}

/// The first client that has a tool of this name in the vocabulary.
pub(crate) fn client_with(tool: &str) -> Option<&'static ClientTools> {
    let has = |client: &&ClientTools| client.rows.iter().any(|(_, kind, _)| kind.name() == tool);
    CLIENTS.into_iter().find(has)
}

/// The id of the toolset that holds the tools of a client that are not in its table. A rule that allows speaks about one
/// of them only where it names it.
pub(crate) const OF_CLIENT: &str = "client:";

/// The id of the toolset of a client's own tools: of those in its table, or of the others.
///
/// ```
/// use countersign_rules::readings::tools::toolset_of;
/// assert_eq!((toolset_of("claude", true), toolset_of("claude", false)), ("claude".into(), "client:claude".into()));
/// ```
#[must_use]
pub fn toolset_of(client: &str, is_known: bool) -> String {
    match is_known {
        true => client.to_owned(),
        false => format!("{OF_CLIENT}{client}"),
    }
}

/// Tells whether a toolset has this id as one of a client's own tools.
pub(crate) fn is_of_client(toolset: &str) -> bool {
    toolset.starts_with(OF_CLIENT) || client_of(toolset).is_some()
}

/// Returns `true` if a tool is one of a client's own that writes nothing: `toolset` is the client's, as the hook sets it, and the
/// table of the client's tools has one of this name in the vocabulary.
pub(crate) fn only_reads(toolset: &str, tool: &str) -> bool {
    let rows = client_of(toolset).into_iter().flat_map(|client| client.rows);
    let mut kinds = rows.map(|(_, kind, _)| *kind).filter(|kind| kind.name() == tool).peekable();
    kinds.peek().is_some() && kinds.all(CommonTool::only_reads)
}

/// The tool that clients call by this name, if they do, and it is not the name in the vocabulary.
pub(crate) fn named_otherwise(tool: &str) -> Option<(&'static str, CommonTool)> {
    let known = |clients: &&ClientTools| Some((clients.client, clients.get(tool)?.0));
    let mut found = CLIENTS.iter().filter_map(known);
    found.find(|_| !is_common(tool))
}

/// The reason why no door has a tool whose name matches this text, with what to write in its place: the one place that decides
/// which names doors produce. `None` where a tool may have such a name. `client` is the coding agent whose tool is named, if one
/// is.
pub(crate) fn no_door_has(name: &str, client: Option<&str>) -> Option<String> {
    let list = |separator: char| {
        let names: Vec<_> = name.split(separator).map(|it| format!("\"{}\"", it.trim())).collect();
        format!("several tools are a list, such as `[{}]`", names.join(", "))
    };
    if name.trim() != name {
        return Some(format!("a name has no blanks around it: write `{}`", name.trim()));
    }
    if let Some(separator) = [',', '|', ';'].into_iter().find(|it| name.contains(*it)) {
        return Some(list(separator));
    }
    if name.contains(['[', ']', '{', '}', '^', '$', '\\', '+']) {
        return Some(
            "a pattern has `*` for any characters and `?` for one, and nothing else".to_owned(),
        );
    }
    if name.contains(char::is_whitespace) {
        return Some(
            "a name has no blanks: conditions on arguments belong into `where`".to_owned(),
        );
    }
    let client = client_of(client?)?;
    let is_known = client.rows.iter().any(|(_, kind, _)| kind.name() == name);
    (is_known && !client.knows(name)).then(|| {
        format!(
            "`{name}` is the name in the vocabulary: write `{name}` for the tool of every agent, or `set:{}/{name}` for that of {} \
             alone",
            client.name, client.client
        )
    })
}

/// The agents that call a tool of the vocabulary by this name, and the name in the vocabulary, where other agents have the same
/// tool by other names.
pub(crate) fn of_some_agents(name: &str) -> Option<(Vec<&'static str>, &'static str)> {
    let kind = CLIENTS.iter().find_map(|client| client.get(name)).map(|(kind, _)| kind)?;
    let has = |client: &&&ClientTools| client.of_kind(kind).next().is_some();
    let calls_so = |client: &&&ClientTools| client.of_kind(kind).any(|it| it == name);
    let all = CLIENTS.iter().filter(has).count();
    let some: Vec<_> = CLIENTS.iter().filter(calls_so).map(|client| client.client).collect();
    (some.len() < all && !is_common(name)).then_some((some, kind.name()))
}

/// The names of the common vocabulary.
pub(crate) fn common_names() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|clients| clients.rows).map(|(_, kind, _)| kind.name())
}

/// Returns `true` if a tool of the common vocabulary has this name.
pub(crate) fn is_common(tool: &str) -> bool {
    common_names().any(|name| name == tool)
}

/// All clients.
pub(crate) const CLIENTS: [&ClientTools; 8] =
    [&CLAUDE, &CODEX, &GEMINI, &COPILOT, &OPENCODE, &QWEN, &CURSOR, &VSCODE];

const SAME: Renames = &[];
const FILE: Renames = &[("file_path", "path")];
const FILE_IN_CAMEL: Renames = &[("filePath", "path")];
const FOLDER: Renames = &[("dir_path", "path")];

/// The tools of Claude Code.
pub const CLAUDE: ClientTools = ClientTools {
    name: "claude",
    client: "Claude Code",
    version: "2.1.330",
    rows: &[
        (&["Bash"], CommonTool::Shell, SAME),
        (&["Write"], CommonTool::WriteFile, FILE),
        (&["Edit", "MultiEdit"], CommonTool::EditFile, FILE),
        (&["NotebookEdit"], CommonTool::EditFile, &[("notebook_path", "path")]),
        (&["Read"], CommonTool::ReadFile, FILE),
        (&["NotebookRead"], CommonTool::ReadFile, &[("notebook_path", "path")]),
        (&["LS"], CommonTool::ListFiles, SAME),
        (&["Glob"], CommonTool::FindFiles, SAME),
        (&["Grep"], CommonTool::SearchFiles, SAME),
        (&["WebFetch"], CommonTool::Fetch, SAME),
        (&["WebSearch"], CommonTool::WebSearch, SAME),
        (&["Agent", "Task"], CommonTool::SpawnAgent, &[("subagent_type", "agent")]),
        (
            &["TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList"],
            CommonTool::Session("todo"),
            SAME,
        ),
        (&["AskUserQuestion"], CommonTool::Session("ask_user"), SAME),
        (&["EnterPlanMode"], CommonTool::Session("enter_plan"), SAME),
        (&["ExitPlanMode"], CommonTool::Session("plan"), SAME),
        (&["BashOutput", "TaskOutput"], CommonTool::Session("shell_output"), SAME),
        (&["ListAgents"], CommonTool::Session("list_agents"), SAME),
        (&["CronList"], CommonTool::Session("list_schedules"), SAME),
        (&["KillShell", "KillBash", "TaskStop"], CommonTool::Session("stop_shell"), SAME),
    ],
};

/// The tools of Codex.
pub const CODEX: ClientTools = ClientTools {
    name: "codex",
    client: "Codex CLI",
    version: "0.169.0",
    rows: &[
        (&["Bash", "shell", "local_shell", "container.exec"], CommonTool::Shell, SAME),
        (&["exec_command"], CommonTool::Shell, &[("cmd", "command")]),
        (&["apply_patch"], CommonTool::Patch, &[("command", "patch"), ("input", "patch")]),
        (&["write_stdin"], CommonTool::ShellInput, SAME),
        (&["view_image"], CommonTool::ReadFile, SAME),
        (&["update_plan"], CommonTool::Session("todo"), SAME),
        (&["request_user_input"], CommonTool::Session("ask_user"), SAME),
        (
            &["spawn_agent"],
            CommonTool::SpawnAgent,
            &[("message", "prompt"), ("agent_type", "agent")],
        ),
        (&["web_search"], CommonTool::WebSearch, SAME),
        (&["wait", "wait_agent", "close_agent"], CommonTool::Session("wait_agent"), SAME),
        (&["get_goal"], CommonTool::Session("goal"), SAME),
        (
            &["list_mcp_resources", "list_mcp_resource_templates"],
            CommonTool::Session("list_resources"),
            SAME,
        ),
    ],
};

/// The tools of Gemini CLI.
pub const GEMINI: ClientTools = ClientTools {
    name: "gemini",
    client: "Gemini CLI",
    version: "0.61.0",
    rows: &[
        (&["run_shell_command"], CommonTool::Shell, &[("dir_path", "workdir")]),
        (&["write_file"], CommonTool::WriteFile, FILE),
        (&["replace"], CommonTool::EditFile, FILE),
        // The names of several versions. A call that has two of them is asked about: another version reads another one.
        (&["read_file"], CommonTool::ReadFile, &[("file_path", "path"), ("absolute_path", "path")]),
        (&["list_directory"], CommonTool::ListFiles, FOLDER),
        (&["glob"], CommonTool::FindFiles, FOLDER),
        (&["grep_search", "search_file_content"], CommonTool::SearchFiles, FOLDER),
        (&["web_fetch"], CommonTool::Fetch, SAME),
        (&["google_web_search"], CommonTool::WebSearch, SAME),
        (&["invoke_agent"], CommonTool::SpawnAgent, &[("agent_name", "agent")]),
        (&["write_todos"], CommonTool::Session("todo"), SAME),
        (&["ask_user"], CommonTool::Session("ask_user"), SAME),
        (&["enter_plan_mode"], CommonTool::Session("enter_plan"), SAME),
        (&["exit_plan_mode"], CommonTool::Session("plan"), SAME),
        (
            &["list_background_processes", "read_background_output"],
            CommonTool::Session("shell_output"),
            SAME,
        ),
        (&["update_topic"], CommonTool::Session("topic"), SAME),
    ],
};

/// The tools of Copilot CLI.
pub const COPILOT: ClientTools = ClientTools {
    name: "copilot",
    client: "Copilot CLI",
    version: "1.0.102",
    rows: &[
        (&["bash"], CommonTool::Shell, SAME),
        (&["write_bash"], CommonTool::ShellInput, SAME),
        (&["read_bash", "list_bash"], CommonTool::Session("shell_output"), SAME),
        (&["stop_bash"], CommonTool::Session("stop_shell"), SAME),
        (&["create"], CommonTool::WriteFile, &[("file_text", "content")]),
        (&["edit", "str_replace", "insert", "str_replace_editor"], CommonTool::EditFile, SAME),
        (&["view"], CommonTool::ReadFile, SAME),
        (&["apply_patch"], CommonTool::Patch, &[("input", "patch")]),
        (&["glob"], CommonTool::FindFiles, SAME),
        (&["grep", "rg"], CommonTool::SearchFiles, SAME),
        (&["web_fetch"], CommonTool::Fetch, SAME),
        (&["web_search"], CommonTool::WebSearch, SAME),
        (&["task"], CommonTool::SpawnAgent, &[("agent_type", "agent")]),
        (&["update_todo", "report_intent"], CommonTool::Session("todo"), SAME),
        (&["read_agent", "list_agents"], CommonTool::Session("list_agents"), SAME),
        (&["ask_user"], CommonTool::Session("ask_user"), SAME),
    ],
};

/// The tools of opencode.
pub const OPENCODE: ClientTools = ClientTools {
    name: "opencode",
    client: "opencode",
    version: "1.18.33",
    rows: &[
        (&["bash"], CommonTool::Shell, SAME),
        (&["write"], CommonTool::WriteFile, FILE_IN_CAMEL),
        (&["edit", "multiedit"], CommonTool::EditFile, FILE_IN_CAMEL),
        (&["patch", "apply_patch"], CommonTool::Patch, &[("patchText", "patch")]),
        (&["read"], CommonTool::ReadFile, FILE_IN_CAMEL),
        (&["list"], CommonTool::ListFiles, SAME),
        (&["glob"], CommonTool::FindFiles, SAME),
        (&["grep"], CommonTool::SearchFiles, SAME),
        (&["webfetch"], CommonTool::Fetch, SAME),
        (&["websearch", "codesearch"], CommonTool::WebSearch, SAME),
        (&["task"], CommonTool::SpawnAgent, &[("subagent_type", "agent")]),
        (&["todowrite", "todoread"], CommonTool::Session("todo"), SAME),
        (&["question"], CommonTool::Session("ask_user"), SAME),
    ],
};

/// The tools of Qwen Code.
pub const QWEN: ClientTools = ClientTools {
    name: "qwen",
    client: "Qwen Code",
    version: "0.24.4",
    rows: &[
        (&["run_shell_command"], CommonTool::Shell, &[("directory", "workdir")]),
        (&["write_file"], CommonTool::WriteFile, FILE),
        (&["edit"], CommonTool::EditFile, FILE),
        (&["notebook_edit"], CommonTool::EditFile, &[("notebook_path", "path")]),
        (&["read_file"], CommonTool::ReadFile, FILE),
        (&["list_directory"], CommonTool::ListFiles, SAME),
        (&["glob"], CommonTool::FindFiles, SAME),
        (&["grep_search"], CommonTool::SearchFiles, SAME),
        (&["web_fetch"], CommonTool::Fetch, SAME),
        (&["web_search"], CommonTool::WebSearch, SAME),
        (&["agent"], CommonTool::SpawnAgent, &[("subagent_type", "agent")]),
        (
            &["todo_write", "task_create", "task_update", "task_list"],
            CommonTool::Session("todo"),
            SAME,
        ),
        (&["ask_user_question"], CommonTool::Session("ask_user"), SAME),
        (&["enter_plan_mode"], CommonTool::Session("enter_plan"), SAME),
        (&["exit_plan_mode"], CommonTool::Session("plan"), SAME),
        (&["task_stop"], CommonTool::Session("stop_shell"), SAME),
        (&["list_agents"], CommonTool::Session("list_agents"), SAME),
        (&["cron_list"], CommonTool::Session("list_schedules"), SAME),
        (&["get_goal"], CommonTool::Session("goal"), SAME),
    ],
};

/// The tools of Cursor, by its documentation: it names their kinds, and the arguments of few.
pub const CURSOR: ClientTools = ClientTools {
    name: "cursor",
    client: "Cursor",
    version: "2026-11",
    rows: &[
        (&["Shell"], CommonTool::Shell, &[("working_directory", "workdir")]),
        (&["Write"], CommonTool::WriteFile, FILE),
        (&["Read"], CommonTool::ReadFile, FILE),
        (&["Grep"], CommonTool::SearchFiles, SAME),
        (&["Task"], CommonTool::SpawnAgent, &[("subagent_type", "agent")]),
    ],
};

/// The tools of the agent mode of VS Code, by its documentation, which names few of them and fewer of their arguments, and by
/// the names that its own prompts use.
pub const VSCODE: ClientTools = ClientTools {
    name: "vscode",
    client: "VS Code",
    version: "2026-07",
    rows: &[
        (&["runTerminalCommand", "run_in_terminal"], CommonTool::Shell, SAME),
        (&["createFile", "create_file"], CommonTool::WriteFile, FILE_IN_CAMEL),
        (&["editFiles", "replace_string_in_file"], CommonTool::EditFile, FILE_IN_CAMEL),
        (&["read_file"], CommonTool::ReadFile, FILE_IN_CAMEL),
    ],
};
