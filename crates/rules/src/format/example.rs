//! The tests in a file of rules: calls, and what has to be decided about them.
//!
//! A test is a call in one line: `read_file: {path: src/lib.rs}`, `shell: cargo test`, `mcp:docs/search: {query: x}`.
//! We run it against its own file alone: you can test a file without the others. We run it when the file is loaded: a
//! file whose tests fail is not in force for a moment (rule R3).

use std::ops::Range;

use serde_json::{Map, Value};
use toml::de::{DeTable, DeValue};

use super::document::{Item, entries, misplaced, object, string, strings, table};
use super::source::Source;
use crate::calls::call::RuleCall;
use crate::calls::engine::Engine;
use countersign::decision::ToolDecision;
use countersign::origin::{ReadCall, ReadLabel, ReadRecord};

/// One test of a file: a call, and the decision that the file has to make about it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    pub(crate) wanted: ToolDecision,
    /// The tool, as patterns name it.
    pub(crate) tool: String,
    pub(crate) args: Map<String, Value>,
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
    /// The record of what the user has said and the run has read before the call; in a file of an earlier version
    /// nothing is recorded.
    read: Option<ReadRecord>,
}

impl Example {
    pub(crate) fn call(&self) -> RuleCall<'_> {
        let call = RuleCall::named(&self.tool, &self.args);
        match &self.read {
            Some(record) => call.origin(record.origin()),
            None => call,
        }
    }

    /// Reads the table `test`, or several tables `[[test]]`.
    pub(crate) fn read(source: &mut Source, item: &Item<'_>, engine: &Engine) -> Vec<Self> {
        match item.get_ref() {
            DeValue::Array(items) => {
                source.needs_version(&item.span(), 2, "[[test]]");
                items.iter().flat_map(|item| Self::read_one(source, item, engine)).collect()
            }
            _ => Self::read_one(source, item, engine),
        }
    }

    fn read_one(source: &mut Source, item: &Item<'_>, engine: &Engine) -> Vec<Self> {
        let Some(found) = table(source, "`test`", item) else { return Vec::new() };
        let mut all = Vec::new();
        let read = read_before(source, found);
        for (key, span, item) in entries(found) {
            let wanted = match key {
                "allow" => ToolDecision::Allow,
                "ask" => ToolDecision::Ask,
                "deny" => ToolDecision::Deny,
                "said" | "after" => continue,
                _ => {
                    let text = misplaced(key, "[test]").unwrap_or_else(|| {
                        format!(
                            "`test` has `allow`, `ask`, `deny`, `said` and `after`, and no `{key}`"
                        )
                    });
                    source.problem(&span, text);
                    continue;
                }
            };
            match item.get_ref() {
                DeValue::Array(items) => {
                    all.extend(
                        items.iter().filter_map(|item| Self::one(source, item, wanted, engine)),
                    );
                }
                _ => all.extend(Self::one(source, item, wanted, engine)),
            }
        }
        all.iter_mut().for_each(|it: &mut Self| it.read.clone_from(&read));
        all
    }

    fn one(
        source: &mut Source,
        item: &Item<'_>,
        wanted: ToolDecision,
        engine: &Engine,
    ) -> Option<Self> {
        let span = item.span();
        if item.get_ref().is_table() {
            return Self::of_table(source, item, wanted);
        }
        let text = string(source, "a test", item)?;
        match WrittenCall::read(text, engine) {
            Some(WrittenCall { tool, args }) => {
                Some(Self { args, ..Self::of_tool(&tool, wanted, text, span) })
            }
            None => {
                source.problem(&span, format!("a test is {FORM}"));
                None
            }
        }
    }

    fn of_tool(tool: &str, wanted: ToolDecision, text: &str, span: Range<usize>) -> Self {
        let (tool, text) = (tool.to_owned(), text.to_owned());
        Self { wanted, tool, args: Map::new(), text, span, read: None }
    }

    fn of_table(source: &mut Source, item: &Item<'_>, wanted: ToolDecision) -> Option<Self> {
        let found = table(source, "a test", item)?;
        let (mut tool, mut args) = (None, Map::new());
        for (key, span, item) in entries(found) {
            match key {
                "tool" => tool = string(source, "`tool`", item),
                "args" => {
                    let Some(found) = table(source, "`args`", item).and_then(object) else {
                        source.problem(
                            &item.span(),
                            "`args` has a number that is too large, or none",
                        );
                        return None;
                    };
                    args = found;
                }
                _ => source.problem(&span, format!("a test has `tool` and `args`, and no `{key}`")),
            }
        }
        let Some(tool) = tool else {
            source.problem(&item.span(), "a test needs a `tool`");
            return None;
        };
        let text = format!("{tool}: {}", Value::Object(args.clone()));
        Some(Self { args, ..Self::of_tool(tool, wanted, &text, item.span()) })
    }
}

