//! The judgement of one simple command.

use std::path::PathBuf;

use super::classify::{Judging, Left, Lines, Preset};
use super::commands::{Assignment, Commands, Redirection, RedirectionTarget, SimpleCommand};
use super::dialect::Dialect;
use super::environment;
use super::judgement::{Effect, Part, Reason, Verdict, hex};
use super::search_path::{ProgramFile, installed_name};
use super::table::{Does, Entry, Kind, Mark, Matched, Unmatched, matched};
use super::word::{Word, WordKind};

/// The maximum depth of programs that run programs, and of `sh -c` texts.
const MAX_DEPTH: usize = 8;

/// One simple command while it is judged, with its context.
pub(super) struct Simple<'a> {
    assignments: &'a [Assignment],
    words: &'a [Word],
    redirections: &'a [Redirection],
    span: std::ops::Range<usize>,
    pub(super) here: Vec<PathBuf>,
    /// What is known about the lines of its standard input.
    input: Lines,
    /// Whether it receives more operands from its standard input, as under `xargs`.
    appended: bool,
    wrapped_by: Option<String>,
    pub(super) effects: Vec<Effect>,
    pub(super) reasons: Vec<Reason>,
    /// Whether all paths that the command names are in the workspace.
    pub(super) inside: bool,
    /// Whether it runs code of the workspace, so that a text may be the path of code.
    pub(super) builds: bool,
    /// Whether it queries a service, so that a text may be the address of another one.
    pub(super) queries: bool,
    program: Option<Program>,
}

/// What the name of a program stands for.
struct Program {
    name: String,
    file: Option<PathBuf>,
    digest: String,
}

impl<'a> Simple<'a> {
    pub(super) fn new(command: &'a SimpleCommand, here: &[PathBuf], input: Lines) -> Self {
        Self {
            assignments: &command.assignments,
            span: command.span.clone(),
            ..Self::of_words(&command.words, &command.redirections, here, input)
        }
    }

    /// The redirections after a subshell, as a command without words.
    pub(super) fn redirections_only(redirections: &'a [Redirection], here: &[PathBuf]) -> Self {
        Self::of_words(&[], redirections, here, Lines::Unknown)
    }

    fn of_words(
        words: &'a [Word],
        redirections: &'a [Redirection],
        here: &[PathBuf],
        input: Lines,
    ) -> Self {
        let span = match (words.first(), words.last()) {
            (Some(first), Some(last)) => first.span.start..last.span.end,
            _ => 0..0,
        };
        Self {
            assignments: &[],
            words,
            redirections,
            span,
            here: here.to_vec(),
            input,
            appended: false,
            wrapped_by: None,
            effects: Vec::new(),
            reasons: Vec::new(),
            inside: true,
            builds: false,
            queries: false,
            program: None,
        }
    }

