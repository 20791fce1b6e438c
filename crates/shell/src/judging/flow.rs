//! The judgement of compound commands: which lists run, how often, and with which values.
//!
//! Every list that may run is judged, in every directory in which it may run. What decides whether it runs is not looked
//! at: `if false; then rm x; fi` asks.
//!
//! | command | lists are judged |
//! |---|---|
//! | `if`, `{ … }` | once each; a `cd` in one of them may have happened behind the end |
//! | `case` | once each, as any branch may be the one |
//! | `while`, `until` | once each; a `cd` of this shell asks, as each round would start elsewhere |
//! | `for` over words | once for each word, with the word as the variable's value |
//! | `for` over many words, or a substitution | once, with a value that is not known |

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::bindings::{Binding, Value, is_free_name};
use super::judgement::{Effect, Part, Reason, ReasonKind};
use super::lines::{Lines, is_found};
use super::simple::{Judging, Simple};
use super::values::{Printed, printed, prints_commits, redirections_with_values, with_values};
use crate::names::globs::is_glob;
use crate::syntax::commands::{
    Commands, Compound, CompoundKind, Pipeline, SimpleCommand, Stage, Word, WordKind,
};
use countersign::decision::ToolDecision;

/// How many words of a `for` are judged one by one.
const MAX_VALUES: usize = 16;

/// How many parts a judgement may have before no more rounds of a loop are judged one by one.
const MAX_PARTS: usize = 128;

