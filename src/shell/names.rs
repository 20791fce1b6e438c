//! The lists of names in `names.txt`.
//!
//! The lists are data, so that adding the name of a secret file needs no code and is reviewed as a line of text. An
//! unknown heading gives an empty list.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

/// The names under a `[heading]` of the file; none for an unknown heading.
pub(super) fn names(heading: &str) -> &'static [&'static str] {
    static NAMES: OnceLock<HashMap<&str, Vec<&str>>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let mut names: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut heading = "";
        for line in include_str!("names.txt").lines().filter(|line| !line.starts_with('#')) {
            match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                Some(next) => heading = next,
                None => names.entry(heading).or_default().extend(line.split_whitespace()),
            }
        }
        names
    });
    names.get(heading).map_or(&[], Vec::as_slice)
}

/// Whether a name is one of those under a heading, whatever its case.
pub(super) fn is_named(heading: &str, name: &str) -> bool {
    static SETS: OnceLock<HashMap<&str, HashSet<String>>> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        let lower = |heading| names(heading).iter().map(|name| name.to_ascii_lowercase()).collect();
        SET_HEADINGS.iter().map(|heading| (*heading, lower(heading))).collect()
    });
    let lower = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(name.to_ascii_lowercase()),
        false => Cow::Borrowed(name),
    };
    sets.get(heading).is_some_and(|set| set.contains(&*lower))
}

/// The lists that are looked up by whole names.
const SET_HEADINGS: &[&str] =
    &["control paths", "control ports", "protected", "protocols", "secret files", "secret folders"];
