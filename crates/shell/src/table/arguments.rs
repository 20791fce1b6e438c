//! The arguments of a program, matched against its entry as the program would parse them.
//!
//! A judgement is only as good as its reading of the arguments. For example, `-o` may be a flag of one program and
//! take a value in another, and if we took a value for a flag, we would leave a file name unjudged. So we read
//! arguments in the way of the program, and leave every word unmatched in which the two readings may differ:
//!
//! | word | may be | here |
//! |---|---|---|
//! | `-xo` | `-x -o`, or `-x` with the value `o` | by the entry; unknown letters do not match |
//! | `--out=x` | an option with a value | by the entry |
//! | `*` | file names, one of which is `-rf` | unmatched, unless no option of the program can do harm |
//! | `$x`, `a$x` | anything, or nothing, or several words | unmatched, unless no option can do harm |
//! | `@file` | a file of options | unmatched where a file is expected |
//! | `a\b` | a path on another system | unmatched where a file is expected |
//! | a value like `-n` | the value, or the next option | unmatched |
//! | `--base=--x` | a text, or an option of a program that runs | unmatched, if the program builds |
//!
//! If a command does not match, the question names the word that did not, so a person sees what is unusual.

use std::borrow::Cow;

use super::dashes::{checks, is_no_operand, may_be_long, with_other_dash};
use super::entry::{
    Always, Does, Kind, OptionForm, OptionParser, ProgramEntry, ProgramMark, Script, ValuePlace,
};
use super::helping::asked_help;
use super::matched::{Argument, Matched, prints_path};
use super::unmatched::Unmatched;
use super::words::{
    check_behind_dashes, check_handed_on, check_value, each_command, ends_early, is_known_word,
    is_one_of, is_plain, may_be_option, may_be_sub_command, sub_command,
};
use crate::syntax::commands::{Word, WordKind};

/// Matches the arguments of a program. `installed` is for a program whose first word is one that the workspace has
/// installed, so that no option is needed. The error has the entry of the sub-command that they do not match.
pub(crate) fn matched<'t, 'w>(
    entry: &'t ProgramEntry,
    args: &'w [Word],
    installed: bool,
) -> Result<Matched<'t, 'w>, (Unmatched, &'t ProgramEntry)> {
    let mut reading = ArgumentReading {
        entry,
        operands: Vec::new(),
        seen: Vec::new(),
        next: 0,
        formats: false,
        inner: Vec::new(),
        only_operands: false,
        behind_dashes: None,
        had_operand: false,
        option_for_operand: false,
        in_sub_command: false,
        only_files: None,
        always: Always::default(),
    };
    reading.always.add(entry);
    let help = asked_help(entry, args);
    // It is known what this form does, and nothing else is done then.
    if help.is_some_and(|help| help.is_said) {
        reading.always = Always::default();
    }
    let does = match help {
        Some(help) => {
            reading.entry = help.entry;
            help.does
        }
        None => {
            let read = reading.all(args).and_then(|()| reading.check_needs(installed));
            let does = read.and_then(|()| reading.does());
            does.map_err(|unmatched| (unmatched, reading.entry))?
        }
    };
    let entry = reading.entry;
    let given = |options: &[String]| options.iter().any(|option| reading.seen.contains(option));
    let whole_lines = reading.seen.iter().all(|option| {
        [&entry.lines, &entry.paths, &entry.nul].iter().any(|known| known.contains(option))
    });
    Ok(Matched {
        paths: whole_lines && (entry.is(ProgramMark::Paths) || given(&entry.paths)),
        whole_lines,
        nul: given(&entry.nul) && !reading.takes_back(&entry.nul),
        follows: given(&entry.forms.follows) || entry.forms.follows.iter().any(|one| one == "*"),
        files: reading.prints_files(),
        entry: reading.entry,
        does,
        always: reading.always,
        operands: reading.operands,
        seen: reading.seen,
        inner: reading.inner,
        formats: reading.formats,
        behind_dashes: reading.behind_dashes,
        help: help.is_some(),
    })
}