impl Judging<'_> {
    /// Judges a compound command. Returns the directories that the commands behind it may run in, if it may have changed
    /// them.
    pub(super) fn compound(
        &mut self,
        compound: &Compound,
        here: &[PathBuf],
        input: Lines,
    ) -> Option<Vec<PathBuf>> {
        let redirections = redirections_with_values(&mut self.bindings, &compound.redirections);
        Simple::redirections_only(&redirections, here).judge(self);
        let fed = redirections.iter().any(|one| one.target.feeds());
        self.fed |= fed;
        let input = if fed { Lines::Unknown } else { input };
        let is_loop = !matches!(
            compound.kind,
            CompoundKind::Group | CompoundKind::If | CompoundKind::Case { .. }
        );
        let in_loop = self.in_loop;
        self.in_loop |= is_loop;
        let ends = match (&compound.kind, compound.lists.as_slice()) {
            (CompoundKind::Group | CompoundKind::If, lists) => self.one_after_another(lists, here),
            (CompoundKind::For { variable, words }, [body]) => {
                self.header(compound, variable, words, here);
                let values = self.values_of(words, here, body);
                self.rounds(compound, variable, values, body, here)
            }
            (CompoundKind::Case { word, .. }, lists) => {
                // The word is only compared with the patterns, and printed by no program.
                for commands in &word.substitutions {
                    self.list(commands, here);
                }
                self.one_after_another(lists, here)
            }
            (CompoundKind::While, [condition, body])
                if let Some((read, is_split)) = read_of(condition) =>
            {
                let value = match input.read() {
                    Value::Line { is_plain, .. } if is_split || moves(body) => {
                        Value::Line { is_plain, is_whole: false }
                    }
                    value => value,
                };
                self.reading(compound, &read, &value, body, here)
            }
            (_, lists) => {
                let ends = self.one_after_another(lists, here);
                self.stays(compound, here, &ends);
                ends
            }
        };
        self.in_loop = in_loop;
        (ends != here).then_some(ends)
    }

    /// Judges lists of which each may run after any of those before it.
    fn one_after_another(&mut self, lists: &[Commands], here: &[PathBuf]) -> Vec<PathBuf> {
        let mut all = here.to_vec();
        for list in lists {
            let ended = self.list(list, &all);
            add_new(&mut all, &ended.directories);
        }
        all
    }

    /// Judges the body of a `for` with each value.
    fn rounds(
        &mut self,
        compound: &Compound,
        variable: &str,
        values: Vec<Value>,
        body: &Commands,
        here: &[PathBuf],
    ) -> Vec<PathBuf> {
        if !self.may_bind(compound, variable, here) {
            return self.list(body, here).directories;
        }
        let mut all = here.to_vec();
        for value in values {
            let last = self.parts.len() > MAX_PARTS;
            let value = if last { Value::Text } else { value };
            self.bindings.push(Binding { name: variable.to_owned(), value, used: false });
            let ended = self.list(body, here);
            let used = self.bindings.pop().is_some_and(|binding| binding.used);
            add_new(&mut all, &ended.directories);
            if !used || last {
                break;
            }
        }
        self.stays(compound, here, &all);
        all
    }

    /// Judges the body of a `while read`.
    fn reading(
        &mut self,
        compound: &Compound,
        names: &[String],
        value: &Value,
        body: &Commands,
        here: &[PathBuf],
    ) -> Vec<PathBuf> {
        for (at, name) in names.iter().enumerate() {
            if !self.may_bind(compound, name, here)
                || names.iter().skip(at + 1).any(|it| it == name)
            {
                return self.list(body, here).directories;
            }
        }
        let before = self.bindings.len();
        for name in names {
            let value = if names.len() > 1 { Value::Text } else { value.clone() };
            self.bindings.push(Binding { name: name.clone(), value, used: false });
        }
        let ended = self.list(body, here);
        self.bindings.truncate(before);
        self.stays(compound, here, &ended.directories);
        ended.directories
    }

    /// Binds the variables of a command that is nothing but assignments, for the rest of its list. Returns whether it
    /// is one. `bound` is the number of variables that were set outside of the list.
    pub(crate) fn assigned(&mut self, pipeline: &Pipeline, here: &[PathBuf], bound: usize) -> bool {
        let ([Stage::Simple(command)], false) = (pipeline.stages.as_slice(), pipeline.negated)
        else {
            return false;
        };
        let free = |name: &str| {
            let outside = self.bindings.iter().take(bound).any(|binding| binding.name == name);
            is_free_name(name, &self.settings.workspace) && !outside
        };
        if !command.words.is_empty()
            || !command.redirections.is_empty()
            || !command.assignments.iter().all(|one| free(&one.name))
        {
            return false;
        }
        for assignment in &command.assignments {
            let mut word = with_values(&mut self.bindings, &assignment.value);
            // A pattern is expanded where the variable is used.
            if word.kind == WordKind::Glob {
                word.kind = WordKind::Literal;
            }
            let words = [word];
            self.texts(&words, here);
            let [word] = words;
            let value = match word.kind {
                WordKind::Literal => Value::Word { plain: is_plain(&word.text), word },
                _ if printed(&word) == Some(Printed::Commit) && word.text == "$(…)" => {
                    Value::Commit { may_be_empty: true }
                }
                _ => Value::Text,
            };
            let name = assignment.name.clone();
            match self.bindings.iter_mut().skip(bound).find(|binding| binding.name == name) {
                Some(binding) => binding.value = value,
                None => self.bindings.push(Binding { name, value, used: false }),
            }
        }
        !command.assignments.is_empty()
    }

    /// Returns `true` if a variable may be bound here; asks if not.
    fn may_bind(&mut self, compound: &Compound, name: &str, here: &[PathBuf]) -> bool {
        let why = if !is_free_name(name, &self.settings.workspace) {
            format!("sets `{name}`, which may change what programs do")
        } else if self.bindings.iter().any(|binding| binding.name == name) {
            format!("sets `{name}` again, so that its value is known only when it runs")
        } else {
            return true;
        };
        self.ask_about(compound, here, why);
        false
    }

    /// Asks about a loop that changes the directory: each round would begin where the one before has ended.
    fn stays(&mut self, compound: &Compound, here: &[PathBuf], ends: &[PathBuf]) {
        if ends.iter().any(|directory| !here.contains(directory)) {
            self.ask_about(compound, here, "changes the directory in a loop".to_owned());
        }
    }

    fn ask_about(&mut self, compound: &Compound, here: &[PathBuf], why: String) {
        let word = match &compound.kind {
            CompoundKind::For { .. } => "for",
            CompoundKind::While => "while",
            CompoundKind::Until => "until",
            CompoundKind::If => "if",
            CompoundKind::Case { .. } => "case",
            CompoundKind::Group => "{",
        };
        let mut part = part_of(vec![word.to_owned()], compound.span.clone(), here);
        part.reasons.push(Reason {
            decision: ToolDecision::Ask,
            every_time: false,
            kind: ReasonKind::Effect,
            text: why,
        });
        self.parts.push(part);
    }

    /// Adds a part for the words of a `for`, which a rule may deny also if the variable is never used.
    fn header(&mut self, compound: &Compound, variable: &str, words: &[Word], here: &[PathBuf]) {
        let mut argv = vec!["for".to_owned(), variable.to_owned(), "in".to_owned()];
        argv.extend(words.iter().map(|word| word.text.clone()));
        let mut part = part_of(argv, compound.span.clone(), here);
        part.effects.push(Effect::Wraps(variable.to_owned()));
        self.parts.push(part);
    }

    /// Judges words that are only texts, with the commands in them. Returns what the last of these commands prints.
    fn texts(&mut self, words: &[Word], here: &[PathBuf]) -> Lines {
        let mut ended = Lines::Unknown;
        for word in words {
            for commands in &word.substitutions {
                ended = self.substitution(word, commands, here);
            }
        }
        let mut header = Simple::of_words(words, &[], here, Lines::Unknown);
        words.iter().for_each(|word| header.text(word));
        header.only_reasons(self);
        ended
    }

    /// The values that the words after `in` stand for.
    fn values_of(&mut self, words: &[Word], here: &[PathBuf], body: &Commands) -> Vec<Value> {
        let given: Vec<Word> =
            words.iter().map(|word| with_values(&mut self.bindings, word)).collect();
        let known = given
            .iter()
            .all(|word| word.kind != WordKind::Expansion && word.substitutions.is_empty());
        if known && given.len() <= MAX_VALUES {
            let plain = |word: &Word| match word.kind {
                WordKind::Glob => self.settings.workspace.matches_plainly(&word.text, here),
                _ => is_plain(&word.text),
            };
            return given
                .iter()
                .map(|word| Value::Word { word: word.clone(), plain: plain(word) })
                .collect();
        }
        let ended = self.texts(&given, here);
        match given.as_slice() {
            [only] if is_found(only) && prints_commits(only) => {
                vec![Value::Commit { may_be_empty: false }]
            }
            // Split at blanks, a path becomes parts of one, of which each may be an option.
            [only] if only.text == "$(…)" => match ended.read() {
                whole @ Value::Line { is_whole: true, .. } if is_found(only) && !moves(body) => {
                    vec![whole]
                }
                Value::Line { .. } => vec![Value::Line { is_plain: false, is_whole: false }],
                other => vec![other],
            },
            _ => vec![Value::Text],
        }
    }
}

