//! The judgement of lists of commands, and of each simple command in them.
//!
//! # The order
//!
//! 1. Commands in substitutions, which run first and are parts of their own.
//! 2. Assignments and redirections, which apply whatever the program is.
//! 3. The program: a name that is known only when it runs, or a path that is no place of the system, is asked about.
//!    Then the table, then the file in the search path.
//! 4. The arguments, matched as the program would; an option or operand that does not match is asked about.
//! 5. What the program does with them: effects, and the reasons against.
//! 6. The programs that it runs, each judged by the same code, as parts behind this one.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::bindings::Binding;
use super::environment;
use super::everyday::script_words;
use super::implied::shows_environment;
use super::judgement::{Effect, Part, Reason, ReasonKind};
use super::lines::{Lines, is_found, mixes};
use crate::places::own_repository::OwnRepository;
use crate::places::registries::names_host;
use crate::places::search_path::installed_name;
use crate::preset::{ClassifierSettings, Preset};
use crate::syntax::commands::{
    Assignment, Redirection, RedirectionTarget, SimpleCommand, Word, WordKind,
};
use crate::table::{Does, Kind, Matched, ProgramEntry, ProgramMark, Unmatched, matched};
use countersign::decision::ToolDecision;

/// One simple command while it is judged, with its context.
pub(crate) struct Simple<'a> {
    assignments: &'a [Assignment],
    pub(crate) words: &'a [Word],
    pub(super) redirections: &'a [Redirection],
    span: std::ops::Range<usize>,
    pub(crate) here: Cow<'a, [PathBuf]>,
    /// The known property of the lines of its standard input.
    pub(super) input: Lines,
    /// Whether it receives more operands from its standard input, as under `xargs`.
    pub(crate) appended: bool,
    /// Whether its standard input is something that the text gives it: a pipe, a file, a here-document.
    pub(super) fed: bool,
    pub(super) wrapped_by: Option<String>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) reasons: Vec<Reason>,
    /// Whether all paths that the command names are in the workspace.
    pub(crate) inside: bool,
    /// Whether it runs code of the workspace, so that a text may be the path of code.
    pub(crate) builds: bool,
    /// Whether its texts are only printed, compared or searched for, so that a URL in one is not opened.
    pub(crate) inert: bool,
    /// Whether the paths among its operands are only read, for a program that builds.
    pub(crate) inputs: bool,
    /// `true` if its entry has the operands of a group, which describes many programs.
    shares_operands: bool,
    /// Whether the program shows no content of its operands.
    pub(crate) hides_content: bool,
    /// A variable that names places in which the program finds code of the workspace.
    pub(super) code_in: Option<String>,
    /// Whether such a variable stands in front of a program that runs this one.
    pub(super) code_around: bool,
    /// Why to ask where another command of the text may write: files were looked at before the command reads or runs them.
    pub(super) if_changed: Option<&'static str>,
    /// `true` if its last word stands for paths that another command prints: `wc -l $(git ls-files)`.
    pub(super) found_at_end: bool,
    program: Option<Program>,
}

/// The meaning of a program's name.
struct Program {
    name: String,
    file: Option<PathBuf>,
    digest: Arc<str>,
}

impl<'a> Simple<'a> {
    pub(super) fn new(command: &'a SimpleCommand, here: &'a [PathBuf], input: Lines) -> Self {
        Self {
            assignments: &command.assignments,
            span: command.span.clone(),
            ..Self::of_words(&command.words, &command.redirections, here, input)
        }
    }

    /// The redirections after a subshell, as a command without words.
    pub(super) fn redirections_only(redirections: &'a [Redirection], here: &'a [PathBuf]) -> Self {
        Self::of_words(&[], redirections, here, Lines::Unknown)
    }

    /// A condition, whose words are those between `[[` and `]]`.
    pub(super) fn of_condition(
        words: &'a [Word],
        span: std::ops::Range<usize>,
        here: &'a [PathBuf],
    ) -> Self {
        Self { span, ..Self::of_words(words, &[], here, Lines::Unknown) }
    }

