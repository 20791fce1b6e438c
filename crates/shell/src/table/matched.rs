//! The arguments of a program, as its entry describes them.

use std::borrow::Cow;

use super::entry::{Always, Does, Kind, ProgramEntry};
use crate::syntax::commands::Word;

/// The arguments of a program, matched.
#[derive(Debug)]
pub(crate) struct Matched<'t, 'w> {
    /// The entry of the program, or of its sub-command.
    pub(crate) entry: &'t ProgramEntry,
    /// The effects of this form of the program.
    pub(crate) does: &'t Does,
    /// The effects of the program in each of its forms.
    pub(crate) always: Always<'t>,
    /// `true` if links that are found below the operands are followed.
    pub(crate) follows: bool,
    /// `true` if the paths that are printed are those of plain files, and no links.
    pub(crate) files: bool,
    /// The operands and the values of options, in order.
    pub(crate) operands: Vec<Argument<'t, 'w>>,
    /// The options, as the program reads them, in order: `-0n2` has two, of which the second has a value.
    pub(crate) seen: Vec<String>,
    /// The words of other commands that the program runs.
    pub(crate) inner: Vec<(&'t Kind, &'w [Word])>,
    /// `true` if an option makes the command rewrite files.
    pub(crate) formats: bool,
    /// `true` if the output consists of paths below the operands.
    pub(crate) paths: bool,
    /// `true` if a filter passes on whole lines of its input.
    pub(crate) whole_lines: bool,
    /// `true` if paths are separated by NUL, in the output and in the input.
    pub(crate) nul: bool,
    /// How many arguments stand behind a `--`, for a program that reads no option behind it.
    pub(crate) behind_dashes: Option<usize>,
    /// `true` if the only argument asks for help or the version.
    pub(crate) help: bool,
}

/// An operand, or the value of an option.
#[derive(Debug)]
pub(crate) struct Argument<'t, 'w> {
    pub(crate) kind: &'t Kind,
    pub(crate) word: Cow<'w, Word>,
    /// `true` if it is the value of an option after the first operand, in a word of its own. Programs that stop at the
    /// first operand, as those of BSD do, read it as an operand.
    pub(crate) late: bool,
}

/// Returns `true` for an action of `find` that prints the path.
pub(crate) fn prints_path(option: &str) -> bool {
    matches!(option, "-print" | "-print0")
}
