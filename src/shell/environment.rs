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

/// Whether a variable's value is public, so that a command may print it.
pub(super) fn is_public(name: &str) -> bool {
    names("public variables").contains(&name)
}
