//! The presets by their names on the command line.

use clap::ValueEnum;
use countersign_shell::Preset;

/// A preset that comes with the program.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    /// Reading, building, testing and formatting the project; queries that change nothing
    Developer,
    /// Reading only
    Reader,
}

impl PresetName {
    pub(crate) fn preset(self) -> Preset {
        match self {
            Self::Developer => Preset::Developer,
            Self::Reader => Preset::Reader,
        }
    }

    /// The name, as it is given.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::Reader => "reader",
        }
    }
}
