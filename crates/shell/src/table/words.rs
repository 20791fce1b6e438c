//! Words as a program may take them: as an option, as one of the words that an entry lists, or as a path.

use std::slice::from_ref;
use std::sync::Arc;

use super::entry::{Kind, OptionParser, ProgramEntry, ProgramMark, ValuePlace};
use super::unmatched::Unmatched;
use crate::names::lists::is_named;
use crate::syntax::commands::{Word, WordKind};

/// Returns `true` if a value looks like an option: a dash and more than a number.
pub(super) fn is_like_option(value: &Word) -> bool {
    let text = value.text.as_str();
    text.len() > 1
        && text.starts_with('-')
        && !text.get(1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Refuses a text for a program that builds which may become an option of another one that it runs: of `--base=--output=x`,
/// git gets what stands behind `base`. An option for the arguments of a program is meant so: `--test-arg=--x`.
pub(super) fn check_handed_on(
    entry: &ProgramEntry,
    name: &str,
    kind: &Kind,
    value: &Word,
) -> Result<(), Unmatched> {
    let is_open = *kind == Kind::Text && value.text.starts_with("--") && entry.passes_options_on();
    let is_for_another = || {
        let name = name.to_lowercase();
        ["arg", "opt", "flag"].iter().any(|part| name.contains(part))
    };
    match is_open && !is_for_another() {
        true => Err(Unmatched::MayBeOption(value.text.clone())),
        false => Ok(()),
    }
}

/// Returns `true` if the rest of an option that is known by its beginning is a plain word: no path, and nothing that
/// a program could take for one.
pub(super) fn is_plain(rest: &str) -> bool {
    let path_like = rest.contains("..") || rest.starts_with(['.', '/']);
    !path_like
        && rest
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '=' | '+' | ','))
}

/// Returns `true` if the program may parse the word as an option.
///
/// A pattern whose first character is fixed to a letter cannot become an option; `[s]x` and `[a-z]*` differ in that, as
/// the second may match a name with another character where the locale sorts it into the range.
pub(crate) fn may_be_option(word: &Word) -> bool {
    let text = word.text.as_str();
    match word.kind {
        WordKind::Literal => text.len() > 1 && text.starts_with('-'),
        WordKind::Tilde | WordKind::Process => false,
        WordKind::Glob | WordKind::Expansion if word.no_option => false,
        // `[s]x` matches only names that begin with `s`.
        WordKind::Glob => {
            let set = text.strip_prefix('[').and_then(|rest| rest.split_once(']'));
            let fixed = set
                .is_some_and(|(set, _)| !set.is_empty() && set.chars().all(char::is_alphanumeric));
            text.starts_with(['-', '*', '?', '[']) && !fixed
        }
        WordKind::Expansion => text.starts_with(['-', '$']) && !word.is_number(),
    }
}

/// The sub-command that a word names. A name of the table that ends with a star stands for its continuations (`test:*`).
pub(super) fn sub_command<'t>(
    entry: &'t ProgramEntry,
    name: &str,
) -> Option<&'t Arc<ProgramEntry>> {
    let continued = |known: &String| known.ends_with('*') && is_known_word(from_ref(known), name);
    let by_star = || entry.subs.iter().find(|(known, _)| continued(known)).map(|(_, sub)| sub);
    entry.subs.get(name).or_else(by_star)
}

/// Returns `true` if a value in front of a sub-command may be the sub-command itself, where an entry describes several programs:
/// to one of them the option may be a flag, or unknown. To `pnpm`, `--filter install view` is a `view`; to `npm`, an `install`.
pub(super) fn may_be_sub_command(entry: &ProgramEntry, value: &Word) -> bool {
    let name = value.text.as_str();
    entry.shares_options
        && !entry.subs.is_empty()
        && (sub_command(entry, name).is_some() || is_named("sub-commands", name))
}

/// Refuses a value in a word of its own that the program may read as something else.
pub(super) fn check_value(
    kind: &Kind,
    place: ValuePlace,
    value: &Word,
    had_operand: bool,
) -> Result<(), Unmatched> {
    // Where the option is a flag to the program, after all, this is the next option.
    let is_option =
        place != ValuePlace::FirstOperand && is_like_option(value) && !is_one_of(kind, value);
    if value.may_split() || is_option {
        return Err(Unmatched::MayBeOption(value.text.clone()));
    }
    if place == ValuePlace::BehindOperand && !had_operand {
        return Err(Unmatched::MayBeOperand(value.text.clone()));
    }
    Ok(())
}

/// The words of a command up to `;` or `{} +`, and those behind it.
pub(super) fn each_command(words: &[Word]) -> Option<(&[Word], &[Word])> {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.text == text);
    let ends =
        |at: &usize| is(*at, ";") || is(*at, "+") && *at > 0 && is(at.saturating_sub(1), "{}");
    let end = (0..words.len()).find(ends)?;
    Some((words.get(..end)?, words.get(end + 1..)?))
}

