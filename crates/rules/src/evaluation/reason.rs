//! The reason of a rule, with the values of a call filled in.
//!
//! A reason is shown to people beside text that a model wrote, and to the model itself. `{path}` is filled in once,
//! escaped and cut at 200 characters: a value that contains `{other}` is not read as a template, and one with control
//! characters cannot imitate a line of the surface.

use serde_json::Value;

use crate::calls::truth::{Reading, Truth};
use crate::format::rule::Rule;
use crate::matching::condition::{Condition, FieldPath, Test};
use crate::matching::examined_call::ExaminedCall;

/// The most characters of one value that are shown.
const MAX_VALUE: usize = 200;

/// Why a strict rule is silent: by an exception, or by a condition that does not hold.
pub(super) fn silent(
    exception: Option<&Condition>,
    condition: Option<&Condition>,
    answer: Truth,
) -> String {
    match exception {
        Some(exception) => format!("the exception {} applies", exception.text),
        None => failed(condition, answer),
    }
}

/// Why a condition is not met by a call that it might have been meant for.
pub(super) fn failed(condition: Option<&Condition>, answer: Truth) -> String {
    let text = condition.map_or("", |it| it.text.as_str());
    match answer {
        Truth::Unknown(why) => format!("`{text}` cannot be evaluated: the value {why}"),
        Truth::Yes | Truth::No => format!("`{text}` does not hold"),
    }
}

/// Why a strict rule could not be ruled out: the condition whose value is not known.
pub(super) fn unknown(rule: &Rule, examined: &ExaminedCall<'_>, why: &'static str) -> String {
    let is_it = |it: &&Condition| it.holds(examined, Reading::Strict) == Truth::Unknown(why);
    match rule.whole.iter().find(is_it) {
        Some(condition) => format!("the value of `{}` {why}", condition.text),
        None => format!("a value {why}"),
    }
}

/// The reason of a rule. `{field}` becomes the value of the argument, as inert text: characters that cannot be seen are
/// escaped, and what is filled in is not read again.
pub(super) fn filled(rule: &Rule, examined: &ExaminedCall<'_>, part: Option<&str>) -> String {
    let Some(template) = &rule.reason else {
        if let Some(why) = of_origins(rule, examined) {
            return shown(&why);
        }
        // Each command of each call has such a reason: `format!` takes five times as long.
        let part = part.map(shown).unwrap_or_default();
        let words = ["the rule `", &rule.id, "` says ", rule.effect.word(), " for `", &part, "`"];
        return words.get(..if part.is_empty() { 4 } else { 7 }).unwrap_or_default().concat();
    };
    let mut out = String::with_capacity(template.len());
    let mut rest = template.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, tail)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        match (name, examined.field(&path)) {
            (_, Some(Value::String(text))) => out.push_str(&shown(text)),
            (_, Some(value)) => out.push_str(&shown(&value.to_string())),
            ("tool", None) => out.push_str(&shown(examined.call.tool)),
            ("part", None) => out.push_str(&shown(part.unwrap_or_default())),
            (_, None) => out.push_str(&format!("{{{name}}}")),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// Why a rule speaks that is about where values come from.
fn of_origins(rule: &Rule, examined: &ExaminedCall<'_>) -> Option<String> {
    let said =
        rule.whole.iter().filter_map(|condition| match (&condition.test, &condition.field) {
            (Test::Origin(test), FieldPath::Named(path)) => test.why(path, examined),
            (Test::Origin(test), FieldPath::Run) => test.why(&[], examined),
            _ => None,
        });
    said.reduce(|one, other| format!("{one}, and {other}"))
}

fn shown(text: &str) -> String {
    if text.len() <= MAX_VALUE {
        return countersign::show::escape(text);
    }
    let Some((end, _)) = text.char_indices().nth(MAX_VALUE) else {
        return countersign::show::escape(text);
    };
    let (short, rest) = text.split_at(end);
    format!("{}… ({} more characters)", countersign::show::escape(short), rest.chars().count())
}

/// Why the default asks about a call, or about one command of it.
pub(super) fn uncovered(examined: &ExaminedCall<'_>, part: Option<&str>) -> String {
    let tool = countersign::show::escape(examined.call.tool);
    match (part, examined.call.unknown_of()) {
        (Some(part), _) => format!("no rule allows `{}`", countersign::show::escape(part)),
        (None, Some(client)) => match examined.call.field_of_command() {
            Some(field) => format!(
                "no rule allows `{client}:{tool}` with `{}`, which may hold a command",
                countersign::show::escape(&field)
            ),
            None => format!("no rule allows `{client}:{tool}` by its name"),
        },
        (None, None) => format!("no rule allows `{tool}`"),
    }
}
