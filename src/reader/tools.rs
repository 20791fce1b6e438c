//! The tools that coding agents have of their own, and their names in the common vocabulary: one table for hooks, which
//! translate calls by it, and for rules, which are written in the vocabulary.
//!
//! Names are the clients', and nothing promises that they stay. A tool that is not in these lists is unknown, and asked
//! about, so a client that renames a tool costs questions and opens nothing.

/// The kind of a tool, by its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommonTool {
    Shell,
    ShellInput,
    ReadFile,
    WriteFile,
    EditFile,
    Patch,
    ListFiles,
    FindFiles,
    SearchFiles,
    Fetch,
    WebSearch,
    SpawnAgent,
    /// A tool that only touches the session, such as its list of things to do.
    Session(&'static str),
}

impl CommonTool {
    /// The name of the tool in the common vocabulary.
    pub(crate) fn name(self) -> &'static str {
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
pub(crate) type Renames = &'static [(&'static str, &'static str)];

/// The tools of one client: the client's names, the kind, and the arguments with another name in the vocabulary.
pub(crate) struct ClientTools {
    /// The name of the client, for people.
    pub(crate) client: &'static str,
    rows: &'static [(&'static [&'static str], CommonTool, Renames)],
}

impl ClientTools {
    /// What is known about the tool of this name.
    pub(crate) fn get(&self, tool: &str) -> Option<(CommonTool, Renames)> {
        let found = self.rows.iter().find(|(names, ..)| names.contains(&tool));
        found.map(|(_, kind, renames)| (*kind, *renames))
    }

    /// The client's names of the tools of this kind.
    pub(crate) fn of_kind(&self, kind: CommonTool) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().filter(move |(_, own, _)| *own == kind);
        rows.flat_map(|(names, ..)| names.iter().copied())
    }
}

/// The tool that clients call by this name, if they do, and it is not the name in the vocabulary.
pub(crate) fn named_otherwise(tool: &str) -> Option<(&'static str, CommonTool)> {
    let known = |clients: &&ClientTools| Some((clients.client, clients.get(tool)?.0));
    let mut found = CLIENTS.iter().filter_map(known);
    found.find(|_| !is_common(tool))
}

/// Whether a tool of the common vocabulary has this name.
fn is_common(tool: &str) -> bool {
    CLIENTS.iter().flat_map(|clients| clients.rows).any(|(_, kind, _)| kind.name() == tool)
}

/// All clients.
pub(crate) const CLIENTS: [&ClientTools; 5] = [&CLAUDE, &CODEX, &GEMINI, &COPILOT, &OPENCODE];

const SAME: Renames = &[];
const FILE: Renames = &[("file_path", "path")];
const FILE_IN_CAMEL: Renames = &[("filePath", "path")];
const FOLDER: Renames = &[("dir_path", "path")];

pub(crate) const CLAUDE: ClientTools = ClientTools {
    client: "Claude Code",
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
        (&["EnterPlanMode", "ExitPlanMode"], CommonTool::Session("plan"), SAME),
        (&["BashOutput", "TaskOutput"], CommonTool::Session("shell_output"), SAME),
        (&["KillShell", "KillBash", "TaskStop"], CommonTool::Session("stop_shell"), SAME),
    ],
};

pub(crate) const CODEX: ClientTools = ClientTools {
    client: "Codex CLI",
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
    ],
};

pub(crate) const GEMINI: ClientTools = ClientTools {
    client: "Gemini CLI",
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
        (&["enter_plan_mode", "exit_plan_mode"], CommonTool::Session("plan"), SAME),
    ],
};

pub(crate) const COPILOT: ClientTools = ClientTools {
    client: "Copilot CLI",
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
        (&["ask_user"], CommonTool::Session("ask_user"), SAME),
    ],
};

pub(crate) const OPENCODE: ClientTools = ClientTools {
    client: "opencode",
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
