//! The tools that run the text of a field in a shell, and the fields beside that text: one table for rules and hooks.
//!
//! A rule that allows `git status` has looked at a command. But a call carries more than its command, and the other
//! fields may change what runs: an environment, another shell, a second list of arguments, a switch for the sandbox. So
//! the table lists the fields that are known to be harmless, with the values that today's clients send, and we ask
//! about every other field. It is a list of fields and not of clients: a program that calls its tool `bash` mostly
//! takes its fields from one of them, too.

use serde_json::Value;

/// Tools that are known to run the text of a field in a shell.
pub(crate) const SHELLS: &[(&str, &str)] = &[
    ("shell", "command"),
    ("bash", "command"),
    ("sh", "command"),
    ("run_command", "command"),
    ("run_shell_command", "command"),
    ("execute_command", "command"),
    ("run_terminal_cmd", "command"),
    ("run_in_terminal", "command"),
];

/// Returns `true` if a tool of this name is known to be a shell.
pub(crate) fn is_known_shell(name: &str) -> bool {
    SHELLS.iter().any(|(tool, _)| tool.eq_ignore_ascii_case(name))
}

/// The fields in which tools take the directory that they work in.
pub const DIRECTORIES: &[&str] = &[
    "cwd",
    "workdir",
    "working_directory",
    "workingDirectory",
    "working_dir",
    "current_dir",
    "dir_path",
    "directory",
];

/// The values of a field beside a command that do not change what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Harmless {
    /// A time, or an amount of output: a number, also as a text.
    Number,
    /// Yes or no, as both only say whether the client waits, or asks its own question.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The name of a shell that the client keeps open.
    Name,
    /// Only "no".
    Off,
    /// Text in which the model tells people what it is about.
    ForPeople,
}

/// The fields beside the command, apart from directories.
const FIELDS: &[(&[&str], Harmless)] = &[
    (
        &[
            "timeout",
            "timeout_ms",
            "timeoutMs",
            "timeout_s",
            "timeout_secs",
            "timeout_seconds",
            "timeoutSeconds",
            "yield_time_ms",
            "max_output_tokens",
            "initial_wait",
            "delay",
            "delay_ms",
        ],
        Harmless::Number,
    ),
    (
        &[
            "run_in_background",
            "is_background",
            "isBackground",
            "background",
            "async",
            "detach",
            "login",
            "requires_approval",
            "require_user_approval",
        ],
        Harmless::Flag,
    ),
    (&["mode"], Harmless::OneOf(&["sync", "async", "detached"])),
    (&["shellId", "sessionId"], Harmless::Name),
    (&["tty", "dangerouslyDisableSandbox", "with_escalated_permissions"], Harmless::Off),
    (&["sandbox_permissions"], Harmless::OneOf(&["use_default"])),
    (&["description", "justification", "explanation", "goal"], Harmless::ForPeople),
];

/// The fields with which a client starts another agent, and which change no more than its task and who does it.
const OF_AGENT: &[(&[&str], Harmless)] = &[
    // An agent of a plugin is called `plugin:agent`.
    (&["prompt", "description", "message", "task_name", "agent"], Harmless::ForPeople),
    (&["model", "reasoning_effort"], Harmless::Name),
    (&["run_in_background", "fork_context"], Harmless::Flag),
    (&["max_turns"], Harmless::Number),
];

/// The reason why a field of the start of an agent may change what that agent may do; `None` for a harmless one.
pub(crate) fn doubt_of_agent(name: &str, value: &Value) -> Option<Doubt> {
    let known = OF_AGENT.iter().find(|(names, _)| names.contains(&name)).map(|(_, it)| *it);
    doubt_of(known, name, value)
}

/// Returns `true` if an argument of a shell tool is text in which the model tells people what the call is about.
pub(crate) fn is_for_people(name: &str, value: &Value) -> bool {
    value.is_string() && harmless(name) == Some(Harmless::ForPeople)
}

/// Returns `true` if an argument of a shell tool says how long the tool waits, or whether it does.
pub(crate) fn is_of_waiting(name: &str) -> bool {
    matches!(harmless(name), Some(Harmless::Number | Harmless::Flag))
}

fn harmless(name: &str) -> Option<Harmless> {
    FIELDS.iter().find(|(names, _)| names.contains(&name)).map(|(_, harmless)| *harmless)
}

/// The effect that a field beside a command may have on what runs.
///
/// Exhaustive on purpose: a question has to give the reason of every doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// The field is not in the table.
    Unknown,
    /// The field is in the table, and its value is another one than the clients send.
    Value,
    /// The command would run without the sandbox of the client, or in a wider one.
    Sandbox,
}

/// The reason why a field beside a command may change what runs; `None` for a harmless one. Directories are not looked
/// at here.
///
/// Null, and an empty text, list or object, give the tool nothing. `false` gives it something: the tool may do by
/// default what `false` switches off. For a field about the sandbox, nothing at all is a doubt, too, as it may
/// switch the sandbox off.
#[must_use]
pub fn doubt(name: &str, value: &Value) -> Option<Doubt> {
    doubt_of(harmless(name), name, value)
}

fn doubt_of(known: Option<Harmless>, name: &str, value: &Value) -> Option<Doubt> {
    let holds = match (known, value) {
        (Some(_), Value::Null) => true,
        (None, _) => is_nothing(value) && !is_of_sandbox(name),
        (Some(Harmless::Number), Value::Number(_)) => true,
        (Some(Harmless::Number), Value::String(text)) => text.bytes().all(|it| it.is_ascii_digit()),
        (Some(Harmless::Flag), Value::Bool(_)) => true,
        (Some(Harmless::Flag), Value::String(text)) => matches!(text.as_str(), "true" | "false"),
        (Some(Harmless::OneOf(known)), Value::String(text)) => known.contains(&text.as_str()),
        (Some(Harmless::Name), Value::String(text)) => text.len() <= 100 && text.chars().all(plain),
        (Some(Harmless::Off), value) => *value == Value::Bool(false),
        (Some(Harmless::ForPeople), value) => value.is_string(),
        (Some(_), _) => false,
    };
    match known {
        _ if holds => None,
        _ if is_of_sandbox(name) => Some(Doubt::Sandbox),
        Some(_) => Some(Doubt::Value),
        None => Some(Doubt::Unknown),
    }
}

fn plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Returns `true` if a field is about the sandbox that a client runs commands in.
fn is_of_sandbox(name: &str) -> bool {
    name.to_ascii_lowercase().contains("sandbox")
        || matches!(name, "with_escalated_permissions" | "additional_permissions")
}
