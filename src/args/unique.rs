//! Deserialising JSON in which a repeated key is an error: two parsers would keep different values.

use serde::de::{DeserializeOwned, DeserializeSeed as _, Deserializer, Error};
use serde_json::{Map, Value};

use super::strict::Strict;
use crate::error::UserError;

/// Reads a JSON object, and refuses one in which a key is repeated at any depth: two readers of it would keep different
/// values.
///
/// ```
/// use countersign::args::strict_object;
///
/// let read = |text| strict_object(&mut serde_json::Deserializer::from_str(text));
/// assert_eq!(read(r#"{"path": "a"}"#)?["path"], "a");
/// assert!(read(r#"{"path": "a", "path": "b"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// # Errors
/// The deserializer's error, for a text that is no JSON object or repeats a key.
pub fn object<'de, D>(deserializer: D) -> Result<Map<String, Value>, D::Error>
where
    D: Deserializer<'de>,
{
    match value(deserializer)? {
        Value::Object(object) => Ok(object),
        _ => Err(D::Error::custom("expected a JSON object")),
    }
}

/// Removes the value of this key from an object and deserialises it; a missing value has its default.
pub(crate) fn take<T, E>(object: &mut Map<String, Value>, key: &str) -> Result<T, E>
where
    T: DeserializeOwned + Default,
    E: Error,
{
    let Some(value) = object.remove(key) else { return Ok(T::default()) };
    serde_json::from_value(value).map_err(|error| E::custom(format_args!("`{key}`: {error}")))
}

/// A stored object, whose `version` is checked before anything else: the shape of another version is unknown (rule L7).
///
/// We look at the version before the shape: a state of a newer build is refused with its number, and not with the name
/// of a field that this build has not heard of.
pub(crate) fn of_version<'de, T, D>(deserializer: D, known: u32) -> Result<T, D::Error>
where
    T: DeserializeOwned,
    D: Deserializer<'de>,
{
    let object = object(deserializer)?;
    let found = object.get("version").and_then(Value::as_u64);
    let found =
        found.ok_or_else(|| D::Error::custom("it does not say of which `version` it is"))?;
    UserError::check_version(found, known).map_err(D::Error::custom)?;
    serde_json::from_value(Value::Object(object)).map_err(D::Error::custom)
}

/// Any JSON value in which no key is repeated at any depth.
pub(crate) fn value<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
    Strict::ANY.deserialize(deserializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        value(&mut serde_json::Deserializer::from_str(text))
    }

    #[test]
    fn every_value_is_read_unchanged() {
        for text in [
            "null",
            "true",
            "-9223372036854775808",
            "18446744073709551615",
            "0.1",
            "1e21",
            "\"é\\n\"",
            "[1,[],{}]",
            r#"{"a":{"x":1},"b":{"x":[null]}}"#,
        ] {
            assert_eq!(read(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
        let value = json!({"a": [1, 2.5, "x", null], "b": {"c": u64::MAX}});
        assert_eq!(super::value(value.clone()).unwrap(), value);
    }

    #[test]
    fn a_repeated_key_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":1}"#, r#"[{"a":{"b":1,"\u0062":2}}]"#] {
            assert!(read(text).unwrap_err().to_string().contains("appears twice"), "{text}");
        }
    }

    #[test]
    fn the_private_form_of_a_number_is_a_number() {
        assert_eq!(read(r#"{"$serde_json::private::Number":"7"}"#).unwrap(), json!(7));
        for text in [
            r#"{"$serde_json::private::Number":"seven"}"#,
            r#"{"$serde_json::private::Number":"7","a":1}"#,
            r#"{"$serde_json::private::Number":7}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
