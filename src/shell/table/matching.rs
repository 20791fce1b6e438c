//! Matches arguments against an entry, as the program would parse them.

use super::super::commands::{Word, WordKind};
use super::entry::{Choice, Entry, Kind, Mark, Place};

/// The arguments of a program, matched.
#[derive(Debug)]
pub(in crate::shell) struct Matched<'t, 'w> {
    /// The entry of the program, or of its sub-command.
    pub(in crate::shell) entry: &'t Entry,
    /// The operands and the values of options, each with its kind, in order.
    pub(in crate::shell) operands: Vec<(&'t Kind, Word)>,
    /// The words of another command that the program runs.
    pub(in crate::shell) inner: Option<(&'t Kind, &'w [Word])>,
    /// Whether an option makes the command rewrite files.
    pub(in crate::shell) formats: bool,
    /// Whether the output consists of paths below the operands.
    pub(in crate::shell) paths: bool,
    /// Whether the only argument asks for help or the version.
    pub(in crate::shell) help: bool,
}

/// Why arguments do not match an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) enum Unmatched {
    Option(String),
    SubCommand(String),
    Operand(String),
    ValueMissing(String),
    Needs(String),
    MayBeOption(String),
}

/// Matches the arguments of a program.
pub(in crate::shell) fn matched<'t, 'w>(
    entry: &'t Entry,
    args: &'w [Word],
) -> Result<Matched<'t, 'w>, Unmatched> {
    let mut reading = Reading {
        entry,
        operands: Vec::new(),
        seen: Vec::new(),
        next: 0,
        formats: false,
        inner: None,
        only_operands: false,
    };
    let help = match args {
        [only] if !entry.is(Mark::NoHelp) => matches!(only.literal(), Some("--help" | "--version")),
        _ => false,
    };
    if !help {
        reading.all(args)?;
        reading.check_needs()?;
    }
    let paths = reading.entry.is(Mark::Paths)
        || reading.entry.paths.iter().any(|option| reading.seen.contains(option));
    Ok(Matched {
        paths,
        entry: reading.entry,
        operands: reading.operands,
        inner: reading.inner,
        formats: reading.formats,
        help,
    })
}

