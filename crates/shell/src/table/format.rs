//! The parser of the table's files.
//!
//! ```text
//! [grep|egrep|fgrep]              one entry for several names
//! operands: text read...          the first is the pattern, the others are files that are read
//! last: build build:*             operands behind which there is none
//! flags: -inv --color             three letters and a long option, without values
//! values: -e|--regexp=text^       a value that takes the place of the first operand
//! values: -f=read --color?=text   a file; an optional value in the same word
//! values: -t=text>                a value behind the first operand; in front of it, the option is a flag
//! needs: -l -L                    one of these has to be given
//! otherwise: may run code         why to ask about a command that does not match, for people
//! marks: filter                   whole lines of the input are passed on
//! safe: grep -n x src/lib.rs      a test: has to be allowed
//! unsafe: grep -f /etc/shadow x   a test: has to be asked about
//! ```
//!
//! A section `[+grep|sed]` adds to entries in front of it what these programs do in the forms that name nothing: `bare`,
//! `stdin`, `help`, `helps`, `talks`, `registry` and `marks`.
//!
//! A group (`[@name]`) has no program: entries take it over by `like: @name`. Every entry has examples, and a test
//! judges all of them, so a change of one line shows what else it changes.
//!
//! Two mistakes that would let something in are errors of the file: a flag such as `-errors`, which as letters would
//! allow `-o`, and `--*` for a program that is not harmless.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use sha2::{Digest as _, Sha256};

use super::ProgramsError;
use super::entry::{
    Digest, Does, Forms, Kind, OperandSlot, OptionForm, OptionParser, ProgramEntry, ProgramMark,
    Script, ValuePlace,
};
use countersign::args::hex;

type Entries = HashMap<String, Arc<ProgramEntry>>;

/// Parses a file and adds its entries to the table.
pub(super) fn read(file: &str, text: &str, entries: &mut Entries) -> Result<(), ProgramsError> {
    let mut reader = Reader {
        entries,
        groups: HashMap::new(),
        names: Vec::new(),
        adds: false,
        is_copy: false,
        entry: ProgramEntry::default(),
        text: String::new(),
    };
    for (number, line) in text.lines().enumerate() {
        reader.line(line.trim()).map_err(|problem| ProgramsError {
            file: file.to_owned(),
            line: number + 1,
            problem,
        })?;
    }
    reader.finish();
    Ok(())
}

struct Reader<'a> {
    entries: &'a mut Entries,
    groups: HashMap<String, ProgramEntry>,
    /// The names of the current entry, each with its sub-commands.
    names: Vec<Vec<String>>,
    /// `true` if the current section adds to entries that are there.
    adds: bool,
    /// `true` if the current entry has options of another one, by `like`.
    is_copy: bool,
    entry: ProgramEntry,
    /// The lines of the current entry, for its digest.
    text: String,
}

