//! Where a grant holds.

use serde::{Deserialize, Serialize};

use super::project::Project;

/// Where a grant holds. No scope is wider than a project.
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
