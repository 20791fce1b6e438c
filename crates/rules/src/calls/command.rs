//! The commands of a shell text, as rules see them: each of them is judged by itself.
//!
//! # Units
//!
//! `cd sub && timeout 9 cargo test 2>&1 | tee log` has the parts `cd`, `timeout`, `cargo` and `tee`. Two of them do
//! nothing by themselves: `cd` changes the directory of the others, and `timeout` runs the command behind it, which is
//! a part of its own. So rules have to allow the units `cargo test` and `tee log`. If a text has nothing else (`cd sub`
//! alone), these transparent parts are the units.
//!
//! # A directory beside the command
//!
//! Many tools take the directory as an argument of its own (`cwd`). We judge it by putting a `cd` in front of the
//! text: `cd 'DIR' && (TEXT…)`. So paths are relative to that directory, and the code that judges a `cd` in the text
//! notices a directory outside of the workspace. The text in explanations is the user's, without the prefix.
//!
//! # What `runs` means
//!
//! | pattern `git push` | allowing | strict |
//! |---|---|---|
//! | `git push origin` | yes: begins with these words | yes |
//! | `/usr/bin/git push` | no: another word | yes: the same program |
//! | `git -C x push` | no | yes: options may stand between |
//! | `$GIT push` | no | unknown: asks |
//! | `GIT push` | no | yes: some file systems ignore case |
//! | `git push > out` | unknown: the redirection has to be allowed, too | yes |
//! | `foo git push`, `foo` unknown | no | yes: `foo` may run it |
//!
//! A rule that allows says something about words, and these words only. We judge the assignments in front of them and
//! the redirections behind them by themselves, with the harmless command `true` in place of the program.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::classes::{Classes, DENIED, DESTRUCTIVE, READ_ONLY, UNKNOWN, class};
use super::engine::Engine;
use super::glob::Glob;
use super::left_out;
use super::truth::{Reading, Truth};
use crate::readings::word;
use countersign::decision::ToolDecision;
use countersign_shell::program_files::program_name;
use countersign_shell::{
    Commands, Dialect, Effect, Judgement, Part, RedirectionTarget, SimpleCommand,
};

/// One shell text with the judgement of its commands.
#[derive(Debug)]
pub(crate) struct CommandView {
    pub(crate) text: String,
    judgement: Judgement,
    commands: Commands,
    /// The reason why the text, or the rest of it, cannot be analysed.
    pub(crate) refused: Option<String>,
    /// The position of the text in the judged text.
    offset: usize,
}

impl CommandView {
    pub(crate) fn new(engine: &Engine, text: &str, directory: Option<&str>) -> Self {
        let dialect = engine.dialect;
        let (commands, refused) = match Commands::parse(text, dialect) {
            Ok(commands) => (commands, None),
            Err(refused) => (refused.read().clone(), Some(refused.to_string())),
        };
        // The directory that a call names is judged like a `cd` in front of the text, which may begin with `(`.
        let prefixed = directory.map(|directory| (format!("cd {} && ( ", quoted(directory)), text));
        match prefixed {
            Some((prefix, text)) if refused.is_none() => {
                let whole = format!("{prefix}{text}\n)");
                match Commands::parse(&whole, dialect) {
                    Ok(all) => {
                        let judgement = engine.classifier.classify(&all);
                        let offset = prefix.len();
                        Self { text: whole, judgement, commands: all, refused: None, offset }
                    }
                    Err(error) => Self {
                        text: text.to_owned(),
                        judgement: engine.classifier.classify(&commands),
                        commands,
                        refused: Some(error.why().to_owned()),
                        offset: 0,
                    },
                }
            }
            Some(_) | None => {
                let refused = refused.or_else(|| {
                    let _ = directory?;
                    Some("works in another directory".to_owned())
                });
                let judgement = engine.classifier.classify(&commands);
                Self { text: text.to_owned(), judgement, commands, refused, offset: 0 }
            }
        }
    }

    pub(crate) fn parts(&self) -> &[Part] {
        self.judgement.parts()
    }

    pub(crate) fn commands(&self) -> &Commands {
        &self.commands
    }

    /// The commands that rules have to cover: without those that only run another one or change the directory, unless
    /// there is nothing else.
    ///
    /// The number of a unit is the number of its part: conditions and explanations speak about the same
    /// command.
    pub(crate) fn units(&self) -> Vec<usize> {
        let all = 0..self.parts().len();
        let units: Vec<usize> =
            all.clone().filter(|at| !self.parts().get(*at).is_some_and(is_transparent)).collect();
        if units.is_empty() { all.collect() } else { units }
    }

    /// The text of one command, for people.
    pub(crate) fn text_of(&self, part: usize) -> String {
        let Some(part) = self.parts().get(part) else { return self.text.clone() };
        let written = part.text_in(&self.text).get(part.span()).filter(|text| !text.is_empty());
        // The `cd` in front of the text stands for a field of the call.
        let is_ours = !part.is_inner() && part.span().start < self.offset;
        match written {
            Some(text) if !is_ours => text.to_owned(),
            _ => part.argv().join(" "),
        }
    }

