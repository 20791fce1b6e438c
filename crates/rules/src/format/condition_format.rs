//! Reads the conditions of a rule: the tables `where` and `except`.
//!
//! # How a condition is written
//!
//! | TOML | field | test |
//! |---|---|---|
//! | `where.path = "src/*"` | `path` | a pattern over the text |
//! | `where.path.within = "."` | `path` | inside of the root |
//! | `where.path = "within:."` | `path` | the same |
//! | `where.amount = "<= 50"` | `amount` | a range |
//! | `where.mail.to.host = "*.example.com"` | `mail`, then `to` | the host of a URL |
//! | `where."/a.b" = 1` | one field with a point in its name | a value |
//! | `where.any_path = "**/.env"` | every string, at any depth | a pattern over paths |
//!
//! If the keys of a table include a test, the table is that field's tests. A table without any is a deeper field. So
//! you write a field that is called `matches` as a pointer (`"/matches"`).
//!
//! # Why some patterns are refused
//!
//! A pattern over a whole command line (`where.command = "git *"`) would let through `git status; rm -rf .`. If a match
//! makes the outcome milder (in a rule that allows, or in an exception of one that asks), we refuse the pattern when
//! the file is loaded, with the advice to use `runs` or `is`, which look at each command. In a rule that asks or
//! denies, such a pattern can only make things stricter, and you may write it.
//!
//! A program that runs its arguments (`sudo`, `env`, `python`) cannot be allowed by its name alone, since that allows
//! anything.

use std::ops::Range as Span;

use serde_json::{Number, Value};
use toml::de::{DeTable, DeValue};

use super::document::{Item, boolean, entries, json, strings, table};
use super::misspelling;
use super::source::Source;
use crate::calls::classes::{CLASSES, Classes};
use crate::calls::glob::{Glob, MAX_PATTERN, PathGlob, is_pattern};
use crate::matching::condition::{Condition, FieldPath, Range, Test};
use crate::matching::host::HostPattern;
use crate::matching::origins::OriginTest;

/// The tests of a field, with what the JSON Schema of the file says about them.
pub(super) const TESTS: &[(&str, &str, &str)] = &[
    ("equals", "value", "The field equals this value, or one of these."),
    ("matches", "texts", "The text matches a pattern: `*` stands for any characters, `?` for one."),
    ("exists", "boolean", "Whether the field is there."),
    ("above", "number", "The number is greater."),
    ("at_least", "number", "The number is equal or greater."),
    ("below", "number", "The number is less."),
    ("at_most", "number", "The number is equal or less."),
    ("within", "texts", "The path is inside of a folder: `.` is the root."),
    ("outside", "texts", "The path is in none of these folders."),
    ("path", "texts", "The path matches a pattern: `src/**`, `**/.env`, `~/.ssh/**`."),
    (
        "host",
        "texts",
        "The host of the URL: `example.com`, or `*.example.com` for the names below it.",
    ),
    ("runs", "texts", "A command begins with these words: `git push`."),
    (
        "is",
        "classes",
        "A command is of one of these classes, or a path is `secret` by the names in it.",
    ),
    ("named_by", "texts", "Who has named every item: `user`, `own`. In rules that allow."),
    (
        "not_named_by",
        "texts",
        "Who has not named some item: `user`, `own`. In rules that ask or deny.",
    ),
    (
        "carries",
        "texts",
        "An address, URL, account or long number in the text stands only in such text of others. In rules that ask or deny.",
    ),
];

/// A kind of table: its tests are read a little differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TableKind {
    /// `true` if the rule allows.
    pub(crate) allows: bool,
    /// `true` if the table is an `except`.
    pub(crate) exception: bool,
}

impl TableKind {
    /// Returns `true` if a match makes the outcome milder, so that patterns over whole command lines are refused.
    ///
    /// | table | of a rule that | a match makes the outcome |
    /// |---|---|---|
    /// | `where` | allows | milder |
    /// | `where` | asks, denies | stricter |
    /// | `except` | allows | stricter |
    /// | `except` | asks, denies | milder |
    fn widens(self) -> bool {
        self.allows != self.exception
    }
}

/// Reads a table of conditions.
pub(crate) fn conditions(source: &mut Source, item: &Item<'_>, place: TableKind) -> Vec<Condition> {
    let what = if place.exception { "`except`" } else { "`where`" };
    let Some(found) = table(source, what, item) else { return Vec::new() };
    let mut all = Vec::new();
    fields(source, found, &mut Vec::new(), place, &mut all);
    if all.is_empty() && source.problems.is_empty() {
        source.problem(&item.span(), format!("{what} has no conditions"));
    }
    all
}

