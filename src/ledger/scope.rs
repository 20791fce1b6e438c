//! The scope of a grant: a run, a session, or a project, which is a directory on one machine.
//!
//! A project is the widest scope, and a directory is easily wider than it looks. So we refuse some directories as
//! projects, after we have resolved symbolic links:
//!
//! | directory | why |
//! |---|---|
//! | the root of the file system, a home directory, everything above one | it has the keys and the configuration of everything else |
//! | a temporary directory | every program of the machine could put a project of its choice there |
//!
//! A project has the name of its machine, because the same path on another machine is another directory.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The largest file that a grant can be bound to, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The scope of a grant. No scope is wider than a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "of", rename_all = "snake_case")]
#[non_exhaustive]
pub enum GrantScope {
    /// In the run with this id.
    Run(String),
    /// In the session with this id, as the host has named it ([`Ledger::session`](super::Ledger::session)).
    Session(String),
    /// In this project: a directory on a machine ([`Ledger::project`](super::Ledger::project)).
    Project(Project),
}

/// The error of a grant that cannot be made, or of a directory that cannot be its project.
///
/// ```
/// use countersign::ledger::Project;
/// let error = Project::at("build-7", "/").unwrap_err();
/// assert!(error.to_string().contains("root of the file system"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no such grant can be made: {problem}")]
pub struct GrantError {
    problem: String,
}

impl GrantError {
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into() }
    }
}

/// A project: a directory on one machine, by its canonical path (rule G1).
///
/// ```
/// use countersign::ledger::Project;
///
/// assert!(Project::at("build-7", "/").is_err(), "no project is the whole machine");
/// assert!(Project::at("build-7", std::env::temp_dir()).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    host: String,
    root: String,
}

impl Project {
    /// The project in a directory of the machine named `host`. Symbolic links in the path are resolved.
    ///
    /// # Errors
    /// [`GrantError`] when the directory cannot be resolved, is the root of the file system, a home directory or above
    /// one, or a temporary directory or in one.
    pub fn at(host: impl Into<String>, directory: impl AsRef<Path>) -> Result<Self, GrantError> {
        let (host, given) = (host.into(), directory.as_ref());
        let refused = |why: &str| {
            GrantError::new(format!("`{}` cannot be a project: {why}", given.display()))
        };
        if host.trim().is_empty() {
            return Err(refused("its machine has no name"));
        }
        let root = given.canonicalize().map_err(|error| refused(&error.to_string()))?;
        if !root.is_dir() {
            return Err(refused("it is not a directory"));
        }
        if let Some(why) = too_wide(&root) {
            return Err(refused(why));
        }
        let temporary = [std::env::temp_dir(), "/tmp".into(), "/var/tmp".into(), "/dev/shm".into()];
        let canonical = |path: PathBuf| path.canonicalize().ok();
        if temporary.into_iter().filter_map(canonical).any(|it| root.starts_with(it)) {
            return Err(refused("it is a temporary directory, or in one"));
        }
        let root = root.to_str().ok_or_else(|| refused("its path is not Unicode"))?.to_owned();
        Ok(Self { host, root })
    }

    /// The reason why a directory is wider than any project: it is the root of the file system, a home directory or
    /// above one. `None` for every other directory, and for a path that is no directory.
    ///
    /// If your program takes its working directory for a project, ask this first, as clients start programs
    /// anywhere.
    ///
    /// ```
    /// use countersign::ledger::Project;
    ///
    /// assert_eq!(Project::too_wide("/"), Some("it is the root of the file system"));
    /// assert_eq!(Project::too_wide(std::env::temp_dir()), None);
    /// ```
    pub fn too_wide(directory: impl AsRef<Path>) -> Option<&'static str> {
        too_wide(&directory.as_ref().canonicalize().ok()?)
    }

    /// The project in a directory of this machine, as [`at`](Self::at) makes it.
    ///
    /// # Errors
    /// [`GrantError`] as of [`at`](Self::at), and when this machine has no name.
    pub fn here(directory: impl AsRef<Path>) -> Result<Self, GrantError> {
        let named = |path: &str| std::fs::read_to_string(path).ok();
        let host = named("/proc/sys/kernel/hostname").or_else(|| named("/etc/hostname"));
        let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
        Self::at(host.trim(), directory)
    }

    /// The name of the machine.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The canonical path of the directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        Path::new(&self.root)
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.root.escape_debug(), self.host.escape_debug())
    }
}

/// The reason why a canonical directory is wider than any project.
fn too_wide(root: &Path) -> Option<&'static str> {
    if root.parent().is_none() {
        return Some("it is the root of the file system");
    }
    let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
    let parent_of_homes = ["/home", "/root", "/Users"];
    let is_home = home.is_some_and(|home| home.starts_with(root))
        || parent_of_homes.iter().any(|homes| {
            root == Path::new(homes) || root.parent() == Some(Path::new(homes)) && *homes != "/root"
        });
    is_home.then_some("it is a home directory, or above one")
}

/// The digest of a regular file; `None` when it cannot be read, or is too large.
pub(super) fn digest_of(path: &Path) -> Option<String> {
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    if file.len() > MAX_FILE {
        return None;
    }
    let mut content = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE + 1).read_to_end(&mut content).ok()?;
    let fits = u64::try_from(content.len()).is_ok_and(|bytes| bytes <= MAX_FILE);
    fits.then(|| crate::args::hex(&Sha256::digest(&content)))
}
