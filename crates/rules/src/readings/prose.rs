//! The arguments that hold text for people, content of files or patterns, and name no file.
//!
//! A tool that writes has the new text of the file among its arguments. Read as a path, a line such as `// see ../x` leads
//! out of the workspace, and a rule about paths would speak about every second file. So one table has the tools of known
//! clients, with the arguments that are content. A list has names that hold text for people in nearly every tool: we read
//! such a text as one path, and not its words.

use countersign::args::Args;
use countersign_shell::Sieve;
use serde_json::Value;

/// The tools of known clients, and programs like them, with the arguments that are content and name no file.
///
/// The names of the tools are those of the vocabulary of hooks, and those that libraries usually give them. Claude Code
/// 2.1.330, Codex CLI 0.169.0, Gemini CLI 0.61.0, Copilot CLI 1.0.102, opencode 1.18.33, the reference servers of MCP
/// 2026-09 (2026-11-23).
const CONTENT: &[(&[&str], &[&str])] = &[
    (
        &[
            "write_file",
            "write",
            "create_file",
            "create",
            "save_file",
            "write_to_file",
            "append_file",
            "append_to_file",
        ],
        &["content", "contents", "text", "file_text", "file_content"],
    ),
    (
        &[
            "edit_file",
            "edit",
            "multi_edit",
            "multiedit",
            "replace",
            "replace_in_file",
            "str_replace",
            "insert",
            "str_replace_editor",
            "str_replace_based_edit_tool",
            "edit_block",
            "apply_diff",
        ],
        &[
            "content",
            "old_string",
            "new_string",
            "oldString",
            "newString",
            "old_str",
            "new_str",
            "old_text",
            "new_text",
            "oldText",
            "newText",
            "insert_text",
            "file_text",
            "instruction",
            "new_source",
        ],
    ),
    (&["spawn_agent", "task", "agent"], &["prompt", "description", "message"]),
    (
        &["search_files", "grep", "grep_search", "grep_files", "ripgrep", "rg"],
        &["pattern", "query", "regex"],
    ),
    (&["fetch", "web_fetch", "webfetch"], &["prompt"]),
    (&["web_search", "websearch", "codesearch"], &["query"]),
    (
        &["todo", "ask_user", "plan"],
        &["todos", "plan", "explanation", "questions", "question", "content"],
    ),
];

/// Arguments that hold text for people in nearly every tool.
const PROSE: &[&str] = &[
    "answer",
    "body",
    "bodies",
    "caption",
    "comment",
    "content",
    "contents",
    "context",
    "description",
    "details",
    "explanation",
    "html",
    "input_text",
    "instruction",
    "instructions",
    "justification",
    "markdown",
    "message",
    "messages",
    "note",
    "notes",
    "prompt",
    "prompts",
    "question",
    "questions",
    "reason",
    "response",
    "sql",
    "subject",
    "summary",
    "text",
    "thought",
    "title",
];

/// Arguments that hold a pattern in nearly every tool.
const PATTERNS: &[&str] = &[
    "glob",
    "globs",
    "include",
    "includes",
    "file_pattern",
    "glob_pattern",
    "pattern",
    "patterns",
    "query",
    "regex",
];

/// Arguments that say what a tool leaves out: nothing of it is read or written.
const EXCLUDED: &[&str] = &[
    "exclude",
    "excludes",
    "excludePatterns",
    "exclude_patterns",
    "excludeGlobs",
    "exclude_globs",
    "ignore",
    "ignorePatterns",
    "ignore_patterns",
];

/// Arguments that hold a command or a program in nearly every tool.
const SCRIPTS: &[&str] = &[
    "args",
    "argv",
    "bash",
    "cmd",
    "code",
    "command",
    "commands",
    "exec",
    "javascript",
    "program",
    "python",
    "run",
    "script",
    "shell",
    "source",
];

/// Returns `true` if an argument holds a command or a program, of which each word may name a file.
pub(crate) fn is_script(field: &str) -> bool {
    SCRIPTS.contains(&field)
}

/// Parts of names of arguments that may hold a command: `shellcommand`, `run_script2` and `PowerShell` have one.
const COMMAND_PARTS: &[&str] = &[
    "bash",
    "cmd",
    "code",
    "command",
    "entrypoint",
    "eval",
    "exec",
    "expr",
    "javascript",
    "lambda",
    "perl",
    "php",
    "powershell",
    "program",
    "pwsh",
    "python",
    "ruby",
    "script",
    "shell",
    "spawn",
    "stdin",
    "subprocess",
    "sudo",
];

/// Words of such names that are parts of too many others.
const COMMAND_WORDS: &[&str] = &[
    "arg",
    "args",
    "argument",
    "arguments",
    "argv",
    "awk",
    "bat",
    "csh",
    "dash",
    "fish",
    "hook",
    "js",
    "ksh",
    "ps1",
    "py",
    "rb",
    "run",
    "runs",
    "sed",
    "sh",
    "source",
    "sources",
    "sql",
    "ssh",
    "zsh",
];

/// Words with one of the parts that mean another thing.
const NO_COMMANDS: &[&str] = &["description", "descriptor", "subscription", "transcript"];

