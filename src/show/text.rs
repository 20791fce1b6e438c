//! A view as lines of text. They are wrapped here: where a terminal wraps, a long value could begin a line that looks
//! like another part of the view.

use std::fmt;

use super::field::Field;
use super::piece::counted;
use super::preview::PreviewView;
use super::view::CallView;
use crate::outcome::DeferralKind;

/// The smallest width in columns; narrower screens get this one, too.
const NARROWEST: usize = 24;

impl CallView {
    /// The call as text, at most this many columns wide. Longer lines are wrapped and indented, so that no value can
    /// begin a line that looks like another part of the view.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        lines(self, width).join("\n")
    }
}

impl fmt::Display for CallView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(100))
    }
}

/// The first characters of a row say what it is, and no text of a call can begin a row with those of another kind: an
/// argument begins with two spaces and its name (a letter, a digit, `_`, `-` or a quote), `  ! ` is a note about the
/// call, `  ? ` a question, `  = ` the heading of a preview, four spaces and `|` its lines, and a continued row begins
/// with `:`.
fn lines(view: &CallView, width: usize) -> Vec<String> {
    let mut out = WrappedLines { width: width.max(NARROWEST), lines: Vec::new() };
    out.row("", &view.headline);
    if !says_all(view) {
        for field in &view.args {
            out.field("", field);
        }
    }
    if view.args_left_out > 0 {
        let more = counted(view.args_left_out, "more argument");
        let are = if view.args_left_out == 1 { "is" } else { "are" };
        out.row("  ! ", &format!("{more} {are} left out"));
    }
    match view.kind {
        DeferralKind::Approval => {}
        DeferralKind::External | DeferralKind::Agent => out.row("  ! ", "executed elsewhere"),
        DeferralKind::Question => out.row("  ! ", "answered elsewhere"),
    }
    if view.blocked {
        out.row("  ! ", "blocked by policy");
    }
    if let Some(changed) = &view.changed {
        out.row("  ! ", &format!("approved before, but changed since: {changed}"));
    }
    if let Some(before) = &view.denied_before {
        out.row("  ! ", before);
    }
    for question in &view.questions {
        out.row("  ? ", &format!("{} asks: {}", question.asked_by, question.reason));
        for pin in &question.pins {
            out.row(
                "      ",
                &format!("an approval counts only while this stays the same: {}", pin.name),
            );
        }
    }
    for preview in &view.previews {
        out.preview(preview);
    }
    for note in &view.notes {
        out.field(&format!("# note by {} (unverified): ", note.author), &note.field);
    }
    out.lines
}

/// Whether the headline shows every argument, in full.
fn says_all(view: &CallView) -> bool {
    let short = |field: &Field| match field.lines.as_slice() {
        [line] if field.note.is_empty() => Some(format!("{}: {line}", field.name)),
        _ => None,
    };
    let args: Option<Vec<_>> = view.args.iter().map(short).collect();
    view.args_left_out == 0
        && args.is_some_and(|args| view.headline == format!("{}({})", view.tool, args.join(", ")))
}

/// Wraps a text into rows of at most `width` columns (24 at least). The first row begins with the prefix, the others
/// with an indent and `:`, so that no text can begin a row that looks like another one. The text has to be one line, as
/// [`escape`](super::escape) makes it.
///
/// ```
/// let rows = countersign::show::wrap("> ", "delete the logs of last year", 24);
/// assert_eq!(rows, ["> delete the logs of ", "  : last year"]);
/// ```
#[must_use]
pub fn wrap(prefix: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = WrappedLines { width: width.max(NARROWEST), lines: Vec::new() };
    lines.row(prefix, text);
    lines.lines
}

struct WrappedLines {
    width: usize,
    lines: Vec<String>,
}

impl WrappedLines {
    fn field(&mut self, label: &str, field: &Field) {
        match field.lines.as_slice() {
            [line] if field.note.is_empty() => {
                self.row("  ", &format!("{label}{}: {line}", field.name));
            }
            lines => {
                let note = if field.note.is_empty() { "" } else { " " };
                self.row("  ", &format!("{label}{}:{note}{}", field.name, field.note));
                for line in lines {
                    self.row("    | ", line);
                }
            }
        }
    }

    fn preview(&mut self, preview: &PreviewView) {
        self.row("  = ", &preview.heading);
        for line in &preview.lines {
            self.row(&format!("    |{}", line.sign.char()), &line.text);
        }
    }

    /// Adds one row and its continuation rows. A row is broken after a space where one is near, and else within a word.
    fn row(&mut self, prefix: &str, text: &str) {
        let indent = " ".repeat(prefix.len().max(2));
        let next = format!("{indent}: ");
        let mut begins = prefix.to_owned();
        let mut rest = text;
        loop {
            let room = self.width.saturating_sub(begins.len());
            let (row, behind) = rest.split_at(fitting(rest, room));
            self.lines.push(begins + row);
            if behind.is_empty() {
                return;
            }
            begins = next.clone();
            rest = behind;
        }
    }
}

/// The length in bytes of the beginning of a text that fits on a row of `room` columns.
///
/// In columns of the terminal, with wide characters counted as two.
fn fitting(text: &str, room: usize) -> usize {
    let mut columns = 0;
    let mut space = None;
    // A mark that this module writes, such as `\{9 characters left out}`, is one word.
    let mut within = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        within = before == '\\' && c == '{' || within && before != '}';
        before = c;
        // Most characters outside of ASCII take one column, but some take two, and no row may be too long.
        columns += if c.is_ascii() { 1 } else { 2 };
        if columns > room {
            let near = space.filter(|(_, before)| *before * 2 > room);
            // At least one character, so that wrapping always ends.
            return near.map_or(at.max(c.len_utf8() * usize::from(at == 0)), |(end, _)| end);
        }
        if c == ' ' && !within {
            space = Some((at + 1, columns));
        }
    }
    text.len()
}
