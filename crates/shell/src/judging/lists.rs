//! The judgement of lists and pipelines, and of the directories that their commands run in.
//!
//! # Which directories a command may run in
//!
//! Any `cd` may fail, and a text continues after it unless `&&` says otherwise. So a command is judged in *every*
//! directory in which it may run:
//!
//! | text, starting in `/w` | `x` may run in |
//! |---|---|
//! | `cd a; x` | `/w/a`, `/w` |
//! | `cd a && x` | `/w/a` |
//! | `cd a && cd b; x` | `/w/a/b`, `/w/a`, `/w` |
//! | `y \|\| cd a && x` | `/w/a`, `/w` |
//! | `(cd a); x` | `/w` |
//! | `cd a; x`, where the folder `a` is there and no command in front may have removed it | `/w/a` |
//!
//! Beyond eight directories a person is asked: each path is judged in each of them.

use std::path::{Path, PathBuf};

use super::bindings::{Binding, Value};
use super::flow::is_plain;
use super::judgement::{Part, Reason, ReasonKind};
use super::lines::{Lines, is_found};
use super::simple::{Judging, Simple};
use super::values::{
    DIRECTORY, Printed, TOPLEVEL, command_with_values, printed, redirections_with_values,
    with_values,
};
use crate::places::repository::toplevel;
use crate::syntax::commands::{Commands, CompoundKind, Join, Pipeline, SimpleCommand, Stage, Word};
use countersign::decision::ToolDecision;

/// The effect of a pipeline on the pipelines after it.
struct Went {
    directories: Vec<PathBuf>,
    /// `true` if the success of the pipeline means that the directory was changed.
    certain: bool,
}

/// The state after a list has run, as far as it is known.
pub(super) struct AfterList {
    /// The directories that the shell may be in, with those that the list started in.
    pub(crate) directories: Vec<PathBuf>,
    /// The known property of its output.
    pub(crate) lines: Lines,
}

/// The maximum number of directories that one command may run in, depending on which `cd` succeeds. Beyond it, a person
/// is asked.
pub(super) const MAX_DIRECTORIES: usize = 8;