/// The name of a field that may hold a command, if the arguments of a tool have one at any depth.
///
/// The parts of a name count, in small and large letters: `shellcommand`, `run_script` and `cmd2` hold one. A list of
/// arguments (`args`) does; a text of that name is mostly for people. JSON inside of a text is read, too. A number or a
/// flag is no command.
///
/// ```
/// use countersign_rules::readings::prose::command_field;
/// use serde_json::json;
///
/// assert_eq!(command_field(&json!({"step": {"shellCommand": "make"}})).as_deref(), Some("shellCommand"));
/// assert_eq!(command_field(&json!({"params": r#"{"cmd": "make"}"#})).as_deref(), Some("cmd"));
/// let skill = json!({"skill": "review", "args": "the last commit", "run_in_background": true});
/// assert_eq!(command_field(&skill), None);
/// ```
#[must_use]
pub fn command_field(args: &Value) -> Option<String> {
    match args {
        Value::Object(fields) => fields.iter().find_map(|(name, value)| match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
            value if is_unreadable(value) => Some(name.clone()),
            Value::String(_) if ARGUMENTS.contains(&&*name.to_lowercase()) => command_field(value),
            // An object has names of its own.
            Value::Object(_) if name.eq_ignore_ascii_case("arguments") => command_field(value),
            _ if may_hold_command(name) => Some(name.clone()),
            value => command_field(value),
        }),
        Value::Array(items) => items.iter().find_map(command_field),
        Value::String(text) => command_field(&json_inside(text)?.ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Names of lists of words behind a command, and of texts for people.
const ARGUMENTS: &[&str] = &["arg", "args", "argument", "arguments"];

/// Tells whether a field of this name may hold a command.
fn may_hold_command(name: &str) -> bool {
    let small = NO_COMMANDS.iter().fold(name.to_lowercase(), |name, word| name.replace(word, ""));
    let is_word = |word: String| {
        let bare = word.trim_end_matches(|c: char| c.is_ascii_digit());
        COMMAND_WORDS.contains(&word.as_str()) || COMMAND_WORDS.contains(&bare)
    };
    COMMAND_PARTS.iter().any(|part| small.contains(part))
        || words(name).any(is_word)
        || words(&small).any(is_word)
}

/// The JSON that a text holds, if it begins like an object or a list. The error is one that cannot be read.
fn json_inside(text: &str) -> Option<Result<Value, ()>> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    if text.starts_with('"') {
        let inner: String = serde_json::from_str(text).ok()?;
        return json_inside(&inner);
    }
    text.starts_with(['{', '[']).then(|| {
        // As the value of a field, a key that is there twice is an error, too: other readers take another one of them.
        let read = Args::parse(&format!("{{\"json\": {text}}}"));
        read.map(|args| args.to_value()).map_err(|_| ())
    })
}

/// Tells whether a text begins like JSON, cannot be read strictly, and may hold a command for a reader that is less strict.
fn is_unreadable(value: &Value) -> bool {
    match value {
        Value::String(text) => {
            let is_broken = matches!(json_inside(text), Some(Err(())));
            is_broken && (text.contains('\\') || may_hold_command(text))
        }
        Value::Array(items) => items.iter().any(is_unreadable),
        _ => false,
    }
}

/// The words of a name, in small letters: those of `shellCommand` and of `shell_command` are `shell` and `command`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut found = vec![String::new()];
    let mut was_small = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && was_small {
            found.push(String::new());
        }
        was_small = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(last) = found.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    found.into_iter()
}

/// The way in which the texts of an argument are read as paths.
///
/// Exhaustive on purpose: a door has to decide what a text of each role may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// It may name a file.
    Named,
    /// It is a pattern, and may stand for files.
    Pattern,
    /// It is for people: the whole may name a file, its words do not.
    Prose,
    /// It is content of a tool that is known, or says what is left out: it names no file, whatever the rule.
    Content,
}

/// All names of arguments that are in one of the lists.
const KNOWN: Sieve = {
    let mut known = with_all(with_all(with_all(Sieve::new(), PROSE), PATTERNS), EXCLUDED);
    let mut rows = CONTENT;
    while let [(_, fields), more @ ..] = rows {
        known = with_all(known, fields);
        rows = more;
    }
    known
};

const fn with_all(mut sieve: Sieve, names: &[&str]) -> Sieve {
    let mut rest = names;
    while let [name, more @ ..] = rest {
        sieve = sieve.with(name);
        rest = more;
    }
    sieve
}

/// The role of an argument of a tool.
pub(crate) fn role(tool: &str, field: &str) -> TextRole {
    // The usual name is in no list, and looks like one that is.
    if field == "path" || !KNOWN.may_have(field) {
        return TextRole::Named;
    }
    let is_content =
        CONTENT.iter().any(|(tools, fields)| fields.contains(&field) && tools.contains(&tool));
    match field {
        _ if is_content || EXCLUDED.contains(&field) => TextRole::Content,
        _ if PROSE.contains(&field) => TextRole::Prose,
        _ if PATTERNS.contains(&field) => TextRole::Pattern,
        _ => TextRole::Named,
    }
}
