//! Previews, as an approver sees them (rules S1, S7).

use serde::Serialize;

use super::field::{Limits, name, window};
use super::keys::{ShowRule, names_script};
use super::mask::masked;
use super::piece::{Omitted, Piece, Style, counted, elide, left_out};
use crate::decision::{Change, Preview, PreviewContent, Question};

/// The longest title in a heading, in characters.
const TITLE: usize = 200;
/// The longest cell of a table, in characters; a longer one is left out in its middle, with a mark.
const CELL: usize = 60;

/// A preview, as an approver sees it: what a layer or tool shows of the effects of a call. All texts are safe to print.
///
/// ```
/// use countersign::show::PreviewSign;
/// assert_eq!([PreviewSign::Plain, PreviewSign::Added, PreviewSign::Removed].map(PreviewSign::char), [' ', '+', '-']);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PreviewView {
    /// The layer or tool that made the preview.
    pub author: String,
    /// The name of the shown text: the path of a file, for example.
    pub title: String,
    /// The change of the text of the title by a call, for the difference of two texts.
    pub change: Option<Change>,
    /// The author, the title and whether the preview is pinned, as one line.
    pub heading: String,
    /// `true` if the call is asked about again if the content has changed; otherwise the content changes by itself.
    pub pinned: bool,
    /// The lines of the preview; those of a table are its rows, with columns of one width.
    pub lines: Vec<PreviewLine>,
    /// The cells of a table, of which the first row names the columns; empty for other previews.
    pub cells: Vec<Vec<String>>,
    /// `true` if a part of the stored preview is left out of the view; [`Limits::none`] shows it (rule S4).
    pub left_out: bool,
    /// The number of lines that are not stored, so that no surface can show them.
    pub cut: usize,
}

/// One line of a preview, with what it means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PreviewLine {
    /// The sign of the line: added, removed or neither.
    pub sign: PreviewSign,
    /// The text of the line, without its sign.
    pub text: String,
    /// The number of the line in the old text, from 1 on; `None` for an added line, and outside of a difference.
    pub old: Option<usize>,
    /// The number of the line in the new text; `None` for a removed line, and outside of a difference.
    pub new: Option<usize>,
}

impl PreviewLine {
    /// The line as a diff has it, in two parts: the sign, and the text. The place of the next lines, `@@ -1 +1 @@`, has no sign.
    ///
    /// ```
    /// use countersign::Decision;
    /// use countersign::decision::Preview;
    /// use countersign::ledger::Ask;
    /// use countersign::show::{CallView, Limits};
    ///
    /// let asked = Decision::ask("writes").with_preview(Preview::diff("a", "one\n", "two\n"));
    /// let ask = Ask::new("run-1", "root/c1", "write").with_questions(asked.questions().to_vec());
    /// let [view] = &CallView::all(&ask.requests(), Limits::default())[..] else { panic!("one call") };
    /// let lines = view.previews[0].lines.iter().map(|line| line.in_diff());
    /// let lines: Vec<_> = lines.map(|(sign, text)| format!("{sign}{text}")).collect();
    /// assert_eq!(lines, ["@@ -1 +1 @@", "-one", "+two"]);
    /// ```
    #[must_use]
    pub fn in_diff(&self) -> (&'static str, &str) {
        let sign = match self.sign {
            PreviewSign::Plain => " ",
            PreviewSign::Added => "+",
            PreviewSign::Removed => "-",
            PreviewSign::Remark if self.text.starts_with("@@ ") => "",
            PreviewSign::Remark => "@",
        };
        (sign, &self.text)
    }
}

/// The meaning of a line of a preview.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PreviewSign {
    /// A line of a text, or one that does not change.
    #[default]
    Plain,
    /// A line that the call adds.
    Added,
    /// A line that the call removes.
    Removed,
    /// The place of the next lines, or a remark such as a missing line break at the end.
    Remark,
}

impl PreviewSign {
    /// The sign as a diff has it: ` `, `+`, `-` or `@`.
    #[must_use]
    pub fn char(self) -> char {
        match self {
            Self::Plain => ' ',
            Self::Added => '+',
            Self::Removed => '-',
            Self::Remark => '@',
        }
    }
}

/// The previews of all questions, in their order. Equal ones of one author are shown once.
///
/// If two authors show the same, both are shown: they tell the person that both have seen it.
pub(super) fn views(
    questions: &[Question],
    limits: Limits,
    omitted: &mut Omitted,
) -> Vec<PreviewView> {
    let mut out: Vec<PreviewView> = Vec::new();
    for question in questions {
        for preview in question.previews() {
            let pinned = preview
                .digest()
                .is_some_and(|digest| question.pins().values().any(|pin| pin == digest));
            let view = view(preview, pinned, limits, omitted);
            if !out.contains(&view) {
                out.push(view);
            }
        }
    }
    out
}

