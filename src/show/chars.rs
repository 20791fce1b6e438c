//! The characters that a reader cannot see, or that change how others are seen.
//!
//! Unicode's general categories have most of them. They do not tell letters and marks that are drawn without ink: a Hangul
//! filler is a letter to every program and nothing to a reader. So we list these by hand, from the Unicode charts.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Letters, signs and marks without ink, as sorted inclusive ranges. Their Unicode category does not tell that they are
/// invisible.
const BLANK: &[(char, char)] = &[
    ('\u{34f}', '\u{34f}'),   // combining grapheme joiner
    ('\u{115f}', '\u{1160}'), // fillers of Hangul
    ('\u{17b4}', '\u{17b5}'), // vowels of Khmer that are not written
    ('\u{180b}', '\u{180f}'), // variation selectors of Mongolian
    ('\u{2800}', '\u{2800}'), // Braille without dots
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'), // variation selectors
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{1d159}', '\u{1d159}'), // a note without a head
    ('\u{e0100}', '\u{e01ef}'),
];

/// Returns `true` if a reader cannot see a character, or the character moves others around it: controls, format
/// characters, blanks other than the space, private use, and code points that Unicode has not assigned.
///
/// Unassigned code points count, because a newer font may draw them, and this build cannot know
/// how.
pub(super) fn is_hidden(c: char) -> bool {
    use GeneralCategory::{
        Control, Format, LineSeparator, ParagraphSeparator, PrivateUse, SpaceSeparator, Surrogate,
        Unassigned,
    };
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let category = get_general_category(c);
    matches!(
        category,
        Control
            | Format
            | LineSeparator
            | ParagraphSeparator
            | PrivateUse
            | SpaceSeparator
            | Surrogate
            | Unassigned
    ) || BLANK.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Returns `true` if a character is a mark, drawn over the character before it.
pub(super) fn is_mark(c: char) -> bool {
    let over = [GeneralCategory::NonspacingMark, GeneralCategory::EnclosingMark];
    !c.is_ascii() && over.contains(&get_general_category(c))
}

/// Returns `true` if a character could be taken for the backslash that begins the escapes of this module.
///
/// Every backslash in a shown text begins an escape of this module. A sign that only looks like one could begin a text
/// that pretends to be an escape.
pub(super) fn like_backslash(c: char) -> bool {
    matches!(c, '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' | '\u{ff3c}')
}

/// Returns `true` if a character could be taken for the quote around a value.
pub(super) fn like_quote(c: char) -> bool {
    let quotes = ['\u{2ba}', '\u{2dd}', '\u{2ee}', '\u{5f4}', '\u{2033}', '\u{2036}', '\u{3003}'];
    matches!(c, '\u{201c}'..='\u{201f}' | '\u{301d}'..='\u{301f}' | '\u{ff02}')
        || quotes.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_every_script_are_known() {
        for c in "\u{301}\u{5b0}\u{64b}\u{e49}\u{94d}\u{20dd}\u{1ab0}".chars() {
            assert!(is_mark(c) && !is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn invisible_characters_are_hidden() {
        for c in "\u{0}\u{7f}\u{a0}\u{ad}\u{34f}\u{115f}\u{180e}\u{200b}\u{202e}\u{2028}\u{2800}\u{3000}\u{3164}\u{e000}\u{feff}\u{fe0f}\u{ffff}\u{e0041}\u{e0101}\u{10ffff}\u{378}".chars() {
            assert!(is_hidden(c), "{c:?}");
        }
    }

    #[test]
    fn visible_characters_are_not_hidden() {
        for c in "azAZ09 ~äß€日本語한국어😀→│".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }
}
