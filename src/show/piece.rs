//! Text as pieces that may be cut and units that may not. Only this module makes characters visible.
//!
//! We make a text visible once, into pieces, and cut it afterwards. If we cut a finished text, we could cut
//! `\u{202e}` into `\u{20`, which says something else, or leave half of a mark that says how much is missing. We
//! never cut a piece that is an escape, a mask or a mark.

use std::iter::Peekable;
use std::str::CharIndices;

use super::chars::{is_hidden, is_mark, like_backslash, like_quote};
use super::look_alikes::{NameReading, look_alikes};

/// The longest run of spaces that is written as it is. Of a longer one the number is written: it could push text out of
/// sight.
///
/// For example, a command with two hundred spaces and `; rm -rf ~` behind it shows nothing of its end on a line
/// that does not wrap.
const SPACES: usize = 16;
/// The longest run of one escaped character that is written as it is.
const ESCAPES: usize = 4;
/// The most marks on one character. More are escaped, as piled-up marks cover the text around them.
const MARKS: usize = 2;

/// The characters that are escaped in addition to invisible ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Style {
    /// Quotes, as the text is shown between quotes.
    quoted: bool,
    /// All characters that are not ASCII.
    ascii: bool,
    /// Letters that could be taken for other ones.
    names: NameReading,
    /// `true` for a text whose line breaks are those of what is shown: a backslash is shown as it is, unless it could be taken
    /// for the beginning of an escape.
    block: bool,
}

impl Style {
    pub(super) const PROSE: Self =
        Self { quoted: false, ascii: false, names: NameReading::InText, block: false };
    pub(super) const NAME: Self = Self { ascii: true, ..Self::PROSE };
    pub(super) const VALUE: Self = Self { quoted: true, ..Self::PROSE };
    pub(super) const PLACE: Self = Self { names: NameReading::Alone, ..Self::VALUE };
    /// The lines of a text or a difference.
    pub(super) const BLOCK: Self = Self { block: true, ..Self::PROSE };
    pub(super) const ADDRESS: Self = Self { quoted: true, ..Self::NAME };

    /// The same style for a line in a block, which has no quotes around it.
    pub(super) const fn unquoted(self) -> Self {
        Self { quoted: false, ..self }
    }

    /// Returns `true` if backslashes in front of this text could be taken for the beginning of an escape: it begins as the
    /// rest of one, or an escape or a mark follows.
    fn continues_escape(self, rest: &str) -> bool {
        match rest.chars().next() {
            None | Some('{') => true,
            Some('u') => rest.starts_with("u{"),
            Some('\n') => false,
            Some(' ') => rest.chars().take_while(|c| *c == ' ').count() > SPACES,
            Some(c) => !c.is_ascii() || self.escapes(c),
        }
    }

    fn escapes(self, c: char) -> bool {
        is_hidden(c)
            || like_backslash(c)
            || self.ascii && !c.is_ascii()
            || self.quoted && like_quote(c)
    }
}

/// A piece of text as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// Characters that stand for themselves; may be cut anywhere.
    Plain(String),
    /// An escape, and how many characters it stands for; never cut.
    Unit(String, usize),
    /// The mark for a secret, and how many characters it stands for; never cut.
    Masked(String, usize),
    /// The mark for elided text, and how much of it there was; never cut.
    LeftOut(String, usize),
}

impl Piece {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Plain(text)
            | Self::Unit(text, _)
            | Self::Masked(text, _)
            | Self::LeftOut(text, _) => text,
        }
    }

    /// The number of characters of the text that this piece stands for.
    pub(super) fn stands_for(&self) -> usize {
        match self {
            Self::Plain(text) => text.chars().count(),
            Self::Unit(_, chars) | Self::Masked(_, chars) | Self::LeftOut(_, chars) => *chars,
        }
    }
}

pub(super) fn join(pieces: &[Piece]) -> String {
    pieces.iter().map(Piece::text).collect()
}

/// Records whether anything was left out of a shown text or masked in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Omitted {
    pub(super) left_out: bool,
    pub(super) masked: bool,
}

impl Omitted {
    /// Joins the pieces, and records whether any is left out or masked.
    pub(super) fn join(&mut self, pieces: &[Piece]) -> String {
        self.left_out |= pieces.iter().any(|piece| matches!(piece, Piece::LeftOut(..)));
        self.masked |= pieces.iter().any(|piece| matches!(piece, Piece::Masked(..)));
        join(pieces)
    }

