//! The coding agents that call a hook, and what differs between them.
//!
//! Everything that depends on a client and can be written as data is here and in the module `reader::tools`; what is left
//! are the answers, in [`reply`](super::reply). A client that is added has to be added in these three places.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A coding agent that runs a command before each tool call.
///
/// ```
/// use countersign::hook::Client;
///
/// let client: Client = "codex".parse()?;
/// assert_eq!(client.to_string(), "codex");
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Client {
    /// Claude Code, with `PreToolUse` hooks in its settings.
    Claude,
    /// Codex CLI, with `PreToolUse` hooks in `hooks.json`.
    Codex,
    /// Gemini CLI, with `BeforeTool` hooks in its settings.
    Gemini,
    /// GitHub Copilot CLI, with `preToolUse` hooks.
    Copilot,
    /// opencode, through a plugin that the installer writes.
    Opencode,
}

impl Client {
    /// All clients, in the order of their declaration.
    ///
    /// ```
    /// use countersign::hook::Client;
    /// for client in Client::ALL {
    ///     assert_eq!(client.name().parse(), Ok(client));
    /// }
    /// assert!("vim".parse::<Client>().is_err());
    /// ```
    pub const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Copilot, Self::Opencode];

    /// The name of the client on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Copilot => "copilot",
            Self::Opencode => "opencode",
        }
    }

    /// The oldest version of the client that was tested with this version of the hook.
    ///
    /// Payloads and answers are not specified by most clients, and change between versions. A newer version probably
    /// works; an older one may run a tool that was denied.
    ///
    /// ```
    /// use countersign::hook::Client;
    /// assert!(Client::ALL.iter().all(|client| client.tested_version().contains('.')));
    /// ```
    #[must_use]
    pub fn tested_version(self) -> &'static str {
        match self {
            Self::Claude => "2.1.330",
            Self::Codex => "0.169.0",
            Self::Gemini => "0.61.0",
            Self::Copilot => "1.0.102",
            Self::Opencode => "1.18.33",
        }
    }

    /// How long a hook may take that is not told its limit: the shortest time that any known version of the client waits
    /// for a hook whose configuration has no limit, and at most a minute.
    ///
    /// Claude Code waited for 60 seconds before 2.1.3, and for 600 since then; Codex CLI waits for 600, Gemini CLI for 60,
    /// Copilot CLI for 30, and opencode has no limit of its own. All of them but opencode run the tool when a hook takes
    /// longer: an answer that comes too late is an allow. So the hook has to answer before, with a denial if no one has.
    ///
    /// ```
    /// use std::time::Duration;
    /// use countersign::hook::Client;
    /// assert_eq!(Client::Copilot.shortest_limit(), Duration::from_secs(30));
    /// assert!(Client::ALL.iter().all(|client| client.shortest_limit() <= Duration::from_secs(60)));
    /// ```
    #[must_use]
    pub fn shortest_limit(self) -> Duration {
        Duration::from_secs(match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode => 60,
            Self::Copilot => 30,
        })
    }

    /// The argument of the client's shell tool that names the directory in which the command runs.
    pub(super) fn shell_directory(self) -> Option<&'static str> {
        match self {
            Self::Codex | Self::Opencode => Some("workdir"),
            Self::Gemini => Some("dir_path"),
            Self::Claude | Self::Copilot => None,
        }
    }

    /// The fields of the client's shell tool that are for people only: the model words them anew each time, and the
    /// client does nothing with them but show them.
    ///
    /// No other tool has such fields: the `description` of a payment is a part of the payment.
    pub(super) fn for_people(self) -> &'static [&'static str] {
        match self {
            Self::Codex => &["justification"],
            Self::Claude | Self::Gemini | Self::Copilot | Self::Opencode => &["description"],
        }
    }

    /// How the client's payloads name things.
    pub(super) fn fields(self) -> Fields {
        match self {
            Self::Claude | Self::Codex => Fields {
                event: &["hook_event_name"],
                before: "PreToolUse",
                after: &["PostToolUse", "PostToolUseFailure"],
                end: "SessionEnd",
                session: "session_id",
                tool: "tool_name",
                args: "tool_input",
                call: Some("tool_use_id"),
            },
            Self::Gemini => Fields {
                event: &["hook_event_name"],
                before: "BeforeTool",
                after: &["AfterTool"],
                end: "SessionEnd",
                session: "session_id",
                tool: "tool_name",
                args: "tool_input",
                call: None,
            },
            Self::Copilot => Fields {
                event: &["hookName", "hookEventName", "hook_event_name"],
                before: "preToolUse",
                after: &["postToolUse", "postToolUseFailure"],
                end: "sessionEnd",
                session: "sessionId",
                tool: "toolName",
                args: "toolArgs",
                call: None,
            },
            Self::Opencode => Fields {
                event: &["hook_event_name"],
                before: "tool.execute.before",
                after: &["tool.execute.after"],
                end: "session.end",
                session: "session_id",
                tool: "tool",
                args: "args",
                call: Some("call_id"),
            },
        }
    }
}

/// The names of the fields and events of a client's payloads.
pub(super) struct Fields {
    pub(super) event: &'static [&'static str],
    pub(super) before: &'static str,
    pub(super) after: &'static [&'static str],
    pub(super) end: &'static str,
    pub(super) session: &'static str,
    pub(super) tool: &'static str,
    pub(super) args: &'static str,
    pub(super) call: Option<&'static str>,
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
