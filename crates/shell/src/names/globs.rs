//! Patterns of file names: whether a pattern may match a name that holds secrets.
//!
//! `cat *` may print a secret, and so may every other pattern. But if we asked about each, the classifier would be
//! useless: agents list and count files all day. So we ask about a pattern that is *specific* enough to be meant for
//! secrets: `.e*`, `*.pem`, `id_*`, and not `*` or `*.json`. We also look at what a pattern matches at this moment
//! (`Workspace::matches`): we ask about `*` in a folder with a `.pem` file.
//!
//! | pattern | may be a secret | because |
//! |---|---|---|
//! | `*` | no | says nothing about names |
//! | `.e*` | yes | has a text in common with `.env` |
//! | `*.pem`, `*.p?m` | yes | writes a part of the ending |
//! | `v1.*` | no | the ending is not written at all |
//! | `*.json` | no | the ending is usual, although `credentials.json` has it |

use super::lists::names;

/// One piece of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobPart {
    /// Any number of characters.
    Any,
    /// One character of several.
    One,
    /// This character, in lower case.
    Is(char),
}

/// Returns `true` if a text has characters that make it a pattern.
pub(crate) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// How long a part of a pattern may be before it is taken for a secret's. A name has at most 255 bytes.
const MAX_PART: usize = 1024;

/// Returns `true` if a pattern could match the name of a secret, and is specific enough that this is likely intended:
/// `*.pem` and `.e*`, but not `*` and `*.json`.
pub(crate) fn may_be_secret(glob: &str) -> bool {
    // `:(glob).e*` and `:!.e*` are patterns of git with a word in front.
    let glob = match glob.strip_prefix(":(").and_then(|rest| rest.split_once(')')) {
        Some((_, pattern)) => pattern,
        None => glob.trim_start_matches([':', '!', '^']),
    };
    glob.split('/').filter(|part| is_glob(part)).any(|part| {
        if part.len() > MAX_PART {
            return true;
        }
        all_readings(part).iter().any(|pieces| may_name_secret(part, pieces))
    })
}

fn may_name_secret(part: &str, pieces: &[GlobPart]) -> bool {
    let letters = pieces.iter().filter(|piece| matches!(piece, GlobPart::Is(_))).count();
    let begins = pieces.first().is_some_and(|piece| *piece != GlobPart::Any);
    if letters < 2 && !part.starts_with('.') {
        return false;
    }
    let ending = |ending: &str| {
        is_about_ending(pieces, ending)
            && meets(pieces, &[&[GlobPart::Any][..], &literal(ending)].concat())
    };
    let named = |name: &str| {
        let usual = names("usual endings").iter().any(|ending| name.ends_with(ending));
        (begins || !usual) && meets(pieces, &literal(name))
    };
    names("secret files").iter().any(|name| named(name))
        || names("secret folders").iter().any(|name| named(name))
        || [".env.local", ".env.production"].iter().any(|name| named(name))
        || names("secret endings").iter().any(|name| ending(name))
}

/// Returns `true` if a pattern writes at least a part of an ending: `*.pem`, `*.p?m` and `*.ke*`, but not `v1.*`.
fn is_about_ending(pieces: &[GlobPart], ending: &str) -> bool {
    let last = pieces.iter().rev().take_while(|piece| **piece != GlobPart::Any);
    if last.clone().count() >= 2 && last.clone().any(|piece| matches!(piece, GlobPart::Is(_))) {
        return true;
    }
    let dot = pieces.iter().rposition(|piece| *piece == GlobPart::Is('.'));
    let after = dot.and_then(|dot| pieces.get(dot..)).unwrap_or_default();
    let written = after.iter().take_while(|piece| matches!(piece, GlobPart::Is(_))).count();
    written > 2 && literal(ending).get(..written) == after.get(..written)
}

/// Returns `true` if a name matches a pattern as some shell reads it, or is the pattern itself, which a shell leaves as it is
/// where it matches nothing. A `[…]` matches any one character.
pub(crate) fn fits(glob: &str, name: &str) -> bool {
    let name = literal(name);
    literal(glob) == name || all_readings(glob).iter().any(|pieces| meets(pieces, &name))
}

/// Returns `true` if some name matches both a pattern of a rule, in which only `*` and `?` mean something, and a pattern
/// as some shell reads it.
pub(crate) fn may_match(of_rule: &str, glob: &str) -> bool {
    let of_rule: Vec<GlobPart> = of_rule
        .chars()
        .flat_map(char::to_lowercase)
        .map(|c| match c {
            '*' => GlobPart::Any,
            '?' => GlobPart::One,
            other => GlobPart::Is(other),
        })
        .collect();
    all_readings(glob).iter().any(|pieces| meets(pieces, &of_rule))
}

/// The pattern with a `*` for each of its wildcards, in the reading that says least.
pub(crate) fn with_stars(glob: &str) -> String {
    let written = |pieces: &Vec<GlobPart>| {
        pieces.iter().filter(|piece| matches!(piece, GlobPart::Is(_))).count()
    };
    let least = all_readings(glob).into_iter().min_by_key(written).unwrap_or_default();
    let stars = least.iter().map(|piece| match piece {
        GlobPart::Any | GlobPart::One => '*',
        GlobPart::Is(c) => *c,
    });
    stars.collect()
}

fn literal(text: &str) -> Vec<GlobPart> {
    text.chars().flat_map(char::to_lowercase).map(GlobPart::Is).collect()
}

/// In how many ways a pattern may be read before it is taken for one that matches everything.
const MAX_READINGS: usize = 32;

