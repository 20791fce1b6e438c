//! One program, or one sub-command of it.

use std::collections::HashMap;
use std::sync::Arc;

use super::ProgramExample;

/// What a program does when it is run with the listed options.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::shell) enum Does {
    /// Prints what it reads.
    #[default]
    Reads,
    /// Runs code of the workspace, and writes its output there: compilers, test runners.
    Builds,
    /// Rewrites files of the workspace.
    Formats,
    /// Asks a service, by name, with the credentials of the user; changes nothing there.
    Queries(String),
    /// Something that a person has to see, and what that is.
    Asks(String),
}

/// What an operand, or the value of an option, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) enum Kind {
    /// Text, a pattern, a number, a name: nothing is opened.
    Text,
    /// A file or directory whose content is read.
    Read,
    /// A file or directory of which only the name and metadata are read.
    List,
    /// A file that is written.
    Write,
    /// A file or directory that a build or a formatter may write in the workspace.
    Output,
    /// A directory to be made.
    Make,
    /// A revision of a repository, or a path in it.
    Revision,
    /// The directory to work in.
    Directory,
    /// The words of another command.
    Run,
    /// The words of another command, which gets more operands from standard input.
    RunAppended,
    /// The text of another shell command.
    Shell,
    /// `NAME=value` for the command behind.
    Assignment,
    /// The name of an environment variable that is printed.
    Variable,
    /// A script in a small language.
    Script(Script),
    /// One of these words; `*` at an end stands for more.
    OneOf(Vec<String>),
    /// Where something is sent to.
    Host,
    /// Code, or what names code.
    Code,
}

/// A small language whose scripts are read for what they run and write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Script {
    Sed,
    Awk,
    Jq,
    Yq,
    Test,
    Sql,
}

/// An option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) enum Choice {
    /// Without a value.
    Flag,
    /// With a value, in the same word or the next.
    Value(Kind, Place),
    /// With a value in the same word, or without one.
    Optional(Kind),
    /// Without a value; makes the command rewrite files.
    Formats,
    /// Refused, where a pattern would let it in.
    Refused,
}

/// Whether the value takes the place of the first operand, as the pattern in `grep -e pattern file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Place {
    Own,
    FirstOperand,
}

/// What else is to be known about a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::shell) enum Mark {
    /// No option that it has could do harm, so that a file named like an option does none.
    Harmless,
    /// Its options are words behind one dash, which are not bundled.
    Words,
    /// Prints paths below its operands.
    Paths,
    /// Prints lines of its input.
    Filter,
    /// Runs the program that its operands name, somewhere behind its options.
    Wraps,
    /// Part of the shell: there is no file.
    Builtin,
    /// Options behind the first operand are operands too.
    Posix,
    /// Works in the repository of its directory.
    Repository,
    /// `--help` and `--version` are not answered by themselves.
    NoHelp,
}

/// An operand's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::shell) struct Slot {
    pub(super) kind: Kind,
    pub(super) repeats: bool,
}

/// One program, or one sub-command of it.
#[derive(Debug, Clone, Default)]
pub(in crate::shell) struct Entry {
    pub(super) does: Does,
    pub(super) operands: Vec<Slot>,
    pub(super) options: HashMap<String, Choice>,
    /// Beginnings of options, longest first.
    pub(super) beginnings: Vec<(String, Choice)>,
    pub(super) needs: Vec<Vec<String>>,
    /// Letters that may stand in the first operand as options, as in `tar tf`.
    pub(super) letters: String,
    pub(super) marks: Vec<Mark>,
    /// Options with which it prints paths below its operands.
    pub(super) paths: Vec<String>,
    pub(super) subs: HashMap<String, Arc<Entry>>,
    pub(super) examples: Vec<(bool, String)>,
    /// Whether it was described, or only stands above its sub-commands.
    pub(super) described: bool,
}

impl Entry {
    pub(in crate::shell) fn does(&self) -> &Does {
        &self.does
    }

    pub(in crate::shell) fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    pub(in crate::shell) fn takes_only_harmless(&self) -> bool {
        let harmless =
            |kind: &Kind| matches!(kind, Kind::Text | Kind::Read | Kind::List | Kind::Revision);
        self.subs.is_empty()
            && self.is(Mark::Harmless)
            && self.operands.iter().all(|slot| harmless(&slot.kind))
            && self.operands.last().is_some_and(|slot| slot.repeats)
    }

    pub(super) fn collect_examples(&self, name: &str, found: &mut Vec<ProgramExample>) {
        for (safe, command) in &self.examples {
            found.push(ProgramExample {
                program: name.to_owned(),
                command: command.clone(),
                safe: *safe,
            });
        }
        for (sub, entry) in &self.subs {
            entry.collect_examples(&format!("{name} {sub}"), found);
        }
    }
}
