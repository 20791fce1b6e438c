//! The output of commands, and their exit statuses.
//!
//! We make lines for programs and a text for people from the same values. With `--json`, each line is one object, so a
//! reader can begin before the end. Commands that scripts read (`asks`, `pins`) print these lines wherever stdout is no
//! terminal, and the text on a terminal or with `--text`. Errors are one line on stderr, and never contain the arguments
//! of a call.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use countersign::error::with_causes;
use countersign::ledger::LedgerError;
use countersign::show;
use countersign_cli::config::ConfigError;
use countersign_mcp::McpError;
use countersign_stores::StoreUrlError;
use serde_json::{Value, json};

/// The width of texts about calls and tools, in columns.
pub(crate) const WIDTH: usize = 100;

/// The result of a command: the lines to print, and the exit status.
pub(crate) struct CommandOutput {
    /// The lines of `--json`, which are also printed without it where there is no `text`.
    pub(crate) lines: Vec<Value>,
    /// The lines for people.
    text: Option<String>,
    /// `true` if the text is only for a terminal, unless it is asked for.
    on_terminals: bool,
    /// A line on stderr beside the lines for programs.
    note: Option<String>,
    pub(crate) status: u8,
}

impl CommandOutput {
    pub(crate) fn new(status: u8, line: Value) -> Self {
        Self::of(status, vec![line])
    }

    pub(crate) fn of(status: u8, lines: Vec<Value>) -> Self {
        Self { lines, text: None, on_terminals: false, note: None, status }
    }

    /// A text, which is the field `text` in JSON.
    pub(crate) fn text(status: u8, text: &str) -> Self {
        Self::new(status, json!({"text": text})).for_people(text)
    }

    /// Adds another form of the result, for people.
    pub(crate) fn for_people(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds a line to the form for people.
    pub(crate) fn and_for_people(mut self, line: &str) -> Self {
        let text = self.text.get_or_insert_default();
        let begins = if text.is_empty() { "" } else { "\n" };
        *text += &format!("{begins}{line}");
        self
    }

    /// Adds a form for people who look at a terminal: elsewhere the lines are what scripts read.
    pub(crate) fn for_terminals(self, text: impl Into<String>) -> Self {
        Self { on_terminals: true, ..self.for_people(text) }
    }

    /// Adds a line on stderr for people whose output is lines for programs, such as none at all.
    pub(crate) fn noting(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn is_text(&self, form: OutputForm) -> bool {
        match form {
            OutputForm::Json => false,
            OutputForm::Text => true,
            OutputForm::Default => !self.on_terminals || std::io::stdout().is_terminal(),
        }
    }
}

/// In which form results are printed.
#[derive(Clone, Copy)]
pub(crate) enum OutputForm {
    /// The form of the command.
    Default,
    /// Lines of JSON.
    Json,
    /// Text, where the command has one.
    Text,
}

/// The error of a command that has failed; nothing has changed.
pub(crate) enum CommandError {
    /// The command, its input or the configuration cannot be used: exit status 2.
    Usage(String),
    /// The store or a file cannot be reached, read or written: exit status 1.
    Store(String),
}

impl From<LedgerError> for CommandError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Unkeepable { .. } => Self::Usage(with_causes(&error)),
            error => Self::Store(with_causes(&error)),
        }
    }
}

impl From<ConfigError> for CommandError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Store(_) | ConfigError::Refused(_) | ConfigError::NoStore { .. } => {
                Self::Store(with_causes(&error))
            }
            error => Self::Usage(with_causes(&error)),
        }
    }
}

impl From<StoreUrlError> for CommandError {
    fn from(error: StoreUrlError) -> Self {
        ConfigError::from(error).into()
    }
}

impl From<McpError> for CommandError {
    fn from(error: McpError) -> Self {
        match error {
            McpError::Config { .. } => Self::Usage(with_causes(&error)),
            error => Self::Store(with_causes(&error)),
        }
    }
}

/// Prints the result of a command, and gives its exit status.
pub(crate) fn print(result: Result<CommandOutput, CommandError>, form: OutputForm) -> ExitCode {
    match result {
        Ok(output) => {
            let is_text = output.is_text(form);
            let CommandOutput { lines, text, note, status, .. } = output;
            let mut out = std::io::stdout().lock();
            // A closed pipe is no error: the reader may want only the first lines (`| head`).
            match text.filter(|_| is_text) {
                Some(text) => drop(writeln!(out, "{text}")),
                None => {
                    drop(lines.iter().try_for_each(|line| writeln!(out, "{}", one_line(line))));
                    if let Some(note) = note {
                        let _ = writeln!(std::io::stderr(), "{note}");
                    }
                }
            }
            status.into()
        }
        Err(CommandError::Usage(problem)) => failed(&problem, 2),
        Err(CommandError::Store(problem)) => failed(&problem, 1),
    }
}

/// A value as one line of JSON, for every reader: some also split lines at the separators of Unicode.
fn one_line(value: &Value) -> String {
    let line = value.to_string();
    match line.contains(['\u{85}', '\u{2028}', '\u{2029}']) {
        true => line
            .replace('\u{85}', r"\u0085")
            .replace('\u{2028}', r"\u2028")
            .replace('\u{2029}', r"\u2029"),
        false => line,
    }
}

/// Prints one line to stderr, and gives the exit status.
pub(crate) fn failed(problem: &str, status: u8) -> ExitCode {
    let words: Vec<_> = problem.split_whitespace().collect();
    let _ = writeln!(std::io::stderr(), "error: {}", show::escape_hidden(&words.join(" ")));
    status.into()
}
