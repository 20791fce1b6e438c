//! The lists of names in `names.txt`, and of variables in `variables.txt`.
//!
//! The lists are data: to add the name of a secret file you need no code, and a person reviews it as a line of
//! text. An unknown heading gives an empty list.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::sieve::SieveNames;

/// A list: its heading, and its names.
type NameList = (&'static str, Vec<&'static str>);

/// The lists of both files.
pub(crate) fn lists() -> &'static [NameList] {
    static LISTS: OnceLock<Vec<NameList>> = OnceLock::new();
    LISTS.get_or_init(|| {
        let mut lists: Vec<NameList> = Vec::new();
        let files = [include_str!("../names.txt"), include_str!("../variables.txt")];
        for line in files.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with('#'))
        {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(next) => lists.push((next, Vec::new())),
                None => lists
                    .last_mut()
                    .into_iter()
                    .for_each(|(_, names)| names.extend(line.split_whitespace())),
            }
        }
        lists
    })
}

/// The names under a `[heading]` of the files; none for an unknown heading.
pub(crate) fn names(heading: &str) -> &'static [&'static str] {
    // A few headings of different lengths are compared in less time than one of them is hashed.
    lists().iter().find(|(known, _)| *known == heading).map_or(&[], |(_, names)| names)
}

/// Whether a name is one of those under a heading, whatever its case.
pub(crate) fn is_named(heading: &str, name: &str) -> bool {
    static SETS: OnceLock<Vec<(&str, SieveNames)>> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        let set = |heading| {
            let mut set = SieveNames::new();
            names(heading).iter().for_each(|name| set.add(name));
            set
        };
        SET_HEADINGS.iter().map(|heading| (*heading, set(heading))).collect()
    });
    let set = sets.iter().find(|(known, _)| *known == heading);
    set.is_some_and(|(_, set)| set.has(name))
}

/// The name with its ASCII letters in lower case, without an allocation if it is that already.
pub(crate) fn lower(name: &str) -> Cow<'_, str> {
    match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    }
}

/// The lists that are looked up by whole names.
const SET_HEADINGS: &[&str] = &[
    "build definitions",
    "build files",
    "build folders",
    "control paths",
    "control ports",
    "npm settings",
    "programs with settings",
    "programs without settings",
    "protocols",
    "secret files",
    "secret folders",
    "source folders",
    "sub-commands",
];
