//! Deserialising JSON in which a repeated key is an error: two parsers would keep different values.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Number, Value};

use crate::error::UserError;

/// With the feature `arbitrary_precision`, serde_json deserialises a number as an object with this key. A build without
/// the feature reads the same text as an object, so both builds treat it as a number here.
const NUMBER: &str = "$serde_json::private::Number";

/// A JSON object in which no key is repeated at any depth. Its fields are removed with [`take`].
pub(crate) fn object<'de, D>(deserializer: D) -> Result<Map<String, Value>, D::Error>
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
    Unique::deserialize(deserializer).map(|Unique(value)| value)
}

struct Unique(Value);

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Self)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        value(deserializer)
    }

    fn visit_bool<E: Error>(self, it: bool) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i64<E: Error>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E: Error>(self, it: String) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Unique(item)) = access.next_element()? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if key == NUMBER && map.is_empty() {
                let number: Number =
                    serde_json::from_str(&access.next_value::<String>()?).map_err(Error::custom)?;
                return match access.next_key::<String>()? {
                    None => Ok(Value::Number(number)),
                    Some(_) => Err(Error::custom(format_args!("the key `{NUMBER}` is reserved"))),
                };
            }
            let Unique(value) = access.next_value()?;
            if map.contains_key(&key) {
                let key = key.escape_debug();
                return Err(Error::custom(format_args!(
                    "the key `{key}` appears twice in one object"
                )));
            }
            map.insert(key, value);
        }
        Ok(map.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, serde_json::Error> {
        value(&mut serde_json::Deserializer::from_str(text))
    }

    #[test]
    fn every_value_is_read_as_it_is() {
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
    fn what_another_build_reads_as_a_number_is_one() {
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
