//! The result of one call that was executed elsewhere.
//!
//! A result is any JSON value, but three objects with a `kind` are read as a typed result. To keep reading
//! unambiguous, a value that *claims* a kind has to have its shape:
//!
//! | JSON | read as |
//! |---|---|
//! | `"sea.png"`, `{"file": "sea.png"}` | a value |
//! | `{"kind": "tool-return", "return_value": 3}` | the value 3, with content and metadata if it has them |
//! | `{"kind": "model-retry", "message": "…"}` | the model should try again |
//! | `{"kind": "tool-failed", "message": "…"}` | the call failed |
//! | `{"kind": "tool-return"}` | an error: no `return_value` |
//! | `{"kind": "tool-denied"}`, `{"part_kind": "retry-prompt"}` | an error: it says that the call did not run |
//! | `{"kind": "invoice", …}` | a value: the kind is not one of these |
//!
//! Writing is the inverse: if a plain value would be read as one of the three, we write it inside of a `tool-return`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::args::unique;
use crate::outcome::{ModelRetry, Outcome, ToolFailed, ToolReturn};

/// The result of a call that was executed elsewhere.
///
/// Exhaustive on purpose: a result of a new kind must not reach the model as a success.
///
/// ```
/// use countersign::deferred::CallResult;
/// use countersign::outcome::ModelRetry;
/// use serde_json::json;
///
/// let read = |value| serde_json::from_value::<CallResult>(value);
/// assert_eq!(read(json!("sea.png"))?, CallResult::from("sea.png"));
/// assert_eq!(read(json!({"kind": "model-retry", "message": "again"}))?, ModelRetry::new("again").into());
/// assert!(read(json!({"kind": "tool-denied"})).is_err(), "read as a value, a denial would be a success");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum CallResult {
    /// The call succeeded with this value.
    Return(ToolReturn),
    /// The model should try again.
    Retry(ModelRetry),
    /// The call failed, and the model should not try again.
    Failed(ToolFailed),
}

impl From<CallResult> for Outcome {
    fn from(result: CallResult) -> Self {
        match result {
            CallResult::Return(it) => Self::Returned(it),
            CallResult::Retry(it) => Self::Retry(it),
            CallResult::Failed(it) => Self::Failed(it),
        }
    }
}

impl<V: Into<Value>> From<V> for CallResult {
    fn from(value: V) -> Self {
        Self::Return(ToolReturn::new(value))
    }
}

impl From<ToolReturn> for CallResult {
    fn from(it: ToolReturn) -> Self {
        Self::Return(it)
    }
}

impl From<ModelRetry> for CallResult {
    fn from(it: ModelRetry) -> Self {
        Self::Retry(it)
    }
}

impl From<ToolFailed> for CallResult {
    fn from(it: ToolFailed) -> Self {
        Self::Failed(it)
    }
}

impl Serialize for CallResult {
    /// Writes a plain value as it is, unless reading would take it for a typed result; then it is written as one.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Return(ToolReturn { return_value, content: None, metadata: None })
                if matches!(claims(return_value), Claims::Plain) =>
            {
                return_value.serialize(serializer)
            }
            Self::Return(it) => Outcome::Returned(it.clone()).serialize(serializer),
            Self::Retry(it) => Outcome::Retry(it.clone()).serialize(serializer),
            Self::Failed(it) => Outcome::Failed(it.clone()).serialize(serializer),
        }
    }
}

impl JsonSchema for CallResult {
    fn schema_name() -> Cow<'static, str> {
        "CallResult".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let message = |kind: &str| {
            json_schema!({
                "properties": {"kind": {"const": kind}, "message": {"type": "string"}},
                "required": ["message"]
            })
        };
        let kinds = ["tool-return", "model-retry", "tool-failed"].into_iter().chain(NO_RESULTS);
        json_schema!({
            "description": "The result of a call that was executed elsewhere: any value, or one of three kinds.",
            "if": {
                "type": "object",
                "properties": {"kind": {"enum": kinds.collect::<Vec<_>>()}},
                "required": ["kind"]
            },
            "then": {
                "anyOf": [
                    {"properties": {"kind": {"const": "tool-return"}}, "required": ["return_value"]},
                    message("model-retry"),
                    message("tool-failed")
                ]
            },
            "else": {
                "not": {
                    "type": "object",
                    "properties": {"part_kind": {"const": RETRY_PROMPT}},
                    "required": ["part_kind"]
                }
            }
        })
    }
}

impl<'de> Deserialize<'de> for CallResult {
    /// A value with the `kind` of a typed result but not its shape is an error. Read as a plain value, it would turn a
    /// failure into a success.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = unique::value(deserializer)?;
        let result = match claims(&value) {
            Claims::Plain => return Ok(Self::Return(ToolReturn::new(value))),
            Claims::Return if value.get("return_value").is_none() => {
                return Err(D::Error::missing_field("return_value"));
            }
            Claims::Return => serde_json::from_value(value).map(Self::Return),
            Claims::Retry => serde_json::from_value(value).map(Self::Retry),
            Claims::Failed => serde_json::from_value(value).map(Self::Failed),
            Claims::Other(kind) => {
                return Err(D::Error::custom(format_args!(
                    "`{kind}` is no result of a call that was executed elsewhere: give a value, a `tool-return`, a \
                     `model-retry` or a `tool-failed`"
                )));
            }
        };
        result.map_err(D::Error::custom)
    }
}

/// The kind of result that a JSON value declares with `kind` or `part_kind`.
enum Claims {
    Return,
    Retry,
    Failed,
    /// A kind that PydanticAI or this library writes, and that is no result.
    Other(&'static str),
    Plain,
}

/// Kinds of a call that did not run, or may not have run. Read as plain values they would be successes.
const NO_RESULTS: [&str; 3] = ["tool-approved", "tool-denied", "tool-unknown"];

/// The `part_kind` that PydanticAI used before it had the kind `model-retry`.
const RETRY_PROMPT: &str = "retry-prompt";

fn claims(value: &Value) -> Claims {
    let said = |key: &str| value.get(key).and_then(Value::as_str);
    match said("kind") {
        Some("tool-return") => return Claims::Return,
        Some("model-retry") => return Claims::Retry,
        Some("tool-failed") => return Claims::Failed,
        kind => {
            if let Some(kind) = NO_RESULTS.into_iter().find(|known| Some(*known) == kind) {
                return Claims::Other(kind);
            }
        }
    }
    if said("part_kind") == Some(RETRY_PROMPT) {
        Claims::Other(RETRY_PROMPT)
    } else {
        Claims::Plain
    }
}
