//! The names of files that hold keys, passwords or what was typed: those of the lists in `names.txt`.

use std::path::Path;

use super::paths;
use crate::names::lists::{lower, names};

/// Returns `true` if a path is one of keys or passwords, by the names in it.
///
/// ```
/// use countersign_shell::secrets::is_secret;
/// use std::path::Path;
///
/// for path in [
///     ".env",
///     "web/.env.local",
///     "home/.ssh/config",
///     "client_secret_1.json",
///     "server.key.bak",
///     ".openai_api_key",
///     "stripe_key.txt",
/// ] {
///     assert!(is_secret(Path::new(path)), "{path}");
/// }
/// for path in [".env.example", "src/secrets.py", "secretary.json", "tokens.txt", "public_key.txt", "src/key.rs"] {
///     assert!(!is_secret(Path::new(path)), "{path}");
/// }
/// ```
#[must_use]
pub fn is_secret(path: &Path) -> bool {
    paths::is_secret(&path.to_string_lossy())
}

/// Returns `true` if a pattern may match such a file. None with the ending of code or of a text is one, whatever its name.
///
/// ```
/// use countersign_shell::secrets::may_match;
///
/// assert!(may_match("*") && may_match("*.json") && may_match("src/.e*"));
/// assert!(!may_match("src/**/*.rs") && !may_match("*.md"));
/// ```
#[must_use]
pub fn may_match(pattern: &str) -> bool {
    let pattern = lower(pattern);
    !names("harmless endings").iter().any(|ending| pattern.ends_with(ending))
}
