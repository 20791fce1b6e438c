//! A table of a file of rules, written anew from what was read: what a person is shown before it is accepted.
//!
//! We do not show the lines of the file. A reason of several lines may have a line that looks like the next table, and a
//! table below a rule has lines of its own. So each value that was read becomes one line, with its keys in front, and the
//! text means the same as the table.

use serde_json::{Map, Value};

/// Keys that come first, in this order.
const FIRST: &[&str] = &["id", "tool", "title", "reason", "allow", "ask", "deny"];

/// The text of a table below `[[header]]`.
pub(crate) fn table_text(header: &str, table: &Map<String, Value>) -> String {
    let mut lines = vec![format!("[[{header}]]")];
    below("", table, &mut lines);
    lines.join("\n")
}

fn below(front: &str, table: &Map<String, Value>, lines: &mut Vec<String>) {
    let mut entries: Vec<_> = table.iter().collect();
    let rank = |name: &str| FIRST.iter().position(|it| *it == name).unwrap_or(FIRST.len());
    entries.sort_by_key(|(name, _)| (rank(name), (*name).clone()));
    for (name, value) in entries {
        let name = format!("{front}{}", key(name));
        match value {
            Value::Object(inner) if !inner.is_empty() => below(&format!("{name}."), inner, lines),
            value => lines.push(format!("{name} = {}", inline(value))),
        }
    }
}

/// A key, quoted where it is no bare one.
fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => text(name),
    }
}

/// A value in one line.
fn inline(value: &Value) -> String {
    match value {
        Value::String(value) => text(value),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("{} = {}", key(name), inline(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A text as JSON writes it, which TOML reads as the same but for one character.
fn text(value: &str) -> String {
    Value::from(value).to_string().replace('\u{7f}', "\\u007f")
}
