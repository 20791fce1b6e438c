//! How deep values are nested.

use std::io;

use serde::Serialize;
use serde_json::Value;

use crate::error::UserError;

/// How many levels deep the arguments of a call may be nested, wherever they come from (rule T5). The object itself is
/// the first level.
pub(crate) const MAX_ARGS: usize = 64;

/// How many levels deep a stored state may be nested. serde_json reads 127; the others are for what a state is stored in.
const MAX_STATE: usize = 120;

/// Whether a value has more levels than these. Looks no deeper than that.
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

/// How deep the objects and lists of a JSON text are nested.
pub(crate) fn of_text(text: &str) -> usize {
    let mut levels = Levels::default();
    levels.read(text.as_bytes());
    levels.deepest
}

/// Refuses state that could not be read back from its JSON (rule L7).
///
/// # Errors
/// [`UserError::StateTooDeep`].
pub(crate) fn check_state(state: &impl Serialize) -> Result<(), UserError> {
    let mut levels = Levels::default();
    serde_json::to_writer(&mut levels, state)
        .map_err(|error| UserError::StoredState { problem: error.to_string() })?;
    match levels.deepest {
        levels if levels > MAX_STATE => Err(UserError::StateTooDeep { levels, max: MAX_STATE }),
        _ => Ok(()),
    }
}

/// Counts the levels of the JSON that is written to it.
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