fn view(preview: &Preview, pinned: bool, limits: Limits, all: &mut Omitted) -> PreviewView {
    let mut omitted = Omitted::default();
    let author = name(preview.author(), limits, &mut omitted);
    let title = masked(preview.title(), ShowRule::Place, Style::PLACE.unquoted());
    let title = omitted.join(&elide(title, limits.chars.max(TITLE)));
    let rule = limits.treat(rule(preview));
    let (mut change, mut cells) = (None, Vec::new());
    let mut lines = match preview.content() {
        PreviewContent::Diff { change: of, lines } => {
            change = Some(*of);
            signed(lines, rule)
        }
        PreviewContent::Text { text } => {
            let text = text.strip_suffix('\n').unwrap_or(text);
            let plain = |(_, line)| ShownLine::new(PreviewSign::Plain, line);
            lines_of(text, rule).into_iter().map(plain).collect()
        }
        PreviewContent::Table { columns, rows } => {
            cells = table(columns, rows, rule, limits, &mut omitted);
            let plain = |row| ShownLine::new(PreviewSign::Plain, vec![row]);
            aligned(&cells).into_iter().map(plain).collect()
        }
    };
    lines = window(lines, limits.lines, |hidden| {
        ShownLine::new(PreviewSign::Remark, vec![left_out(hidden, "line")])
    });
    let longest = if cells.is_empty() { limits.chars } else { usize::MAX };
    let mut lines: Vec<_> = lines
        .into_iter()
        .map(|ShownLine { sign, old, new, line }| PreviewLine {
            sign,
            text: omitted.join(&elide(line, longest)),
            old,
            new,
        })
        .collect();
    if preview.lines_cut() > 0 {
        let cut = counted(preview.lines_cut(), "line");
        let text = format!("\\{{{cut} not stored: the preview is too long}}");
        lines.push(PreviewLine { sign: PreviewSign::Remark, text, old: None, new: None });
    }
    all.add(omitted.left_out, omitted.masked);
    let heading = heading(&author, &title, change, pinned);
    let Omitted { left_out, .. } = omitted;
    let cut = preview.lines_cut();
    PreviewView { author, title, change, heading, pinned, lines, cells, left_out, cut }
}

fn heading(author: &str, title: &str, change: Option<Change>, pinned: bool) -> String {
    let what = match change {
        None => "",
        Some(Change::Created) => ", which is created",
        Some(Change::Deleted) => ", which is deleted",
        Some(Change::Changed) => ", which is changed",
        Some(Change::Unchanged) => ", which stays as it is",
    };
    let pin = match pinned {
        true => "asks again if this changes",
        false => "may change by itself",
    };
    format!("{author} shows {title}{what} ({pin})")
}

/// The rule by which a preview is masked: nothing is, in a script (rule S4).
fn rule(preview: &Preview) -> ShowRule {
    let is_script = match preview.content() {
        PreviewContent::Diff { lines, .. } => {
            lines.iter().any(|line| line.get(1..).is_some_and(|line| line.starts_with("#!")))
        }
        PreviewContent::Text { .. } | PreviewContent::Table { .. } => false,
    };
    if is_script || names_script(preview.title()) { ShowRule::Script } else { ShowRule::Free }
}

/// A line before it is joined.
#[derive(Default, Clone)]
struct ShownLine {
    sign: PreviewSign,
    old: Option<usize>,
    new: Option<usize>,
    line: Vec<Piece>,
}

impl ShownLine {
    fn new(sign: PreviewSign, line: Vec<Piece>) -> Self {
        Self { sign, line, ..Self::default() }
    }
}

/// The lines of a stored diff, with their signs and numbers.
fn signed(lines: &[String], rule: ShowRule) -> Vec<ShownLine> {
    let split = |line: &String| match line.split_at_checked(1) {
        Some(("+", text)) => (PreviewSign::Added, text.to_owned()),
        Some(("-", text)) => (PreviewSign::Removed, text.to_owned()),
        Some((" ", text)) => (PreviewSign::Plain, text.to_owned()),
        Some(("\\", text)) => (PreviewSign::Remark, text.trim_start().to_owned()),
        _ => (PreviewSign::Remark, line.clone()),
    };
    let (signs, texts): (Vec<_>, Vec<_>) = lines.iter().map(split).unzip();
    let numbers = numbered(lines, &signs);
    let shown = lines_of(&texts.join("\n"), rule).into_iter();
    let at = |(at, line): (usize, Vec<Piece>)| {
        let (old, new) = numbers.get(at).copied().unwrap_or_default();
        ShownLine { sign: signs.get(at).copied().unwrap_or_default(), old, new, line }
    };
    shown.map(at).collect()
}

