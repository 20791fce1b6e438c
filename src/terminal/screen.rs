//! What the dialogue needs of a terminal, so that tests can give it another one.

/// Shows text and reads lines.
pub(super) trait Screen {
    /// How many columns there are.
    fn width(&self) -> usize;

    /// Shows lines of text that are safe to print.
    fn show(&mut self, text: &str) -> Result<(), Gone>;

    /// Reads one line that was typed after everything before was shown.
    fn ask(&mut self, prompt: &Prompt<'_>) -> Result<String, Gone>;
}

/// A line to be typed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompt<'a> {
    /// Stands before what is typed.
    pub(super) label: &'a str,
    /// What is there to be edited.
    pub(super) initial: &'a str,
    pub(super) kind: Kind,
}

/// What a line is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It decides something: nothing pasted counts.
    Choice,
    /// A text.
    Text,
    /// Arguments, which may hold secrets: they do not stay on the screen.
    Args,
}

impl<'a> Prompt<'a> {
    pub(super) fn choice(label: &'a str) -> Self {
        Self { label, initial: "", kind: Kind::Choice }
    }
}

/// Why there is no line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// Esc.
    Cancelled,
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is gone.
    EndOfInput,
    /// The terminal failed.
    Failed,
    /// Nobody waits for the answer any more.
    Abandoned,
}

impl Gone {
    /// For people, behind "stopped, as".
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Cancelled => "Esc was pressed",
            Self::Interrupted => "Ctrl-C was pressed",
            Self::EndOfInput => "the input has ended",
            Self::Failed => "the terminal failed",
            Self::Abandoned => "the run no longer waits for an answer",
        }
    }
}
