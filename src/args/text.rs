//! Strict parsing of arguments as a model wrote them.

use std::fmt;

use serde_json::Value;

use super::strict::Strict;
use super::{Args, depth};

/// The error of a text that is not valid as the arguments of a call. The message is for the model, which is told to try
/// again.
///
/// ```
/// use countersign::Args;
///
/// let error = Args::parse(r#"{"a": 1, "a": 2}"#).unwrap_err();
/// assert_eq!(error.to_string(), "the key `a` appears twice in one object");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgsError(String);

impl ArgsError {
    pub(super) fn not_an_object(value: &Value) -> Self {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        };
        Self(format!("the arguments must be a JSON object, not {kind}"))
    }
}

impl ArgsError {
    pub(crate) fn too_deep() -> Self {
        let max = depth::MAX_ARGS;
        Self(format!("the arguments are nested more than {max} levels deep: flatten them"))
    }
}

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ArgsError {}

pub(super) fn parse(text: &str) -> Result<Args, ArgsError> {
    if text.trim().is_empty() {
        return Ok(Args::new());
    }
    if depth::of_text(text) > depth::MAX_ARGS {
        return Err(ArgsError::too_deep());
    }
    let value = Strict::exact(text).map_err(ArgsError)?;
    match value {
        Value::Object(map) => Ok(Args::from(map)),
        Value::Null => Ok(Args::new()),
        other => Err(ArgsError::not_an_object(&other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_null_and_empty_text_mean_no_arguments() {
        for text in ["", "  \n", "null", "{}", " { } "] {
            assert_eq!(parse(text).unwrap(), Args::new(), "{text:?}");
        }
    }

    #[test]
    fn keys_and_numbers_that_a_reader_would_change_are_refused() {
        for (text, says) in [
            (r#"{"path":"safe.txt","path":"/etc/passwd"}"#, "`path` appears twice"),
            (r#"{"a":{"b":1,"\u0062":2}}"#, "`b` appears twice"),
            (r#"{"a":[{"x":1,"x":1}]}"#, "`x` appears twice"),
            (r#"{"n":123456789012345678901234567890}"#, "cannot be kept exactly"),
            (r#"{"n":-9223372036854775809}"#, "cannot be kept exactly"),
            (r#"{"n":1e999}"#, "cannot be kept exactly"),
            (r#"{"n":1e-400}"#, "cannot be kept exactly"),
            (r#"{"n":123456789012345678901234567890.5}"#, "cannot be kept exactly"),
            (r#"{"n":9007199254740993.0}"#, "cannot be kept exactly"),
            (r#"{"n":9007199254740993e0}"#, "cannot be kept exactly"),
            (r#"{"n":0.9007199254740993e16}"#, "cannot be kept exactly"),
            (r#"{"n":1234567890123456789e2}"#, "cannot be kept exactly"),
            (r#"{"$serde_json::private::Number":"1"}"#, "reserved"),
            (r#"{"\u0024serde_json::private::Number":"1"}"#, "reserved"),
            ("[1]", "not an array"),
            ("7", "not a number"),
            ("\"x\"", "not a string"),
            ("true", "not a boolean"),
            ("{\"a\":1", "not valid JSON"),
            ("{\"a\":1-2}", "not valid JSON"),
            ("{\"a\":\"\\", "not valid JSON"),
            ("{\"a\":\"é\\é\"}", "not valid JSON"),
        ] {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn the_same_key_in_two_objects_and_as_a_value_is_fine() {
        for text in [
            r#"{"a":{"x":1},"b":{"x":1}}"#,
            r#"{"a":"a","b":["a","a"]}"#,
            r#"{"s":"{\"x\":1,\"x\":2}"}"#,
            r#"{"n":18446744073709551615,"m":-9223372036854775808,"f":0.1,"e":1e3}"#,
            r#"{"n":[0.0,-0.0,0e999999999999999999999,0.000e-400,1e22,1e23,1.7976931348623157e308,5e-324]}"#,
            r#"{"n":[0.30000000000000004,3.14159265358979323846,1234567890123456.78,9007199254740992.0,1.5E+3]}"#,
            r#"{"n":[0.10000000000000001,-123.456,1e-300,12.5e1,0.00125e5]}"#,
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let nested = |levels: usize| {
            format!("{{\"a\":{}{}}}", "[".repeat(levels - 1), "]".repeat(levels - 1))
        };
        assert!(parse(&nested(depth::MAX_ARGS)).is_ok());
        for levels in [depth::MAX_ARGS + 1, 100_000] {
            let error = parse(&nested(levels)).unwrap_err().to_string();
            assert!(error.contains("nested more than 64 levels deep"), "{error}");
        }
    }
}
