//! The readings of a word of a command: itself, the value of an option, a file after `@` or `:`.

use std::borrow::Cow;

/// The number of options of one letter that may stand together.
const MAX_LETTERS: usize = 8;

/// The paths that a word may stand for.
///
/// | word | may be the path |
/// |---|---|
/// | `--output=.env` | `.env` |
/// | `-o.env`, `-uo.env` | `.env` |
/// | `curl -d @.env` | `.env` |
/// | `host:.ssh/id` | `.ssh/id` |
/// | `:(top)a.csv`, `:/a.csv` | `a.csv` |
/// | `$HOME/.ssh` | `~/.ssh` |
/// | `$PWD/a` | `./a` |
/// | `file:///etc/x` | `/etc/x` |
///
/// Reading too much is safe: strict rules speak where any form matches, and rules that allow have conditions on fields.
pub(crate) fn readings(word: &str) -> Vec<Cow<'_, str>> {
    let mut found = vec![Cow::Borrowed(word)];
    if has_one_reading(word) {
        return found;
    }
    for separator in ['=', ':', '@', ','] {
        found.extend(
            word.match_indices(separator)
                .take(8)
                .filter_map(|(at, it)| word.get(at + it.len()..))
                .map(Cow::Borrowed),
        );
    }
    // The pathspecs of git: `:(top)x` and `:/x` are `x` in the root of the repository.
    let magic = word.strip_prefix(":(").and_then(|rest| rest.split_once(')'));
    found.extend(magic.map(|(_, rest)| Cow::Borrowed(rest)));
    found.extend(word.strip_prefix(":/").map(Cow::Borrowed));
    if word.contains(',') {
        found.extend(word.split(',').take(16).map(Cow::Borrowed));
    }
    if word.starts_with('-') && !word.starts_with("--") {
        // Options of one letter may stand together, and the last of them takes the rest: `-uo.env`.
        let rest = word.char_indices().skip(2).take(MAX_LETTERS);
        found.extend(rest.filter_map(|(at, _)| word.get(at..)).map(Cow::Borrowed));
    }
    for (name, place) in [("$HOME", '~'), ("${HOME}", '~'), ("$PWD", '.'), ("${PWD}", '.')] {
        if let Some((_, rest)) = word.split_once(name) {
            found.push(Cow::Owned(format!("{place}{rest}")));
        }
    }
    found.retain(|form| !form.is_empty());
    found
}

/// Returns `true` if a word stands for itself alone, as most do.
fn has_one_reading(word: &str) -> bool {
    // A dash within a name is a part of it.
    !word.bytes().any(|byte| matches!(byte, b'=' | b':' | b'@' | b'$' | b','))
        && (!word.starts_with('-') || word.starts_with("--") || word.len() < 3)
}

/// Returns `true` if some reading of a word is one of these.
pub(crate) fn any_reading(word: &str, mut is_one: impl FnMut(&str) -> bool) -> bool {
    match has_one_reading(word) {
        true => is_one(word),
        false => readings(word).iter().any(|reading| is_one(reading)),
    }
}
