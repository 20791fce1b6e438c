//! The arguments that hold text for people, content of files or patterns, and name no file.
//!
//! A tool that writes has the new text of the file among its arguments. Read as a path, a line such as `// see ../x`
//! leads out of the workspace, so that a rule about paths would speak about every second file. The tools of known
//! clients are in a table with the arguments that are content. Names that hold text for people in nearly every tool are in
//! a list: such a text is still read as one path, and its words are not.

use crate::shell::sieve::Sieve;

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

/// How the texts of an argument are read as paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextRole {
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
    if !KNOWN.may_have(field) {
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
