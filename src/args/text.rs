//! Strict parsing of arguments as a model wrote them.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use super::{Args, depth};

/// Why a text is not valid as the arguments of a call. The message is for the model, which is told to try again.
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
    // The scan has to come first: with its feature `arbitrary_precision`, serde_json reads an object with its private
    // key as a number.
    Scan::default().run(text)?;
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ArgsError(format!("the arguments are not valid JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(Args::from(map)),
        Value::Null => Ok(Args::from(Map::new())),
        other => Err(ArgsError::not_an_object(&other)),
    }
}

/// Scans the tokens of a JSON text for what a parser would silently drop or change (repeated keys, digits of numbers,
/// serde_json's private key for numbers) and for nesting that is too deep. Text that is not JSON at all is left for the
/// parser to refuse.
#[derive(Default)]
struct Scan {
    /// The keys seen so far in each open object; `None` for an array.
    open: Vec<Option<HashSet<String>>>,
}

impl Scan {
    fn run(&mut self, text: &str) -> Result<(), ArgsError> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'{' | b'[' if self.open.len() == depth::MAX_ARGS => {
                    return Err(ArgsError::too_deep());
                }
                b'{' => self.open.push(Some(HashSet::new())),
                b'[' => self.open.push(None),
                b'}' | b']' => drop(self.open.pop()),
                b'"' => {
                    let end = string_end(bytes, at);
                    self.string(&text[at..end], text[end..].trim_start().starts_with(':'))?;
                    at = end;
                    continue;
                }
                b'-' | b'0'..=b'9' => {
                    let rest = text[at..]
                        .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'));
                    let end = rest.map_or(text.len(), |length| at + length);
                    number(&text[at..end])?;
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    fn string(&mut self, token: &str, is_key: bool) -> Result<(), ArgsError> {
        let Some(Some(keys)) = self.open.last_mut() else { return Ok(()) };
        let (true, Ok(key)) = (is_key, serde_json::from_str::<String>(token)) else {
            return Ok(());
        };
        if key.starts_with("$serde_json::private::") {
            return Err(ArgsError(format!("the key `{key}` is reserved")));
        }
        match keys.insert(key.clone()) {
            true => Ok(()),
            false => Err(ArgsError(format!(
                "the key `{}` appears twice in one object",
                key.escape_debug()
            ))),
        }
    }
}

/// The index after the closing quote of the string that starts at `start`, or the end of the text. Always a character
/// boundary.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' if bytes.get(at + 1).is_some_and(u8::is_ascii) => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Refuses a number that a parser would change: one that loses digits before the decimal point, becomes zero, or
/// overflows to infinity. Digits after the point are rounded, as in every parser.
fn number(token: &str) -> Result<(), ArgsError> {
    let fits = if token.contains(['.', 'e', 'E']) {
        // A token that is not a number (`1-2`) is left for the parser, which has the better error message.
        let Ok(value) = token.parse::<f64>() else { return Ok(()) };
        value.is_finite() && keeps_digits(token, value)
    } else {
        let fits = token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok();
        fits || token.parse::<f64>().is_err()
    };
    if fits {
        return Ok(());
    }
    Err(ArgsError(format!("the number {token} cannot be kept exactly: send it as a string")))
}

/// Whether a number with a decimal point or an exponent keeps all of its digits before the point, and does not become
/// zero.
fn keeps_digits(token: &str, value: f64) -> bool {
    let (mantissa, exponent) = token.split_once(['e', 'E']).unwrap_or((token, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = whole.trim_start_matches('-').to_owned() + fraction;
    if value == 0.0 {
        return digits.bytes().all(|digit| digit == b'0');
    }
    // The exponent of a finite number other than zero fits into an `i64`.
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
    fn what_a_reader_would_drop_or_change_is_refused() {
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
