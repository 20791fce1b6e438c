//! The part of a terminal that the dialogue needs, as a trait, so that tests can replace the terminal.
//!
//! The operations of a screen hide the differences between terminals: raw mode, arming, redrawing the typed line.
//! The dialogue may rely on this:
//!
//! - keys from before the prompt are never part of a line;
//! - a line of [`LineUse::Choice`] has no pasted text;
//! - an error ends the dialogue with nothing decided, but for [`Gone::Cancelled`], which goes back to the question.

use std::io;

use countersign::show::counted;

/// A place that shows text to a person and reads lines from that person.
pub(super) trait Screen {
    /// The width of the screen, in columns.
    fn width(&self) -> usize;

    /// Shows lines of text that are safe to print.
    fn show(&mut self, text: &str) -> Result<(), Gone>;

    /// Reads one line. Keys that were pressed before the prompt was shown do not count.
    fn ask(&mut self, prompt: &LinePrompt<'_>) -> Result<String, Gone>;

    /// Lets the person change a text in an editor of their own; `None` where they have set none.
    fn edit(&mut self, text: &str) -> Result<Option<io::Result<String>>, Gone>;

    /// Shows a message of this crate, wrapped between words.
    fn say(&mut self, text: &str) -> Result<(), Gone> {
        let rows = words(text, self.width());
        self.show(&rows.join("\n"))
    }

    /// Reads one line; `None` when Esc was pressed.
    fn ask_or_back(&mut self, prompt: &LinePrompt<'_>) -> Result<Option<String>, Gone> {
        match self.ask(prompt) {
            Ok(text) => Ok(Some(text)),
            Err(Gone::Cancelled) => Ok(None),
            Err(gone) => Err(gone),
        }
    }
}

/// A text of this crate as rows of at most this width, wrapped between words. Continued rows are indented.
pub(super) fn words(text: &str, width: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    for line in text.lines() {
        let mut row = String::new();
        for word in line.split_inclusive(' ') {
            if !row.trim().is_empty() && row.len() + word.trim_end().len() > width {
                rows.push(std::mem::replace(&mut row, "  ".to_owned()));
            }
            row.push_str(word);
        }
        rows.push(row);
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
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
///
/// The reasons differ in what the person meant. All but the first end the run as stopped (rule S8). None denies a
/// call: a hang-up is not a no.
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
    /// The person leaves this ask for later, which only a [review](super::TerminalHandler::review) offers.
    Skipped,
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
            Self::Skipped => "it was skipped",
        }
    }

    /// The last line of a dialogue that ends with nothing decided about so many calls. In a review the caller says what has
    /// become of an ask that needs no answer any more.
    pub(super) fn told(self, calls: usize, reviewing: bool) -> Option<String> {
        match (self, reviewing) {
            (Self::Skipped | Self::Abandoned, true) => None,
            (gone, true) => Some(format!("Stopped, as {}: the ask stays open.", gone.why())),
            (gone, false) => {
                let (calls, why) = (counted(calls, "call"), gone.why());
                Some(format!("Stopped, as {why}: {calls} not decided, and not run."))
            }
        }
    }
}
