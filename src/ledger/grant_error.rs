//! The error of a grant that cannot be made.

/// Why a grant cannot be made, or a directory cannot be the project of one.
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
