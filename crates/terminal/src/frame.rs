//! One screen full of text: rows of coloured parts, cut to the width of the terminal.
//!
//! A frame holds text and looks, and no escape sequences. Only [`Frame::draw`] makes sequences of the looks, so no text of
//! a call can bring its own. All texts in a frame come from [`show`](countersign::show), which has escaped controls,
//! direction marks and wide blanks.
//!
//! Widths are an upper bound (two columns for each character outside of ASCII), as how wide a character is differs
//! between terminals. If the bound is too large, a row is cut early, and shows `…`. If it were too small, a row would
//! wrap, move everything below by one row, and draw the end of a call over the next.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::style::{Attribute, Color, Print, ResetColor, SetAttribute, SetForegroundColor};
use crossterm::terminal::{BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate};

/// The look of a part of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    Plain,
    /// Headings, and the subject of an answer.
    Strong,
    /// Text that is not important, or keys that cannot be used now.
    Faint,
    /// The selected row.
    Selected,
    Good,
    Bad,
    /// Questions and warnings.
    Notice,
    /// Places in a diff.
    Place,
}

impl Look {
    fn color(self) -> Option<Color> {
        match self {
            Self::Plain | Self::Strong | Self::Faint | Self::Selected => None,
            Self::Good => Some(Color::Green),
            Self::Bad => Some(Color::Red),
            Self::Notice => Some(Color::Yellow),
            Self::Place => Some(Color::Cyan),
        }
    }

    fn attribute(self) -> Option<Attribute> {
        match self {
            Self::Strong => Some(Attribute::Bold),
            Self::Faint => Some(Attribute::Dim),
            Self::Selected => Some(Attribute::Reverse),
            Self::Plain | Self::Good | Self::Bad | Self::Notice | Self::Place => None,
        }
    }
}

/// The parts of a row, from left to right.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ScreenRow(pub(super) Vec<(Look, String)>);

impl ScreenRow {
    pub(super) fn of(look: Look, text: impl Into<String>) -> Self {
        Self(vec![(look, text.into())])
    }

    pub(super) fn and(mut self, look: Look, text: impl Into<String>) -> Self {
        self.0.push((look, text.into()));
        self
    }

    pub(super) fn columns(&self) -> usize {
        self.0.iter().map(|(_, text)| columns(text)).sum()
    }

    /// The row as far as it fits, and whether it was cut, which `…` says.
    ///
    /// Two columns are kept for the mark, as it counts like any character outside of ASCII. The answer whether it was
    /// cut matters for rule S4: a row that was cut is not a call that was seen.
    pub(super) fn fitted(self, width: usize) -> (Self, bool) {
        if self.columns() <= width {
            return (self, false);
        }
        let mut room = width.saturating_sub(2);
        let mut out = Self::default();
        for (look, text) in self.0 {
            let mut kept = String::new();
            for c in text.chars() {
                let needs = columns(c.encode_utf8(&mut [0; 4]));
                if needs > room {
                    kept.push('…');
                    return (out.and(look, kept), true);
                }
                room -= needs;
                kept.push(c);
            }
            out = out.and(look, kept);
        }
        (out, true)
    }
}

/// The most columns that a text can take: two for each character outside of ASCII.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// The content of the terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) rows: Vec<ScreenRow>,
    /// The column and row of the cursor, where text is typed.
    pub(super) cursor: Option<(usize, usize)>,
}

impl Frame {
    /// Writes the whole frame. Each row clears the rest of its line, so nothing of an earlier frame stays.
    ///
    /// We write the whole screen each time, between the marks of a synchronized update. A partial update would depend
    /// on what the terminal shows, and a message of another process on stderr may have changed that. We clear rows
    /// beyond the frame.
    pub(super) fn draw(
        &self,
        out: &mut impl Write,
        size: (u16, u16),
        colored: bool,
    ) -> io::Result<()> {
        let (width, height) = size;
        // In one piece: standard error has no buffer, and half a screen may be shown where the marks are not known.
        let mut out = io::BufWriter::with_capacity(1 << 16, out);
        queue!(out, BeginSynchronizedUpdate, Hide)?;
        let empty = ScreenRow::default();
        for y in 0..height {
            let row = self.rows.get(usize::from(y)).unwrap_or(&empty);
            queue!(out, MoveTo(0, y))?;
            for (look, text) in row.clone().fitted(usize::from(width)).0.0 {
                if let Some(attribute) = look.attribute() {
                    queue!(out, SetAttribute(attribute))?;
                }
                if let Some(color) = look.color().filter(|_| colored) {
                    queue!(out, SetForegroundColor(color))?;
                }
                queue!(out, Print(text), SetAttribute(Attribute::Reset))?;
                if colored {
                    queue!(out, ResetColor)?;
                }
            }
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
        if let Some((x, y)) = self.cursor {
            let cell = |at: usize, most: u16| {
                u16::try_from(at).unwrap_or(most).min(most.saturating_sub(1))
            };
            queue!(out, MoveTo(cell(x, width), cell(y, height)), Show)?;
        }
        queue!(out, EndSynchronizedUpdate)?;
        out.flush()
    }
}

/// A row of a call's details. Its look follows from its first characters, which no text of a call can imitate.
///
/// Only [`show`](countersign::show) writes the marks in the first columns: an argument begins with its name, a line of a
/// text with ` |`, and a continued row with `:`. So a line of a call that begins with ` ? ` stands behind ` |`, and stays
/// plain.
pub(super) fn detail(text: String, before: Look) -> ScreenRow {
    let look = match text.get(..5).unwrap_or(&text) {
        "    |" => match text.as_bytes().get(5) {
            Some(b'+') => Look::Good,
            Some(b'-') => Look::Bad,
            Some(b'@') => Look::Place,
            _ => Look::Plain,
        },
        start if start.starts_with("  ? ") || start.starts_with("  ! ") => Look::Notice,
        start if start.starts_with("  = ") => Look::Strong,
        start if start.starts_with("  # ") => Look::Faint,
        // The continuation of the row before.
        _ if text.trim_start().starts_with(": ") => before,
        start if !start.starts_with(' ') => Look::Strong,
        _ => Look::Plain,
    };
    ScreenRow::of(look, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_is_too_long_says_so() {
        let row = || ScreenRow::of(Look::Strong, "abc").and(Look::Plain, "日本語");
        assert_eq!(row().fitted(9), (row(), false));
        let (cut, was_cut) = row().fitted(8);
        assert_eq!((cut.0[1].1.as_str(), was_cut), ("日…", true));
        assert!(cut.columns() <= 8);
        assert_eq!(row().fitted(2).0, ScreenRow::of(Look::Strong, "…"));
    }

    /// S1: nothing of a call reaches the terminal but the escaped text.
    #[test]
    fn without_color_a_frame_has_none() {
        let frame = Frame { rows: vec![ScreenRow::of(Look::Bad, "no")], cursor: None };
        let drawn = |colored| {
            let mut out = Vec::new();
            frame.draw(&mut out, (10, 2), colored).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert!(drawn(true).contains("\u{1b}[38;5;9m"));
        assert!(!drawn(false).contains("\u{1b}[38"));
    }
}
