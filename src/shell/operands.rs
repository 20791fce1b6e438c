//! The judgement of operands, by their kinds.

use std::path::{Path, PathBuf};

use super::commands::{Word, WordKind};
use super::environment;
use super::judgement::Effect;
use super::paths::{Place, is_build_definition, is_secret, may_be_secret, place};
use super::preset::Preset;
use super::scripts;
use super::simple::{Judging, Simple};
use super::table::{Kind, Script};

impl Simple<'_> {
    pub(super) fn operand(
        &mut self,
        judging: &mut Judging<'_>,
        kind: &Kind,
        word: &Word,
        formats: bool,
    ) {
        match kind {
            Kind::Text => self.text(word),
            Kind::Read if formats => {
                self.path(judging, word, &Kind::Read);
                self.path(judging, word, &Kind::Output);
            }
            Kind::Read | Kind::List | Kind::Write | Kind::Output | Kind::Make | Kind::Revision => {
                self.path(judging, word, kind)
            }
            Kind::Directory | Kind::Run | Kind::RunAppended => {}
            Kind::Shell => self.shell(judging, word),
            Kind::Assignment => {
                let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
                if word.kind != WordKind::Literal || !environment::may_be_set(name, value) {
                    self.ask(format!("sets `{name}`, which may change what programs do"));
                }
            }
            Kind::Variable => {
                if !word.literal().is_some_and(environment::is_public) {
                    self.effects.push(Effect::RevealsEnvironment);
                    self.ask(format!(
                        "prints the variable `{}`, which may hold a secret",
                        word.text
                    ));
                }
            }
            Kind::Script(language) => self.script(*language, word),
            Kind::OneOf(words)
                if words.iter().any(|known| known == "@path") && word.text.contains(['/', '.']) =>
            {
                self.path(judging, word, &Kind::Read);
            }
            Kind::OneOf(words) => self.one_of(words, word),
            Kind::Host => self.host(word),
            Kind::Code => {
                self.effects.push(Effect::Runs(word.text.clone()));
                self.ask(format!("runs the code `{}`", word.text));
            }
        }
    }

    /// Judges text that names no file to open. Values that the shell expands into it must not reveal secrets.
    pub(super) fn text(&mut self, word: &Word) {
        let secret = word.parameters.iter().find(|name| !environment::is_public(name));
        if let Some(secret) = secret {
            self.effects.push(Effect::RevealsEnvironment);
            self.ask(format!("prints the variable `{secret}`, which may hold a secret"));
        }
        let path = word.text.starts_with(['/', '~'])
            || word.text.starts_with("../")
            || word.text.starts_with("./");
        if path && is_secret(&word.text) {
            self.ask(format!("names `{}`, which may hold secrets", word.text));
        }
    }

    fn script(&mut self, language: Script, word: &Word) {
        let Some(script) = word.literal() else {
            return self.ask("a script that is known only when it runs");
        };
        let checked = match language {
            Script::Sed => scripts::sed(script),
            Script::Awk => scripts::awk(script),
            Script::Jq => scripts::jq(script),
            Script::Yq => scripts::yq(script),
            Script::Test => scripts::test(script),
            Script::Sql => scripts::sql(script),
        };
        if let Err(why) = checked {
            self.ask(format!("the script `{script}` is not known to be harmless: {why}"));
        }
    }

    fn one_of(&mut self, words: &[String], word: &Word) {
        let known = |text: &str| {
            words.iter().any(|known| match known.strip_suffix('*') {
                Some(beginning) => text.starts_with(beginning),
                None => known == text,
            })
        };
        if !word.literal().is_some_and(known) {
            self.ask(format!("`{}` is not one of the words that are known here", word.text));
        }
    }

    fn host(&mut self, word: &Word) {
        self.effects.push(Effect::Sends(word.text.clone()));
        let after_scheme = match word.text.split_once("://") {
            Some(("http" | "https", rest)) => rest,
            Some(_) => "",
            None => &word.text,
        };
        let host = after_scheme.split(['/', '?', '#']).next().unwrap_or_default();
        let name = match host.strip_prefix("[::1]") {
            Some(_) => "localhost",
            None => host.split(':').next().unwrap_or_default(),
        };
        if word.kind != WordKind::Literal
            || !matches!(name, "localhost" | "127.0.0.1")
            || host.contains('@')
            || word.text.contains(['{', '[', '\\'])
        {
            self.ask(format!("sends to `{}`", word.text));
        }
    }

    /// A path in one of the directories that the command may run in.
    pub(super) fn path(&mut self, judging: &Judging<'_>, word: &Word, kind: &Kind) {
        match word.kind {
            WordKind::Process if *kind == Kind::Read => return,
            WordKind::Literal | WordKind::Tilde => {}
            WordKind::Glob => {
                if may_be_secret(&word.text) || after_glob(&word.text) {
                    self.ask(format!("`{}` may stand for a file that holds secrets", word.text));
                }
            }
            WordKind::Expansion | WordKind::Process => {
                return self.ask(format!("`{}` is known only when it runs", word.text));
            }
        }
        if *kind != Kind::Revision && word.text.contains("://") {
            self.effects.push(Effect::Sends(word.text.clone()));
            return self.ask(format!("fetches `{}`", word.text));
        }
        let workspace = &judging.settings.workspace;
        for number in 0..self.here.len() {
            let Some(here) = self.here.get(number) else { return };
            let (whole, inner) = (
                workspace.places(&word.text, here),
                workspace.places(path_of(&word.text, kind), here),
            );
            let (Some(whole), Some(inner)) = (whole, inner) else {
                return self
                    .ask(format!("`{}` leads to a place that cannot be resolved", word.text));
            };
            for found in whole.iter().chain(&inner) {
                if self.placed(judging, word, found, kind) {
                    return;
                }
            }
        }
    }

    /// Judges one place that a path may lead to. Returns whether a reason was added.
    fn placed(&mut self, judging: &Judging<'_>, word: &Word, found: &Path, kind: &Kind) -> bool {
        let before = self.reasons.len();
        let what = place(found, judging.settings.workspace.root());
        self.inside &= matches!(what, Place::Inside);
        let text = &word.text;
        match (kind, what) {
            (_, Place::Stream) => return false,
            (Kind::Read | Kind::Revision | Kind::List, Place::Secret) => {
                self.ask(format!("reads `{text}`, which may hold secrets"))
            }
            (Kind::Revision, Place::System | Place::Outside) | (Kind::Read, Place::Outside) => {
                self.ask(format!("reads `{text}`, outside of the workspace"));
            }
            (Kind::Read | Kind::Revision | Kind::List, _) => {}
            (_, Place::Protected) => {
                self.ask_every_time(format!(
                    "writes `{text}`, which decides what runs or what is allowed"
                ));
            }
            (Kind::Output | Kind::Make, Place::Inside)
                if judging.settings.preset == Preset::Developer && !is_build_definition(found) => {}
            (_, Place::Inside) if is_build_definition(found) => {
                self.ask(format!("writes `{text}`, which says what a build runs"))
            }
            (_, Place::Inside) => self.ask(format!("writes `{text}`")),
            (_, Place::Secret | Place::System | Place::Outside) => {
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

/// The path in an operand. In `HEAD:src/lib.rs` it follows the colon.
fn path_of<'t>(text: &'t str, kind: &Kind) -> &'t str {
    match (kind, text.split_once(':')) {
        (Kind::Revision, Some((_, path))) if !path.is_empty() && !path.starts_with('/') => path,
        _ => text,
    }
}

/// Whether a `..` follows a glob: the glob may match a link, so that `..` leads anywhere.
fn after_glob(text: &str) -> bool {
    text.split('/').skip_while(|part| !part.contains(['*', '?', '['])).any(|part| part == "..")
}
