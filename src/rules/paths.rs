//! The places that a path in an argument may stand for: as it is written, and as it is resolved.
//!
//! A path has two meanings, and an attacker chooses which of them a rule sees. As it is *written*, `a/../.env` is
//! `.env`; as it is *resolved*, `a` may be a link to another folder, and the file is elsewhere. Both are computed, and
//! a rule that allows needs both, while a strict one needs one of them.
//!
//! | text, in `/w` | written | resolved |
//! |---|---|---|
//! | `src/lib.rs` | `/w/src/lib.rs` | the same |
//! | `a/../.env`, `a` → `/etc` | `/w/.env` | `/.env` |
//! | `new/file`, not there yet | `/w/new/file` | what exists of it, and the rest |
//! | `gone`, a link to nothing | `/w/gone` | unknown: it may lead anywhere later |
//! | `~ann/x` | – | unknown: the home of another user |
//!
//! What a file system does between this look and the tool's own opening of the file is not known here; the question is
//! bound to what was resolved.

use std::path::{Path, PathBuf};

use crate::reader::argument::MAX_PATH;
use crate::shell::{self, lexically_normal, resolved};

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
        if text.contains('\0') {
            return Err("contains a NUL");
        }
        let written = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => match &self.home {
                Some(home) => home.join(rest.trim_start_matches('/')),
                None => return Err("is in a home directory that is not known"),
            },
            // `~` ends the name of a copy that an editor has made: `notes.md~`, and never begins one.
            Some(_) => return Err("may be in the home directory of another user"),
            None => directory.join(text),
        };
        let normal = lexically_normal(&written);
        if normal.as_os_str().len() > MAX_PATH {
            return Err("is too long for a path");
        }
        let mut places = vec![normal];
        if self.looks {
            // The kernel follows a link before `..`, and a program that shortens paths by their text does not.
            let shortened = text.contains("..").then(|| lexically_normal(&written));
            let given = (written.as_os_str().len() <= MAX_PATH).then_some(&written);
            for path in given.into_iter().chain(&shortened) {
                let Some(resolved) = existing(path) else {
                    return Err("cannot be resolved to a file");
                };
                let resolved = lexically_normal(&resolved);
                if !places.contains(&resolved) {
                    places.push(resolved);
                }
            }
        }
        Ok(places)
    }
}

/// Resolves a path. `..` after what does not exist leads where its text says.
fn existing(path: &Path) -> Option<PathBuf> {
    resolved(path, |path| existing(&lexically_normal(path)))
}
