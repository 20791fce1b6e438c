//! Says what is known about the paths that commands print, and hand on to others.
//!
//! A pipeline such as `find . -name '*.rs' | xargs grep x` is only harmless because the lines are paths in the
//! workspace. So each command says what it knows about its output: paths (one a line, or separated by NUL), or nothing.
//! A filter that passes whole lines keeps it, everything else loses it.
//!
//! | command | input | output |
//! |---|---|---|
//! | `find . -print0` | – | paths, NUL |
//! | `grep -v target` behind `find .` | paths | paths: whole lines |
//! | `sed s/a/b/` behind `find .` | paths | unknown |
//! | `xargs cat` behind `find .` | paths | asks where a path may have a blank, as it is split there |
//! | `xargs -0 cat` behind `find . -print0` | paths, NUL | read, as files of the workspace |
//!
//! A path that is one word, and that no program takes for an option, is put behind the words of the command that `xargs`
//! runs, which is judged with it. `find` prints paths that begin with the name of a folder; of other programs this is known
//! where the files are looked at.

use super::bindings::Value;
use crate::names::globs::is_glob;
use crate::places::links::is_path_to_all;
use crate::syntax::commands::{Redirection, RedirectionTarget, Word, WordKind};
use crate::table::{Argument, Kind, Matched};

/// Why to ask where another command may write.
pub(super) const FILES_CHANGED: &str =
    "reads files that another command of the text may make or change";

/// The known property of the lines of a command's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lines {
    /// Every line is a path in the workspace.
    Paths(PrintedPaths),
    Unknown,
}

/// The known properties of the paths that a command prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PrintedPaths {
    /// `true` if NUL stands behind each of them, and no line break.
    pub(super) nul: bool,
    pub(super) words: PathWords,
    /// `true` if one of them may be that of a link that leads out of the workspace.
    pub(super) links: bool,
    /// `true` if one of them may be that of a file that holds secrets by its name.
    pub(super) secrets: bool,
}

/// The words that `xargs` makes of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathWords {
    /// Any words: a path with blanks is split.
    Split,
    /// Each path is one word, which may begin like an option.
    Whole,
    /// Each path is one word, which no program takes for anything but a path.
    Plain,
    /// The same, for the files that are there now.
    PlainNow,
}

impl Lines {
    /// The value of a variable that `read` gives one of the lines.
    pub(super) fn read(self) -> Value {
        match self {
            Self::Paths(paths) if !paths.nul => {
                let is_plain = self.are_plain();
                Value::Line { is_plain, is_whole: is_plain && !paths.links && !paths.secrets }
            }
            _ => Value::Text,
        }
    }

    /// Returns `true` if `xargs` makes one word of each path, which no program takes for anything else.
    pub(super) fn are_plain(self) -> bool {
        use PathWords::{Plain, PlainNow};
        matches!(self, Self::Paths(PrintedPaths { words: Plain | PlainNow, .. }))
    }

    /// Returns `true` if a shell makes the same words of the lines.
    pub(super) fn are_words(self) -> bool {
        self.are_plain() && matches!(self, Self::Paths(paths) if !paths.nul)
    }

    /// Returns what `xargs` with these words reads from its input.
    pub(super) fn split_by(self, xargs: &[Word], nul: bool) -> Self {
        match self {
            Self::Paths(paths) if paths.nul == nul && (nul || gives_whole_lines(xargs)) => self,
            Self::Paths(paths) if paths.nul == nul => {
                Self::Paths(PrintedPaths { words: PathWords::Split, ..paths })
            }
            _ => Self::Unknown,
        }
    }
}

/// Returns `true` if enough is known of a path that was read from a line: where only its name and numbers about it are seen, or
/// where it is the whole path.
pub(super) fn is_known_line(word: &Word, kind: &Kind, hides_content: bool) -> bool {
    match kind {
        Kind::Read | Kind::List => word.line && hides_content || word.whole_line,
        Kind::Revision => word.whole_line,
        _ => false,
    }
}

/// Returns `true` for an operand below which a command looks for files.
pub(super) fn is_searched(one: &Argument<'_, '_>) -> bool {
    matches!(one.kind, Kind::Read | Kind::List | Kind::Revision | Kind::Packed) && !one.late
}

/// Returns `true` if no path below the folders that a command searches is taken for anything but a path.
pub(super) fn begin_as_paths(matched: &Matched<'_, '_>) -> bool {
    let mut searched = matched.operands.iter().filter(|one| is_searched(one));
    // `m*` may match `msl:x`, and all that `src/*` matches begins with the folder.
    let is_open = |word: &Word| {
        word.kind != WordKind::Literal && is_glob(word.text.split('/').next().unwrap_or_default())
    };
    searched.all(|one| is_path_to_all(&one.word.text) && !is_open(&one.word))
}

/// Returns `true` if each path below the folders that a command searches begins with a dot or a slash.
pub(super) fn begin_with_dot(matched: &Matched<'_, '_>) -> bool {
    let mut searched = matched.operands.iter().filter(|one| is_searched(one));
    searched.all(|one| {
        one.word.text == "." || ["./", "../", "/"].iter().any(|it| one.word.text.starts_with(it))
    })
}

/// A path that another program puts into the words of a command.
pub(super) fn found_path(text: &str, beside: &Word) -> Word {
    Word { found: true, span: beside.span.clone(), ..Word::synthetic(text) }
}

/// The words of a command, with paths behind them that another command prints: one or more, and a second one may be an output.
pub(super) fn with_found_paths(words: &[Word], beside: &Word) -> Vec<Word> {
    let paths = std::iter::repeat_n(found_path("x", beside), 2);
    words.iter().cloned().chain(paths).collect()
}

/// Returns `true` if a redirection may put other text among the lines of a command, as `2>&1` does with its errors, or takes the
/// lines elsewhere. Input, and errors that go to `/dev/null` or to a file of the workspace, do neither.
pub(super) fn mixes(redirection: &Redirection) -> bool {
    match &redirection.target {
        RedirectionTarget::Read(_)
        | RedirectionTarget::HereDocument(_)
        | RedirectionTarget::HereString(_) => false,
        RedirectionTarget::Write(word) | RedirectionTarget::Append(word) => {
            let is_stream = |text: &str| text != "/dev/null" && text.starts_with(['/', '~']);
            redirection.fd != Some(2) || word.literal().is_none_or(is_stream)
        }
        RedirectionTarget::WriteAll(_) | RedirectionTarget::Duplicate(_) => true,
    }
}

/// Returns `true` for a word that is nothing but a substitution, whose output the shell splits at blanks.
pub(super) fn is_found(word: &Word) -> bool {
    word.text == "$(…)" && word.split
}

/// Returns `true` if `xargs` appends what it reads, split at blanks and nowhere else: no option but those that say how many
/// at once.
fn gives_whole_lines(words: &[Word]) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let is_plain = |text: &str| {
        let count = text.strip_prefix("-n").or_else(|| text.strip_prefix("-P"));
        ["-r", "-t", "--no-run-if-empty"].contains(&text)
            || count.is_some_and(|count| count.is_empty() || is_number(count))
            || is_number(text)
    };
    let texts = words.iter().skip(1).map(|word| word.text.as_str());
    let mut own = texts.take_while(|text| text.starts_with('-') || is_number(text));
    words.first().is_some_and(|word| word.text == "xargs") && own.all(is_plain)
}
