//! The judgement of operands, by their kinds.
//!
//! The meaning of a word depends on the program. The table gives each operand and each value of an option a kind, and
//! here the word is judged by it:
//!
//! | kind | asks if |
//! |---|---|
//! | text | the shell expands a variable into it that may be a secret, or it names a secret |
//! | read, list | the place is secret; for reading, outside of the workspace |
//! | write, output | the place is not in the workspace, or decides what runs |
//! | output | it would replace what is no work of a build (see `outputs`) |
//! | unquoted | as read, or it has a character that means something to a shell |
//! | revision | as read, and the part after the colon is a path, too |
//! | host | it is not this machine |
//! | number | a shell may evaluate it as a name |
//! | database | as read, and its folder decides what runs or what is allowed |
//! | script | the script may run programs, or read or write other files |
//! | code | always |
//!
//! A path is judged as it is written and as it is resolved, in each directory in which the command may run. A reason
//! for one of them is enough, and the effects of all are listed.

use std::path::{Path, PathBuf};

use super::addresses::{controls, is_elsewhere, is_this_machine, names_protocol};
use super::implied::{
    OF_TRACKED_DATABASE, compared, has_secret_pattern, is_document, is_file, is_path_among,
    is_unquoted, loaded, loads_another, may_be_file, packed, path_of, queried, replaced_by_zsh,
};
use super::judgement::Effect;
use super::lines::{FILES_CHANGED, is_known_line};
use super::outputs::replaced;
use super::simple::{Judging, Simple};
use super::{environment, languages, scripts, yq};
use crate::names::globs::{after_glob, is_glob, may_be_secret};
use crate::places::git_settings::is_with_password;
use crate::places::index::is_tracked;
use crate::places::lexical::is_in;
use crate::places::links::begins_with_at;
use crate::places::paths::{PathClass, is_build_definition, is_secret};
use crate::preset::Preset;
use crate::syntax::commands::{Word, WordKind};
use crate::table::{Kind, Matched, Script, is_known_word};

/// How many paths a word with `:` and `=` may stand for.
const MAX_TAILS: usize = 16;

