//! One word of a command, after the shell has removed its quotes.

use std::ops::Range;

use super::commands::Commands;

/// What a word of a command is before the shell expands it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// The program gets exactly this text.
    Literal,
    /// Begins with an unquoted `~`: a path in the user's home directory.
    Tilde,
    /// Has an unquoted `*`, `?` or `[`: any number of file names, also ones that look like options.
    Glob,
    /// Has a parameter (`$HOME`) or a command substitution: any text, and any number of words unless quoted.
    Expansion,
    /// Is one process substitution, `<(command)`: the path of a pipe with the command's output.
    Process,
}

/// One word: an argument, an assigned value, or the target of a redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub(super) text: String,
    pub(super) kind: WordKind,
    pub(super) quoted: bool,
    pub(super) split: bool,
    pub(super) parameters: Vec<String>,
    pub(super) substitutions: Vec<Commands>,
    pub(super) span: Range<usize>,
}

impl Word {
    /// The text without its quotes. Expansions stand as they were written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the shell will make of it.
    #[must_use]
    pub fn kind(&self) -> WordKind {
        self.kind
    }

    /// The text, if the program gets exactly this.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }

    /// Whether any of it was quoted.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Whether it may become several words, or none: an unquoted expansion or a glob.
    #[must_use]
    pub fn may_split(&self) -> bool {
        self.split || self.kind == WordKind::Glob
    }

    /// The parameters that it expands, as `HOME` for `"$HOME/bin"`.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The commands in its substitutions, which run before the word's own command.
    #[must_use]
    pub fn substitutions(&self) -> &[Commands] {
        &self.substitutions
    }

    /// Where it stands in the text, in bytes.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// A word that no text was parsed for.
    pub(super) fn synthetic(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: WordKind::Literal,
            quoted: false,
            split: false,
            parameters: Vec::new(),
            substitutions: Vec::new(),
            span: 0..0,
        }
    }

    /// The same word from a byte of its text on.
    pub(super) fn tail(&self, from: usize) -> Self {
        let mut tail = self.clone();
        tail.text = self.text.get(from..).unwrap_or_default().to_owned();
        tail
    }
}