struct ArgumentReading<'t, 'w> {
    entry: &'t ProgramEntry,
    operands: Vec<Argument<'t, 'w>>,
    seen: Vec<String>,
    /// The index of the next operand in the entry's list.
    next: usize,
    formats: bool,
    inner: Vec<(&'t Kind, &'w [Word])>,
    /// `true` if all remaining words are operands, after `--`.
    only_operands: bool,
    /// How many words stand behind a `--` that ends the options.
    behind_dashes: Option<usize>,
    had_operand: bool,
    /// `true` if an option has taken the place of the first operand.
    option_for_operand: bool,
    /// `true` if the entry is that of a sub-command.
    in_sub_command: bool,
    /// `true` if all options about the kind of files say that only plain ones are printed.
    only_files: Option<bool>,
    always: Always<'t>,
}

impl<'t, 'w> ArgumentReading<'t, 'w> {
    fn all(&mut self, mut args: &'w [Word]) -> Result<(), Unmatched> {
        if let Some((first, rest)) = args.split_first()
            && self.letters(first)
        {
            args = rest;
        }
        while let Some((word, rest)) = args.split_first() {
            let from = args;
            args = rest;
            let text = word.text.as_str();
            // The arguments of a task are judged as such, also those that look like options.
            let slot = self.entry.operands.get(self.next).map(|slot| &slot.kind);
            let is_argument = matches!(slot, Some(Kind::Script(Script::Argument)));
            let passed_on = self.only_operands
                && !is_argument
                && self.entry.passes_options_on()
                && text.starts_with('-');
            let plus = text.starts_with('+') && self.entry.options.contains_key(text);
            if !plus && !passed_on && (self.only_operands || !may_be_option(word)) {
                if self.sub_command(word)? {
                    continue;
                }
                if self.operand(word, from)? {
                    return Ok(());
                }
                self.only_operands |= self.entry.is(ProgramMark::Posix);
            } else if self.is_value_of_text(word)? {
                continue;
            } else if word.kind == WordKind::Expansion
                || (word.kind == WordKind::Glob && (!text.starts_with('-') || !word.split))
            {
                if !self.entry.is(ProgramMark::Harmless) {
                    return Err(Unmatched::MayBeOption(word.text.clone()));
                }
                self.sub_command(word)?;
                if self.operand(word, from)? {
                    return Ok(());
                }
            } else if word.kind == WordKind::Glob && self.pattern_of_option(word) {
                continue;
            } else if word.kind != WordKind::Literal {
                return Err(Unmatched::Option(word.text.clone()));
            } else if text == "--" && !self.only_operands {
                self.only_operands = true;
                self.behind_dashes = check_behind_dashes(self.entry, args)?;
            } else if !self.entry.subs.contains_key(text) || !self.sub_command(word)? {
                args = self.option(word, rest)?;
            }
        }
        if !self.entry.described {
            return Err(Unmatched::SubCommand(String::new()));
        }
        Ok(())
    }

    /// Accepts bundled letters without a dash, such as `tf` in `tar tf x.tar`.
    fn letters(&mut self, word: &Word) -> bool {
        let known = |letter| self.entry.letters.contains(letter);
        let found =
            word.kind == WordKind::Literal && !word.text.is_empty() && word.text.chars().all(known);
        if found {
            self.seen.extend(word.text.chars().map(|letter| format!("-{letter}")));
        }
        found
    }