impl Simple<'_> {
    /// Judges the operands of a program, the values of its options, and the files that these only imply.
    pub(super) fn operands(
        &mut self,
        judging: &mut Judging<'_>,
        (name, matched): (&str, &Matched<'_, '_>),
        formats: bool,
    ) {
        let harmless = self.printing(judging, matched).harmless_patterns();
        let is_judged = |word: &Word| !harmless.contains(&word.span);
        for argument in matched.operands.iter().filter(|one| is_judged(&one.word)) {
            self.operand(judging, argument.kind, &argument.word, formats);
            if argument.late {
                self.late(judging, &argument.word);
            }
        }
        let workspace = &judging.settings.workspace;
        let any = |word: &Word, it| workspace.any_place(&word.text, &self.here, it);
        let compared = compared(name, matched, |word| any(word, Path::is_dir));
        let runs_views = queried(matched).any(|word| any(word, is_tracked));
        let unknown = loaded(name, matched).find(|word| !is_file(word, workspace, &self.here));
        if let Some(word) = unknown {
            self.ask(loads_another(name, word));
        }
        for word in compared {
            self.path(judging, &word, &Kind::Read);
        }
        if runs_views {
            self.ask(OF_TRACKED_DATABASE);
        }
    }

    pub(crate) fn operand(
        &mut self,
        judging: &mut Judging<'_>,
        kind: &Kind,
        word: &Word,
        formats: bool,
    ) {
        if word.found && !self.takes_path(kind, word) {
            return self.ask("the name of a found file becomes a script, a folder or an output");
        }
        match kind {
            Kind::Text => self.free_text(judging, word),
            Kind::Replaced => self.text(word),
            Kind::Read if formats => {
                self.path(judging, word, &Kind::Read);
                self.path(judging, word, &Kind::Output);
            }
            Kind::Output => self.output(judging, word),
            Kind::Read | Kind::List | Kind::Write | Kind::Make | Kind::Revision => {
                self.path(judging, word, kind);
                self.code_behind(judging, word);
            }
            Kind::Local => {
                if word.text.contains([':', '@']) {
                    self.ask(format!("`{}` may be on another machine", word.text));
                }
                self.path(judging, word, &Kind::Read);
            }
            // By each name that the program may read for this one.
            Kind::Packed => packed(word).for_each(|word| self.path(judging, &word, &Kind::Read)),
            Kind::Unquoted => self.unquoted(judging, word),
            Kind::Slug => self.slug(word),
            Kind::Package => self.package(judging, word),
            Kind::Here => {
                self.here(word);
                self.path(judging, word, &Kind::Read);
            }
            Kind::FromTo => self.judge_from_to(judging, word),
            Kind::Report => self.report(judging, word),
            // Judged with the whole command.
            Kind::Remote | Kind::Directory | Kind::Run | Kind::RunAppended | Kind::RunEach => {}
            Kind::Shell => self.shell(judging, word),
            Kind::Assignment => {
                let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
                if word.kind != WordKind::Literal || !environment::may_be_set(name, value) {
                    self.ask(format!("sets `{name}`, which may change what programs do"));
                }
            }
            Kind::Variable => self.variable(word),
            Kind::Script(language) => self.script(judging, *language, word, formats),
            Kind::Database => self.database(judging, word),
            Kind::Number => self.number(word),
            Kind::OneOf(words) => self.one_of(judging, words, word, formats),
            Kind::Host => self.host(word),
            Kind::Code => {
                self.effects.push(Effect::Runs(word.text.clone()));
                self.ask(format!("runs the code `{}`", word.text));
            }
        }
    }

    /// Judges a file or folder that a build writes.
    ///
    /// Some programs take more than a path: `IN:OUT`, `FORMAT:OUT`, `key=OUT`. What follows is judged as well.
    fn output(&mut self, judging: &Judging<'_>, word: &Word) {
        let inner = word.text.match_indices([':', '=']).map(|(at, mark)| at + mark.len());
        if inner.clone().nth(MAX_TAILS).is_some() {
            return self.ask(format!("writes `{}`, which may be read in many ways", word.text));
        }
        let inner = inner.map(|from| word.tail(from)).filter(|word| !word.text.is_empty());
        for word in std::iter::once(word.clone()).chain(inner) {
            let before = self.reasons.len();
            self.path(judging, &word, &Kind::Output);
            if self.reasons.len() == before
                && let Some(why) = self.replaces(judging, &word)
            {
                self.ask(format!("writes `{}`, which {why}", word.text));
            }
            if self.reasons.len() > before {
                break;
            }
        }
        self.code_behind(judging, word);
    }

    /// Asks about code of other places in a list of paths (`a:b`) or in a setting (`key=a`), for a program that runs what is
    /// there.
    fn code_behind(&mut self, judging: &Judging<'_>, word: &Word) {
        if self.builds && word.text.contains([':', '=']) {
            self.code_elsewhere(judging, word);
        }
    }

    /// Judges a path whose part in the program is not described. It is read, and a program that builds may write it, or take
    /// it for an address.
    fn any_path(&mut self, judging: &Judging<'_>, word: &Word, formats: bool) {
        if self.builds && word.text.contains(':') && is_elsewhere(&word.text) {
            return self.may_fetch(word);
        }
        self.path(judging, word, &Kind::Read);
        self.code_behind(judging, word);
        if formats {
            self.path(judging, word, &Kind::Output);
        } else if self.builds && !self.inputs {
            self.output(judging, word);
        }
    }

    /// Why a person should know before a place is written.
    fn replaces(&self, judging: &Judging<'_>, word: &Word) -> Option<&'static str> {
        let workspace = &judging.settings.workspace;
        if word.kind == WordKind::Glob {
            return Some("may stand for files that exist");
        }
        let found = self.here.iter().filter_map(|here| workspace.places(&word.text, here));
        found.flatten().find_map(|found| match workspace.place(&found) {
            PathClass::Stream => None,
            _ => replaced(&found, &workspace.root_of(&found), workspace.looks()),
        })
    }

    /// Judges `IN:OUT`, or `IN` alone.
    fn judge_from_to(&mut self, judging: &Judging<'_>, word: &Word) {
        let (from, to) = word.text.split_once(':').unwrap_or((&word.text, ""));
        self.path(judging, &Word { text: from.to_owned(), ..word.clone() }, &Kind::Read);
        if !to.is_empty() {
            self.output(judging, &word.tail(from.len() + 1));
        }
    }

    /// Judges the name of a form, or `NAME:FILE`.
    fn report(&mut self, judging: &Judging<'_>, word: &Word) {
        self.free_text(judging, word);
        if let Some(at) = word.text.find([':', '=']) {
            self.output(judging, &word.tail(at + 1));
        }
    }

    /// Returns `true` if a path that another program puts into the command stays a path, or is a text.
    fn takes_path(&self, kind: &Kind, word: &Word) -> bool {
        match kind {
            Kind::Revision | Kind::Here => true,
            kind if kind.is_plain() => true,
            // These are judged as commands of their own.
            Kind::Run | Kind::RunAppended | Kind::RunEach | Kind::Replaced => true,
            Kind::OneOf(words) => is_path_among(words, word, self.builds),
            _ => false,
        }
    }

    fn free_text(&mut self, judging: &Judging<'_>, word: &Word) {
        self.text(word);
        if self.builds {
            self.code_elsewhere(judging, word);
            // Some hand a text on to a shell, or load what a URL holds.
            if word.is_quoted() && (word.text.contains("$(") || word.text.contains('`'))
                || word
                    .text
                    .trim_start()
                    .get(..5)
                    .is_some_and(|it| it.eq_ignore_ascii_case("data:"))
            {
                self.ask(format!("may run the code `{}`", word.text));
            }
        }
        if !self.inert && is_elsewhere(&word.text) {
            self.may_fetch(word);
        }
    }

    fn may_fetch(&mut self, word: &Word) {
        self.effects.push(Effect::Sends(word.text.clone()));
        self.ask(format!("may fetch `{}`", word.text));
    }

    fn variable(&mut self, word: &Word) {
        if !word.literal().is_some_and(environment::is_public) {
            self.effects.push(Effect::RevealsEnvironment);
            self.ask_about_reach(format!(
                "prints the variable `{}`, which may hold a secret",
                word.text
            ));
        }
    }

    /// Judges text that names no file to open. Values that the shell expands into it must not reveal secrets.
    pub(crate) fn text(&mut self, word: &Word) {
        let secret = word.parameters.iter().find(|name| !environment::is_public(name));
        if let Some(secret) = secret {
            self.effects.push(Effect::RevealsEnvironment);
            self.ask_about_reach(format!(
                "prints the variable `{secret}`, which may hold a secret"
            ));
        }
        // Also the values in `name=value`, and the pathspecs and globs that programs expand themselves.
        let names_secret = |text: &str| {
            (text.contains('/') || text.starts_with('.')) && is_secret(text)
                || is_glob(text) && !text.contains(' ') && may_be_secret(text)
        };
        if word.text.split('=').any(names_secret) {
            self.ask_about_reach(format!("names `{}`, which may hold secrets", word.text));
        }
    }

    /// Asks about the value of an option that some versions of the program read as an operand.
    ///
    /// GNU programs take options behind operands, programs of BSD do not: for those, `grep x file -f y` has four
    /// operands, and `y` is a file to search. So the value of such an option is also judged as an operand.
    pub(crate) fn late(&mut self, judging: &Judging<'_>, word: &Word) {
        let Some(text) = word.literal() else { return };
        let here = self.here.first().map(PathBuf::as_path).unwrap_or_else(|| Path::new(""));
        let outside = text.contains('/')
            && judging.settings.workspace.places(text, here).is_none_or(|places| {
                places.iter().any(|found| {
                    let place = judging.settings.workspace.place(found);
                    matches!(place, PathClass::Secret | PathClass::System | PathClass::Outside)
                })
            });
        if is_secret(text) || outside {
            self.ask_about_reach(format!(
                "`{text}` may be read as an operand: write options in front"
            ));
        }
    }

    /// Asks about a text that names a place outside of the workspace, for a program that may run what is there.
    fn code_elsewhere(&mut self, judging: &Judging<'_>, word: &Word) {
        if word.kind == WordKind::Process {
            return self.ask(format!("`{}` is known only when it runs", word.text));
        }
        let workspace = &judging.settings.workspace;
        let here = self.here.first().map(PathBuf::as_path).unwrap_or_else(|| Path::new(""));
        let elsewhere = |text: &str| {
            // An option that is handed on may have the place glued to it.
            let text = match text.strip_prefix('-') {
                Some(rest) => rest.trim_start_matches(|c: char| c == '-' || c.is_alphabetic()),
                None => text,
            };
            let leads = text.starts_with(['/', '~']) || text.split('/').any(|part| part == "..");
            // Labels of build tools begin with two slashes.
            leads
                && !text.starts_with("//")
                && workspace.places(text, here).is_none_or(|places| {
                    places.iter().any(|found| {
                        let place = workspace.place(found);
                        !matches!(place, PathClass::Inside | PathClass::System | PathClass::Stream)
                    })
                })
        };
        if word.text.split(['=', ',', ':', ';']).any(elsewhere) {
            self.ask(format!("`{}` names code outside of the workspace", word.text));
        }
    }

    /// Judges a path that reaches a shell within quotes, or without them.
    fn unquoted(&mut self, judging: &Judging<'_>, word: &Word) {
        if !is_unquoted(word) {
            self.ask(format!("`{}` may become a part of a command of a shell", word.text));
        }
        self.path(judging, word, &Kind::Read);
    }

    fn slug(&mut self, word: &Word) {
        let parts: Vec<&str> = word.text.split('/').collect();
        let known = |part: &&str| {
            !part.is_empty()
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if word.kind != WordKind::Literal || parts.len() != 2 || !parts.iter().all(known) {
            self.effects.push(Effect::Sends(word.text.clone()));
            self.ask(format!("`{}` may be a repository of another host", word.text));
        }
    }

    /// Judges a path that has to look like one, as another word is looked up in a registry. A plain name is the name
    /// of what is in the directory, except for a program that builds.
    fn here(&mut self, word: &Word) {
        let first = word.text.split('/').next().unwrap_or_default();
        let is_path = matches!(first, "" | "." | "..") || first.starts_with(".#");
        let is_name = !self.builds && scripts::name(&word.text).is_ok();
        if !(is_path || is_name) || word.text.contains([':', '@']) {
            self.ask(format!("`{}` may be looked up elsewhere: write `./`", word.text));
        }
    }

    /// Judges the name of a package. `owner/name`, `./x`, `name@npm:other` and URLs are packages of other places.
    fn package(&mut self, judging: &Judging<'_>, word: &Word) {
        let name = word.text.strip_prefix('@').unwrap_or(&word.text);
        let scoped = name.len() < word.text.len();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+~^<>=*/@".contains(c);
        let known = word.kind == WordKind::Literal
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.chars().all(plain)
            && name.matches('/').count() == usize::from(scoped)
            && !may_be_file(word, &judging.settings.workspace, &self.here);
        if !known {
            self.effects.push(Effect::Sends(word.text.clone()));
            self.ask(format!("`{}` may be a package of another place", word.text));
        }
    }

    /// Asks about a word that a shell takes for a number, if it is none: `zsh` evaluates the name of a variable by its
    /// value, and an index in it may run a command.
    pub(super) fn number(&mut self, word: &Word) {
        if !word.is_number() {
            self.ask(format!("`{}` is not known to be a number", word.text));
        }
    }

    fn script(&mut self, judging: &Judging<'_>, language: Script, word: &Word, formats: bool) {
        if language == Script::Yq && is_document(word, &judging.settings.workspace, &self.here) {
            return self.any_path(judging, word, formats);
        }
        let Some(script) = word.literal() else {
            return self.ask("a script that is known only when it runs");
        };
        // It is a file only where one is called so: `.env` may be a key.
        let workspace = &judging.settings.workspace;
        let is_there = || workspace.any_place(script, &self.here, Path::exists);
        let may_be_file = || !workspace.looks() || is_there();
        if language == Script::Yq && yq::is_name(script) && is_secret(script) && may_be_file() {
            return self.ask_about_reach(format!("`{script}` may be the name of a file"));
        }
        if let Err(why) = languages::check(language, script) {
            self.ask(languages::reason(language, script, &why));
        }
    }

    fn one_of(&mut self, judging: &Judging<'_>, words: &[String], word: &Word, formats: bool) {
        if is_path_among(words, word, self.builds) {
            return self.any_path(judging, word, formats);
        }
        // A star may stand for a place.
        if self.builds && !words.contains(&word.text) {
            self.code_elsewhere(judging, word);
        }
        if !word.literal().is_some_and(|text| is_known_word(words, text)) {
            self.ask(format!(
                "what `{}` does here is not known: only described words are taken for harmless",
                word.text
            ));
        }
        if word.text.contains('=') && words.iter().any(|known| known == "@fields") {
            self.script(judging, Script::Fields, word, formats);
        }
    }

    fn host(&mut self, word: &Word) {
        self.effects.push(Effect::Sends(word.text.clone()));
        if word.kind != WordKind::Literal || !is_this_machine(&word.text) {
            self.ask_about_reach(format!("sends to `{}`", word.text));
        } else if let Some(why) = controls(&word.text) {
            self.ask(format!("`{}` {why}", word.text));
        }
    }

    /// Whether a word leads into the workspace, from each directory that the command may run in.
    pub(super) fn is_own(&self, judging: &Judging<'_>, word: &Word) -> bool {
        let workspace = &judging.settings.workspace;
        self.here.iter().all(|here| {
            let places = workspace.places(&word.text, here);
            places.is_some_and(|all| all.iter().all(|found| is_in(found, workspace.root())))
        })
    }

    /// A path in one of the directories that the command may run in. What a shell prints in the place of a file is only read, or run
    /// by a program that builds: `make -f <(echo 'all:; id')`.
    pub(crate) fn path(&mut self, judging: &Judging<'_>, word: &Word, kind: &Kind) {
        match word.kind {
            WordKind::Process if *kind == Kind::Read && !self.builds => return,
            // Git expands patterns itself.
            WordKind::Literal if *kind != Kind::Revision || !is_glob(&word.text) => {}
            WordKind::Tilde => {}
            WordKind::Literal | WordKind::Glob => {
                self.pattern(judging, word, kind);
            }
            // It may be a part of a path in the workspace, and so any path: seen are its name and numbers about it.
            WordKind::Expansion if is_known_line(word, kind, self.hides_content) => {
                self.if_changed = word.whole_line.then_some(FILES_CHANGED).or(self.if_changed);
                return;
            }
            WordKind::Expansion | WordKind::Process => {
                return self.ask(format!("`{}` is known only when it runs", word.text));
            }
        }
        if let Some(other) = replaced_by_zsh(word, kind) {
            return self.ask(format!("`{}` may be {other}", word.text));
        }
        if names_protocol(&word.text) {
            self.effects.push(Effect::Sends(word.text.clone()));
            return self.ask(format!("fetches `{}`", word.text));
        }
        let workspace = &judging.settings.workspace;
        for number in 0..self.here.len() {
            let Some(here) = self.here.get(number) else { return };
            let inner = path_of(&word.text, kind);
            // `1,5:src/lib.rs` and `:name:src/lib.rs` are parts of a file.
            let last = word.text.rsplit(':').next().filter(|_| *kind == Kind::Revision);
            let inner = (inner != word.text).then_some(inner);
            let last = last.filter(|last| !last.is_empty() && *last != word.text);
            let texts = [Some(word.text.as_str()), inner, last.filter(|last| Some(*last) != inner)];
            let places = texts.into_iter().flatten().map(|text| workspace.places(text, here));
            let Some(places) = places.collect::<Option<Vec<_>>>() else {
                return self
                    .ask(format!("`{}` leads to a place that cannot be resolved", word.text));
            };
            if word.kind == WordKind::Glob && self.matches(judging, word, kind, number) {
                return;
            }
            for [written, resolved] in &places {
                if self.placed(judging, word, written, kind)
                    || resolved != written && self.placed(judging, word, resolved, kind)
                {
                    return;
                }
            }
        }
    }

    /// Judges the text of a pattern.
    fn pattern(&mut self, judging: &Judging<'_>, word: &Word, kind: &Kind) {
        let names_only = matches!(kind, Kind::List | Kind::Revision) && self.hides_content;
        let is_secret =
            may_be_secret(&word.text) || *kind == Kind::Revision && has_secret_pattern(&word.text);
        // The names of such files are printed, and a later command may show what is in them.
        self.inside &= !is_secret;
        let is_asked = is_secret && !(names_only && self.is_own(judging, word));
        if is_asked || after_glob(&word.text) {
            self.ask_about_reach(format!(
                "`{}` may stand for a file that holds secrets",
                word.text
            ));
        }
    }

    /// Judges the files that a pattern matches now, for links and secrets among them. Returns whether a reason was
    /// added.
    ///
    /// A pattern is judged by its text *and* by what it matches now: a link among the files may lead out of the
    /// workspace, and a secret may be among them. A file that is created between this look and the command's start is
    /// not seen.
    fn matches(&mut self, judging: &Judging<'_>, word: &Word, kind: &Kind, number: usize) -> bool {
        let workspace = &judging.settings.workspace;
        let Some(here) = self.here.get(number).cloned() else { return false };
        let Some(found) = workspace.matches(&word.text, &here) else {
            self.ask(format!("`{}` stands for too many files", word.text));
            return true;
        };
        for path in found {
            // To many programs `@x` is a file of options, also behind `--`.
            let is_list = *kind == Kind::Read && path.strip_prefix(&here).is_ok_and(begins_with_at);
            let places = workspace.places(&path.to_string_lossy(), &here).filter(|_| !is_list);
            let Some(places) = places else {
                self.ask(format!("`{}` cannot be resolved, or holds options", path.display()));
                return true;
            };
            if places.iter().all(|found| workspace.place(found) == PathClass::Inside) {
                continue;
            }
            let one = Word { text: path.display().to_string(), ..word.clone() };
            if places.iter().any(|found| self.placed(judging, &one, found, kind)) {
                return true;
            }
        }
        false
    }

    /// Judges one place that a path may lead to. Returns whether a reason was added.
    fn placed(&mut self, judging: &Judging<'_>, word: &Word, found: &Path, kind: &Kind) -> bool {
        let before = self.reasons.len();
        let what = judging.settings.workspace.place(found);
        self.inside &= matches!(what, PathClass::Inside);
        let text = &word.text;
        match (kind, what) {
            (_, PathClass::Stream) => return false,
            // The names in the workspace are no secret, where only names and sizes are shown.
            (Kind::List | Kind::Revision, PathClass::Secret)
                if self.hides_content && is_in(found, judging.settings.workspace.root()) => {}
            (Kind::Read | Kind::Revision | Kind::List, PathClass::Secret) => {
                self.ask_about_reach(format!("reads `{text}`, which may hold secrets"))
            }
            // A program runs the code that it builds.
            (Kind::Read, PathClass::Outside) if self.builds && !self.inputs => {
                self.ask(format!("`{text}` names code outside of the workspace"));
            }
            (Kind::Read, PathClass::Outside) if judging.settings.workspace.is_public(found) => {}
            (Kind::Revision, PathClass::System | PathClass::Outside)
            | (Kind::Read, PathClass::Outside) => {
                self.ask_about_reach(format!("reads `{text}`, outside of the workspace"));
            }
            (Kind::Read, _) if judging.settings.workspace.looks() && is_with_password(found) => {
                self.ask_about_reach(format!(
                    "reads `{text}`, which has an address with a password"
                ));
            }
            (Kind::Read | Kind::Revision | Kind::List, _) => {}
            (_, PathClass::Protected) => {
                self.ask_every_time(format!(
                    "writes `{text}`, which decides what runs or what is allowed"
                ));
            }
            (Kind::Output | Kind::Make, PathClass::Inside)
                if judging.settings.preset == Preset::Developer && !is_build_definition(found) => {}
            (_, PathClass::Inside) if is_build_definition(found) => {
                self.ask(format!("writes `{text}`, which says what a build runs"))
            }
            (_, PathClass::Inside) => self.ask(format!("writes `{text}`")),
            (_, PathClass::Secret | PathClass::System | PathClass::Outside | PathClass::Beside) => {
                self.ask(format!("writes `{text}`, outside of the workspace"))
            }
        }
        let effect = match kind {
            Kind::Read | Kind::Revision => Effect::Reads,
            Kind::List => Effect::Lists,
            _ => Effect::Writes as fn(PathBuf) -> Effect,
        };
        let effect = effect(found.to_owned());
        if !self.effects.contains(&effect) {
            self.effects.push(effect);
        }
        self.reasons.len() > before
    }
}