    pub(super) fn ask(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason { verdict: Verdict::Ask, every_time: false, text: text.into() });
    }

    pub(super) fn ask_every_time(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason { verdict: Verdict::Ask, every_time: true, text: text.into() });
    }

    pub(super) fn deny(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason { verdict: Verdict::Deny, every_time: false, text: text.into() });
    }

    pub(super) fn judge(mut self, judging: &mut Judging<'_>) -> Left {
        let mut left = Left { lines: Lines::Unknown, directories: None, is_cd: false };
        self.substitutions(judging);
        for assignment in self.assignments {
            self.assignment(&assignment.name, assignment.value.literal());
        }
        let directories = self.here.clone();
        for redirection in self.redirections {
            self.redirection(judging, redirection);
        }
        let at = judging.parts.len();
        if let Some((program, args)) = self.words.split_first() {
            self.program(judging, program, args, &mut left);
        }
        if self.words.is_empty() && self.reasons.is_empty() && self.effects.is_empty() {
            return left;
        }
        let (program, file, digest) = match self.program {
            Some(program) => (Some(program.name), program.file, Some(program.digest)),
            None => (None, None, None),
        };
        let part = Part {
            span: self.span,
            argv: self.words.iter().map(|word| word.text.clone()).collect(),
            words: self.words.to_vec(),
            assignments: self.assignments.to_vec(),
            redirections: self.redirections.to_vec(),
            wrapped_by: self.wrapped_by,
            directories,
            program,
            file,
            digest,
            effects: self.effects,
            reasons: self.reasons,
        };
        // Its part goes before those of the programs that it runs, which were added while it was judged.
        judging.parts.insert(at.min(judging.parts.len()), part);
        left
    }

    fn substitutions(&self, judging: &mut Judging<'_>) {
        let values = self.assignments.iter().map(|assignment| &assignment.value);
        let targets = self.redirections.iter().filter_map(|redirection| redirection.target.word());
        for word in values.chain(self.words).chain(targets) {
            for commands in &word.substitutions {
                judging.list(commands, &self.here);
            }
        }
    }

    fn assignment(&mut self, name: &str, value: Option<&str>) {
        if !value.is_some_and(|value| environment::may_be_set(name, value)) {
            self.ask(format!("sets `{name}`, which may change what programs do"));
        }
    }

    fn redirection(&mut self, judging: &Judging<'_>, redirection: &Redirection) {
        match &redirection.target {
            RedirectionTarget::Read(word) => self.path(judging, word, &Kind::Read),
            RedirectionTarget::Write(word)
            | RedirectionTarget::Append(word)
            | RedirectionTarget::WriteAll(word) => {
                self.path(judging, word, &Kind::Write);
            }
            RedirectionTarget::HereString(word) => self.text(word),
            RedirectionTarget::Duplicate(_) | RedirectionTarget::HereDocument(_) => {}
        }
    }

    fn program(
        &mut self,
        judging: &mut Judging<'_>,
        program: &Word,
        args: &[Word],
        left: &mut Left,
    ) {
        let Some(given) = program.literal() else {
            return self.ask("which program runs is known only when it does");
        };
        let name = if given.contains('/') {
            let Some(name) = installed_name(given) else {
                self.effects.push(Effect::Runs(given.to_owned()));
                return self.ask(format!("runs `{given}`, which is not an installed program"));
            };
            name
        } else {
            given
        };
        // Cloned, as the entry is used while `judging` is borrowed mutably. A clone is one `Arc`.
        let programs = judging.classifier.programs.clone();
        let Some(entry) = programs.get(name) else {
            self.effects.push(Effect::Runs(name.to_owned()));
            return self.ask(format!("`{name}` is not known"));
        };
        let found = match entry.is(Mark::Builtin) {
            true => ProgramFile::Nothing,
            false => judging.classifier.search_path.find(name, &judging.classifier.workspace),
        };
        let file = match found {
            ProgramFile::File(file) => Some(file),
            ProgramFile::Nothing => None,
            ProgramFile::Problem(problem) => {
                self.ask(problem);
                None
            }
        };
        self.program = Some(Program { name: name.to_owned(), file, digest: hex(&entry.digest()) });
        match matched(entry, args) {
            Ok(matched) if matched.help => {}
            Ok(matched) => self.matched(judging, name, &matched, left),
            Err(unmatched) => {
                self.unmatched(name, entry, &unmatched, args);
                if entry.is(Mark::Wraps) {
                    // The program that it runs is judged nevertheless, as that program may be denied.
                    let known = |word: &Word| {
                        word.literal().is_some_and(|name| programs.get(name).is_some())
                    };
                    let from = args.iter().position(known).unwrap_or(args.len());
                    if let Some(words @ [_, ..]) = args.get(from..) {
                        self.inner(judging, name, &Kind::Run, words, left);
                    }
                }
            }
        }
    }

    fn unmatched(&mut self, name: &str, entry: &Entry, unmatched: &Unmatched, args: &[Word]) {
        if let Does::Asks(what) = entry.does() {
            return self.destructive(name, what, args);
        }
        self.ask(match unmatched {
            Unmatched::Option(option) => {
                format!("`{name}` with the option `{option}` is not known to be harmless")
            }
            Unmatched::SubCommand(sub) if sub.is_empty() => {
                format!("`{name}` alone is not known to be harmless")
            }
            Unmatched::SubCommand(sub) => format!("`{name} {sub}` is not known to be harmless"),
            Unmatched::Operand(operand) => {
                format!("`{name}` with the operand `{operand}` is not known to be harmless")
            }
            Unmatched::ValueMissing(option) => {
                format!("the option `{option}` of `{name}` has no value")
            }
            Unmatched::Needs(needed) => {
                format!("`{name}` without {needed} is not known to be harmless")
            }
            Unmatched::MayBeOption(word) => format!("`{word}` may become an option of `{name}`"),
        });
    }

    fn matched(
        &mut self,
        judging: &mut Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        left: &mut Left,
    ) {
        let directories = matched.operands.iter().filter(|one| *one.kind == Kind::Directory);
        directories.for_each(|one| self.directory(judging, &one.word));
        if matched.entry.is(Mark::Repository) {
            self.repository(judging);
        }
        let formats = matched.formats || *matched.entry.does() == Does::Formats;
        self.builds = formats || *matched.entry.does() == Does::Builds;
        self.queries = matches!(matched.entry.does(), Does::Queries(_));
        for argument in &matched.operands {
            self.operand(judging, argument.kind, &argument.word, formats);
            if argument.late {
                self.late(judging, &argument.word);
            }
        }
        self.does(judging, name, matched, formats);
        if self.appended {
            self.appended(name, matched.entry);
        }
        match name {
            "cd" => {
                left.directories = self.went(matched);
                left.is_cd = self.wrapped_by.is_none();
            }
            "printf" => self.printf(matched),
            "env" | "printenv"
                if matched.inner.is_empty()
                    && !matched.operands.iter().any(|one| *one.kind == Kind::Variable) =>
            {
                self.effects.push(Effect::RevealsEnvironment);
                self.ask("prints the environment, which may hold secrets");
            }
            _ => {}
        }
        for (kind, words) in &matched.inner {
            self.matched_inner(judging, name, matched, (kind, words), left);
        }
        let reads = matched.operands.iter().any(|one| matches!(one.kind, Kind::Read | Kind::Local));
        if matched.inner.is_empty() && self.reasons.is_empty() && self.inside {
            let filters = matched.entry.is(Mark::Filter) && !reads && matched.whole_lines;
            left.lines = match (matched.paths, self.input, matched.nul) {
                (true, _, false) => Lines::Paths,
                (true, _, true) => Lines::NulPaths,
                (_, Lines::Paths, false) | (_, Lines::NulPaths, true) if filters => self.input,
                _ => Lines::Unknown,
            };
        }
    }

    /// The command that a program runs, with the words that the program puts into it.
    fn matched_inner(
        &mut self,
        judging: &mut Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        (kind, words): (&Kind, &[Word]),
        left: &mut Left,
    ) {
        if *kind == Kind::RunAppended {
            self.input = match (self.input, matched.nul) {
                (Lines::NulPaths, true) => Lines::NulPaths,
                (Lines::Paths, false) => Lines::Paths,
                _ => Lines::Unknown,
            };
        }
        let replaced = matched.operands.iter().rfind(|one| *one.kind == Kind::Replaced);
        let replaced = match (kind, replaced.map(|one| one.word.text.as_str())) {
            (Kind::RunEach, _) => "{}",
            (_, Some(replaced)) => replaced,
            (_, None) => return self.inner(judging, name, kind, words, left),
        };
        if *kind == Kind::RunEach && !(self.inside && matched.whole_lines) {
            self.ask(format!(
                "`{name}` runs a program with paths that are not known to be in the workspace"
            ));
        }
        // Each word that is replaced becomes one path; a word that only contains it could become any path.
        let whole = |word: &Word| word.text == replaced;
        if words.iter().any(|word| !whole(word) && word.text.contains(replaced)) {
            self.ask(format!("`{replaced}` becomes a part of a word"));
        }
        let path = |word: &Word| match whole(word) {
            true => Word { text: "./x".to_owned(), ..word.clone() },
            false => word.clone(),
        };
        let words: Vec<Word> = words.iter().map(path).collect();
        self.inner(judging, name, kind, &words, left);
    }

    /// Asks about operands that come from standard input, unless they are known to be harmless paths.
    fn appended(&mut self, name: &str, entry: &Entry) {
        if !entry.takes_only_harmless() {
            self.ask(format!("`{name}` gets arguments from its input that may be options"));
        }
        match self.input {
            Lines::NulPaths => {}
            Lines::Paths if entry.hides_content() => {}
            Lines::Paths => self.ask(format!(
                "`{name}` gets paths from its input that are split at blanks: separate them by NUL"
            )),
            Lines::Unknown => self.ask(format!(
                "`{name}` gets arguments from its input that are not known to be paths in the workspace"
            )),
        }
    }

    fn does(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        formats: bool,
    ) {
        let reader = judging.classifier.preset == Preset::Reader;
        let outside = self
            .here
            .iter()
            .any(|directory| !directory.starts_with(judging.classifier.workspace.root()));
        if formats {
            self.effects.push(Effect::Writes(self.here.first().cloned().unwrap_or_default()));
            if reader {
                self.ask(format!("`{name}` rewrites files"));
            } else if outside {
                self.ask(format!("`{name}` rewrites files outside of the workspace"));
            }
        }
        match matched.entry.does() {
            Does::Reads | Does::Formats => {}
            Does::Builds => {
                self.effects.push(Effect::RunsWorkspace);
                if reader {
                    self.ask(format!("`{name}` runs code of the workspace"));
                } else if outside {
                    self.ask(format!("`{name}` runs outside of the workspace"));
                }
            }
            Does::Queries(who) => {
                self.effects.push(Effect::Queries(who.clone()));
                if reader {
                    self.ask(format!("`{name}` talks to {who}"));
                }
            }
            Does::Asks(what) => {
                self.effects.push(Effect::Other(what.clone()));
                self.ask(format!("`{name}` {what}"));
            }
        }
    }

    /// Asks about a command that has to be approved anyway, and denies deleting the whole system or a home directory.
    fn destructive(&mut self, name: &str, what: &str, args: &[Word]) {
        let everything = |word: &Word| {
            let text = word.text.trim_end_matches(['*', '/']);
            let rooted = word.kind != WordKind::Expansion && word.text.starts_with('/');
            (text.is_empty() && rooted)
                || (text == "~" && word.kind == WordKind::Tilde)
                || word.text == "$HOME"
        };
        let recursive = |word: &Word| {
            word.text == "--recursive"
                || (word.text.starts_with('-')
                    && !word.text.starts_with("--")
                    && word.text.contains(['r', 'R']))
        };
        self.effects.push(Effect::Other(what.to_owned()));
        if name == "rm" && args.iter().any(everything) && args.iter().any(recursive) {
            return self.deny("deletes everything");
        }
        self.ask(format!("`{name}` {what}"));
    }

    fn inner(
        &mut self,
        judging: &mut Judging<'_>,
        name: &str,
        kind: &Kind,
        words: &[Word],
        left: &mut Left,
    ) {
        if judging.depth >= MAX_DEPTH {
            return self.ask("programs that run programs are nested too deeply");
        }
        let runs = words.first().map(|word| word.text.clone()).unwrap_or_default();
        self.effects.push(Effect::Wraps(runs));
        let mut inner = Simple::of_words(words, &[], &self.here, self.input);
        inner.appended = self.appended || *kind == Kind::RunAppended;
        inner.wrapped_by = Some(name.to_owned());
        // Substitutions in these words were judged with the outer command.
        judging.depth += 1;
        let inner = inner.judge(judging);
        judging.depth -= 1;
        left.lines = inner.lines;
        // `command cd` changes the directory of this shell, `nohup cd` does not.
        left.directories = inner.directories;
    }

    /// Judges the text of a `sh -c`.
    pub(super) fn shell(&mut self, judging: &mut Judging<'_>, word: &Word) {
        let program = self.words.iter().find_map(|word| Dialect::of_program(&word.text));
        let dialect = program.unwrap_or(Dialect::Sh);
        let Some(text) = word.literal() else {
            return self.ask("which commands run is known only when they do");
        };
        if judging.depth >= MAX_DEPTH {
            return self.ask("programs that run programs are nested too deeply");
        }
        self.effects.push(Effect::Runs(text.to_owned()));
        judging.depth += 1;
        match Commands::parse(text, dialect) {
            Ok(commands) => judging.list(&commands, &self.here),
            Err(refused) => {
                judging.list(refused.read(), &self.here);
                self.ask(format!("runs a text that is not analysed: {refused}"));
            }
        }
        judging.depth -= 1;
    }
}
