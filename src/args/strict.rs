//! The one reader of JSON. A text that two readers would understand differently is an error.
//!
//! # What is refused, and why
//!
//! | text | one reader sees | another sees |
//! |---|---|---|
//! | `{"path": "a", "path": "b"}` | `a` | `b` |
//! | `{"id": 9007199254740993}` in doubles | …993 | …992 |
//! | `{"x": 1e400}` | an error | infinity, or `null` |
//! | `{"x": 1e-400}` | the number | zero |
//! | `{"$serde_json::private::Number": "5"}` | an object | the number 5 |
//!
//! The approver, the layers, the tool and a service behind the tool may each use another reader. If they disagree about
//! one value, what was approved is not what runs.
//!
//! # How the digits are seen
//!
//! serde_json gives a visitor a number, not its text, and so a visitor cannot find lost digits. In the exact mode
//! we take every value as a [`RawValue`] first. We compare a number with its own text before we read it, and read
//! an object or array from its text by the same visitor, one level deeper. So a text of n levels is scanned n
//! times, at most 64.

use std::fmt;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

/// The keys that serde_json uses itself.
const PRIVATE: &str = "$serde_json::private::";

/// Under `arbitrary_precision` serde_json passes a number as an object with this key. A build without that feature
/// reads the same text as an object, so both builds read it as a number.
const NUMBER: &str = "$serde_json::private::Number";

/// Reads any value in which no key is repeated at any depth: two readers would keep different values.
#[derive(Clone, Copy)]
pub(super) struct Strict {
    /// Also refuses numbers that a reader would change, and serde_json's own keys. The text of each value is checked
    /// before the value is read, so a text is checked once for each of its levels.
    exact: bool,
}

impl Strict {
    /// The reader for values of every format: numbers are read as they are.
    pub(super) const ANY: Self = Self { exact: false };

    /// Reads the text of arguments, in which every number keeps its digits.
    ///
    /// # Errors
    /// The problem, as a text for the model.
    pub(super) fn exact(text: &str) -> Result<Value, String> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let value = Self { exact: true }.deserialize(&mut reader);
        value.and_then(|value| reader.end().map(|()| value)).map_err(|error| problem(&error))
    }

    /// Reads a value by its text.
    fn token(self, text: &str) -> Result<Value, serde_json::Error> {
        match text.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => {
                check_number(text).map_err(Error::custom)?;
                serde_json::from_str(text)
            }
            _ => serde_json::Deserializer::from_str(text).deserialize_any(self),
        }
    }
}

/// The problem of a text, for the model. Only a syntax error has its line and column: the others name the key or the
/// number.
fn problem(error: &serde_json::Error) -> String {
    if !error.is_data() {
        return format!("the arguments are not valid JSON: {error}");
    }
    let at = format!(" at line {} column {}", error.line(), error.column());
    error.to_string().trim_end_matches(&at).to_owned()
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if !self.exact {
            return deserializer.deserialize_any(self);
        }
        let text = <&RawValue>::deserialize(deserializer)?.get();
        self.token(text).map_err(|error| D::Error::custom(problem(&error)))
    }
}

impl<'de> Visitor<'de> for Strict {
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
        self.deserialize(deserializer)
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
        while let Some(item) = access.next_element_seed(self)? {
            items.push(item);
        }
        Ok(items.into())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            if self.exact && key.starts_with(PRIVATE) {
                return Err(Error::custom(format_args!("the key `{key}` is reserved")));
            }
            if key == NUMBER && map.is_empty() {
                let number: Number =
                    serde_json::from_str(&access.next_value::<String>()?).map_err(Error::custom)?;
                return match access.next_key::<String>()? {
                    None => Ok(Value::Number(number)),
                    Some(_) => Err(Error::custom(format_args!("the key `{NUMBER}` is reserved"))),
                };
            }
            let value = access.next_value_seed(self)?;
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

/// Refuses a number that a reader would change: one that loses digits before the point, becomes zero, or becomes
/// infinite. Digits after the point are rounded, as every reader does.
fn check_number(token: &str) -> Result<(), String> {
    let fits = if token.contains(['.', 'e', 'E']) {
        token.parse().is_ok_and(|value: f64| value.is_finite() && keeps_digits(token, value))
    } else {
        token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok()
    };
    if fits {
        return Ok(());
    }
    Err(format!("the number {token} cannot be kept exactly: send it as a string"))
}

/// Returns `true` if a number with a point or an exponent is read with all of its digits before the point, and not as
/// zero.
///
/// The digits of the text before the decimal point, shifted by the exponent, have to be those of the value that was
/// read:
///
/// | text | digits, point at | before the point | read as | result |
/// |---|---|---|---|---|
/// | `12.5` | `125`, 2 | `12` | 12.5 | kept |
/// | `1e3` | `1`, 4 | `1000` | 1000 | kept |
/// | `0.1` | `01`, 1 | `0` | 0.1 | kept |
/// | `12345678901234567890.5` | …, 20 | `12345678901234567890` | 12345678901234567000 | refused |
///
/// Behind the point a double is rounded. Every reader does that alike, and no one mistakes the result for another
/// amount.
fn keeps_digits(token: &str, value: f64) -> bool {
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.trim_start_matches('-').to_owned() + fraction;
    if value == 0.0 {
        return digits.bytes().all(|digit| digit == b'0');
    }
    // A finite number has no more digits than this, and a number without digits is zero.
    let exponent = exponent.parse().unwrap_or(0_i64);
    let point = exponent.saturating_add_unsigned((digits.len() - fraction.len()) as u64);
    let read = value.abs().to_string();
    let read = read.split_once('.').map_or(&*read, |(whole, _)| whole);
    let mut before = digits;
    match usize::try_from(point) {
        Ok(point) if point <= before.len() => before.truncate(point),
        Ok(point) => before.push_str(&"0".repeat(point - before.len())),
        Err(_) => before.clear(),
    }
    before.trim_start_matches('0') == read.trim_start_matches('0')
}
