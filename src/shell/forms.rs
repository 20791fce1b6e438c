//! Judges what stands in no operand: the input of a program, and the services that it talks to unasked.
//!
//! A program that is given code as its input may run it (`echo CODE | tsx`), so only one that the table calls a reader of
//! text may follow a pipe, or have a here-document or a file as its input. The rest of a command's words says nothing
//! about that.
//!
//! A registry, in which a package manager looks up names, may be one that a file of the workspace names. Asking it is then
//! no query of a service that the user has chosen.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::commands::{Redirection, RedirectionTarget};
use super::judgement::Effect;
use super::paths::Workspace;
use super::preset::Preset;
use super::simple::{Judging, Simple};
use super::table::{Does, Matched};

/// How many bytes of a file of configuration are read.
pub(super) const MAX_CONFIGURATION: u64 = 64 * 1024;

/// Whether redirections give a command its input. `/dev/null` is empty.
pub(super) fn feeds(redirections: &[Redirection]) -> bool {
    redirections.iter().any(|one| match &one.target {
        RedirectionTarget::Read(word) => word.literal() != Some("/dev/null"),
        RedirectionTarget::HereString(_) | RedirectionTarget::HereDocument(_) => true,
        _ => false,
    })
}

impl Simple<'_> {
    /// Asks about a program that gets input and may do what it says.
    pub(super) fn input(&mut self, name: &str, matched: &Matched<'_, '_>) {
        // A program that runs another hands its input on, and that one is judged by itself.
        let is_judged = !matched.inner.is_empty() || matches!(matched.does, Does::Asks(_));
        if self.fed && !matched.always.reads_text && !is_judged {
            self.ask(format!("`{name}` may run what it reads from its input"));
        }
    }

    pub(super) fn queries(
        &mut self,
        judging: &Judging<'_>,
        name: &str,
        who: &str,
        registry: &[String],
    ) {
        self.effects.push(Effect::Queries(who.to_owned()));
        if let Some((file, host)) = judging.settings.workspace.names_host(registry, &self.here) {
            self.effects.push(Effect::Sends(host.unwrap_or_else(|| file.clone())));
            self.ask(format!("`{name}` talks to a host that `{file}` of the workspace names"));
        } else if judging.settings.preset == Preset::Reader {
            self.ask(format!("`{name}` talks to {who}"));
        }
    }
}

impl Workspace {
    /// The first of these files, in one of these directories or above it in the workspace, that names a host; with the
    /// host or URL, where one can be read. None in a [`lexical`](Self::lexical) workspace.
    fn names_host(&self, files: &[String], here: &[PathBuf]) -> Option<(String, Option<String>)> {
        if !self.looks() || files.is_empty() {
            return None;
        }
        let inside = |at: &&Path| at.starts_with(self.root());
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
