//! Finds files of the workspace that name the host which a package manager asks.
//!
//! A registry, in which a package manager looks up names, is the user's choice, unless a file of the workspace names one.
//! Asking that one is no query of a service that the user has chosen.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::paths::Workspace;

/// How many bytes of a file of configuration are read.
const MAX_CONFIGURATION: u64 = 64 * 1024;

/// The first of these files, in one of these directories or above it in the workspace, that names a host; with the
/// host or URL, where one can be read. None in a [`lexical`](Workspace::lexical) workspace.
pub(super) fn names_host(
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
            let host = match bounded(&at.join(file)) {
                Ok(text) => host_in(&text?)?,
                Err(_) => None,
            };
            Some((file.clone(), host))
        })
    })
}

/// The text of a file of configuration; `None` if there is none. An error if it is too large, or cannot be read.
pub(super) fn bounded(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    // A pipe would be waited for.
    if !file.metadata()?.is_file() {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_CONFIGURATION + 1).read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MAX_CONFIGURATION => {
            Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
        }
        _ => Err(std::io::ErrorKind::FileTooLarge.into()),
    }
}

/// Whether a file of configuration names a host, and the first URL that stands there or behind.
fn host_in(text: &str) -> Option<Option<String>> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let names = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        HOST_KEYS.iter().any(|key| lower.contains(key))
    };
    let mut named = lines.skip_while(|line| !names(line)).peekable();
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
