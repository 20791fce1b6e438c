//! The part of a terminal that the dialogue needs, as a trait, so that tests can replace the terminal.

/// A place that shows text to a person and reads lines from that person.
pub(super) trait Screen {
    /// The width of the screen, in columns.
    fn width(&self) -> usize;

    /// Shows lines of text that are safe to print.
    fn show(&mut self, text: &str) -> Result<(), Gone>;

    /// Reads one line. Keys that were pressed before the prompt was shown do not count.
    fn ask(&mut self, prompt: &LinePrompt<'_>) -> Result<String, Gone>;
}

/// A prompt for one line of input.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePrompt<'a> {
    /// The text before the input.
    pub(super) label: &'a str,
    /// The text that the line begins with, to be edited.
    pub(super) initial: &'a str,
    pub(super) kind: LineUse,
}

/// The use of a line, which decides whether text may be pasted and whether the line stays on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineUse {
    /// A decision: pasted text is ignored.
    Choice,
    /// A message for the model: text may be pasted.
    Text,
    /// Arguments: the line is cleared after it, as they may contain secrets.
    Args,
}

impl<'a> LinePrompt<'a> {
    pub(super) fn choice(label: &'a str) -> Self {
        Self { label, initial: "", kind: LineUse::Choice }
    }
}

/// The reason why no line was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gone {
    /// Esc was pressed: back to the question.
    Cancelled,
    /// Ctrl-C was pressed: the run stops.
    Interrupted,
    /// Ctrl-D was pressed, or the terminal has hung up.
    EndOfInput,
    /// A signal has told the program to end.
    Ended,
    /// Reading from or writing to the terminal failed.
    Failed,
    /// The run was dropped, and no longer needs the answer.
    Abandoned,
}

impl Gone {
    /// The reason for people, as the end of a sentence that begins with "stopped, as".
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Cancelled => "Esc was pressed",
            Self::Interrupted => "Ctrl-C was pressed",
            Self::EndOfInput => "the input has ended",
            Self::Ended => "the program was told to end",
            Self::Failed => "the terminal failed",
            Self::Abandoned => "the run no longer needs an answer",
        }
    }
}
