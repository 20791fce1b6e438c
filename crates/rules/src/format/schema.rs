//! The JSON Schema of a file of rules, so that editors complete it.

use serde_json::{Map, Value, json};

use super::condition_format::TESTS;
use super::{read_source, rule, rule_file, rule_people};
use crate::calls::classes::CLASSES;
use crate::calls::glob::PathGlob;
use crate::preset;

/// The JSON Schema of a file of rules. It is made of the tables that files are read with.
///
/// ```
/// let schema = countersign_rules::schema();
/// assert_eq!(schema["properties"]["version"]["enum"], serde_json::json!([1, 2]));
/// ```
#[must_use]
pub fn schema() -> Value {
    let texts = json!({"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]});
    let mut properties = Map::new();
    for (key, description) in rule_file::KEYS {
        let shape = match *key {
            "version" => json!({"enum": rule_file::VERSIONS}),
            "preset" => json!({"enum": preset::NAMED.map(|(name, _)| name)}),
            "edits" => json!({"enum": rule_file::EDITS}),
            "danger_default_allow" => json!({"type": "boolean"}),
            "rule" => json!({"type": "array", "items": {"$ref": "#/$defs/rule"}}),
            "source" => json!({"type": "array", "items": {"$ref": "#/$defs/source"}}),
            "test" => json!({"oneOf": [
                {"$ref": "#/$defs/tests"},
                {"type": "array", "items": {"$ref": "#/$defs/tests"}}
            ]}),
            _ => texts.clone(),
        };
        properties.insert((*key).to_owned(), described(shape, description));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Rules of Countersign",
        "type": "object",
        "required": ["version"],
        "additionalProperties": false,
        "properties": properties,
        "$defs": {
            "rule": rule_schema(&texts),
            "source": source_schema(&texts),
            "conditions": conditions(&texts),
            "tests": tests(&texts),
        },
    })
}

fn described(mut shape: Value, description: &str) -> Value {
    if let Value::Object(map) = &mut shape {
        map.insert("description".into(), description.into());
    }
    shape
}

fn rule_schema(texts: &Value) -> Value {
    let mut properties = Map::new();
    for (key, description) in rule::KEYS {
        let shape = match *key {
            "id" => json!({"type": "string", "pattern": "^[A-Za-z0-9._/-]{1,100}$"}),
            "where" => json!({"allOf": [{"$ref": "#/$defs/conditions"}]}),
            "except" => json!({"oneOf": [
                {"$ref": "#/$defs/conditions"},
                {"type": "array", "items": {"$ref": "#/$defs/conditions"}}
            ]}),
            "reason" | "title" => json!({"type": "string"}),
            "when" => json!({
                "type": "object",
                "minProperties": 1,
                "additionalProperties": false,
                "properties": {"has_read": texts, "has_not_read": texts}
            }),
            "every_time" | "not_the_requester" | "no_other_arguments" => json!({"type": "boolean"}),
            "people" => {
                json!({"type": "integer", "minimum": 1, "maximum": rule_people::MAX_PEOPLE})
            }
            "at_most" => json!({
                "type": "object",
                "required": ["calls", "within"],
                "additionalProperties": false,
                "properties": {
                    "calls": {"type": "integer", "minimum": 0},
                    "within": {"type": "string", "pattern": "^[0-9]+ *[smhd]$"},
                    "else": {"enum": ["ask", "deny"]}
                }
            }),
            _ => texts.clone(),
        };
        properties.insert((*key).to_owned(), described(shape, description));
    }
    json!({
        "type": "object",
        "required": ["id"],
        "oneOf": [{"required": ["allow"]}, {"required": ["ask"]}, {"required": ["deny"]}],
        "additionalProperties": false,
        "properties": properties,
    })
}

fn source_schema(texts: &Value) -> Value {
    let mut properties = Map::new();
    for (key, description) in read_source::KEYS {
        let shape = match *key {
            "own" => json!({"oneOf": [{"type": "boolean"}, texts]}),
            "own_text" => json!({"type": "boolean"}),
            "others" => json!({"oneOf": [
                {"type": "string"},
                {"type": "object", "additionalProperties": texts}
            ]}),
            _ => texts.clone(),
        };
        properties.insert((*key).to_owned(), described(shape, description));
    }
    json!({
        "type": "object",
        "required": ["tool"],
        "additionalProperties": false,
        "properties": properties,
    })
}

/// Fields have any name; below them are tests, or further fields.
fn conditions(texts: &Value) -> Value {
    let classes = CLASSES.iter().map(|(name, _)| *name).chain([PathGlob::SECRET]);
    let classes: Vec<&str> = classes.collect();
    let mut properties = Map::new();
    for (name, kind, description) in TESTS {
        let shape = match *kind {
            "boolean" => json!({"type": "boolean"}),
            "number" => json!({"type": "number"}),
            "classes" => json!({"oneOf": [
                {"enum": classes},
                {"type": "array", "items": {"enum": classes}, "minItems": 1}
            ]}),
            "texts" => texts.clone(),
            _ => json!({}),
        };
        properties.insert((*name).to_owned(), described(shape, description));
    }
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"oneOf": [
            {"type": ["string", "number", "boolean"]},
            {"type": "array", "minItems": 1},
            {"type": "object", "minProperties": 1, "properties": properties}
        ]},
    })
}

fn tests(texts: &Value) -> Value {
    let one = json!({"oneOf": [
        {"type": "string"},
        {"type": "object", "required": ["tool"], "additionalProperties": false, "properties": {
            "tool": {"type": "string"},
            "args": {"type": "object"}
        }}
    ]});
    let several = json!({"oneOf": [one, {"type": "array", "items": one}]});
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {"allow": several, "ask": several, "deny": several, "said": texts, "after": texts},
    })
}
