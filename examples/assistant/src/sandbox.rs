//! The directory that the assistant may use, and the only code that decides which paths are inside it.
//!
//! The stack checks paths before a person is asked, and the tools check them again when they open a file. A path is
//! checked in two forms: as it is written (without `..` and `.`), and as it really is (links followed), component by
//! component, even if its last parts do not exist yet.
//!
//! A check of paths has limits: a hard link cannot be told from the file itself, and another program can swap in a link
//! between the check and the opening. Against other programs, use the operating system's sandbox.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The directory. The model's paths are relative to it, and `~` stands for it.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    /// The directory with every link resolved.
    dir: PathBuf,
    /// The directory as it was named, for absolute paths that are written that way.
    named: PathBuf,
}

/// The refusal of a path. Its text is for the model, and contains only what the model sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The path is empty, or has a backslash or a control character, which tools and people may interpret differently.
    NotPlain(String),
    /// The path points outside the directory, as it is written.
    Outside(String),
    /// The path leads outside the directory through a link, or to a place that cannot be examined.
    LeadsOut(String),
}

impl Sandbox {
    pub(crate) fn new(dir: &Path) -> std::io::Result<Self> {
        let found = Self { dir: dir.canonicalize()?, named: clean(&std::path::absolute(dir)?) };
        match found.dir.is_dir() {
            true => Ok(found),
            false => Err(Error::new(ErrorKind::NotADirectory, "not a directory")),
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// The canonical form of a path: relative, with `/`, without `.`, `..`, doubled slashes and `~`. Only the text is
    /// examined. Normalising twice changes nothing.
    pub(crate) fn normalise(&self, path: &str) -> Result<String, Refused> {
        let odd = |c: char| c == '\\' || c.is_control();
        if path.is_empty() || path.contains(odd) {
            return Err(Refused::NotPlain(path.into()));
        }
        let below_home = path.strip_prefix("~/").or((path == "~").then_some("."));
        let relative = below_home.map_or(path, |rest| rest.trim_start_matches('/'));
        let whole = clean(&self.dir.join(relative));
        // `strip_prefix` compares whole components: `/work-evil` is not in `/work`.
        let inside = whole.strip_prefix(&self.dir).or_else(|_| whole.strip_prefix(&self.named));
        let inside = inside.map_err(|_| Refused::Outside(path.into()))?;
        Ok(written(inside))
    }

    /// The real place of a path, with every link followed, which is inside the directory. The last parts need not
    /// exist.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Refused> {
        let inside = self.dir.join(self.normalise(path)?);
        match real(&inside) {
            Ok(real) if real.starts_with(&self.dir) => Ok(real),
            Ok(_) | Err(_) => Err(Refused::LeadsOut(path.into())),
        }
    }

    /// Both forms of a path, relative to the directory: as it is written, and as it really is.
    pub(crate) fn both(&self, path: &str) -> Result<[String; 2], Refused> {
        let real = self.resolve(path)?;
        let inside = real.strip_prefix(&self.dir).map_err(|_| Refused::LeadsOut(path.into()))?;
        Ok([self.normalise(path)?, written(inside)])
    }
}

/// Removes `.` and `..` from an absolute path, by its text alone.
fn clean(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                clean.push(component);
            }
        }
    }
    clean
}

/// A path inside the directory, as text. A name that begins with `~` gets the prefix `./`, so that it stays a name.
fn written(inside: &Path) -> String {
    let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
    match parts.join("/") {
        empty if empty.is_empty() => ".".into(),
        tilde if tilde.starts_with('~') => format!("./{tilde}"),
        text => text,
    }
}

/// The path with every link followed, as far as it exists.
fn real(path: &Path) -> std::io::Result<PathBuf> {
    let missing = |error: &Error| error.kind() == ErrorKind::NotFound;
    match path.canonicalize() {
        // A dangling link exists itself: writing to it would create its target, so it is not treated as a missing part.
        Err(error) if missing(&error) && path.symlink_metadata().is_err_and(|it| missing(&it)) => {
            match (path.parent(), path.file_name()) {
                (Some(parent), Some(name)) => Ok(real(parent)?.join(name)),
                _ => Err(error),
            }
        }
        found => found,
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlain(path) => write!(f, "`{}` is not a plain path", path.escape_debug()),
            Self::Outside(path) => write!(f, "`{path}` is outside of the workspace"),
            Self::LeadsOut(path) => write!(f, "`{path}` leads out of the workspace"),
        }
    }
}

impl std::error::Error for Refused {}
