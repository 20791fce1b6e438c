//! What the classes of commands have in common: how a command has to be written, and what a class says.

use crate::matching::examined_call::ExaminedCall;
use countersign_shell::{Part, RedirectionTarget, Stage, Word};

/// A class of commands, before it is one of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandClass {
    pub(super) name: String,
    pub(super) says: String,
    pub(super) example: Option<String>,
    pub(super) never: Vec<String>,
}

/// The classes of one command: the narrow one, and a wider one if there is any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandClasses {
    pub(super) narrow: CommandClass,
    pub(super) wide: Option<CommandClass>,
}

impl CommandClasses {
    pub(super) fn widest(self) -> CommandClass {
        self.wide.unwrap_or(self.narrow)
    }
}

/// Whether a command stands alone: nothing runs it, sets variables for it, or takes its output elsewhere, and it works in
/// the workspace.
pub(super) fn is_bare(examined: &ExaminedCall<'_>, part: &Part) -> bool {
    let root = examined.places().root();
    let directories = part.directories();
    part.assignments().is_empty()
        && part.wrapped_by().is_none()
        && part.redirections().iter().all(|it| is_harmless(it.target()))
        && !directories.is_empty()
        && directories.iter().all(|directory| directory.starts_with(root))
}

/// Whether a redirection only joins outputs, or throws one away.
fn is_harmless(target: &RedirectionTarget) -> bool {
    match target {
        RedirectionTarget::Duplicate(_) => true,
        RedirectionTarget::Write(word)
        | RedirectionTarget::Append(word)
        | RedirectionTarget::WriteAll(word) => word.literal() == Some("/dev/null"),
        RedirectionTarget::Read(_)
        | RedirectionTarget::HereDocument(_)
        | RedirectionTarget::HereString(_) => false,
    }
}

/// Whether a word is a text that stands in the call as it is: `"$(cat <<'EOF' … EOF)"`. The lexer refuses a here-document
/// in which the shell would expand anything.
pub(super) fn is_document(word: &Word) -> bool {
    let [commands] = word.substitutions() else { return false };
    let [pipeline] = commands.pipelines() else { return false };
    let [Stage::Simple(cat)] = pipeline.stages() else { return false };
    let [document] = cat.redirections() else { return false };
    word.text() == "$(…)"
        && !word.may_split()
        && !pipeline.is_negated()
        && cat.assignments().is_empty()
        && cat.argv().is_some_and(|argv| argv == ["cat"])
        && document.fd().is_none()
        && matches!(document.target(), RedirectionTarget::HereDocument(_))
}

/// A name that is no path out of the workspace and no address: letters, digits, and a few signs between them.
pub(super) fn is_plain_name(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word.chars().all(plain)
        && !word.contains("..")
}

/// A command with other operands that are plain names and files.
pub(super) fn example(command: &str, options: &[String]) -> String {
    match options {
        [] => format!("{command} NAME docs/FILE"),
        options => format!("{command} NAME {}", options.join(" ")),
    }
}

/// The options as the end of a sentence.
pub(super) fn with(options: &[String]) -> String {
    match options {
        [] => " without options".to_owned(),
        options => format!(" with {}", options.join(" ")),
    }
}
