//! Finds files of the workspace that name the host which a package manager asks.
//!
//! A registry, in which a package manager looks up names, is the user's choice, unless a file of the workspace names one.
//! Asking that one is no query of a service that the user has chosen.

use std::path::{Path, PathBuf};

use super::files::bounded_text;
use super::paths::Workspace;

/// How many bytes of a file of configuration are read.
pub(super) const MAX_CONFIGURATION: u64 = 64 * 1024;

/// The first of these files, in one of these directories or above it in the workspace, that names a host; with the
/// host or URL, where one can be read. None in a [`lexical`](Workspace::lexical) workspace.
pub(crate) fn names_host(
    workspace: &Workspace,
    files: &[String],
    here: &[PathBuf],
) -> Option<(String, Option<String>)> {
    if !workspace.looks() || files.is_empty() {
        return None;
    }
    let inside = |at: &&Path| at.starts_with(workspace.root());
    let mut places = here.iter().flat_map(|at| at.ancestors().take_while(inside));
    places.find_map(|at| {
        files.iter().find_map(|file| {
            let host = match bounded_text(&at.join(file), MAX_CONFIGURATION) {
                Ok(text) => host_in(&text?)?,
                Err(_) => None,
            };
            Some((file.clone(), host))
        })
    })
}

/// The lines of a file of settings without blanks around them, and without comments. npm, Python and readers of YAML end a line at a
/// `\r` alone, too.
pub(super) fn lines_of_settings(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '\r']).map(str::trim).filter(|line| !line.starts_with(['#', ';']))
}

/// Returns whether a file of configuration names a host, and the first URL that stands there or behind.
fn host_in(text: &str) -> Option<Option<String>> {
    let names = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        HOST_KEYS.iter().any(|key| lower.contains(key))
    };
    let mut named = lines_of_settings(text).skip_while(|line| !names(line)).peekable();
    named.peek()?;
    let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ',');
    let url = named.find_map(|line| {
        let before = line.get(..line.find("://")?)?;
        let from = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '+').len();
        line.get(from..)?.split(is_end).next().map(str::to_owned)
    });
    Some(url)
}

/// Parts of the keys by which package managers are told which host to ask.
const HOST_KEYS: &[&str] = &[
    "registry",
    "registries",
    "index-url",
    "[[index",
    "tool.uv.index",
    "tool.poetry.source",
    "[source",
    "[[source",
    "replace-with",
    "find-links",
    "proxy",
    "mirror",
];
