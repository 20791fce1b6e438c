//! Where older shells end a substitution.
//!
//! A shell of today parses the commands in `$( )` and `<( )`, and so finds the parenthesis that ends them. Older ones look
//! for it before they parse anything: they count parentheses and skip quotes. Bash did so up to 5.1 (3.2 is still the
//! one of macOS), and zsh up to 5.0. To such a scanner a comment, the body of a here-document and a pattern of `case` are
//! text like any other, and an apostrophe in one of them begins a quote:
//!
//! ```text
//! echo "$(ls # don't
//! )" '; rm x #'
//! ```
//!
//! So we scan each substitution as they do, too, and refuse it if one of the scanners ends it elsewhere. A scanner that comes
//! to the end of the whole text, as behind a single apostrophe in a message, finds an error and runs nothing:
//!
//! | scanner | comments | quotes |
//! |---|---|---|
//! | Bash 3.2 | known outside of double quotes only | `"a $(b "c")"` is one quote |
//! | Bash 4.0 to 5.1 | known outside of double quotes only; also `case` and here-documents | the same |
//! | zsh up to 5.0 | known | `"a $(b "` is a quote, and `")"` another |
//!
//! If some scanners know a comment and others do not, it may hold only characters that mean nothing to a scanner. The
//! parser refuses the word `case`, wherever it stands in a substitution.

use std::ops::Range;

/// How deeply quotes and substitutions may be nested in the text that is scanned.
const MAX_DEPTH: usize = 16;

/// Returns `true` if every scanner ends the substitution inside of this range, which lies between its parentheses, or finds
/// no end at all. `comments` are those that the lexer has read, in order.
pub(super) fn ends_alike(text: &str, inside: &Range<usize>, comments: &[Range<usize>]) -> bool {
    [true, false].into_iter().all(|nested| {
        let bytes = text.as_bytes();
        let mut scanner = Scanner { bytes, at: inside.start, nested, comments, ran_out: false };
        match scanner.group(0) {
            Some(()) => scanner.at == inside.end + 1,
            None => scanner.ran_out,
        }
    })
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// `true` if a substitution in double quotes may have double quotes of its own.
    nested: bool,
    comments: &'a [Range<usize>],
    /// `true` if the text ended before the substitution did.
    ran_out: bool,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        self.ran_out |= self.peek().is_none();
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Skips everything up to the parenthesis that closes the one before the position, and that one.
    fn group(&mut self, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut open = 1_usize;
        while open > 0 {
            match self.next()? {
                b'(' => open += 1,
                b')' => open -= 1,
                b'\\' => _ = self.next()?,
                b'\'' => self.quote(b'\'', false)?,
                b'`' => self.quote(b'`', true)?,
                b'"' => self.double_quote(depth)?,
                b'#' if self.begins_comment() => self.comment()?,
                b'$' => self.dollar()?,
                _ => {}
            }
        }
        Some(())
    }

    fn quote(&mut self, end: u8, escapes: bool) -> Option<()> {
        loop {
            match self.next()? {
                b'\\' if escapes => _ = self.next()?,
                byte if byte == end => return Some(()),
                _ => {}
            }
        }
    }

    fn double_quote(&mut self, depth: usize) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => _ = self.next()?,
                b'`' if self.nested => self.quote(b'`', true)?,
                b'$' if self.nested && self.peek() == Some(b'(') => {
                    self.at += 1;
                    self.group(depth + 1)?;
                }
                b'$' if self.nested && matches!(self.peek(), Some(b'{' | b'[')) => self.dollar()?,
                _ => {}
            }
        }
    }

    /// Refuses what follows a `$` and has rules of its own for its end. `$NAME`, `${NAME}` and `$(` have none.
    fn dollar(&self) -> Option<()> {
        let rest = self.bytes.get(self.at..)?;
        match rest.split_first()? {
            (b'\'' | b'[', _) => None,
            (b'{', rest) => {
                let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let end = rest.iter().position(|byte| !name(byte))?;
                (rest.get(end) == Some(&b'}')).then_some(())
            }
            _ => Some(()),
        }
    }

    /// Returns `true` if the lexer or some scanner takes the `#` before the position for a comment.
    fn begins_comment(&self) -> bool {
        let at = self.at.saturating_sub(1);
        let before = at.checked_sub(1).and_then(|before| self.bytes.get(before));
        matches!(before, Some(b' ' | b'\t' | b'\n'))
            || self.comments.binary_search_by_key(&at, |comment| comment.start).is_ok()
    }

    /// Skips a comment, if it means the same to a scanner that knows none.
    fn comment(&mut self) -> Option<()> {
        while let Some(byte) = self.peek().filter(|byte| *byte != b'\n') {
            if matches!(byte, b'\'' | b'"' | b'`' | b'\\' | b'(' | b')' | b'$' | b'<') {
                return None;
            }
            self.at += 1;
        }
        Some(())
    }
}