/// The pieces of a pattern, in each way in which some shell reads it.
///
/// A `[` begins a set, or stands for itself where the set has no end. Shells differ in where a set ends that begins with
/// `]`, or that has another `[` in it: `[[:s]x` is one of three characters, or none. So such a `[` is both, and its set ends
/// at each `]`.
fn all_readings(glob: &str) -> Vec<Vec<GlobPart>> {
    let mut done = Vec::new();
    let mut open = vec![(Vec::new(), glob)];
    while let Some((mut pieces, mut rest)) = open.pop() {
        if done.len() + open.len() >= MAX_READINGS {
            return vec![vec![GlobPart::Any]];
        }
        while let Some(next) = rest.chars().next() {
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
            match next {
                '*' => pieces.push(GlobPart::Any),
                '?' => pieces.push(GlobPart::One),
                '[' => match after_set(rest) {
                    Some(after) => {
                        rest = after;
                        pieces.push(GlobPart::One);
                    }
                    None => {
                        let ends = rest.match_indices(']').take(MAX_READINGS);
                        open.extend(ends.filter_map(|(end, _)| {
                            let set = [&pieces[..], &[GlobPart::One]].concat();
                            Some((set, rest.get(end + 1..)?))
                        }));
                        pieces.push(GlobPart::Is('['));
                    }
                },
                next => pieces.extend(next.to_lowercase().map(GlobPart::Is)),
            }
        }
        done.push(pieces);
    }
    done
}

/// The text after the `]` of a set whose `[` was read, where all shells agree about it.
fn after_set(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix(['!', '^']).unwrap_or(text);
    let start = rest;
    loop {
        if let Some(class) = CLASSES.iter().find_map(|class| rest.strip_prefix(class)) {
            rest = class;
            continue;
        }
        let next = rest.chars().next()?;
        match next {
            '[' => return None,
            ']' if rest.len() == start.len() => return None,
            ']' => return rest.get(1..),
            _ => rest = rest.get(next.len_utf8()..)?,
        }
    }
}

/// The classes of characters that all shells know.
const CLASSES: &[&str] = &[
    "[:alnum:]",
    "[:alpha:]",
    "[:blank:]",
    "[:cntrl:]",
    "[:digit:]",
    "[:graph:]",
    "[:lower:]",
    "[:print:]",
    "[:punct:]",
    "[:space:]",
    "[:upper:]",
    "[:xdigit:]",
];

/// Returns `true` if some text matches both patterns.
///
/// Two patterns have a text in common if the first can take what the second needs, character by character. `Any` may
/// take nothing or one more. We compute this from the end, row by row, in time and space of the product of both
/// lengths.
fn meets(one: &[GlobPart], other: &[GlobPart]) -> bool {
    // Row by row: whether the rest of `one` from here and the rest of `other` from each place have a text in common.
    let mut below: Vec<bool> = (0..=other.len())
        .map(|at| {
            other.get(at..).is_some_and(|rest| rest.iter().all(|piece| *piece == GlobPart::Any))
        })
        .collect();
    for mine in one.iter().rev() {
        let mut row = vec![false; other.len() + 1];
        let at_end = below.last().copied().unwrap_or_default();
        if let Some(last) = row.last_mut() {
            *last = *mine == GlobPart::Any && at_end;
        }
        for (at, theirs) in other.iter().enumerate().rev() {
            let get = |row: &[bool], at: usize| row.get(at).copied().unwrap_or_default();
            let found = match (mine, theirs) {
                (GlobPart::Any, _) => get(&below, at) || get(&row, at + 1),
                (_, GlobPart::Any) => get(&row, at + 1) || get(&below, at),
                (GlobPart::Is(mine), GlobPart::Is(theirs)) => mine == theirs && get(&below, at + 1),
                _ => get(&below, at + 1),
            };
            if let Some(place) = row.get_mut(at) {
                *place = found;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or_default()
}

/// Returns `true` if a `..` follows a glob: the glob may match a link, so that `..` leads anywhere.
pub(crate) fn after_glob(text: &str) -> bool {
    text.split('/').skip_while(|part| !part.contains(['*', '?', '['])).any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::{fits, may_match, with_stars};

    #[test]
    fn a_bracket_that_shells_read_differently_is_a_set_and_itself() {
        for (glob, name) in [
            ("[[:s]erver.k*", "server.key"),
            ("[s[:]erver.k*", "server.key"),
            ("[[=s=]]erver.k*", "server.key"),
            ("[[.s.]]erver.k*", "server.key"),
            ("[[:alpha:]]x", "ax"),
            (":[!]", ":x"),
            ("a[]x]b", "axb"),
            ("[ab", "[ab"),
            ("[[...slug]].tsx", "[[...slug]].tsx"),
            ("[!]]", "x]"),
        ] {
            assert!(fits(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("[[:alpha:]]x", "abx"),
            ("[a-c].rs", "src.rs"),
            ("[[...slug]].tsx", "slug.tsx"),
            ("[ab", "a"),
        ] {
            assert!(!fits(glob, name), "{glob} {name}");
        }
    }

    #[test]
    fn a_pattern_of_a_rule_and_one_of_a_shell_have_a_name_in_common() {
        assert!(may_match("payroll.csv", "[o-q]ayroll.csv") && may_match("*.pem", "s[d-f]rver*"));
        assert!(!may_match("payroll.csv", "[o-q]ayroll.tsv") && !may_match("[id]", "a"));
        assert_eq!(with_stars(".g[[:i]t"), ".g*t");
        // Twenty sets of which none has a certain end are one that matches everything.
        assert!(fits(&"[[]".repeat(20), "x"));
    }
}