fn fields(
    source: &mut Source,
    found: &DeTable<'_>,
    path: &mut Vec<String>,
    place: TableKind,
    all: &mut Vec<Condition>,
) {
    for (key, span, item) in entries(found) {
        if path.len() >= 16 {
            return source.problem(&span, "fields are nested at most 16 levels deep");
        }
        let pointer = key.strip_prefix('/').filter(|_| path.is_empty());
        // A misspelt test would pass for a field that no call has.
        let is_value = !item.get_ref().is_table();
        let mistake = match (path.as_slice(), pointer) {
            (_, Some(_)) => None,
            ([], None) => misspelling::of_field(key, is_value),
            (field, None) => {
                let tests = TESTS.iter().map(|(name, ..)| *name);
                misspelling::of_test(field, key, tests).filter(|_| is_value)
            }
        };
        if let Some(problem) = mistake {
            source.problem(&span, problem);
            continue;
        }
        let added = match pointer {
            Some(pointer) => {
                pointer.split('/').map(|name| name.replace("~1", "/").replace("~0", "~")).collect()
            }
            None => vec![key.to_owned()],
        };
        let depth = path.len();
        path.extend(added);
        field(source, item, path, place, all);
        path.truncate(depth);
    }
}

fn field(
    source: &mut Source,
    item: &Item<'_>,
    path: &mut Vec<String>,
    place: TableKind,
    all: &mut Vec<Condition>,
) {
    let named = match path.as_slice() {
        [only] if only == "any_path" => FieldPath::AnyPath,
        names => FieldPath::Named(names.to_vec()),
    };
    let mut add = |source: &mut Source, name: &str, test: Option<Test>, item: &Item<'_>| {
        let Some(test) = test else { return };
        let span = &item.span();
        if named == FieldPath::AnyPath
            && !matches!(test, Test::Path(_) | Test::Within(_) | Test::Outside(_))
        {
            return source
                .problem(span, format!("`any_path` is about paths, so `{name}` does not apply"));
        }
        let text = written(path, name, item);
        all.push(Condition { field: named.clone(), test, text });
    };
    match item.get_ref() {
        DeValue::Table(inner) => {
            let is_test = |key: &str| TESTS.iter().any(|(name, ..)| *name == key);
            let tests = entries(inner).filter(|(key, ..)| is_test(key)).count();
            if tests == 0 && named != FieldPath::AnyPath {
                return fields(source, inner, path, place, all);
            }
            let mut range = Range::default();
            for (key, span, item) in entries(inner) {
                if !is_test(key) {
                    source.problem(&span, unknown_test(key));
                } else if matches!(key, "above" | "at_least" | "below" | "at_most") {
                    bound(source, key, item, &mut range);
                } else {
                    of_version_2(source, key, &span, path);
                    let is_of_line = key == "matches" && is_command(path) && place.widens();
                    let name = if is_of_line && !is_any(item) { "words" } else { key };
                    let test = test(source, name, item, place);
                    add(source, key, test, item);
                }
            }
            if range != Range::default() {
                add(source, "range", Some(Test::Range(range)), item);
            }
        }
        _ if named == FieldPath::AnyPath => {
            let test = test(source, "path", item, place);
            add(source, "path", test, item);
        }
        _ => {
            let test = plain(source, item, path, place);
            add(source, "=", test, item);
        }
    }
}

/// Returns `true` for a field that holds a command line.
fn is_command(path: &[String]) -> bool {
    path.last().is_some_and(|name| name == "command")
}

/// Returns `true` for the pattern that says nothing.
fn is_any(item: &Item<'_>) -> bool {
    item.get_ref().as_str() == Some("*")
}

/// A condition without the name of a test: a value, a pattern, `within:DIR` or a comparison such as `> 500`.
fn plain(source: &mut Source, item: &Item<'_>, path: &[String], place: TableKind) -> Option<Test> {
    let is_command = is_command(path);
    let text = match item.get_ref() {
        DeValue::String(text) => text.as_ref(),
        DeValue::Array(items)
            if is_command
                || items.iter().any(|it| it.get_ref().as_str().is_some_and(is_pattern)) =>
        {
            let test = if is_command { "words" } else { "matches" };
            return self::test(source, test, item, place);
        }
        _ => return test(source, "equals", item, place),
    };
    if let Some(folder) = text.strip_prefix("within:") {
        return Some(Test::Within(vec![folder.to_owned()]));
    }
    if let Some(folder) = text.strip_prefix("outside:") {
        return Some(Test::Outside(vec![folder.to_owned()]));
    }
    if let Some(range) = comparison(text) {
        return Some(Test::Range(range));
    }
    let test = match () {
        () if is_command => "words",
        () if is_pattern(text) => "matches",
        () => "equals",
    };
    self::test(source, test, item, place)
}

