//! Arguments that ask for nothing but help: `git push --help`.
//!
//! | in front of `--help` | is help, if |
//! |---|---|
//! | no word | the entry does not say otherwise (`help`) |
//! | sub-commands that the table describes: `go build` | they are no more than asked about because they are not known, and run no other program |
//! | words of `helps`: `gh pr create`, `docker run` | always, and with `-h`, too |
//!
//! Any other word may be an operand that the program passes on: `docker run IMAGE --help` starts a container.

use super::entry::{Does, ProgramEntry, ProgramMark};
use crate::syntax::commands::Word;

/// A program that is asked for nothing but help or its version.
#[derive(Clone, Copy)]
pub(super) struct AskedHelp<'t> {
    /// The entry of the program. That of `git help`, which may start a viewer that the repository names, for `git log --help`.
    pub(super) entry: &'t ProgramEntry,
    /// What it does then.
    pub(super) does: &'t Does,
    /// `true` if the entry says so, and nothing else is done.
    pub(super) is_said: bool,
}

/// What a program does whose last argument asks for help or the version; `None` where it may do anything else.
pub(super) fn asked_help<'t>(entry: &'t ProgramEntry, args: &[Word]) -> Option<AskedHelp<'t>> {
    let (option, words) = args.split_last()?;
    let words = words.iter().map(Word::literal).collect::<Option<Vec<_>>>()?;
    let option = match (option.literal()?, &*words) {
        _ if entry.is(ProgramMark::NoHelp) => return None,
        (option @ ("--help" | "--version"), []) => option,
        ("--help", words) if has_help(entry, words) || is_described(entry, words) => "--help",
        ("-h", words) if has_help(entry, words) => "--help",
        _ => return None,
    };
    let is_said = entry.forms.help.iter().any(|(known, _)| known == option);
    let does = entry.helps(option)?;
    let viewer = entry.subs.get("help").filter(|it| it.is(ProgramMark::Repository));
    let viewer = viewer.filter(|_| !words.is_empty());
    Some(AskedHelp { entry: viewer.map_or(entry, |it| it), does, is_said })
}

/// Returns `true` for words of `helps`. Behind a group (`pr/`) one more word is a sub-command.
fn has_help(entry: &ProgramEntry, words: &[&str]) -> bool {
    let is_word = |word: &&str| {
        !word.starts_with('-') && word.bytes().all(|it| it.is_ascii_lowercase() || it == b'-')
    };
    entry.forms.helps.iter().any(|known| match (known.strip_suffix('/'), words) {
        (Some(group), [first, sub @ ..]) => {
            group == *first && sub.len() <= 1 && sub.iter().all(is_word)
        }
        (None, [only]) => known == only,
        _ => false,
    })
}

/// Returns `true` for sub-commands that the table describes, and that start no other program.
fn is_described(entry: &ProgramEntry, words: &[&str]) -> bool {
    let mut sub = entry;
    for word in words {
        let Some(next) = sub.subs.get(*word) else { return false };
        sub = next;
    }
    let is_other = matches!(sub.does(), Does::Asks(_))
        || sub.is(ProgramMark::NoHelp)
        || sub.is(ProgramMark::Wraps);
    sub.described && !is_other && !words.is_empty()
}
