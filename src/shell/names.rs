//! The lists of names in `names.txt`.
//!
//! The lists are data, so that adding the name of a secret file needs no code and is reviewed as a line of text. An
//! unknown heading gives an empty list.

use std::collections::HashMap;
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
