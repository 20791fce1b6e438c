//! The lexer's part for words: quotes, expansions and braces.
//!
//! A word is read character by character, with two kinds of quotes and one escape. We note everything that a shell
//! replaces, and replace nothing ourselves but the arithmetic of numbers. `$NAME` and `${NAME}` are parameters, and the
//! parser reads `$(…)`. We refuse any other use of `$` (operators in braces, arrays).
//!
//! | text | word | kind | one word? |
//! |---|---|---|---|
//! | `'a b'` | `a b` | literal | yes |
//! | `"$x"` | `$x` | expansion | yes |
//! | `$x` | `$x` | expansion | any number |
//! | `$((2 * 3))` | `6` | literal | yes |
//! | `a*` | `a*` | glob | any number |
//! | `HEAD@{1}` | `HEAD@{1}` | literal: no shell expands it | yes |
//! | `{}` | `{}` | literal, for `xargs` and `find` | yes |
//! | `{a,b}`, `{1..3}` | each of them | literal | refused in `sh`, which has no braces |

use super::arithmetic;
use super::commands::{Commands, Word, WordKind};
use super::lexer::{Lexer, Stop};
use crate::names::globs::is_glob;

const MAX_WORDS: usize = 4096;

/// A word whose end has not been read yet.
#[derive(Debug)]
pub(super) struct OpenWord {
    text: String,
    /// How many bytes of the text stand for what a shell puts there.
    expanded: usize,
    start: usize,
    kind: WordKind,
    quoted: bool,
    split: bool,
    in_double_quotes: bool,
    /// `true` if a character of a pattern is not quoted.
    is_pattern: bool,
    /// `true` if a `[` or `]` is quoted: with a pattern beside it, the text alone does not say which begins a set.
    quotes_bracket: bool,
    may_match: bool,
    parameters: Vec<String>,
    substitutions: Vec<Commands>,
    /// The lists in braces, each with its place in the text.
    braces: Vec<(usize, Vec<String>)>,
}

impl OpenWord {
    /// Adds what is written for something that the shell puts there.
    fn expands_to(&mut self, written: &str) {
        self.text.push_str(written);
        self.expanded += written.len();
    }

