//! Reading arguments as a model wrote them, strictly.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use super::Args;

/// Why a text is not the arguments of a call. Written for the model, which is told to try again.
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
    // The scan comes first: under `arbitrary_precision` serde_json reads an object with its private key as a number.
    Scan::default().run(text)?;
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ArgsError(format!("the arguments are not valid JSON: {error}")))?;
    match value {
        Value::Object(map) => Ok(Args::from(map)),
        Value::Null => Ok(Args::from(Map::new())),
        other => Err(ArgsError::not_an_object(&other)),
    }
}

/// Looks at the tokens of a JSON text for what a parser would quietly drop or change: repeated keys, digits of
/// integers, and serde_json's own key for numbers. What is not JSON at all is left for the parser to refuse.
#[derive(Default)]
struct Scan {
    /// The keys seen so far of every object that is open; `None` for an array.
    open: Vec<Option<HashSet<String>>>,
}

impl Scan {
    fn run(&mut self, text: &str) -> Result<(), ArgsError> {
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
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

/// The end of the string that starts at `start`, behind its closing quote. Always on a character boundary.
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

fn number(token: &str) -> Result<(), ArgsError> {
    let fits = if token.contains(['.', 'e', 'E']) {
        token.parse::<f64>().is_ok_and(f64::is_finite)
    } else {
        token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok()
    };
    // A token that is no number at all (`1-2`) gets the parser's own message.
    if fits || token.parse::<f64>().is_err() {
        return Ok(());
    }
    Err(ArgsError(format!("the number {token} cannot be kept exactly: send it as a string")))
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
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        let text = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(parse(&text).unwrap_err().to_string().contains("recursion limit"));
    }
}
