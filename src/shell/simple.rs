//! The judgement of lists of commands, and of each simple command in them.

use std::path::PathBuf;

use super::commands::{
    Commands, Join, Pipeline, Redirection, RedirectionTarget, SimpleCommand, Stage, Word, WordKind,
};
use super::dialect::Dialect;
use super::environment;
use super::judgement::{Effect, Part, Reason, Verdict};
use super::preset::{Preset, Settings};
use super::search_path::installed_name;
use super::table::{Does, Entry, Kind, Mark, Matched, Unmatched, matched};

/// The maximum depth of programs that run programs, and of `sh -c` texts.
const MAX_DEPTH: usize = 8;

/// One simple command while it is judged, with its context.
pub(super) struct Simple<'a> {
    assignments: Vec<(&'a str, &'a Word)>,
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
}

impl<'a> Simple<'a> {
    pub(super) fn new(command: &'a SimpleCommand, here: &[PathBuf], input: Lines) -> Self {
        let assignments = command.assignments.iter();
        Self {
            assignments: assignments
                .map(|assignment| (assignment.name.as_str(), &assignment.value))
                .collect(),
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
            assignments: Vec::new(),
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
        let mut left = Left { lines: Lines::Unknown, directories: None };
        self.substitutions(judging);
        for (name, value) in std::mem::take(&mut self.assignments) {
            self.assignment(name, value.literal());
        }
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
        let part = Part {
            span: self.span,
            argv: self.words.iter().map(|word| word.text.clone()).collect(),
            wrapped_by: self.wrapped_by,
            directory: self.here.into_iter().next().unwrap_or_default(),
            effects: self.effects,
            reasons: self.reasons,
        };
        // Its part goes before those of the programs that it runs, which were added while it was judged.
        judging.parts.insert(at.min(judging.parts.len()), part);
        left
    }

    fn substitutions(&self, judging: &mut Judging<'_>) {
        let values = self.assignments.iter().map(|(_, value)| *value);
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
        let programs = judging.settings.programs.clone();
        let Some(entry) = programs.get(name) else {
            self.effects.push(Effect::Runs(name.to_owned()));
            return self.ask(format!("`{name}` is not known"));
        };
        if !entry.is(Mark::Builtin)
            && let Some(problem) =
                judging.settings.search_path.problem(name, &judging.settings.workspace)
        {
            self.ask(problem);
        }
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
        for word in matched
            .operands
            .iter()
            .filter(|(kind, _)| **kind == Kind::Directory)
            .map(|(_, word)| word)
        {
            self.directory(judging, word);
        }
        if matched.entry.is(Mark::Repository) {
            self.repository(judging);
        }
        let options =
            |(kind, word): &&(&Kind, Word)| **kind == Kind::Read && word.text.starts_with('@');
        if *matched.entry.does() == Does::Builds
            && let Some((_, word)) = matched.operands.iter().find(options)
        {
            self.ask(format!("`{name}` may read options from `{}`", word.text));
        }
        let formats = matched.formats || *matched.entry.does() == Does::Formats;
        for (kind, word) in &matched.operands {
            self.operand(judging, kind, word, formats);
        }
        self.does(judging, name, matched, formats);
        if self.appended && !matched.entry.takes_only_harmless() {
            self.ask(format!("`{name}` gets arguments from its input that may be options"));
        }
        if self.appended && self.input != Lines::Paths {
            self.ask(format!("`{name}` gets arguments from its input that are not known to be paths in the workspace"));
        }
        match name {
            "cd" => left.directories = self.went(matched),
            "env" | "printenv"
                if matched.inner.is_none()
                    && !matched.operands.iter().any(|(kind, _)| **kind == Kind::Variable) =>
            {
                self.effects.push(Effect::RevealsEnvironment);
                self.ask("prints the environment, which may hold secrets");
            }
            _ => {}
        }
        if let Some((kind, words)) = matched.inner {
            self.inner(judging, name, kind, words, left);
        }
        let reads = matched.operands.iter().any(|(kind, _)| matches!(kind, Kind::Read));
        let filtered = matched.entry.is(Mark::Filter) && !reads && self.input == Lines::Paths;
        if self.reasons.is_empty() && self.inside && (matched.paths || filtered) {
            left.lines = Lines::Paths;
        }
    }

    fn does(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        formats: bool,
    ) {
        let reader = judging.settings.preset == Preset::Reader;
        let outside = self
            .here
            .iter()
            .any(|directory| !directory.starts_with(judging.settings.workspace.root()));
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
                self.effects.push(Effect::Sends(who.clone()));
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
        left.lines = inner.judge(judging).lines;
        judging.depth -= 1;
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

/// What is known about the lines of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Every line is a path in the workspace.
    Paths,
    Unknown,
}

/// What a command means for the commands after it.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(super) lines: Lines,
    /// The directories that a `cd` may have changed to.
    pub(super) directories: Option<Vec<PathBuf>>,
}

/// The state of one judgement.
pub(super) struct Judging<'a> {
    pub(super) settings: &'a Settings,
    pub(super) parts: Vec<Part>,
    pub(super) depth: usize,
}

/// The maximum number of directories that one command may run in, depending on which `cd` succeeds. Beyond it, a person
/// is asked.
const MAX_DIRECTORIES: usize = 8;

impl Judging<'_> {
    /// Judges a list of commands that starts in one of these directories.
    pub(super) fn list(&mut self, commands: &Commands, start: &[PathBuf]) {
        // Directories of commands that run regardless of the result before: as any `cd` may fail, these are all
        // directories so far. After `&&` the previous command succeeded, so only its directories count.
        let mut all = start.to_vec();
        let mut succeeded: Option<Vec<PathBuf>> = None;
        for pipeline in &commands.pipelines {
            if pipeline.join != Join::And {
                succeeded = None;
            }
            let here = succeeded.clone().unwrap_or_else(|| all.clone());
            if let Some(there) = self.pipeline(pipeline, &here) {
                for directory in &there {
                    if !all.contains(directory) {
                        all.push(directory.clone());
                    }
                }
                succeeded = Some(there);
            }
            if all.len() > MAX_DIRECTORIES {
                self.ask_last("may run in too many directories");
                return;
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, here: &[PathBuf]) -> Option<Vec<PathBuf>> {
        let mut lines = Lines::Unknown;
        let mut directories = None;
        for stage in &pipeline.stages {
            match stage {
                Stage::Simple(command) => {
                    let left = Simple::new(command, here, lines).judge(self);
                    lines = left.lines;
                    directories = left.directories.or(directories);
                }
                Stage::Subshell { commands, redirections } => {
                    self.list(commands, here);
                    Simple::redirections_only(redirections, here).judge(self);
                    lines = Lines::Unknown;
                }
            }
        }
        directories
    }

    /// Adds an ASK to the last part.
    pub(super) fn ask_last(&mut self, why: &str) {
        if let Some(part) = self.parts.last_mut() {
            part.reasons.push(Reason {
                verdict: Verdict::Ask,
                every_time: false,
                text: why.to_owned(),
            });
        }
    }
}
