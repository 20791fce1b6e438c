//! Environment variables that may be set for a command, or printed by one.
//!
//! A variable may name code that a program loads, a pager that it runs, or a server that it asks. There are too many to
//! list the dangerous ones, so the harmless ones are listed: names that change how a program prints (`LANG`, `TZ`,
//! `NO_COLOR`), with plain values of at most 200 bytes that are no paths.
//!
//! The reverse holds for printing: a variable's value is a secret until its name is in the list of public ones (`PATH`,
//! `HOME`).

use super::names::names;

/// Whether a command may run with this variable: only names that change no more than how a program prints.
pub(super) fn may_be_set(name: &str, value: &str) -> bool {
    // A path is refused for every variable, as it could name code to load.
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | ',' | '=' | ':' | '*' | '+' | '@' | ' ' | '/')
    };
    let path = value.starts_with(['/', '~', '.']) || value.contains("../") || value.contains("/.");
    let zone = name == "TZ" && value.starts_with(':');
    names("settable variables").contains(&name)
        && value.len() <= 200
        && value.chars().all(plain)
        && !path
        && !zone
}

/// Whether a variable names places of the workspace in which a build finds code: `PYTHONPATH=src`. A build runs the code
/// of the workspace anyway, and no other program may be given such a variable.
pub(super) fn names_workspace_code(name: &str, value: &str) -> bool {
    let inside = |path: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        !path.is_empty()
            && !path.starts_with(['/', '~', '-'])
            && path.chars().all(plain)
            && path.split('/').all(|part| part != "..")
    };
    names("variables of code").contains(&name) && value.len() <= 200 && value.split(':').all(inside)
}

/// Whether a variable has options for a compiler that only change its warnings and its optimisation.
pub(super) fn has_harmless_flags(name: &str, value: &str) -> bool {
    let known = |flag: &str| names("compiler flags").contains(&flag);
    let lint =
        |flag: &str| flag.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-' | ':'));
    let mut flags = value.split_whitespace();
    while let Some(flag) = flags.next() {
        let harmless = match flag {
            "-D" | "-A" | "-W" => flags.next().is_some_and(lint),
            "-C" => flags.next().is_some_and(known),
            flag => known(flag) || flag.strip_prefix("-W").is_some_and(lint),
        };
        if !harmless {
            return false;
        }
    }
    names("variables of compilers").contains(&name)
}

/// Whether a variable's value is public, so that a command may print it.
pub(super) fn is_public(name: &str) -> bool {
    names("public variables").contains(&name)
}
