//! The settings of a classifier: the preset, the table of programs, and the places of the workspace and of programs.

use super::table::Programs;
use crate::places::paths::Workspace;
use crate::places::search_path::SearchPath;

/// Which commands are allowed without a person's approval.
///
/// Exhaustive on purpose: a program has to say what each preset allows.
///
/// A preset is a choice of *effects*, not of programs: under `Reader` a test runner asks because it runs code of the
/// workspace, whatever its name. Finer choices belong into rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// Reading in the workspace and the public parts of the system; building, testing, checking and formatting the
    /// workspace; querying services, local or with the user's credentials, without changing anything there. Builds run
    /// the workspace's own code.
    Developer,
    /// Reading in the workspace and the public parts of the system, and nothing else.
    Reader,
}

/// The settings of a classifier.
#[derive(Debug, Clone)]
pub(super) struct ClassifierSettings {
    pub(super) programs: Programs,
    pub(super) workspace: Workspace,
    pub(super) preset: Preset,
    pub(super) search_path: SearchPath,
}
