//! The judgement of programs that run other programs.
//!
//! `timeout 5 env X=1 nice git push` is one command that runs three programs, of which the last is the one that
//! matters. Each is a part of its own, in the order of the words, and each is judged in the directories and with the
//! input of the outer one. At most eight levels are followed.
//!
//! `xargs` and `find -exec` put words into the inner command that are known only when it runs. They are accepted where
//! these words are known to be paths in the workspace, one to a word: a word that only *contains* `{}` could become any
//! path, and paths that are split at blanks could become any words. Such a path is no script, no output and no folder to
//! work in: `find -exec awk {}` would run the name of a file.
//!
//! A program that is given code as its input may run it (`echo CODE | tsx`). So only one that the table calls a reader of
//! text may follow a pipe, or have a here-document or a file as its input.
//!
//! A script of the workspace may be a build, by itself and as the operand of an interpreter (`everyday`).
//!
//! A text for `sh -c` is parsed in the dialect of that shell and judged as a list, in the same directories.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::directories::{is_harmless, reads_files_of_options};
use super::everyday::{ScriptPlaces, script_words};
use super::judgement::Effect;
use super::lines::{
    FILES_CHANGED, Lines, PathWords, begin_as_paths, begin_with_dot, found_path, with_found_paths,
};
use super::simple::{EVALUATORS, Judging, Left, Simple, evaluated};
use crate::places::script_files::program_name;
use crate::syntax::commands::{Commands, Word};
use crate::syntax::dialect::Dialect;
use crate::table::{Argument, Does, Kind, Matched, ProgramEntry, dashes_end_options};

/// The maximum depth of programs that run programs, and of `sh -c` texts.
const MAX_DEPTH: usize = 8;

/// Why to ask about paths that another command finds, where one of them may be that of a secret.
const MAY_SHOW_SECRETS: &str = "gets paths from its input that may be those of files with secrets: name the files that you mean";
const FINDS_SECRETS: &str =
    "may find files with secrets for a program that shows them: name the files that you mean";

