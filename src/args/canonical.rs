//! The one text of a JSON value: RFC 8785, except that integers keep every digit.
//!
//! # Why not RFC 8785 to the letter
//!
//! The RFC knows only doubles: `9007199254740993` and `9007199254740992` have one canonical text there. An approval is
//! bound to that text, so a model could get one account approved and use another. We keep every digit of an integer,
//! and write only numbers with a point or an exponent as the RFC says.
//!
//! | value | text |
//! |---|---|
//! | `{"b": 1, "a": [1.0, 1e2]}` | `{"a":[1,100],"b":1}` |
//! | `9007199254740993` | `9007199254740993` |
//! | `0.1` | `0.1` |
//! | `"é\u0007"` | `"é\u0007"` |
//!
//! We sort the keys and write the numbers ourselves, so the text is the same under every feature of serde_json
//! that your program may switch on (`preserve_order`, `arbitrary_precision`).

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

/// The canonical text of a value: the same for every order of keys, and under every feature of serde_json.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    text
}

/// The SHA-256 of the canonical text of a value, in hexadecimal: the same for every order of keys, in every process and
/// version. It identifies a value, and does not hide one that can be guessed.
///
/// ```
/// use countersign::args::digest;
/// use serde_json::json;
///
/// assert_eq!(digest(&json!({"a": 1, "b": 2})), digest(&json!({"b": 2, "a": 1})));
/// assert_eq!(digest(&json!({})).len(), 64);
/// ```
#[must_use]
pub fn digest(value: &Value) -> String {
    hex(&Sha256::digest(canonical(value).as_bytes()))
}

/// Bytes in hexadecimal, with small letters: the form of every digest of this crate.
///
/// ```
/// assert_eq!(countersign::args::hex(&[0, 15, 255]), "000fff");
/// ```
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    // `write!` would take longer than the digest of a short text.
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' - 10 + nibble };
    let mut hex = vec![0; 2 * bytes.len()];
    for (digits, byte) in hex.chunks_exact_mut(2).zip(bytes) {
        digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    String::from_utf8(hex).unwrap_or_default()
}

pub(super) fn write_object(out: &mut String, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    // RFC 8785 sorts by UTF-16 code units, which differs from bytes above the basic plane.
    entries.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    out.push('{');
    for (i, (name, value)) in entries.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_string(out, name);
        out.push(':');
        write_value(out, value);
    }
    out.push('}');
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Object(map) => write_object(out, map),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_value(out, item);
            }
            out.push(']');
        }
    }
}

fn write_number(out: &mut String, number: &Number) {
    if let Some(int) = number.as_i64() {
        let _ = write!(out, "{int}");
    } else if let Some(int) = number.as_u64() {
        let _ = write!(out, "{int}");
    } else if let Some(float) = number.as_f64() {
        out.push_str(ryu_js::Buffer::new().format(float));
    } else {
        // Only with serde_json's `arbitrary_precision`, for a number no other reader could keep.
        let _ = write!(out, "{number}");
    }
}

fn write_string(out: &mut String, text: &str) {
    let is_escaped = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    out.push('"');
    let mut rest = text;
    // Most texts have nothing to escape. Without a branch for each byte, many are looked at in one instruction.
    if text.bytes().fold(false, |any, byte| any | is_escaped(byte)) {
        while let Some(at) = rest.bytes().position(is_escaped) {
            let (plain, escaped) = rest.split_at(at);
            out.push_str(plain);
            let mut after = escaped.chars();
            after.next().into_iter().for_each(|it| write_escaped(out, it));
            rest = after.as_str();
        }
    }
    out.push_str(rest);
    out.push('"');
}

/// The escapes of RFC 8785, which are those of serde_json.
fn write_escaped(out: &mut String, character: char) {
    match character {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\u{8}' => out.push_str("\\b"),
        '\t' => out.push_str("\\t"),
        '\n' => out.push_str("\\n"),
        '\u{c}' => out.push_str("\\f"),
        '\r' => out.push_str("\\r"),
        other => _ = write!(out, "\\u{:04x}", u32::from(other)),
    }
}

/// The canonical text of an array, written item by item, so that the items are not copied into a [`Value`] first.
pub(crate) struct ArrayText {
    /// The text up to the last item, without the closing bracket.
    text: String,
    is_empty: bool,
}