    pub(crate) fn substitution(&mut self, commands: Commands) {
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
            (Some('#'), _) if !self.is_assigned(self.at) => {
                return Err(self.stop("`#` at the beginning of a word"));
            }
            _ => {}
        }
        Ok(OpenWord {
            text: String::new(),
            expanded: 0,
            start: self.at,
            kind,
            quoted: false,
            split: false,
            in_double_quotes: false,
            is_pattern: false,
            quotes_bracket: false,
            may_match: false,
            parameters: Vec::new(),
            substitutions: Vec::new(),
            braces: Vec::new(),
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
                '~' | '=' if self.at > word.start => {
                    self.check_name_of_file(word)?;
                    self.plain(word, next);
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

    /// Refuses a `~` or `=` that some shell replaces although it is not the first character: behind nothing but quotes
    /// and expansions that may be empty, behind braces, and behind a `:` or `=` of an assignment.
    ///
    /// To Bash an argument such as `p x=~/y` is an assignment, too; so is one to `zsh` where it follows `export`.
    fn check_name_of_file(&self, word: &OpenWord) -> Result<(), Stop> {
        let is_tilde = self.peek() == Some('~');
        let assigns = self.is_assigned(word.start) || word.text.contains('=');
        let after_colon = word.text.ends_with(':') || word.kind == WordKind::Expansion;
        let replaced = word.text.len() == word.expanded
            || assigns && after_colon
            || is_tilde && (word.text.ends_with('=') || !word.braces.is_empty());
        match replaced {
            true if is_tilde => Err(self.stop("`~` that some shells replace: quote it")),
            true => Err(self.stop("`=` at the beginning of a word")),
            false => Ok(()),
        }
    }

    fn plain(&mut self, word: &mut OpenWord, next: char) {
        let lone_bracket = next == '[' && self.at == word.start && !self.word_continues();
        if matches!(next, '*' | '?' | '[') && !lone_bracket && word.kind != WordKind::Expansion {
            word.kind = WordKind::Glob;
        }
        word.is_pattern |= matches!(next, '*' | '?' | '[') && !lone_bracket;
        word.split |= word.is_pattern;
        word.may_match |= matches!(next, '^' | '#');
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

    /// Returns `true` if the word continues after the current character.
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
        word.quotes_bracket |= inside.contains(['[', ']']);
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
            Some(next) => {
                word.quotes_bracket |= matches!(next, '[' | ']');
                word.text.push(next);
            }
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
                word.quotes_bracket |= matches!(next, '[' | ']');
                word.text.push(next);
            }
        }
        Ok(false)
    }

    /// Reads an expansion that begins with `$`. Returns whether it is a `$(`, which is not consumed.
    fn dollar(&mut self, word: &mut OpenWord) -> Result<bool, Stop> {
        let start = self.at;
        let rest = self.rest().get(1..).unwrap_or_default();
        let length = match rest.chars().next() {
            None | Some(' ' | '\t' | '\n') => 0,
            Some('"') if word.in_double_quotes => 0,
            Some('\'') if self.dialect.has_extensions() && !word.in_double_quotes => {
                return self.escapes(word);
            }
            Some('(') if rest.starts_with("((") => {
                let Some((length, value)) = arithmetic::expansion(rest) else {
                    return Err(self.stop("arithmetic is analysed with numbers only"));
                };
                self.at += 1 + length;
                word.text.push_str(&value.to_string());
                return Ok(false);
            }
            Some('(') => {
                word.expands_to("$(…)");
                return Ok(true);
            }
            // An index that is written out evaluates nothing.
            Some('{') if self.dialect.has_extensions() && statuses(rest) > 0 => statuses(rest),
            Some('{') => match name_length(rest.get(1..).unwrap_or_default()) {
                length
                    if length > 0
                        && rest.get(length + 1..).is_some_and(|rest| rest.starts_with('}')) =>
                {
                    length + 2
                }
                _ => return Err(self.stop("only `${NAME}` is analysed")),
            },
            Some('?' | '#' | '$' | '@' | '*' | '0'..='9') => self.unbraced(rest, 1)?,
            Some(_) => match name_length(rest) {
                0 => return Err(self.stop("this use of `$` is not analysed")),
                length => self.unbraced(rest, length)?,
            },
        };
        self.at += 1 + length;
        if length == 0 {
            word.text.push_str(self.slice(start));
        } else {
            word.expands_to(self.slice(start));
            let parameter = rest.get(..length).unwrap_or_default().trim_matches(['{', '}']);
            let parameter = parameter.split('[').next().unwrap_or_default();
            word.kind = WordKind::Expansion;
            word.split |= !word.in_double_quotes;
            word.parameters.push(parameter.to_owned());
        }
        Ok(false)
    }

    /// Reads `$'…'` with the escapes that every shell which has these quotes reads alike: `$'\t'`. No quote may be escaped:
    /// another shell finds the end of the word there.
    fn escapes(&mut self, word: &mut OpenWord) -> Result<bool, Stop> {
        let start = self.at;
        let mut rest = self.rest().char_indices().skip(2);
        while let Some((at, next)) = rest.next() {
            let decoded = match next {
                '\'' => {
                    self.at = start + at + 1;
                    word.quoted = true;
                    return Ok(false);
                }
                '\\' => match rest.next() {
                    Some((_, 't')) => '\t',
                    Some((_, 'n')) => '\n',
                    Some((_, 'r')) => '\r',
                    Some((_, escaped @ ('\\' | '"'))) => escaped,
                    _ => return Err(self.stop("this escape in `$'…'` is not analysed")),
                },
                '\n' if self.resume.is_some() => {
                    return Err(self.stop("a line break in quotes before a here-document"));
                }
                plain => plain,
            };
            word.quotes_bracket |= matches!(decoded, '[' | ']');
            word.text.push(decoded);
        }
        Err(Stop::new(start, "a quote without its end"))
    }

    /// The length of a parameter without braces. Refuses one to which `zsh` also counts what follows: an index, whose
    /// names it evaluates as numbers, so that code in a variable runs (`$x[y]`, `$?[y]`, `$#x[y]`); and a modifier, which
    /// changes the value (`$f:s,a,b,`). None of these is a part of `${f}`.
    fn unbraced(&self, rest: &str, length: usize) -> Result<usize, Stop> {
        let after = rest.get(length..).unwrap_or_default();
        let refused = |why| Err(Stop::new(self.at + 1 + length, why));
        if after.starts_with('[') {
            return refused("an array is not analysed");
        }
        if after.strip_prefix(':').is_some_and(|after| after.starts_with(is_modifier)) {
            return refused("a modifier is not analysed: write `${NAME}`");
        }
        let is_length = rest.starts_with('#') && after.starts_with(is_measured);
        if is_length { refused("the length of a parameter is not analysed") } else { Ok(length) }
    }

    /// Reads `{}`, or braces within a word that no shell expands, as in `HEAD@{1}` and `repos/{owner}/x`.
    fn brace(&mut self, word: &mut OpenWord) -> Result<(), Stop> {
        let rest = self.rest();
        let end = rest.find('}').unwrap_or_default();
        let inside = rest.get(1..end).unwrap_or_default();
        if self.dialect.has_extensions()
            && end > 0
            && !word.text.ends_with(['@', '$'])
            && let Some(list) = alternatives(inside)
        {
            word.braces.push((word.text.len(), list));
            self.at += end + 1;
            return Ok(());
        }
        let plain =
            inside.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_' | '@'));
        let alone = inside.is_empty() && word.start == self.at && word.text.is_empty();
        let after_at = word.text.ends_with('@') && !inside.is_empty();
        let in_path = word.text.ends_with('/')
            && !inside.is_empty()
            && inside.chars().all(|c| c.is_ascii_alphabetic());
        // `-I{}`: empty braces within a word are no expansion.
        let within = inside.is_empty() && word.start < self.at;
        if end == 0
            || !plain
            || !(alone || after_at || in_path || within)
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

    /// Adds the word, or the words that its braces stand for.
    pub(super) fn end_word(&mut self, word: OpenWord, words: &mut Vec<Word>) -> Result<(), Stop> {
        if self.at == word.start {
            return Err(self.unexpected());
        }
        if word.is_pattern && word.quotes_bracket {
            return Err(Stop::new(word.start, "a quoted bracket beside a pattern is not analysed"));
        }
        let braces = word.braces;
        let word = Word {
            text: word.text,
            kind: word.kind,
            quoted: word.quoted,
            split: word.split,
            parameters: word.parameters,
            substitutions: word.substitutions,
            line: false,
            found: false,
            no_option: false,
            may_match: word.may_match,
            whole_line: false,
            span: word.start..self.at,
        };
        if braces.is_empty() {
            words.push(one_level(word)?);
            return Ok(());
        }
        let count = number_of_words(&braces);
        let known = matches!(word.kind, WordKind::Literal | WordKind::Glob);
        let Some(count) = count.filter(|_| known) else {
            return Err(Stop::new(word.span.start, "this use of braces is not analysed"));
        };
        self.words += count;
        let glob = braces.iter().any(|(_, list)| list.iter().any(|one| is_glob(one)));
        for number in 0..count {
            let text = with_alternatives(&word.text, &braces, number);
            if text.is_empty() || text.starts_with(['-', '~', '=']) && !word.text.starts_with('-') {
                return Err(Stop::new(word.span.start, "this use of braces is not analysed"));
            }
            let kind = if glob { WordKind::Glob } else { word.kind };
            let split = word.split || kind == WordKind::Glob;
            words.push(one_level(Word { text, kind, split, ..word.clone() })?);
        }
        Ok(())
    }
}

/// How many words the braces of one word may stand for.
const MAX_ALTERNATIVES: usize = 64;

/// How many lists in braces one word may have.
const MAX_LISTS: usize = 16;

/// Refuses a pattern in which stars stand side by side, but for `**` between slashes: `***/` is each folder below to `zsh`,
/// also behind links, and one folder to the others.
fn one_level(word: Word) -> Result<Word, Stop> {
    let several = |part: &str| part.contains("**") && part != "**";
    match word.split && word.text.split('/').any(several) {
        true => Err(Stop::new(word.span.start, "`*` beside `**` is not analysed")),
        false => Ok(word),
    }
}

/// How many words these lists stand for, unless they are too many.
fn number_of_words(braces: &[(usize, Vec<String>)]) -> Option<usize> {
    let product =
        braces.iter().try_fold(1_usize, |number, (_, list)| number.checked_mul(list.len()));
    product.filter(|number| *number <= MAX_ALTERNATIVES && braces.len() <= MAX_LISTS)
}

/// The words that `{a,b}` or `{1..3}` stands for. `None` for any other text in braces, which shells may leave as it is.
fn alternatives(inside: &str) -> Option<Vec<String>> {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | '*' | '?' | '+' | ':' | ',')
    };
    if !inside.chars().all(plain) {
        return None;
    }
    if let Some((first, last)) = inside.split_once("..") {
        let number = |text: &str| {
            let padded = text.len() > 1 && text.starts_with('0');
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            (digits && !padded && text.len() < 7).then(|| text.parse::<u32>().ok()).flatten()
        };
        let (first, last) = (number(first)?, number(last)?);
        let many = usize::try_from(first.abs_diff(last)).is_ok_and(|many| many < MAX_ALTERNATIVES);
        return match (many, first <= last) {
            (false, _) => None,
            (true, true) => Some((first..=last).map(|number| number.to_string()).collect()),
            (true, false) => Some((last..=first).rev().map(|number| number.to_string()).collect()),
        };
    }
    let list: Vec<String> = inside.split(',').map(str::to_owned).collect();
    (list.len() > 1).then_some(list)
}

