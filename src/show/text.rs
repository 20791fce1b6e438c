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
    /// The call as text, at most this many columns wide, in the order in which a person decides: who wants what (or the call
    /// alone, where no door says who), why it is asked about, what it changes, and its arguments. We wrap and indent longer
    /// lines: no value can begin a line that looks like another part of the view. [`details`](Self::details) has the rest.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        lines(self, width).join("\n")
    }

    /// The details that a surface shows on demand, as text like that of [`text`](Self::text): the values that an approval is
    /// pinned to, and the notes of layers, tools and servers, each with its author. Empty where there are none.
    ///
    /// ```
    /// use countersign::show::{CallView, Limits};
    /// use countersign::{Decision, DeferredToolRequests, FunctionToolset, ToolCall, ToolsExt, Turn, decide_fn, tool_fn};
    /// use serde_json::json;
    ///
    /// # #[derive(serde::Deserialize, countersign::schemars::JsonSchema)] struct NoArgs {}
    /// # tokio::runtime::Runtime::new().unwrap().block_on(async {
    /// let policy = decide_fn(|_, _| Decision::ask("changes production").with_pin("commit", "7c3a"));
    /// let deploy = tool_fn("deploy", "Deploys", async |_: NoArgs| Ok::<_, countersign::ToolError>("deployed"));
    /// let turn = Turn::new(FunctionToolset::new().tool(deploy).layered(policy.named("policy")));
    /// let report = turn.run(vec![ToolCall::new("c1", "deploy", json!({}))]).await?;
    /// let requests = report.deferred().unwrap();
    ///
    /// let view = CallView::of(&requests, "c1", Limits::default()).unwrap();
    /// assert_eq!(view.text(80), "deploy()\n  ? policy asks: changes production");
    /// assert_eq!(view.details(80), "  # policy asks again if this changes: commit (now 7c3a)");
    /// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn details(&self, width: usize) -> String {
        let mut out = WrappedLines::of(width);
        for question in &self.questions {
            for pin in &question.pins {
                let (layer, name, now) = (&question.asked_by, &pin.name, pin.value());
                out.row("  # ", &format!("{layer} asks again if this changes: {name} (now {now})"));
            }
        }
        for note in &self.notes {
            out.field(&format!("# note by {}: ", note.author), &note.field);
        }
        out.lines.join("\n")
    }
}

impl fmt::Display for CallView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(100))
    }
}

/// The first characters of a row say what it is, and no text of a call can begin a row with those of another kind: an
/// argument begins with two spaces and its name (a letter, a digit, `_`, `-` or a quote), `  ! ` is a note about the
/// call, `  < ` says where an argument comes from, `  ? ` a question, `  = ` the heading of a preview, `  # ` a note, four
/// spaces and `|` the lines of a text, and a continued row begins with `:`.
fn lines(view: &CallView, width: usize) -> Vec<String> {
    let mut out = WrappedLines::of(width);
    // "An agent wants to call" says nothing that the call does not.
    out.row("", view.line());
    for origin in view.origins.iter().filter(|origin| origin.warning) {
        out.row("  ! ", &format!("{} {}", origin.field, origin.text));
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
    }
    for preview in &view.previews {
        out.preview(preview);
    }
    if !view.says_all {
        for field in &view.args {
            out.arg(field);
        }
    }
    if view.args_left_out > 0 {
        let more = counted(view.args_left_out, "more argument");
        let are = if view.args_left_out == 1 { "is" } else { "are" };
        out.row("  ! ", &format!("{more} {are} left out"));
    }
    for origin in view.origins.iter().filter(|origin| !origin.warning) {
        out.row("  < ", &format!("{}: {}", origin.field, origin.text));
    }
    out.lines
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
    let mut lines = WrappedLines::of(width);
    lines.row(prefix, text);
    lines.lines
}

struct WrappedLines {
    width: usize,
    lines: Vec<String>,
}

impl WrappedLines {
    /// An argument. One that a preview above shows is named, and not repeated.
    fn arg(&mut self, field: &Field) {
        match field {
            Field { repeated: true, .. } => {
                let size = if field.note.is_empty() { "" } else { ", " };
                self.row("  ", &format!("{}: {}{size}shown above", field.name, field.note));
            }
            Field { for_people: true, .. } => {
                let mut field = field.clone();
                let words = "in the model's words";
                field.note = match field.note.is_empty() {
                    true => words.to_owned(),
                    false => format!("{words}, {}", field.note),
                };
                self.field("", &field);
            }
            _ => self.field("", field),
        }
    }

    fn of(width: usize) -> Self {
        Self { width: width.max(NARROWEST), lines: Vec::new() }
    }

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
            let (sign, text) = line.in_diff();
            self.row(&format!("    |{sign}"), text);
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
/// We count columns of the terminal, in which a wide character takes two.
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