impl Reader<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        if let Some(header) = line.strip_prefix('[') {
            let header = header.strip_suffix(']').ok_or("a header without `]`")?;
            self.finish();
            return self.header(header);
        }
        if self.names.is_empty() {
            return Err("a line in front of the first header".into());
        }
        let (key, value) = line.split_once(':').ok_or("a line without `key:`")?;
        let value = value.trim();
        // Examples describe nothing.
        if !matches!(key, "safe" | "unsafe") {
            self.text.push_str(line);
            self.text.push('\n');
        }
        if self.adds && !FORMS.contains(&key) {
            return Err(format!("`{key}` cannot be added to an entry"));
        }
        match key {
            "bare" => self.entry.forms.bare = Some(form(value)?),
            "stdin" if value == "text" => self.entry.forms.stdin = true,
            "stdin" => return Err(format!("`{value}` is not what a program takes its input for")),
            "help" => self.help(value)?,
            "helps" => self.entry.forms.helps.extend(options(value)),
            "checks" => self.checks(value)?,
            "scripts" => self.entry.forms.scripts = Some(options(value).collect()),
            "talks" => self.entry.forms.talks = Some(value.to_owned()),
            "registry" => self.entry.forms.registry.extend(options(value)),
            "follows" => self.entry.forms.follows.extend(options(value)),
            "files" => self.entry.forms.files.extend(options(value)),
            "does" => self.entry.does = does(value)?,
            "parser" => self.entry.parser = parser(value)?,
            "operands" => self.operands(value)?,
            "last" => self.entry.last.extend(options(value)),
            "flags" => self.all_flags(value, &OptionForm::Flag)?,
            "formats" => self.all_flags(value, &OptionForm::Formats)?,
            "refuses" => self.all_flags(value, &OptionForm::Refused)?,
            "values" => value.split_whitespace().try_for_each(|word| self.value(word))?,
            "pairs" => value.split_whitespace().try_for_each(|word| self.pair(word))?,
            "needs" => self.entry.needs.push(value.split_whitespace().map(str::to_owned).collect()),
            "otherwise" => self.entry.otherwise = Some(value.to_owned()),
            "words" => options(value).for_each(|word| self.option(&word, OptionForm::Flag)),
            "paths" => self.entry.paths.extend(options(value)),
            "lines" => self.entry.lines.extend(options(value)),
            "nul" => self.entry.nul.extend(options(value)),
            "letters" => value.clone_into(&mut self.entry.letters),
            "marks" => value.split_whitespace().try_for_each(|word| self.mark(word))?,
            "like" => self.like(value)?,
            "safe" => self.entry.examples.push((true, value.to_owned())),
            "unsafe" => self.entry.examples.push((false, value.to_owned())),
            _ => return Err(format!("`{key}` is not a key")),
        }
        Ok(())
    }

    /// Parses a header: `[git diff|show]`, `[grep|egrep]`, `[@group]`.
    fn header(&mut self, header: &str) -> Result<(), String> {
        let (header, adds) = match header.strip_prefix('+') {
            Some(header) => (header, true),
            None => (header, false),
        };
        self.adds = adds;
        let mut names: Vec<Vec<String>> = vec![Vec::new()];
        for word in header.split_whitespace() {
            let choices: Vec<&str> = word.split('|').collect();
            names = names
                .into_iter()
                .flat_map(|name| {
                    choices
                        .iter()
                        .map(move |choice| [name.clone(), vec![(*choice).to_owned()]].concat())
                })
                .collect();
        }
        if names.iter().any(Vec::is_empty) {
            return Err("a header without a name".into());
        }
        self.names = names;
        // Another name in a list changes nothing for those that are there.
        self.text = if adds { String::new() } else { format!("[{header}]\n") };
        let shares_options = !are_one_program(&self.names);
        self.entry = ProgramEntry { described: true, shares_options, ..ProgramEntry::default() };
        self.is_copy = false;
        Ok(())
    }

    /// Adds what `--help` and `--version` do: `reads`, `builds --help`.
    fn help(&mut self, value: &str) -> Result<(), String> {
        let (does, option) = value.split_once(' ').unwrap_or((value, ""));
        let does = form(does)?;
        let options: &[&str] = match option {
            "" => &["--help", "--version"],
            "--help" | "--version" => &[option],
            _ => return Err(format!("`{option}` is neither `--help` nor `--version`")),
        };
        let known = options.iter().map(|option| ((*option).to_owned(), does.clone()));
        self.entry.forms.help.splice(0..0, known);
        Ok(())
    }

    /// Adds the options with which a program that rewrites files only checks, and what it does then.
    fn checks(&mut self, value: &str) -> Result<(), String> {
        let (does, rest) = value.split_once(' ').ok_or("`checks` without options")?;
        self.entry.forms.checks = Some((form(does)?, options(rest).collect()));
        Ok(())
    }

    fn mark(&mut self, word: &str) -> Result<(), String> {
        match word {
            "aliases" => self.entry.shares_options = false,
            word => self.entry.marks.push(mark(word)?),
        }
        Ok(())
    }

    fn operands(&mut self, value: &str) -> Result<(), String> {
        self.entry.shares_operands = false;
        self.entry.operands = value.split_whitespace().map(slot).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn like(&mut self, value: &str) -> Result<(), String> {
        let name: Vec<&str> = value.split_whitespace().collect();
        let other = match self.groups.get(value) {
            Some(group) => group.clone(),
            None => find(self.entries, &name)
                .ok_or_else(|| format!("`{value}` is not in front of this"))?,
        };
        self.is_copy = true;
        self.entry.shares_options |= other.shares_options;
        self.entry.options.extend(other.options);
        self.entry.beginnings.extend(other.beginnings);
        self.entry.marks.extend(other.marks);
        self.entry.paths.extend(other.paths);
        self.entry.lines.extend(other.lines);
        self.entry.nul.extend(other.nul);
        self.entry.forms.follows.extend(other.forms.follows);
        self.entry.forms.files.extend(other.forms.files);
        self.entry.forms.registry.extend(other.forms.registry);
        self.entry.forms.checks = self.entry.forms.checks.take().or(other.forms.checks);
        self.text.push_str(&hex(&other.digest));
        if self.entry.operands.is_empty() {
            self.entry.shares_operands = value.starts_with('@') || other.shares_operands;
            self.entry.operands = other.operands;
            self.entry.last = other.last;
        }
        if self.entry.parser == OptionParser::Unsaid {
            self.entry.parser = other.parser;
        }
        if self.entry.does == Does::Reads {
            self.entry.does = other.does;
        }
        if self.entry.needs.is_empty() {
            self.entry.needs = other.needs;
        }
        self.entry.otherwise = self.entry.otherwise.take().or(other.otherwise);
        if self.entry.letters.is_empty() {
            self.entry.letters = other.letters;
        }
        self.entry.subs.extend(other.subs);
        Ok(())
    }

    /// Adds an option. If the entry describes several programs, and the option is a flag of one and has a value in
    /// another, the value is optional: a value in the next word is judged as an operand.
    ///
    /// One entry may describe the GNU and the BSD program of a name. If `-i` is a flag of one and takes a value in the
    /// other, the value is optional here, and a word after it is judged as an operand: both readings are covered.
    fn option(&mut self, name: &str, choice: OptionForm) {
        let simple = |kind: &Kind| matches!(kind, Kind::Text | Kind::Read | Kind::List);
        let choice = match (self.entry.options.get(name), choice) {
            (Some(OptionForm::Flag), OptionForm::Value(kind, ValuePlace::Own)) if simple(&kind) => {
                OptionForm::Optional(kind)
            }
            (Some(OptionForm::Value(kind, ValuePlace::Own)), OptionForm::Flag) if simple(kind) => {
                OptionForm::Optional(kind.clone())
            }
            (Some(OptionForm::Optional(kind)), OptionForm::Flag) => {
                OptionForm::Optional(kind.clone())
            }
            (_, choice) => choice,
        };
        match name.strip_suffix('*') {
            Some(beginning) => {
                // The pattern refuses options of the other entry as well.
                if self.is_copy && choice == OptionForm::Refused {
                    self.entry.options.retain(|known, _| !known.starts_with(beginning));
                }
                self.entry.beginnings.push((beginning.to_owned(), choice));
            }
            None => {
                self.entry.options.insert(name.to_owned(), choice);
            }
        }
    }

    fn all_flags(&mut self, value: &str, choice: &OptionForm) -> Result<(), String> {
        value.split_whitespace().try_for_each(|word| self.flags(word, choice))
    }

    /// Adds flags: `-abc` is three of them, unless the program's options are words.
    fn flags(&mut self, word: &str, choice: &OptionForm) -> Result<(), String> {
        let letters = word.strip_prefix('-').unwrap_or_default();
        let bundle = letters.len() > 1
            && !word.starts_with("--")
            && !word.ends_with('*')
            && matches!(self.entry.parser, OptionParser::Unsaid | OptionParser::Gnu);
        if matches!(word, "-*" | "--*")
            && *choice == OptionForm::Flag
            && !self.entry.marks.contains(&ProgramMark::Harmless)
        {
            return Err(format!("`{word}` lets every option in"));
        }
        if !bundle {
            self.option(word, choice.clone());
            return Ok(());
        }
        for (at, letter) in letters.char_indices() {
            // A word such as `-errors` would let in `-o`.
            if letters.get(..at).is_some_and(|before| before.contains(letter)) {
                return Err(format!("`{word}` has a letter twice: a word belongs to `words`"));
            }
            self.option(&format!("-{letter}"), choice.clone());
        }
        Ok(())
    }

    /// Parses an option with a value: `-n=text`, `--color?=text`, `-e=text^`, `-e|--regexp=text^`.
    ///
    /// A `?` or `$` counts for all names of a group: of `-w|--width?=text`, the word behind `-w` is an operand, too.
    fn value(&mut self, word: &str) -> Result<(), String> {
        let (names, value) = word.split_once('=').ok_or_else(|| format!("`{word}` has no `=`"))?;
        let (value, place) = match (value.strip_suffix('^'), value.strip_suffix('>')) {
            (Some(value), _) => (value, ValuePlace::FirstOperand),
            (_, Some(value)) => (value, ValuePlace::BehindOperand),
            _ => (value, ValuePlace::Own),
        };
        let value = kind(value)?;
        let form = match names {
            _ if names.contains('?') => OptionForm::Optional(value),
            _ if names.contains('$') => OptionForm::Last(value),
            _ => OptionForm::Value(value, place),
        };
        for name in names.split('|') {
            self.option(name.trim_end_matches(['?', '$']), form.clone());
        }
        Ok(())
    }

    /// Parses an option with two values, of which the second is described: `--slurpfile=read`.
    fn pair(&mut self, word: &str) -> Result<(), String> {
        let (names, value) = word.split_once('=').ok_or_else(|| format!("`{word}` has no `=`"))?;
        let value = kind(value)?;
        names.split('|').for_each(|name| self.option(name, OptionForm::Pair(value.clone())));
        Ok(())
    }

    /// Adds the current entry to the table.
    fn finish(&mut self) {
        if self.adds {
            return self.add();
        }
        let mut entry = std::mem::take(&mut self.entry);
        entry.name_outputs();
        entry.digest = Sha256::digest(&self.text).into();
        entry.hex = OnceLock::new();
        entry.beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        for (number, name) in std::mem::take(&mut self.names).into_iter().enumerate() {
            if let [group] = name.as_slice()
                && group.starts_with('@')
            {
                self.groups.insert(group.clone(), entry.clone());
                continue;
            }
            let mut own = entry.clone();
            if number > 0 {
                own.examples.clear();
            }
            let digest = own.digest;
            let first = name.first().cloned().unwrap_or_default();
            let before = self.entries.get(&first).map(|entry| entry.digest);
            insert(self.entries, &name, own);
            // A key that describes a sub-command describes its program, too.
            if let Some(entry) = self.entries.get_mut(&first) {
                let entry = Arc::make_mut(entry);
                entry.digest = before.unwrap_or_default();
                entry.extend_digest(&digest);
            }
        }
    }

    /// Adds the current section to the entries that it names. A program of another table is left out.
    fn add(&mut self) {
        let mut added = std::mem::take(&mut self.entry);
        let digest = Sha256::digest(&self.text).into();
        for (number, name) in std::mem::take(&mut self.names).into_iter().enumerate() {
            let Some((first, rest)) = name.split_first() else { continue };
            let Some(entry) = self.entries.get_mut(first) else { continue };
            let entry = Arc::make_mut(entry);
            if add(entry, rest, &added, &digest) && number == 0 {
                entry.examples.append(&mut added.examples);
            }
        }
    }
}

