//! Limits on how deeply values are nested.
//!
//! We refuse a deep value where it enters, and not where it hurts. You can build a value of 128 levels in memory, and
//! serde_json writes it without complaint, but cannot read it back. A run that is suspended with such a value would be
//! lost at the moment at which it is stored, with its approvals (rule L7).
//!
//! The limit is 64 levels for arguments and stored results, and 120 for a whole stored state. The difference is for
//! what a state adds around them, for each level of agents behind tools.
//!
//! Arguments that are too deep are refused, as a model can write others. A result cannot be refused, since its tool has
//! run. We store it as its JSON text, which has no levels and loses nothing.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::error::UserError;

/// The maximum number of levels that the arguments of a call are nested, wherever they come from (rule T5). The object
/// itself is the first level.
pub(crate) const MAX_ARGS: usize = 64;

/// The maximum number of levels that a stored result of a call is nested (rule T5). A deeper one is stored as its text.
pub(crate) const MAX_RESULT: usize = 64;

/// The maximum number of levels that a stored state is nested. serde_json reads 127 levels; the difference is for the
/// values that a state is stored inside of.
const MAX_STATE: usize = 120;

/// Returns `true` if a value has more than `levels` levels. The recursion goes no deeper than that.
pub(crate) fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return matches!(value, Value::Object(_) | Value::Array(_));
    };
    match value {
        Value::Object(map) => map.values().any(|value| is_deeper(value, below)),
        Value::Array(items) => items.iter().any(|value| is_deeper(value, below)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The number of levels that the objects and arrays of a JSON text are nested.
pub(crate) fn of_text(text: &str) -> usize {
    let mut levels = Levels::default();
    levels.read(text.as_bytes());
    levels.deepest
}

/// Refuses state that could not be read back after it was stored (rule L7).
///
/// # Errors
/// [`UserError::StateTooDeep`], or [`UserError::StoredState`] when the state cannot be serialised.
pub(crate) fn check_state(state: &impl Serialize) -> Result<(), UserError> {
    let mut levels = Levels::default();
    serde_json::to_writer(&mut levels, state)
        .map_err(|error| UserError::StoredState { problem: error.to_string() })?;
    match levels.deepest {
        levels if levels > MAX_STATE => Err(UserError::StateTooDeep { levels, max: MAX_STATE }),
        _ => Ok(()),
    }
}

/// A writer that counts the levels of the JSON that is written to it, and keeps none of it.
///
/// It counts brackets, which is enough for valid JSON, and the writer gets no other. Brackets in strings do not
/// count, and a quote behind a backslash does not end a string.
#[derive(Default)]
struct Levels {
    open: usize,
    deepest: usize,
    quoted: bool,
    escaped: bool,
}

impl Levels {
    fn read(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.quoted => self.escaped = true,
                b'"' => self.quoted = !self.quoted,
                b'{' | b'[' if !self.quoted => {
                    self.open += 1;
                    self.deepest = self.deepest.max(self.open);
                }
                b'}' | b']' if !self.quoted => self.open = self.open.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl io::Write for Levels {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.read(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_and_value_have_the_same_levels() {
        for (value, levels) in [
            (json!("[{"), 0),
            (json!({}), 1),
            (json!({"a": "\"[[", "b": [1]}), 2),
            (json!([[], [[{"x": "}]"}]]]), 4),
        ] {
            assert_eq!(of_text(&value.to_string()), levels, "{value}");
            assert!(!is_deeper(&value, levels), "{value}");
            assert!(levels == 0 || is_deeper(&value, levels - 1), "{value}");
        }
    }
}