    pub(super) fn of_words(
        words: &'a [Word],
        redirections: &'a [Redirection],
        here: &'a [PathBuf],
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
            here: Cow::Borrowed(here),
            input,
            appended: false,
            fed: false,
            wrapped_by: None,
            effects: Vec::new(),
            reasons: Vec::new(),
            inside: true,
            builds: false,
            inert: false,
            inputs: false,
            shares_operands: false,
            hides_content: false,
            code_in: None,
            code_around: false,
            if_changed: None,
            found_at_end: false,
            program: None,
        }
    }

    pub(crate) fn ask(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason {
            decision: ToolDecision::Ask,
            every_time: false,
            kind: ReasonKind::Effect,
            text: text.into(),
        });
    }

    /// Asks about what is read or reached: a secret, a place outside, a host.
    pub(crate) fn ask_about_reach(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason {
            decision: ToolDecision::Ask,
            every_time: false,
            kind: ReasonKind::Reach,
            text: text.into(),
        });
    }

    pub(super) fn ask_every_time(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason {
            decision: ToolDecision::Ask,
            every_time: true,
            kind: ReasonKind::Effect,
            text: text.into(),
        });
    }

    pub(crate) fn deny(&mut self, text: impl Into<String>) {
        self.reasons.push(Reason {
            decision: ToolDecision::Deny,
            every_time: false,
            kind: ReasonKind::Effect,
            text: text.into(),
        });
    }

    pub(super) fn judge(mut self, judging: &mut Judging<'_>) -> Left {
        let mut left = Left { lines: Lines::Unknown, directories: None, is_cd: false };
        let fed = std::mem::replace(&mut judging.fed, self.fed);
        self.substitutions(judging);
        judging.fed = fed;
        if self.redirections.iter().any(|one| one.target.feeds()) {
            // The output of a pipe is not read, or not it alone.
            self.fed = true;
            self.input = Lines::Unknown;
        }
        for assignment in self.assignments {
            self.assignment(assignment);
        }
        let directories = self.here.clone();
        for redirection in self.redirections {
            self.redirection(judging, redirection);
        }
        let at = judging.parts.len();
        if let Some((program, args)) = self.words.split_first() {
            self.program(judging, program, args, &mut left);
        }
        if self.redirections.iter().any(mixes) {
            left.lines = Lines::Unknown;
        }
        if let Some(name) = self.code_in.take()
            && !self.builds
        {
            self.ask(format!("sets `{name}`, which may change what programs do"));
        }
        if self.words.is_empty() && self.reasons.is_empty() && self.effects.is_empty() {
            return left;
        }
        // Its part goes before those of the programs that it runs, which were added while it was judged.
        let part = self.into_part(directories);
        judging.parts.insert(at.min(judging.parts.len()), part);
        left
    }

    /// Adds a part for reasons that belong to no program, if there are any.
    pub(super) fn only_reasons(self, judging: &mut Judging<'_>) {
        if !self.reasons.is_empty() {
            let directories = self.here.clone();
            judging.parts.push(self.into_part(directories));
        }
    }

    pub(super) fn into_part(self, directories: Cow<'_, [PathBuf]>) -> Part {
        let (program, file, digest) = match self.program {
            Some(program) => (Some(program.name), program.file, Some(program.digest)),
            None => (None, None, None),
        };
        Part {
            span: self.span,
            argv: self.words.iter().map(|word| word.text.clone()).collect(),
            words: self.words.to_vec(),
            assignments: self.assignments.to_vec(),
            redirections: self.redirections.to_vec(),
            wrapped_by: self.wrapped_by,
            inner_text: None,
            directories: directories.into_owned(),
            program,
            file,
            digest,
            shares_operands: self.shares_operands,
            fed: self.fed || self.appended,
            if_changed: self.if_changed,
            effects: self.effects,
            reasons: self.reasons,
        }
    }

    pub(crate) fn substitutions(&mut self, judging: &mut Judging<'_>) {
        let (assignments, words, redirections) = (self.assignments, self.words, self.redirections);
        let values = assignments.iter().map(|assignment| &assignment.value);
        let targets = redirections.iter().filter_map(|redirection| redirection.target.word());
        for word in values.chain(words).chain(targets) {
            for commands in &word.substitutions {
                let lines = judging.substitution(word, commands, &self.here);
                self.found_at_end = self.words.last().is_some_and(|last| std::ptr::eq(last, word))
                    && is_found(word)
                    && lines.are_words();
            }
        }
    }

    fn assignment(&mut self, assignment: &Assignment) {
        let name = &assignment.name;
        // The pattern in `DEBUG=*` is not expanded in an assignment.
        let value = match assignment.value.kind {
            WordKind::Glob => Some(assignment.value.text.as_str()),
            _ => assignment.value.literal(),
        };
        let may_be_set = value.is_some_and(|value| {
            environment::may_be_set(name, value) || environment::has_harmless_flags(name, value)
        });
        if value.is_some_and(|value| environment::names_workspace_code(name, value)) {
            self.code_in = Some(name.clone());
        } else if !may_be_set {
            self.ask(format!("sets `{name}`, which may change what programs do"));
        }
    }

    fn redirection(&mut self, judging: &Judging<'_>, redirection: &Redirection) {
        match &redirection.target {
            // Seen are numbers about a file.
            RedirectionTarget::Read(word) if self.counts(judging, word) => {}
            RedirectionTarget::Read(word) => self.path(judging, word, &Kind::Read),
            // A text that goes there is gone.
            RedirectionTarget::Write(word) | RedirectionTarget::Append(word)
                if word.literal() == Some("/dev/null") => {}
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
        let ours = self.project_name(judging, program, given);
        let name = match installed_name(given).or(ours) {
            Some(name) => name,
            None if !given.contains('/') => given,
            None if self.runs_everyday_script(judging, None, self.words) => return,
            None => return self.not_installed(given),
        };
        // Cloned, as the entry is used while `judging` is borrowed mutably. A clone is one `Arc`.
        let programs = judging.settings.programs.clone();
        let Some(entry) = programs.get(name) else {
            self.effects.push(Effect::Runs(name.to_owned()));
            return self.ask(format!("`{name}` is not known"));
        };
        let has_file = !entry.is(ProgramMark::Builtin) && ours.is_none();
        let file = if has_file { self.file_of(judging, name) } else { None };
        self.program =
            Some(Program { name: name.to_owned(), file, digest: Arc::clone(entry.digest()) });
        if self.is_judged_apart(judging, name, args) {
            return;
        }
        let installed = entry.is(ProgramMark::Installed)
            && judging.settings.workspace.has_installed(args, &self.here);
        let args = &self.with_names(judging, entry, args);
        self.files_of_options(judging, (name, entry), args);
        match matched(entry, args, installed) {
            // A program of the project runs also when it is asked for its version.
            Ok(matched) if ours.is_some() && matched.help && entry.builds() => {
                let runs = Matched { does: &Does::Builds, ..matched };
                self.does(judging, name, &runs, false);
            }
            Ok(matched) if ours.is_some() && (matched.help || !matched.does.runs_project()) => {
                self.not_installed(given);
            }
            Ok(matched) if matched.help => self.does(judging, name, &matched, false),
            Ok(matched) => {
                self.odd_names(judging, (name, &matched), args);
                self.matched(judging, name, &matched, left);
            }
            Err(_) if self.interprets_everyday_script(judging, entry, args) => {}
            Err((unmatched, described)) => {
                self.unmatched(name, (entry, described), &unmatched, args);
                if name == "cd" {
                    left.directories = Some(self.may_go(judging, args));
                }
                if entry.is(ProgramMark::Wraps) || EVALUATORS.contains(&name) {
                    self.wrapped(judging, name, args, left);
                }
            }
        }
    }

    /// Judges a command whose arguments are no matter of the table. Returns `false` for any other command.
    fn is_judged_apart(&mut self, judging: &mut Judging<'_>, name: &str, args: &[Word]) -> bool {
        match name {
            "test" | "[" => self.is_judged_test(judging, name, args),
            "source" | "." => self.activates(judging, args),
            "ps" | "gps" if shows_environment(args) => {
                self.ask("may show the environment of programs, which may hold secrets");
                true
            }
            _ => false,
        }
    }

    fn not_installed(&mut self, given: &str) {
        self.effects.push(Effect::Runs(given.to_owned()));
        self.ask(format!("runs `{given}`, which is not an installed program"));
    }

    /// The file of the program, with links resolved, where it is known.
    pub(super) fn program_file(&self) -> Option<&Path> {
        self.program.as_ref()?.file.as_deref()
    }

    fn unmatched(
        &mut self,
        name: &str,
        (entry, described): (&ProgramEntry, &ProgramEntry),
        unmatched: &Unmatched,
        args: &[Word],
    ) {
        if let Some([script, ..]) = script_words(entry, args) {
            return self.ask(format!("`{name}` runs the script `{}`", script.text));
        }
        if let Does::Asks(what) = described.does() {
            return self.destructive(name, what, args);
        }
        let known = described.otherwise().map(|otherwise| format!("`{name}` {otherwise}"));
        self.ask(known.unwrap_or_else(|| unmatched.reason(name, args)));
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
        self.found_elsewhere(name, matched);
        let formats = matched.formats || *matched.does == Does::Formats;
        self.builds = formats || *matched.does == Does::Builds;
        self.input(name, matched);
        self.followed(judging, name, matched);
        self.described(matched.entry);
        self.operands(judging, (name, matched), formats);
        self.does(judging, name, matched, formats);
        self.fetched(judging, matched);
        self.reveals(judging, (name, matched));
        if self.appended {
            self.appended(judging, name, matched);
        }
        match name {
            "cd" => {
                left.directories = self.went(matched);
                judging.visited.extend(self.here.iter().cloned());
                left.is_cd = self.wrapped_by.is_none();
            }
            "printf" => self.printf(matched),
            "env" | "printenv"
                if matched.inner.is_empty()
                    && !matched.operands.iter().any(|one| *one.kind == Kind::Variable) =>
            {
                self.effects.push(Effect::RevealsEnvironment);
                self.ask_about_reach("prints the environment, which may hold secrets");
            }
            _ => {}
        }
        for (kind, words) in &matched.inner {
            self.matched_inner(judging, name, matched, (kind, words), left);
        }
        let prints_more = self.printing(judging, matched).prints_more();
        if prints_more {
            left.lines = Lines::Unknown;
        }
        let reads = matched
            .operands
            .iter()
            .any(|one| matches!(one.kind, Kind::Read | Kind::Packed | Kind::Local));
        if matched.inner.is_empty() && self.reasons.is_empty() && self.inside && !prints_more {
            let filters = matched.entry.is(ProgramMark::Filter) && !reads && matched.whole_lines;
            left.lines = self.printing(judging, matched).lines(filters);
        }
    }

    /// Notes what the entry says about the program's operands.
    fn described(&mut self, entry: &ProgramEntry) {
        self.inert = entry.is(ProgramMark::Inert);
        self.inputs = entry.is(ProgramMark::Inputs);
        self.shares_operands = !entry.has_own_operands();
        self.hides_content = entry.hides_content();
    }

    fn does(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        formats: bool,
    ) {
        if matched.help {
            self.followed(judging, name, matched);
        }
        let launches = matched.always.launches || *matched.does == Does::Builds;
        if formats || launches {
            self.writes_here(judging, name);
        }
        if formats {
            let reader = judging.settings.preset == Preset::Reader;
            let outside = self.works_outside(judging);
            self.effects.push(Effect::Writes(self.here.first().cloned().unwrap_or_default()));
            if reader {
                self.ask(format!("`{name}` rewrites files"));
            } else if outside {
                self.ask(format!("`{name}` rewrites files outside of the workspace"));
            }
        }
        let in_git = matched.entry.is(ProgramMark::Repository) && self.repository(judging);
        if launches || in_git {
            let why = if launches { "" } else { ", which `.git/config` names" };
            self.launches(judging, name, why);
        }
        if let Some(who) = matched.always.talks {
            self.queries(judging, name, who, matched.always.registry);
        }
        match matched.does {
            Does::Reads | Does::Formats | Does::Builds => {}
            Does::Queries(who) => self.queries(judging, name, who, matched.always.registry),
            Does::Asks(what) => {
                self.effects.push(Effect::Other(what.clone()));
                self.ask(format!("`{name}` {what}"));
            }
        }
    }

    fn queries(&mut self, judging: &Judging<'_>, name: &str, who: &str, registry: &[String]) {
        self.effects.push(Effect::Queries(who.to_owned()));
        if let Some((file, host)) = names_host(&judging.settings.workspace, registry, &self.here) {
            self.effects.push(Effect::Sends(host.unwrap_or_else(|| file.clone())));
            self.ask(format!("`{name}` talks to a host that `{file}` of the workspace names"));
        } else if judging.settings.preset == Preset::Reader {
            self.ask(format!("`{name}` talks to {who}"));
        }
    }

    /// Asks about a command that has to be approved anyway, and denies deleting the whole system or a home directory.
    ///
    /// Everything that a person has to approve anyway is asked about with what it does. One thing is denied: deleting
    /// the whole system or a home directory recursively, where an approval would almost certainly be a mistake.
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
}