/// A comparison such as `> 500` or `<= 3.5`.
fn comparison(text: &str) -> Option<Range> {
    let (sign, rest) =
        ["<=", ">=", "<", ">"].iter().find_map(|sign| Some((*sign, text.strip_prefix(sign)?)))?;
    let number: Number = rest.trim().parse().ok()?;
    let bound = Some((number, sign.ends_with('=')));
    Some(match sign.starts_with('>') {
        true => Range { low: bound, high: None },
        false => Range { low: None, high: bound },
    })
}

fn bound(source: &mut Source, name: &str, item: &Item<'_>, range: &mut Range) {
    let Some(Value::Number(number)) = json(item.get_ref()) else {
        return source.problem(&item.span(), format!("`{name}` needs a number"));
    };
    let side = if matches!(name, "above" | "at_least") { &mut range.low } else { &mut range.high };
    if side.is_some() {
        return source
            .problem(&item.span(), format!("`{name}` is a second bound on the same side"));
    }
    *side = Some((number, matches!(name, "at_least" | "at_most")));
}

fn test(source: &mut Source, name: &str, item: &Item<'_>, place: TableKind) -> Option<Test> {
    let what = format!("`{name}`");
    if name == "exists" {
        return boolean(source, &what, item).map(Test::Exists);
    }
    if name == "equals" {
        return equals(source, item);
    }
    let texts = strings(source, &what, item);
    if texts.is_empty() {
        return None;
    }
    let long = texts.iter().find(|(text, _)| text.len() > MAX_PATTERN || text.is_empty());
    if let Some((_, span)) = long {
        source.problem(span, format!("a pattern has 1 to {MAX_PATTERN} bytes"));
        return None;
    }
    let owned = || texts.iter().map(|(text, _)| (*text).to_owned()).collect();
    Some(match name {
        "matches" => Test::Text(texts.iter().map(|(text, _)| Glob::new(text)).collect()),
        "within" => Test::Within(owned()),
        "outside" => Test::Outside(owned()),
        "path" => Test::Path(texts.iter().map(|(text, _)| PathGlob::new(text)).collect()),
        "named_by" | "not_named_by" | "carries" => {
            let sources: Vec<String> = owned();
            if let Some(problem) = wrong_origin(name, &sources, place) {
                source.problem(&item.span(), problem);
                return None;
            }
            Test::Origin(OriginTest::of(name, sources)?)
        }
        "host" => Test::Host(hosts(source, &texts)?),
        "is" if texts.iter().all(|(text, _)| *text == PathGlob::SECRET) => {
            Test::Path(vec![PathGlob::secret()])
        }
        "is" => Test::Is(classes(source, &texts)?),
        "runs" => Test::Runs(programs(source, &texts, place)?),
        "words" => {
            if place.widens() {
                let advice = "a pattern over a whole command line would let through more than it says: use `runs` or `is`";
                source.problem(&item.span(), advice);
                return None;
            }
            Test::Words(texts.iter().map(|(text, _)| Glob::new(text)).collect())
        }
        // A test of `TESTS` that has no arm here. It must not become another one.
        other => {
            source.problem(&item.span(), format!("`{other}` is no test of texts"));
            return None;
        }
    })
}

/// Refuses a test of origins in a file of version 1, and one of a whole command line.
fn of_version_2(source: &mut Source, key: &str, span: &Span<usize>, path: &[String]) {
    if !matches!(key, "named_by" | "not_named_by" | "carries") {
        return;
    }
    source.needs_version(span, 2, key);
    if path.last().is_some_and(|name| name == "command") && key != "carries" {
        let text = "a command line is no value that someone names: ask with `when.has_read` and `where.command.is`";
        source.problem(span, text);
    }
}

