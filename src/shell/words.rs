//! The lexer's part for words: quotes, expansions and braces.

use super::commands::{Commands, Word, WordKind};
use super::dialect::Dialect;
use super::lexer::{Lexer, Stop};

const MAX_WORDS: usize = 4096;

/// A word whose end has not been read yet.
#[derive(Debug)]
pub(super) struct OpenWord {
    text: String,
    start: usize,
    kind: WordKind,
    quoted: bool,
    split: bool,
    in_double_quotes: bool,
    parameters: Vec<String>,
    substitutions: Vec<Commands>,
}

impl OpenWord {
    pub(super) fn substitution(&mut self, commands: Commands) {
        self.kind = WordKind::Expansion;
        self.split |= !self.in_double_quotes;
        self.substitutions.push(commands);
    }
}

impl Lexer<'_> {
    pub(super) fn begin_word(&mut self) -> Result<OpenWord, Stop> {
        self.words += 1;
        if self.words > MAX_WORDS {
            return Err(self.stop("more than 4 096 words"));
        }
        let mut kind = WordKind::Literal;
        match (self.peek(), self.peek_second()) {
            // Alone, as in `[ a = b ]`, it is a word like any other.
            (Some('='), Some(' ' | '\t')) => {}
            (Some('='), _) => return Err(self.stop("`=` at the beginning of a word")),
            (Some('~'), None | Some('/' | ' ' | '\t' | '\n' | ';' | ')' | '|' | '&')) => {
                kind = WordKind::Tilde;
            }
            (Some('~'), _) => return Err(self.stop("only `~` and `~/` are analysed")),
            _ => {}
        }
        Ok(OpenWord {
            text: String::new(),
            start: self.at,
            kind,
            quoted: false,
            split: false,
            in_double_quotes: false,
            parameters: Vec::new(),
            substitutions: Vec::new(),
        })
    }

    /// Reads to the end of the word (`false`), or to a `$(` (`true`), which the parser handles.
    pub(super) fn continue_word(&mut self, word: &mut OpenWord) -> Result<bool, Stop> {
        while let Some(next) = self.peek() {
            if word.in_double_quotes {
                if self.double_quoted(word, next)? {
                    return Ok(true);
                }
                continue;
            }
            match next {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | ')' | '(' | '<' | '>' => return Ok(false),
                '\'' => self.single_quoted(word)?,
                '"' => {
                    self.at += 1;
                    word.quoted = true;
                    word.in_double_quotes = true;
                }
                '\\' => self.escaped(word)?,
                '$' => {
                    if self.dollar(word)? {
                        return Ok(true);
                    }
                }
                '`' => return Err(self.stop("a backtick is not analysed: write `$(…)`")),
                '{' | '}' => self.brace(word)?,
                '=' if word.text.is_empty() && !self.is_lone_equals(word) => {
                    return Err(self.stop("`=` at the beginning of a word"));
                }
                _ if is_text(next) => self.run_of_text(word),
                _ => self.plain(word, next),
            }
        }
        match word.in_double_quotes {
            true => Err(Stop::new(word.start, "a quote without its end")),
            false => Ok(false),
        }
    }

    fn is_lone_equals(&self, word: &OpenWord) -> bool {
        self.at == word.start && matches!(self.peek_second(), Some(' ' | '\t'))
    }

    fn plain(&mut self, word: &mut OpenWord, next: char) {
        let lone_bracket = next == '[' && self.at == word.start && !self.word_continues();
        if matches!(next, '*' | '?' | '[') && !lone_bracket && word.kind != WordKind::Expansion {
            word.kind = WordKind::Glob;
        }
        word.split |= next == '*' || next == '?';
        self.at += next.len_utf8();
        word.text.push(next);
    }

    /// Takes all characters up to the next one that may mean something.
    fn run_of_text(&mut self, word: &mut OpenWord) {
        let rest = self.rest();
        let run = rest.find(|c| !is_text(c)).and_then(|end| rest.get(..end)).unwrap_or(rest);
        word.text.push_str(run);
        self.at += run.len();
    }

    /// Whether the word continues after the current character.
    fn word_continues(&self) -> bool {
        !matches!(self.peek_second(), None | Some(' ' | '\t' | '\n' | ';' | '|' | '&' | ')'))
    }

    fn single_quoted(&mut self, word: &mut OpenWord) -> Result<(), Stop> {
        let start = self.at;
        self.at += 1;
        let Some(length) = self.rest().find('\'') else {
            return Err(Stop::new(start, "a quote without its end"));
        };
        let inside = self.rest().get(..length).unwrap_or_default();
        if self.resume.is_some() && inside.contains('\n') {
            return Err(Stop::new(start, "a line break in quotes before a here-document"));
        }
        word.text.push_str(inside);
        word.quoted = true;
        self.at += length + 1;
        Ok(())
    }

    fn escaped(&mut self, word: &mut OpenWord) -> Result<(), Stop> {
        if self.starts_with("\\\n") {
            return Err(self.stop("a line is continued in the middle of a word"));
        }
        self.at += 1;
        match self.bump() {
            Some(next) => word.text.push(next),
            None => return Err(self.stop("the text ends with a backslash")),
        }
        word.quoted = true;
        Ok(())
    }

    /// Reads one character or expansion between double quotes. Returns whether it is a `$(`.
    fn double_quoted(&mut self, word: &mut OpenWord, next: char) -> Result<bool, Stop> {
        match next {
            '"' => {
                self.at += 1;
                word.in_double_quotes = false;
            }
            '`' => return Err(self.stop("a backtick is not analysed: write `$(…)`")),
            '$' => return self.dollar(word),
            '\n' if self.resume.is_some() => {
                return Err(self.stop("a line break in quotes before a here-document"));
            }
            '\\' => {
                self.at += 1;
                match self.peek() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        self.at += 1;
                        word.text.push(escaped);
                    }
                    Some('\n') => return Err(self.stop("a line is continued within quotes")),
                    _ => word.text.push('\\'),
                }
            }
            _ => {
                self.at += next.len_utf8();
                word.text.push(next);
            }
        }
        Ok(false)
    }

    /// Reads an expansion that begins with `$`. Returns whether it is a `$(`, which is not consumed.
    fn dollar(&mut self, word: &mut OpenWord) -> Result<bool, Stop> {
        let start = self.at;
        let rest = self.rest().get(1..).unwrap_or_default();
        let name = |text: &str| -> usize {
            let first = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            if !first {
                return 0;
            }
            text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
        };
        let length = match rest.chars().next() {
            None | Some(' ' | '\t' | '\n') => 0,
            Some('"') if word.in_double_quotes => 0,
            Some('(') if !rest.starts_with("((") => {
                word.text.push_str("$(…)");
                return Ok(true);
            }
            Some('{') => match name(rest.get(1..).unwrap_or_default()) {
                length
                    if length > 0
                        && rest.get(length + 1..).is_some_and(|rest| rest.starts_with('}')) =>
                {
                    length + 2
                }
                _ => return Err(self.stop("only `${NAME}` is analysed")),
            },
            Some('?' | '#' | '$' | '@' | '*' | '0'..='9') => 1,
            Some(_) => match name(rest) {
                0 => return Err(self.stop("this use of `$` is not analysed")),
                length if rest.get(length..).is_some_and(|rest| rest.starts_with('[')) => {
                    return Err(Stop::new(start + length, "an array is not analysed"));
                }
                length
                    if rest.get(length..).is_some_and(|rest| rest.starts_with(':'))
                        && self.dialect == Dialect::Zsh =>
                {
                    return Err(Stop::new(start + length, "a modifier is not analysed"));
                }
                length => length,
            },
        };
        self.at += 1 + length;
        word.text.push_str(self.slice(start));
        if length > 0 {
            let parameter = rest.get(..length).unwrap_or_default().trim_matches(['{', '}']);
            word.kind = WordKind::Expansion;
            word.split |= !word.in_double_quotes;
            word.parameters.push(parameter.to_owned());
        }
        Ok(false)
    }

    /// Reads `{}`, or braces within a word that no shell expands, as in `HEAD@{1}`.
    fn brace(&mut self, word: &mut OpenWord) -> Result<(), Stop> {
        let rest = self.rest();
        let end = rest.find('}').unwrap_or_default();
        let inside = rest.get(1..end).unwrap_or_default();
        let plain =
            inside.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '@'));
        let alone = inside.is_empty() && word.start == self.at && word.text.is_empty();
        let after_at = word.text.ends_with('@') && !inside.is_empty();
        // `-I{}`: empty braces within a word are no expansion.
        let within = inside.is_empty() && word.start < self.at;
        if end == 0
            || !plain
            || !(alone || after_at || within)
            || (alone
                && rest.get(2..).is_some_and(|rest| {
                    !rest.is_empty() && !rest.starts_with([' ', '\t', '\n', ';', '|', ')'])
                }))
        {
            return Err(self.stop("a brace is not analysed: quote it"));
        }
        word.text.push_str(rest.get(..=end).unwrap_or_default());
        self.at += end + 1;
        Ok(())
    }

    pub(super) fn end_word(&mut self, word: OpenWord) -> Result<Word, Stop> {
        if self.at == word.start {
            return Err(self.unexpected());
        }
        Ok(Word {
            text: word.text,
            kind: word.kind,
            quoted: word.quoted,
            split: word.split,
            parameters: word.parameters,
            substitutions: word.substitutions,
            span: word.start..self.at,
        })
    }
}

/// Whether a character is plain text wherever it is in a word without quotes.
fn is_text(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',' | ':' | '@' | '+')
}