/// The text with the alternatives of this number. The last brace changes fastest, as in the shells.
fn with_alternatives(text: &str, braces: &[(usize, Vec<String>)], number: usize) -> String {
    let mut out = text.to_owned();
    let mut left = number;
    for (at, list) in braces.iter().rev() {
        let count = list.len().max(1);
        if let Some(one) = list.get(left % count) {
            out.insert_str(*at, one);
        }
        left /= count;
    }
    out
}

/// How long the name of a variable is that a text begins with.
fn name_length(text: &str) -> usize {
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return 0;
    }
    text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// How long the exit statuses of the last pipeline are that a text begins with: `{PIPESTATUS[0]}`.
fn statuses(text: &str) -> usize {
    let index = text.strip_prefix("{PIPESTATUS[").and_then(|rest| rest.split_once("]}"));
    let is_written = |it: &str| matches!(it, "@" | "*") || it.parse::<u8>().is_ok();
    match index {
        Some((index, _)) if is_written(index) => "{PIPESTATUS[]}".len() + index.len(),
        _ => 0,
    }
}

/// Returns `true` if `zsh` takes a character behind `$NAME:` for a modifier, or for the beginning of one.
fn is_modifier(c: char) -> bool {
    "aAcefFghlPqQrstuwW&".contains(c)
}

/// Returns `true` if `zsh` takes `$#` in front of this character for the length of another parameter.
fn is_measured(c: char) -> bool {
    c.is_alphanumeric() || "_?#$@*!-+^=~{(".contains(c)
}

/// Returns `true` if a character is plain text wherever it is in a word without quotes.
fn is_text(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',' | ':' | '@' | '+')
}
