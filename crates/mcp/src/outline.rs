//! The outline of a message that is too long to be kept: its own fields, without the values in them.
//!
//! The `id` of a request may be its last field, behind any number of bytes. So we read the message byte by byte, and keep
//! only the fields that say who waits for what (rule M6).

/// The longest text that is kept; an id or a method is shorter.
const MAX_TEXT: usize = 1 << 10;
/// The most that is kept.
const MAX_OUTLINE: usize = 64 << 10;

/// The outline of what was read so far: JSON with `null` in place of each list, object and long text in the message.
#[derive(Default)]
pub(crate) struct Outline {
    kept: Vec<u8>,
    depth: usize,
    /// The position in `kept` at which the text that is being read begins.
    text: Option<usize>,
    is_escaped: bool,
    /// `true` if the text that is being read is too long to be kept.
    is_long: bool,
}

impl Outline {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut outline = Self::default();
        outline.extend(bytes);
        outline
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.push(*byte));
    }

    pub(crate) fn into_text(self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }

    fn push(&mut self, byte: u8) {
        if let Some(start) = self.text {
            return self.push_in_text(start, byte);
        }
        match byte {
            b'"' => self.text = Some(self.kept.len()),
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth == 2 {
                    self.keep(b"null");
                }
            }
            b'}' | b']' if self.depth > 1 => {
                self.depth -= 1;
                return;
            }
            _ => {}
        }
        if self.depth <= 1 {
            self.keep(&[byte]);
        }
    }

    fn push_in_text(&mut self, start: usize, byte: u8) {
        let (is_kept, is_end) = (self.depth <= 1, byte == b'"' && !self.is_escaped);
        self.is_escaped = byte == b'\\' && !self.is_escaped;
        if is_kept && !self.is_long {
            self.keep(&[byte]);
            if self.kept.len().saturating_sub(start) > MAX_TEXT {
                self.kept.truncate(start);
                self.is_long = true;
            }
        }
        if is_end {
            self.text = None;
            if std::mem::take(&mut self.is_long) {
                let is_value = self.kept.trim_ascii_end().ends_with(b":");
                self.keep(if is_value { b"null" } else { b"\"\"" });
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.kept.len() < MAX_OUTLINE {
            self.kept.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Rule M6: a request that is too long is answered with its id, wherever in it that is.
    #[test]
    fn an_outline_has_the_fields_of_a_message_and_nothing_in_them() {
        let long = "x".repeat(MAX_TEXT + 1);
        for (json, outline) in [
            (r#"{"a":{"id":1,"x":["}"]},"id":7}"#.to_owned(), r#"{"a":null,"id":7}"#),
            (
                r#"{"a":"\"}","b":[[{}],"]"] , "id":"\\"}"#.to_owned(),
                r#"{"a":"\"}","b":null , "id":"\\"}"#,
            ),
            (format!(r#"{{"a": "{long}","id":"n"}}"#), r#"{"a": null,"id":"n"}"#),
            (format!(r#"{{"{long}":1,"id":2}}"#), r#"{"":1,"id":2}"#),
            (r#"[{"id":1},{"id":2}]"#.to_owned(), "[null,null]"),
            (r#"{"a":{"id":3"#.to_owned(), r#"{"a":null"#),
        ] {
            let (one, other) = json.as_bytes().split_at(json.len() / 2);
            let mut read = Outline::of(one);
            read.extend(other);
            assert_eq!(read.into_text(), outline);
        }
        assert!(Outline::of(&b"1".repeat(MAX_OUTLINE * 2)).into_text().len() <= MAX_OUTLINE);
    }
}