/// The keys of a section that adds to entries.
const FORMS: &[&str] =
    &["bare", "stdin", "help", "helps", "talks", "registry", "marks", "safe", "unsafe"];

/// The effects of a form that names nothing.
fn form(value: &str) -> Result<Does, String> {
    match does(value)? {
        known @ (Does::Reads | Does::Builds | Does::Queries(_)) => Ok(known),
        _ => Err(format!("`{value}` is not what a program does without operands")),
    }
}

/// Adds to an entry, and returns whether it is there.
fn add(entry: &mut ProgramEntry, subs: &[String], added: &ProgramEntry, digest: &Digest) -> bool {
    if let [first, rest @ ..] = subs {
        let sub = entry.subs.get_mut(first);
        let found = sub.is_some_and(|sub| add(Arc::make_mut(sub), rest, added, digest));
        if found {
            entry.extend_digest(digest);
        }
        return found;
    }
    let Forms { bare, stdin, help, helps, talks, registry, .. } = added.forms.clone();
    let forms = &mut entry.forms;
    forms.bare = bare.or(forms.bare.take());
    forms.talks = talks.or(forms.talks.take());
    forms.stdin |= stdin;
    forms.help.splice(0..0, help);
    forms.helps.extend(helps);
    forms.registry.extend(registry);
    entry.marks.extend(&added.marks);
    entry.extend_digest(digest);
    true
}