impl ArrayText {
    pub(crate) fn new() -> Self {
        // Enough for most of what is digested: a fingerprint with a short question has 300 bytes.
        let mut text = String::with_capacity(512);
        text.push('[');
        Self { text, is_empty: true }
    }

    fn item(mut self, write: impl FnOnce(&mut String)) -> Self {
        if !self.is_empty {
            self.text.push(',');
        }
        write(&mut self.text);
        Self { is_empty: false, ..self }
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.item(|out| write_string(out, text))
    }

    pub(crate) fn number(self, number: u32) -> Self {
        self.item(|out| _ = write!(out, "{number}"))
    }

    pub(crate) fn object(self, map: &Map<String, Value>) -> Self {
        self.item(|out| write_object(out, map))
    }

    pub(crate) fn value(self, value: &Value) -> Self {
        self.item(|out| write_value(out, value))
    }

    /// An array as an item, with the items that the function adds to it.
    pub(crate) fn array(self, add: impl FnOnce(Self) -> Self) -> Self {
        let Self { text, .. } = self.item(|out| out.push('['));
        Self { text: add(Self { text, is_empty: true }).end(), is_empty: false }
    }

    fn end(mut self) -> String {
        self.text.push(']');
        self.text
    }

    /// The [`digest`] of the array.
    pub(crate) fn digest(self) -> String {
        hex(&Sha256::digest(self.end().as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_vectors_of_rfc_8785_hold() {
        // Section 3.2.3: sorting by UTF-16 code units.
        let value =
            json!({"\u{20ac}":1,"\r":2,"\u{fb33}":3,"1":4,"\u{1f600}":5,"\u{80}":6,"\u{f6}":7});
        assert_eq!(
            canonical(&value),
            "{\"\\r\":2,\"1\":4,\"\u{80}\":6,\"\u{f6}\":7,\"\u{20ac}\":1,\"\u{1f600}\":5,\"\u{fb33}\":3}"
        );
        // Appendix B: numbers.
        for (number, text) in [
            (f64::from_bits(0x8000000000000000), "0"),
            (f64::from_bits(0x0000000000000001), "5e-324"),
            (f64::from_bits(0x7fefffffffffffff), "1.7976931348623157e+308"),
            (f64::from_bits(0x44b52d02c7e14af5), "9.999999999999997e+22"),
            (f64::from_bits(0x444b1ae4d6e2ef50), "1e+21"),
            (f64::from_bits(0x3eb0c6f7a0b5ed8d), "0.000001"),
            (f64::from_bits(0x41b3de4355555557), "333333333.33333343"),
            (1.0, "1"),
            (4.50, "4.5"),
        ] {
            assert_eq!(canonical(&json!(number)), text);
        }
        // Section 3.2.2.2: strings.
        assert_eq!(
            canonical(&json!("\u{8}\t\n\u{c}\r\u{f}\"\\/\u{7f}")),
            "\"\\b\\t\\n\\f\\r\\u000f\\\"\\\\/\u{7f}\""
        );
    }

    #[test]
    fn each_character_is_written_as_serde_json_writes_it() {
        for character in (0..=0xff).chain([0x2028, 0x1f600]).filter_map(char::from_u32) {
            let text = format!("a{character}z");
            assert_eq!(canonical(&json!(text)), serde_json::to_string(&text).unwrap());
        }
    }

    #[test]
    fn arrays_within_an_array_are_written_in_place() {
        let text = |words: &[&str]| {
            let words = |all: ArrayText| words.iter().fold(all, |all, word| all.text(word));
            ArrayText::new()
                .number(1)
                .array(|all| all.array(words))
                .array(|all| all)
                .text("z")
                .end()
        };
        assert_eq!(text(&["a", "b\n"]), r#"[1,[["a","b\n"]],[],"z"]"#);
        assert_eq!(text(&[]), r#"[1,[[]],[],"z"]"#);
    }

    #[test]
    fn integers_keep_every_digit() {
        assert_eq!(
            canonical(&json!([u64::MAX, i64::MIN, 9007199254740993_u64])),
            "[18446744073709551615,-9223372036854775808,9007199254740993]"
        );
    }
}