/// A part for something that is no simple command.
fn part_of(argv: Vec<String>, span: Range<usize>, here: &[PathBuf]) -> Part {
    Part {
        span,
        argv,
        words: Vec::new(),
        assignments: Vec::new(),
        redirections: Vec::new(),
        wrapped_by: None,
        inner_text: None,
        directories: here.to_vec(),
        program: None,
        file: None,
        digest: None,
        shares_operands: false,
        fed: false,
        if_changed: None,
        effects: Vec::new(),
        reasons: Vec::new(),
    }
}

/// Returns `true` if a command of the body of a loop may change the directory, from which a path of its variable begins.
fn moves(body: &Commands) -> bool {
    body.simple_commands().any(SimpleCommand::may_change_directory)
}

/// The names in a condition `[IFS=…] read [-r] name…`, and `true` if it may take a character off the end of a line.
fn read_of(condition: &Commands) -> Option<(Vec<String>, bool)> {
    let [pipeline] = condition.pipelines.as_slice() else { return None };
    let ([Stage::Simple(command)], false) = (pipeline.stages.as_slice(), pipeline.negated) else {
        return None;
    };
    let SimpleCommand { assignments, words, redirections, .. } = command;
    let known = match assignments.as_slice() {
        [] => true,
        [only] => only.name == "IFS" && only.value.literal().is_some(),
        _ => false,
    };
    let words: Option<Vec<&str>> = words.iter().map(Word::literal).collect();
    let words = words?;
    let (&"read", ["-r", names @ ..] | names) = words.split_first()? else { return None };
    let known = known && redirections.is_empty() && !names.is_empty() && names.len() <= 8;
    let is_split = assignments.iter().any(|it| it.value.literal() != Some(""));
    known.then(|| (names.iter().map(|name| (*name).to_owned()).collect(), is_split))
}

/// Returns `true` if a shell leaves the text of a variable as it is where it is not quoted.
pub(crate) fn is_plain(text: &str) -> bool {
    !text.is_empty() && !is_glob(text) && !text.contains([' ', '\t', '\n', '\\'])
}

fn add_new(all: &mut Vec<PathBuf>, more: &[PathBuf]) {
    for directory in more {
        if !all.contains(directory) {
            all.push(directory.clone());
        }
    }
}

impl crate::places::paths::Workspace {
    /// Returns `true` if the names that a pattern matches now are plain in each of these directories.
    pub(super) fn matches_plainly(&self, glob: &str, here: &[PathBuf]) -> bool {
        let plain = |path: &Path| {
            let text = path.to_string_lossy();
            let rest = text.strip_prefix(&*self.root().to_string_lossy()).unwrap_or(&text);
            is_plain(rest)
        };
        here.iter().all(|directory| {
            let found = self.matches(glob, directory);
            found.is_some_and(|found| found.iter().all(|path| plain(path)))
        })
    }
}
