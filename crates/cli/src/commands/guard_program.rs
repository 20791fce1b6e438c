//! The program that the entry of a client starts as a guard.

use std::path::Path;

use countersign_cli::config::LastingProgram;

use crate::Context;
use crate::output::CommandError;

/// This program, or the copy of it that stays where this one does not.
#[derive(Clone)]
pub(crate) struct GuardProgram(LastingProgram);

impl GuardProgram {
    pub(crate) fn of(context: &Context) -> Result<Self, CommandError> {
        let running = std::env::current_exe().and_then(|path| path.canonicalize());
        let running = running.map_err(|error| CommandError::Store(error.to_string()))?;
        let (home, state) = (context.directories.home(), context.directories.state());
        Ok(Self(LastingProgram::of(&running, home, state)))
    }

    /// The word of the entry.
    pub(crate) fn word(&self) -> String {
        self.0.path().display().to_string()
    }

    /// Makes the copy, where one is needed.
    pub(crate) fn write(&self) -> Result<(), CommandError> {
        Ok(self.0.write()?)
    }

    /// The copy, where one is needed and is not there yet.
    pub(crate) fn copy_to_come(&self) -> Option<&Path> {
        self.0.why_copied().map(|_| self.0.path()).filter(|copy| !copy.exists())
    }

    /// The place of the program, if it is one that needs a copy.
    pub(crate) fn why_copied(&self) -> Option<&'static str> {
        self.0.why_copied()
    }
}