    pub(super) fn add(&mut self, left_out: bool, masked: bool) {
        self.left_out |= left_out;
        self.masked |= masked;
    }
}

/// The number of characters that the pieces take on a screen, counting a wide one as one.
pub(super) fn shown_chars(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| piece.text().chars().count()).sum()
}

/// The text with invisible characters and those of the style escaped.
pub(super) fn escaped(text: &str, style: Style) -> String {
    match is_plain(text, style) {
        true => text.to_owned(),
        false => join(&pieces(text, style)),
    }
}

/// Splits a text into pieces, with invisible characters and those of the style escaped.
pub(super) fn pieces(text: &str, style: Style) -> Vec<Piece> {
    let mut out = Pieces { all: Vec::new(), block: style.block };
    let mut doubtful = look_alikes(text, style.names).into_iter().peekable();
    let mut chars = text.char_indices().peekable();
    let mut marks = MARKS; // A mark at the start belongs to no character, and is escaped.
    while let Some((at, c)) = chars.next() {
        if is_mark(c) && !style.ascii && !style.escapes(c) {
            marks += 1;
            if marks <= MARKS {
                out.plain(c);
            } else {
                out.run(c, 1 + repeated(&mut chars, c));
            }
            continue;
        }
        marks = 0;
        while doubtful.next_if(|word| word.end <= at).is_some() {}
        let doubt = !c.is_ascii() && doubtful.peek().is_some_and(|word| word.contains(&at));
        match c {
            '\\' if style.block => {
                let run = 1 + repeated(&mut chars, c);
                let rest = text.get(at + run..).unwrap_or_default();
                let shown = if style.continues_escape(rest) { "\\\\" } else { SINGLE };
                (0..run).for_each(|_| out.unit(shown.into(), 1));
            }
            '\\' => out.unit("\\\\".into(), 1),
            '"' if style.quoted => out.unit("\\\"".into(), 1),
            c if c == ' ' || doubt || style.escapes(c) => out.run(c, 1 + repeated(&mut chars, c)),
            c => out.plain(c),
        }
    }
    out.all
}

/// A backslash of a text that is shown as it is.
const SINGLE: &str = "\\";

/// Returns `true` if a text is in ASCII and has nothing to escape, as most texts are.
fn is_plain(text: &str, style: Style) -> bool {
    let mut spaces = 0;
    text.bytes().all(|byte| {
        spaces = if byte == b' ' { spaces + 1 } else { 0 };
        match byte {
            b'\\' => false,
            b'"' => !style.quoted,
            byte => matches!(byte, b' '..=b'~') && spaces <= SPACES,
        }
    })
}

/// Takes the characters equal to `c` that follow, and returns their number.
fn repeated(chars: &mut Peekable<CharIndices<'_>>, c: char) -> usize {
    let mut count = 0;
    while chars.next_if(|(_, next)| *next == c).is_some() {
        count += 1;
    }
    count
}

struct Pieces {
    all: Vec<Piece>,
    block: bool,
}

impl Pieces {
    fn plain(&mut self, c: char) {
        match self.all.last_mut() {
            Some(Piece::Plain(text)) => text.push(c),
            _ => self.all.push(Piece::Plain(c.into())),
        }
    }

    fn unit(&mut self, text: String, chars: usize) {
        self.all.push(Piece::Unit(text, chars));
    }

    fn run(&mut self, c: char, run: usize) {
        match c {
            ' ' if run <= SPACES => (0..run).for_each(|_| self.plain(' ')),
            ' ' => self.unit(format!("\\{{{run} spaces}}"), run),
            // As `\t` and `\r` are in many texts of programs, these are never the escapes of a block.
            '\t' if self.block => self.unit(format!("\\{{{}}}", counted(run, "tab")), run),
            '\r' if self.block => (0..run).for_each(|_| self.unit("\\{CR}".into(), 1)),
            // Letters, which are escaped only in names, are text and not padding: their number is not written instead.
            c if run <= ESCAPES || c.is_alphanumeric() => {
                (0..run).for_each(|_| self.unit(name(c), 1));
            }
            '\n' => self.unit(format!("\\{{{run} newlines}}"), run),
            '\t' => self.unit(format!("\\{{{run} tabs}}"), run),
            c => self.unit(format!("\\{{{run} times {}}}", name(c)), run),
        }
    }
}

