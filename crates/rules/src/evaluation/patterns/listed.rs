//! The classes of the commands in `grantable.txt`.

use std::path::PathBuf;
use std::sync::OnceLock;

use super::commands::{CommandClass, CommandClasses, is_bare, is_document, is_plain_name, with};
use crate::calls::glob::PathGlob;
use crate::calls::landings::landings;
use crate::folders::reaches::Reach;
use crate::folders::swept;
use crate::matching::examined_call::ExaminedCall;
use countersign_shell::{Part, Word};

/// A command of the list.
struct Generalised {
    words: Vec<&'static str>,
    operands: &'static str,
    /// Options, and whether a text follows.
    options: Vec<(&'static str, bool)>,
    example: &'static str,
    never: Vec<&'static str>,
}

fn list() -> &'static [Generalised] {
    static LIST: OnceLock<Vec<Generalised>> = OnceLock::new();
    LIST.get_or_init(|| {
        let lines = include_str!("../../grantable.txt").lines();
        let parsed = lines.filter(|line| !line.starts_with('#')).filter_map(|line| {
            let mut parts = line.split('|').map(str::trim);
            let words = parts.next()?.split_whitespace().collect();
            let operands = parts.next()?;
            let options = parts.next()?.split_whitespace();
            let option = |option: &'static str| match option.strip_suffix('=') {
                Some(option) => (option, true),
                None => (option, false),
            };
            let options = options.map(option).collect();
            let (example, never) = (parts.next()?, parts.next()?.split("; ").collect());
            Some(Generalised { words, operands, options, example, never })
        });
        parsed.collect()
    })
}

/// The classes of a command of the list: with the same options, and with any that the list has.
pub(super) fn classes(examined: &ExaminedCall<'_>, part: &Part) -> Option<CommandClasses> {
    let starts = |known: &&Generalised| {
        let mut words = known.words.iter().zip(part.argv());
        part.argv().len() >= known.words.len() && words.all(|(known, word)| known == word)
    };
    let known = list().iter().find(starts)?;
    let is_known = part.program().is_some() && part.reasons().len() == 1;
    let rest =
        part.words().get(known.words.len()..).filter(|_| is_known && is_bare(examined, part))?;
    let options = options_of(examined, known, rest, part)?;
    if known.operands == "staged" && stages_secrets(examined, rest, part) {
        return None;
    }
    let names = rest.iter().filter(|word| !word.text().starts_with('-')).count();
    if known.operands == "one" && names != 1 || known.operands == "copies" && !lands(examined, part)
    {
        return None;
    }
    let command = known.words.join(" ");
    let what = match known.operands {
        "files" | "staged" | "copies" => " of files of the workspace",
        _ => "",
    };
    let with = with(&options);
    let never = || known.never.iter().map(|it| (*it).to_owned()).collect();
    let example = match options.is_empty() || known.operands == "nothing" {
        true => known.example.to_owned(),
        false => format!("{command} {} …", options.join(" ")),
    };
    let all = known.options.iter().map(|(option, _)| format!("`{option}`"));
    let all = all.collect::<Vec<_>>().join(", ");
    let narrow = CommandClass {
        name: format!("command {command}{with}"),
        says: format!("any `{command}`{what}{with}"),
        example: Some(example),
        never: never(),
    };
    let wide = CommandClass {
        name: format!("command {command}"),
        says: match all.is_empty() {
            true => format!("any `{command}`{what}"),
            false => format!("any `{command}`{what}, with options such as {all}"),
        },
        example: Some(known.example.to_owned()),
        never: never(),
    };
    Some(CommandClasses { narrow, wide: Some(wide) })
}

/// Returns `true` if `git add` may take in a file that holds secrets below the folders that it is given, or below its own: one that
/// git does not ignore.
fn stages_secrets(examined: &ExaminedCall<'_>, words: &[Word], part: &Part) -> bool {
    if !examined.places().looks() {
        return false;
    }
    let operands = words.iter().map(Word::text).filter(|text| !text.starts_with('-'));
    let mut folders: Vec<String> = operands.map(str::to_owned).collect();
    if folders.is_empty() {
        folders.push(".".to_owned());
    }
    let reach = Reach { hidden: true, ..Reach::default() };
    let below = swept::below(folders, part.directories(), &reach, examined.places());
    let secret = PathGlob::secret();
    let is_secret =
        |it: &PathBuf| secret.matches(it, examined.places(), false, false) == Some(true);
    below.incomplete.is_some() || below.found.iter().any(is_secret)
}

/// Returns `true` if each copy is a plain file where it lands, in a folder as well, in which a link of its name may be.
fn lands(examined: &ExaminedCall<'_>, part: &Part) -> bool {
    let is_plain = |place: &String| {
        part.directories().iter().all(|it| examined.engine.classifier.is_plain_file(place, it))
    };
    landings(part).iter().all(is_plain)
}

/// The options of a command, sorted, without their texts. `None` if one is not in the list, or an operand is not of its
/// kind.
fn options_of(
    examined: &ExaminedCall<'_>,
    known: &Generalised,
    words: &[Word],
    part: &Part,
) -> Option<Vec<String>> {
    let mut options: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.literal()?;
        if let Some((found, takes_text)) = options_in(known, text) {
            options.extend(found);
            if takes_text {
                let value = words.next()?;
                let is_text = value.literal().is_some_and(|text| !text.starts_with('-'));
                (is_text || is_document(value)).then_some(())?;
            }
        } else {
            is_operand(examined, known, text, part).then_some(())?;
        }
    }
    options.sort();
    options.dedup();
    Some(options)
}

/// The options that a word is, and whether a text follows: one option, a long one with its text, or several short ones.
fn options_in(known: &Generalised, word: &str) -> Option<(Vec<String>, bool)> {
    let find = |option: &str| known.options.iter().find(|(own, _)| *own == option);
    if let Some((option, takes_text)) = find(word) {
        return Some((vec![(*option).to_owned()], *takes_text));
    }
    if let Some((option, _)) = word.split_once('=') {
        let takes_text = option.starts_with("--") && find(option).is_some_and(|(_, text)| *text);
        return takes_text.then(|| (vec![option.to_owned()], false));
    }
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-') && rest.len() > 1)?;
    let (mut options, mut takes_text) = (Vec::new(), false);
    for letter in letters.chars() {
        // What follows an option with a text is that text.
        let (option, text) = find(&format!("-{letter}")).filter(|_| !takes_text)?;
        options.push((*option).to_owned());
        takes_text = *text;
    }
    Some((options, takes_text))
}

fn is_operand(examined: &ExaminedCall<'_>, known: &Generalised, word: &str, part: &Part) -> bool {
    let classifier = &examined.engine.classifier;
    // To git, these are patterns of files, also between quotes.
    let is_pattern = word.contains(['*', '?', '[', '\\', ':']);
    let all = |is: &dyn Fn(&std::path::Path) -> bool| part.directories().iter().all(|it| is(it));
    match known.operands {
        "files" | "staged" | "copies" if is_pattern => false,
        "files" | "copies" => {
            !word.starts_with('-') && all(&|it| classifier.is_plain_file(word, it))
        }
        "staged" => {
            !word.starts_with('-')
                && all(&|it| {
                    classifier.is_plain_file(word, it) || classifier.is_build_definition(word, it)
                })
        }
        "names" | "one" => is_plain_name(word),
        _ => false,
    }
}