impl Judging<'_> {
    /// Judges a list of commands that starts in one of these directories.
    pub(super) fn list(&mut self, commands: &Commands, start: &[PathBuf]) -> AfterList {
        let (bound, has_moved) = (self.bindings.len(), self.has_moved);
        let ended = self.pipelines(commands, start, bound);
        self.bindings.truncate(bound);
        self.has_moved = has_moved;
        ended
    }

    fn pipelines(&mut self, commands: &Commands, start: &[PathBuf], bound: usize) -> AfterList {
        // Directories of commands that run regardless of the result before: as any `cd` may fail, these are all
        // directories so far. After `&&` the previous command succeeded, so only its directories count.
        let mut all = start.to_vec();
        let mut succeeded: Option<Vec<PathBuf>> = None;
        let mut output = Lines::Unknown;
        let mut has_moved = self.has_moved;
        for pipeline in &commands.pipelines {
            if pipeline.join != Join::And {
                succeeded = None;
            }
            let here = succeeded.as_deref().unwrap_or(&all);
            if pipeline.join == Join::Then && self.assigned(pipeline, here, bound) {
                continue;
            }
            self.has_moved = has_moved || succeeded.is_some();
            let is_untouched = !self.in_loop && self.parts.iter().all(Part::leaves_folders);
            let (went, lines) = self.pipeline(pipeline, here);
            output = lines;
            if let Some(Went { directories, certain }) = went {
                if certain
                    && is_untouched
                    && is_plain_cd(pipeline)
                    && pipeline.join == Join::Then
                    && self.are_there(&directories)
                {
                    all.clear();
                    has_moved = true;
                }
                for directory in &directories {
                    if !all.contains(directory) {
                        all.push(directory.clone());
                    }
                }
                // After `a || cd b &&`, the next pipeline also runs where `a` succeeded and `cd` did not run.
                succeeded = (certain && pipeline.join != Join::Or).then_some(directories);
            }
            if all.len() > MAX_DIRECTORIES {
                self.ask_last("may run in too many directories");
                break;
            }
        }
        let lines = if commands.pipelines.len() == 1 { output } else { Lines::Unknown };
        AfterList { directories: all, lines }
    }

    /// Returns `true` if these are folders that are there now, and no links: a `cd` to one of them does not fail.
    fn are_there(&self, directories: &[PathBuf]) -> bool {
        let is_one =
            |it: &PathBuf| it.canonicalize().is_ok_and(|found| found == *it && it.is_dir());
        self.settings.workspace.looks() && directories.len() == 1 && directories.iter().all(is_one)
    }

    /// Judges commands in a word, and returns what is known of their output. Where the shell makes words of it, the names that they
    /// may print are looked at.
    pub(super) fn substitution(
        &mut self,
        word: &Word,
        commands: &Commands,
        here: &[PathBuf],
    ) -> Lines {
        let before = std::mem::replace(&mut self.hands_on, is_found(word));
        let lines = self.list(commands, here).lines;
        self.hands_on = before;
        lines
    }

    fn pipeline(&mut self, pipeline: &Pipeline, here: &[PathBuf]) -> (Option<Went>, Lines) {
        let mut lines = Lines::Unknown;
        let mut went: Option<Went> = None;
        // In `bash`, the stages of a pipeline run in shells of their own; in `zsh`, the last one does not.
        let alone = pipeline.stages.len() == 1 && !pipeline.negated;
        let (fed, handed) = (self.fed, self.hands_on);
        for (number, stage) in pipeline.stages.iter().enumerate() {
            // Each stage but the first reads what the one before it prints.
            self.fed = fed || number > 0;
            self.hands_on = handed || pipeline.stages.iter().skip(number + 1).any(reads_paths);
            match stage {
                Stage::Simple(command) => {
                    let with_values;
                    let prints = command.words.iter().any(|word| printed(word).is_some());
                    let bound = self.bindings.len();
                    self.bindings.extend(self.directory_of(command, here));
                    let command = match self.bindings.is_empty() && !prints {
                        true => command,
                        false => {
                            with_values = command_with_values(&mut self.bindings, command);
                            &with_values
                        }
                    };
                    self.bindings.truncate(bound);
                    let mut simple = Simple::new(command, here, lines);
                    simple.fed = self.fed;
                    let left = simple.judge(self);
                    lines = left.lines;
                    if let Some(directories) = left.directories {
                        went = Some(Went { directories, certain: alone && left.is_cd });
                    }
                }
                Stage::Subshell { commands, redirections } => {
                    let redirections = redirections_with_values(&mut self.bindings, redirections);
                    self.fed |= redirections.iter().any(|one| one.target.feeds());
                    self.list(commands, here);
                    Simple::redirections_only(&redirections, here).judge(self);
                    lines = Lines::Unknown;
                }
                Stage::Compound(compound) => {
                    if let Some(directories) = self.compound(compound, here, lines) {
                        went = Some(Went { directories, certain: false });
                    }
                    lines = Lines::Unknown;
                }
                Stage::Condition { words, span } => {
                    let words: Vec<_> =
                        words.iter().map(|word| with_values(&mut self.bindings, word)).collect();
                    Simple::of_condition(&words, span.clone(), here).judge_condition(self);
                    lines = Lines::Unknown;
                }
            }
        }
        self.fed = fed;
        (went, lines)
    }

    /// The value of `PWD` for a command with it, unless a `cd` may have changed the directory, and the folder of the working tree.
    fn directory_of(&self, command: &SimpleCommand, here: &[PathBuf]) -> Option<Binding> {
        let workspace = &self.settings.workspace;
        let [here] = here else { return None };
        let targets = command.redirections.iter().filter_map(|one| one.target.word());
        let mut words = command.words.iter().chain(targets);
        let of_path = |name: &str, path: &Path| {
            let word = Word::synthetic(path.to_str()?);
            let value = Value::Word { plain: is_plain(&word.text), word };
            Some(Binding { name: name.to_owned(), value, used: false })
        };
        if words.clone().any(|word| printed(word) == Some(Printed::Toplevel)) {
            // Where git refuses, nothing is printed, and `cd ""` stays here.
            let top = toplevel(workspace, here).filter(|top| top == here)?;
            return of_path(TOPLEVEL, &top);
        }
        if here != workspace.start() {
            return None;
        }
        if words.clone().any(|word| printed(word) == Some(Printed::Directory)) {
            return of_path(DIRECTORY, here);
        }
        let named = |word: &Word| word.parameters.iter().any(|name| name == "PWD");
        if words.any(named) { of_path("PWD", here) } else { None }
    }

    /// Adds an ASK to the last part.
    pub(super) fn ask_last(&mut self, why: &str) {
        if let Some(part) = self.parts.last_mut() {
            part.reasons.push(Reason {
                decision: ToolDecision::Ask,
                every_time: false,
                kind: ReasonKind::Effect,
                text: why.to_owned(),
            });
        }
    }
}

/// Returns `true` for `cd DIR` and nothing else: a redirection may fail before it, and not each shell takes an option or `--`.
fn is_plain_cd(pipeline: &Pipeline) -> bool {
    let [Stage::Simple(command)] = pipeline.stages.as_slice() else { return false };
    let [_, folder] = command.words.as_slice() else { return false };
    command.assignments.is_empty()
        && command.redirections.is_empty()
        && !folder.text.starts_with(['-', '+'])
}

/// Returns `true` if a stage makes operands of the lines that it reads.
fn reads_paths(stage: &Stage) -> bool {
    let is_xargs = |word: &Word| matches!(word.literal(), Some("xargs" | "gxargs"));
    match stage {
        Stage::Simple(command) => command.words.iter().any(is_xargs),
        Stage::Compound(compound) => matches!(compound.kind, CompoundKind::While),
        Stage::Subshell { .. } | Stage::Condition { .. } => false,
    }
}
