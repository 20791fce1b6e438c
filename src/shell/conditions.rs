//! The judgement of conditions: `[[ … ]]`, and the plain forms of `[ … ]` and `test`.
//!
//! A condition looks at files and compares texts. It may run code as well: a comparison of numbers evaluates its operands,
//! and `-v` an index, in which a shell runs a substitution (`[[ $x -eq 1 ]]` with `a[$(rm y)]` in `x`). So these are
//! known:
//!
//! | form | judged as |
//! |---|---|
//! | `-f X`, `-d X`, `-e X` and the like | a path whose metadata is read |
//! | `-n X`, `-z X`, `X` alone | nothing but whether it is empty |
//! | `X = Y`, `X == Y`, `X != Y` | texts |
//! | `X -eq 3` with numbers, `$?` and `$#` | numbers |
//! | `! …`, `… && …`, `… \|\| …` | their parts |
//!
//! In `[ … ]` the words are a program's arguments: each has to be one word, and the forms with three and more are read as
//! POSIX prescribes only where the operator is a literal.

use super::commands::{Word, WordKind};
use super::simple::{Judging, Simple};
use super::table::Kind;

/// Comparisons of texts.
const TEXTS: &[&str] = &["=", "==", "!="];

/// Comparisons of numbers.
const NUMBERS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Questions about a file.
const FILES: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-L", "-p", "-r", "-s", "-u", "-w", "-x",
];

impl Simple<'_> {
    /// Judges the words of a `[[ … ]]`, and adds a part for it.
    pub(super) fn judge_condition(mut self, judging: &mut Judging<'_>) {
        self.substitutions(judging);
        self.hides_content = true;
        let mut known = !self.words.is_empty();
        for term in self.words.split(|word| !word.quoted && matches!(&*word.text, "&&" | "||")) {
            known &= self.term(judging, term, true);
        }
        if !known {
            self.ask("has a condition that is not known to be harmless");
        }
        let directories = self.here.clone();
        let mut part = self.into_part(directories);
        part.argv.insert(0, "[[".to_owned());
        part.argv.push("]]".to_owned());
        judging.parts.push(part);
    }

    /// Judges a `test` or `[` whose form is plain. Returns whether it is.
    pub(super) fn is_plain_test(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        args: &[Word],
    ) -> bool {
        let args = match (name, args.split_last()) {
            ("[", Some((last, args))) if last.literal() == Some("]") => args,
            ("[", _) => return false,
            _ => args,
        };
        let index = |word: &Word| word.kind == WordKind::Literal && word.text.contains('[');
        let single =
            args.iter().all(|word| !word.split && word.kind != WordKind::Process && !index(word));
        // What is literal is read as the table says.
        if !single || args.iter().all(|word| word.kind == WordKind::Literal) {
            return false;
        }
        let reasons = self.reasons.len();
        self.hides_content = true;
        let known = self.term(judging, args, false);
        if !known {
            self.reasons.truncate(reasons);
        }
        known
    }

    /// Judges one test. Returns whether its form is known.
    fn term(&mut self, judging: &Judging<'_>, words: &[Word], brackets: bool) -> bool {
        let operator = |word: &Word| match (word.kind, brackets && word.quoted) {
            (WordKind::Literal, false) => word.text.clone(),
            _ => String::new(),
        };
        let words = match words.split_first() {
            Some((first, rest)) if !rest.is_empty() && operator(first) == "!" => rest,
            _ => words,
        };
        match words {
            [only] => {
                let plain = !only.text.starts_with(['-', '!', '(', ')']) || only.quoted;
                (!brackets || plain) && only.kind != WordKind::Process
            }
            [first, second] => match operator(first).as_str() {
                "-n" | "-z" => second.kind != WordKind::Process,
                operator if FILES.contains(&operator) => {
                    let path = as_written(second, brackets);
                    self.path(judging, &path, &Kind::List);
                    true
                }
                _ => false,
            },
            [left, middle, right] => {
                let operator = operator(middle);
                let plain = |word: &Word| {
                    word.kind != WordKind::Process
                        && (!brackets || word.quoted || !word.text.starts_with(['-', '!', '(']))
                };
                if NUMBERS.contains(&operator.as_str()) {
                    return is_number(left) && is_number(right);
                }
                let texts = TEXTS.contains(&operator.as_str()) && (brackets || operator != "==");
                if texts && plain(left) && plain(right) {
                    self.text(left);
                    self.text(right);
                    return true;
                }
                false
            }
            _ => false,
        }
    }
}

/// The word as a path: a pattern is not expanded in `[[ … ]]`.
fn as_written(word: &Word, brackets: bool) -> Word {
    let mut word = word.clone();
    if brackets && word.kind == WordKind::Glob {
        word.kind = WordKind::Literal;
    }
    word
}

/// Whether a word is a number whatever the shell does: digits, or the status or count of arguments.
fn is_number(word: &Word) -> bool {
    let digits = !word.text.is_empty() && word.text.bytes().all(|byte| byte.is_ascii_digit());
    match word.kind {
        WordKind::Literal => digits,
        WordKind::Expansion => matches!(word.text.as_str(), "$?" | "$#" | "${?}" | "${#}"),
        _ => false,
    }
}
