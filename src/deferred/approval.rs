//! The answer to one call that needs an approval.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::args::{Args, IntoArgs, unique};
use crate::outcome::ToolDenied;

/// The answer to a call that needs an approval. `true` and `false` convert to it; no other plain value does.
///
/// Exhaustive on purpose: an answer of a new kind must not pass for an approval.
///
/// ```
/// use countersign::deferred::ToolApproval;
/// use serde_json::json;
///
/// let read = |value| serde_json::from_value::<ToolApproval>(value);
/// assert_eq!(read(json!(true))?, ToolApproval::from(true));
/// assert!(matches!(read(json!({"kind": "tool-denied", "message": "no"}))?, ToolApproval::Denied(_)));
/// assert!(read(json!({"kind": "tool-approved", "overide_args": {}})).is_err(), "a misspelt key is no approval");
/// assert!(read(json!("yes")).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind")]
pub enum ToolApproval {
    /// The call may run.
    #[serde(rename = "tool-approved")]
    Approved(ToolApproved),
    /// The call does not run.
    #[serde(rename = "tool-denied")]
    Denied(ToolDenied),
}

/// An approval, of the arguments that were shown or of edited ones.
///
/// ```
/// use countersign::Args;
/// use countersign::deferred::ToolApproved;
///
/// assert_eq!(ToolApproved::new().override_args, None);
/// assert_eq!(ToolApproved::with_args(Args::new()).override_args, Some(Args::new()), "runs with no arguments");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ToolApproved {
    /// The arguments to run with instead of the ones shown. They replace all of them: `{}` runs the call with none. The
    /// call passes the whole stack with them, and is asked about again if a layer changes them (rule A2).
    pub override_args: Option<Args>,
}

impl ToolApproved {
    /// An approval of the arguments as they were shown.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An approval with other arguments than were shown; they replace all of the shown ones.
    #[must_use]
    pub fn with_args(args: impl IntoArgs) -> Self {
        Self { override_args: Some(args.into_args()) }
    }
}

impl From<bool> for ToolApproval {
    fn from(approved: bool) -> Self {
        if approved { ToolApproved::new().into() } else { ToolDenied::default().into() }
    }
}

impl From<ToolApproved> for ToolApproval {
    fn from(approved: ToolApproved) -> Self {
        Self::Approved(approved)
    }
}

impl From<ToolDenied> for ToolApproval {
    fn from(denied: ToolDenied) -> Self {
        Self::Denied(denied)
    }
}

impl JsonSchema for ToolApproval {
    fn schema_name() -> Cow<'static, str> {
        "ToolApproval".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "The answer to a call that needs an approval.",
            "anyOf": [
                {"type": "boolean"},
                {
                    "type": "object",
                    "properties": {
                        "kind": {"const": "tool-approved"},
                        "override_args": {
                            "description": "Runs with these arguments instead of the ones shown; all of them.",
                            "type": ["object", "null"]
                        }
                    },
                    "required": ["kind"],
                    "additionalProperties": false
                },
                {
                    "type": "object",
                    "properties": {
                        "kind": {"const": "tool-denied"},
                        "message": {"description": "The text for the model, verbatim.", "type": "string"}
                    },
                    "required": ["kind"],
                    "additionalProperties": false
                }
            ]
        })
    }
}

impl<'de> Deserialize<'de> for ToolApproval {
    /// An unknown key is an error: with a misspelt `override_args`, the call would run with the arguments that the
    /// approver has replaced.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let expected =
            "expected true, false, or an object of kind `tool-approved` or `tool-denied`";
        let mut object = match unique::value(deserializer)? {
            Value::Bool(approved) => return Ok(approved.into()),
            Value::Object(object) => object,
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(D::Error::custom(expected));
            }
        };
        let read = match object.remove("kind").as_ref().and_then(Value::as_str) {
            Some("tool-approved") => approved(object).map(Self::Approved),
            Some("tool-denied") => denied(object).map(Self::Denied),
            Some(_) | None => Err(expected.to_owned()),
        };
        read.map_err(D::Error::custom)
    }
}

fn approved(mut object: Map<String, Value>) -> Result<ToolApproved, String> {
    let override_args = match object.remove("override_args") {
        None | Some(Value::Null) => None,
        Some(Value::Object(args)) => Some(Args::from(args)),
        Some(_) => return Err("`override_args` must be an object or null".to_owned()),
    };
    nothing_else("tool-approved", &object)?;
    Ok(ToolApproved { override_args })
}

fn denied(mut object: Map<String, Value>) -> Result<ToolDenied, String> {
    let denied = match object.remove("message") {
        None => ToolDenied::default(),
        Some(Value::String(message)) => ToolDenied { message },
        Some(_) => return Err("`message` must be a string".to_owned()),
    };
    nothing_else("tool-denied", &object)?;
    Ok(denied)
}

fn nothing_else(kind: &str, object: &Map<String, Value>) -> Result<(), String> {
    match object.keys().next() {
        None => Ok(()),
        Some(key) => Err(format!("`{kind}` has no `{}`", key.escape_debug())),
    }
}
