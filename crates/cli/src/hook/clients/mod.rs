//! The coding agents that call a hook: one file for each, and in it one value ([`ClientSpec`](spec::ClientSpec)) with all
//! that is particular to the client.
//!
//! No other file of the hook asks which client it is. A new client is:
//!
//! | where | what | missing, it is named by |
//! |---|---|---|
//! | a file in this folder, and its row in [`Client`] | the value | the compiler, field by field |
//! | `readings::tools` of the crate `rules` | its tools, in the vocabulary of rules | the compiler, as the value names them |
//! | `tests/hooks/CLIENT.jsonl` | payloads, and what the client obeys | `hook::clients` of the tests |
//! | `shell/protected.txt` | its own files | `hook::clients` of the tests |
//! | `rules/floor/configuring.rs` | how its program writes its configuration | `hook::clients` of the tests |
//! | `rules/calls/texts.rs`, `rules/presets/developer.toml` | its program as one that takes texts, its agents | nothing: without them a person is asked more often |
//! | `commands/sessions/history.rs`, `rules/import` | its sessions, and the permissions that it had | nothing: they cannot be replayed or imported |
//! | a page in `docs/hooks`, and the lists that lead there | what was measured | `hook::clients` of the tests |

mod answers;
mod claude;
mod codex;
mod copilot;
mod cursor;
pub(super) mod files;
mod front_matter;
mod gemini;
pub(super) mod jsonc;
mod opencode;
mod plugins;
mod qwen;
pub(super) mod settings;
pub(super) mod spec;
mod vscode;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;
use spec::ClientSpec;