impl Simple<'_> {
    /// The command that a program runs, with the words that the program puts into it.
    pub(super) fn matched_inner(
        &mut self,
        judging: &mut Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
        (kind, words): (&Kind, &[Word]),
        left: &mut Left,
    ) {
        if *kind == Kind::RunAppended {
            self.input = self.input.split_by(self.words, matched.nul);
        }
        let replaced = matched.operands.iter().rfind(|one| *one.kind == Kind::Replaced);
        let replaced = match (kind, replaced.map(|one| one.word.text.as_str())) {
            (Kind::RunEach, _) => "{}",
            (_, Some(replaced)) => replaced,
            (Kind::RunAppended, None)
                if let Some(last) = words.last()
                    && self.input.are_plain() =>
            {
                return self.inner(judging, name, kind, &with_found_paths(words, last), left);
            }
            (_, None) => return self.inner(judging, name, kind, words, left),
        };
        if *kind == Kind::RunAppended {
            self.may_not_replace(judging, (name, matched), replaced);
        }
        if *kind == Kind::RunEach {
            self.runs_each(judging, (name, matched), words);
        }
        // Each word that is replaced becomes one path; a word that only contains it could become any path.
        let whole = |word: &Word| word.text == replaced;
        if words.iter().any(|word| !whole(word) && word.text.contains(replaced)) {
            self.ask(format!("`{replaced}` becomes a part of a word"));
        }
        // `github.com/x` is an address to some programs, and `./github.com/x` to none.
        let found = if *kind == Kind::RunEach && begin_with_dot(matched) { "./x" } else { "x" };
        let path = |word: &Word| match whole(word) {
            true => found_path(found, word),
            false => word.clone(),
        };
        // `-exec x {} +` hands over as many as there are: a second path may be an output.
        let at_once = *kind == Kind::RunEach && self.words.iter().any(|word| word.text == "+");
        let count = |word: &Word| if at_once && whole(word) { 2 } else { 1 };
        let words = words.iter().flat_map(|word| std::iter::repeat_n(path(word), count(word)));
        self.inner(judging, name, kind, &words.collect::<Vec<_>>(), left);
    }

    /// Asks about the paths that `find` hands to the program that it runs.
    fn runs_each(
        &mut self,
        judging: &Judging<'_>,
        (name, matched): (&str, &Matched<'_, '_>),
        words: &[Word],
    ) {
        if !(self.inside && matched.whole_lines) {
            self.ask(format!(
                "`{name}` runs a program with paths that are not known to be in the workspace"
            ));
        }
        if !begin_as_paths(matched) {
            self.ask(format!(
                "`{name}` runs a program with paths that it may take for something else"
            ));
        }
        let inner = words.first().and_then(Word::literal);
        let inner = inner.and_then(|name| judging.settings.programs.get(name));
        let hides_content = inner.is_some_and(ProgramEntry::hides_content);
        // It searches the files, or reads them to build.
        let uses_content = inner.is_some_and(|it| it.searches() || it.builds());
        if !hides_content && self.printing(judging, matched).prints_links() {
            self.ask(format!("`{name}` may find links that lead outside: write `-type f`"));
        }
        if !hides_content && !uses_content && self.printing(judging, matched).prints_secrets() {
            self.ask_about_reach(format!("`{name}` {FINDS_SECRETS}"));
        }
    }

    /// Asks about paths that another command has found, for a program that works in another folder: `xargs git -C docs diff`.
    pub(super) fn found_elsewhere(&mut self, name: &str, matched: &Matched<'_, '_>) {
        let moves = matched.operands.iter().any(|one| *one.kind == Kind::Directory);
        if moves && (self.appended || self.words.iter().any(|word| word.found || word.line)) {
            self.ask(format!(
                "`{name}` works in another folder than the one in which the paths are"
            ));
        }
    }

    /// Asks about `xargs -I X` where the paths may not come in the place of `X`: behind another option that GNU xargs takes it back
    /// for, or where a file is called so, as that of BSD leaves `X` where the path is long.
    fn may_not_replace(
        &mut self,
        judging: &Judging<'_>,
        (name, matched): (&str, &Matched<'_, '_>),
        replaced: &str,
    ) {
        let counts =
            |it: &String| matches!(it.as_str(), "-n" | "--max-args" | "-L" | "--max-lines" | "-l");
        let is_there = |here: &PathBuf| fs::symlink_metadata(here.join(replaced)).is_ok();
        let is_plain = replaced.chars().all(|c| c.is_ascii_alphanumeric() || "{}%@_".contains(c));
        let looks = judging.settings.workspace.looks();
        if matched.seen.iter().any(counts) || !is_plain || looks && self.here.iter().any(is_there) {
            self.ask(format!("`{name}` may leave `{replaced}` as it is, in the place of a path"));
        }
    }

    /// Judges the program that a program runs which is asked about anyway, as that program may be denied.
    pub(super) fn wrapped(
        &mut self,
        judging: &mut Judging<'_>,
        name: &str,
        args: &[Word],
        left: &mut Left,
    ) {
        if EVALUATORS.contains(&name) {
            let text = evaluated(name, args).map(Word::synthetic);
            return text.into_iter().for_each(|text| self.shell(judging, &text));
        }
        let programs = &judging.settings.programs;
        let known = |word: &Word| word.literal().is_some_and(|name| programs.get(name).is_some());
        let machine = behind_machine(name, args);
        let from = args.iter().skip(machine).position(known).map_or(args.len(), |at| machine + at);
        if let Some(words @ [_, ..]) = args.get(from..) {
            self.inner(judging, name, &Kind::Run, words, left);
        }
    }

    /// Judges a script and its operands as a build, if it is one. Returns whether it is.
    pub(super) fn runs_everyday_script(
        &mut self,
        judging: &mut Judging<'_>,
        interpreter: Option<&str>,
        words: &[Word],
    ) -> bool {
        let Some((script, operands)) = words.split_first() else { return false };
        let places = ScriptPlaces {
            settings: judging.settings,
            here: &self.here,
            left: &judging.scripts_left,
            wrapped_by: self.wrapped_by.as_deref(),
        };
        let is_one = || places.is_everyday_call(interpreter, words);
        if self.fed || self.appended || self.names_code() || !is_one() {
            return false;
        }
        self.builds = true;
        self.if_changed = Some("runs a script that another command of the text may change");
        let is_path = |word: &&Word| !word.text.starts_with('-') && word.text.contains(['/', '.']);
        for word in operands.iter().filter(is_path) {
            self.path(judging, word, &Kind::Read);
        }
        self.writes_here(judging, &script.text);
        self.launches(judging, &script.text, "");
        true
    }

    /// Judges the script that an interpreter is given in the same way.
    pub(super) fn interprets_everyday_script(
        &mut self,
        judging: &mut Judging<'_>,
        entry: &ProgramEntry,
        args: &[Word],
    ) -> bool {
        let interpreter = self.words.first().and_then(Word::literal).map(program_name);
        script_words(entry, args)
            .is_some_and(|words| self.runs_everyday_script(judging, interpreter, words))
    }

    /// Whether a variable in front of the command, or of one that runs it, names places in which the program finds code.
    fn names_code(&self) -> bool {
        self.code_in.is_some() || self.code_around
    }

    /// Asks about a program that gets input and may do what it says.
    pub(crate) fn input(&mut self, name: &str, matched: &Matched<'_, '_>) {
        // A program that runs another hands its input on, and that one is judged by itself.
        let is_judged = !matched.inner.is_empty() || matches!(matched.does, Does::Asks(_));
        // The value `-` of an option for an output is the standard output.
        let is_input = |kind| !matches!(kind, &Kind::Output | &Kind::Write | &Kind::Make);
        let named = matched.operands.iter().any(|one| one.word.text == "-" && is_input(one.kind));
        let sets =
            |one: &&Argument<'_, '_>| *one.kind == Kind::Read && sets_variable(&one.word.text);
        if let Some(one) = matched.operands.iter().find(sets)
            && *matched.does == Does::Builds
        {
            self.ask(format!("`{}` may set a variable of the build", one.word.text));
        }
        let fed = self.fed && !matched.always.reads_text && !is_judged;
        if fed || named && *matched.does == Does::Builds {
            self.ask(format!("`{name}` may run what it reads from its input"));
        }
    }

    /// Asks about operands that come from standard input, unless they are known to be harmless paths.
    pub(crate) fn appended(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        matched: &Matched<'_, '_>,
    ) {
        let entry = matched.entry;
        let words = match self.input {
            Lines::Paths(paths) => paths.words,
            Lines::Unknown => PathWords::Split,
        };
        // Where each is nothing but a path, it was judged with the words of the command.
        let may_be_options = matches!(words, PathWords::Split | PathWords::Whole);
        let workspace = &judging.settings.workspace;
        let may_end = dashes_end_options(entry) && !reads_files_of_options(name);
        let is_closed = is_harmless(workspace, entry) || may_end && matched.behind_dashes.is_some();
        if may_be_options && !(is_closed && entry.takes_only_paths()) {
            let what = "gets arguments from its input that may be options";
            let advice = match may_end && entry.takes_only_paths() {
                true => ": end its own in `--`",
                false => "",
            };
            self.ask(format!("`{name}` {what}{advice}"));
        }
        // The files that were looked at have to be those that are read.
        if words == PathWords::PlainNow {
            self.if_changed = Some(FILES_CHANGED);
        }
        match self.input {
            // Text from the pipe could be printed by `cat` as well.
            _ if entry.only_prints() => {}
            Lines::Unknown => self.ask(format!(
                "`{name}` gets arguments from its input that are not known to be paths in the workspace"
            )),
            Lines::Paths(_) if entry.hides_content() => {}
            Lines::Paths(paths) if words == PathWords::Split && !paths.nul => self.ask(format!(
                "`{name}` gets paths from its input that are split at blanks: separate them by NUL"
            )),
            Lines::Paths(paths) if paths.links => self.ask(format!(
                "`{name}` gets paths from its input that may be links to other places: write `-type f`"
            )),
            Lines::Paths(paths) if paths.secrets && !self.builds && !entry.searches() => {
                self.ask_about_reach(format!("`{name}` {MAY_SHOW_SECRETS}"));
            }
            Lines::Paths(_) => {}
        }
    }

    pub(super) fn inner(
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
        // `xargs` has read its input already.
        inner.fed = self.fed && *kind != Kind::RunAppended;
        inner.wrapped_by = Some(name.to_owned());
        inner.code_around = self.names_code();
        // Substitutions in these words were judged with the outer command.
        judging.depth += 1;
        let inner = inner.judge(judging);
        judging.depth -= 1;
        left.lines = inner.lines;
        // `command cd` changes the directory of this shell, `nohup cd` does not.
        left.directories = inner.directories;
    }

    /// Judges the text of a `sh -c`.
    pub(crate) fn shell(&mut self, judging: &mut Judging<'_>, word: &Word) {
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
        // The other shell has none of this shell's variables.
        let bindings = std::mem::take(&mut judging.bindings);
        let fed = std::mem::replace(&mut judging.fed, self.fed);
        let before = judging.parts.len();
        match Commands::parse(text, dialect) {
            Ok(commands) => {
                judging.list(&commands, &self.here);
            }
            Err(refused) => {
                judging.list(refused.read(), &self.here);
                self.ask(format!("runs a text that is not analysed: {refused}"));
            }
        }
        let inner_text: Arc<str> = text.into();
        for part in judging.parts.iter_mut().skip(before).filter(|part| !part.is_inner()) {
            part.inner_text = Some(Arc::clone(&inner_text));
        }
        judging.bindings = bindings;
        judging.fed = fed;
        judging.depth -= 1;
    }
}

/// The place behind the name of the machine that a program is to run a command on: `ls` in `ssh -p 22 host ls`. `host` is a
/// program, too. Zero for all other programs.
fn behind_machine(name: &str, args: &[Word]) -> usize {
    if !["ssh", "rsh", "mosh"].contains(&name) {
        return 0;
    }
    let mut at = 0;
    while let Some(option) = args.get(at).and_then(|word| word.text.strip_prefix('-')) {
        let takes_value = option.len() == 1 && "BbcDEeFIiJLlmOopQRSWw".contains(option);
        at += 1 + usize::from(takes_value);
    }
    at + 1
}

/// Returns `true` for `SHELL=/x`, which a program may hand on to `make`.
fn sets_variable(text: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let name = text.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(is_of_name)
}
