//! Characters that are refused everywhere in a text, even within quotes.
//!
//! A person approves a text that they read on a screen, we judge it, and a shell runs it. With these characters the
//! three may differ. For example, a direction mark shows `evil.sh` as `hs.live`, a carriage return draws over what was
//! before, a no-break space looks like a separator and is a part of a word, and a private use character draws whatever
//! a font says. Quotes do not help, as the person still sees the drawing. So we refuse these characters everywhere,
//! with their code, and ask about the text.
//!
//! The list has ranges and not Unicode categories, because it is about characters that a shell command has no
//! use for. We accept letters of every script in quotes.

/// The position and a description of the first character that a terminal, a person or a shell may interpret differently
/// than the lexer does.
pub(crate) fn refused(text: &str) -> Option<(usize, String)> {
    if text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return None;
    }
    text.char_indices().find_map(|(at, c)| {
        let what = match c {
            '\n' | '\t' => return None,
            '\r' => "a carriage return",
            '\0' => "a NUL",
            c if c.is_control() => "a control character",
            c if c != ' ' && c.is_whitespace() => "a space that is not ASCII",
            c if is_invisible(c) => "an invisible or direction-changing character",
            _ => return None,
        };
        Some((at, format!("{what} (U+{:04X})", u32::from(c))))
    })
}

/// Format characters, fillers that draw nothing, private use characters, and noncharacters.
fn is_invisible(c: char) -> bool {
    matches!(u32::from(c),
        0xAD | 0x34F | 0x600..=0x605 | 0x61C | 0x6DD | 0x70F | 0x890 | 0x891 | 0x8E2 | 0x115F | 0x1160
        | 0x17B4 | 0x17B5 | 0x180B..=0x180F | 0x200B..=0x200F | 0x202A..=0x202E | 0x2060..=0x206F | 0x2800
        | 0x3164 | 0xE000..=0xF8FF | 0xFE00..=0xFE0F | 0xFEFF | 0xFFA0 | 0xFFF0..=0xFFFB | 0xFFFE | 0xFFFF
        | 0x110BD | 0x110CD | 0x13430..=0x13455 | 0x1BCA0..=0x1BCA3 | 0x1D173..=0x1D17A | 0xE0000..)
}
