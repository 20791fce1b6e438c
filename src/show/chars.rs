//! Which characters a reader cannot see, or which change how others are seen.

/// Invisible, moving or acting characters, as inclusive ranges in order: controls, format characters, blanks other
/// than the space, fillers, variation selectors, tags, private use and noncharacters.
const HIDDEN: &[(u32, u32)] = &[
    (0x0000, 0x001f),
    (0x007f, 0x00a0),
    (0x00ad, 0x00ad),
    (0x034f, 0x034f),
    (0x0600, 0x0605),
    (0x061c, 0x061c),
    (0x06dd, 0x06dd),
    (0x070f, 0x070f),
    (0x0890, 0x0891),
    (0x08e2, 0x08e2),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xe000, 0xf8ff),
    (0xfdd0, 0xfdef),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0xfffe, 0xffff),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d159, 0x1d159),
    (0x1d173, 0x1d17a),
    (0x1fffe, 0x1ffff),
    (0x2fffe, 0x2ffff),
    (0x3fffe, 0x3ffff),
    // Planes without printed characters, tags and selectors, private use.
    (0x40000, 0x10ffff),
];

/// Marks that are drawn over the character before them.
const MARKS: &[(u32, u32)] = &[
    (0x0300, 0x036f),
    (0x0483, 0x0489),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x20d0, 0x20ff),
    (0xfe20, 0xfe2f),
];

fn within(table: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    let after = table.partition_point(|(first, _)| *first <= c);
    table.iter().take(after).next_back().is_some_and(|(_, last)| c <= *last)
}

/// Whether a reader cannot see it, or it moves what stands around it.
pub(super) fn is_hidden(c: char) -> bool {
    c != ' ' && within(HIDDEN, c)
}

/// Whether it is drawn over the character before it.
pub(super) fn is_mark(c: char) -> bool {
    within(MARKS, c)
}

/// Whether it could be taken for a backslash, with which this module begins what it writes itself.
pub(super) fn like_backslash(c: char) -> bool {
    matches!(c, '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' | '\u{ff3c}')
}

/// Whether it could be taken for the quote around a value.
pub(super) fn like_quote(c: char) -> bool {
    let quotes = ['\u{2ba}', '\u{2dd}', '\u{2ee}', '\u{5f4}', '\u{2033}', '\u{2036}', '\u{3003}'];
    matches!(c, '\u{201c}'..='\u{201f}' | '\u{301d}'..='\u{301f}' | '\u{ff02}')
        || quotes.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_in_order() {
        for table in [HIDDEN, MARKS] {
            assert!(table.iter().all(|(first, last)| first <= last));
            assert!(table.windows(2).all(|pair| pair[0].1 < pair[1].0));
        }
    }

    #[test]
    fn what_everybody_can_see_is_not_hidden() {
        for c in "azAZ09 ~äß€日本語한국어😀→│".chars() {
            assert!(!is_hidden(c), "{c:?}");
        }
    }
}