    /// The table's words about the commands, which questions are bound to.
    ///
    /// An approval of a command is bound to this text. If a later version of the table says that a program has another
    /// effect, the question is a new one, although the words are the same.
    pub(crate) fn judged(&self) -> String {
        let parts = self.parts().iter();
        let parts = parts.map(|part| format!("\n{:?} {:?}", part.argv(), part.effects()));
        self.judgement.digest() + &parts.collect::<String>()
    }

    /// The simple command that a part belongs to.
    fn command_of(&self, part: &Part) -> Option<&SimpleCommand> {
        let inside = |outer: &Range<usize>, inner: &Range<usize>| {
            outer.start <= inner.start && inner.end <= outer.end
        };
        let around = self.commands.simple_commands().filter(|it| inside(&it.span(), &part.span()));
        let around = around.filter(|_| !part.is_inner());
        around.min_by_key(|command| command.span().len())
    }

    /// Returns whether a command is in one of these classes (strict), or in no other class and harmless (allowing).
    pub(crate) fn is(&self, part: usize, classes: Classes, reading: Reading) -> Truth {
        let Some(part) = self.parts().get(part) else { return Truth::No };
        let mut found = part.effects().iter().map(class).fold(Classes::default(), Classes::with);
        if part.decision() == ToolDecision::Deny {
            found = found.with(DESTRUCTIVE).with(DENIED);
        }
        if found == Classes::default() {
            found = if part.reasons().is_empty() { READ_ONLY } else { UNKNOWN };
        }
        match reading {
            Reading::Allowing => {
                Truth::of(part.decision() == ToolDecision::Allow && found.is_part_of(classes))
            }
            Reading::Strict if found.has(classes) => Truth::Yes,
            Reading::Strict if classes == DENIED => Truth::No,
            Reading::Strict if found.has(UNKNOWN) && !part.reasons().is_empty() => {
                Truth::Unknown("has effects that are not known")
            }
            Reading::Strict => Truth::No,
        }
    }

    /// Returns whether the words of a command, joined by spaces, match one of these patterns.
    pub(crate) fn words(&self, part: usize, globs: &[Glob], reading: Reading) -> Truth {
        let Some(part) = self.parts().get(part) else { return Truth::No };
        let text = part.argv().join(" ");
        Truth::of(globs.iter().any(|glob| match reading {
            Reading::Allowing => glob.matches(&text),
            Reading::Strict => glob.matches_folded(&text),
        }))
    }

    /// Returns whether a command runs a program with these first words.
    pub(crate) fn runs(
        &self,
        part: usize,
        pattern: &[String],
        engine: &Engine,
        reading: Reading,
    ) -> Truth {
        let Some(part) = self.parts().get(part) else { return Truth::No };
        match reading {
            Reading::Allowing => self.allows_to_run(part, pattern, engine),
            Reading::Strict => {
                let mut answer = strictly_runs(part.argv(), pattern);
                if answer == Truth::No && !part.reasons().is_empty() {
                    // A program that is not known may run the words after its own name.
                    let later = (1..part.argv().len()).filter_map(|at| part.argv().get(at..));
                    answer = Truth::any(later.map(|argv| match strictly_runs(argv, pattern) {
                        Truth::Unknown(_) => Truth::No,
                        certain => certain,
                    }));
                }
                answer
            }
        }
    }

    fn allows_to_run(&self, part: &Part, pattern: &[String], engine: &Engine) -> Truth {
        let argv = part.argv();
        if argv.len() < pattern.len()
            || argv.iter().zip(pattern).any(|(word, wanted)| word != wanted)
        {
            return Truth::No;
        }
        if part.decision() == ToolDecision::Deny {
            return Truth::No;
        }
        let Some(program) = pattern.first() else { return Truth::No };
        if !engine.is_installed(program) {
            return Truth::Unknown("is a program in a place that tools may write to");
        }
        match self.command_of(part) {
            Some(command) if part.wrapped_by().is_none() => self.surroundings(command, engine),
            Some(_) | None if part.wrapped_by().is_some() => Truth::Yes,
            _ => Truth::Unknown("is in a text inside of another command"),
        }
    }

    /// Returns whether the assignments and redirections of a command are harmless: a rule about a program allows only
    /// its words.
    fn surroundings(&self, command: &SimpleCommand, engine: &Engine) -> Truth {
        let mut probe = String::new();
        for assignment in command.assignments() {
            let value = self.text.get(assignment.value().span()).unwrap_or("$");
            probe.push_str(&format!("{}={value} ", assignment.name()));
        }
        probe.push_str("true");
        for redirection in command.redirections() {
            let target = |word: &countersign_shell::Word| {
                self.text
                    .get(word.span())
                    .filter(|text| !text.is_empty())
                    .unwrap_or("$x")
                    .to_owned()
            };
            match redirection.target() {
                RedirectionTarget::Read(word) => probe.push_str(&format!(" < {}", target(word))),
                RedirectionTarget::Write(word)
                | RedirectionTarget::Append(word)
                | RedirectionTarget::WriteAll(word) => {
                    probe.push_str(&format!(" > {}", target(word)))
                }
                RedirectionTarget::Duplicate(_)
                | RedirectionTarget::HereDocument(_)
                | RedirectionTarget::HereString(_) => {}
            }
        }
        if probe == "true" {
            return Truth::Yes;
        }
        match engine.classifier.judge(&probe, Dialect::Bash).decision() {
            ToolDecision::Allow => Truth::Yes,
            ToolDecision::Ask | ToolDecision::Deny => {
                Truth::Unknown("has a redirection or an assignment that has to be approved")
            }
        }
    }

