//! Variables that version managers, package managers and editors set anew in each terminal.
//!
//! They have another value than at the installation of a hook, and installing it again does not help: the next terminal
//! has another one. What they may say is little, and it is read: the number of a version, a folder outside of the project
//! that a manager keeps, a proxy, and the flags of a debugger. A file of a project that sets one of them is another matter,
//! so the one who asks knows where the value is from.

use std::path::{Path, PathBuf};

use crate::names::lists::names;

/// The daily value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DailyValue {
    /// It says only what it says.
    Text,
    /// Files and folders, which have to lie outside of the project.
    Places(Vec<PathBuf>),
}

/// The daily value of a variable with this name; `None` where it has none.
pub(super) fn find(name: &str, value: &str) -> Option<DailyValue> {
    let is_of = |list: &str| names(list).iter().any(|pattern| is_named(pattern, name));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    if is_of("daily versions") && value.chars().all(is_plain) && !value.starts_with(['.', '-']) {
        return Some(DailyValue::Text);
    }
    if is_of("daily proxies") && is_proxy(value) {
        return Some(DailyValue::Text);
    }
    if is_of("daily places") {
        return place(value).map(|place| DailyValue::Places(vec![place]));
    }
    if name == "NODE_OPTIONS" {
        return loaded_by_node(value).map(DailyValue::Places);
    }
    None
}

impl DailyValue {
    /// Returns `true` if it names no place in this directory, in a temporary one, or that is not there.
    pub(super) fn is_outside_of(&self, directory: &Path) -> bool {
        let Self::Places(places) = self else { return true };
        let real = |path: &Path| path.canonicalize().ok();
        let temporary = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev".into()];
        let inside: Vec<_> = temporary.iter().chain([&directory.to_owned()]).cloned().collect();
        places.iter().all(|place| {
            // The folders in there are others for each process.
            if place.starts_with("/proc") {
                return false;
            }
            // npm names the files of its settings where they would be.
            let Some(found) = place.ancestors().find_map(real) else { return false };
            let is_in = |folder: &PathBuf| {
                place.starts_with(folder)
                    || found.starts_with(folder.canonicalize().as_deref().unwrap_or(folder))
            };
            !inside.iter().any(is_in) && !found.starts_with("/proc")
        })
    }
}

/// Returns `true` if a name is one of a pattern: in any case, and with anything in place of a `*` at its end.
pub(super) fn is_named(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => {
            name.get(..start.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(start))
        }
        None => name.eq_ignore_ascii_case(pattern),
    }
}

/// A whole path without a way up.
fn place(value: &str) -> Option<PathBuf> {
    let path = Path::new(value);
    let is_whole = path.is_absolute() && !value.split('/').any(|part| part == "..");
    (is_whole && !value.contains([':', ';', '\n', ' '])).then(|| path.to_owned())
}

/// The address of a proxy, or a list of hosts without one.
fn is_proxy(value: &str) -> bool {
    let address = value.split_once("://").map_or(value, |(scheme, rest)| {
        let is_known = ["http", "https", "socks4", "socks5", "socks5h"].contains(&scheme);
        if is_known { rest } else { "\n" }
    });
    address
        .trim_end_matches('/')
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || ".:-_,*[]@ ".contains(c))
}

/// The files that Node is told to load, where everything else only changes its limits and its warnings.
pub(super) fn loaded_by_node(value: &str) -> Option<Vec<PathBuf>> {
    let mut places = Vec::new();
    let mut words = value.split_whitespace();
    while let Some(word) = words.next() {
        let (option, given) =
            word.split_once('=').map_or((word, None), |(it, value)| (it, Some(value)));
        match option {
            "--require" | "-r" | "--import" => {
                let file = place(given.or_else(|| words.next())?.trim_matches('"'))?;
                places.push(file);
            }
            _ if names("flags of node").contains(&option) => {}
            _ => return None,
        }
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daily_place_lies_outside_of_the_project() {
        let project = Path::new("/usr/share");
        let is_outside = |value: &str| {
            find("FNM_MULTISHELL_PATH", value).is_some_and(|it| it.is_outside_of(project))
        };
        assert!(is_outside("/usr/lib/fnm_multishells/1_2"));
        for value in ["/usr/share/x", "/usr/lib/../share/x", "/tmp/x", "./x", "x", "/proc/self/cwd"]
        {
            assert!(!is_outside(value), "{value}");
        }
        let is_node =
            |value: &str| find("NODE_OPTIONS", value).is_some_and(|it| it.is_outside_of(project));
        assert!(is_node("--max-old-space-size=4096 --require /usr/lib/js-debug/bootloader.js"));
        assert!(!is_node("--require /usr/share/x.js") && !is_node("--require ./x.js"));
        assert!(!is_node("--loader /usr/lib/x.js") && !is_node("--require"));
        assert!(
            find("http_proxy", "file:///x").is_none() && find("PYENV_VERSION", "a/b").is_none()
        );
    }
}