struct Reading<'t, 'w> {
    entry: &'t Entry,
    operands: Vec<(&'t Kind, Word)>,
    seen: Vec<String>,
    /// The index of the next operand in the entry's list.
    next: usize,
    formats: bool,
    inner: Option<(&'t Kind, &'w [Word])>,
    /// Whether all remaining words are operands, after `--`.
    only_operands: bool,
}

impl<'t, 'w> Reading<'t, 'w> {
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
            if self.only_operands || !may_be_option(word) {
                if self.sub_command(word)? {
                    continue;
                }
                if self.operand(word, from)? {
                    return Ok(());
                }
                self.only_operands |= self.entry.is(Mark::Posix);
            } else if word.kind == WordKind::Expansion
                || (word.kind == WordKind::Glob && !text.starts_with('-'))
            {
                if !self.entry.is(Mark::Harmless) {
                    return Err(Unmatched::MayBeOption(word.text.clone()));
                }
                self.sub_command(word)?;
                if self.operand(word, from)? {
                    return Ok(());
                }
            } else if word.kind != WordKind::Literal {
                return Err(Unmatched::Option(word.text.clone()));
            } else if text == "--" {
                self.only_operands = true;
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

    /// Continues with the entry of a sub-command. Returns whether the word names one.
    fn sub_command(&mut self, word: &Word) -> Result<bool, Unmatched> {
        if self.entry.subs.is_empty() || self.next > 0 || self.only_operands {
            return Ok(false);
        }
        match word.literal().and_then(|name| self.entry.subs.get(name)) {
            Some(sub) => {
                self.entry = sub;
                self.seen.clear();
                Ok(true)
            }
            None if self.entry.operands.is_empty() => Err(Unmatched::SubCommand(word.text.clone())),
            None => Ok(false),
        }
    }

    /// Matches an operand. Returns whether the remaining words belong to another command.
    fn operand(&mut self, word: &Word, from: &'w [Word]) -> Result<bool, Unmatched> {
        let entry = self.entry;
        let Some(slot) = entry.operands.get(self.next) else {
            return Err(Unmatched::Operand(word.text.clone()));
        };
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
        if word.may_split() && !slot.repeats && entry.operands.len() > self.next + 1 {
            // The word may expand to several operands, and so also fill the places after this one.
            return Err(Unmatched::Operand(word.text.clone()));
        }
        if matches!(slot.kind, Kind::Run | Kind::RunAppended) {
            self.inner = Some((&slot.kind, from));
            return Ok(true);
        }
        if !slot.repeats {
            self.next += 1;
        }
        self.operands.push((&slot.kind, word.clone()));
        Ok(false)
    }

    /// Matches an option and its value. Returns the words after them.
    fn option(&mut self, word: &Word, rest: &'w [Word]) -> Result<&'w [Word], Unmatched> {
        let text = word.text.as_str();
        let unknown = || Unmatched::Option(text.to_owned());
        if let Some(choice) = self.entry.options.get(text) {
            return self.whole(text, choice, rest);
        }
        if let Some((name, value)) = text.split_once('=')
            && let Some(choice) = self.entry.options.get(name)
        {
            let from = name.len() + 1;
            return match choice {
                Choice::Value(kind, place) => {
                    self.take(name, kind, *place, word.tail(from));
                    Ok(rest)
                }
                Choice::Optional(kind) => {
                    self.take(name, kind, Place::Own, word.tail(from));
                    Ok(rest)
                }
                Choice::Flag if text.starts_with("--") && matches!(value, "true" | "false") => {
                    self.seen.push(name.to_owned());
                    Ok(rest)
                }
                Choice::Flag | Choice::Formats | Choice::Refused => Err(unknown()),
            };
        }
        let number =
            text.get(1..).is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        if number && text.len() > 1 && self.entry.options.contains_key("-#") {
            return Ok(rest);
        }
        if let Some((beginning, choice)) =
            self.entry.beginnings.iter().find(|(beginning, _)| text.starts_with(beginning))
        {
            if matches!(choice, Choice::Refused) {
                return Err(unknown());
            }
            let from = match choice {
                Choice::Value(..) | Choice::Optional(_) => beginning.len(),
                _ => text.find('=').map_or(text.len(), |at| at + 1),
            };
            let kind = match choice {
                Choice::Value(kind, _) | Choice::Optional(kind) => kind,
                _ => &Kind::Read,
            };
            if from < text.len() {
                self.operands.push((kind, word.tail(from)));
            }
            self.formats |= matches!(choice, Choice::Formats);
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
        choice: &'t Choice,
        rest: &'w [Word],
    ) -> Result<&'w [Word], Unmatched> {
        match choice {
            Choice::Flag | Choice::Optional(_) => self.seen.push(name.to_owned()),
            Choice::Formats => {
                self.seen.push(name.to_owned());
                self.formats = true;
            }
            Choice::Refused => return Err(Unmatched::Option(name.to_owned())),
            Choice::Value(kind @ (Kind::Run | Kind::RunAppended), _) => {
                self.inner = Some((kind, rest));
                return Ok(&[]);
            }
            Choice::Value(kind, place) => {
                let Some((value, rest)) = rest.split_first() else {
                    return Err(Unmatched::ValueMissing(name.to_owned()));
                };
                if value.may_split() {
                    return Err(Unmatched::MayBeOption(value.text.clone()));
                }
                self.take(name, kind, *place, value.clone());
                return Ok(rest);
            }
        }
        Ok(rest)
    }

    fn take(&mut self, name: &str, kind: &'t Kind, place: Place, value: Word) {
        self.seen.push(name.to_owned());
        self.operands.push((kind, value));
        if place == Place::FirstOperand && self.next == 0 {
            self.next = 1;
        }
    }

    /// Matches letters after one dash. The first letter that takes a value takes the rest of the word.
    fn bundle(&mut self, word: &Word, mut rest: &'w [Word]) -> Result<&'w [Word], Unmatched> {
        let text = word.text.as_str();
        let unknown = || Unmatched::Option(text.to_owned());
        let words = self.entry.is(Mark::Words);
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            let entry = self.entry;
            let choice = entry.options.get(&name).ok_or_else(unknown)?;
            let end = at + letter.len_utf8();
            match choice {
                Choice::Value(kind, place) if end < text.len() => {
                    self.take(&name, kind, *place, word.tail(end));
                    return Ok(rest);
                }
                Choice::Optional(kind) if end < text.len() => {
                    self.take(&name, kind, Place::Own, word.tail(end));
                    return Ok(rest);
                }
                _ if words => return Err(unknown()),
                _ => rest = self.whole(&name, choice, rest)?,
            }
        }
        if text.len() < 2 { Err(unknown()) } else { Ok(rest) }
    }

    fn check_needs(&self) -> Result<(), Unmatched> {
        for needed in &self.entry.needs {
            if !needed.iter().any(|option| self.seen.contains(option)) {
                return Err(Unmatched::Needs(needed.join(" or ")));
            }
        }
        Ok(())
    }
}

/// Whether the program may parse the word as an option.
fn may_be_option(word: &Word) -> bool {
    let text = word.text.as_str();
    match word.kind {
        WordKind::Literal => text.len() > 1 && text.starts_with('-'),
        WordKind::Tilde | WordKind::Process => false,
        // `[s]x` matches only names that begin with `s`.
        WordKind::Glob => {
            let set = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let fixed = set
                .is_some_and(|(set, _)| !set.is_empty() && set.chars().all(char::is_alphanumeric));
            text.starts_with(['-', '*', '?', '[']) && !fixed
        }
        WordKind::Expansion => text.starts_with(['-', '$']),
    }
}

/// Whether a word is one of the words of [`Kind::OneOf`].
pub(super) fn is_one_of(kind: &Kind, word: &Word) -> bool {
    let (Kind::OneOf(words), Some(text)) = (kind, word.literal()) else { return false };
    words.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => known == text,
    })
}
