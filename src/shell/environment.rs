//! Environment variables that change no more than what a program prints.

use super::names::names;

/// Whether a command may be given this variable.
pub(super) fn may_be_set(name: &str, value: &str) -> bool {
    // A value that is a path could name code to load, whatever the variable is for.
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

/// Whether a variable's value may be printed.
pub(super) fn is_public(name: &str) -> bool {
    names("public variables").contains(&name)
}