/// The numbers of the lines of a diff in the old and in the new text, counted from the last `@@ -12,3 +14,4 @@` on.
fn numbered(lines: &[String], signs: &[PreviewSign]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut next: Option<(usize, usize)> = None;
    let number = |(line, sign): (&String, &PreviewSign)| {
        if let Some(place) = line.strip_prefix("@@ -") {
            next = begins(place);
            return (None, None);
        }
        let Some((old, new)) = &mut next else { return (None, None) };
        let (is_old, is_new) = match sign {
            PreviewSign::Plain => (true, true),
            PreviewSign::Removed => (true, false),
            PreviewSign::Added => (false, true),
            PreviewSign::Remark => (false, false),
        };
        let found = (is_old.then_some(*old), is_new.then_some(*new));
        *old = old.saturating_add(usize::from(is_old));
        *new = new.saturating_add(usize::from(is_new));
        found
    };
    lines.iter().zip(signs).map(number).collect()
}

/// The first lines of a hunk in the old and in the new text.
fn begins(place: &str) -> Option<(usize, usize)> {
    let (old, rest) = place.split_once(" +")?;
    let first = |range: &str| range.split([',', ' ']).next()?.parse().ok();
    Some((first(old)?, first(rest)?))
}

/// The lines of a text with their numbers, from 0 on. They are masked together, as a key has several lines: those within
/// a masked key are left out.
///
/// A key in PEM has many lines, none of which looks like a secret by itself.
fn lines_of(text: &str, rule: ShowRule) -> Vec<(usize, Vec<Piece>)> {
    let mut out: Vec<(usize, Vec<Piece>)> = vec![(0, Vec::new())];
    let mut chars = text.chars();
    let mut number = 0;
    for piece in masked(text, rule, Style::BLOCK) {
        let breaks = chars.by_ref().take(piece.stands_for()).filter(|c| *c == '\n').count();
        match (&piece, out.last_mut()) {
            (Piece::Unit(..), _) if breaks > 0 => {
                out.extend((1..=breaks).map(|more| (number + more, Vec::new())));
            }
            (_, Some((_, line))) => line.push(piece),
            (_, None) => {}
        }
        number += breaks;
    }
    out
}

fn line_of(text: &str, rule: ShowRule) -> Vec<Piece> {
    masked(text, rule, Style::VALUE.unquoted())
}

fn table(
    columns: &[String],
    rows: &[Vec<String>],
    rule: ShowRule,
    limits: Limits,
    omitted: &mut Omitted,
) -> Vec<Vec<String>> {
    let longest = if limits.chars == usize::MAX { usize::MAX } else { CELL };
    let mut cell = |text: &String| omitted.join(&elide(line_of(text, rule), longest));
    let all = std::iter::once(columns).chain(rows.iter().map(Vec::as_slice));
    all.map(|row| row.iter().map(&mut cell).collect()).collect()
}

/// The rows of a table as lines, with columns of one width.
///
/// We align here, and not at the surface, because widths depend on escapes.
fn aligned(cells: &[Vec<String>]) -> Vec<Piece> {
    let columns = cells.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns)
        .map(|at| cells.iter().filter_map(|row| row.get(at)).map(|it| it.chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    let row = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        Piece::Plain(cells.collect::<Vec<_>>().join(" | ").trim_end().to_owned())
    };
    cells.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S12: "the lines of a difference have their numbers in the old and in the new text".
    #[test]
    fn the_lines_of_a_difference_are_numbered() {
        let text = |at: usize, line: &str| {
            (1..=20)
                .map(|n| if n == at { format!("{line}\n") } else { format!("{n}\n") })
                .collect::<String>()
        };
        let change = Preview::diff("a", text(2, "two").as_str(), text(15, "fifteen").as_str());
        let view = view(&change, true, Limits::none(), &mut Omitted::default());
        let numbers: Vec<_> =
            view.lines.iter().map(|it| (it.sign.char(), it.old, it.new)).collect();
        assert_eq!(
            numbers[..4],
            [
                ('@', None, None),
                (' ', Some(1), Some(1)),
                ('-', Some(2), None),
                ('+', None, Some(2))
            ]
        );
        let second = numbers.iter().rposition(|it| it.0 == '@').unwrap();
        assert_eq!(numbers[second + 1], (' ', Some(12), Some(12)));
        assert!(
            numbers.contains(&('-', Some(15), None)) && numbers.contains(&('+', None, Some(15)))
        );
        let plain =
            super::view(&Preview::text("a", "x"), true, Limits::none(), &mut Omitted::default());
        assert_eq!((plain.lines[0].old, plain.lines[0].new), (None, None));
    }
}