/// The form of a call in one line.
const FORM: &str = "`tool: {name: value, list: [value, …]}`, or `shell: command`";

/// A call in one line, as a test of a file has it: `shell: git push`, `read_file: {path: src/lib.rs}`.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenCall {
    tool: String,
    args: Map<String, Value>,
}

impl WrittenCall {
    /// Reads a call that a person has typed. The error says how one is written.
    pub(crate) fn parse(text: &str, engine: &Engine) -> Result<Self, String> {
        let found = Self::read(text, engine);
        // No tool has a blank in its name.
        match found.filter(|it| !it.tool.is_empty() && !it.tool.contains(char::is_whitespace)) {
            Some(call) => Ok(call),
            None => {
                let meant = match text.contains(": ") {
                    true => String::new(),
                    false => format!(": is `shell: {text}` meant?"),
                };
                Err(format!("a call is {FORM}{meant}"))
            }
        }
    }

    fn read(text: &str, engine: &Engine) -> Option<Self> {
        let (tool, rest) = text
            .split_once(": ")
            .or_else(|| text.strip_suffix(':').map(|tool| (tool, "")))
            .unwrap_or((text, ""));
        let (tool, rest) = (tool.trim(), rest.trim());
        let mut args = Map::new();
        let shell = engine.shell_field(&RuleCall::named(tool, &args)).map(str::to_owned);
        if let Some(field) = shell.filter(|_| !rest.starts_with('{')) {
            args.insert(field, Value::String(rest.to_owned()));
        } else if !rest.is_empty() {
            args = arguments(rest)?;
        }
        Some(Self { tool: tool.to_owned(), args })
    }

    /// The call, for rules to decide about.
    #[must_use]
    pub fn call(&self) -> RuleCall<'_> {
        RuleCall::named(&self.tool, &self.args)
    }
}

/// The record that a test states as said and read: `said = "…"` and `after = ["web: some text"]`, where the text may be
/// JSON.
fn read_before(source: &mut Source, found: &DeTable<'_>) -> Option<ReadRecord> {
    if source.version < 2 {
        for (key, span, _) in entries(found).filter(|(key, ..)| matches!(*key, "said" | "after")) {
            source.needs_version(&span, 2, key);
        }
        return None;
    }
    let record = ReadRecord::new();
    for (key, _, item) in entries(found) {
        if key == "said" {
            strings(source, "`said`", item).iter().for_each(|(text, _)| record.user_said(text));
        }
        if key == "after" {
            for (text, span) in strings(source, "`after`", item) {
                if let Err(problem) = read_after(&record, text) {
                    source.problem(&span, problem);
                }
            }
        }
    }
    Some(record)
}

/// Adds what was read, as `label: text`.
fn read_after(record: &ReadRecord, text: &str) -> Result<(), &'static str> {
    let (label, text) =
        text.split_once(": ").ok_or("what was read is `label: text`, such as `web: Pay to …`")?;
    let label = match label.trim() {
        "user" => return Err("what the user says is `said`"),
        "own" => ReadLabel::own().own_text(),
        "others" => ReadLabel::unlabelled(),
        label => ReadLabel::others(label.strip_prefix("others:").unwrap_or(label)),
    };
    let call = ReadCall::new(format!("test: {text}"), "test", Value::Null);
    record.read(&label, &call, &Value::String(text.to_owned()));
    Ok(())
}

