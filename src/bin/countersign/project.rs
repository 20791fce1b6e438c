//! The project in which grants hold.

use std::path::Path;

use countersign::ledger::{Ledger, Project};

/// The ledger in the project of a directory. A home directory or `/` is no project: then grants hold for the session only.
pub(crate) fn in_project(ledger: Ledger, directory: &Path) -> Ledger {
    match Project::here(directory) {
        Ok(project) => ledger.project(project),
        Err(_) => ledger,
    }
}
