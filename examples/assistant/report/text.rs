//! Text for a terminal: colour where one looks, and nothing that plays tricks.

use std::io::IsTerminal as _;

/// Paints, or does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    /// Colour only on a terminal, and not against the user's will.
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

/// What files, models and tools wrote, with everything escaped that would change how the rest is shown: control
/// characters, turned writing directions, characters without width. Line breaks stay.
pub(crate) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        let unseen = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{ad}' | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
        match c {
            '\n' => plain.push(c),
            c if unseen || c.is_control() => plain.extend(c.escape_unicode()),
            c => plain.push(c),
        }
    }
    plain
}