/// Returns `true` if a program may see the end of a command in front of its end. The `find` of BSD looks at the first letter
/// only: at a word such as `;x`, and at `+x` behind `{}`. What stands behind an end may be an action: `-delete`.
pub(super) fn ends_early(words: &[Word]) -> bool {
    let mut before = "";
    words.iter().enumerate().any(|(at, word)| {
        let behind_path = std::mem::replace(&mut before, &word.text) == "{}";
        let acts = || words.iter().skip(at).any(|word| word.text.starts_with('-'));
        word.text.starts_with(';')
            || behind_path && word.text.starts_with('+')
            || word.kind == WordKind::Expansion && word.text.starts_with('$') && acts()
    })
}

/// Refuses a word behind `--` that a program may read as an option nevertheless: `find -- . -delete` deletes, and `unzip -l --
/// --l -o x.zip` extracts.
///
/// Returns how many words there are if each is an operand of the program, and none is handed on to another that may read an option.
pub(super) fn check_behind_dashes(
    entry: &ProgramEntry,
    behind: &[Word],
) -> Result<Option<usize>, Unmatched> {
    let reads_none = entry.parser == OptionParser::Gnu
        || entry.passes_options_on()
        || entry.is(ProgramMark::Harmless);
    // `git stash list` hands on what stands behind, and not the dashes.
    let is_odd = |word: &&Word| match entry.is(ProgramMark::Repository) {
        true => word.text.starts_with('-') && may_be_option(word),
        false => !reads_none && may_be_option(word),
    };
    match behind.iter().find(is_odd) {
        Some(word) => Err(Unmatched::MayBeOption(word.text.clone())),
        None => Ok(Some(behind.len()).filter(|_| dashes_end_options(entry))),
    }
}

/// Returns `true` if a program reads no word behind `--` as an option, and hands none on to another that may.
pub(crate) fn dashes_end_options(entry: &ProgramEntry) -> bool {
    // `tar tf --` takes the dashes for the archive.
    entry.parser == OptionParser::Gnu
        && entry.letters.is_empty()
        && !entry.passes_options_on()
        && !entry.is(ProgramMark::Repository)
}

/// Returns `true` if a word is one of the words of [`Kind::OneOf`].
pub(super) fn is_one_of(kind: &Kind, word: &Word) -> bool {
    let (Kind::OneOf(words), Some(text)) = (kind, word.literal()) else { return false };
    is_known_word(words, text)
}

/// Words by which something leaves the workspace.
pub(crate) const SENDS_OUT: &[&str] =
    &["deploy", "release", "publish", "push", "upload", "migrate"];

/// The parts of a name: `build-and-push` has three.
pub(crate) fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric())
}

/// The tasks of every day, whose names projects continue as they like: `test:unit`, `build-docs`.
const TASKS: &[&str] = &[
    "build",
    "test",
    "lint",
    "check",
    "types",
    "typecheck",
    "compile",
    "format",
    "fmt",
    "unit",
    "docs",
    "bench",
    "spec",
];

/// Returns `true` if the continuation of a task says that it sends something out or installs it (`build-and-push`,
/// `lintPublish`, `test:deploy`), or makes it the name of a variable that is set (`test-x=rm`).
fn does_more(beginning: &str, rest: &str) -> bool {
    let task = beginning.trim_end_matches(|c: char| !c.is_alphanumeric());
    let rest = rest.to_lowercase();
    let is_word = |word: &str| ["ship", "prod", "production"].contains(&word);
    TASKS.contains(&task)
        && (rest.contains('=')
            || ["deploy", "publish", "push", "upload", "install"]
                .iter()
                .any(|it| rest.contains(it))
            || parts(&rest).any(|part| SENDS_OUT.contains(&part) || is_word(part)))
}

/// Returns `true` if a text is one of the words of a list, in which `x*` stands for `x` and a plain continuation,
/// `x*y` for one that ends with `y`, `x*?` for one with the query of an address (`x/y?page=2&z=1`), and `x**` for `x` and
/// anything but control characters. The name of an everyday task is not continued by words such as `deploy` and
/// `publish`, nor by `=`. With `@list`, a list of the words with commas is known, too.
pub(crate) fn is_known_word(words: &[String], text: &str) -> bool {
    if text.contains(',') && words.iter().any(|known| known == "@list") {
        return text.split(',').all(|part| is_known_word(words, part));
    }
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+%~".contains(c);
    words.iter().any(|known| match known.split_once('*') {
        // A line break in the header of a request would begin another one.
        Some((beginning, "*")) => text.starts_with(beginning) && !text.contains(char::is_control),
        Some((_, "?")) => text.split_once('?').is_some_and(|(path, query)| {
            let without_query = known.trim_end_matches('?').to_owned();
            is_known_word(&[without_query], path) && query.chars().all(|c| plain(c) || c == '&')
        }),
        Some((beginning, end)) => {
            // A continuation stays below what it continues, and makes no path of a name: `x*` is not `x/y.lua`.
            let is_path = beginning.contains(['/', '.', ':', '=', '@']);
            let stays = |rest: &str| match is_path {
                true => rest.split('/').all(|part| part != ".."),
                false => !rest.contains(['/', '.']),
            };
            // `gh api` puts the repository of the folder in the place of these.
            let text = text.replace("/{owner}", "/o").replace("/{repo}", "/r");
            text.strip_prefix(beginning).and_then(|rest| rest.strip_suffix(end)).is_some_and(
                |rest| rest.chars().all(plain) && stays(rest) && !does_more(beginning, rest),
            )
        }
        None => known == text,
    })
}
