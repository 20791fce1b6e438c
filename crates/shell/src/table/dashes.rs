//! Words that a program may read otherwise than they look: as one long option behind one dash, or as more than an operand.

use super::entry::{Does, Kind, OptionForm, OptionParser, ProgramEntry};
use super::words::is_one_of;
use crate::names::lists::is_named;
use crate::syntax::commands::{Word, WordKind};

/// Options with which a formatter writes, whatever else it is told.
const WRITES: &[&str] = &["-i", "-w", "--in-place", "--write"];

/// The effect of a program that rewrites files with these options, if it only says what it would change.
pub(super) fn checks<'t>(entry: &'t ProgramEntry, given: &[String]) -> Option<&'t Does> {
    let (does, options) = entry.forms.checks.as_ref()?;
    let writes = given.iter().any(|option| WRITES.contains(&option.as_str()));
    (!writes && given.iter().any(|option| options.contains(option))).then_some(does)
}

/// A word with the other number of dashes, if the program does not tell them apart and the option is described so:
/// `-outFile=x` as `--outFile=x`.
pub(super) fn with_other_dash(entry: &ProgramEntry, text: &str) -> Option<String> {
    if entry.parser != OptionParser::OneDash {
        return None;
    }
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    let is_described = |name: &str| entry.options.contains_key(name);
    let (other, rest) = match name.strip_prefix("--") {
        Some(bare) => (format!("-{bare}"), text.get(1..)?.to_owned()),
        None if name.len() > 2 => (format!("-{name}"), format!("-{text}")),
        None => return None,
    };
    (!is_described(name) && is_described(&other)).then_some(rest)
}

/// Returns `true` if a word of letters may be one long option to the program, by what its entry says: it has more than
/// two letters, and a value among them that is no number, or a described name begins so.
pub(super) fn may_be_long(entry: &ProgramEntry, text: &str) -> bool {
    let letters = text.get(1..).unwrap_or_default();
    if entry.parser != OptionParser::Unsaid || letters.chars().count() <= 2 {
        return false;
    }
    let begins = |name: &String| {
        let long = name.strip_prefix("--");
        long.is_some_and(|long| long.starts_with(letters.split('=').next().unwrap_or_default()))
    };
    let is_flag = |c: char| {
        let form = entry.options.get(&format!("-{c}"));
        matches!(form, Some(OptionForm::Flag | OptionForm::Formats))
    };
    let rest = letters.trim_start_matches(is_flag);
    // A letter with a number is no name: `-j16`.
    let has_number = || {
        let mut rest = rest.chars();
        rest.next().is_some() && rest.all(|c| c.is_ascii_digit())
    };
    !(rest.is_empty() || has_number()) || entry.options.keys().any(begins)
}

/// Returns `true` if a word may be more than the operand that it looks like: a file of options (`@file`), a
/// command (`+cmd`, and to Perl also `cmd |`), a word that the entry refuses, or a sub-command that changes something, where the entry of a
/// build tool expects its first file.
pub(super) fn is_no_operand(
    entry: &ProgramEntry,
    kind: &Kind,
    word: &Word,
    had_operand: bool,
) -> bool {
    let text = word.text.as_str();
    let opens = match kind {
        Kind::Read
        | Kind::Packed
        | Kind::Local
        | Kind::Unquoted
        | Kind::List
        | Kind::Here
        | Kind::FromTo => true,
        Kind::OneOf(words) => words.iter().any(|known| known == "@path") && !is_one_of(kind, word),
        _ => false,
    };
    matches!(entry.options.get(text), Some(OptionForm::Refused))
        || opens && text.len() > 1 && text.starts_with(['@', '+', '&', '|', '!'])
        || opens && text.ends_with('|')
        || opens && word.kind == WordKind::Literal && text.contains('\\')
        || opens
            && !had_operand
            && matches!(entry.does(), Does::Builds)
            && is_named("sub-commands", text)
}