/// Makes the enum of the clients, their list, and the way from a client to its value.
macro_rules! clients {
    ($($(#[$doc:meta])+ $name:ident => $spec:path,)+) => {
        /// A coding agent that runs a command before each tool call.
        ///
        /// ```
        /// use countersign_cli::hook::Client;
        ///
        /// let client: Client = "codex".parse()?;
        /// assert_eq!(client.to_string(), "codex");
        /// # Ok::<(), String>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Client {
            $($(#[$doc])+ $name,)+
        }

        impl Client {
            /// All clients, in the order of their declaration.
            ///
            /// ```
            /// use countersign_cli::hook::Client;
            /// for client in Client::ALL {
            ///     assert_eq!(client.name().parse(), Ok(client));
            /// }
            /// assert!("vim".parse::<Client>().is_err());
            /// ```
            pub const ALL: [Self; [$(Self::$name),+].len()] = [$(Self::$name),+];

            /// All that is particular to the client.
            pub(crate) fn spec(self) -> &'static ClientSpec {
                match self {
                    $(Self::$name => &$spec,)+
                }
            }
        }
    };
}

clients! {
    /// Claude Code, with `PreToolUse` hooks in its settings.
    Claude => claude::CLAUDE,
    /// Codex CLI, with `PreToolUse` hooks in `hooks.json`.
    Codex => codex::CODEX,
    /// Gemini CLI, with `BeforeTool` hooks in its settings.
    Gemini => gemini::GEMINI,
    /// GitHub Copilot CLI, with `preToolUse` hooks.
    Copilot => copilot::COPILOT,
    /// opencode, through a plugin that the installer writes.
    Opencode => opencode::OPENCODE,
    /// Qwen Code, with `PreToolUse` hooks in its settings.
    Qwen => qwen::QWEN,
    /// Cursor, with `preToolUse` hooks in `hooks.json`. It was never run with this hook: what is here comes from its
    /// documentation.
    Cursor => cursor::CURSOR,
    /// The agent mode of VS Code, with `PreToolUse` hooks in a file of its own. It was never run with this hook: what is here
    /// comes from its documentation.
    Vscode => vscode::VSCODE,
}

impl Client {
    /// The name of the client on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.spec().name
    }

    /// The name of the client, for people.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Copilot.title(), "GitHub Copilot CLI");
    /// ```
    #[must_use]
    pub fn title(self) -> &'static str {
        self.spec().title
    }

    /// The program of the client that works without a window.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Cursor.program(), "cursor-agent");
    /// ```
    #[must_use]
    pub fn program(self) -> &'static str {
        self.spec().program
    }

    /// The oldest version of the client that was tested with this version of the hook; `None` for a client that was never
    /// run, and is known from its documentation.
    ///
    /// Payloads and answers are not specified by most clients, and change between versions. A newer version probably
    /// works; an older one may run a tool that was denied.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert!(Client::Claude.tested_version().unwrap().starts_with("2."));
    /// assert_eq!(Client::Cursor.tested_version(), None);
    /// ```
    #[must_use]
    pub fn tested_version(self) -> Option<&'static str> {
        self.spec().tested
    }

    /// The time that a hook may take that is not told its limit: the shortest time that any known version of the client
    /// waits for a hook whose configuration has no limit, and at most a minute.
    ///
    /// Claude Code waits for 60 seconds before version 2.1.3, and for 600 from that version on. Codex CLI waits for 600
    /// seconds, Gemini CLI and Qwen Code for 60, and Copilot CLI for 30. opencode has no limit of its own. All of them but
    /// opencode run the tool when a hook takes longer: an answer that comes too late is an allow. So the hook has to answer
    /// before, with a denial if no person has answered.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Copilot.shortest_limit(), Duration::from_secs(30));
    /// assert!(Client::ALL.iter().all(|client| client.shortest_limit() <= Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn shortest_limit(self) -> Duration {
        self.spec().shortest_limit
    }

    /// Returns `true` if the client asks a person by itself when a hook tells it to.
    ///
    /// Measured: Claude Code and Copilot CLI ask, and refuse the call where there is no one to ask. Codex CLI runs such a
    /// call, Gemini CLI waits for ever without a terminal, and opencode has no such answer.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert!(Client::Claude.asks() && !Client::Codex.asks());
    /// ```
    #[must_use]
    pub fn asks(self) -> bool {
        self.spec().answers.ask.is_some()
    }

    /// Tells whether an allow of the hook can answer for the client's own rules, which may otherwise ask about the call.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert!(Client::Gemini.takes_explicit_allow() && !Client::Codex.takes_explicit_allow());
    /// ```
    #[must_use]
    pub fn takes_explicit_allow(self) -> bool {
        self.spec().answers.allow_is_explicit
    }

    /// The step that a person has to take in the client before it calls a hook that was installed or changed, if any.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert!(Client::Codex.trusted_by().unwrap().contains("/hooks"));
    /// assert_eq!(Client::Claude.trusted_by(), None);
    /// ```
    #[must_use]
    pub fn trusted_by(self) -> Option<&'static str> {
        self.spec().trusted_by
    }

    /// The variable in which the client names the project to a hook that it runs in another directory.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Claude.root_variable(), Some("CLAUDE_PROJECT_DIR"));
    /// ```
    #[must_use]
    pub fn root_variable(self) -> Option<&'static str> {
        self.spec().project.root_variable
    }

    /// The MCP servers that the client's configuration names, for clients whose payloads do not say which server a tool is of
    /// (`git_status` of opencode is a tool of the server `git`, if there is one). `home` is the user's home directory,
    /// `directories` are those of the session and of a call. There is none where the configuration cannot be read.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    ///
    /// # let project = tempfile::tempdir().unwrap();
    /// # let (home, project) = (project.path().join("home"), project.path().join("project"));
    /// # std::fs::create_dir_all(&project)?;
    /// std::fs::write(project.join("opencode.json"), r#"{"mcp": {"git": {"type": "local", "command": ["mcp-git"]}}}"#)?;
    /// assert_eq!(Client::Opencode.servers(&home, &[&project]).unwrap(), ["git"]);
    /// assert_eq!(Client::Gemini.servers(&home, &[&project]), None, "its payloads name the server");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn servers(self, home: &Path, directories: &[&Path]) -> Option<Vec<String>> {
        let found = self.servers_of(home, directories)?;
        Some(found.into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>().into_iter().collect())
    }

    /// Those of the [servers](Self::servers) that a project's files configure in another way than the files of the user, or
    /// that the user's files do not have. The project says what such a server is.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    ///
    /// # let project = tempfile::tempdir().unwrap();
    /// # let (home, project) = (project.path().join("home"), project.path().join("project"));
    /// # std::fs::create_dir_all(&project)?;
    /// std::fs::write(project.join("opencode.json"), r#"{"mcp": {"git": {"type": "local", "command": ["mcp-git"]}}}"#)?;
    /// assert_eq!(Client::Opencode.project_servers(&home, &[&project]), ["git"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn project_servers(self, home: &Path, directories: &[&Path]) -> Vec<String> {
        let all = self.servers_of(home, directories).unwrap_or_default();
        let own = self.servers_of(home, &[]).unwrap_or_default();
        let of_project = all.into_iter().filter(|server| !own.contains(server));
        of_project.map(|(name, _)| name).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The servers with their definitions: those of the user, and of the projects of these directories.
    fn servers_of(self, home: &Path, directories: &[&Path]) -> Option<Vec<(String, Value)>> {
        let mut folders: Vec<&Path> = Vec::new();
        for folder in directories.iter().flat_map(|directory| files::folders(directory, home)) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        let servers = self.spec().tools.servers?;
        let users = self.hook_files(home);
        let found: Option<Vec<_>> = users.iter().map(|user| servers(user, &folders)).collect();
        Some(found.unwrap_or_default().concat())
    }

    /// The user's files of hooks. A variable may lead the client elsewhere, or this process alone.
    fn hook_files(self, home: &Path) -> Vec<PathBuf> {
        let place = &self.spec().place;
        let mut users = vec![place.of_user(home), home.join(place.folder).join(place.file)];
        users.dedup();
        users
    }

    /// The files of the user, and of the machine, in which the client finds MCP servers, whether they are there or not. `home`
    /// is the user's home directory. [`servers_in`](crate::hook::servers_in) reads them by the [keys](Self::server_keys).
    ///
    /// ```
    /// use std::path::Path;
    /// use countersign_cli::hook::Client;
    /// let files = Client::Cursor.server_files(Path::new("/users/ann"));
    /// assert_eq!(files, [Path::new("/users/ann/.cursor/mcp.json")]);
    /// ```
    #[must_use]
    pub fn server_files(self, home: &Path) -> Vec<PathBuf> {
        let users = self.hook_files(home);
        let mut files: Vec<_> =
            users.iter().flat_map(|user| (self.spec().user_servers.files)(user)).collect();
        files.sort();
        files.dedup();
        files
    }

    /// The names on the way to each table of servers in these [files](Self::server_files); `*` is every name.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Codex.server_keys(), [["mcp_servers"]]);
    /// ```
    #[must_use]
    pub fn server_keys(self) -> &'static [&'static [&'static str]] {
        self.spec().user_servers.keys
    }

    /// The arguments with which the client works on this prompt without a person, and may run a command.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Opencode.live_arguments("do it"), ["run", "do it"]);
    /// ```
    #[must_use]
    pub fn live_arguments(self, prompt: &str) -> Vec<String> {
        let live = &self.spec().live;
        let words = live.before.iter().copied().chain([prompt]);
        words.chain(live.after.iter().copied()).map(str::to_owned).collect()
    }

    /// Tells whether the program of the client only opens a window, and ends before the client has made a call.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert!(Client::Vscode.opens_window() && !Client::Claude.opens_window());
    /// ```
    #[must_use]
    pub fn opens_window(self) -> bool {
        self.spec().live.opens_window
    }

    /// The variable with which the client trusts an empty directory in which it has never been, and its value.
    ///
    /// ```
    /// use countersign_cli::hook::Client;
    /// assert_eq!(Client::Gemini.trusting_variable(), Some(("GEMINI_CLI_TRUST_WORKSPACE", "true")));
    /// ```
    #[must_use]
    pub fn trusting_variable(self) -> Option<(&'static str, &'static str)> {
        self.spec().live.trusts
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Client {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|client| client.name() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::name).join(", ");
            format!("the clients are {all}")
        })
    }
}
