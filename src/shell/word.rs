//! Words of a command, with their quotes removed.

use std::ops::Range;

use super::commands::Commands;

/// The kind of a word, which says what the shell will do with it.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WordKind {
    /// A literal: the program receives exactly this text.
    Literal,
    /// A path in the user's home directory: the word begins with an unquoted `~`.
    Tilde,
    /// A pattern with an unquoted `*`, `?` or `[`. It becomes any number of file names, including names that look like
    /// options.
    Glob,
    /// A word with a parameter (`$HOME`) or a command substitution. It becomes any text, and any number of words unless
    /// it is quoted.
    Expansion,
    /// A process substitution, `<(command)`: the path of a pipe with the command's output.
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
    /// The text without its quotes. Parameters are kept as written, and a command substitution appears as `$(…)`.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The kind of the word.
    #[must_use]
    pub fn kind(&self) -> WordKind {
        self.kind
    }

    /// The text, if the program receives exactly this text.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        (self.kind == WordKind::Literal).then_some(self.text.as_str())
    }

    /// Whether any part of the word was quoted or escaped.
    #[must_use]
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    /// Whether the shell may turn the word into several words, or none: an unquoted expansion or a glob.
    #[must_use]
    pub fn may_split(&self) -> bool {
        self.split || self.kind == WordKind::Glob
    }

    /// The names of the parameters in the word, such as `HOME` for `"$HOME/bin"`.
    #[must_use]
    pub fn parameters(&self) -> &[String] {
        &self.parameters
    }

    /// The commands in the word's substitutions, which run before the command itself.
    #[must_use]
    pub fn substitutions(&self) -> &[Commands] {
        &self.substitutions
    }

    /// The byte range of the word in the text.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// A literal word that does not come from a text; its span is empty.
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

    /// The word without the bytes of its text before `from`.
    pub(super) fn tail(&self, from: usize) -> Self {
        let mut tail = self.clone();
        tail.text = self.text.get(from..).unwrap_or_default().to_owned();
        tail
    }
}