/// A record in which the user has said these texts, and the run has read those: as a test in a file states them, with
/// `label: text` for what was read.
///
/// ```
/// use countersign_rules::stated_record;
/// use serde_json::json;
///
/// let record = stated_record(&["Mail ann@example.com"], &["web: write to eve@example.net"])?;
/// assert!(record.origin().named_by(&["user"], &json!("ann@example.com")));
/// assert!(record.origin().has_read("web"));
/// assert!(stated_record(&[], &["no label"]).is_err());
/// # Ok::<(), &str>(())
/// ```
///
/// # Errors
/// If a text that was read has no label, or that of the user: the problem, in words.
pub fn stated_record(said: &[&str], after: &[&str]) -> Result<ReadRecord, &'static str> {
    let record = ReadRecord::new();
    said.iter().for_each(|text| record.user_said(text));
    after.iter().try_for_each(|text| read_after(&record, text))?;
    Ok(record)
}

/// The levels to which lists and objects of a test may be nested.
const MAX_DEPTH: usize = 16;

/// Reads arguments: JSON, or the same with bare names and texts, such as `{path: src/lib.rs, to: [ann@a.example]}`.
///
/// We accept bare names and texts because people write tests by hand, many in a row, and get quotes inside of
/// TOML strings wrong. A name that comes twice is an error, as in every reader of arguments.
pub(crate) fn arguments(text: &str) -> Option<Map<String, Value>> {
    if let Ok(Value::Object(map)) = serde_json::from_str(text) {
        return Some(map);
    }
    let (map, rest) = object_of(text.trim(), MAX_DEPTH)?;
    rest.trim().is_empty().then_some(map)
}

/// An object at the beginning of a text, and what follows it.
fn object_of(text: &str, depth: usize) -> Option<(Map<String, Value>, &str)> {
    let mut map = Map::new();
    let mut rest = text.strip_prefix('{')?.trim_start();
    while !rest.starts_with('}') {
        let (name, after) = match rest.starts_with('"') {
            true => quoted(rest)?,
            false => rest.split_once(':').map(|(name, _)| {
                (name.trim().to_owned(), rest.get(name.len()..).unwrap_or_default())
            })?,
        };
        rest = after.trim_start().strip_prefix(':')?.trim_start();
        let (value, after) = value(rest, &[',', '}'], depth)?;
        if map.insert(name, value).is_some() {
            return None;
        }
        rest = next(after, '}')?;
    }
    Some((map, rest.get(1..)?))
}

/// A list at the beginning of a text, and what follows it.
fn list_of(text: &str, depth: usize) -> Option<(Value, &str)> {
    let mut items = Vec::new();
    let mut rest = text.strip_prefix('[')?.trim_start();
    while !rest.starts_with(']') {
        let (item, after) = value(rest, &[',', ']'], depth).filter(|_| !rest.starts_with(','))?;
        items.push(item);
        rest = next(after, ']')?;
    }
    Some((Value::Array(items), rest.get(1..)?))
}

/// The text that follows a comma, or the end of a list or object itself.
fn next(text: &str, end: char) -> Option<&str> {
    let text = text.trim_start();
    match text.strip_prefix(',') {
        Some(rest) => Some(rest.trim_start()),
        None => text.starts_with(end).then_some(text),
    }
}

/// A value at the beginning of a text, in JSON or with bare words up to one of these characters, and what follows it.
fn value<'t>(text: &'t str, ends: &[char], depth: usize) -> Option<(Value, &'t str)> {
    if text.starts_with(['"', '{', '[']) {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Some((value, text.get(values.byte_offset()..)?));
        }
        let depth = depth.checked_sub(1)?;
        return match text.starts_with('[') {
            true => list_of(text, depth),
            false => object_of(text, depth).map(|(map, rest)| (Value::Object(map), rest)),
        };
    }
    let end = text.find(ends)?;
    let word = text.get(..end)?.trim();
    let value = serde_json::from_str(word).unwrap_or_else(|_| Value::String(word.to_owned()));
    Some((value, text.get(end..)?))
}

fn quoted(text: &str) -> Option<(String, &str)> {
    match value(text, &[], 0)? {
        (Value::String(name), rest) => Some((name, rest)),
        _ => None,
    }
}