fn options(value: &str) -> impl Iterator<Item = String> {
    value.split_whitespace().map(str::to_owned)
}

fn insert(entries: &mut Entries, name: &[String], mut entry: ProgramEntry) {
    match name {
        [] => {}
        [last] => {
            if let Some(old) = entries.get(last) {
                // Sub-commands may be described before their program.
                let subs = old.subs.iter().map(|(name, sub)| (name.clone(), sub.clone()));
                entry.subs.extend(subs.collect::<Vec<_>>());
            }
            entries.insert(last.clone(), Arc::new(entry));
        }
        [first, rest @ ..] => {
            let above = entries.entry(first.clone()).or_default();
            insert(&mut Arc::make_mut(above).subs, rest, entry);
        }
    }
}

fn find(entries: &Entries, name: &[&str]) -> Option<ProgramEntry> {
    match name {
        [] => None,
        [last] => entries.get(*last).map(|entry| (**entry).clone()),
        [first, rest @ ..] => find(&entries.get(*first)?.subs, rest),
    }
}

fn does(value: &str) -> Result<Does, String> {
    let (word, rest) = value.split_once(' ').unwrap_or((value, ""));
    Ok(match (word, rest.trim()) {
        ("reads", "") => Does::Reads,
        ("builds", "") => Does::Builds,
        ("formats", "") => Does::Formats,
        ("queries", who) if !who.is_empty() => Does::Queries(who.to_owned()),
        ("asks", what) if !what.is_empty() => Does::Asks(what.to_owned()),
        _ => return Err(format!("`{value}` is not what a program does")),
    })
}

