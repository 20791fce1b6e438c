//! The settings of a classifier: the preset, the table of programs, and the places of the workspace and of programs.

use super::table::{ProgramMark, Programs};
use crate::places::paths::Workspace;
use crate::places::search_path::{ProgramFile, SearchPath};

/// Which commands are allowed without a person's approval.
///
/// Exhaustive on purpose: a program has to say what each preset allows.
///
/// A preset is a choice of *effects*, not of programs: under `Reader` we ask about a test runner because it runs
/// code of the workspace, whatever its name. Finer choices belong into rules.
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

impl ClassifierSettings {
    /// Whether a word is the name of a program that others can start: of the table, or of a file in the folders that are searched.
    pub(super) fn names_program(&self, word: &str) -> bool {
        let found = || self.search_path.find(word, &self.workspace);
        let known = self.programs.get(word);
        !word.is_empty()
            && !word.contains('/')
            && (known.is_some_and(|entry| !entry.is(ProgramMark::Builtin))
                || !matches!(found(), ProgramFile::Nothing))
    }
}
