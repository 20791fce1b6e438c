//! Patterns of file names: whether a pattern may match a name that holds secrets.
//!
//! `cat *` may print a secret, and so may every other pattern; asking about each would make the classifier useless, as
//! listing and counting files is what agents do all day. So a pattern is asked about if it is *specific* enough to be
//! meant for secrets: `.e*`, `*.pem`, `id_*`, and not `*` or `*.json`. What a pattern matches right now is looked at as
//! well (`Workspace::matches`), so that `*` in a folder with a `.pem` file asks.
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
    glob.split('/').filter(|part| is_glob(part)).any(|part| {
        if part.len() > MAX_PART {
            return true;
        }
        let pieces = pieces(part);
        let letters = pieces.iter().filter(|piece| matches!(piece, GlobPart::Is(_))).count();
        let begins = pieces.first().is_some_and(|piece| *piece != GlobPart::Any);
        if letters < 2 && !part.starts_with('.') {
            return false;
        }
        let ending = |ending: &str| {
            is_about_ending(&pieces, ending)
                && meets(&pieces, &[&[GlobPart::Any][..], &literal(ending)].concat())
        };
        let named = |name: &str| {
            let usual = names("usual endings").iter().any(|ending| name.ends_with(ending));
            (begins || !usual) && meets(&pieces, &literal(name))
        };
        names("secret files").iter().any(|name| named(name))
            || names("secret folders").iter().any(|name| named(name))
            || [".env.local", ".env.production"].iter().any(|name| named(name))
            || names("secret endings").iter().any(|name| ending(name))
    })
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

/// Returns `true` if a name matches a pattern, in which a `[…]` matches any one character.
pub(crate) fn fits(glob: &str, name: &str) -> bool {
    meets(&pieces(glob), &literal(name))
}

fn literal(text: &str) -> Vec<GlobPart> {
    text.chars().map(|c| GlobPart::Is(c.to_ascii_lowercase())).collect()
}

fn pieces(glob: &str) -> Vec<GlobPart> {
    let mut pieces = Vec::new();
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        rest = rest.get(next.len_utf8()..).unwrap_or_default();
        pieces.push(match next {
            '*' => GlobPart::Any,
            '?' => GlobPart::One,
            '[' => match after_set(rest) {
                Some(after) => {
                    rest = after;
                    GlobPart::One
                }
                None => GlobPart::Is('['),
            },
            next => GlobPart::Is(next.to_ascii_lowercase()),
        });
    }
    pieces
}

/// The text after the `]` of a set whose `[` was read. A `]` right at the beginning belongs to the set, and so do those
/// of classes (`[:alpha:]`).
fn after_set(text: &str) -> Option<&str> {
    let mut rest = text.strip_prefix(['!', '^']).unwrap_or(text);
    rest = rest.strip_prefix(']').unwrap_or(rest);
    loop {
        if let Some(class) = rest.strip_prefix("[:") {
            rest = class.split_once(":]")?.1;
            continue;
        }
        let next = rest.chars().next()?;
        rest = rest.get(next.len_utf8()..)?;
        if next == ']' {
            return Some(rest);
        }
    }
}

/// Returns `true` if some text matches both patterns.
///
/// Two patterns have a text in common if the first can take what the second needs, character by character; `Any` may
/// take nothing or one more. Computed from the end, row by row, in time and space of the product of both lengths.
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
