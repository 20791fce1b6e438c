//! Environment variables that may be set for a command, or printed by one.

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
