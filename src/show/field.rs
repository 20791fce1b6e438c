//! One value, as it is shown.

use serde::Serialize;
use serde_json::{Map, Value};

use super::keys::{Rule, rule};
use super::mask::masked;
use super::piece::{Piece, Style, counted, elide, join, left_out, pieces};
use crate::args::canonical;

/// How much of a long text is shown before it is elided. Commands, paths, addresses and hosts are always whole.
///
/// Exhaustive on purpose: pages choose their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Characters of one line.
    pub chars: usize,
    /// Lines of one value.
    pub lines: usize,
    /// Values of one call.
    pub values: usize,
}

impl Limits {
    /// Nothing is left out.
    #[must_use]
    pub const fn none() -> Self {
        Self { chars: usize::MAX, lines: usize::MAX, values: usize::MAX }
    }
}

impl Default for Limits {
    /// What fits on a screen: 300 characters of 16 lines, 40 values.
    fn default() -> Self {
        Self { chars: 300, lines: 16, values: 40 }
    }
}

/// A named value, safe to print (rule S1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Field {
    /// The name; of a nested value the path to it, as in `options.tags[0]`.
    pub name: String,
    /// How long a text of several lines is; empty for a value on one line.
    pub note: String,
    /// The value: one line, or the lines of a longer text.
    pub lines: Vec<String>,
}

impl Field {
    pub(super) fn of(leaf: &Leaf<'_>, limits: Limits) -> Self {
        let name = leaf.name.clone();
        match leaf.value {
            Value::String(text) if text.contains('\n') && leaf.rule != Rule::Secret => {
                let chars = counted(text.chars().count(), "character");
                let note = format!("{}, {chars}", counted(text.lines().count(), "line"));
                Self { name, note, lines: block(text, leaf.rule, limits) }
            }
            _ => Self { name, note: String::new(), lines: vec![leaf.inline(limits.chars)] },
        }
    }

    /// The value on one line.
    #[must_use]
    pub fn value(&self) -> String {
        self.lines.join("\\n")
    }
}

/// A value without parts that are shown on their own.
pub(super) struct Leaf<'a> {
    pub(super) name: String,
    pub(super) rule: Rule,
    value: &'a Value,
}

impl Leaf<'_> {
    /// The value on one line, elided to about this many characters if it may be.
    pub(super) fn inline(&self, most: usize) -> String {
        let all = inline(self.value, self.rule);
        join(&if self.rule.whole() { all } else { elide(all, most) })
    }

    /// The value on one line for a headline, which the whole value stands below.
    pub(super) fn short(&self, most: usize) -> String {
        join(&elide(inline(self.value, self.rule), most))
    }
}

/// The values of an object and of what is in it. What must be seen comes first, then by name.
pub(super) fn leaves(map: &Map<String, Value>) -> Vec<Leaf<'_>> {
    let mut out = Vec::new();
    collect_map(&mut out, map, "", Rule::Free);
    out.sort_by_key(|leaf| !leaf.rule.whole());
    out
}

fn collect_map<'a>(out: &mut Vec<Leaf<'a>>, map: &'a Map<String, Value>, path: &str, around: Rule) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(name, _)| *name);
    for (name, value) in entries {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", shown_name(name));
        collect(out, value, path, rule(name, around));
    }
}

fn collect<'a>(out: &mut Vec<Leaf<'a>>, value: &'a Value, path: String, rule: Rule) {
    match value {
        Value::Object(map) if !map.is_empty() => collect_map(out, map, &path, rule),
        Value::Array(items) if !items.iter().all(fits_one_line) => {
            for (i, item) in items.iter().enumerate() {
                collect(out, item, format!("{path}[{i}]"), rule);
            }
        }
        _ => out.push(Leaf { name: path, rule, value }),
    }
}

fn fits_one_line(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\n'),
        Value::Object(_) | Value::Array(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A name as it is, or in quotes when it could be taken for something else.
fn shown_name(name: &str) -> String {
    let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name_pieces = elide(pieces(name, Style::ADDRESS), 120);
    match !name.is_empty() && name.chars().all(simple) {
        true => join(&name_pieces),
        false => format!("\"{}\"", join(&name_pieces)),
    }
}

fn style(rule: Rule) -> Style {
    match rule {
        // A host of letters that only look like another one's.
        Rule::Url => Style::ADDRESS,
        Rule::Place | Rule::Command | Rule::Free | Rule::Secret => Style::VALUE,
    }
}

fn inline(value: &Value, rule: Rule) -> Vec<Piece> {
    let plain = |text: &str| Piece::Plain(text.to_owned());
    match value {
        Value::String(text) if rule == Rule::Secret && !text.is_empty() => {
            masked(text, rule, style(rule))
        }
        Value::String(text) => {
            let mut out = vec![plain("\"")];
            out.extend(masked(text, rule, style(rule)));
            out.push(plain("\""));
            out
        }
        Value::Array(items) => {
            let mut out = vec![plain("[")];
            for (i, item) in items.iter().enumerate() {
                out.extend((i > 0).then(|| plain(", ")));
                out.extend(inline(item, rule));
            }
            out.push(plain("]"));
            out
        }
        // Numbers, truth values, null, `{}`.
        _ => vec![Piece::Plain(canonical(value))],
    }
}

/// A text of several lines.
pub(super) fn block(text: &str, rule: Rule, limits: Limits) -> Vec<String> {
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    for piece in masked(text.strip_suffix('\n').unwrap_or(text), rule, style(rule).unquoted()) {
        match (piece.text() == "\\n", lines.last_mut()) {
            (false, Some(line)) => line.push(piece),
            _ => lines.push(Vec::new()),
        }
    }
    if rule.whole() {
        return lines.iter().map(|line| join(line)).collect();
    }
    let all = lines.len();
    let (head, tail) = match all > limits.lines {
        true => (limits.lines - limits.lines / 3, limits.lines / 3),
        false => (all, 0),
    };
    let mut out = Vec::new();
    for (i, line) in lines.into_iter().enumerate() {
        if i < head || i >= all - tail {
            out.push(join(&elide(line, limits.chars)));
        } else if i == head {
            out.push(left_out(all - head - tail, "line").text().to_owned());
        }
    }
    out
}
