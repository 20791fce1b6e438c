//! A grant as text that a person reads before it is made: TOML, as you would write a rule by hand.
//!
//! Every part that is compared with a call is there. Digests are not: a line says what has to stay the same, and the
//! store keeps the digest.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::time::GrantTime;
use crate::ledger::scope::GrantScope;
use crate::show;

/// The lines of a rule, as they are written.
#[derive(Default)]
pub(super) struct RuleText(String);

impl RuleText {
    pub(in crate::ledger) fn line(&mut self, name: &str, value: &Value) {
        let _ = writeln!(self.0, "{} = {}", key(name), written(value));
    }

    pub(in crate::ledger) fn text(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.0, "{} = {}", key(name), quoted(value));
    }

    /// A list of texts; nothing where it is empty.
    pub(in crate::ledger) fn list(&mut self, name: &str, texts: Vec<String>) {
        if !texts.is_empty() {
            self.line(name, &texts.into());
        }
    }

    pub(super) fn heading(&mut self, name: &str) {
        let _ = writeln!(self.0, "\n[{name}]");
    }

    pub(in crate::ledger) fn ended(self) -> String {
        self.0
    }
}

/// The place of a grant, in words.
pub(in crate::ledger) fn place(scope: &GrantScope) -> String {
    match scope {
        GrantScope::Run(id) => format!("run {id}"),
        GrantScope::Session(id) => format!("session {id}"),
        GrantScope::Project(project) => format!("project {project}"),
    }
}

/// A time in milliseconds, as people type it.
pub(in crate::ledger) fn time(millis: i64) -> String {
    let seconds = u64::try_from(millis / 1000).unwrap_or_default();
    GrantTime::of_seconds(seconds)
        .filter(|_| millis % 1000 == 0)
        .map_or_else(|| format!("{millis}ms"), |time| time.to_string())
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}

fn written(value: &Value) -> String {
    let table = |map: &Map<String, Value>| {
        let fields = map.iter().collect::<BTreeMap<_, _>>().into_iter();
        let fields = fields.map(|(name, value)| format!("{} = {}", key(name), written(value)));
        fields.collect::<Vec<_>>().join(", ")
    };
    match value {
        // TOML has no such value.
        Value::Null => "{ json = \"null\" }".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => quoted(text),
        Value::Array(all) => {
            format!("[{}]", all.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => format!("{{ {} }}", table(map)),
    }
}

/// A text between quotes of which nothing is hidden (rule S1). One without anything to escape is written as it is, in
/// the quotes that it does not have itself.
fn quoted(text: &str) -> String {
    if show::escape(text) == text {
        if !text.contains(['"', '\\']) {
            return format!("\"{text}\"");
        }
        if !text.contains('\'') {
            return format!("'{text}'");
        }
    }
    let (mut out, mut before) = ("\"".to_owned(), ' ');
    for c in text.chars() {
        let _ = match c {
            '"' | '\\' => write!(out, "\\{c}"),
            '\n' => write!(out, "\\n"),
            '\r' => write!(out, "\\r"),
            '\t' => write!(out, "\\t"),
            // A long run of blanks would move what follows out of sight.
            ' ' if before == ' ' => write!(out, "\\u0020"),
            c if show::escape(c.encode_utf8(&mut [0; 4])).starts_with(c) => write!(out, "{c}"),
            c if u32::from(c) > 0xffff => write!(out, "\\U{:08X}", u32::from(c)),
            c => write!(out, "\\u{:04X}", u32::from(c)),
        };
        before = c;
    }
    out + "\""
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S1: "Control, bidi, zero-width and escape characters … are shown as escapes".
    #[test]
    fn a_text_is_written_as_it_is_or_with_escapes() {
        for (text, shown) in [
            ("ls -la", r#""ls -la""#),
            (r#"echo "a""#, r#"'echo "a"'"#),
            (r#"echo "a" 'b'"#, r#""echo \"a\" 'b'""#),
            ("a\nb\u{202e}\u{e0041}", r#""a\nb\u202E\U000E0041""#),
            ("a'\"  b", "\"a'\\\" \\u0020b\""),
        ] {
            assert_eq!(quoted(text), shown);
        }
        let value = json!({"a b": [1, true, null], "c": {}});
        assert_eq!(written(&value), r#"{ "a b" = [1, true, { json = "null" }], c = {} }"#);
        assert_eq!((time(3_600_000), time(1)), ("1h".to_owned(), "1ms".to_owned()));
    }
}