fn slot(word: &str) -> Result<OperandSlot, String> {
    let (word, repeats) = match word.strip_suffix("...") {
        Some(word) => (word, true),
        None => (word, false),
    };
    let (word, required) = match word.strip_suffix('!') {
        Some(word) => (word, true),
        None => (word, false),
    };
    Ok(OperandSlot { kind: kind(word)?, repeats, required })
}

fn kind(word: &str) -> Result<Kind, String> {
    if let Some(words) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
        return Ok(Kind::OneOf(words.split('|').map(str::to_owned).collect()));
    }
    Ok(match word {
        "text" => Kind::Text,
        "read" => Kind::Read,
        "local" => Kind::Local,
        "packed" => Kind::Packed,
        "unquoted" => Kind::Unquoted,
        "list" => Kind::List,
        "write" => Kind::Write,
        "output" => Kind::Output,
        "from-to" => Kind::FromTo,
        "report" => Kind::Report,
        "make" => Kind::Make,
        "revision" => Kind::Revision,
        "directory" => Kind::Directory,
        "run" => Kind::Run,
        "run-each" => Kind::RunEach,
        "run-appended" => Kind::RunAppended,
        "replaced" => Kind::Replaced,
        "shell" => Kind::Shell,
        "assignment" => Kind::Assignment,
        "variable" => Kind::Variable,
        "host" => Kind::Host,
        "slug" => Kind::Slug,
        "package" => Kind::Package,
        "remote" => Kind::Remote,
        "here" => Kind::Here,
        "code" => Kind::Code,
        "sed" => Kind::Script(Script::Sed),
        "awk" => Kind::Script(Script::Awk),
        "jq" => Kind::Script(Script::Jq),
        "yq" => Kind::Script(Script::Yq),
        "test" => Kind::Script(Script::Test),
        "name" => Kind::Script(Script::Name),
        "database" => Kind::Database,
        "number" => Kind::Number,
        "template" => Kind::Script(Script::Template),
        "fields" => Kind::Script(Script::Fields),
        "sql" => Kind::Script(Script::Sql),
        "graphql" => Kind::Script(Script::Graphql),
        "argument" => Kind::Script(Script::Argument),
        "branch" => Kind::Script(Script::Branch),
        _ => return Err(format!("`{word}` is not a kind of operand")),
    })
}

fn parser(value: &str) -> Result<OptionParser, String> {
    Ok(match value {
        "gnu" => OptionParser::Gnu,
        // Go's package `flag` and the tools of LLVM read words as Perl and TypeScript do.
        "long-one-dash" | "go" | "llvm" => OptionParser::OneDash,
        "words" => OptionParser::Words,
        _ => return Err(format!("`{value}` is not a parser of options")),
    })
}

/// Returns `true` for the names of one program, as the tools of GNU have them elsewhere: `sort`, `gsort`.
fn are_one_program(names: &[Vec<String>]) -> bool {
    let programs: BTreeSet<&str> =
        names.iter().filter_map(|name| name.first()).map(String::as_str).collect();
    let plain = |name: &str| name.strip_prefix('g').is_some_and(|rest| programs.contains(rest));
    programs.iter().filter(|name| !plain(name)).count() < 2
}

fn mark(word: &str) -> Result<ProgramMark, String> {
    Ok(match word {
        "harmless" => ProgramMark::Harmless,
        "by-name" => ProgramMark::ByName,
        "paths" => ProgramMark::Paths,
        "filter" => ProgramMark::Filter,
        "complete" => ProgramMark::Complete,
        "counts" => ProgramMark::Counts,
        "names" => ProgramMark::Names,
        "addresses" => ProgramMark::Addresses,
        "wraps" => ProgramMark::Wraps,
        "builtin" => ProgramMark::Builtin,
        "posix" => ProgramMark::Posix,
        "repository" => ProgramMark::Repository,
        "inert" => ProgramMark::Inert,
        "inputs" => ProgramMark::Inputs,
        "installed" => ProgramMark::Installed,
        "no-help" => ProgramMark::NoHelp,
        "launcher" => ProgramMark::Launcher,
        _ => return Err(format!("`{word}` is not a mark")),
    })
}