    /// Accepts `--include=*.rs`: all that the shell makes of it begins with the option, whose value is text.
    fn pattern_of_option(&mut self, word: &Word) -> bool {
        let Some((name, value)) = word.text.split_once('=') else { return false };
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '*' | '?');
        let entry: &'t ProgramEntry = self.entry;
        let Some(OptionForm::Value(kind @ Kind::Text, ValuePlace::Own)) = entry.options.get(name)
        else {
            return false;
        };
        let known = name.starts_with("--") && value.chars().all(plain);
        if known {
            self.seen.push(name.to_owned());
            // It is handed over as it is written where no file is called so.
            let word = Cow::Owned(word.tail(name.len() + 1));
            self.operands.push(Argument { kind, word, late: false });
        }
        known
    }

    /// Takes a quoted word of which the option is written and the value is known only when it runs, for a program that
    /// reads: `git log --author="$(git config user.name)"`. Returns whether it is one.
    fn is_value_of_text(&mut self, word: &Word) -> Result<bool, Unmatched> {
        if word.kind != WordKind::Expansion || word.split || *self.entry.does() != Does::Reads {
            return Ok(false);
        }
        let Some((name, _)) = word.text.split_once('=') else { return Ok(false) };
        let entry: &'t ProgramEntry = self.entry;
        let kind = match entry.options.get(name) {
            Some(OptionForm::Value(kind @ Kind::Text, ValuePlace::Own)) => kind,
            Some(OptionForm::Optional(kind @ Kind::Text)) => kind,
            _ => return Ok(false),
        };
        let value = Cow::Owned(word.tail(name.len() + 1));
        self.take(name, kind, ValuePlace::Own, value, false)?;
        Ok(true)
    }

    /// Continues with the entry of a sub-command. Returns whether the word names one.
    fn sub_command(&mut self, word: &Word) -> Result<bool, Unmatched> {
        if self.entry.subs.is_empty() || self.next > 0 || self.only_operands {
            return Ok(false);
        }
        let entry: &'t ProgramEntry = self.entry;
        match word.literal().and_then(|name| sub_command(entry, name)) {
            Some(sub) => {
                self.entry = sub;
                self.in_sub_command = true;
                self.always.add(sub);
                self.seen.clear();
                Ok(true)
            }
            None if !self.had_operand
                && !self.option_for_operand
                && !self.entry.opens_with(word) =>
            {
                Err(Unmatched::SubCommand(word.text.clone()))
            }
            None => Ok(false),
        }
    }

    /// Matches an operand. Returns whether the remaining words belong to another command.
    ///
    /// A word that may become several operands fills the places after its own, too: in `cp $x`, both the source and the
    /// target come from it. It is accepted only where every later place is one that is read.
    fn operand(&mut self, word: &'w Word, from: &'w [Word]) -> Result<bool, Unmatched> {
        let entry = self.entry;
        let Some(slot) = entry.operands.get(self.next) else {
            return Err(Unmatched::Operand(word.text.clone()));
        };
        let before = self.operands.iter().filter_map(|one| one.word.literal());
        if is_no_operand(entry, &slot.kind, word, self.had_operand)
            || before.into_iter().any(|text| is_known_word(&entry.last, text))
        {
            return Err(Unmatched::Operand(word.text.clone()));
        }
        if slot.kind == Kind::Assignment && !word.text.contains('=') {
            self.next += 1;
            return self.operand(word, from);
        }
        if let Kind::OneOf(_) = &slot.kind
            && slot.repeats
            && self.entry.operands.len() > self.next + 1
            && !is_one_of(&slot.kind, word)
        {
            self.next += 1;
            return self.operand(word, from);
        }
        // `a$x` may become `a` and an option.
        let is_open = !self.only_operands && !self.entry.is(ProgramMark::Harmless);
        if word.kind == WordKind::Expansion && word.may_split() && !word.is_number() && is_open {
            return Err(Unmatched::MayBeOption(word.text.clone()));
        }
        if word.may_split() && !slot.repeats && !word.is_number() {
            // The word may become several operands, and so fill the places after this one, too.
            let later = entry.operands.get(self.next..).unwrap_or_default();
            let harmless = later.last().is_some_and(|slot| slot.repeats)
                && later.iter().all(|slot| slot.kind.is_plain());
            if !harmless {
                return Err(Unmatched::Operand(word.text.clone()));
            }
            for slot in later.iter().skip(1) {
                let word = Cow::Borrowed(word);
                self.operands.push(Argument { kind: &slot.kind, word, late: false });
            }
        }
        if matches!(slot.kind, Kind::Run | Kind::RunAppended) {
            self.inner.push((&slot.kind, from));
            return Ok(true);
        }
        if !slot.repeats {
            self.next += 1;
        }
        self.had_operand = true;
        let word = Cow::Borrowed(word);
        self.operands.push(Argument { kind: &slot.kind, word, late: false });
        Ok(false)
    }

    /// Matches an option and its value. Returns the words after them.
    fn option(&mut self, word: &Word, rest: &'w [Word]) -> Result<&'w [Word], Unmatched> {
        let text = word.text.as_str();
        let unknown = || Unmatched::Option(text.to_owned());
        if let Some(choice) = self.entry.options.get(text) {
            return self.whole(text, choice, rest);
        }
        if let Some(other) = with_other_dash(self.entry, text) {
            return self.option(&Word { text: other, ..word.clone() }, rest);
        }
        if let Some((name, value)) = text.split_once('=')
            && let Some(choice) = self.entry.options.get(name)
        {
            let from = name.len() + 1;
            let tail = || Cow::Owned(word.tail(from));
            match choice {
                OptionForm::Value(kind, place) => self.take(name, kind, *place, tail(), false)?,
                OptionForm::Optional(kind) | OptionForm::Last(kind) => {
                    self.take(name, kind, ValuePlace::Own, tail(), false)?;
                }
                // A needed option that is switched off is not given, even if it was switched on before.
                OptionForm::Flag if text.starts_with("--") && matches!(value, "true" | "false") => {
                    self.seen.retain(|it| value == "true" || it != name);
                    self.seen.push(if value == "true" { name } else { text }.to_owned());
                }
                _ => return Err(unknown()),
            }
            return Ok(rest);
        }
        let number =
            text.get(1..).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        if number && text.len() > 1 && self.entry.options.contains_key("-#") {
            self.seen.push("-#".to_owned());
            return Ok(rest);
        }
        if let Some((beginning, choice)) =
            self.entry.beginnings.iter().find(|(beginning, _)| text.starts_with(beginning))
        {
            if matches!(choice, OptionForm::Refused) {
                return Err(unknown());
            }
            if let OptionForm::Value(kind, _) | OptionForm::Optional(kind) = choice {
                let value = word.tail(beginning.len());
                self.operands.push(Argument { kind, word: Cow::Owned(value), late: false });
            } else if !is_plain(text.get(beginning.len()..).unwrap_or_default()) {
                // `echo "--- x ---"`: where no option can do harm, it is a text.
                if beginning != "-" || !self.entry.is(ProgramMark::Harmless) {
                    return Err(unknown());
                }
                let word = Cow::Owned(word.clone());
                self.operands.push(Argument { kind: &Kind::Text, word, late: false });
            }
            self.formats |= matches!(choice, OptionForm::Formats);
            self.seen.push(text.to_owned());
            return Ok(rest);
        }
        if text.starts_with("--") {
            return Err(unknown());
        }
        self.bundle(word, rest)
    }

    /// Matches an option that is the whole word.
    fn whole(
        &mut self,
        name: &str,
        choice: &'t OptionForm,
        rest: &'w [Word],
    ) -> Result<&'w [Word], Unmatched> {
        match choice {
            OptionForm::Flag | OptionForm::Optional(_) => self.seen.push(name.to_owned()),
            OptionForm::Formats => {
                self.seen.push(name.to_owned());
                self.formats = true;
            }
            OptionForm::Refused => return Err(Unmatched::Option(name.to_owned())),
            OptionForm::Value(kind @ (Kind::Run | Kind::RunAppended), _) => {
                self.inner.push((kind, rest));
                return Ok(&[]);
            }
            OptionForm::Value(kind @ Kind::RunEach, _) => return self.run_each(name, kind, rest),
            OptionForm::Last(_) if rest.is_empty() => self.seen.push(name.to_owned()),
            OptionForm::Pair(kind) => {
                let [first, second, rest @ ..] = rest else {
                    return Err(Unmatched::ValueMissing(name.to_owned()));
                };
                if first.may_split() || second.may_split() {
                    return Err(Unmatched::MayBeOption(second.text.clone()));
                }
                self.take(name, &Kind::Text, ValuePlace::Own, Cow::Borrowed(first), false)?;
                self.take(name, kind, ValuePlace::Own, Cow::Borrowed(second), false)?;
                return Ok(rest);
            }
            OptionForm::Value(..) | OptionForm::Last(_) => {
                let (kind, place) = match choice {
                    OptionForm::Value(kind, place) => (kind, *place),
                    OptionForm::Last(kind) => (kind, ValuePlace::Own),
                    _ => return Err(Unmatched::Option(name.to_owned())),
                };
                let Some((value, rest)) = rest.split_first() else {
                    return Err(Unmatched::ValueMissing(name.to_owned()));
                };
                check_value(kind, place, value, self.had_operand)?;
                if self.next == 0 && may_be_sub_command(self.entry, value) {
                    return Err(Unmatched::MayBeSubCommand(value.text.clone()));
                }
                if self.entry.may_have_flag() && !value.text.contains("://") {
                    let word = Cow::Borrowed(value);
                    self.operands.push(Argument { kind: &Kind::Read, word, late: true });
                }
                self.take(name, kind, place, Cow::Borrowed(value), self.had_operand)?;
                return Ok(rest);
            }
        }
        Ok(rest)
    }

    /// Takes the words of a command up to `;` or `{} +`.
    fn run_each(
        &mut self,
        name: &str,
        kind: &'t Kind,
        rest: &'w [Word],
    ) -> Result<&'w [Word], Unmatched> {
        let (words, after) =
            each_command(rest).ok_or_else(|| Unmatched::ValueMissing(name.to_owned()))?;
        if words.iter().any(Word::may_split) || ends_early(words) {
            return Err(Unmatched::Operand(name.to_owned()));
        }
        self.seen.push(name.to_owned());
        self.inner.push((kind, words));
        Ok(after)
    }

    /// Takes the value of an option.
    fn take(
        &mut self,
        name: &str,
        kind: &'t Kind,
        place: ValuePlace,
        word: Cow<'w, Word>,
        late: bool,
    ) -> Result<(), Unmatched> {
        if place == ValuePlace::FirstOperand {
            if self.had_operand && !self.option_for_operand {
                // The word that was taken for the first operand is one of the second kind.
                return Err(Unmatched::Option(name.to_owned()));
            }
            self.option_for_operand = true;
            self.next = self.next.max(1);
        }
        if is_no_operand(self.entry, kind, &word, self.had_operand) {
            return Err(Unmatched::Operand(word.text.clone()));
        }
        check_handed_on(self.entry, name, kind, &word)?;
        self.seen.push(name.to_owned());
        let wanted = |one: &&String| one.split_once('=').is_some_and(|(option, _)| option == name);
        let mut wanted = self.entry.forms.files.iter().filter(wanted).peekable();
        if wanted.peek().is_some() {
            // `find . -print0 -type f` has printed the path before it looks.
            let has_acted = !self.inner.is_empty() || self.seen.iter().any(|it| prints_path(it));
            let fits = !has_acted && wanted.any(|one| one.ends_with(&format!("={}", word.text)));
            self.only_files = Some(fits && self.only_files != Some(false));
        }
        self.operands.push(Argument { kind, word, late });
        Ok(())
    }

    /// The effects of this form of the program. An error for a program without operands that its entry does not describe.
    fn does(&self) -> Result<&'t Does, Unmatched> {
        let entry: &'t ProgramEntry = self.entry;
        let names = self.had_operand
            || self.option_for_operand
            || !self.inner.is_empty()
            || !entry.needs.is_empty();
        if let Some(does) = checks(entry, &self.seen).filter(|_| !self.formats) {
            return Ok(does);
        }
        match names {
            true => Ok(&entry.does),
            false => {
                entry.bare(self.in_sub_command).ok_or_else(|| Unmatched::SubCommand(String::new()))
            }
        }
    }

    /// Returns `true` if an option was given that takes back what these options say: `!-d`.
    fn takes_back(&self, options: &[String]) -> bool {
        let mut options = options.iter().filter_map(|option| option.strip_prefix('!'));
        options.any(|option| self.seen.iter().any(|seen| seen == option))
    }

    /// Returns `true` if the paths that are printed are those of plain files.
    fn prints_files(&self) -> bool {
        let files = &self.entry.forms.files;
        let taken_back = files.iter().filter_map(|one| one.strip_prefix('!')).any(|option| {
            self.seen.iter().any(|seen| seen == option)
                || self.operands.iter().any(|one| one.word.text == option)
        });
        let always = files.iter().any(|one| one == "*");
        (always || self.only_files == Some(true)) && !taken_back
    }

    /// Matches letters after one dash. The first letter that takes a value takes the rest of the word.
    ///
    /// `-abc` is three options unless one of them takes a value, which is then the rest of the word: `-ofile` is `-o
    /// file`. Programs whose options are words (`-name`) have no bundles, by their parser.
    fn bundle(&mut self, word: &Word, mut rest: &'w [Word]) -> Result<&'w [Word], Unmatched> {
        let text = word.text.as_str();
        let unknown = || Unmatched::Option(text.to_owned());
        let parser = self.entry.parser;
        let is_letter = |c: char| c.is_ascii_alphabetic();
        let words = parser == OptionParser::Words;
        if may_be_long(self.entry, text)
            || parser == OptionParser::OneDash && text.chars().count() > 2
        {
            return Err(unknown());
        }
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let entry = self.entry;
            let choice = entry.options.get(&name).ok_or_else(unknown)?;
            let end = at + letter.len_utf8();
            // Behind a letter, another one may be the next of a word: `-output`.
            if words && text.get(end..).is_some_and(|rest| rest.starts_with(char::is_alphabetic)) {
                return Err(unknown());
            }
            match choice {
                // To another program of the entry they may be flags: `-so` of `sdiff` writes.
                OptionForm::Value(..) | OptionForm::Optional(_) | OptionForm::Last(_)
                    if self.entry.may_have_flag()
                        && text.get(end..).is_some_and(|rest| rest.contains(is_letter)) =>
                {
                    return Err(unknown());
                }
                OptionForm::Value(kind, place) if end < text.len() => {
                    // `-o:FILE` is a way of some compilers.
                    let colon = matches!(kind, Kind::Output | Kind::Write | Kind::Read)
                        && text.get(end..).is_some_and(|value| value.starts_with(':'));
                    let value = Cow::Owned(word.tail(end + usize::from(colon)));
                    self.take(&name, kind, *place, value, false)?;
                    return Ok(rest);
                }
                OptionForm::Optional(kind) | OptionForm::Last(kind) if end < text.len() => {
                    self.take(&name, kind, ValuePlace::Own, Cow::Owned(word.tail(end)), false)?;
                    return Ok(rest);
                }
                _ if words => return Err(unknown()),
                _ => rest = self.whole(&name, choice, rest)?,
            }
        }
        if text.len() < 2 { Err(unknown()) } else { Ok(rest) }
    }

    fn check_needs(&self, installed: bool) -> Result<(), Unmatched> {
        let left = self.entry.operands.get(self.next..).unwrap_or_default();
        if left.iter().any(|slot| slot.required) {
            return Err(Unmatched::Needs("its last operand".to_owned()));
        }
        for needed in self.entry.needs.iter().filter(|_| !installed) {
            if !needed.iter().any(|option| self.seen.contains(option)) {
                return Err(Unmatched::Needs(needed.join(" or ")));
            }
        }
        Ok(())
    }
}