    /// The operands of all commands, with the directories that they are relative to.
    pub(crate) fn operands(&self) -> Vec<(Cow<'_, str>, PathBuf)> {
        let mut found: Vec<(Cow<'_, str>, PathBuf)> = Vec::new();
        let mut directories: Vec<&Path> = Vec::new();
        for part in self.parts() {
            if !directories.contains(&part.directory()) {
                directories.push(part.directory());
            }
            for (at, word) in part.argv().iter().enumerate() {
                if left_out::is_left_out(part.argv(), at) {
                    continue;
                }
                for form in word::readings(word) {
                    found.push((form, part.directory().to_owned()));
                }
            }
            for effect in part.effects() {
                if let Effect::Reads(path) | Effect::Lists(path) | Effect::Writes(path) = effect {
                    found.push((
                        Cow::Owned(path.display().to_string()),
                        part.directory().to_owned(),
                    ));
                }
            }
        }
        for command in self.commands.simple_commands() {
            let targets = command.redirections().iter().filter_map(|it| it.target().word());
            let values = command.assignments().iter().map(|assignment| assignment.value());
            for word in targets.chain(values) {
                for directory in &directories {
                    found.push((Cow::Borrowed(word.text()), (*directory).to_owned()));
                }
            }
        }
        found
    }

    /// The words of a text that could not be analysed, read as generously as possible.
    ///
    /// A text that is not analysed is asked about in any case. We use its words only to find what is denied or
    /// protected: for example, `cat .env` inside of a construct that the lexer refuses is still about `.env`. So we
    /// split at every character that a shell might split at, and a wrong word does no harm.
    pub(crate) fn raw_words(&self) -> Vec<String> {
        if self.refused.is_none() {
            return Vec::new();
        }
        let breaks = |c: char| c.is_whitespace() || ";&|<>()`\"'=,{}".contains(c);
        let mut words: Vec<String> =
            self.text.split(breaks).filter(|word| !word.is_empty()).map(str::to_owned).collect();
        words.truncate(20_000);
        words
    }
}

/// Returns `true` if a command only runs another one, which is judged by itself, or only changes the directory.
fn is_transparent(part: &Part) -> bool {
    let passes = |effect: &Effect| matches!(effect, Effect::Wraps(_) | Effect::ChangesDirectory(_));
    part.decision() == ToolDecision::Allow
        && !part.effects().is_empty()
        && part.effects().iter().all(passes)
}

/// Returns whether words begin with those of a pattern: by the name of the program without its folder and without
/// regard to case, and with options between the words.
fn strictly_runs(argv: &[String], pattern: &[String]) -> Truth {
    let Some((program, mut rest)) = argv.split_first() else { return Truth::No };
    let Some((wanted, wanted_rest)) = pattern.split_first() else { return Truth::No };
    // `[` and `[[` are the names of programs, and match nothing else.
    if may_expand(program) && !matches!(&program[..], "[" | "[[") {
        return Truth::Unknown("runs a program that is known only when it does");
    }
    let name = program_name(program);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let wanted_name = program_name(wanted);
    if !name.eq_ignore_ascii_case(wanted_name) {
        return Truth::No;
    }
    for wanted in wanted_rest {
        match find_word(rest, wanted) {
            Ok(after) => rest = after,
            Err(answer) => return answer,
        }
    }
    Truth::Yes
}

/// Finds the next word of a pattern. Options before it are passed over, each with or without a value.
fn find_word<'w>(mut rest: &'w [String], wanted: &str) -> Result<&'w [String], Truth> {
    let mut after_option = false;
    while let Some((word, tail)) = rest.split_first() {
        if word == wanted
            || (word.starts_with('-')
                && word.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('=')))
        {
            return Ok(tail);
        }
        if may_expand(word) {
            return Err(Truth::Unknown("has words that are known only when it runs"));
        }
        let is_option = word.starts_with('-');
        // A pattern about an option looks at all words.
        if !is_option && !after_option && !wanted.starts_with('-') {
            return Err(Truth::No);
        }
        after_option = is_option;
        rest = tail;
    }
    Err(Truth::No)
}

fn may_expand(word: &str) -> bool {
    word.contains(['$', '`', '*', '?', '['])
}

/// A word that a shell reads as exactly this text.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
