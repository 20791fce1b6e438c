//! The places that a path in an argument may stand for: as it is written, and as it is resolved.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::shell::{self, lexically_normal};

/// The longest text that is taken for a path.
const MAX_PATH: usize = 4096;

/// The directories that paths are relative to.
#[derive(Debug, Clone)]
pub(super) struct Places {
    root: PathBuf,
    home: Option<PathBuf>,
    /// Whether files are looked at, so that links are followed.
    looks: bool,
}

impl Places {
    pub(super) fn new(root: &Path) -> Self {
        let absolute = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let root = std::fs::canonicalize(&absolute).unwrap_or(absolute);
        Self { root: lexically_normal(&root), home: std::env::home_dir(), looks: true }
    }

    pub(super) fn lexical(root: &Path) -> Self {
        Self { root: lexically_normal(root), home: None, looks: false }
    }

    pub(super) fn set_home(&mut self, home: PathBuf) {
        self.home = Some(home);
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(super) fn looks(&self) -> bool {
        self.looks
    }

    /// The same directories for the module that judges commands.
    pub(super) fn workspace(&self) -> shell::Workspace {
        let workspace = if self.looks {
            shell::Workspace::new(&self.root)
        } else {
            shell::Workspace::lexical(&self.root)
        };
        match &self.home {
            Some(home) => workspace.with_home(home),
            None => workspace,
        }
    }

    /// The places that a text stands for, relative to a directory. `Err` says why that cannot be known.
    pub(super) fn of(&self, text: &str, directory: &Path) -> Result<Vec<PathBuf>, &'static str> {
        if text.is_empty() {
            return Err("is empty");
        }
        if text.len() > MAX_PATH {
            return Err("is too long for a path");
        }
        if text.contains('\0') {
            return Err("contains a NUL");
        }
        let written = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => match &self.home {
                Some(home) => home.join(rest.trim_start_matches('/')),
                None => return Err("is in a home directory that is not known"),
            },
            Some(rest) if rest.contains('/') => {
                return Err("may be in the home directory of another user");
            }
            _ => directory.join(text),
        };
        let mut places = vec![lexically_normal(&written)];
        if self.looks {
            let Some(resolved) = existing(&written) else {
                return Err("cannot be resolved to a file");
            };
            let resolved = lexically_normal(&resolved);
            if !places.contains(&resolved) {
                places.push(resolved);
            }
        }
        Ok(places)
    }
}

/// Resolves a path. `..` after what does not exist leads where its text says.
fn existing(path: &Path) -> Option<PathBuf> {
    shell::resolved(path, |path| existing(&lexically_normal(path)))
}

/// The text with `%2e` and the like decoded, if that makes a difference.
pub(super) fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return None;
    }
    let hex = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or(b'%'));
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    let out = String::from_utf8_lossy(&out).into_owned();
    (out != text).then_some(out)
}

/// The forms in which a string may be used as a path: as it is, without `file:`, and percent-decoded, twice over.
pub(super) fn forms(text: &str) -> Vec<Cow<'_, str>> {
    let mut forms = vec![Cow::Borrowed(text)];
    if let Some(rest) = text.strip_prefix("file:") {
        let path = rest
            .strip_prefix("//")
            .map_or(rest, |rest| rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest));
        forms.push(Cow::Borrowed(path));
    }
    if text.contains('\\') {
        forms.push(Cow::Owned(text.replace('\\', "/")));
    }
    for at in 0..forms.len() {
        let mut current = forms.get(at).map(|form| form.to_string()).unwrap_or_default();
        for _ in 0..2 {
            let Some(decoded) = percent_decoded(&current) else { break };
            forms.push(Cow::Owned(decoded.clone()));
            current = decoded;
        }
    }
    forms
}
