//! The lexer: characters, blanks, comments and assignments.
//!
//! Only syntax that `sh`, `bash` and `zsh` interpret in the same way is accepted (rule C1).
//!
//! # How strict "alike" is
//!
//! The oracles are `dash`, `bash` and `zsh`: all three run a corpus of texts, and what the lexer accepts has to give
//! the same words in each (`shell::corpus`). If they differ, we refuse the text, even if the meaning seems obvious:
//!
//! | text | differs | here |
//! |---|---|---|
//! | `=ls` | `zsh` replaces it by the path of `ls` | refused |
//! | `a{b,c}` | `dash` has no braces | refused for `sh` |
//! | `$a[1]` | an element in `zsh`, a pattern in `bash` | refused |
//! | `echo x &` | a job continues after the command | refused |
//! | `!x` | history, in an interactive shell | refused, except `! ` before a pipeline |
//! | `a\`⏎`b` | one word or two, by where it stands | refused in the middle of a word |
//! | `(\`⏎`(`, `<((` | arithmetic in `bash`, with a scanner of its own | refused |
//! | `''~ann`, `$x~ann` | `zsh` replaces it by a home | refused |
//! | `p x=~/y` | `bash` replaces it by the home | refused |
//! | `1&>y` | a word in `bash`, a descriptor in `zsh` | refused |
//!
//! # Here-documents
//!
//! The body of a here-document begins on the next line, behind the rest of the line that opened it. The lexer reads
//! it ahead when it meets `<<`, and `resume` holds where the body ended. At the line break it jumps there. So one
//! line can open only one document, and none within parentheses, where the jump would leave the list that is being
//! read.

use std::ops::Range;

use super::characters;
use super::dialect::Dialect;

/// The place where lexing stopped, and why the text is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    pub(crate) at: usize,
    pub(crate) why: String,
}

impl Stop {
    pub(crate) fn new(at: usize, why: impl Into<String>) -> Self {
        Self { at, why: why.into() }
    }
}

