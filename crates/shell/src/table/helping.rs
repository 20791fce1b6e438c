//! Arguments that ask for nothing but help: `git push --help`.
//!
//! | in front of `--help` | is help, if |
//! |---|---|
//! | no word | the entry does not say otherwise (`help`) |
//! | sub-commands that the table describes: `go build` | it is known what they do, and they start no other program or script |
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
    /// The effects of this form.
    pub(super) does: &'t Does,
    /// `true` if the entry says so, and nothing else is done.
    pub(super) is_said: bool,
}

/// Returns the effects of a program whose last argument asks for help or the version; `None` where it may do anything else.
pub(super) fn asked_help<'t>(entry: &'t ProgramEntry, args: &[Word]) -> Option<AskedHelp<'t>> {
    let (option, words) = args.split_last()?;
    let words = words.iter().map(Word::literal).collect::<Option<Vec<_>>>()?;
    let described = described(entry, &words);
    let option = match (option.literal()?, &*words) {
        _ if entry.is(ProgramMark::NoHelp) => return None,
        (option @ ("--help" | "--version"), []) => option,
        ("--help", words) if has_help(entry, words) || described.is_some() => "--help",
        ("-h", words) if has_help(entry, words) => "--help",
        _ => return None,
    };
    let is_said = entry.forms.help.iter().any(|(known, _)| known == option);
    let does = match described {
        Some(sub) if sub.builds() => &Does::Builds,
        _ => entry.helps(option)?,
    };
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

/// The sub-command that words are, if the table describes it, and it starts no other program or script: `php artisan` does.
fn described<'t>(entry: &'t ProgramEntry, words: &[&str]) -> Option<&'t ProgramEntry> {
    let mut sub = entry;
    for word in words {
        sub = sub.subs.get(*word)?;
    }
    let marks = [ProgramMark::NoHelp, ProgramMark::Wraps, ProgramMark::Launcher];
    let is_other = matches!(sub.does(), Does::Asks(_)) || marks.iter().any(|mark| sub.is(*mark));
    let is_known = sub.described && !sub.says_nothing() && !is_other && !words.is_empty();
    is_known.then_some(sub)
}
