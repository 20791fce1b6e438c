//! Texts in another spelling: encoded, or spelled out. We show a person the values that they stand for, and count none of
//! them as named (rule O3).

use super::spelling;

/// The text that a chunk stands for in percent encoding, if that is another one.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind
            .get(..2)
            .and_then(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok());
        match (first, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = behind.get(2..)?;
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|it| it != text)
}

/// The text that a chunk stands for in base64, if it is one that can be read.
pub(super) fn base64_decoded(text: &str) -> Option<String> {
    let text = text.trim_end_matches('=');
    let digit = |b: u8| match b {
        b'A'..=b'Z' => Some(b - b'A'),
        b'a'..=b'z' => Some(b - b'a' + 26),
        b'0'..=b'9' => Some(b - b'0' + 52),
        b'+' | b'-' => Some(62),
        b'/' | b'_' => Some(63),
        _ => None,
    };
    if text.len() < 12 {
        return None;
    }
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::with_capacity(text.len()));
    for b in text.bytes() {
        bits = (bits << 6) | u32::from(digit(b)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            let byte = u8::try_from((bits >> count) & 255).unwrap_or_default();
            // Most words are base64 of no text: the first byte tells.
            if byte < b' ' && !matches!(byte, b'\n' | b'\t' | b'\r') {
                return None;
            }
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok().filter(|it| !it.contains(spelling::is_invisible))
}

/// Calls `each` with what `bob at acme dot com` stands for, also with brackets.
pub(super) fn spelled_out(text: &str, each: &mut dyn FnMut(&str)) {
    let brackets = ['(', ')', '[', ']', '{', '}', ',', ';'];
    let sign = |word: &str| match () {
        () if word.eq_ignore_ascii_case("at") => Some('@'),
        () if word.eq_ignore_ascii_case("dot") => Some('.'),
        () => None,
    };
    let mut joined = String::new();
    let mut words = text.split_whitespace().map(|it| it.trim_matches(brackets)).peekable();
    while let Some(word) = words.next() {
        joined.push_str(word.trim_end_matches('.'));
        match words.peek().and_then(|next| sign(next)) {
            Some(sign) => {
                joined.push(sign);
                words.next();
            }
            None => {
                if joined.contains('.') && joined.len() > word.len() + 1 {
                    each(&joined);
                }
                joined.clear();
            }
        }
    }
}