/// A text with the current position in it.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    pub(crate) dialect: Dialect,
    comments: Vec<Range<usize>>,
    pub(crate) words: usize,
    /// The offset after the body of a here-document, while the line that opened it is read: the body was read ahead and
    /// is skipped at the line break.
    pub(super) resume: Option<usize>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self { text, at: 0, dialect, comments: Vec::new(), words: 0, resume: None }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn slice(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        match self.text.as_bytes().get(self.at) {
            Some(byte) if byte.is_ascii() => Some(char::from(*byte)),
            _ => self.rest().chars().next(),
        }
    }

    pub(super) fn peek_second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(crate) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(crate) fn starts_with(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        let found = self.starts_with(what);
        if found {
            self.at += what.len();
        }
        found
    }

    pub(crate) fn stop(&self, why: impl Into<String>) -> Stop {
        Stop::new(self.at, why)
    }

    pub(super) fn unexpected(&self) -> Stop {
        match self.peek() {
            Some(found) => self.stop(format!("`{found}` where a command should begin")),
            None => self.stop("the text ends in the middle of a command"),
        }
    }

    pub(crate) fn comments(&self) -> &[Range<usize>] {
        &self.comments
    }

    pub(super) fn take_comments(&mut self) -> Vec<Range<usize>> {
        std::mem::take(&mut self.comments)
    }

    /// Refuses characters that a terminal, a person or a shell may interpret differently.
    pub(super) fn check_characters(&self) -> Result<(), Stop> {
        match characters::refused(self.text) {
            Some((at, why)) => Err(Stop::new(at, why)),
            None => Ok(()),
        }
    }

    /// Skips blanks, line continuations, and a comment, whose range is recorded.
    ///
    /// `#` begins a comment only after a separator: in `a#b` it is a part of the word. We accept a continued line
    /// only between words: in the middle of one, some shells join it and others see two words after an alias.
    pub(super) fn skip_blanks(&mut self) -> Result<(), Stop> {
        let start = self.at;
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.starts_with("\\\n") => {
                    if self.at == start && start > 0 && !self.after_separator() {
                        return Err(self.stop("a line is continued in the middle of a word"));
                    }
                    let joins = self.at == start && start > 0 && !self.after_blank();
                    self.at += 2;
                    // A shell that joins the lines first reads `(` and `(` as `((`.
                    if joins
                        && matches!(
                            self.peek(),
                            Some('(' | ')' | ';' | '|' | '&' | '<' | '>' | '#' | '\\')
                        )
                    {
                        return Err(self.stop("a line is continued in the middle of an operator"));
                    }
                    if !matches!(self.peek(), Some(' ' | '\t')) && self.resume.is_some() {
                        return Err(self.stop("a continued line before a here-document"));
                    }
                }
                Some('#') if self.at > start || self.after_separator() => {
                    let length = self.rest().find('\n').unwrap_or(self.rest().len());
                    self.comments.push(self.at..self.at + length);
                    self.at += length;
                }
                _ => return Ok(()),
            }
        }
    }

    pub(crate) fn before(&self) -> Option<char> {
        self.text.get(..self.at).unwrap_or_default().chars().next_back()
    }

    fn after_blank(&self) -> bool {
        self.before().is_none_or(|c| matches!(c, ' ' | '\t' | '\n'))
    }

    /// Returns `true` if the character before the position ends a word, so that `#` begins a comment here.
    pub(super) fn after_separator(&self) -> bool {
        self.after_blank() || self.before().is_some_and(|c| matches!(c, ';' | '|' | '&' | '('))
    }

    /// Returns `true` if the value of an assignment begins at this offset.
    pub(super) fn is_assigned(&self, start: usize) -> bool {
        self.text.get(..start).is_some_and(|before| before.ends_with('='))
    }

    /// Skips blanks, comments and line breaks. Returns whether there was a line break.
    pub(super) fn skip_lines(&mut self) -> Result<bool, Stop> {
        let mut broken = false;
        loop {
            self.skip_blanks()?;
            if self.peek() != Some('\n') {
                return Ok(broken);
            }
            self.at = self.resume.take().unwrap_or(self.at + 1);
            broken = true;
        }
    }

    /// Skips a `!` before a pipeline. Returns whether there was one.
    pub(super) fn eat_bang(&mut self) -> bool {
        let found = self.starts_with("! ");
        if found {
            self.at += 2;
        }
        found
    }

    /// Returns `true` if this word is next, written without quotes and up to its end.
    pub(super) fn is_keyword(&self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word).map(|rest| rest.chars().next());
        after.is_some_and(|next| {
            matches!(next, None | Some(' ' | '\t' | '\n' | ';' | '|' | '&' | ')' | '<' | '>'))
        })
    }

    /// Skips a word of the grammar that blanks or a line break follow. Returns whether it was next.
    pub(super) fn eat_keyword(&mut self, word: &str) -> bool {
        let after = self.rest().strip_prefix(word).and_then(|rest| rest.chars().next());
        let found = matches!(after, Some(' ' | '\t' | '\n'));
        if found {
            self.at += word.len();
        }
        found
    }

    /// Skips the name of a variable.
    pub(super) fn eat_name(&mut self) -> Option<&str> {
        let rest = self.rest();
        let other = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
        let name = rest.get(..rest.find(other).unwrap_or(rest.len())).unwrap_or_default();
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += name.len();
        Some(name)
    }

    pub(super) fn is_word_start(&self) -> bool {
        match self.peek() {
            None | Some(' ' | '\t' | '\n' | ';' | '|' | '&' | ')' | '(' | '>') => false,
            Some('<') => self.dialect.has_extensions() && self.starts_with("<("),
            Some(_) => true,
        }
    }

    /// Skips the `NAME=` of an assignment and returns the name.
    pub(super) fn eat_assignment(&mut self) -> Result<Option<String>, Stop> {
        let rest = self.rest();
        let name: &str = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .and_then(|end| rest.get(..end))
            .unwrap_or_default();
        let after = rest.get(name.len()..).unwrap_or_default();
        if name.starts_with(|c: char| c.is_ascii_digit()) && after.starts_with(['=', '+', '[']) {
            return Err(self.stop("an assignment to a positional parameter is not analysed"));
        }
        if name.is_empty() {
            // To zsh the empty name is one, too.
            let word = rest.split([' ', '\t', '\n']).next().unwrap_or_default();
            let indexed = word.starts_with('[') && (word.contains("]=") || word.contains("]+="));
            return match word.starts_with("+=") || indexed {
                true => Err(self.stop("an assignment without a name")),
                false => Ok(None),
            };
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(None);
        }
        match rest.get(name.len()..).and_then(|rest| rest.chars().next()) {
            Some('=') => {
                self.at += name.len() + 1;
                match self.peek() {
                    Some('(') => Err(self.stop("an array is not analysed")),
                    Some('~') => Err(self.stop("`~` in an assignment is not analysed")),
                    _ => Ok(Some(name.to_owned())),
                }
            }
            Some('+' | '[') if self.may_assign(name.len()) => {
                Err(self.stop("an assignment to a part of a variable is not analysed"))
            }
            _ => Ok(None),
        }
    }

    /// Returns `true` if a name of this length is followed by `+=` or `[`, as in `NAME+=` and `NAME[…]=`.
    fn may_assign(&self, name: usize) -> bool {
        let rest = self.rest().get(name..).unwrap_or_default();
        rest.starts_with("+=") || rest.starts_with('[')
    }
}