/// The effect of a command on the commands after it.
#[derive(Debug, Clone)]
pub(super) struct Left {
    pub(crate) lines: Lines,
    /// The directories that a `cd` may have changed to.
    pub(crate) directories: Option<Vec<PathBuf>>,
    /// Whether the command is a `cd` of this shell, so that its success means that the directory was changed.
    pub(super) is_cd: bool,
}

/// The state of one judgement.
pub(crate) struct Judging<'a> {
    pub(crate) settings: &'a ClassifierSettings,
    pub(crate) parts: Vec<Part>,
    pub(crate) depth: usize,
    /// The variables that the text has set, the latest last.
    pub(super) bindings: Vec<Binding>,
    /// Whether the standard input of the commands that are judged now is something that the text gives them.
    pub(super) fed: bool,
    /// The workspace's repository, once it was looked at.
    pub(super) own_repository: OnceCell<OwnRepository>,
    /// The links that git tracks and that lead out of the workspace, once they were looked for.
    pub(super) links_out: OnceCell<Option<Vec<PathBuf>>>,
    /// The folders of programs that the text has put in front of the search path, by `source venv/bin/activate`.
    pub(super) activated: Vec<PathBuf>,
    /// `true` in a loop, where what stands behind a command may have run before it.
    pub(super) in_loop: bool,
    /// `true` if a `cd` of the text has certainly changed the directory of the shell in which the command runs.
    pub(super) has_moved: bool,
    /// The directories that a `cd` of the text has changed to, for `cd -`.
    pub(super) visited: Vec<PathBuf>,
    /// How many entries of folders may still be looked at for links, over all commands of the text.
    pub(super) entries_left: Cell<usize>,
    /// The same for secrets.
    pub(super) secrets_left: Cell<usize>,
    /// `true` if a later stage of the pipeline makes operands of lines: `xargs`.
    pub(super) hands_on: bool,
    /// How many scripts may still be compared with what was committed, over all commands of the text.
    pub(super) scripts_left: Cell<usize>,
}

/// Commands of a shell that run a text of their words.
pub(super) const EVALUATORS: &[&str] = &["eval", "trap"];

/// The text that a command of a shell runs, now or later, where it is known: its commands may be denied.
pub(super) fn evaluated(name: &str, args: &[Word]) -> Option<String> {
    match name {
        "eval" => Some(args.iter().map(Word::literal).collect::<Option<Vec<_>>>()?.join(" ")),
        "trap" => args.first()?.literal().filter(|it| !it.starts_with('-')).map(str::to_owned),
        _ => None,
    }
}
