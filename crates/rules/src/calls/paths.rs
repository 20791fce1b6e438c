//! The places that a path in an argument may stand for: as it is written, and as it is resolved.
//!
//! A path has two meanings, and an attacker chooses which of them a rule sees. As it is *written*, `a/../.env` is
//! `.env`. As it is *resolved*, `a` may be a link to another folder, and the file is elsewhere. We compute both. A
//! rule that allows needs both, while a strict one needs one of them.
//!
//! | text, in `/w` | written | resolved |
//! |---|---|---|
//! | `src/lib.rs` | `/w/src/lib.rs` | the same |
//! | `a/../.env`, `a` → `/etc` | `/w/.env` | `/.env` |
//! | `new/file`, not there yet | `/w/new/file` | what exists of it, and the rest |
//! | `/link/x`, where the root was given as `/link` | `/w/x` | the same |
//! | `gone`, a link to nothing | `/w/gone` | unknown: it may lead anywhere later |
//! | `~ann/x` | – | unknown: the home of another user |
//!
//! We cannot see how the file system changes between this look and the moment when the tool opens the file. So a question
//! is bound to the places that were resolved.

use std::path::{Path, PathBuf};

use crate::readings::argument::MAX_PATH;
use countersign_shell::{self, lexically_normal, resolved};

/// The directories that paths are relative to.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    root: PathBuf,
    /// The root as it was given, where that is a link to it.
    linked: Option<PathBuf>,
    home: Option<PathBuf>,
    /// `true` if files are looked at, so that links are followed.
    looks: bool,
}

impl Places {
    pub(crate) fn new(root: &Path) -> Self {
        let absolute = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        let root = std::fs::canonicalize(&absolute).unwrap_or_else(|_| absolute.clone());
        let linked = Some(lexically_normal(&absolute)).filter(|it| *it != root);
        Self { root: lexically_normal(&root), linked, home: std::env::home_dir(), looks: true }
    }

    pub(crate) fn lexical(root: &Path) -> Self {
        Self { root: lexically_normal(root), linked: None, home: None, looks: false }
    }

    pub(crate) fn set_home(&mut self, home: PathBuf) {
        self.home = Some(home);
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// A path that is written through the link to the root is one of the root.
    fn unlinked(&self, path: PathBuf) -> PathBuf {
        match self.linked.as_ref().and_then(|linked| path.strip_prefix(linked).ok()) {
            Some(inner) => lexically_normal(&self.root.join(inner)),
            None => path,
        }
    }

    /// The same directories for the module that judges commands.
    pub(crate) fn workspace(&self) -> countersign_shell::Workspace {
        let workspace = if self.looks {
            countersign_shell::Workspace::new(&self.root)
        } else {
            countersign_shell::Workspace::lexical(&self.root)
        };
        match &self.home {
            Some(home) => workspace.with_home(home),
            None => workspace,
        }
    }

    /// The places that a text stands for, relative to a directory. `Err` says why that cannot be known.
    pub(crate) fn of(&self, text: &str, directory: &Path) -> Result<Vec<PathBuf>, &'static str> {
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
        let normal = self.unlinked(lexically_normal(&written));
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

/// Returns `true` if a folder is the root of the file system or a home directory, or holds one.
pub(crate) fn is_wide(folder: &Path) -> bool {
    let of_users = ["/home", "/Users", "/var/home"].map(Path::new);
    let is_home = folder.parent().is_none_or(|parent| of_users.contains(&parent));
    let holds = |home: &Path| home.starts_with(folder);
    let own = std::env::home_dir();
    is_home
        || of_users.into_iter().any(holds)
        || holds(Path::new("/root"))
        || own.as_deref().is_some_and(holds)
}