fn name(c: char) -> String {
    match c {
        '\n' => "\\n".into(),
        '\r' => "\\r".into(),
        '\t' => "\\t".into(),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    }
}

/// Leaves out the middle of pieces that take more than `most` characters, with a mark that says how much. Two thirds of
/// what is kept are from the beginning, one third is from the end.
///
/// We keep the end as well as the beginning, as an attacker would append something to the end of a
/// long line.
pub(super) fn elide(pieces: Vec<Piece>, most: usize) -> Vec<Piece> {
    if shown_chars(&pieces) <= most {
        return pieces;
    }
    let all: usize = pieces.iter().map(Piece::stands_for).sum();
    let mut head = take(pieces.iter(), most - most / 3, false);
    // In front of the mark it could be taken for the beginning of an escape.
    while head.last().is_some_and(|piece| piece.text() == SINGLE) {
        head.pop();
    }
    let mut tail = take(pieces.iter().rev(), most / 3, true);
    tail.reverse();
    let kept: usize = head.iter().chain(&tail).map(Piece::stands_for).sum();
    let mut out = head;
    out.push(left_out(all.saturating_sub(kept), "character"));
    out.extend(tail);
    out
}

/// As many of the pieces as fit, from the beginning or from the end.
fn take<'a>(pieces: impl Iterator<Item = &'a Piece>, most: usize, end: bool) -> Vec<Piece> {
    let mut room = most;
    let mut out = Vec::new();
    for piece in pieces {
        let length = piece.text().chars().count();
        if length <= room {
            room -= length;
            out.push(piece.clone());
            continue;
        }
        if let Piece::Plain(text) = piece {
            let skip = if end { length - room } else { 0 };
            out.push(Piece::Plain(text.chars().skip(skip).take(room).collect()));
        }
        break;
    }
    out
}

/// The mark for text that was left out, as in `\{9 lines left out}`.
pub(super) fn left_out(count: usize, what: &str) -> Piece {
    Piece::LeftOut(format!("\\{{{} left out}}", counted(count, what)), count)
}

