//! The reason of a rule, with the values of a call filled in.
//!
//! A reason is shown to people beside text that a model wrote, and to the model itself. `{path}` is filled in once,
//! escaped and cut at 200 characters: a value that contains `{other}` is not read as a template, and one with control
//! characters cannot imitate a line of the surface.

use serde_json::Value;

use super::rule::Rule;
use super::seen::Seen;

/// The most characters of one value that are shown.
const MAX_VALUE: usize = 200;

/// The reason of a rule. `{field}` becomes the value of the argument, as inert text: characters that cannot be seen are
/// escaped, and what is filled in is not read again.
pub(super) fn filled(rule: &Rule, seen: &Seen<'_>, part: Option<&str>) -> String {
    let Some(template) = &rule.reason else {
        return match part {
            Some(part) => {
                format!("the rule `{}` says {} for `{}`", rule.id, rule.effect.word(), shown(part))
            }
            None => format!("the rule `{}` says {}", rule.id, rule.effect.word()),
        };
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
        match (name, seen.field(&path)) {
            (_, Some(Value::String(text))) => out.push_str(&shown(text)),
            (_, Some(value)) => out.push_str(&shown(&value.to_string())),
            ("tool", None) => out.push_str(&shown(seen.call.tool)),
            ("part", None) => out.push_str(&shown(part.unwrap_or_default())),
            (_, None) => out.push_str(&format!("{{{name}}}")),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

fn shown(text: &str) -> String {
    let Some((end, _)) = text.char_indices().nth(MAX_VALUE) else {
        return crate::show::escape(text);
    };
    let (short, rest) = text.split_at(end);
    format!("{}… ({} more characters)", crate::show::escape(short), rest.chars().count())
}
