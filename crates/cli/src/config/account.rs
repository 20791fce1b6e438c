//! The account that runs this process, as the system knows it, and not as variables of the environment say.
//!
//! A hook is started by a coding agent, whose environment a project can set. `HOME` and `USER` would let it choose whose
//! rules decide, and in whose name.

use std::path::PathBuf;

/// The account of this process in the user database.
#[cfg(unix)]
fn entry() -> Option<nix::unistd::User> {
    nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()
}

/// The home directory of the account, if it has one.
#[cfg(unix)]
pub(crate) fn home() -> Option<PathBuf> {
    entry().map(|user| user.dir).filter(|home| home.is_absolute())
}

/// The name of the account, or else its number.
#[cfg(unix)]
pub(super) fn name() -> String {
    let named = entry().map(|user| user.name).filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| format!("uid {}", nix::unistd::geteuid().as_raw()))
}

#[cfg(not(unix))]
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

#[cfg(not(unix))]
pub(super) fn name() -> String {
    let named = std::env::var("USERNAME").ok().filter(|name| !name.trim().is_empty());
    named.unwrap_or_else(|| "local user".to_owned())
}
