//! Text for a terminal: colour, and escaped control characters.

use std::io::IsTerminal as _;

use countersign::show;

/// Adds colour to texts, if enabled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colour is enabled on a terminal, unless `NO_COLOR` is set.
    pub(crate) fn for_stdout() -> Self {
        Self(std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
    }

    fn with(self, code: u8, text: &str) -> String {
        if self.0 { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with(1, text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.with(2, text)
    }

    pub(crate) fn red(self, text: &str) -> String {
        self.with(31, text)
    }

    pub(crate) fn green(self, text: &str) -> String {
        self.with(32, text)
    }

    pub(crate) fn yellow(self, text: &str) -> String {
        self.with(33, text)
    }
}

/// Escapes text of files, models and tools, so that characters in it cannot hide or move other text. Line breaks stay.
pub(crate) fn plain(text: &str) -> String {
    text.split('\n').map(show::escape).collect::<Vec<_>>().join("\n")
}
