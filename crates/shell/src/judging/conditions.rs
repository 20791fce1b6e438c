//! The judgement of conditions: `[[ … ]]`, and the plain forms of `[ … ]` and `test`. And of `printf`, which evaluates numbers as
//! they do.
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
//! | `X -eq 3` with numbers, `$?`, `$#` and `$(… \| wc -l)` | numbers |
//! | `! …`, `… && …`, `… \|\| …` | their parts |
//!
//! In `[ … ]` the words are a program's arguments: each has to be one word, and the forms with three and more are read as
//! POSIX prescribes only where the operator is a literal.

use super::printf::numbers_of_format;
use super::simple::{Judging, Simple};
use crate::syntax::commands::{Word, WordKind};
use crate::table::{Kind, Matched};

/// Comparisons of texts.
const TEXTS: &[&str] = &["=", "==", "!="];

/// Comparisons of numbers.
const NUMBERS: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

/// Questions about a file.
const FILES: &[&str] = &[
    "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-L", "-p", "-r", "-s", "-u", "-w", "-x",
];

impl Simple<'_> {
    /// Judges the arguments of `printf` by the conversions of its format: `%s` prints a text, `%d` and `*` evaluate a
    /// number, and `%n` sets the variable of this name. A format without arguments does none of these.
    pub(super) fn printf(&mut self, matched: &Matched<'_, '_>) {
        let Some((format, arguments)) = matched.operands.split_first() else { return };
        if arguments.is_empty() && !format.word.split {
            return;
        }
        let Some(numbers) = format.word.literal().and_then(numbers_of_format) else {
            return self.ask("has a format that may set variables or evaluate what it is given");
        };
        let all_texts = !numbers.contains(&true);
        // Behind a word that may become several, it is not known which conversion takes which argument.
        let certain = arguments.iter().all(|one| !one.word.split || one.word.is_number());
        let takes_number = numbers.into_iter().cycle();
        for (argument, number) in arguments.iter().zip(takes_number) {
            if number || !certain && !all_texts {
                self.number(&argument.word);
            }
        }
    }

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

    /// Judges a `test` or `[`. Returns whether nothing is left for the table to say.
    pub(super) fn is_judged_test(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        args: &[Word],
    ) -> bool {
        let plain = self.is_plain_test(judging, name, args);
        if !plain {
            self.numbers_of_test(args);
        }
        plain
    }

    /// Judges a `test` or `[` whose form is plain. Returns whether it is.
    fn is_plain_test(&mut self, judging: &Judging<'_>, name: &str, args: &[Word]) -> bool {
        let args = match (name, args.split_last()) {
            ("[", Some((last, args))) if last.literal() == Some("]") => args,
            ("[", _) => return false,
            _ => args,
        };
        let index = |word: &Word| word.kind == WordKind::Literal && word.text.contains('[');
        let one = |word: &Word| !word.split && word.kind != WordKind::Process || word.is_number();
        let single = args.iter().all(|word| one(word) && !index(word));
        // Literal text is read as the table says.
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

    /// Asks about words that `test` takes for numbers and that are none: `zsh` evaluates a name by the value of the
    /// variable, and an index in that value may run a command (`[ x -eq 1 ]`, `test -t x`).
    fn numbers_of_test(&mut self, args: &[Word]) {
        let args = match args.split_last() {
            Some((last, args)) if last.text == "]" => args,
            _ => args,
        };
        for (at, operator) in args.iter().enumerate() {
            let numbers = match operator.text.as_str() {
                operator if NUMBERS.contains(&operator) => [at.checked_sub(1), Some(at + 1)],
                "-t" => [None, Some(at + 1)],
                _ => continue,
            };
            let words = numbers.into_iter().flatten().filter_map(|at| args.get(at));
            for word in words.filter(|word| !word.is_number()) {
                self.ask(format!("`{}` may be evaluated as the name of a variable", word.text));
            }
        }
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
                    return left.is_number() && right.is_number();
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