/// The problem of a condition on origins: each way that would be laxer where nothing is known is refused, with the
/// sentence to write instead.
fn wrong_origin(name: &str, sources: &[String], place: TableKind) -> Option<String> {
    if name == "named_by" && !place.widens() {
        return Some(
            "`named_by` does not hold for a value that stands nowhere, such as one that was made up, and this rule would \
             be silent: write `not_named_by = [\"user\", \"own\"]`"
                .into(),
        );
    }
    if name != "named_by" && place.widens() {
        return Some(format!(
            "`{name}` holds where nothing is recorded, and would allow then: write `named_by = \"user\"`"
        ));
    }
    let wrong =
        sources.iter().find(|it| matches!(it.as_str(), "user" | "own") == (name == "carries"))?;
    Some(match name {
        "carries" => format!(
            "`carries` is about text of others, such as \"others\" or \"web\", and not of `{wrong}`"
        ),
        _ => format!(
            "`{wrong}` names no target: `{name}` has `user`, `own` or both; for what was read write `when.has_read`"
        ),
    })
}

fn equals(source: &mut Source, item: &Item<'_>) -> Option<Test> {
    let values = match json(item.get_ref()) {
        Some(Value::Array(items)) => items,
        Some(value) => vec![value],
        None => Vec::new(),
    };
    let scalar =
        |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    if values.is_empty() || !values.iter().all(scalar) {
        source.problem(&item.span(), "a field is compared with texts, numbers, `true` or `false`");
        return None;
    }
    Some(Test::OneOf(values))
}

fn hosts(source: &mut Source, texts: &[(&str, Span<usize>)]) -> Option<Vec<HostPattern>> {
    let mut found = Vec::new();
    for (text, span) in texts {
        match HostPattern::parse(text) {
            Ok(host) => found.push(host),
            Err(problem) => source.problem(span, problem),
        }
    }
    (found.len() == texts.len()).then_some(found)
}

fn classes(source: &mut Source, texts: &[(&str, Span<usize>)]) -> Option<Classes> {
    let mut found = Classes::default();
    let mut good = true;
    for (text, span) in texts {
        match Classes::named(text) {
            Some(class) => found = found.with(class),
            None => {
                good = false;
                let known: Vec<&str> = CLASSES.iter().map(|(name, _)| *name).collect();
                source.problem(
                    span,
                    format!(
                        "`{text}` is no class of commands; there are {}, and `{}` alone for paths",
                        known.join(", "),
                        PathGlob::SECRET
                    ),
                );
            }
        }
    }
    good.then_some(found)
}

/// Programs whose arguments are other programs or code, so that a rule about their first words allows anything.
pub(crate) const RUNNERS: &[&str] = &[
    "sudo", "doas", "su", "env", "xargs", "sh", "bash", "zsh", "dash", "fish", "python", "python3",
    "perl", "ruby", "node", "php", "eval", "exec", "ssh", "npx", "uvx", "bunx", "watch", "setsid",
    "parallel", "nohup", "timeout", "nice", "time", "command", "source", ".",
];

fn programs(
    source: &mut Source,
    texts: &[(&str, Span<usize>)],
    place: TableKind,
) -> Option<Vec<Vec<String>>> {
    let mut found = Vec::new();
    for (text, span) in texts {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let odd = |word: &String| {
            word.contains(['*', '?', '$', '`', '"', '\'', ';', '|', '&', '<', '>', '\\'])
        };
        match words.first() {
            None => source.problem(span, "`runs` needs the name of a program"),
            Some(_) if words.iter().any(odd) => {
                source.problem(span, "`runs` has plain words: it matches commands that begin with them, with anything after");
            }
            Some(name)
                if place.widens() && words.len() == 1 && RUNNERS.contains(&name.as_str()) =>
            {
                source.problem(
                    span,
                    format!("`{name}` runs the program in its arguments: name the arguments, too"),
                );
            }
            Some(_) => found.push(words),
        }
    }
    (found.len() == texts.len()).then_some(found)
}

fn unknown_test(key: &str) -> String {
    let known: Vec<&str> = TESTS.iter().map(|(name, ..)| *name).collect();
    let near = known
        .iter()
        .max_by(|one, other| strsim::jaro(one, key).total_cmp(&strsim::jaro(other, key)));
    match near.filter(|near| strsim::jaro(near, key) > 0.8) {
        Some(near) => format!("`{key}` is no test of a field: is `{near}` meant?"),
        None => format!("`{key}` is no test of a field; there are {}", known.join(", ")),
    }
}

/// The most characters of a condition's value in explanations.
const MAX_WRITTEN: usize = 80;

fn written(path: &[String], name: &str, item: &Item<'_>) -> String {
    let mut value = json(item.get_ref()).map(|value| value.to_string()).unwrap_or_default();
    if let Some((at, _)) = value.char_indices().nth(MAX_WRITTEN) {
        value.truncate(at);
        value.push('…');
    }
    match name {
        "=" => format!("{} = {value}", path.join(".")),
        _ => format!("{} {name} {value}", path.join(".")),
    }
}
