//! The directory that the assistant may touch, and the one place that knows which paths are in it.
//!
//! The stack asks it before anybody is asked; the tools ask it again when they open a file. A path is looked at
//! twice: as it is written (`..` and `.` taken out) and as it really is (links followed), component by component,
//! also when its last parts do not exist yet.
//!
//! What paths cannot tell: a hard link is the file itself, and a link that another program swaps in between the
//! check and the opening wins the race. Against other programs, use the operating system's own sandbox.

use std::fmt;
use std::io::{Error, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The directory. The model's paths are relative to it, and `~` is it.
#[derive(Debug, Clone)]
pub(crate) struct Sandbox {
    /// Every link resolved.
    dir: PathBuf,
    /// As it was named, for absolute paths that are written that way.
    named: PathBuf,
}

/// Why a path is refused. The text is for the model: it names what the model sent and nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is written in a way that tools and people may read differently.
    NotPlain(String),
    /// It points out of the directory, as it is written.
    Outside(String),
    /// It leads out of the directory through a link, or somewhere that cannot be looked at.
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

    /// The one way to write a path: relative, with `/`, without `.`, `..`, doubled slashes and `~`. Only the text is
    /// looked at. Normalising twice changes nothing.
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

    /// Where a path really is: inside, with every link followed. The last parts need not exist.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, Refused> {
        let inside = self.dir.join(self.normalise(path)?);
        match real(&inside) {
            Ok(real) if real.starts_with(&self.dir) => Ok(real),
            Ok(_) | Err(_) => Err(Refused::LeadsOut(path.into())),
        }
    }

    /// Both ways to see a path: as it is written, and where it really is.
    pub(crate) fn both(&self, path: &str) -> Result<[String; 2], Refused> {
        let real = self.resolve(path)?;
        let inside = real.strip_prefix(&self.dir).map_err(|_| Refused::LeadsOut(path.into()))?;
        Ok([self.normalise(path)?, written(inside)])
    }
}

/// Takes `.` and `..` out of an absolute path.
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

/// A path inside, as text. A name that begins with `~` gets `./` in front, so that it stays a name.
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
        // A link to something that does not exist is there itself: writing to it would create its target.
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