/// A count with its noun, as surfaces write it.
///
/// ```
/// use countersign::show::counted;
/// assert_eq!((counted(1, "call"), counted(2, "call")), ("1 call".to_owned(), "2 calls".to_owned()));
/// ```
#[must_use]
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::super::{escape, escape_name};
    use super::*;

    /// S1: "Control, bidi, zero-width and ANSI characters are shown escaped".
    #[test]
    fn attacks_on_the_reader_are_shown_escaped() {
        for (attack, shown) in [
            ("plain text, äöü 日本語", "plain text, äöü 日本語"),
            ("\u{1b}[31mred\u{1b}[0m", r"\u{1b}[31mred\u{1b}[0m"),
            (
                "\u{1b}]8;;http://evil\u{7}docs\u{1b}]8;;\u{7}",
                r"\u{1b}]8;;http://evil\u{7}docs\u{1b}]8;;\u{7}",
            ),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("rm x\rls", r"rm x\rls"),
            ("a\r\nb", r"a\r\nb"),
            ("a\u{8}\u{8}b", r"a\u{8}\u{8}b"),
            ("\u{0}", r"\u{0}"),
            ("txt.\u{202e}exe", r"txt.\u{202e}exe"),
            ("\u{2066}a\u{2069}", r"\u{2066}a\u{2069}"),
            ("a\u{200b}b\u{feff}c\u{2060}d\u{ad}e", r"a\u{200b}b\u{feff}c\u{2060}d\u{ad}e"),
            ("hi\u{e0041}\u{e007f}", r"hi\u{e0041}\u{e007f}"),
            ("a\u{fe01}\u{e0101}", r"a\u{fe01}\u{e0101}"),
            (
                "a\u{a0}b\u{3000}c\u{2028}d\u{3164}e\u{2800}",
                r"a\u{a0}b\u{3000}c\u{2028}d\u{3164}e\u{2800}",
            ),
            ("a\u{301}", "a\u{301}"),
            ("a\u{301}\u{302}\u{303}\u{304}", "a\u{301}\u{302}\\u{303}\\u{304}"),
            ("\u{338}ok", r"\u{338}ok"),
            (&format!("a{}b", "\u{e49}".repeat(400)), "a\u{e49}\u{e49}\\{398 times \\u{e49}}b"),
            ("\u{5d0}\u{5b0}\u{5b1}\u{5b2}", "\u{5d0}\u{5b0}\u{5b1}\\u{5b2}"),
            ("g\u{43e}\u{43e}gle", r"g\u{43e}\u{43e}gle"),
            (r"C:\new", r"C:\\new"),
            (r"\u{202e}", r"\\u{202e}"),
            ("\u{ff3c}{2 spaces}", r"\u{ff3c}{2 spaces}"),
            (&" ".repeat(16), &" ".repeat(16)),
            (&format!("ls{};rm", " ".repeat(17)), r"ls\{17 spaces};rm"),
            (&format!("ls{};rm", "\t".repeat(40)), r"ls\{40 tabs};rm"),
            (&format!("ls{}rm", "\n".repeat(90)), r"ls\{90 newlines}rm"),
            (&"\u{200b}".repeat(5000), r"\{5000 times \u{200b}}"),
        ] {
            assert_eq!(escape(attack), shown);
        }
    }

    #[test]
    fn no_two_texts_look_the_same() {
        let texts = ["\n", r"\n", "\\\n", "\\\\n", r"\{17 spaces}", &" ".repeat(17), r"\u{a}"];
        let mut shown: Vec<_> = texts.iter().map(|text| escape(text)).collect();
        shown.sort();
        shown.dedup();
        assert_eq!(shown.len(), texts.len());
    }

    /// S7: "In a difference and a text, a backslash is shown as it is": unless it could be taken for an escape.
    #[test]
    fn the_backslashes_of_a_block_are_shown_as_they_are() {
        let shown = |text: &str| join(&pieces(text, Style::BLOCK));
        for plain in [r#"print("a\nb\t")"#, r"C:\temp\new", r"^\d+\.\s$", r"\\server\x", r"\\d"] {
            assert_eq!(shown(plain), plain);
        }
        for (text, expected) in [
            ("a\tb\t\tc", r"a\{1 tab}b\{2 tabs}c"),
            ("a\r", r"a\{CR}"),
            (r"\u{202e}", r"\\u{202e}"),
            (r"\\u{202e}", r"\\\\u{202e}"),
            ("\\\u{202e}", r"\\\u{202e}"),
            (r"\{9 lines left out}", r"\\{9 lines left out}"),
            (&format!("\\{}x", " ".repeat(17)), r"\\\{17 spaces}x"),
            ("a\\", r"a\\"),
        ] {
            assert_eq!(shown(text), expected);
        }
        let texts = [
            "\u{202e}",
            r"\u{202e}",
            r"\\u{202e}",
            "\\\u{202e}",
            "\t",
            r"\t",
            r"\{1 tab}",
            r"\\{1 tab}",
        ];
        let mut all: Vec<_> = texts.iter().map(|text| shown(text)).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), texts.len());
        // A cut in front of a mark leaves none.
        let cut = join(&elide(
            pieces(&format!("ab{}cd{}", r"\n".repeat(9), "x".repeat(40)), Style::BLOCK),
            20,
        ));
        assert!(!cut.contains(r"\\{"), "{cut}");
    }

    #[test]
    fn names_are_shown_in_ascii() {
        assert_eq!(escape_name("delete_file"), "delete_file");
        assert_eq!(escape_name("d\u{435}l\u{301}"), r"d\u{435}l\u{301}");
        assert_eq!(escape_name(&"\u{435}".repeat(6)), r"\u{435}".repeat(6));
    }

    /// S1: "elided text says how much".
    #[test]
    fn elided_text_says_how_much() {
        let elided = |text: &str, most| join(&elide(pieces(text, Style::PROSE), most));
        assert_eq!(elided("0123456789", 10), "0123456789");
        assert_eq!(elided("0123456789abcde", 9), r"012345\{6 characters left out}cde");
        assert_eq!(elided("äöüäöüäöüäöü", 3), r"äö\{9 characters left out}ü");
        // An escape is kept whole or not at all.
        assert_eq!(elided("ab\u{202e}cdefghijk", 6), r"ab\{8 characters left out}jk");
        assert_eq!(elided(&format!("a{}b", " ".repeat(99)), 3), r"a\{99 characters left out}b");
    }
}
