//! Reads values of a TOML document, with the place of each problem.
//!
//! Each function returns `None` after it has added a problem with the place of the value. So the reader continues and
//! finds the next problem: a person who edits a file should not have to load it once for each mistake.

use std::ops::Range;

use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Source;

pub(crate) type Item<'t> = Spanned<DeValue<'t>>;

/// The entries of a table, with the spans of key and value.
pub(crate) fn entries<'d, 't>(
    table: &'d DeTable<'t>,
) -> impl Iterator<Item = (&'d str, Range<usize>, &'d Item<'t>)> {
    table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value))
}

/// A string, or a problem.
pub(crate) fn string<'d>(source: &mut Source, what: &str, item: &'d Item<'_>) -> Option<&'d str> {
    let text = item.get_ref().as_str();
    if text.is_none() {
        source.problem(&item.span(), format!("{what} has to be a text, not {}", kind(item)));
    }
    text
}

/// A truth value, or a problem.
pub(super) fn boolean(source: &mut Source, what: &str, item: &Item<'_>) -> Option<bool> {
    let value = item.get_ref().as_bool();
    if value.is_none() {
        source.problem(
            &item.span(),
            format!("{what} has to be `true` or `false`, not {}", kind(item)),
        );
    }
    value
}

/// A text or a list of texts, which may not be empty.
pub(crate) fn strings<'d>(
    source: &mut Source,
    what: &str,
    item: &'d Item<'_>,
) -> Vec<(&'d str, Range<usize>)> {
    match item.get_ref() {
        DeValue::String(text) => vec![(text.as_ref(), item.span())],
        DeValue::Array(items) => {
            if items.is_empty() {
                source.problem(
                    &item.span(),
                    format!("{what} is an empty list, which matches nothing"),
                );
            }
            let mut found = Vec::with_capacity(items.len());
            for item in items.iter() {
                found.extend(string(source, what, item).map(|text| (text, item.span())));
            }
            found
        }
        _ => {
            source.problem(
                &item.span(),
                format!("{what} has to be a text or a list of texts, not {}", kind(item)),
            );
            Vec::new()
        }
    }
}

/// An integer from 0 on, or a problem.
pub(crate) fn count(source: &mut Source, what: &str, item: &Item<'_>) -> Option<u32> {
    let value = item
        .get_ref()
        .as_integer()
        .and_then(|number| u32::from_str_radix(number.as_str(), number.radix()).ok());
    if value.is_none() {
        source.problem(
            &item.span(),
            format!("{what} has to be a number from 0 on, not {}", kind(item)),
        );
    }
    value
}

pub(crate) fn table<'d, 't>(
    source: &mut Source,
    what: &str,
    item: &'d Item<'t>,
) -> Option<&'d DeTable<'t>> {
    let table = item.get_ref().as_table();
    if table.is_none() {
        source.problem(&item.span(), format!("{what} has to be a table, not {}", kind(item)));
    }
    table
}

fn kind(item: &Item<'_>) -> String {
    match item.get_ref() {
        DeValue::String(text) => format!("the text {text:?}"),
        other => format!("a value of the type {}", other.type_str()),
    }
}

/// The value as JSON. `None` for a number that JSON cannot write.
///
/// An integer beyond 64 bits and a float that is infinite have no JSON value. We refuse a rule with one: compared with
/// an argument, it would match nothing or something else.
pub(crate) fn json(value: &DeValue<'_>) -> Option<Value> {
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => {
            Value::Number(i64::from_str_radix(number.as_str(), number.radix()).ok()?.into())
        }
        DeValue::Float(number) => Value::Number(Number::from_f64(number.as_str().parse().ok()?)?),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(at) => Value::String(at.to_string()),
        DeValue::Array(items) => {
            let items = items.iter().map(|item| json(item.get_ref()));
            Value::Array(items.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Value::Object(object(table)?),
    })
}

pub(crate) fn object(table: &DeTable<'_>) -> Option<Map<String, Value>> {
    entries(table).map(|(key, _, item)| Some((key.to_owned(), json(item.get_ref())?))).collect()
}

/// The way out for a key of the whole file that stands in a table, as where a text was added to the end of a file.
pub(super) fn misplaced(key: &str, table: &str) -> Option<String> {
    ["version", "preset", "edits"].contains(&key).then(|| {
        format!(
            "`{key}` belongs at the top of the file, once, in front of its first `[`: behind `{table}` it is a part of that"
        )
    })
}
