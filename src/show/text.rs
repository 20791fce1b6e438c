//! A view as lines of text, wrapped by us: a terminal that wraps would let a long value begin a line of its own.

use super::field::Field;
use super::piece::counted;
use super::view::CallView;
use crate::outcome::DeferralKind;

/// Narrower screens get this width.
const NARROWEST: usize = 24;

pub(super) fn lines(view: &CallView, width: usize) -> Vec<String> {
    let mut out = Lines { width: width.max(NARROWEST), lines: Vec::new() };
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
            out.row("      ", &format!("asks again if {} changes", pin.name));
        }
    }
    for note in &view.notes {
        out.field(&format!("# {} says, not checked: ", note.author), &note.field);
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

/// One text as rows of at most so many columns (24 at least), the first behind the prefix. The others begin with `:`
/// behind an indent, so that no text can begin a row of its own. The text is one line, as [`escape`](super::escape)
/// makes it.
///
/// ```
/// let rows = countersign::show::wrap("> ", "delete the logs of last year", 24);
/// assert_eq!(rows, ["> delete the logs of ", "  : last year"]);
/// ```
#[must_use]
pub fn wrap(prefix: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = Lines { width: width.max(NARROWEST), lines: Vec::new() };
    lines.row(prefix, text);
    lines.lines
}

struct Lines {
    width: usize,
    lines: Vec<String>,
}

impl Lines {
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

    /// One row, and the rows it goes on in. It breaks behind a space where one is near, and else within a word.
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

/// How much of a text, in bytes, stands on a row of so many columns.
fn fitting(text: &str, room: usize) -> usize {
    let mut columns = 0;
    let mut space = None;
    // What this module writes, as `\{9 characters left out}`, is one word.
    let mut within = false;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        within = before == '\\' && c == '{' || within && before != '}';
        before = c;
        // Most of what is not ASCII is as wide as a letter, but no line may be too long.
        columns += if c.is_ascii() { 1 } else { 2 };
        if columns > room {
            let near = space.filter(|(_, before)| *before * 2 > room);
            // At least one character: no screen is so narrow that nothing fits.
            return near.map_or(at.max(c.len_utf8() * usize::from(at == 0)), |(end, _)| end);
        }
        if c == ' ' && !within {
            space = Some((at + 1, columns));
        }
    }
    text.len()
}
