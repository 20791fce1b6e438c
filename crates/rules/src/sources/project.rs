//! The file of a project: it can narrow, and widens only after a person approved it (rule R4).
//!
//! A project's file comes with the project, from anyone who may push to it. It may make things stricter without an
//! approval, as that harms no one but its author. What it allows is in force only in the form, byte for byte, that a
//! person has approved for this machine and this root. If a pull changes one byte, the file allows nothing until a
//! person approves it again, with the difference to the last approved text.
//!
//! Only the newest approval counts. If all of them did, going back to an old commit would bring back what it allowed.
//!
//! The search for the file ends at the root of the repository and below the home directory, and takes only a regular
//! file of this user. Otherwise, in a folder that several people can write, the file of another person could be
//! found first.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::private_file;

/// The file that holds which form of each project's rules a person has approved. It belongs to the user, and not in a
/// project.
///
/// ```
/// use countersign_rules::ProjectApprovals;
///
/// let root = std::env::temp_dir().join(format!("countersign-doc-approvals-{}", std::process::id()));
/// std::fs::create_dir_all(&root)?;
/// let approvals = ProjectApprovals::at(root.join("approvals.json")).host("build-7");
/// assert_eq!(approvals.approved(&root)?, None);
/// approvals.approve(&root, "version = 1", "ann")?;
/// assert_eq!(approvals.approved(&root)?.unwrap().by, "ann");
/// assert_eq!(approvals.clone().host("laptop").approved(&root)?, None, "approvals are for one machine");
/// std::fs::remove_dir_all(&root)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct ProjectApprovals {
    path: PathBuf,
    host: String,
}

/// One approval of a project's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovedProject {
    /// The machine that the approval is for.
    pub host: String,
    /// The canonical root of the project.
    pub root: PathBuf,
    /// The digest of the file's bytes.
    pub digest: String,
    /// The text that was approved, to show the difference to a later one.
    pub text: String,
    /// The person who approved it.
    pub by: String,
}

impl ProjectApprovals {
    /// The approvals in a file of the user's state directory. The file need not exist yet.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), host: host() }
    }

    /// Sets the name of this machine; approvals are for one machine.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.host = host.into();
        self
    }

    /// The newest approval for the project with this root, if there is one.
    ///
    /// # Errors
    /// The error of reading the file, or that it is no file of approvals.
    pub fn approved(&self, root: &Path) -> std::io::Result<Option<ApprovedProject>> {
        let mut all = self.all()?;
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        all.retain(|one| one.host == self.host && one.root == root);
        Ok(all.pop())
    }

    pub(super) fn is_approved(&self, root: &Path, digest: &str) -> bool {
        match self.approved(root) {
            Ok(approved) => approved.is_some_and(|approved| approved.digest == digest),
            Err(error) => {
                tracing::error!(file = %self.path.display(), %error, "the approvals of projects cannot be read: none counts");
                false
            }
        }
    }

    /// Records that a person approves this text as the rules of the project. It replaces an earlier approval: only the
    /// newest one counts.
    ///
    /// # Errors
    /// The error of reading or writing the file.
    pub fn approve(&self, root: &Path, text: &str, by: &str) -> std::io::Result<ApprovedProject> {
        let mut all = self.all()?;
        let root = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
        all.retain(|one| one.host != self.host || one.root != root);
        let approved = ApprovedProject {
            host: self.host.clone(),
            root,
            digest: crate::format::rule::hex_digest(text.as_bytes()),
            text: text.to_owned(),
            by: by.to_owned(),
        };
        all.push(approved.clone());
        private_file::replace(&self.path, &serde_json::to_vec_pretty(&all)?)?;
        Ok(approved)
    }

    fn all(&self) -> std::io::Result<Vec<ApprovedProject>> {
        match std::fs::read(&self.path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// The name of this machine.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let named = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    let named = named
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .or_else(|| std::env::var("HOSTNAME").ok());
    named
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "localhost".into())
}

/// The names that a project's file may have, below its root.
const NAMES: &[&str] = &["countersign.toml", ".countersign/rules.toml"];

/// Finds the file of the project that a directory belongs to. The search goes upward to the root of the repository or
/// the home directory, and takes only a regular file that belongs to this user.
///
/// ```
/// use countersign_rules::find_project_file;
///
/// let root = std::env::temp_dir().join(format!("countersign-doc-find-{}", std::process::id()));
/// std::fs::create_dir_all(root.join("src/deep"))?;
/// std::fs::create_dir_all(root.join(".git"))?;
/// assert_eq!(find_project_file(&root.join("src/deep")), None);
/// std::fs::write(root.join("countersign.toml"), "version = 1")?;
/// let found = find_project_file(&root.join("src/deep")).unwrap();
/// assert!(found.ends_with("countersign.toml"));
/// std::fs::remove_dir_all(&root)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use]
pub fn find_project_file(start: &Path) -> Option<PathBuf> {
    let start = std::fs::canonicalize(start).ok()?;
    let home = std::env::home_dir().and_then(|home| std::fs::canonicalize(home).ok());
    for folder in start.ancestors() {
        if home.as_deref() == Some(folder) {
            return None;
        }
        for name in NAMES {
            let file = folder.join(name);
            if is_own_file(&file) {
                return Some(file);
            }
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

fn is_own_file(path: &Path) -> bool {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return false };
    metadata.is_file() && private_file::belongs_to_user(&metadata)
}
